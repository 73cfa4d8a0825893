/* SPDX-License-Identifier: GPL-2.0 */
/* Tables of the exports and exposures of this node. See export_table.c. */
#ifndef KXFER_EXPORT_TABLE_H
#define KXFER_EXPORT_TABLE_H

#include <linux/types.h>

struct kxfer_export;
struct kxfer_exposure;
struct kxfer_link;
struct net;

void kxfer_exports_lock(void);
void kxfer_exports_unlock(void);

void kxfer_export_table_init(void);
u64 kxfer_export_node(void);
int kxfer_export_table_add(struct kxfer_export *export);
void kxfer_export_table_del(struct kxfer_export *export);
struct kxfer_export *kxfer_export_table_find(const struct net *net, const u8 *name);

/**
 * struct kxfer_export_walk - position of a walk over all exports of the node
 * @after: id of the last export; begin with 0, or with a cursor
 * @steps: steps made so far; begin with 0
 */
struct kxfer_export_walk {
	u64 after;
	u32 steps;
};

struct kxfer_export *kxfer_export_walk_on(struct kxfer_export_walk *walk);

void kxfer_exposure_table_add(struct kxfer_exposure *exposure);
bool kxfer_exposure_table_del(struct kxfer_exposure *exposure);
struct kxfer_exposure *kxfer_exposure_table_find(const struct kxfer_link *link,
						 const struct kxfer_export *export, u32 rights);
struct kxfer_exposure *kxfer_exposure_table_by_id(const struct kxfer_link *link, u64 id);

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/* Listing objects for user space. See info.c. */
#ifndef KXFER_INFO_H
#define KXFER_INFO_H

#include <linux/types.h>

struct kxfer_session;
struct kxfer_viewer;

int kxfer_info_list(struct kxfer_session *session, void *arg);
u32 kxfer_info_record_size(u32 kind);
u32 kxfer_info_fill(const struct kxfer_viewer *viewer, u32 kind, u64 *cursor,
		    void *records, u32 nr);

#endif /* KXFER_INFO_H */

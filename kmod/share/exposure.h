/* SPDX-License-Identifier: GPL-2.0 */
/* Exports on links, and their end. See exposure.c. */
#ifndef KXFER_EXPOSURE_H
#define KXFER_EXPOSURE_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "base/wire.h"

struct ib_mr;
struct kxfer_claim;
struct kxfer_export;
struct kxfer_extent;
struct kxfer_link;
struct kxfer_mapping;

#define KXFER_REVOKE_MS		10000	/* a holder that does not answer in time loses the link */

/**
 * struct kxfer_exposure - an export registered on one link with given rights
 * @ref: references, held by the lists, by grants, by fetches and by the withdrawal
 * @id: id on this node
 * @export: export; a reference
 * @link: link, which stays while the exposure is in its list
 * @rights: KXFER_RIGHT_*
 * @nr_grants: grants, under kxfer_exports_lock(); at 0 the exposure is destroyed
 * @export_node: in kxfer_export.exposures; the context that removes the exposure destroys it
 * @link_node: in kxfer_link.exposures
 * @hash_node: in the table of exposures, by link, export and rights
 * @id_node: in the table of exposures by @id
 * @mapping: mapping of the region for the link's device; the exposure is a user of it
 * @mrs: MRs of the registrations
 * @keys: address, length and rkey of each registration
 * @nr_keys: entries of @mrs and of @keys
 * @ready: registration has ended
 * @error: result of the registration, 0 or -errno; valid once @ready is complete
 * @withdraw_work: makes the holder let go of the exposure
 * @content_dirty: new content has to be sent to the peer
 */
struct kxfer_exposure {
	struct kref ref;
	u64 id;
	struct kxfer_export *export;
	struct kxfer_link *link;
	u32 rights;
	u32 nr_grants;
	struct list_head export_node;
	struct list_head link_node;
	struct hlist_node hash_node;
	struct hlist_node id_node;
	struct kxfer_mapping *mapping;
	struct ib_mr **mrs;
	struct kxfer_extent *keys;
	u32 nr_keys;
	struct completion ready;
	int error;
	struct work_struct withdraw_work;
	bool content_dirty;
};

int kxfer_exposure_init(void);
void kxfer_exposure_exit(void);
int kxfer_exposure_open(struct kxfer_link *link, const struct kxfer_wire_grant *request,
			struct kxfer_claim *claim, struct kxfer_exposure **exposure);
void kxfer_exposure_close(struct kxfer_exposure *exposure);
void kxfer_exposure_put(struct kxfer_exposure *exposure);
u32 kxfer_exposure_page(const struct kxfer_exposure *exposure, u32 first, u32 room,
			struct kxfer_wire_keys_answer *answer);
enum kxfer_wire_status kxfer_exposure_keys(struct kxfer_link *link,
					   const struct kxfer_wire_keys *request,
					   struct kxfer_wire_keys_answer *answer,
					   u32 *length);
void kxfer_exposure_announce(struct kxfer_export *export);
void kxfer_exposure_content_work(struct work_struct *work);
void kxfer_exposure_withdraw_all(struct kxfer_export *export);
void kxfer_exposure_wait_all(struct kxfer_export *export);
void kxfer_exposure_link_closed(struct kxfer_link *link);

#endif /* KXFER_EXPOSURE_H */

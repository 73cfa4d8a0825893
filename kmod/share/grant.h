/* SPDX-License-Identifier: GPL-2.0 */
/* Targets that peers hold on exports. See grant.c. */
#ifndef KXFER_GRANT_H
#define KXFER_GRANT_H

#include <linux/types.h>

#include "base/wire.h"
#include "share/eager.h"

struct kxfer_exposure;
struct kxfer_fetch;
struct kxfer_lane;
struct kxfer_link;

#define KXFER_MAX_GRANTS	65536	/* of a link */

/**
 * struct kxfer_grant - a target that the peer holds
 * @exposure: exposure of the target; a reference
 * @uid: uid of the process at the peer, or KXFER_UID_UNKNOWN
 * @gid: gid of that process, or KXFER_UID_UNKNOWN
 * @word: value that the process chose for its messages
 * @eager: credits for eager messages (eager.h)
 */
struct kxfer_grant {
	struct kxfer_exposure *exposure;
	u32 uid;
	u32 gid;
	u64 word;
	struct kxfer_eager eager;
};

enum kxfer_wire_status kxfer_grant_create(struct kxfer_link *link,
					  const struct kxfer_wire_grant *request,
					  struct kxfer_wire_grant_answer *answer,
					  u32 *length);
enum kxfer_wire_status kxfer_grant_release(struct kxfer_link *link, u64 grant_id);
int kxfer_grant_wait_messages(struct kxfer_link *link, const struct kxfer_wire_release *release);
enum kxfer_wire_status kxfer_grant_describe(struct kxfer_link *link, u64 grant_id,
					    struct kxfer_wire_info_answer *answer,
					    u32 *length);
enum kxfer_wire_status kxfer_grant_notify(struct kxfer_link *link, u64 grant_id,
					  u64 cookie);
int kxfer_grant_send(struct kxfer_lane *lane, const struct kxfer_wire_send *send, u32 length);
const char *kxfer_grant_eager(struct kxfer_lane *lane, u32 grant_id, const void *payload,
			      u32 length);
int kxfer_grant_credits(struct kxfer_lane *lane, u64 grant_id, u32 *credits);
int kxfer_grant_offer(struct kxfer_link *link, struct kxfer_fetch *fetch);
void kxfer_grant_link_closed(struct kxfer_link *link);

#endif /* KXFER_GRANT_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Offers: long messages that the peer READs. See offer.c. */
#ifndef KXFER_OFFER_H
#define KXFER_OFFER_H

#include <linux/types.h>

#include "base/wire.h"

struct kxfer_active_job;
struct kxfer_lane;
struct kxfer_offer;
struct kxfer_request;
struct kxfer_target;

int kxfer_offer_make(struct kxfer_lane *lane);
void kxfer_offer_close(struct kxfer_lane *lane);
void kxfer_offer_free(struct kxfer_lane *lane);
struct kxfer_offer *kxfer_offer_get(struct kxfer_lane *lane, const struct kxfer_active_job *job);
int kxfer_offer_register(struct kxfer_offer *offer, const struct kxfer_active_job *job);
void kxfer_offer_post(struct kxfer_offer *offer, struct kxfer_active_job *job,
		      struct kxfer_request *request);
void kxfer_offer_take_back(struct kxfer_lane *lane, const struct kxfer_active_job *job,
			   const struct kxfer_target *target, int status);
u64 kxfer_offer_late(struct kxfer_lane *lane, u64 now_ns);
void kxfer_offer_pump(struct kxfer_lane *lane);
bool kxfer_offer_is_posted(const struct kxfer_lane *lane);
bool kxfer_offer_stuck_locked(const struct kxfer_lane *lane, u64 now_ns);
struct kxfer_offer *kxfer_offer_fetched(struct kxfer_lane *lane,
					const struct kxfer_wire_fetched *fetched);
void kxfer_offer_end(struct kxfer_offer *offer);

#endif /* KXFER_OFFER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs that are messages. See message.c. */
#ifndef KXFER_MESSAGE_H
#define KXFER_MESSAGE_H

#include <linux/types.h>

struct kxfer_active_job;
struct kxfer_extent;
struct kxfer_lane;
struct kxfer_target;

u32 kxfer_message_flags(const struct kxfer_active_job *job);
bool kxfer_message_wants_mapping(const struct kxfer_active_job *job);
void kxfer_message_plan(struct kxfer_active_job *job);
bool kxfer_message_may_go(struct kxfer_target *target, struct kxfer_lane *lane);
void kxfer_message_went(struct kxfer_target *target);
bool kxfer_message_waits(const struct kxfer_active_job *job);
extern const struct kxfer_extent kxfer_message_place;

bool kxfer_message_post(struct kxfer_lane *lane, struct kxfer_active_job *job);
void kxfer_message_over(struct kxfer_lane *lane, struct kxfer_active_job *job, int status);
int kxfer_message_status(int answer);

#endif /* KXFER_MESSAGE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Credits that a grant has for eager messages. See eager.c. */
#ifndef KXFER_EAGER_H
#define KXFER_EAGER_H

#include <linux/types.h>

struct kxfer_lane;
struct kxfer_mailbox;

/**
 * struct kxfer_eager - credits of a grant; under the lock of the link's grants
 * @lane: lane that the credits are for; undefined without any
 * @credits: messages that may take one and have not come
 * @received: messages that took one and have come, modulo 2^32
 */
struct kxfer_eager {
	struct kxfer_lane *lane;
	u32 credits;
	u32 received;
};

u32 kxfer_eager_give(struct kxfer_eager *eager, struct kxfer_lane *lane,
		     struct kxfer_mailbox *mailbox);
bool kxfer_eager_take(struct kxfer_eager *eager, const struct kxfer_lane *lane);
void kxfer_eager_end(struct kxfer_eager *eager, struct kxfer_mailbox *mailbox);

#endif /* KXFER_EAGER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* How long a link waits for its peer. See patience.c. */
#ifndef KXFER_PATIENCE_H
#define KXFER_PATIENCE_H

#include <linux/types.h>

/**
 * struct kxfer_patience - how long a link waits for its peer
 * @silence_ms: PING unanswered and nothing else heard for so long: the link is dead
 * @ack_timeout: the device waits 4.096 us * 2^n for an acknowledgment; not on iWARP
 * @retry_count: how often the device then sends again; not on iWARP
 */
struct kxfer_patience {
	u32 silence_ms;
	u32 ack_timeout;
	u32 retry_count;
};

int kxfer_patience_init(struct kxfer_patience *patience, u32 silence_ms, u32 ack_timeout,
			u32 retry_count);
u32 kxfer_patience_keepalive_ms(const struct kxfer_patience *patience);

#endif /* KXFER_PATIENCE_H */

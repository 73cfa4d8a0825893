// SPDX-License-Identifier: GPL-2.0
/*
 * Patience: how long a link waits for its peer, as PEER_OPEN or LISTEN_ADD asks for.
 *
 * A link ends when the peer was silent for silence_ms, and when the device gives up a packet
 * (InfiniBand, RoCE), which happens (retry_count + 1) times the ack timeout after the packet was
 * sent. If the caller does not choose the ack timeout, all tries take at least half of silence_ms:
 * several lost packets do not end a link, and a device with posted work requests finds a dead
 * peer first. Pure: no locks, no allocation.
 */
#include <linux/errno.h>
#include <linux/kxfer.h>
#include <linux/kernel.h>

#include "base/patience.h"

#define SILENCE_MS		8000
#define RETRY_COUNT		7
#define KEEPALIVE_MAX_MS	2000	/* the checks for what is overdue come with the PINGs */

static bool is_within(u32 value, u32 min, u32 max)
{
	return !value || (value >= min && value <= max);
}

/* The time of all tries of a packet, in ms: 4.096 us is 64 / 15625 of one. */
static u32 tries_ms(const struct kxfer_patience *patience)
{
	return ((patience->retry_count + 1) << patience->ack_timeout) * 64 / 15625;
}

static void choose_ack_timeout(struct kxfer_patience *patience)
{
	patience->ack_timeout = KXFER_ACK_TIMEOUT_MIN;
	while (patience->ack_timeout < KXFER_ACK_TIMEOUT_MAX &&
	       tries_ms(patience) < patience->silence_ms / 2)
		patience->ack_timeout++;
}

/**
 * kxfer_patience_init() - check what a caller asks for, and choose the rest
 * @patience: result
 * @silence_ms: as in struct kxfer_peer_open; this and the next two: 0: no choice
 * @ack_timeout: as there
 * @retry_count: as there
 *
 * Return: 0, or -EINVAL.
 */
int kxfer_patience_init(struct kxfer_patience *patience, u32 silence_ms, u32 ack_timeout,
			u32 retry_count)
{
	if (!is_within(silence_ms, KXFER_SILENCE_MIN_MS, KXFER_SILENCE_MAX_MS) ||
	    !is_within(ack_timeout, KXFER_ACK_TIMEOUT_MIN, KXFER_ACK_TIMEOUT_MAX) ||
	    !is_within(retry_count, 1, KXFER_RETRY_COUNT_MAX))
		return -EINVAL;
	patience->silence_ms = silence_ms ?: SILENCE_MS;
	patience->retry_count = retry_count ?: RETRY_COUNT;
	patience->ack_timeout = ack_timeout;
	if (!ack_timeout)
		choose_ack_timeout(patience);
	return 0;
}

/** kxfer_patience_keepalive_ms() - time between two PINGs: a silent peer misses four, or more */
u32 kxfer_patience_keepalive_ms(const struct kxfer_patience *patience)
{
	u32 ms = patience->silence_ms / 4;

	return ms < KEEPALIVE_MAX_MS ? ms : KEEPALIVE_MAX_MS;
}

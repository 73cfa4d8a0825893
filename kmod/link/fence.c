// SPDX-License-Identifier: GPL-2.0
/*
 * Fences: a link that is over at both ends before another succeeds it.
 *
 * When a link breaks, each end learns of it at its own time, and what the initiator had posted
 * may still be under way to a QP that the peer has not stopped. If the initiator repeated a WRITE
 * on a new link, the first one could land behind it. So the initiator names the old link by RESUME
 * before it repeats anything. The passive side ends that link, if it still has it, and answers
 * once its QPs are stopped: a QP in RESET, or none, takes no packet.
 *
 * A peer shows the cookie of the link that it names, which was in its hello; and if that link had a
 * key, the new link must have proved the same key. The two may come from different addresses of the
 * peer, unless it is one that does not know of several paths (KXFER_WIRE_FEATURE_VIA).
 *
 * The handler waits FENCE_MS at most, and no longer than its own link lives: requests behind it
 * wait, too, also those of other sessions. If that is not enough the initiator asks again. The
 * old link's teardown does not wait for the handler, which runs on another link.
 *
 * Context: both functions may sleep.
 */
#include <linux/jiffies.h>

#include "base/decode.h"
#include "base/fault.h"
#include "link/channel.h"
#include "link/fence.h"
#include "link/lane.h"
#include "link/link.h"

#define FENCE_MS	500	/* longest wait for the end of the old link */
#define LOOK_MS		50	/* between two looks whether the handler's own link still lives */

/**
 * kxfer_fence_close() - have the peer end a link that is over at this end
 * @link: LIVE link to the same peer, with KXFER_WIRE_FEATURE_RESUME
 * @old: link of this initiator whose lanes are stopped
 * @timeout_ms: longest time to wait for the answer
 *
 * Return: 0: nothing that was posted on @old takes effect any more; -EAGAIN: not yet; or the error
 * of kxfer_channel_call().
 */
int kxfer_fence_close(struct kxfer_link *link, struct kxfer_link *old, unsigned int timeout_ms)
{
	struct kxfer_wire_resume resume = { .epoch = cpu_to_be64(old->epoch) };
	int ret;

	if (READ_ONCE(old->fenced))
		return 0;
	/* With a key the hello had the handshake's nonce in place of the cookie. */
	memcpy(resume.cookie,
	       kxfer_link_has_key(old) ? old->handshake.hello.cookie : old->cookie,
	       sizeof(resume.cookie));
	ret = kxfer_channel_call(&link->control->channel, KXFER_WIRE_RESUME, &resume,
				 sizeof(resume), NULL, NULL, timeout_ms, KXFER_WAIT_KILLABLE);
	if (!ret)
		WRITE_ONCE(old->fenced, true);
	return ret;
}

static bool is_quiet(const struct kxfer_link *link)
{
	/* Pairs with teardown_work(): what was stopped is stopped. */
	return smp_load_acquire(&link->ended);
}

/* Return: 0 or -EAGAIN */
static int wait_quiet(struct kxfer_link *link, struct kxfer_link *old)
{
	unsigned long end = jiffies + msecs_to_jiffies(FENCE_MS);

	kxfer_delay(FENCE_WAIT);
	while (!is_quiet(old) && kxfer_link_is_live(link) && time_before(jiffies, end))
		wait_event_timeout(old->wait, is_quiet(old), msecs_to_jiffies(LOOK_MS));
	return is_quiet(old) ? 0 : -EAGAIN;
}

/** kxfer_fence_handle() - handle RESUME: end the link that the peer names */
void kxfer_fence_handle(struct kxfer_reply *reply, const void *payload)
{
	struct kxfer_link *link = reply->channel->lane->link, *old;
	int ret = 0;

	if (!(link->features & KXFER_WIRE_FEATURE_RESUME)) {
		kxfer_link_protocol_error(link, "RESUME without that feature");
		return;
	}
	old = kxfer_link_find_former(link, payload);
	if (old) {
		kxfer_link_fail(old, -ECONNRESET);
		ret = wait_quiet(link, old);
		kxfer_link_put(old);
	}
	kxfer_channel_answer(reply, kxfer_wire_status(ret), 0);
}

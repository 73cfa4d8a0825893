// SPDX-License-Identifier: GPL-2.0
/*
 * What the export of a target is and holds: TARGET_INFO, and the word of the peer.
 *
 * The peer says what an export holds with the grant, in answers to INFO, and by CONTENT whenever
 * its owner gives it new content. The newest generation counts. TARGET_INFO asks, and may wait for
 * a generation. If the link breaks meanwhile and the target has a line, it looks for another link
 * as jobs do, for loss_ms.
 *
 * Context: handlers of the link for CONTENT, else calls, which sleep.
 */
#include <linux/jiffies.h>
#include <linux/kxfer.h>
#include <linux/sched/signal.h>

#include "base/decode.h"
#include "job/line.h"
#include "job/peer.h"
#include "job/reconnect.h"
#include "job/target.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/session.h"

#define CONTENT_TOO_LONG "more content than the export has room for"
#define LOOK_MS		100	/* pause between two looks for a link */

/* Return: false if the content is longer than the export. */
static bool update_content(struct kxfer_target *target,
			   const struct kxfer_wire_content *wire)
{
	struct kxfer_content content;

	kxfer_content_from_wire(&content, wire);
	if (content.length > target->length)
		return false;
	if (content.generation > target->content.generation)
		target->content = content;
	return true;
}

struct info_answer {
	struct kxfer_wire_info_answer info;
	struct kxfer_wire_identity identity;
};

/* Ask for @answer; its identity is that of a link with KXFER_WIRE_FEATURE_RESUME alone. */
static int ask_info(struct kxfer_target *target, struct info_answer *answer,
		    unsigned int timeout_ms)
{
	struct kxfer_wire_grant_id id = { .grant = cpu_to_be64(target->grant) };
	bool identity = target->link->features & KXFER_WIRE_FEATURE_RESUME;
	u32 length = sizeof(*answer);
	bool good;
	int ret;

	ret = kxfer_channel_call(&target->link->control->channel, KXFER_WIRE_INFO, &id,
				 sizeof(id), answer, &length, timeout_ms,
				 KXFER_WAIT_KILLABLE);
	if (!ret && length != (identity ? sizeof(*answer) : sizeof(answer->info)))
		ret = -EPROTO;
	if (ret)
		return ret;
	spin_lock_bh(&target->link->targets_lock);
	good = update_content(target, &answer->info.content);
	target->cookie = be64_to_cpu(answer->info.cookie);
	spin_unlock_bh(&target->link->targets_lock);
	if (good)
		return 0;
	kxfer_link_protocol_error(target->link, CONTENT_TOO_LONG);
	return -EPROTO;
}

/**
 * kxfer_target_identify() - note which export it is, so that it can be granted again
 * @target: target with a grant, of no session yet
 * @cmd: name and word of TARGET_OPEN
 * @end: when to give up, in jiffies
 *
 * Only a target of a line needs that. May sleep. Return: 0 or -errno.
 */
int kxfer_target_identify(struct kxfer_target *target, const struct kxfer_target_open *cmd,
			  unsigned long end)
{
	struct info_answer answer;
	int ret;

	if (!target->line)
		return 0;
	ret = ask_info(target, &answer, kxfer_left_ms(end));
	if (ret)
		return ret;
	memcpy(target->name, cmd->name, sizeof(target->name));
	target->word = cmd->word;
	target->node = be64_to_cpu(answer.identity.node);
	target->export = be64_to_cpu(answer.identity.export);
	return 0;
}

/** kxfer_target_content() - note what an export holds, as the peer says; in a handler */
void kxfer_target_content(struct kxfer_link *link, u64 exposure,
			  const struct kxfer_wire_content *content)
{
	struct kxfer_target *target;
	bool good = true;

	spin_lock_bh(&link->targets_lock);
	list_for_each_entry(target, &link->targets, link_node)
		if (target->exposure == exposure)
			good &= update_content(target, content);
	spin_unlock_bh(&link->targets_lock);
	if (!good)
		kxfer_link_protocol_error(link, CONTENT_TOO_LONG);
	wake_up_all(&link->wait);
}

static bool content_settled(struct kxfer_target *target, u64 min_generation)
{
	bool newer;

	spin_lock_bh(&target->link->targets_lock);
	newer = target->content.generation >= min_generation;
	spin_unlock_bh(&target->link->targets_lock);
	return newer || READ_ONCE(target->revoked) || !kxfer_link_is_live(target->link);
}

/* Wait until the generation is at least @min_generation; the peer pushes changes. */
static int wait_content(struct kxfer_target *target, u64 min_generation,
			unsigned long end)
{
	long left;

	left = wait_event_interruptible_timeout(target->link->wait,
						content_settled(target, min_generation),
						msecs_to_jiffies(kxfer_left_ms(end)) + 1);
	if (left < 0)
		return -EINTR;
	if (!left)
		return -ETIMEDOUT;
	if (READ_ONCE(target->revoked))
		return -EKEYREVOKED;
	return kxfer_link_is_live(target->link) ? 0 : kxfer_link_job_error(target->link);
}

/* Ask what the export of a target holds, and perhaps wait for more. */
static int ask_and_wait(struct kxfer_target *target, struct kxfer_target_info *cmd,
			unsigned long end)
{
	struct info_answer answer;
	int ret;

	ret = READ_ONCE(target->revoked) ? -EKEYREVOKED :
	      ask_info(target, &answer, min_t(u32, kxfer_left_ms(end), KXFER_TIMEOUT_MAX_MS));
	if (!ret && cmd->min_generation)
		ret = wait_content(target, cmd->min_generation, end);
	spin_lock_bh(&target->link->targets_lock);
	cmd->content = target->content;
	cmd->cookie = target->cookie;
	spin_unlock_bh(&target->link->targets_lock);
	cmd->length = target->length;
	cmd->granted = target->rights;
	return ret;
}

/**
 * struct search - TARGET_INFO looks for another link
 * @end: when the call ends, in jiffies
 * @lost: the link has broken since the call began
 * @until: when loss_ms has passed since then, in jiffies
 */
struct search {
	unsigned long end;
	bool lost;
	unsigned long until;
};

/* Whether a call failed because the link did, and the line may find another one. */
static bool may_go_on(const struct kxfer_target *target, int error)
{
	return error && error != -EINTR && target->line && !READ_ONCE(target->revoked) &&
	       !kxfer_link_is_live(target->link);
}

/* Have a target granted again. Return: 1: ask again, of the target that has its id now; -errno */
static int look_for_link(struct kxfer_target *target, struct search *search, int error)
{
	int ret;

	if (!search->lost)
		search->until = jiffies + msecs_to_jiffies(target->line->loss_ms);
	search->lost = true;
	if (time_after_eq(jiffies, search->end))
		return -ETIMEDOUT;
	if (time_after_eq(jiffies, search->until))
		return error;
	ret = kxfer_reconnect_target(target, kxfer_left_ms(search->end));
	search->lost = ret;
	if (ret && ret != -EINTR)
		schedule_timeout_interruptible(msecs_to_jiffies(LOOK_MS));
	return ret == -EINTR || signal_pending(current) ? -EINTR : 1;
}

static int find_info(struct kxfer_session *session, struct kxfer_target_info *cmd,
		     struct search *search)
{
	struct kxfer_target *target = kxfer_target_find(session, cmd->target);
	int ret;

	if (!target)
		return -ENOENT;
	ret = ask_and_wait(target, cmd, search->end);
	if (may_go_on(target, ret))
		ret = look_for_link(target, search, ret);
	kxfer_target_put(target);
	return ret;
}

/** kxfer_target_info() - KXFER_TARGET_INFO */
int kxfer_target_info(struct kxfer_session *session, void *arg)
{
	struct kxfer_target_info *cmd = arg;
	struct search search = { .end = jiffies + msecs_to_jiffies(cmd->timeout_ms) };
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || !cmd->timeout_ms ||
	    cmd->timeout_ms > KXFER_INFO_TIMEOUT_MAX_MS)
		return -EINVAL;
	do {
		ret = find_info(session, cmd, &search);
	} while (ret > 0);
	return ret;
}

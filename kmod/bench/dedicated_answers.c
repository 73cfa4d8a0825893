// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that the responder of a dedicated connection answers, as a storage target does.
 * A command in front of each message carries the key of the MR that the message is sent
 * from. The answer is a SEND_WITH_INV of that key. So the MR is invalid when the answer
 * arrives, and no LOCAL_INV has to be posted.
 *
 * Answers come in the order of messages (RC), so answer n must invalidate the key of
 * message n; any other answer ends the link. An answer carries no bytes, so RECVs need no
 * memory. There are as many RECVs as messages can be under way, and each is posted again
 * before its answer counts.
 *
 * Lifetime of the run, as a proof. @run is set when a run gets the lane and cleared when it
 * gives the lane back, both under the lane's lock. An answer that counts belongs to a message
 * whose run is not done without it, and completions come from one caller at a time. So that
 * run exists until kxfer_run_answered() returns. An excess answer finds all messages
 * answered, and does not touch a run. RECVs are flushed by the end of the lane (lane.c),
 * before struct kxfer_answers is freed with the link.
 */
#include <linux/slab.h>

#include "base/fault.h"
#include "bench/dedicated.h"
#include "bench/run.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"

/* Limit of messages under way. */
#define MAX_ANSWERS	KXFER_LANE_JOB_WRS
#define COMMAND_BYTES	sizeof(struct kxfer_responder_command)

/**
 * struct kxfer_answers - state of the answers of a connection
 * @dedicated: the connection
 * @cqe: completion entry of the RECVs
 * @nr: answers that counted; under the lane's lock, as are all members below
 * @run: run that has the lane, or NULL
 * @commands: ring of MAX_ANSWERS commands: message n has entry n % MAX_ANSWERS
 * @commands_dma: DMA address of @commands
 * @keys: key that the answer must invalidate, indexed as @commands
 * @sge: SGEs of command and message, indexed as @commands
 */
struct kxfer_answers {
	struct kxfer_dedicated *dedicated;
	struct ib_cqe cqe;
	u64 nr;
	struct kxfer_run *run;
	struct kxfer_responder_command *commands;
	u64 commands_dma;
	u32 keys[MAX_ANSWERS];
	struct ib_sge sge[MAX_ANSWERS][2];
};

/* Called with the lock of an open lane, or before its link is LIVE. */
static int post_recv(struct kxfer_lane *lane, struct kxfer_answers *answers)
{
	struct ib_recv_wr wr = { .wr_cqe = &answers->cqe };

	return kxfer_try(DEDICATED_RECV, ib_post_recv(lane->qp, &wr, NULL));
}

/* With the lane's lock. Return: run that the answer is for, or NULL: it does not count */
static struct kxfer_run *take_locked(struct kxfer_lane *lane, struct kxfer_answers *answers,
				     const struct ib_wc *wc)
{
	/* No run waits then, and after a lost answer the next ones do not match @keys. */
	if (!lane->open || !kxfer_link_is_live(lane->link))
		return NULL;
	if (answers->nr == answers->dedicated->sent ||
	    !(wc->wc_flags & IB_WC_WITH_INVALIDATE) ||
	    wc->ex.invalidate_rkey != answers->keys[answers->nr % MAX_ANSWERS]) {
		kxfer_link_protocol_error(lane->link,
					  "an answer that does not invalidate what it should");
		return NULL;
	}
	answers->nr++;
	if (post_recv(lane, answers)) {
		kxfer_link_fail(lane->link, -ECONNRESET);
		return NULL;
	}
	return answers->run;
}

/* In the CQ's context. */
static void answered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kxfer_answers *answers = container_of(wc->wr_cqe, struct kxfer_answers, cqe);
	struct kxfer_lane *lane = kxfer_dedicated_lane(answers->dedicated);
	struct kxfer_run *run;

	kxfer_fault_wc(DEDICATED_ANSWER, wc);
	if (wc->status != IB_WC_SUCCESS) {
		kxfer_lane_wc_error(lane, wc, "RECV of an answer");
		return;
	}
	spin_lock_bh(&lane->lock);
	run = take_locked(lane, answers, wc);
	spin_unlock_bh(&lane->lock);
	if (run)
		kxfer_run_answered(run);
}

/** kxfer_dedicated_recvs() - number of RECVs that a connection's lane needs for answers */
u32 kxfer_dedicated_recvs(const struct kxfer_dedicated *dedicated)
{
	return dedicated->answered ? MAX_ANSWERS : 0;
}

static struct kxfer_answers *alloc_answers(struct kxfer_dedicated *dedicated)
{
	struct kxfer_answers *answers;

	answers = kxfer_try_alloc(DEDICATED_ANSWERS, kzalloc_obj(*answers, GFP_KERNEL));
	if (!answers)
		return NULL;
	answers->dedicated = dedicated;
	answers->cqe.done = answered;
	answers->commands = kxfer_try_alloc(DEDICATED_ANSWERS,
					    kcalloc(MAX_ANSWERS, COMMAND_BYTES, GFP_KERNEL));
	if (answers->commands)
		return answers;
	kfree(answers);
	return NULL;
}

/**
 * kxfer_dedicated_make_answers() - map the commands, and post RECVs for answers
 * @lane: lane of a dedicated connection; connected
 *
 * May sleep. Return: 0 or -errno; kxfer_dedicated_drop_answers() also undoes a failed call.
 */
int kxfer_dedicated_make_answers(struct kxfer_lane *lane)
{
	struct kxfer_dedicated *dedicated = lane->link->context;
	struct kxfer_answers *answers;
	int ret;
	u32 i;

	if (!dedicated->answered)
		return 0;
	answers = alloc_answers(dedicated);
	if (!answers)
		return -ENOMEM;
	dedicated->answers = answers;
	ret = kxfer_device_map(lane->link->dev->ibdev, answers->commands,
			       MAX_ANSWERS * COMMAND_BYTES, DMA_TO_DEVICE,
			       &answers->commands_dma);
	for (i = 0; i < MAX_ANSWERS && !ret; i++)
		ret = post_recv(lane, answers);
	return ret;
}

/** kxfer_dedicated_drop_answers() - unmap the commands; the lane's QP is destroyed */
void kxfer_dedicated_drop_answers(struct kxfer_lane *lane)
{
	struct kxfer_answers *answers = kxfer_dedicated_of(lane->link)->answers;

	if (!answers || !answers->commands_dma)
		return;
	ib_dma_unmap_single(lane->link->dev->ibdev, answers->commands_dma,
			    MAX_ANSWERS * COMMAND_BYTES, DMA_TO_DEVICE);
	answers->commands_dma = 0;
}

/** kxfer_dedicated_free_answers() - free the answers, with their connection */
void kxfer_dedicated_free_answers(struct kxfer_dedicated *dedicated)
{
	if (!dedicated->answers)
		return;
	kfree(dedicated->answers->commands);
	kfree(dedicated->answers);
}

/** kxfer_dedicated_answer_to_locked() - set the run that gets the answers, or NULL */
void kxfer_dedicated_answer_to_locked(struct kxfer_dedicated *dedicated, struct kxfer_run *run)
{
	if (dedicated->answers)
		dedicated->answers->run = run;
}

/**
 * kxfer_dedicated_command_locked() - put the command in front of the next message
 * @dedicated: connection whose messages are answered; its lane's lock is held
 * @wr: work request of the message, with one SGE; gets two
 * @sge: that SGE
 * @rkey: key that the answer must invalidate
 *
 * Must be called before kxfer_run_number_locked().
 */
void kxfer_dedicated_command_locked(struct kxfer_dedicated *dedicated, struct ib_send_wr *wr,
				    const struct ib_sge *sge, u32 rkey)
{
	struct kxfer_answers *answers = dedicated->answers;
	u32 i = dedicated->sent % MAX_ANSWERS;

	answers->keys[i] = rkey;
	answers->commands[i] = (struct kxfer_responder_command) {
		.number = cpu_to_be32((u32)dedicated->sent),
		.rkey = cpu_to_be32(rkey),
	};
	ib_dma_sync_single_for_device(dedicated->link->dev->ibdev,
				      answers->commands_dma + i * COMMAND_BYTES,
				      COMMAND_BYTES, DMA_TO_DEVICE);
	answers->sge[i][0] = (struct ib_sge) {
		.addr = answers->commands_dma + i * COMMAND_BYTES,
		.length = COMMAND_BYTES,
		.lkey = dedicated->link->pd->local_dma_lkey,
	};
	answers->sge[i][1] = *sge;
	wr->sg_list = answers->sge[i];
	wr->num_sge = 2;
}

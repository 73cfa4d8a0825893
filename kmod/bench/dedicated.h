/* SPDX-License-Identifier: GPL-2.0 */
/* A session's own connection with a responder of user-space verbs. See dedicated.c. */
#ifndef KXFER_DEDICATED_H
#define KXFER_DEDICATED_H

#include <linux/completion.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <linux/kxfer_bench.h>

#include "base/plan.h"
#include "base/responder.h"
#include "link/link.h"

struct kxfer_answers;
struct kxfer_device;
struct kxfer_lane;
struct kxfer_run;
struct kxfer_session;
struct rdma_cm_id;

/**
 * struct kxfer_dedicated_ud - how messages go by UD. See dedicated_ud.c
 * @wanted: they do; without, nothing of the rest is used
 * @has_qkey: @qkey was given
 * @id: of rdma_cm, RDMA_PS_UDP
 * @qp: of @id
 * @done: the step of rdma_cm that is waited for has ended
 * @error: how: 0 or -errno
 * @told: @ah_attr and @qpn are there; set once by rdma_cm's handler
 * @ah_attr: way to the responder
 * @ah: made of it
 * @qpn: number of its QP
 * @qkey: that messages carry
 * @mtu: bytes of the longest message
 * @given_up: messages for which no receive was told of for long; this and the rest under
 *	the lane's lock
 * @starved_ns: since when a run waits for receives, and @starved_at is not exceeded; or 0
 * @starved_at: messages that the responder had told of
 */
struct kxfer_dedicated_ud {
	bool wanted;
	bool has_qkey;
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct completion done;
	int error;
	bool told;
	struct rdma_ah_attr ah_attr;
	struct ib_ah *ah;
	u32 qpn;
	u32 qkey;
	u32 mtu;
	u64 given_up;
	u64 starved_ns;
	u64 starved_at;
};

/**
 * struct kxfer_dedicated - what a dedicated connection has beside its link
 * @id: within its session
 * @link: of one lane; owns this
 * @length: bytes of memory wanted
 * @writable: it is to be written too
 * @op: enum kxfer_op: what is done beside READ and WRITE
 * @imm: with immediate
 * @answered: the responder answers messages
 * @pooled: its CQ is of the RDMA core's pool
 * @receives: of messages: that the responder has posted; 0: there are no messages
 * @slots: of messages: places that they go to in turn
 * @bytes: of messages: length of one
 * @remote: the responder's memory; set before the link is LIVE
 * @refusal: errno by which the responder refused
 * @status: of messages: sink of READs of the responder's status
 * @status_dma: its address
 * @status_mr: iWARP: by which the sink is named
 * @status_cqe: of those READs
 * @sent: messages posted; this and the rest under the lane's lock
 * @received: that the responder has told of
 * @wrong: likewise
 * @reading: a READ of the status is under way
 * @nr_asked: READs of the status that were posted
 * @nr_read: that have completed; read without the lock, too
 * @answers: of the responder, or NULL; see dedicated_answers.c
 * @ud: if messages go by it
 */
struct kxfer_dedicated {
	u32 id;
	struct kxfer_link *link;
	u64 length;
	bool writable;
	u32 op;
	bool imm;
	bool answered;
	bool pooled;
	u32 receives;
	u32 slots;
	u32 bytes;
	struct kxfer_extent remote;
	u32 refusal;

	struct kxfer_responder_status *status;
	u64 status_dma;
	struct ib_mr *status_mr;
	struct ib_cqe status_cqe;
	u64 sent;
	u64 received;
	u64 wrong;
	bool reading;
	u32 nr_asked;
	u32 nr_read;
	struct kxfer_answers *answers;
	struct kxfer_dedicated_ud ud;
};

/* What a dedicated connection has beside @link, one of those. */
static inline struct kxfer_dedicated *kxfer_dedicated_of(const struct kxfer_link *link)
{
	return link->context;
}

static inline bool kxfer_dedicated_has_messages(const struct kxfer_dedicated *dedicated)
{
	return dedicated->receives;
}

int kxfer_dedicated_open(struct kxfer_session *session, void *arg);
int kxfer_dedicated_close(struct kxfer_session *session, void *arg);
int kxfer_dedicated_status(struct kxfer_session *session, void *arg);
void kxfer_dedicated_end_session(struct kxfer_session *session);

int kxfer_dedicated_check_ud(const struct kxfer_dedicated *dedicated,
			     const struct ib_device *ibdev);
int kxfer_dedicated_make_ud(struct kxfer_lane *lane);
void kxfer_dedicated_drop_ud(struct kxfer_lane *lane);
int kxfer_dedicated_refused(struct kxfer_dedicated *dedicated, const void *data, u8 length);
void kxfer_dedicated_fill_ud(const struct kxfer_dedicated *dedicated, struct ib_ud_wr *wr);
void kxfer_dedicated_give_up_locked(struct kxfer_dedicated *dedicated);

int kxfer_dedicated_make_status(struct kxfer_lane *lane);
void kxfer_dedicated_drop_status(struct kxfer_lane *lane);
int kxfer_dedicated_ask_locked(struct kxfer_lane *lane);

u32 kxfer_dedicated_recvs(const struct kxfer_dedicated *dedicated);
int kxfer_dedicated_make_answers(struct kxfer_lane *lane);
void kxfer_dedicated_drop_answers(struct kxfer_lane *lane);
void kxfer_dedicated_free_answers(struct kxfer_dedicated *dedicated);
void kxfer_dedicated_answer_to_locked(struct kxfer_dedicated *dedicated, struct kxfer_run *run);
void kxfer_dedicated_command_locked(struct kxfer_dedicated *dedicated, struct ib_send_wr *wr,
				    const struct ib_sge *sge, u32 rkey);

struct kxfer_lane *kxfer_dedicated_lane(const struct kxfer_dedicated *dedicated);
int kxfer_dedicated_take(struct kxfer_dedicated *dedicated, struct kxfer_run *run);
void kxfer_dedicated_give(struct kxfer_dedicated *dedicated);

#endif /* KXFER_DEDICATED_H */

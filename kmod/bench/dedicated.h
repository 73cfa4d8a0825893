/* SPDX-License-Identifier: GPL-2.0 */
/* A session's own connection to a responder of user-space verbs. See dedicated.c. */
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
 * struct kxfer_dedicated_ud - UD side of a dedicated connection. See dedicated_ud.c
 * @wanted: messages go by UD; if not, the other members are unused
 * @has_qkey: the caller has given @qkey
 * @id: rdma_cm id, RDMA_PS_UDP
 * @qp: UD QP of @id
 * @done: end of the rdma_cm step that is waited for
 * @error: result of that step, 0 or -errno
 * @told: @ah_attr and @qpn are valid; set once by rdma_cm's handler
 * @ah_attr: attributes of the path to the responder
 * @ah: address handle made from @ah_attr
 * @qpn: number of the responder's UD QP
 * @qkey: Q_Key that messages carry
 * @mtu: bytes of the longest message
 * @given_up: messages whose receives were not reported for long, so taken for lost;
 *	changed under the lane's lock
 * @starved_ns: time when the run that has the lane began to wait for receives, with no more
 *	reported than @starved_at; or 0
 * @starved_at: messages that the responder had reported at @starved_ns
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
 * struct kxfer_dedicated - a dedicated connection, in addition to its link
 * @id: id within its session
 * @link: link with one lane; owns this struct
 * @length: bytes of memory wanted at the responder
 * @writable: the run may also WRITE that memory
 * @op: enum kxfer_op: operation besides READ and WRITE
 * @imm: @op is with immediate
 * @answered: the responder answers messages
 * @pooled: the CQ is one of the RDMA core's pool
 * @receives: messages: receives that the responder keeps posted; 0: no messages
 * @slots: messages: places at the responder, used in turn
 * @bytes: messages: length of one
 * @remote: the responder's memory; set before the link is LIVE
 * @refusal: errno with which the responder refused
 * @status: messages: sink of READs of the responder's status
 * @status_dma: DMA address of @status
 * @status_mr: iWARP: MR that names the sink
 * @status_cqe: completion entry of these READs
 * @sent: messages posted; @sent to @nr_read change under the lane's lock
 * @received: messages whose receives the responder has reported as posted again
 * @wrong: messages of @received that the responder has reported as not the expected ones
 * @reading: a READ of the status is under way
 * @nr_asked: READs of the status posted
 * @nr_read: READs of the status completed; also read without the lock
 * @answers: state of the responder's answers, or NULL; see dedicated_answers.c
 * @ud: state of UD, if messages go by UD
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

/* The dedicated connection of @link, whose @ops are those of dedicated.c. */
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

// SPDX-License-Identifier: GPL-2.0
/*
 * Dedicated connections: a session's own QP and PD, connected to a responder of user-space
 * verbs. The CQ is the session's own, or a share of one of the RDMA core's pool (cq_pool.c).
 * Work requests of a run (KXFER_BENCH) map one to one on verbs.
 *
 * Such a connection is a link (link.c) with one data lane, of index 1. It has no control QP
 * and no channel, and its own hooks (link_ops.h). So the QP carries only a run, READs of
 * the responder's status, and RECVs of its answers, which have no memory
 * (dedicated_answers.c). No job uses it, because targets are opened by a control QP. The
 * link is never shared: kxfer_link_get() skips it. Its private data is that of responder.h.
 * rkey and address of the responder's memory stay in the kernel.
 *
 * The link ends like any other, and the proof at the head of link.c holds. connect_thread
 * brings it up. Device removal, a broken connection, DEDICATED_CLOSE, the end of the session
 * and that of the module fail it. Its teardown closes the lane (lane.c) before it lets the
 * device go. This is added to the proof:
 *  - The struct lives while a run counts itself as a job of the link: DEDICATED_CLOSE
 *    returns EBUSY then, and the file cannot be closed during a call. The session has a
 *    reference to the link, which owns the struct.
 *  - The sink of the status READs is unmapped, and its MR deregistered, after the lane's QP
 *    is destroyed (kxfer_dedicated_drop_status()). Its memory is freed with the link.
 *  - Answers to messages: see dedicated_answers.c.
 *  - The waiter for a status READ wakes when the link is DEAD. So it does not matter that
 *    siw may leave the READ without completion.
 *  - The UD objects end before the CQ does; the proof is in dedicated_ud.c.
 *  - A CQ of the pool is not freed, but holds no completion of the lane any more (cq_pool.c).
 *  - A responder that answers nothing during a run loses the link as a peer with jobs
 *    does (kxfer_lane_stuck()). One that answers but posts no RECVs holds up a run until
 *    its time limit. One that answers little loses the link some time after that (run.c).
 *
 * Context: the calls may sleep. rdma_cm's handler calls answered() and rejected(), which do
 * not sleep.
 */
#include "base/log.h"

#include <linux/capability.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "base/fault.h"
#include "bench/dedicated.h"
#include "bench/run.h"
#include "job/job.h"
#include "job/peer.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "node/charge.h"
#include "node/device.h"
#include "node/session.h"

/* ---- the protocol ---- */

static enum kxfer_responder_op responder_op(const struct kxfer_dedicated *dedicated)
{
	switch (dedicated->op) {
	case KXFER_OP_WRITE:
		return KXFER_RESPONDER_WRITE_IMM;
	case KXFER_OP_SEND:
		return dedicated->imm ? KXFER_RESPONDER_SEND_IMM : KXFER_RESPONDER_SEND;
	case KXFER_OP_COMPARE_SWAP:
		return KXFER_RESPONDER_COMPARE_SWAP;
	case KXFER_OP_FETCH_ADD:
		return KXFER_RESPONDER_FETCH_ADD;
	default:
		return KXFER_RESPONDER_READ;
	}
}

static u8 introduce(struct kxfer_link *link, void *data)
{
	const struct kxfer_dedicated *dedicated = link->context;
	struct kxfer_responder_request *request = data;

	static_assert(sizeof(*request) <= KXFER_INTRODUCTION_MAX);
	*request = (struct kxfer_responder_request) {
		.magic = cpu_to_be32(KXFER_RESPONDER_MAGIC),
		.version = cpu_to_be16(KXFER_RESPONDER_VERSION),
		.writable = cpu_to_be16(dedicated->writable),
		.length = cpu_to_be64(dedicated->length),
		.op = cpu_to_be16(responder_op(dedicated) |
				  (dedicated->answered ? KXFER_RESPONDER_ANSWERED : 0)),
		.transport = cpu_to_be16(dedicated->ud.wanted ? KXFER_RESPONDER_UD :
					 KXFER_RESPONDER_RC),
		.receives = cpu_to_be32(dedicated->receives),
		.slots = cpu_to_be32(dedicated->slots),
		.bytes = cpu_to_be32(dedicated->bytes),
	};
	return sizeof(*request);
}

/* @data may be longer than the private data that was sent. Return: the answer or NULL */
static const struct kxfer_responder_answer *answer_in(const void *data, u8 length)
{
	const struct kxfer_responder_answer *answer = data;
	u16 version;

	if (!data || length < sizeof(*answer) ||
	    answer->magic != cpu_to_be32(KXFER_RESPONDER_MAGIC))
		return NULL;
	version = be16_to_cpu(answer->version);
	return version >= KXFER_RESPONDER_VERSION_MIN && version <= KXFER_RESPONDER_VERSION ?
	       answer : NULL;
}

/* Return: 0, or -EPROTO: not a valid answer, or less memory than was asked for. */
static int answered(struct kxfer_link *link, const void *data, u8 length)
{
	struct kxfer_dedicated *dedicated = link->context;
	const struct kxfer_responder_answer *answer = answer_in(data, length);
	u64 address, bytes, end;

	if (!answer || answer->error)
		return -EPROTO;
	address = be64_to_cpu(answer->address);
	bytes = be64_to_cpu(answer->length);
	if (bytes < dedicated->length || bytes > KXFER_DEDICATED_MAX_BYTES ||
	    check_add_overflow(address, bytes + sizeof(struct kxfer_responder_status), &end))
		return -EPROTO;
	dedicated->remote = (struct kxfer_extent) {
		.addr = address,
		.length = bytes,
		.key = be32_to_cpu(answer->rkey),
	};
	return 0;
}

/**
 * kxfer_dedicated_refused() - handle a refusal of the connection, or of the UD look-up
 * @dedicated: connection that is connecting
 * @data: private data, or NULL
 * @length: bytes of @data
 *
 * Return: -EREMOTEIO: a responder refused, with @refusal; -ECONNREFUSED: no responder did.
 */
int kxfer_dedicated_refused(struct kxfer_dedicated *dedicated, const void *data, u8 length)
{
	const struct kxfer_responder_answer *answer = answer_in(data, length);
	u32 error = answer ? be32_to_cpu(answer->error) : 0;

	if (!error || error > MAX_ERRNO)
		return -ECONNREFUSED;
	WRITE_ONCE(dedicated->refusal, error);
	return -EREMOTEIO;
}

static int rejected(struct kxfer_link *link, const void *data, u8 length)
{
	return kxfer_dedicated_refused(link->context, data, length);
}

/* Refuse what the device cannot do, so it is never posted. Return: 0 or -EOPNOTSUPP. */
static int check_device(struct kxfer_link *link)
{
	const struct kxfer_dedicated *dedicated = link->context;
	const struct kxfer_device *dev = link->dev;

	if (kxfer_op_is_atomic(dedicated->op) && !dev->atomic)
		return -EOPNOTSUPP;
	/* One SGE for the command, one for the message. */
	if (dedicated->answered && dev->ibdev->attrs.max_send_sge < 2)
		return -EOPNOTSUPP;
	if (dedicated->imm && dev->iwarp)
		return -EOPNOTSUPP;
	return kxfer_dedicated_check_ud(dedicated, dev->ibdev);
}

/* ---- the link and its lane ---- */

static void init_link(struct kxfer_link *link)
{
	kxfer_dedicated_of(link)->link = link;
}

static void free_dedicated(struct kxfer_dedicated *dedicated)
{
	kxfer_dedicated_free_answers(dedicated);
	kfree(dedicated->status);
	kfree(dedicated);
}

/* @context is NULL if the link was not published: the caller still owns the connection. */
static void free_link(struct kxfer_link *link)
{
	if (link->context)
		free_dedicated(link->context);
}

/* One extra send for READs of the status. A UD QP (@twin) has as many credits as the lane. */
static void size_lane(const struct kxfer_lane *lane, struct kxfer_lane_size *size)
{
	const struct kxfer_dedicated *dedicated = lane->link->context;

	size->credits = KXFER_LANE_JOB_WRS;
	size->sends = 1;
	size->recvs = kxfer_dedicated_recvs(dedicated);
	size->twin = dedicated->ud.wanted;
	size->pooled = dedicated->pooled;
}

static int connected(struct kxfer_lane *lane)
{
	return kxfer_dedicated_make_status(lane) ?: kxfer_dedicated_make_answers(lane) ?:
	       kxfer_dedicated_make_ud(lane);
}

static void closed(struct kxfer_lane *lane)
{
	kxfer_dedicated_drop_status(lane);
	kxfer_dedicated_drop_answers(lane);
}

static const struct kxfer_link_ops link_ops = {
	.owner		= THIS_MODULE,
	.single		= true,
	.init		= init_link,
	.free		= free_link,
	.size		= size_lane,
	.check_device	= check_device,
	.introduce	= introduce,
	.welcomed	= answered,
	.rejected	= rejected,
	.connected	= connected,
	.stuck		= kxfer_lane_stuck,
	.drained	= kxfer_dedicated_drop_ud,
	.closed		= closed,
};

/* ---- one user at a time ---- */

/** kxfer_dedicated_lane() - the lane of a connection whose link is or was LIVE */
struct kxfer_lane *kxfer_dedicated_lane(const struct kxfer_dedicated *dedicated)
{
	return dedicated->link->data[0];
}

/**
 * kxfer_dedicated_take() - take the lane exclusively, with all its credits
 * @dedicated: connection; the caller counts as a job of its link
 * @run: run that answers go to, or NULL
 *
 * Return: 0, -EBUSY: the lane is taken, or the error of a link that is going down.
 */
int kxfer_dedicated_take(struct kxfer_dedicated *dedicated, struct kxfer_run *run)
{
	struct kxfer_lane *lane = kxfer_dedicated_lane(dedicated);
	int ret = 0;

	spin_lock_bh(&lane->lock);
	if (!lane->open || !kxfer_link_is_live(lane->link))
		ret = kxfer_link_job_error(lane->link);
	else if (!kxfer_credits_take(&lane->credits, lane->credits.max))
		ret = -EBUSY;
	else
		kxfer_run_have_lane_locked(lane);
	if (!ret)
		kxfer_dedicated_answer_to_locked(dedicated, run);
	spin_unlock_bh(&lane->lock);
	return ret;
}

/** kxfer_dedicated_give() - give the lane back; only status READs may still be under way */
void kxfer_dedicated_give(struct kxfer_dedicated *dedicated)
{
	struct kxfer_lane *lane = kxfer_dedicated_lane(dedicated);

	spin_lock_bh(&lane->lock);
	kxfer_run_leave_lane_locked(lane);
	kxfer_dedicated_answer_to_locked(dedicated, NULL);
	WARN_ON_ONCE(!kxfer_credits_give(&lane->credits, lane->credits.max));
	spin_unlock_bh(&lane->lock);
}

/* ---- the calls ---- */

static bool is_message(const struct kxfer_dedicated_open *cmd)
{
	return cmd->op == KXFER_OP_SEND || cmd->flags & KXFER_DEDICATED_F_IMM;
}

static int check_op(const struct kxfer_dedicated_open *cmd)
{
	bool imm = cmd->flags & KXFER_DEDICATED_F_IMM;

	if (cmd->flags & KXFER_DEDICATED_F_ANSWERED && (imm || cmd->op != KXFER_OP_SEND))
		return -EINVAL;
	switch (cmd->op) {
	case KXFER_OP_SEND:
		return 0;
	case KXFER_OP_READ:
	case KXFER_OP_COMPARE_SWAP:
	case KXFER_OP_FETCH_ADD:
		return imm ? -EINVAL : 0;
	case KXFER_OP_WRITE:
		return imm && cmd->flags & KXFER_DEDICATED_F_WRITE ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

static int check_transport(const struct kxfer_dedicated_open *cmd)
{
	bool ud = cmd->transport == KXFER_TRANSPORT_UD;

	if (cmd->__reserved ||
	    (ud && (cmd->op != KXFER_OP_SEND || cmd->flags & KXFER_DEDICATED_F_ANSWERED)))
		return -EINVAL;
	if (cmd->flags & KXFER_DEDICATED_F_QKEY)
		return ud ? 0 : -EINVAL;
	return cmd->qkey ? -EINVAL : 0;
}

static int check_messages(const struct kxfer_dedicated_open *cmd)
{
	u64 stride = ALIGN((u64)cmd->bytes, KXFER_RESPONDER_PAGE);

	if (!is_message(cmd))
		return cmd->receives || cmd->slots || cmd->bytes ? -EINVAL : 0;
	if (!cmd->receives || cmd->receives > KXFER_DEDICATED_MAX_RECEIVES ||
	    !cmd->slots || cmd->slots > KXFER_DEDICATED_MAX_SLOTS || !cmd->bytes)
		return -EINVAL;
	return cmd->slots * stride > cmd->length ? -ERANGE : 0;
}

static int check_addresses(const struct kxfer_dedicated_open *cmd)
{
	if (kxfer_addr_check(&cmd->remote) || !cmd->remote.port || cmd->local.port ||
	    strnlen((const char *)cmd->device, sizeof(cmd->device)) == sizeof(cmd->device))
		return -EINVAL;
	if (!cmd->local.family)
		return memchr_inv(&cmd->local, 0, sizeof(cmd->local)) ? -EINVAL : 0;
	return kxfer_addr_check(&cmd->local) || cmd->local.family != cmd->remote.family ?
	       -EINVAL : 0;
}

static int check_open(const struct kxfer_dedicated_open *cmd)
{
	if (cmd->flags & ~(KXFER_DEDICATED_F_WRITE | KXFER_DEDICATED_F_IMM |
			   KXFER_DEDICATED_F_ANSWERED | KXFER_DEDICATED_F_QKEY |
			   KXFER_DEDICATED_F_CQ_POOL) ||
	    cmd->context > KXFER_CONTEXT_DIRECT || cmd->transport > KXFER_TRANSPORT_UD)
		return -EOPNOTSUPP;
	if (!cmd->timeout_ms || cmd->timeout_ms > KXFER_TIMEOUT_MAX_MS ||
	    !cmd->length || cmd->length > KXFER_DEDICATED_MAX_BYTES)
		return -EINVAL;
	/* A session cannot poll a CQ that the core polls. */
	if (cmd->flags & KXFER_DEDICATED_F_CQ_POOL &&
	    (cmd->context == KXFER_CONTEXT_POLLED || cmd->context == KXFER_CONTEXT_DIRECT))
		return -EINVAL;
	return check_addresses(cmd) ?: check_op(cmd) ?: check_transport(cmd) ?:
	       check_messages(cmd);
}

static struct kxfer_dedicated *dedicated_alloc(const struct kxfer_dedicated_open *cmd)
{
	struct kxfer_dedicated *dedicated;

	dedicated = kxfer_try_alloc(DEDICATED, kzalloc_obj(*dedicated, GFP_KERNEL_ACCOUNT));
	if (!dedicated)
		return NULL;
	dedicated->length = cmd->length;
	dedicated->writable = cmd->flags & KXFER_DEDICATED_F_WRITE;
	dedicated->op = cmd->op;
	dedicated->imm = cmd->flags & KXFER_DEDICATED_F_IMM;
	dedicated->answered = cmd->flags & KXFER_DEDICATED_F_ANSWERED;
	dedicated->pooled = cmd->flags & KXFER_DEDICATED_F_CQ_POOL;
	dedicated->receives = cmd->receives;
	dedicated->slots = cmd->slots;
	dedicated->bytes = cmd->bytes;
	dedicated->ud.wanted = cmd->transport == KXFER_TRANSPORT_UD;
	dedicated->ud.has_qkey = cmd->flags & KXFER_DEDICATED_F_QKEY;
	dedicated->ud.qkey = cmd->qkey;
	init_completion(&dedicated->ud.done);
	return dedicated;
}

/* Return: connecting link with one user, which owns the new connection; or ERR_PTR */
static struct kxfer_link *start(struct kxfer_session *session,
				const struct kxfer_dedicated_open *cmd)
{
	struct kxfer_dedicated *dedicated = dedicated_alloc(cmd);
	struct kxfer_link_key key = {
		.net = session->net,
		.remote = cmd->remote,
		.local = cmd->local,
		.context = cmd->context,
	};
	struct kxfer_link *link;

	if (!dedicated)
		return ERR_PTR(-ENOMEM);
	strscpy_pad((char *)key.device, (const char *)cmd->device, sizeof(key.device));
	link = kxfer_link_dedicate(&key, session->user, &link_ops, dedicated);
	if (IS_ERR(link))
		free_dedicated(dedicated);
	return link;
}

/* No call can find the connection. When this returns nothing of it is on the device. */
static void end(struct kxfer_link *link)
{
	kxfer_delay(DEDICATED_END);
	kxfer_link_fail(link, -ESHUTDOWN);
	wait_event(link->wait, kxfer_link_is_dead(link));
	kxfer_link_unuse(link);
}

/* Another thread may close a connection in the table, so copy its id under the lock. */
static int publish(struct kxfer_session *session, struct kxfer_dedicated *dedicated,
		   struct kxfer_dedicated_open *cmd)
{
	int ret;

	down_write(&session->lock);
	ret = kxfer_table_insert(&session->engine_objects, dedicated, &dedicated->id,
				 KXFER_MAX_DEDICATED);
	cmd->dedicated = dedicated->id;
	up_write(&session->lock);
	return ret;
}

/** kxfer_dedicated_open() - KXFER_DEDICATED_OPEN */
int kxfer_dedicated_open(struct kxfer_session *session, void *arg)
{
	struct kxfer_dedicated_open *cmd = arg;
	struct kxfer_dedicated *dedicated;
	struct kxfer_link *link;
	int ret;

	cmd->refusal = 0;
	cmd->mtu = 0;
	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	ret = check_open(cmd);
	if (ret)
		return ret;
	link = start(session, cmd);
	if (IS_ERR(link))
		return PTR_ERR(link);
	dedicated = kxfer_dedicated_of(link);
	ret = kxfer_link_wait_live(link, cmd->timeout_ms);
	cmd->refusal = READ_ONCE(dedicated->refusal);
	cmd->mtu = READ_ONCE(dedicated->ud.mtu);
	cmd->link = link->id;
	ret = ret ?: kxfer_charge_handle(&session->charges, link->dev) ?:
	      publish(session, dedicated, cmd);
	if (ret)
		end(link);
	return ret;
}

/** kxfer_dedicated_close() - KXFER_DEDICATED_CLOSE */
int kxfer_dedicated_close(struct kxfer_session *session, void *arg)
{
	struct kxfer_id *cmd = arg;
	struct kxfer_dedicated *dedicated;
	int ret = 0;

	down_write(&session->lock);
	dedicated = xa_load(&session->engine_objects, cmd->id);
	if (!dedicated)
		ret = -ENOENT;
	else if (atomic_read(&dedicated->link->nr_calls))
		ret = -EBUSY;
	else
		xa_erase(&session->engine_objects, cmd->id);
	up_write(&session->lock);
	if (!ret)
		end(dedicated->link);
	return ret;
}

/** kxfer_dedicated_end_session() - end all connections; no call of the session is under way */
void kxfer_dedicated_end_session(struct kxfer_session *session)
{
	struct kxfer_dedicated *dedicated;
	unsigned long id;

	/* Fail all links first: then they end in parallel. */
	xa_for_each(&session->engine_objects, id, dedicated)
		kxfer_link_fail(dedicated->link, -ESHUTDOWN);
	xa_for_each(&session->engine_objects, id, dedicated)
		end(dedicated->link);
}

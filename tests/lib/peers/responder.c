// SPDX-License-Identifier: GPL-2.0
/*
 * A responder of user-space verbs; see responder.h.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/responder.h"

#define PAGE		KXFER_RESPONDER_PAGE
#define LOOK_MS		1	/* time between two polls of the CQ */
#define GRH_BYTES	40	/* header before each UD message */
#define GRH_OFFSET	64	/* its offset, after the status */

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* ---- messages ---- */

static bool answers(const struct responder *responder)
{
	return be16toh(responder->request.op) & KXFER_RESPONDER_ANSWERED;
}

static uint32_t op_of(const struct responder *responder)
{
	return be16toh(responder->request.op) & ~KXFER_RESPONDER_ANSWERED;
}

/* The command of message or receive n. */
static struct kxfer_responder_command *command_of(struct responder *responder, uint64_t n)
{
	return &responder->commands[n % be32toh(responder->request.receives)];
}

static int post_receive(struct responder *responder)
{
	uint32_t slots = be32toh(responder->request.slots);
	uint32_t bytes = be32toh(responder->request.bytes);
	uint64_t slot = responder->posted % slots;
	struct ibv_sge sge[] = { {
		.addr = (uintptr_t)responder->memory + responder->length + GRH_OFFSET,
		.length = GRH_BYTES,
		.lkey = responder->mr->lkey,
	}, {
		.addr = (uintptr_t)responder->memory + slot * round_up(bytes),
		.length = bytes,
		.lkey = responder->mr->lkey,
	} };
	bool lands = op_of(responder) != KXFER_RESPONDER_WRITE_IMM;
	struct ibv_recv_wr wr = { .sg_list = &sge[1], .num_sge = lands }, *bad;

	if (answers(responder))
		sge[0] = (struct ibv_sge) {
			.addr = (uintptr_t)command_of(responder, responder->posted),
			.length = sizeof(*responder->commands),
			.lkey = responder->mr->lkey,
		};
	if (answers(responder) || responder->datagrams) {
		wr.sg_list = sge;
		wr.num_sge++;
	}
	responder->posted++;
	if (!responder->datagrams)
		return ibv_post_recv(responder->id->qp, &wr, &bad) ? -EIO : 0;
	return ibv_post_recv(responder->datagrams, &wr, &bad) ? -EIO : 0;
}

/* Bytes before the payload of a message. */
static uint32_t in_front_of(const struct responder *responder)
{
	if (responder->datagrams)
		return GRH_BYTES;
	return answers(responder) ? sizeof(responder->command) : 0;
}

static bool is_right(const struct responder *responder, const struct ibv_wc *wc)
{
	uint32_t expected = (uint32_t)responder->received ^ KXFER_RESPONDER_IMMEDIATE;
	bool imm = wc->wc_flags & IBV_WC_WITH_IMM;

	if (answers(responder) &&
	    be32toh(responder->command.number) != (uint32_t)responder->received)
		return false;
	return wc->byte_len == in_front_of(responder) + be32toh(responder->request.bytes) &&
	       imm == (op_of(responder) != KXFER_RESPONDER_SEND) &&
	       (!imm || be32toh(wc->imm_data) == expected);
}

static void publish(struct responder *responder)
{
	struct kxfer_responder_status *status =
		(void *)(responder->memory + responder->length);

	__atomic_store_n(&status->wrong, htobe64(responder->wrong), __ATOMIC_RELEASE);
	__atomic_store_n(&status->received,
			 htobe64(responder->received + responder->manners.invents),
			 __ATOMIC_RELEASE);
}

static void post_answer(struct responder *responder, uint32_t rkey, bool invalidates)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)responder->memory,
		.length = 1,
		.lkey = responder->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = responder->manners.wordy,
		.opcode = invalidates ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND,
		.invalidate_rkey = rkey,
		.wr.rdma.rkey = rkey,	/* libsiw takes the key from here */
	}, *bad;

	ibv_post_send(responder->id->qp, &wr, &bad);
}

static void answer(struct responder *responder)
{
	uint32_t rkey = be32toh(responder->command.rkey) - responder->manners.other;

	if (!answers(responder) || responder->manners.mute)
		return;
	if (responder->manners.swaps && responder->received % 2) {
		responder->held = rkey;
		return;
	}
	post_answer(responder, rkey, !responder->manners.plain);
	if (responder->manners.twice)
		post_answer(responder, rkey, false);
	if (responder->manners.swaps)
		post_answer(responder, responder->held, true);
}

static bool rests(const struct responder *responder)
{
	return responder->manners.rest_ms && kx_now_ns() < responder->rests_until_ns;
}

static void take_messages(struct responder *responder)
{
	struct ibv_wc wc;

	while (responder->cq && !rests(responder) && ibv_poll_cq(responder->cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			return;
		if (!(wc.opcode & IBV_WC_RECV))
			continue;
		if (answers(responder))
			responder->command = *command_of(responder, responder->received);
		responder->wrong += !is_right(responder, &wc);
		responder->received++;
		responder->rests_until_ns = kx_now_ns() + responder->manners.rest_ms * 1000000ULL;
		if (responder->manners.lazy)
			continue;
		if (!post_receive(responder))
			publish(responder);
		answer(responder);
	}
}

/* ---- the connection ---- */

static void drop(struct responder *responder)
{
	if (responder->datagrams)
		ibv_destroy_qp(responder->datagrams);
	if (responder->id && responder->id->qp)
		rdma_destroy_qp(responder->id);
	if (responder->mr)
		ibv_dereg_mr(responder->mr);
	if (responder->cq)
		ibv_destroy_cq(responder->cq);
	if (responder->pd)
		ibv_dealloc_pd(responder->pd);
	if (responder->id)
		rdma_destroy_id(responder->id);
	free(responder->memory);
	responder->datagrams = NULL;
	responder->mr = NULL;
	responder->cq = NULL;
	responder->pd = NULL;
	responder->id = NULL;
	responder->memory = NULL;
}

/* Brings the QP to RTR, with the Q_Key that rdma_cm uses for IP addresses. */
static int prepare_datagrams(struct responder *responder, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_attr change = {
		.qp_state = IBV_QPS_INIT,
		.port_num = responder->id->port_num,
		.qkey = RDMA_UDP_QKEY,
	};

	if (be16toh(responder->request.transport) != KXFER_RESPONDER_UD)
		return 0;
	attr->qp_type = IBV_QPT_UD;
	attr->cap.max_recv_sge = 2;
	responder->datagrams = ibv_create_qp(responder->pd, attr);
	if (!responder->datagrams ||
	    ibv_modify_qp(responder->datagrams, &change,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return -EIO;
	change.qp_state = IBV_QPS_RTR;
	return ibv_modify_qp(responder->datagrams, &change, IBV_QP_STATE) ? -EIO : 0;
}

static int prepare(struct responder *responder)
{
	uint32_t receives = be32toh(responder->request.receives), i;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2 * receives + 1, .max_recv_wr = receives + 1,
			 .max_send_sge = 1, .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	uint64_t bytes;

	responder->length = round_up(be64toh(responder->request.length));
	bytes = responder->length + PAGE + round_up(receives * sizeof(*responder->commands));
	responder->memory = aligned_alloc(PAGE, bytes);
	responder->pd = ibv_alloc_pd(responder->id->verbs);
	responder->cq = ibv_create_cq(responder->id->verbs, 3 * receives + 2, NULL, NULL, 0);
	if (!responder->memory || !responder->pd || !responder->cq)
		return -ENOMEM;
	memset(responder->memory, 0, bytes);
	responder->commands = (void *)(responder->memory + responder->length + PAGE);
	responder->mr = ibv_reg_mr(responder->pd, responder->memory, bytes,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   (kx_has_atomics() ? IBV_ACCESS_REMOTE_ATOMIC : 0));
	attr.send_cq = responder->cq;
	attr.recv_cq = responder->cq;
	if (!responder->mr || rdma_create_qp(responder->id, responder->pd, &attr) ||
	    prepare_datagrams(responder, &attr))
		return -EIO;
	responder->posted = 0;
	responder->received = 0;
	responder->wrong = 0;
	publish(responder);
	for (i = 0; i < receives; i++)
		if (post_receive(responder))
			return -EIO;
	return 0;
}

static struct kxfer_responder_answer answer_of(const struct responder *responder)
{
	const struct responder_manners *manners = &responder->manners;
	uint64_t address = (uintptr_t)responder->memory;

	return (struct kxfer_responder_answer) {
		.magic = htobe32(manners->foreign ? 1 : KXFER_RESPONDER_MAGIC),
		.version = manners->version ? htobe16(manners->version) :
			   responder->request.version,
		.error = htobe32(manners->refusal),
		.rkey = htobe32(responder->mr ? responder->mr->rkey : 0),
		.address = htobe64(manners->wraps ? -responder->length : address),
		.length = htobe64(responder->length - manners->short_by),
	};
}

static void accept_or_refuse(struct responder *responder, struct rdma_cm_event *event)
{
	struct kxfer_responder_answer answer;
	struct rdma_conn_param param = event->param.conn;
	struct rdma_cm_id *id = event->id;
	bool sound = param.private_data_len >= sizeof(responder->request);

	if (sound)
		memcpy(&responder->request, param.private_data, sizeof(responder->request));
	param.private_data = &answer;
	param.private_data_len = sizeof(answer);
	rdma_ack_cm_event(event);
	if (responder->id || !sound) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	responder->id = id;
	if (!responder->manners.refusal && !prepare(responder)) {
		answer = answer_of(responder);
		if (!rdma_accept(id, &param))
			return;
	}
	answer = answer_of(responder);
	rdma_reject(id, &answer, sizeof(answer));
	drop(responder);
}

/* Answers with the UD QP, if it belongs to the connection. */
static void tell_or_refuse(struct responder *responder, struct rdma_cm_event *event)
{
	struct kxfer_responder_answer answer = answer_of(responder);
	struct rdma_ud_param asked = event->param.ud;
	struct kxfer_responder_lookup lookup = {};
	struct rdma_conn_param param = {};
	struct rdma_cm_id *id = event->id;

	if (asked.private_data_len >= sizeof(lookup))
		memcpy(&lookup, asked.private_data, sizeof(lookup));
	rdma_ack_cm_event(event);
	if (responder->manners.silent && !responder->unanswered) {
		responder->unanswered = id;
		return;
	}
	answer.error = htobe32(responder->manners.lookup_refusal);
	if (responder->datagrams && !responder->manners.lookup_refusal &&
	    be32toh(lookup.magic) == KXFER_RESPONDER_MAGIC &&
	    be32toh(lookup.rkey) == responder->mr->rkey) {
		param.qp_num = responder->datagrams->qp_num;
		rdma_accept(id, &param);
	} else {
		rdma_reject(id, &answer, sizeof(answer));
	}
	rdma_destroy_id(id);
}

static void handle_event(struct responder *responder)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(responder->events, &event))
		return;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST &&
	    event->listen_id == responder->lookups) {
		tell_or_refuse(responder, event);
	} else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		accept_or_refuse(responder, event);
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED ||
		   event->id != responder->id) {
		rdma_ack_cm_event(event);
	} else {
		rdma_ack_cm_event(event);
		drop(responder);
	}
}

static void *serve(void *context)
{
	struct responder *responder = context;
	struct pollfd poll_fd = { .fd = responder->events->fd, .events = POLLIN };

	while (!responder->stop) {
		if (poll(&poll_fd, 1, LOOK_MS) == 1)
			handle_event(responder);
		take_messages(responder);
	}
	drop(responder);
	return NULL;
}

static int listen_on(struct responder *responder)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	inet_pton(AF_INET, kx_address(), &sin.sin_addr);
	if (rdma_create_id(responder->events, &responder->listener, NULL, RDMA_PS_TCP))
		return -errno;
	if (rdma_bind_addr(responder->listener, (struct sockaddr *)&sin) ||
	    rdma_listen(responder->listener, 4))
		return -errno;
	responder->port = ntohs(rdma_get_src_port(responder->listener));
	/* iWARP has no UD, and a second listener would conflict with its port. */
	if (responder->manners.no_lookups || !strncmp(kx_provider(), "siw", 3))
		return 0;
	sin.sin_port = htons(responder->port);
	if (rdma_create_id(responder->events, &responder->lookups, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(responder->lookups, (struct sockaddr *)&sin) ||
	    rdma_listen(responder->lookups, 4))
		return -errno;
	return 0;
}

int responder_open(struct responder *responder, const struct responder_manners *manners)
{
	int ret;

	*responder = (struct responder) { .events = rdma_create_event_channel() };
	if (manners)
		responder->manners = *manners;
	if (!responder->events)
		return -errno;
	ret = listen_on(responder);
	return ret ? ret : -pthread_create(&responder->thread, NULL, serve, responder);
}

void responder_close(struct responder *responder)
{
	if (!responder->events)
		return;
	responder->stop = true;
	if (responder->thread)
		pthread_join(responder->thread, NULL);
	if (responder->listener)
		rdma_destroy_id(responder->listener);
	if (responder->unanswered)
		rdma_destroy_id(responder->unanswered);
	if (responder->lookups)
		rdma_destroy_id(responder->lookups);
	rdma_destroy_event_channel(responder->events);
	responder->events = NULL;
}

static void be_responder(int out)
{
	struct responder responder;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (responder_open(&responder, NULL) ||
	    write(out, &responder.port, sizeof(responder.port)) != sizeof(responder.port))
		_exit(1);
	for (;;)
		pause();
}

uint16_t responder_spawn(pid_t *pid)
{
	uint16_t port = 0;
	int ends[2];

	*pid = 0;
	if (pipe(ends))
		return 0;
	*pid = fork();
	if (!*pid)
		be_responder(ends[1]);
	close(ends[1]);
	if (read(ends[0], &port, sizeof(port)) != sizeof(port))
		port = 0;
	close(ends[0]);
	return port;
}

void responder_kill(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

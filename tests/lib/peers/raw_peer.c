// SPDX-License-Identifier: GPL-2.0
/*
 * A peer in user space; see raw_peer.h.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "peers/raw_peer.h"

#define SEND_WRS	16
#define SEND_SLOT	RAW_RECVS	/* offset of the sent message, after the received ones */
#define SOURCE_PORT_MIN	512		/* below the ports that kernels choose */
#define SOURCE_PORT_MAX	660

/* work request ids: RECVs by index, those of raw_push() from WR_PUSH on */
#define WR_SEND		1000
#define WR_NUDGE	1001
#define WR_PUSH		2000

#define NUDGE_MS	250

/* ---- lanes ---- */

static void fill_sockaddr(struct sockaddr_in *sin, uint16_t port)
{
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	inet_pton(AF_INET, kx_address(), &sin->sin_addr);
}

static bool readable(int fd, uint32_t ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) == 1;
}

/* Takes the next event; the caller acknowledges it. */
static struct rdma_cm_event *next_event(struct rdma_event_channel *channel, uint32_t ms)
{
	struct rdma_cm_event *event;

	if (!readable(channel->fd, ms) || rdma_get_cm_event(channel, &event))
		return NULL;
	return event;
}

static void note_refusal(struct raw_lane *lane, const struct rdma_cm_event *event)
{
	const struct kxfer_wire_refusal *refusal = event->param.conn.private_data;

	if (refusal && event->param.conn.private_data_len >= sizeof(*refusal) &&
	    be32toh(refusal->magic) == KXFER_WIRE_MAGIC)
		lane->refusal = be16toh(refusal->reason);
}

static void note_welcome(struct raw_lane *lane, const struct rdma_cm_event *event)
{
	uint32_t length = event->param.conn.private_data_len;

	if (!event->param.conn.private_data)
		return;
	lane->welcome_bytes = length < sizeof(lane->welcome) ? length : sizeof(lane->welcome);
	memcpy(&lane->welcome, event->param.conn.private_data, lane->welcome_bytes);
	if (length >= sizeof(lane->welcome.welcome))
		lane->version = be16toh(lane->welcome.welcome.version);
}

static int wait_event(struct raw_lane *lane, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event = next_event(lane->events, RAW_MS);
	int ret;

	if (!event)
		return -ETIMEDOUT;
	if (event->event == wanted) {
		ret = 0;
		if (wanted == RDMA_CM_EVENT_ESTABLISHED)
			note_welcome(lane, event);
	} else if (event->event == RDMA_CM_EVENT_REJECTED) {
		note_refusal(lane, event);
		ret = -ECONNREFUSED;
	} else {
		ret = -EIO;
	}
	rdma_ack_cm_event(event);
	return ret;
}

static int post_receive(struct raw_lane *lane, uint32_t index)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)lane->memory + index * RAW_BYTES,
		.length = RAW_BYTES,
		.lkey = lane->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(lane->id->qp, &wr, &bad) ? -EIO : 0;
}

/* Makes QP, CQ and RECVs for an id that has a device. */
static int make_qp(struct raw_lane *lane, bool no_receives)
{
	size_t bytes = (RAW_RECVS + 2) * RAW_BYTES + RAW_PUSHES * RAW_PUSH_BYTES;
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = SEND_WRS + RAW_PUSHES,
			.max_recv_wr = RAW_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	uint32_t i;
	int ret = 0;

	lane->memory = aligned_alloc(4096, bytes);
	lane->cq = ibv_create_cq(lane->id->verbs, SEND_WRS + RAW_PUSHES + RAW_RECVS, NULL,
				 NULL, 0);
	if (!lane->memory || !lane->cq)
		return -ENOMEM;
	memset(lane->memory, 0, bytes);
	/* Remotely writable, because the sink of an iWARP READ has to be. */
	lane->mr = ibv_reg_mr(lane->pd, lane->memory, bytes, IBV_ACCESS_LOCAL_WRITE |
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!lane->mr)
		return -EIO;
	attr.send_cq = lane->cq;
	attr.recv_cq = lane->cq;
	if (rdma_create_qp(lane->id, lane->pd, &attr))
		return -EIO;
	lane->sparing = no_receives;
	for (i = 0; !ret && !no_receives && i < RAW_RECVS; i++)
		ret = post_receive(lane, i);
	return ret;
}

static int resolve(struct raw_lane *lane, uint16_t port, uint16_t source_port)
{
	struct sockaddr_in from, to;
	int ret;

	fill_sockaddr(&from, source_port);
	fill_sockaddr(&to, port);
	if (rdma_bind_addr(lane->id, (struct sockaddr *)&from))
		return -errno;
	if (rdma_resolve_addr(lane->id, NULL, (struct sockaddr *)&to, RAW_MS))
		return -errno;
	ret = wait_event(lane, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (ret)
		return ret;
	if (rdma_resolve_route(lane->id, RAW_MS))
		return -errno;
	return wait_event(lane, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

struct kxfer_wire_hello raw_hello_data(enum kxfer_wire_kind kind, const uint8_t *cookie,
				       uint64_t epoch)
{
	struct kxfer_wire_hello hello = {
		.magic = htobe32(KXFER_WIRE_MAGIC),
		.version_min = htobe16(KXFER_WIRE_VERSION_MIN),
		.version_max = htobe16(KXFER_WIRE_VERSION_MAX),
		.kind = kind,
		.lane = kind == KXFER_WIRE_CONTROL ? 0 : 1,
		.nr_lanes = htobe16(1),
		.epoch = htobe64(epoch),
	};

	memcpy(hello.cookie, cookie, sizeof(hello.cookie));
	return hello;
}

static int connect_lane(struct raw_lane *lane, uint16_t port, uint16_t source_port,
			const void *hello, uint8_t hello_bytes, struct ibv_pd *pd,
			const struct raw_manners *manners)
{
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = hello_bytes,
		.responder_resources = manners->responder_resources ?: RAW_RD_ATOM,
		.initiator_depth = manners->initiator_depth ?: RAW_RD_ATOM,
		.retry_count = manners->retry_count ?: 7,
		.rnr_retry_count = 7,
	};
	uint8_t ack_timeout = manners->ack_timeout;
	int ret;

	lane->events = rdma_create_event_channel();
	if (!lane->events)
		return -errno;
	if (rdma_create_id(lane->events, &lane->id, NULL, RDMA_PS_TCP))
		return -errno;
	/* Both ends of the connection get it. */
	if (manners->ack_timeout)
		rdma_set_option(lane->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				&ack_timeout, sizeof(ack_timeout));
	ret = resolve(lane, port, source_port);
	if (ret)
		return ret;
	lane->pd = pd ? pd : ibv_alloc_pd(lane->id->verbs);
	if (!lane->pd)
		return -EIO;
	ret = make_qp(lane, manners->no_receives);
	if (ret)
		return ret;
	if (rdma_connect(lane->id, &param))
		return -errno;
	if (manners->leave_early)
		return -ECANCELED;
	ret = wait_event(lane, RDMA_CM_EVENT_ESTABLISHED);
	if (!ret && lane->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		lane->quiet_ns = kx_now_ns();
	return ret;
}

int raw_lane_connect(struct raw_lane *lane, uint16_t port, uint16_t source_port,
		     const void *hello, uint8_t hello_bytes, struct ibv_pd *pd)
{
	static const struct raw_manners well;

	return raw_lane_connect_as(lane, port, source_port, hello, hello_bytes, pd, &well);
}

int raw_lane_connect_as(struct raw_lane *lane, uint16_t port, uint16_t source_port,
			const void *hello, uint8_t hello_bytes, struct ibv_pd *pd,
			const struct raw_manners *manners)
{
	uint32_t refusal;
	int ret;

	memset(lane, 0, sizeof(*lane));
	ret = connect_lane(lane, port, source_port, hello, hello_bytes, pd, manners);
	if (ret) {
		refusal = lane->refusal;
		raw_lane_close(lane);
		lane->refusal = refusal;
	}
	return ret;
}

int raw_lane_receive_one(struct raw_lane *lane)
{
	return post_receive(lane, 0);
}

void raw_lane_close(struct raw_lane *lane)
{
	struct rdma_cm_event *event;

	if (lane->id && lane->id->qp) {
		rdma_disconnect(lane->id);
		rdma_destroy_qp(lane->id);
	}
	if (lane->mr)
		ibv_dereg_mr(lane->mr);
	if (lane->cq)
		ibv_destroy_cq(lane->cq);
	while (lane->events && (event = next_event(lane->events, 0)))
		rdma_ack_cm_event(event);
	if (lane->id)
		rdma_destroy_id(lane->id);
	if (lane->events)
		rdma_destroy_event_channel(lane->events);
	free(lane->memory);
	memset(lane, 0, sizeof(*lane));
}

void raw_lane_drop(struct raw_lane *lane)
{
	if (lane->id && lane->id->qp)
		rdma_destroy_qp(lane->id);
	raw_lane_close(lane);
}

static void lose(struct raw_lane *lane, const char *why)
{
	if (!lane->lost)
		lane->why = why;
	lane->lost = true;
}

static void look_for_disconnection(struct raw_lane *lane)
{
	struct rdma_cm_event *event;

	while (lane->events && (event = next_event(lane->events, 0))) {
		if (event->event == RDMA_CM_EVENT_DISCONNECTED)
			lose(lane, "disconnected");
		rdma_ack_cm_event(event);
	}
}

static void note_completion(struct raw_lane *lane, const struct ibv_wc *wc)
{
	if (lane->quiet_ns)
		lane->quiet_ns = kx_now_ns();
	if (wc->wr_id == WR_SEND) {
		lane->send_status = wc->status;
		lane->send_done = true;
	} else if (wc->wr_id >= WR_PUSH) {
		lane->pushes &= ~(1U << (wc->wr_id - WR_PUSH));
	} else if (wc->status == IBV_WC_SUCCESS) {
		lane->arrived[lane->nr_arrived] = wc->wr_id;
		lane->arrived_bytes[lane->nr_arrived++] = wc->byte_len;
	}
	if (wc->status != IBV_WC_SUCCESS)
		lose(lane, ibv_wc_status_str(wc->status));
}

/* Does the same as the module's kxfer_iwarp_nudge(), for the same defect of siw. */
static void nudge(struct raw_lane *lane)
{
	struct ibv_send_wr wr = { .wr_id = WR_NUDGE, .opcode = IBV_WR_RDMA_WRITE }, *bad;

	if (!lane->quiet_ns || lane->lost ||
	    kx_now_ns() - lane->quiet_ns < NUDGE_MS * 1000000ULL)
		return;
	lane->quiet_ns = kx_now_ns();
	ibv_post_send(lane->id->qp, &wr, &bad);
}

/* Polls completions and events once. */
static void look(struct raw_lane *lane)
{
	struct ibv_wc wc;

	while (lane->cq && ibv_poll_cq(lane->cq, 1, &wc) == 1)
		note_completion(lane, &wc);
	if (lane->events)
		look_for_disconnection(lane);
	nudge(lane);
}

static bool look_until_sent(struct raw_lane *lane)
{
	look(lane);
	return lane->send_done || lane->lost;
}

static bool look_until_arrived(struct raw_lane *lane)
{
	look(lane);
	return lane->nr_arrived || lane->lost;
}

static int post_and_wait(struct raw_lane *lane, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = WR_SEND;
	wr->send_flags = IBV_SEND_SIGNALED;
	lane->send_done = false;
	if (ibv_post_send(lane->id->qp, wr, &bad))
		return -ECONNRESET;
	if (!kx_wait_until(look_until_sent(lane), RAW_MS))
		return -ETIMEDOUT;
	return lane->send_done ? 0 : -ECONNRESET;
}

uint8_t *raw_scratch(struct raw_lane *lane)
{
	return lane->memory + SEND_SLOT * RAW_BYTES;
}

bool raw_look(struct raw_lane *lane)
{
	look(lane);
	return !lane->lost;
}

static bool look_until_room(struct raw_lane *lane)
{
	look(lane);
	return lane->lost || lane->pushes != UINT32_MAX;
}

int raw_push_wr(struct raw_lane *lane, struct ibv_send_wr *wr, const void *bytes,
		uint32_t length)
{
	uint8_t *memory = raw_scratch(lane) + 2 * RAW_BYTES;
	struct ibv_sge sge = { .length = length, .lkey = lane->mr->lkey };
	struct ibv_send_wr *bad;
	int index;

	if (!kx_wait_until(look_until_room(lane), RAW_MS))
		return -ETIMEDOUT;
	if (lane->lost)
		return -ECONNRESET;
	index = __builtin_ctz(~lane->pushes);
	memory += index * RAW_PUSH_BYTES;
	memcpy(memory, bytes, length);
	sge.addr = (uintptr_t)memory;
	wr->wr_id = WR_PUSH + index;
	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(lane->id->qp, wr, &bad)) {
		lane->lost = true;
		return -ECONNRESET;
	}
	lane->pushes |= 1U << index;
	return 0;
}

int raw_push(struct raw_lane *lane, const void *message, uint32_t length)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	return raw_push_wr(lane, &wr, message, length);
}

int raw_send(struct raw_lane *lane, const void *message, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)raw_scratch(lane),
		.length = length,
		.lkey = lane->mr->lkey,
	};
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	int ret;

	memcpy(raw_scratch(lane), message, length);
	ret = post_and_wait(lane, &wr);
	if (!ret && lane->send_status != IBV_WC_SUCCESS)
		ret = -ECONNRESET;
	return ret;
}

int raw_send_two(struct raw_lane *lane, const void *first, uint32_t first_bytes,
		 const void *second, uint32_t second_bytes)
{
	uint8_t *memory = raw_scratch(lane);
	struct ibv_sge sges[2] = {
		{ (uintptr_t)memory, first_bytes, lane->mr->lkey },
		{ (uintptr_t)memory + RAW_BYTES / 2, second_bytes, lane->mr->lkey },
	};
	struct ibv_send_wr last = {
		.wr_id = WR_SEND,
		.sg_list = &sges[1],
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_send_wr wr = {
		.next = &last,
		.sg_list = &sges[0],
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};

	if (first_bytes > RAW_BYTES / 2 || second_bytes > RAW_BYTES / 2)
		return -EMSGSIZE;
	memcpy(memory, first, first_bytes);
	memcpy(memory + RAW_BYTES / 2, second, second_bytes);
	return post_and_wait(lane, &wr);
}

int raw_receive(struct raw_lane *lane, void *message, uint32_t ms)
{
	uint32_t index, length;

	if (!kx_wait_until(look_until_arrived(lane), ms))
		return -ETIMEDOUT;
	if (!lane->nr_arrived)
		return -ECONNRESET;
	index = lane->arrived[0];
	length = lane->arrived_bytes[0];
	lane->nr_arrived--;
	memmove(lane->arrived, lane->arrived + 1, sizeof(*lane->arrived) * lane->nr_arrived);
	memmove(lane->arrived_bytes, lane->arrived_bytes + 1,
		sizeof(*lane->arrived_bytes) * lane->nr_arrived);
	memcpy(message, lane->memory + index * RAW_BYTES, length);
	if (!lane->sparing)
		post_receive(lane, index);
	return length;
}

enum ibv_wc_status raw_rdma(struct raw_lane *lane, enum ibv_wr_opcode opcode,
			    uint64_t addr, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)raw_scratch(lane),
		.length = length,
		.lkey = lane->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};

	if (post_and_wait(lane, &wr))
		return IBV_WC_GENERAL_ERR;
	return lane->send_status;
}

static bool look_until_lost(struct raw_lane *lane)
{
	look(lane);
	/* Received messages are dropped here, to make room. */
	while (lane->nr_arrived && !lane->lost)
		post_receive(lane, lane->arrived[--lane->nr_arrived]);
	return lane->lost;
}

bool raw_dropped(struct raw_lane *lane, uint32_t ms)
{
	return kx_wait_until(look_until_lost(lane), ms);
}

/* ---- initiator ---- */

int raw_link_connect(struct raw_link *link, uint16_t port)
{
	static const struct raw_manners well;

	return raw_link_connect_as(link, port, NULL, 0, &well);
}

int raw_link_connect_as(struct raw_link *link, uint16_t port, const void *hello,
			uint8_t hello_bytes, const struct raw_manners *manners)
{
	static uint16_t next_port = SOURCE_PORT_MIN;
	struct kxfer_wire_hello right;
	int tries, ret = -EADDRINUSE;

	link->port = port;
	if (getrandom(link->cookie, sizeof(link->cookie), 0) != sizeof(link->cookie))
		return -EIO;
	link->epoch = kx_now_ns();
	link->answer_pings = true;
	link->answer_revokes = true;
	right = raw_hello_data(KXFER_WIRE_CONTROL, link->cookie, link->epoch);
	right.nr_lanes = htobe16(manners->nr_lanes ?: 1);
	right.features = htobe32(link->features);
	for (tries = 0; ret == -EADDRINUSE && tries < SOURCE_PORT_MAX - SOURCE_PORT_MIN;
	     tries++) {
		if (++next_port > SOURCE_PORT_MAX)
			next_port = SOURCE_PORT_MIN;
		ret = raw_lane_connect_as(&link->control, port, next_port, hello ?: &right,
					  hello ? hello_bytes : sizeof(right), NULL, manners);
	}
	link->pd = link->control.pd;
	return ret;
}

int raw_link_hello(struct raw_link *link)
{
	return raw_request(link, &link->control, KXFER_WIRE_HELLO, NULL, 0, NULL, NULL);
}

int raw_link_connect_data(struct raw_link *link)
{
	struct kxfer_wire_hello hello =
		raw_hello_data(KXFER_WIRE_DATA, link->cookie, link->epoch);

	return raw_lane_connect(&link->data, link->port, 0, &hello, sizeof(hello), link->pd);
}

int raw_link_open(struct raw_link *link, uint16_t port)
{
	return raw_link_open_with(link, port, 0);
}

int raw_link_open_with(struct raw_link *link, uint16_t port, uint32_t features)
{
	int ret;

	memset(link, 0, sizeof(*link));
	link->features = features;
	ret = raw_link_connect(link, port);
	if (!ret)
		ret = raw_link_hello(link);
	if (!ret)
		ret = raw_link_connect_data(link);
	return ret > 0 ? -EPROTO : ret;
}

void raw_link_close(struct raw_link *link)
{
	raw_lane_close(&link->data);
	raw_lane_close(&link->control);
	if (link->pd)
		ibv_dealloc_pd(link->pd);
	memset(link, 0, sizeof(*link));
}

struct kxfer_wire_header raw_header(uint8_t type, uint8_t slot, uint16_t length,
				    uint64_t sequence)
{
	struct kxfer_wire_header header = {
		.type = type,
		.slot = slot,
		.length = htobe16(length),
		.sequence = htobe64(sequence),
	};

	return header;
}

int raw_post_request(struct raw_lane *lane, struct kxfer_wire_header header,
		     const void *payload, uint32_t payload_bytes)
{
	uint8_t message[RAW_BYTES];

	memcpy(message, &header, sizeof(header));
	if (payload_bytes)
		memcpy(message + sizeof(header), payload, payload_bytes);
	return raw_send(lane, message, sizeof(header) + payload_bytes);
}

/* Answers a request of the module, if its answer is wanted. */
static void answer_module(struct raw_link *link, const struct kxfer_wire_header *request)
{
	struct kxfer_wire_header answer = *request;

	if (request->type == KXFER_WIRE_REVOKE)
		link->nr_revokes++;
	if ((request->type == KXFER_WIRE_PING && !link->answer_pings) ||
	    (request->type == KXFER_WIRE_REVOKE && !link->answer_revokes))
		return;
	answer.type |= KXFER_WIRE_ANSWER;
	answer.length = 0;
	raw_post_request(&link->control, answer, NULL, 0);
}

int raw_await_answer(struct raw_link *link, struct raw_lane *lane,
		     const struct kxfer_wire_header *request, void *answer,
		     uint32_t *answer_bytes)
{
	uint64_t end = kx_deadline_ns(RAW_MS);
	uint8_t message[RAW_BYTES];
	struct kxfer_wire_header *header = (void *)message;
	int ret;

	while (kx_now_ns() < end) {
		ret = raw_receive(lane, message, RAW_MS);
		if (ret < 0)
			return ret;
		if (!(header->type & KXFER_WIRE_ANSWER)) {
			answer_module(link, header);
			continue;
		}
		if (header->type != (request->type | KXFER_WIRE_ANSWER) ||
		    header->sequence != request->sequence || header->slot != request->slot)
			return -EPROTO;
		if (answer && ret - sizeof(*header) > *answer_bytes)
			return -EMSGSIZE;
		if (answer) {
			*answer_bytes = ret - sizeof(*header);
			memcpy(answer, header + 1, *answer_bytes);
		}
		return be16toh(header->status);
	}
	return -ETIMEDOUT;
}

int raw_request(struct raw_link *link, struct raw_lane *lane, uint8_t type,
		const void *payload, uint32_t length, void *answer,
		uint32_t *answer_bytes)
{
	struct kxfer_wire_header request = raw_header(type, 1, length, ++link->sequence);
	int ret = raw_post_request(lane, request, payload, length);

	return ret ?: raw_await_answer(link, lane, &request, answer, answer_bytes);
}

int raw_grant_word(struct raw_link *link, const char *name, uint32_t uid, uint32_t rights,
		   uint64_t word, struct kxfer_wire_grant_answer *grant)
{
	struct kxfer_wire_grant request = {
		.uid = htobe32(uid),
		.gid = htobe32(uid),
		.rights = htobe32(rights),
		.word = htobe64(word),
	};
	uint32_t length = sizeof(*grant);

	strncpy((char *)request.name, name, sizeof(request.name) - 1);
	return raw_request(link, &link->control, KXFER_WIRE_GRANT, &request, sizeof(request),
			   grant, &length);
}

int raw_grant(struct raw_link *link, const char *name, uint32_t uid, uint32_t rights,
	      struct kxfer_wire_grant_answer *grant)
{
	return raw_grant_word(link, name, uid, rights, 0, grant);
}

int raw_keys(struct raw_link *link, uint64_t exposure, struct kxfer_wire_key *keys,
	     uint32_t nr)
{
	struct kxfer_wire_keys request = { .exposure = htobe64(exposure) };
	uint8_t page[RAW_BYTES];
	const struct kxfer_wire_keys_answer *answer = (void *)page;
	uint32_t length = sizeof(page), got;
	int ret = raw_request(link, &link->control, KXFER_WIRE_KEYS, &request,
			      sizeof(request), page, &length);

	if (ret)
		return ret > 0 ? -EREMOTEIO : ret;
	got = be32toh(answer->nr);
	memcpy(keys, answer->keys, sizeof(*keys) * (got < nr ? got : nr));
	return got;
}

int raw_notify(struct raw_link *link, uint64_t grant, uint64_t cookie)
{
	struct kxfer_wire_notify notify = {
		.grant = htobe64(grant),
		.cookie = htobe64(cookie),
	};

	return raw_request(link, &link->data, KXFER_WIRE_NOTIFY, &notify, sizeof(notify),
			   NULL, NULL);
}

void raw_serve(struct raw_link *link, uint32_t ms)
{
	uint64_t end = kx_deadline_ns(ms);
	uint8_t message[RAW_BYTES];

	while (kx_now_ns() < end) {
		int length = raw_receive(&link->control, message, 20);

		if (length == -ECONNRESET)
			return;
		if (length >= (int)sizeof(struct kxfer_wire_header))
			answer_module(link, (void *)message);
	}
}

/* ---- passive side ---- */

void raw_server_init(struct raw_server *server)
{
	memset(server, 0, sizeof(*server));
	server->welcome = (struct kxfer_wire_welcome) {
		.magic = htobe32(KXFER_WIRE_MAGIC),
		.version = htobe16(KXFER_WIRE_VERSION_MAX),
		.nr_lanes = htobe16(1),
	};
	server->welcome_bytes = sizeof(server->welcome);
	server->refusal = (struct kxfer_wire_refusal) {
		.magic = htobe32(KXFER_WIRE_MAGIC),
		.version_min = htobe16(KXFER_WIRE_VERSION_MIN),
		.version_max = htobe16(KXFER_WIRE_VERSION_MAX),
	};
}

static int register_memory(struct raw_server *server)
{
	if (server->fence_mr)
		return 0;
	server->window = aligned_alloc(4096, RAW_WINDOW);
	if (!server->window)
		return -ENOMEM;
	memset(server->window, 0, RAW_WINDOW);
	server->fence_mr = ibv_reg_mr(server->pd, &server->fence, sizeof(server->fence),
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	server->window_mr = ibv_reg_mr(server->pd, server->window, RAW_WINDOW,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_WRITE);
	return server->fence_mr && server->window_mr ? 0 : -EIO;
}

static int accept_lane(struct raw_server *server, struct raw_lane *lane,
		       struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.private_data = &server->welcome,
		.private_data_len = server->welcome_bytes,
		.responder_resources = RAW_RD_ATOM,
		.initiator_depth = RAW_RD_ATOM,
		.rnr_retry_count = 7,
	};
	bool no_receives;
	int ret;

	lane->id = id;
	if (!server->pd)
		server->pd = ibv_alloc_pd(id->verbs);
	lane->pd = server->pd;
	if (!lane->pd || register_memory(server))
		return -EIO;
	no_receives = server->no_receives ||
		      (server->no_data_receives && lane != &server->lanes[0]);
	ret = make_qp(lane, no_receives);
	if (ret)
		return ret;
	/* Events of the connection go to a separate channel. */
	lane->events = rdma_create_event_channel();
	if (!lane->events || rdma_migrate_id(id, lane->events))
		return -EIO;
	return rdma_accept(id, &param) ? -errno : 0;
}

static void connection_request(struct raw_server *server, struct rdma_cm_event *event)
{
	struct kxfer_wire_hello hello = { .kind = 0 };
	struct rdma_cm_id *id = event->id;
	struct sockaddr_in *from = (void *)rdma_get_peer_addr(id);
	uint16_t source_port = ntohs(from->sin_port);
	struct raw_lane *lane;

	if (event->param.conn.private_data_len >= sizeof(hello))
		memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	rdma_ack_cm_event(event);
	server->nr_connections++;
	lane = &server->lanes[hello.kind == KXFER_WIRE_DATA];
	server->hello[hello.kind == KXFER_WIRE_DATA] = hello;
	if (hello.kind == KXFER_WIRE_CONTROL)
		server->source_port = source_port;
	if (server->deaf)
		return;
	if (server->refuse_with || lane->id) {
		rdma_reject(id, server->refuse_with ? &server->refusal : NULL,
			    server->refuse_with);
		rdma_destroy_id(id);
	} else if (accept_lane(server, lane, id)) {
		raw_lane_close(lane);
	}
}

static int answer_hello(struct raw_server *server, void *payload, uint16_t *length)
{
	struct kxfer_wire_hello_answer *answer = payload;

	*length = sizeof(*answer);
	answer->placement_addr = htobe64((uintptr_t)&server->fence);
	answer->placement_key = htobe32(server->fence_mr->rkey);
	return KXFER_WIRE_OK;
}

static int answer_grant(void *payload, uint16_t *length)
{
	struct kxfer_wire_grant_answer *answer = payload;

	*length = sizeof(*answer);
	answer->grant = htobe64(1);
	answer->exposure = htobe64(1);
	answer->length = htobe64(RAW_WINDOW);
	answer->rights = htobe32(KXFER_RIGHT_ALL);
	answer->nr_keys = htobe32(1);
	return KXFER_WIRE_OK;
}

static int answer_keys(struct raw_server *server, void *payload, uint16_t *length)
{
	struct kxfer_wire_keys_answer *answer = payload;

	*length = sizeof(*answer) + sizeof(answer->keys[0]);
	answer->nr = htobe32(1);
	answer->keys[0].addr = htobe64((uintptr_t)server->window);
	answer->keys[0].rkey = htobe32(server->window_mr->rkey);
	answer->keys[0].length = htobe32(RAW_WINDOW);
	return KXFER_WIRE_OK;
}

int raw_default_answer(struct raw_server *server, const struct kxfer_wire_header *request,
		       void *payload, uint16_t *length)
{
	switch (request->type) {
	case KXFER_WIRE_HELLO:
		return answer_hello(server, payload, length);
	case KXFER_WIRE_GRANT:
		return answer_grant(payload, length);
	case KXFER_WIRE_KEYS:
		return answer_keys(server, payload, length);
	default:
		return KXFER_WIRE_OK;
	}
}

static bool withhold(struct raw_server *server, const struct kxfer_wire_header *request)
{
	if (!server->withhold || request->type != KXFER_WIRE_NOTIFY ||
	    server->nr_withheld == KXFER_WIRE_DATA_SLOTS)
		return false;
	server->withheld[server->nr_withheld++] = *request;
	return true;
}

static void answer_request(struct raw_server *server, struct raw_lane *lane,
			   const struct kxfer_wire_header *request)
{
	uint8_t payload[RAW_BYTES] = "";
	struct kxfer_wire_header answer = *request;
	uint16_t length = 0;
	int status;

	/* The payload is zero unless the handler changes it. */
	if (request->type & KXFER_WIRE_ANSWER)
		return;
	server->nr_requests++;
	if (server->mute || withhold(server, request))
		return;
	if (server->answer && request->type != KXFER_WIRE_PING &&
	    request->type != KXFER_WIRE_HELLO)
		status = server->answer(server, request, request + 1, payload, &length);
	else
		status = raw_default_answer(server, request, payload, &length);
	if (status < 0)
		return;
	answer.type |= KXFER_WIRE_ANSWER;
	answer.status = htobe16(status);
	answer.length = htobe16(length);
	raw_post_request(lane, answer, payload, length);
}

static void answer_withheld(struct raw_server *server)
{
	struct kxfer_wire_header request;

	if (!server->lanes[1].cq) /* The link failed: these answers are not expected any more. */
		server->nr_withheld = 0;
	while (!server->withhold && server->nr_withheld) {
		request = server->withheld[--server->nr_withheld];
		request.type |= KXFER_WIRE_ANSWER;
		request.length = 0;
		raw_post_request(&server->lanes[1], request, NULL, 0);
	}
}

static void take_message(struct raw_server *server, struct raw_lane *lane)
{
	uint8_t message[RAW_BYTES];
	const struct kxfer_wire_header *header = (void *)message;
	int length = raw_receive(lane, message, 0);

	if (length == -ECONNRESET)
		raw_lane_close(lane);
	else if (length >= (int)sizeof(*header) &&
		 !(server->intercept && server->intercept(server, lane, header, length)))
		answer_request(server, lane, header);
}

static void *serve(void *argument)
{
	struct raw_server *server = argument;
	struct rdma_cm_event *event;
	int i;

	while (!server->stop) {
		event = next_event(server->events, 1);
		if (event && event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			connection_request(server, event);
		else if (event)
			rdma_ack_cm_event(event);
		for (i = 0; i < 2; i++)
			if (server->lanes[i].cq)
				take_message(server, &server->lanes[i]);
		if (server->idle)
			server->idle(server);
		answer_withheld(server);
	}
	return NULL;
}

int raw_server_start(struct raw_server *server, uint16_t port)
{
	struct sockaddr_in at;

	fill_sockaddr(&at, port);
	server->events = rdma_create_event_channel();
	if (!server->events)
		return -errno;
	if (rdma_create_id(server->events, &server->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(server->listener, (struct sockaddr *)&at) ||
	    rdma_listen(server->listener, 8))
		return -errno;
	if (pthread_create(&server->thread, NULL, serve, server))
		return -EAGAIN;
	server->running = true;
	return 0;
}

void raw_server_stop(struct raw_server *server)
{
	struct rdma_cm_event *event;

	server->stop = true;
	if (server->running)
		pthread_join(server->thread, NULL);
	server->running = false;
	raw_lane_close(&server->lanes[0]);
	raw_lane_close(&server->lanes[1]);
	if (server->fence_mr)
		ibv_dereg_mr(server->fence_mr);
	if (server->window_mr)
		ibv_dereg_mr(server->window_mr);
	free(server->window);
	if (server->pd)
		ibv_dealloc_pd(server->pd);
	while (server->events && (event = next_event(server->events, 0)))
		rdma_ack_cm_event(event);
	if (server->listener)
		rdma_destroy_id(server->listener);
	if (server->events)
		rdma_destroy_event_channel(server->events);
	server->fence_mr = NULL;
	server->window_mr = NULL;
	server->window = NULL;
	server->pd = NULL;
	server->listener = NULL;
	server->events = NULL;
}

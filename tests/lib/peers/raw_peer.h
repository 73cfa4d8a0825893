/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer in user space that speaks the wire format (kmod/base/wire.h) by librdmacm and
 * libibverbs. It shows how the module reacts to peers that lie, misbehave or fall silent.
 * Either side:
 *
 *	raw_link	the initiator: connects, sends requests, uses rkeys
 *	raw_server	the passive side: a thread with configurable answers
 *
 * A lane is an rdma_cm id with its QP, CQ and RECVs; a link is a control lane and a data lane
 * in one protection domain. Every call has a time limit; errors are negative errnos, completion
 * statuses are those of verbs.
 */
#ifndef KXFER_RAW_PEER_H
#define KXFER_RAW_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "harness/kxfer_test.h"
#include "kmod/base/wire.h"

#define RAW_RECVS	32
#define RAW_PUSHES	32	/* work requests of raw_push() in flight */
#define RAW_BYTES	KXFER_WIRE_CONTROL_BYTES
#define RAW_PUSH_BYTES	(3 * RAW_BYTES)	/* longer than any receiver accepts */
#define RAW_WINDOW	65536
#define RAW_MS		5000	/* time limit of each step */

/**
 * struct raw_lane - a connection
 * @events: event channel of @id only
 * @id: rdma_cm id
 * @pd: protection domain, shared by the lanes
 * @refusal: enum kxfer_refusal of the last refused connection
 * @version: protocol version that the other side named when it accepted
 * @welcome: private data of the acceptance
 * @welcome_bytes: bytes of @welcome that arrived
 * @quiet_ns: start of the silence, on an iWARP connection made here; else 0
 * @sparing: the lane has only the RECVs of raw_lane_receive_one()
 * @lost: the lane was disconnected, or a completion was flushed
 * @why: first sign of the loss, or NULL
 */
struct raw_lane {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	/* RAW_RECVS received messages, one sent message, those of raw_push() */
	uint8_t *memory;
	uint32_t refusal;
	uint16_t version;
	struct kxfer_wire_keyed_welcome welcome;
	uint32_t welcome_bytes;
	uint64_t quiet_ns;
	bool sparing;
	bool lost;
	const char *why;
	enum ibv_wc_status send_status;
	bool send_done;
	uint32_t pushes;	/* bit mask of pushes in flight */
	uint32_t nr_arrived;
	uint32_t arrived[RAW_RECVS];
	uint32_t arrived_bytes[RAW_RECVS];
};

/* Private data of a connecting lane; see struct kxfer_wire_hello. */
struct kxfer_wire_hello raw_hello_data(enum kxfer_wire_kind kind, const uint8_t *cookie,
				       uint64_t epoch);

/**
 * struct raw_manners - how a lane behaves as a connection; zero is well-behaved
 * @responder_resources: as in struct rdma_conn_param; 0: RAW_RD_ATOM
 * @initiator_depth: as in struct rdma_conn_param; 0: RAW_RD_ATOM
 * @retry_count: as in struct rdma_conn_param; 0: 7
 * @ack_timeout: exponent of the retransmission timeout, 4.096 us * 2^n; 0: the default
 * @nr_lanes: data lanes to ask for; 0: 1
 * @no_receives: no RECVs are posted, so that the module's SENDs find none
 * @leave_early: the lane is closed while its request is in flight
 */
struct raw_manners {
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t ack_timeout;
	uint16_t nr_lanes;
	bool no_receives;
	bool leave_early;
};

#define RAW_RD_ATOM	16

/*
 * Connects to kx_address():@port from @source_port (0: any). Return: 0;
 * -ECONNREFUSED (@lane->refusal is the reason, if one was given); -ETIMEDOUT; -EIO.
 * @pd: NULL: make one, which raw_lane_close() does not free.
 */
int raw_lane_connect(struct raw_lane *lane, uint16_t port, uint16_t source_port,
		     const void *hello, uint8_t hello_bytes, struct ibv_pd *pd);
int raw_lane_connect_as(struct raw_lane *lane, uint16_t port, uint16_t source_port,
			const void *hello, uint8_t hello_bytes, struct ibv_pd *pd,
			const struct raw_manners *manners);
void raw_lane_close(struct raw_lane *lane);
/* Destroys the QP without a disconnect. */
void raw_lane_drop(struct raw_lane *lane);

/*
 * Posts a signalled work request of one piece of memory. Waits for room, not for its
 * completion. @wr: opcode and its parameters; @bytes: copied, at most RAW_PUSH_BYTES. Return:
 * 0, -ECONNRESET, -ETIMEDOUT.
 */
int raw_push_wr(struct raw_lane *lane, struct ibv_send_wr *wr, const void *bytes,
		uint32_t length);
int raw_push(struct raw_lane *lane, const void *message, uint32_t length);
/* Posts one RECV on a lane that has none (no_receives). Return: 0 or -EIO. */
int raw_lane_receive_one(struct raw_lane *lane);
/* Polls without waiting. Return: false once the lane is lost. */
bool raw_look(struct raw_lane *lane);

/* Sends bytes unchanged. Return: 0, -ETIMEDOUT, or -ECONNRESET. */
int raw_send(struct raw_lane *lane, const void *message, uint32_t length);
/* Posts two messages at once, each at most half of RAW_BYTES. */
int raw_send_two(struct raw_lane *lane, const void *first, uint32_t first_bytes,
		 const void *second, uint32_t second_bytes);
/* Receives a message. Return: its length, -ETIMEDOUT, or -ECONNRESET. */
int raw_receive(struct raw_lane *lane, void *message, uint32_t ms);
/* One RDMA READ or WRITE of at most RAW_BYTES from or to raw_scratch(). */
enum ibv_wc_status raw_rdma(struct raw_lane *lane, enum ibv_wr_opcode opcode,
			    uint64_t addr, uint32_t rkey, uint32_t length);
uint8_t *raw_scratch(struct raw_lane *lane);
/* Whether the module drops the connection within @ms. */
bool raw_dropped(struct raw_lane *lane, uint32_t ms);

/**
 * struct raw_link - an initiator's link
 * @control: control lane
 * @data: data lane
 * @cookie: cookie that both lanes show
 * @epoch: epoch that both lanes show
 * @features: KXFER_WIRE_FEATURE_* of the link
 * @answer_pings: whether raw_request() and raw_serve() answer PING
 * @answer_revokes: whether they answer REVOKE
 * @nr_revokes: REVOKEs received
 */
struct raw_link {
	struct raw_lane control;
	struct raw_lane data;
	struct ibv_pd *pd;
	uint16_t port;
	uint8_t cookie[KXFER_WIRE_COOKIE_SIZE];
	uint64_t epoch;
	uint32_t features;
	uint64_t sequence;
	bool answer_pings;
	bool answer_revokes;
	uint32_t nr_revokes;
};

/* Connects the control lane only; from a free port below 1024. */
int raw_link_connect(struct raw_link *link, uint16_t port);
/* Like raw_link_control(), with another hello and manners; @hello NULL: the right one. */
int raw_link_connect_as(struct raw_link *link, uint16_t port, const void *hello,
			uint8_t hello_bytes, const struct raw_manners *manners);
/* Sends HELLO. Return: enum kxfer_wire_status or -errno. */
int raw_link_hello(struct raw_link *link);
int raw_link_connect_data(struct raw_link *link);
/* Makes a whole link: control lane, HELLO, data lane. Return: 0 or -errno. */
int raw_link_open(struct raw_link *link, uint16_t port);
int raw_link_open_with(struct raw_link *link, uint16_t port, uint32_t features);
void raw_link_close(struct raw_link *link);

/* A header; arguments are in host order. */
struct kxfer_wire_header raw_header(uint8_t type, uint8_t slot, uint16_t length,
				    uint64_t sequence);
/* Sends header and payload in one SEND; does not wait for an answer. */
int raw_post_request(struct raw_lane *lane, struct kxfer_wire_header header,
		     const void *payload, uint32_t payload_bytes);
/*
 * Sends a request and waits for its answer. Return: enum kxfer_wire_status or -errno;
 * @answer_bytes: in: room, out: bytes; both may be NULL.
 */
int raw_request(struct raw_link *link, struct raw_lane *lane, uint8_t type,
		const void *payload, uint32_t length, void *answer,
		uint32_t *answer_bytes);
/* Waits for the answer to a request that was sent separately; otherwise like raw_request(). */
int raw_await_answer(struct raw_link *link, struct raw_lane *lane,
		     const struct kxfer_wire_header *request, void *answer,
		     uint32_t *answer_bytes);
int raw_grant(struct raw_link *link, const char *name, uint32_t uid, uint32_t rights,
	      struct kxfer_wire_grant_answer *grant);
int raw_grant_word(struct raw_link *link, const char *name, uint32_t uid, uint32_t rights,
		   uint64_t word, struct kxfer_wire_grant_answer *grant);
/*
 * Fetches up to @nr keys of an exposure, from the first one on. Return: number of keys, or
 * -errno.
 */
int raw_keys(struct raw_link *link, uint64_t exposure, struct kxfer_wire_key *keys,
	     uint32_t nr);
int raw_notify(struct raw_link *link, uint64_t grant, uint64_t cookie);
/* Answers requests on the control lane for @ms, or until it is lost. */
void raw_serve(struct raw_link *link, uint32_t ms);

/* ---- passive side ---- */

struct raw_server;

/* Sees every message, also answers. Return: whether the message was handled. */
typedef bool (*raw_intercept_fn)(struct raw_server *server, struct raw_lane *lane,
				 const struct kxfer_wire_header *message, uint32_t length);
/* Called between messages. */
typedef void (*raw_idle_fn)(struct raw_server *server);

/*
 * Answers a request. @payload: payload of the request; @answer: room for RAW_BYTES less a
 * header. Return: enum kxfer_wire_status, or -1: no answer.
 */
typedef int (*raw_answer_fn)(struct raw_server *server,
			     const struct kxfer_wire_header *request,
			     const void *payload, void *answer, uint16_t *length);

/**
 * struct raw_server - a listener with one link
 * @answer: handler of every request except HELLO and PING; NULL: every name is an export of
 *	@window with all rights, and NOTIFY is answered
 * @intercept: first handler of every message, or NULL
 * @idle: function that the thread calls after polling both lanes, or NULL
 * @no_receives: lanes post no RECV
 * @no_data_receives: data lanes post none
 * @withhold: answers to NOTIFY are held back while this is set
 * @refuse_with: bytes of @refusal to refuse every connection with; 0: accept
 * @deaf: connections are neither accepted nor refused
 * @mute: no request is answered, not even PING
 * @welcome: private data of the acceptance
 * @welcome_bytes: bytes of @welcome
 */
struct raw_server {
	raw_answer_fn answer;
	raw_intercept_fn intercept;
	raw_idle_fn idle;
	bool no_receives;
	bool no_data_receives;
	uint8_t refuse_with;
	struct kxfer_wire_refusal refusal;
	bool deaf;
	bool mute;
	volatile bool withhold;
	uint8_t *window;
	union {
		struct kxfer_wire_welcome welcome;
		struct kxfer_wire_keyed_welcome keyed_welcome;
	};
	uint8_t welcome_bytes;
	void *context;
	/* results for the test */
	uint32_t nr_connections;
	uint16_t source_port;	/* source port of the last control connection */
	struct kxfer_wire_hello hello[2];
	uint32_t nr_requests;
	/* internal to the server */
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_mr *fence_mr;
	struct ibv_mr *window_mr;
	uint64_t fence;
	struct kxfer_wire_header withheld[KXFER_WIRE_DATA_SLOTS];
	uint32_t nr_withheld;
	struct raw_lane lanes[2];
	pthread_t thread;
	bool running;
	volatile bool stop;
};

/* The answer of a well-behaved server; @payload is zero. Return: enum kxfer_wire_status. */
int raw_default_answer(struct raw_server *server, const struct kxfer_wire_header *request,
		       void *payload, uint16_t *length);

/* Fills in the answer of a well-behaved server. */
void raw_server_init(struct raw_server *server);
int raw_server_start(struct raw_server *server, uint16_t port);
void raw_server_stop(struct raw_server *server);

#endif /* KXFER_RAW_PEER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A responder of user-space verbs (kmod/base/responder.h) by librdmacm and libibverbs: a
 * thread that serves one connection at a time, with memory and receives, as
 * `kxfer serve --verbs` does; or that misbehaves, to see what the module does about it.
 */
#ifndef KXFER_TEST_RESPONDER_H
#define KXFER_TEST_RESPONDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../../kmod/base/responder.h"
#include "kxfer_test.h"

/**
 * struct responder_manners - zero is well
 * @refusal: errno to refuse every connection with
 * @foreign: its answer is of no protocol
 * @version: of its answer, 0: that of the request
 * @short_by: bytes that its memory lacks
 * @wraps: its memory ends beyond the last address
 * @invents: messages that it counts and nobody sent
 * @lazy: it posts receives once and never again
 * @mute: it answers no message
 * @plain: it answers without invalidating anything
 * @other: it invalidates an older key
 * @swaps: it answers two messages at a time, each with the key of the other
 * @twice: it answers twice, the second time without invalidating anything
 * @wordy: it answers with bytes
 * @rest_ms: it takes no message, and so answers none, for so long behind each
 * @lookup_refusal: errno to refuse who looks for its UD QP with
 * @no_lookups: nothing listens there for that
 * @silent: it never answers who looks for its UD QP
 */
struct responder_manners {
	uint32_t refusal;
	bool foreign;
	uint16_t version;
	uint64_t short_by;
	bool wraps;
	uint64_t invents;
	bool lazy;
	bool mute;
	bool plain;
	bool other;
	bool swaps;
	bool twice;
	bool wordy;
	uint32_t rest_ms;
	uint32_t lookup_refusal;
	bool no_lookups;
	bool silent;
};

/**
 * struct responder - one that was opened
 * @port: that it listens on
 * @memory: of the connection, as long as there is one: slots, then the status
 * @received: messages of the last connection
 * @wrong: of these: length, or immediate, or number
 * @command: of the last one that is answered
 */
struct responder {
	uint16_t port;
	struct responder_manners manners;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *lookups;	/* RDMA_PS_UDP */
	struct rdma_cm_id *unanswered;	/* of who looks for a UD QP */
	pthread_t thread;
	volatile bool stop;

	struct kxfer_responder_request request;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *datagrams;	/* UD, of who asked for it */
	uint8_t *memory;
	uint64_t length;
	uint64_t posted;
	uint64_t rests_until_ns;
	volatile uint64_t received;
	volatile uint64_t wrong;
	struct kxfer_responder_command command;
	uint32_t held;		/* key of a message whose answer waits */
	struct kxfer_responder_command *commands;	/* one for each receive */
};

/* Listens at kx_address(), on any port. 0 or -errno. */
int responder_open(struct responder *responder, const struct responder_manners *manners);
void responder_close(struct responder *responder);

/*
 * The same as a process of its own: librdmacm keeps the device open as long as a process
 * lives, and neither rxe nor siw goes before (disassociate_ucontext). Return: its port, or
 * 0: it did not start.
 */
uint16_t responder_spawn(pid_t *pid);
void responder_kill(pid_t *pid);

#endif /* KXFER_TEST_RESPONDER_H */

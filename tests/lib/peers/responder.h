/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A responder of user-space verbs (kmod/base/responder.h) by librdmacm and libibverbs: a thread
 * that serves one connection at a time, with memory and receives, like `kxfer serve --verbs`.
 * It can also misbehave, to show how the module reacts.
 */
#ifndef KXFER_TEST_RESPONDER_H
#define KXFER_TEST_RESPONDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "harness/kxfer_test.h"
#include "kmod/base/responder.h"

/**
 * struct responder_manners - zero is well-behaved
 * @refusal: errno to refuse every connection with
 * @foreign: the answer belongs to no known protocol
 * @version: version in the answer; 0: that of the request
 * @short_by: bytes that the memory is too short by
 * @wraps: the memory ends beyond the last address
 * @invents: number of messages that are counted but were never sent
 * @lazy: receives are posted once and never again
 * @mute: no message is answered
 * @plain: answers invalidate no key
 * @other: answers invalidate an older key
 * @swaps: two messages are answered at a time, each with the key of the other
 * @twice: each message is answered twice, the second time without an invalidation
 * @wordy: answers carry bytes
 * @rest_ms: pause after each message, without receiving or answering
 * @lookup_refusal: errno to refuse lookups of the UD QP with
 * @no_lookups: nothing listens for lookups of the UD QP
 * @silent: lookups of the UD QP are never answered
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
 * struct responder - an open responder
 * @port: port of its listener
 * @memory: memory of the current connection: slots, then the status
 * @received: messages of the last connection
 * @wrong: received messages with a wrong length, immediate or number
 * @command: command of the last answered message
 */
struct responder {
	uint16_t port;
	struct responder_manners manners;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *lookups;	/* RDMA_PS_UDP */
	struct rdma_cm_id *unanswered;	/* lookup of a UD QP that waits */
	pthread_t thread;
	volatile bool stop;

	struct kxfer_responder_request request;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *datagrams;	/* UD QP, if the peer asked for one */
	uint8_t *memory;
	uint64_t length;
	uint64_t posted;
	uint64_t rests_until_ns;
	volatile uint64_t received;
	volatile uint64_t wrong;
	struct kxfer_responder_command command;
	uint32_t held;		/* key of a message whose answer is held back */
	struct kxfer_responder_command *commands;	/* one for each receive */
};

/* Listens at kx_address(), on any port. Return: 0 or -errno. */
int responder_open(struct responder *responder, const struct responder_manners *manners);
void responder_close(struct responder *responder);

/*
 * Starts a responder in a separate process. librdmacm keeps the device open as long as its
 * process lives, and neither rxe nor siw can be removed before (disassociate_ucontext). Return:
 * port of the responder, or 0 if it did not start.
 */
uint16_t responder_spawn(pid_t *pid);
void responder_kill(pid_t *pid);

#endif /* KXFER_TEST_RESPONDER_H */

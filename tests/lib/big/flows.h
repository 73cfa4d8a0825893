/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flows: sequences of calls that are swept by failures (sweep.h), on a node that is
 * its own peer.
 */
#ifndef KXFER_TEST_FLOWS_H
#define KXFER_TEST_FLOWS_H

#include "harness/kxfer_test.h"
#include "harness/sweep.h"
#include "peers/responder.h"

enum flow {
	LOCAL,		/* calls that need no peer */
	CONNECT,	/* PEER_OPEN without a link, and its acceptance */
	TRANSFER,	/* targets and jobs over a link that is up */
	MEASURE,	/* BENCH over a link that is up */
	DEDICATE,	/* BENCH on a dedicated connection, which comes and goes */
	DATAGRAMS,	/* BENCH by UD */
	BY_URING,	/* a batch of jobs by io_uring */
	WITHDRAW,	/* EXPORT_DEL under jobs, and the reaction of the holder */
	CLOSE,		/* close() of the exporter under jobs */
	MAILBOX,	/* waiting RECVs, messages on their way, and EXPORT_DEL under them */
	ABANDONED,	/* a GRANT that is answered after the call has ended */
	OVERTAKEN,	/* EXPORT_DEL while the holder opens another target */
	REFUSED,	/* a connection that is refused */
	DISCONNECT,	/* a link that breaks */
	RETURN,		/* a device that is removed and comes back */
	NR_FLOWS
};

/**
 * struct world - a node that is its own peer
 * @observer: session that reads counters
 * @server: session with listener and export
 * @client: session with a peer, in flows over a link that is up
 * @responder: user-space verbs responder, in flows that need one
 * @owner: session with a short-lived export
 * @nr_jobs: number of jobs that the last SUBMIT accepted
 * @job_error: errno of the first job that it refused
 * @down: counters without a link
 * @up: counters with an idle link
 */
struct world {
	int observer;
	int server;
	uint64_t listener;
	uint32_t there_region;
	uint32_t export_id;
	uint8_t *there;
	uint8_t *here;
	uint8_t *big;
	int client;
	uint32_t peer;
	struct responder responder;
	int owner;
	uint32_t owner_export;
	uint32_t nr_jobs;
	int job_error;
	char netdev[32];
	struct kx_live down;
	struct kx_live up;
};

/* The context of each flow is a world. */
extern const struct sweep_flow flows[NR_FLOWS];

int world_open(struct world *world);
void world_close(struct world *world);
int world_end_link(struct world *world);
int world_renew_device(struct world *world);

#endif /* KXFER_TEST_FLOWS_H */

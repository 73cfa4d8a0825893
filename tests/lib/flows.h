/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flows: sequences of calls that are swept by failures (sweep.h), on a node that is
 * its own peer.
 */
#ifndef KXFER_TEST_FLOWS_H
#define KXFER_TEST_FLOWS_H

#include "kxfer_test.h"
#include "responder.h"
#include "sweep.h"

enum flow {
	LOCAL,		/* calls that need no peer */
	CONNECT,	/* PEER_OPEN without a link, and accepting it */
	TRANSFER,	/* targets and jobs over a link that is up */
	MEASURE,	/* BENCH on such a link */
	DEDICATE,	/* the same on a dedicated connection, which comes and goes */
	DATAGRAMS,	/* the same by UD */
	BY_URING,	/* a batch of jobs by io_uring */
	WITHDRAW,	/* EXPORT_DEL under jobs, and what the holder does */
	CLOSE,		/* the same by close() */
	MAILBOX,	/* RECVs that wait, messages on their way, and EXPORT_DEL under them */
	ABANDONED,	/* a GRANT whose answer comes when the call is over */
	OVERTAKEN,	/* EXPORT_DEL while the holder opens another target */
	REFUSED,	/* a connection that is refused */
	DISCONNECT,	/* a link that breaks */
	RETURN,		/* a device goes and comes back */
	NR_FLOWS
};

/**
 * struct world - a node that is its own peer
 * @observer: session to read counters by
 * @server: session with listener and export
 * @client: session with a peer, in flows over a link that is up
 * @responder: of verbs, in flows that need one
 * @owner: session with an export that does not live long
 * @nr_jobs: accepted by the last SUBMIT
 * @job_error: why not more
 * @down: counters without a link
 * @up: counters with a link that nobody uses
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

/* Their context is a world. */
extern const struct sweep_flow flows[NR_FLOWS];

int world_open(struct world *world);
void world_close(struct world *world);
int world_end_link(struct world *world);
int world_renew_device(struct world *world);

#endif /* KXFER_TEST_FLOWS_H */

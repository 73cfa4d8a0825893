// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to the transport and its answers: the type of service, and refusals that do not come
 * from kxfer. The other side is a forger.
 */
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/forger.h"

#define TIMEOUT_S	120
#define OPEN_MS		20000
#define SOON_MS		8000	/* less than the 15 s after which a handshake is given up */

/* reasons of REJ */
#define NOTHING_LISTENS	8
#define STALE		10

#define CONFIGFS	"/sys/kernel/config"
#define CM_DEVICE	CONFIGFS "/rdma_cm/" FORGER_DEVICE
#define DEFAULT_TOS	104

/* The forger refuses every request, with one reason after the other; the last reason stays. */
struct refuser {
	struct forger forger;
	uint16_t reasons[2];
	_Atomic bool stop;
	_Atomic uint32_t nr_reqs;
	_Atomic uint32_t tos;
	_Atomic uint32_t retry_count;
	_Atomic uint32_t ack_timeout;
	pthread_t thread;
};

FIXTURE(transport)
{
	int fd;
	struct refuser refuser;
	struct kxfer_peer_open cmd;
};

static void refuse(struct refuser *refuser)
{
	struct forger *forger = &refuser->forger;
	struct forger_mad rej;
	uint16_t reason;

	refuser->nr_reqs = forger->nr_reqs;
	refuser->tos = forger->tos;
	refuser->retry_count = forger->req.bytes[FORGER_MAD_HEADER + 47] & 7;
	refuser->ack_timeout = forger->req.bytes[FORGER_MAD_HEADER + 95] >> 3;
	reason = refuser->reasons[forger->nr_reqs > 1];
	rej = forger_rej(&forger->req, reason, NULL, 0);
	forger_send_mad(forger, &rej, sizeof(rej.bytes));
}

static void *refuse_all(void *arg)
{
	struct refuser *refuser = arg;
	uint32_t before;

	while (!refuser->stop) {
		before = refuser->forger.nr_packets;
		if (forger_look(&refuser->forger, 50) && refuser->forger.nr_reqs &&
		    refuser->forger.nr_packets != before)
			refuse(refuser);
	}
	return NULL;
}

FIXTURE_SETUP(transport)
{
	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "it is no RoCE v2");
	ASSERT_EQ(0, forger_network_make());
	ASSERT_EQ(0, forger_open(&self->refuser.forger, AF_INET));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->cmd = (struct kxfer_peer_open) {
		.size = sizeof(self->cmd),
		.remote = kx_addr(FORGER_SELF, KXFER_PORT),
		.timeout_ms = OPEN_MS,
	};
	self->refuser.reasons[0] = NOTHING_LISTENS;
	self->refuser.reasons[1] = NOTHING_LISTENS;
}

FIXTURE_TEARDOWN(transport)
{
	if (strcmp(kx_provider(), "rxe"))
		return;
	forger_close(&self->refuser.forger);
	close(self->fd);
	forger_network_remove();
}

/* Return: result of PEER_OPEN */
static int open_refused(FIXTURE_DATA(transport) *self)
{
	struct refuser *refuser = &self->refuser;
	int ret;

	if (pthread_create(&refuser->thread, NULL, refuse_all, refuser))
		return -EAGAIN;
	ret = kx_call(self->fd, KXFER_PEER_OPEN, &self->cmd);
	refuser->stop = true;
	pthread_join(refuser->thread, NULL);
	return ret;
}

/* ---- refusals ---- */

TEST_F_TIMEOUT(transport, tells_why_it_refuses, TIMEOUT_S)
{
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(KXFER_REFUSAL_TRANSPORT | NOTHING_LISTENS, self->cmd.refusal);
	EXPECT_EQ(1, self->refuser.nr_reqs);
}

TEST_F_TIMEOUT(transport, is_asked_again_when_it_has_an_old_connection, TIMEOUT_S)
{
	self->refuser.reasons[0] = STALE;
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(KXFER_REFUSAL_TRANSPORT | NOTHING_LISTENS, self->cmd.refusal);
	EXPECT_EQ(2, self->refuser.nr_reqs);
}

TEST_F_TIMEOUT(transport, is_not_asked_for_ever, TIMEOUT_S)
{
	self->refuser.reasons[0] = STALE;
	self->refuser.reasons[1] = STALE;
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(KXFER_REFUSAL_TRANSPORT | STALE, self->cmd.refusal);
	EXPECT_EQ(4, self->refuser.nr_reqs);
}

/* The peer answers the request, and then withdraws it. */
TEST_F_TIMEOUT(transport, that_refuses_an_acceptance_ends_the_link, TIMEOUT_S)
{
	struct kxfer_wire_hello hello = {
		.magic = htobe32(KXFER_WIRE_MAGIC),
		.version_min = htobe16(KXFER_WIRE_VERSION_MIN),
		.version_max = htobe16(KXFER_WIRE_VERSION_MAX),
		.nr_lanes = htobe16(1),
	};
	struct forger *forger = &self->refuser.forger;
	uint16_t port = kx_own_port() + 1;
	struct forger_claim claim = forger_truth(forger, port, &hello, sizeof(hello));
	uint64_t before = kx_counter(self->fd, "live_links");
	struct forger_lane lane;
	struct forger_mad mad;
	uint64_t listener;

	test_cmd_listen_add(self->fd, kx_addr(FORGER_NODE, port), 0, &listener);
	forger_lane_begin(forger, &lane);
	mad = forger_req(&lane, &claim);
	ASSERT_EQ(0, forger_send_mad(forger, &mad, sizeof(mad.bytes)));
	ASSERT_EQ(0, forger_await_rep(forger, &lane, FORGER_MS));
	EXPECT_EQ(before + 1, kx_counter(self->fd, "live_links"));
	mad = forger_mad(&lane, FORGER_REJ);
	mad.bytes[FORGER_MAD_HEADER + 8] = 1 << 6;	/* the message refused is the REP */
	mad.bytes[FORGER_MAD_HEADER + 11] = 28;
	ASSERT_EQ(0, forger_send_mad(forger, &mad, sizeof(mad.bytes)));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_links") == before, SOON_MS));
}

/* ---- type of service ---- */

static bool set_default_tos(void)
{
	FILE *file;
	bool ok;

	mount("configfs", CONFIGFS, "configfs", 0, NULL);
	mkdir(CM_DEVICE, 0755);
	file = fopen(CM_DEVICE "/ports/1/default_roce_tos", "w");
	ok = file && fprintf(file, "%d", DEFAULT_TOS) > 0;
	if (file && fclose(file))
		ok = false;
	rmdir(CM_DEVICE);
	return ok;
}

TEST_F_TIMEOUT(transport, has_the_type_of_service_of_its_device, TIMEOUT_S)
{
	if (!set_default_tos())
		SKIP(return, "this kernel has no configfs");
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(DEFAULT_TOS, self->refuser.tos);
}

TEST_F_TIMEOUT(transport, has_the_type_of_service_that_is_asked_for, TIMEOUT_S)
{
	set_default_tos();
	self->cmd.flags = KXFER_PEER_F_TOS;
	self->cmd.tos = 32;
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(32, self->refuser.tos);
	self->refuser.stop = false;
	self->cmd.tos = 0;
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(0, self->refuser.tos);
}

/* ---- patience ---- */

TEST_F_TIMEOUT(transport, is_asked_for_the_usual_patience, TIMEOUT_S)
{
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(7, self->refuser.retry_count);
	EXPECT_EQ(17, self->refuser.ack_timeout);
}

TEST_F_TIMEOUT(transport, is_asked_for_the_patience_that_the_caller_wants, TIMEOUT_S)
{
	self->cmd.retry_count = 3;
	self->cmd.ack_timeout = 19;
	EXPECT_EQ(-ECONNREFUSED, open_refused(self));
	EXPECT_EQ(3, self->refuser.retry_count);
	EXPECT_EQ(19, self->refuser.ack_timeout);
}

TEST_HARNESS_MAIN

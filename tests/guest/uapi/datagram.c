// SPDX-License-Identifier: GPL-2.0
/*
 * Dedicated connections with messages over UD: messages arrive, losses are counted after a
 * short wait, and impossible runs are refused.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "peers/sender.h"

#define RUNNING_MS	150	/* a started run is in progress by then */

FIXTURE(datagram)
{
	struct sender sender;
};

FIXTURE_SETUP(datagram)
{
	ASSERT_EQ(0, sender_open(&self->sender, KXFER_TRANSPORT_UD));
	if (!strncmp(kx_provider(), "siw", 3)) {
		EXPECT_EQ(-EOPNOTSUPP, sender_dedicate(&self->sender));
		SKIP(return, "iWARP has no UD");
	}
}

FIXTURE_TEARDOWN(datagram)
{
	const char *left = sender_close(&self->sender);

	EXPECT_EQ(NULL, left) {
		TH_LOG("%s", left);
	}
}

/* ---- what works ---- */

TEST_F(datagram, sends)
{
	uint32_t context;

	for (context = KXFER_CONTEXT_POLLED; context <= KXFER_CONTEXT_DIRECT; context++) {
		self->sender.open.context = context;
		ASSERT_EQ(0, sender_dedicate(&self->sender));
		EXPECT_LE(SENDER_BYTES, self->sender.open.mtu);
		EXPECT_NE(NULL, self->sender.responder.datagrams);
		test_sends(&self->sender);
		ASSERT_EQ(0, sender_hang_up(&self->sender));
		EXPECT_TRUE(sender_is_alone(&self->sender));
	}
}

TEST_F(datagram, sends_with_immediate)
{
	self->sender.open.flags |= KXFER_DEDICATED_F_IMM;
	self->sender.bench.flags = KXFER_BENCH_F_IMM;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_sends(&self->sender);
}

TEST_F(datagram, sends_from_registered_memory)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR;
	test_sends(&self->sender);
	/* A UD QP cannot register memory. */
	self->sender.bench.memory = KXFER_BENCH_MEMORY_MR_EACH;
	self->sender.bench.depth = 1;
	self->sender.bench.list = 1;
	self->sender.bench.signal = 1;
	EXPECT_EQ(-EOPNOTSUPP, sender_run(&self->sender));
}

TEST_F(datagram, reads_and_writes_beside_by_its_connection)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.op = KXFER_OP_WRITE;
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 2 * SENDER_SLOTS;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_TRUE(sender_landed(&self->sender));
	memset(self->sender.here, 0, SENDER_LENGTH);
	self->sender.bench.op = KXFER_OP_READ;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_TRUE(sender_landed(&self->sender));
	EXPECT_EQ(0, self->sender.responder.received);
}

/* ---- losses ---- */

static uint32_t qkey_violations(struct _test_data_datagram *self)
{
	struct rdma_cm_id *id = self->sender.responder.id;
	struct ibv_port_attr port = {};

	ibv_query_port(id->verbs, id->port_num, &port);
	return port.qkey_viol_cntr;
}

TEST_F(datagram, of_a_wrong_qkey_are_dropped_and_counted)
{
	struct kxfer_dedicated_status status;
	uint64_t start = kx_now_ns();
	uint32_t before;

	self->sender.open.flags |= KXFER_DEDICATED_F_QKEY;
	self->sender.open.qkey = 7;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	before = qkey_violations(self);
	/* More messages than receives: a sender that waits for credits would wait for ever. */
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 4 * SENDER_RECEIVES;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(4 * SENDER_RECEIVES, self->sender.bench.operations);
	EXPECT_TRUE(kx_wait_until(qkey_violations(self) - before == 4 * SENDER_RECEIVES,
				  KX_TIMEOUT_MS));
	ASSERT_EQ(0, sender_look(&self->sender, &status));
	EXPECT_EQ(4 * SENDER_RECEIVES, status.sent);
	EXPECT_EQ(0, status.received);
	EXPECT_EQ(0, self->sender.responder.received);
	EXPECT_GT(10000000000, kx_now_ns() - start);
}

TEST_F(datagram, of_the_right_qkey_arrive)
{
	self->sender.open.flags |= KXFER_DEDICATED_F_QKEY;
	self->sender.open.qkey = RDMA_UDP_QKEY;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	test_sends(&self->sender);
}

/* Receives are posted once, used, and never posted again: later messages are lost. */
TEST_F(datagram, go_on_when_the_responder_posts_no_receives)
{
	struct responder_manners manners = { .lazy = true };
	struct kxfer_dedicated_status status;

	ASSERT_EQ(0, sender_begin(&self->sender, &manners));
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = 3 * SENDER_RECEIVES;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(3 * SENDER_RECEIVES, self->sender.bench.operations);
	ASSERT_EQ(0, sender_look(&self->sender, &status));
	EXPECT_EQ(3 * SENDER_RECEIVES, status.sent);
	EXPECT_TRUE(kx_wait_until(self->sender.responder.received == SENDER_RECEIVES,
				  KX_TIMEOUT_MS));
	/* While receives are missing, no message arrives. */
	self->sender.bench.count = 3 * SENDER_RECEIVES;
	self->sender.bench.time_limit_ms = 100;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_GE(SENDER_RECEIVES, self->sender.bench.operations);
}

/* Every sender that knows the Q_Key may send a datagram. */
TEST_F(datagram, of_others_are_not_counted)
{
	struct responder_manners manners = { .invents = 3 };
	struct kxfer_dedicated_status status;

	ASSERT_EQ(0, sender_begin(&self->sender, &manners));
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, sender_look(&self->sender, &status));
	EXPECT_EQ(0, status.received);
	self->sender.bench.count = 3 * SENDER_RECEIVES;
	ASSERT_EQ(0, sender_run(&self->sender));
	EXPECT_EQ(3 * SENDER_RECEIVES, self->sender.bench.operations);
	ASSERT_TRUE(kx_wait_until(sender_settled(&self->sender, &status), KX_TIMEOUT_MS));
	EXPECT_EQ(3 * SENDER_RECEIVES, status.sent);
}

/* ---- what is refused ---- */

TEST_F(datagram, refuses_what_makes_no_sense)
{
	test_err_dedicate(EOPNOTSUPP, &self->sender, transport, KXFER_TRANSPORT_UD + 1);
	test_err_dedicate(EOPNOTSUPP, &self->sender, flags, KXFER_DEDICATED_F_CQ_POOL << 1);
	test_err_dedicate(EINVAL, &self->sender, qkey, 7);
	test_err_dedicate(EINVAL, &self->sender, __reserved, 1);
	test_err_dedicate(EINVAL, &self->sender, flags, KXFER_DEDICATED_F_ANSWERED);
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_READ);
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_FETCH_ADD);
	test_err_dedicate(EINVAL, &self->sender, receives, 0);
	self->sender.open.flags |= KXFER_DEDICATED_F_IMM;
	test_err_dedicate(EINVAL, &self->sender, op, KXFER_OP_WRITE);
	self->sender.open.flags = KXFER_DEDICATED_F_QKEY;
	test_err_dedicate(EINVAL, &self->sender, transport, KXFER_TRANSPORT_RC);
	self->sender.open.flags = 0;
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	EXPECT_EQ(0, sender_run(&self->sender));
}

TEST_F(datagram, refuses_a_message_beyond_a_packet)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, sender_hang_up(&self->sender));
	EXPECT_TRUE(sender_is_alone(&self->sender));
	self->sender.open.bytes = self->sender.open.mtu + 1;
	self->sender.open.length = SENDER_SLOTS * 2 * SENDER_STRIDE;
	self->sender.open.mtu = 0;
	EXPECT_EQ(-EMSGSIZE, sender_dedicate(&self->sender));
	EXPECT_EQ(self->sender.open.bytes - 1, self->sender.open.mtu);
	EXPECT_TRUE(sender_is_alone(&self->sender));
	self->sender.open.bytes--;
	EXPECT_EQ(0, sender_dedicate(&self->sender));
}

TEST_F(datagram, tells_why_nobody_tells_of_the_qp)
{
	struct responder_manners refuses = { .lookup_refusal = ENOENT };
	struct responder_manners old = { .no_lookups = true };

	ASSERT_EQ(0, sender_begin(&self->sender, &refuses));
	EXPECT_EQ(-EREMOTEIO, sender_dedicate(&self->sender));
	EXPECT_EQ(ENOENT, self->sender.open.refusal);
	ASSERT_EQ(0, sender_begin(&self->sender, &old));
	EXPECT_EQ(-ECONNREFUSED, sender_dedicate(&self->sender));
	EXPECT_EQ(0, self->sender.open.refusal);
}

/* ---- ends ---- */

TEST_F(datagram, wait_for_a_silent_responder_no_longer_than_they_may)
{
	struct responder_manners silent = { .silent = true };
	uint64_t start = kx_now_ns();

	ASSERT_EQ(0, sender_begin(&self->sender, &silent));
	self->sender.open.timeout_ms = 300;
	EXPECT_EQ(-ETIMEDOUT, sender_dedicate(&self->sender));
	EXPECT_GT(3000000000, kx_now_ns() - start);
	/*
	 * The connection has ended with all its objects; the last reference may be dropped
	 * later.
	 */
	EXPECT_TRUE(sender_links_are_gone(&self->sender, self->sender.fd));
	EXPECT_TRUE(sender_is_alone(&self->sender));
}

static void *run_long(void *context)
{
	return (void *)(intptr_t)sender_run(context);
}

TEST_F(datagram, end_when_the_responder_goes)
{
	pthread_t runner;
	void *ret;

	ASSERT_EQ(0, sender_dedicate(&self->sender));
	self->sender.bench.depth = SENDER_SLOTS;
	self->sender.bench.count = UINT32_MAX;
	ASSERT_EQ(0, pthread_create(&runner, NULL, run_long, &self->sender));
	kx_sleep_ms(RUNNING_MS);
	responder_close(&self->sender.responder);
	pthread_join(runner, &ret);
	EXPECT_EQ(-ECONNRESET, (intptr_t)ret);
	EXPECT_EQ(0, sender_hang_up(&self->sender));
}

TEST_F(datagram, go_with_their_session)
{
	ASSERT_EQ(0, sender_dedicate(&self->sender));
	ASSERT_EQ(0, sender_run(&self->sender));
	close(self->sender.fd);
	self->sender.fd = kx_open();
	EXPECT_TRUE(sender_links_are_gone(&self->sender, self->sender.fd));
	EXPECT_TRUE(sender_is_alone(&self->sender));
}

TEST_HARNESS_MAIN

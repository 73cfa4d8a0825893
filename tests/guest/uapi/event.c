// SPDX-License-Identifier: GPL-2.0
/* NOTIFY jobs and EVENT_REAP: which session gets an event, and what happens if none reaps it. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define MANY_EVENTS	1024U	/* a power of two, as the length of the queue is */

FIXTURE(event)
{
	struct kx_pair pair;
	struct kxfer_event event;
	struct kxfer_event many[300];
};

FIXTURE_SETUP(event)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, 4096, KXFER_RIGHT_ALL));
}

FIXTURE_TEARDOWN(event)
{
	kx_pair_close(&self->pair);
}

TEST_F(event, tells_who_notified)
{
	uint64_t before = kx_now_ns();
	struct kxfer_addr from = kx_addr(kx_address(), 0);

	test_cmd_notify(self->pair.client, self->pair.target, 0x1122334455667788ULL);
	test_cmd_event_reap(1, self->pair.server, &self->event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(KXFER_EVENT_NOTIFY, self->event.type);
	EXPECT_EQ(self->pair.export_id, self->event.export_id);
	EXPECT_EQ(0x1122334455667788ULL, self->event.cookie);
	EXPECT_LE(before, self->event.time_ns);
	EXPECT_GE(kx_now_ns(), self->event.time_ns);
	EXPECT_EQ(from.family, self->event.peer.family);
	EXPECT_EQ(0, memcmp(from.addr, self->event.peer.addr, sizeof(from.addr)));
	EXPECT_EQ(0, self->event.uid);
	EXPECT_EQ(0, self->event.gid);
}

TEST_F(event, comes_in_order_and_once)
{
	int i;

	for (i = 0; i < 50; i++)
		test_cmd_notify(self->pair.client, self->pair.target, i);
	test_cmd_event_reap(20, self->pair.server, self->many, 20, 0);
	test_cmd_event_reap(30, self->pair.server, self->many + 20, 300, 0);
	test_cmd_event_reap(0, self->pair.server, &self->event, 1, 0);
	for (i = 0; i < 50; i++)
		EXPECT_EQ(i, self->many[i].cookie);
}

TEST_F_TIMEOUT(event, is_not_waited_for_with_O_NONBLOCK, 30)
{
	uint64_t before = kx_now_ns();
	int flags = fcntl(self->pair.server, F_GETFL);

	fcntl(self->pair.server, F_SETFL, flags | O_NONBLOCK);
	EXPECT_EQ(-EAGAIN, kx_event_reap(self->pair.server, &self->event, 1, 5000));
	EXPECT_GT(before + 2000000000ULL, kx_now_ns());
	test_cmd_notify(self->pair.client, self->pair.target, 5);
	EXPECT_TRUE(kx_wait_until(kx_event_reap(self->pair.server, &self->event, 1, 1) == 1,
				  KX_TIMEOUT_MS));
}

TEST_F(event, comes_behind_the_data)
{
	struct kxfer_completion done[2];
	struct kxfer_job jobs[2] = {
		{ .op = KXFER_OP_WRITE, .region = self->pair.client_region,
		  .target = self->pair.target, .length = 4096 },
		{ .op = KXFER_OP_NOTIFY, .target = self->pair.target },
	};
	int i;

	for (i = 1; i <= 50; i++) {
		memset(self->pair.client_memory, i, 4096);
		test_cmd_submit(2, self->pair.client, jobs, 2);
		test_cmd_event_reap(1, self->pair.server, &self->event, 1, KX_TIMEOUT_MS);
		ASSERT_EQ(i, self->pair.server_memory[0]);
		ASSERT_EQ(i, self->pair.server_memory[4095]);
		test_cmd_reap(2, self->pair.client, done, 2, 2, KX_TIMEOUT_MS);
		EXPECT_EQ(0, done[0].status);
		EXPECT_EQ(0, done[1].status);
	}
}

TEST_F(event, beyond_the_room_is_refused_and_not_lost)
{
	struct kxfer_query query;
	uint32_t i;

	test_cmd_query(self->pair.server, &query);
	ASSERT_LE(query.max_events, 300);
	for (i = 0; i < query.max_events; i++)
		test_cmd_notify(self->pair.client, self->pair.target, i);
	test_err_notify(EAGAIN, self->pair.client, self->pair.target, 999);
	test_cmd_event_reap(1, self->pair.server, &self->event, 1, 0);
	EXPECT_EQ(0, self->event.cookie);
	test_cmd_notify(self->pair.client, self->pair.target, 1000);
	test_cmd_event_reap((int)query.max_events, self->pair.server, self->many, 300, 0);
	EXPECT_EQ(1, self->many[0].cookie);
	EXPECT_EQ(1000, self->many[query.max_events - 1].cookie);
}

/* The queue becomes longer while it is full, and keeps what is in it. */
TEST_F(event, beyond_the_room_waits_if_an_export_asks_for_more)
{
	struct kxfer_export_add cmd = {
		.size = sizeof(cmd),
		.region = self->pair.server_region,
		.rights = KXFER_RIGHT_READ,
		.length = 1,
		.nr_events = MANY_EVENTS,
	};
	struct kxfer_query query;
	uint32_t i;

	snprintf((char *)cmd.name, sizeof(cmd.name), "deep.%d", getpid());
	test_cmd_query(self->pair.server, &query);
	ASSERT_GT(MANY_EVENTS, query.max_events);
	/* The ring begins in its middle. */
	for (i = 0; i < 100; i++)
		test_cmd_notify(self->pair.client, self->pair.target, i);
	test_cmd_event_reap(100, self->pair.server, self->many, 300, 0);
	for (i = 0; i < query.max_events; i++)
		test_cmd_notify(self->pair.client, self->pair.target, i);
	test_err_notify(EAGAIN, self->pair.client, self->pair.target, 0);
	ASSERT_EQ(0, kx_call(self->pair.server, KXFER_EXPORT_ADD, &cmd));
	for (; i < MANY_EVENTS; i++)
		test_cmd_notify(self->pair.client, self->pair.target, i);
	test_err_notify(EAGAIN, self->pair.client, self->pair.target, 0);
	for (i = 0; i < MANY_EVENTS; i++) {
		test_cmd_event_reap(1, self->pair.server, &self->event, 1, 0);
		ASSERT_EQ(i, self->event.cookie);
	}
}

TEST_F(event, is_announced_by_poll)
{
	struct pollfd poll_fd = { .fd = self->pair.server, .events = POLLPRI };

	EXPECT_EQ(0, poll(&poll_fd, 1, 0));
	test_cmd_notify(self->pair.client, self->pair.target, 1);
	EXPECT_EQ(1, poll(&poll_fd, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(POLLPRI, poll_fd.revents);
	test_cmd_event_reap(1, self->pair.server, &self->event, 1, 0);
	EXPECT_EQ(0, poll(&poll_fd, 1, 0));
}

TEST_F(event, goes_to_the_exporter_alone)
{
	test_cmd_notify(self->pair.client, self->pair.target, 1);
	test_cmd_event_reap(0, self->pair.client, &self->event, 1, 0);
	test_cmd_event_reap(1, self->pair.server, &self->event, 1, KX_TIMEOUT_MS);
}

TEST_F(event, needs_the_right_to_write)
{
	uint32_t target;

	test_cmd_target_open(self->pair.client, self->pair.peer, self->pair.name,
			     KXFER_RIGHT_READ, &target);
	test_err_notify(EACCES, self->pair.client, target, 1);
}

TEST_F(event, is_waited_for_until_the_deadline)
{
	uint64_t began = kx_now_ns();

	test_err_event_reap(ETIMEDOUT, self->pair.server, &self->event, 1, 50);
	EXPECT_LE(50 * 1000000ULL, kx_now_ns() - began);
	EXPECT_GE(5000 * 1000000ULL, kx_now_ns() - began);
}

static void *notify_later(void *argument)
{
	struct kx_pair *pair = argument;

	kx_sleep_ms(30);
	kx_notify(pair->client, pair->target, 5);
	return NULL;
}

TEST_F(event, wakes_who_waits_for_it)
{
	uint64_t began = kx_now_ns();
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, notify_later, &self->pair));
	test_cmd_event_reap(1, self->pair.server, &self->event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(5, self->event.cookie);
	/* The event ends the wait before the deadline. */
	EXPECT_GT(KX_TIMEOUT_MS / 2 * 1000000ULL, kx_now_ns() - began);
	pthread_join(thread, NULL);
}

TEST_F(event, waiting_is_interrupted_by_a_signal)
{
	ASSERT_EQ(0, kx_alarms(30, 0));
	test_err_event_reap(EINTR, self->pair.server, &self->event, 1, KX_TIMEOUT_MS);
}

TEST_F(event, that_cannot_be_stored_stays)
{
	struct kxfer_event *cut = kx_before_hole(sizeof(*cut));

	test_cmd_notify(self->pair.client, self->pair.target, 1);
	test_cmd_notify(self->pair.client, self->pair.target, 2);
	test_err_event_reap(EFAULT, self->pair.server, NULL, 1, 0);
	test_cmd_event_reap(1, self->pair.server, cut, 2, 0);
	EXPECT_EQ(1, cut->cookie);
	test_cmd_event_reap(1, self->pair.server, &self->event, 2, 0);
	EXPECT_EQ(2, self->event.cookie);
}

TEST_F(event, needs_room_in_range)
{
	struct kxfer_event_reap cmd = {
		.size = sizeof(cmd),
		.events = (uintptr_t)&self->event,
		.nr = 1,
		.wait = 2,
	};

	test_err_event_reap(EINVAL, self->pair.server, &self->event, 0, 0);
	test_err_event_reap(EINVAL, self->pair.server, &self->event, 1025, 0);
	EXPECT_EQ(-EINVAL, kx_call(self->pair.server, KXFER_EVENT_REAP, &cmd));
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Rings and processes that end with jobs in flight: what is queued ends soon, what is
 * posted when it is through, and nothing is left behind.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baseline.h"
#include "kselftest_harness.h"
#include "raw_peer.h"
#include "uring.h"

#define NR_JOBS		64		/* more than a lane has slots for NOTIFYs */
#define SOON_MS		5000		/* and not the end of a link whose peer is silent */

FIXTURE(uring)
{
	struct raw_server server;	/* keeps its answers to NOTIFY back */
	struct baseline baseline;	/* with a link */
	uint16_t port;
	int fd;				/* looks on */
};

struct client {
	struct io_uring ring;
	int fd;
	uint32_t target;
};

static int open_client(struct client *client, uint16_t port, unsigned int flags)
{
	uint32_t peer;
	int ret;

	client->fd = kx_open();
	if (client->fd < 0)
		return client->fd;
	ret = kx_peer_open(client->fd, kx_addr(kx_address(), port), &peer) ?:
	      kx_target_open(client->fd, peer, "window", 0, &client->target);
	return ret ?: uring_open(&client->ring, flags);
}

/* Some of them are posted, the others queued. */
static int submit_held(struct client *client)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY, .target = client->target };
	int i;

	for (i = 0; i < NR_JOBS; i++)
		uring_job(&client->ring, client->fd, &job);
	return io_uring_submit(&client->ring) == NR_JOBS ? 0 : -EIO;
}

FIXTURE_SETUP(uring)
{
	struct client first;

	self->port = kx_own_port();
	raw_server_init(&self->server);
	self->server.withhold = true;
	ASSERT_EQ(0, raw_server_start(&self->server, self->port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, open_client(&first, self->port, 0));
	io_uring_queue_exit(&first.ring);
	close(first.fd);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
}

FIXTURE_TEARDOWN(uring)
{
	self->server.withhold = false;
	close(self->fd);
	raw_server_stop(&self->server);
}

/*
 * What is queued ends though the peer says nothing; what is posted goes on until it
 * does, and then nothing is left.
 */
static void expect_end(struct __test_metadata *_metadata, struct _test_data_uring *self)
{
	const char *left;

	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_jobs") == KXFER_WIRE_DATA_SLOTS,
				  SOON_MS * kx_slowness()));
	self->server.withhold = false;
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
}

/* A CQE that is to be made ends the waiting, as a signal does. */
static int notify_by_submit(const struct client *client)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY, .target = client->target };
	struct kxfer_completion done;
	int tries, ret = kx_submit(client->fd, &job, 1);

	if (ret != 1)
		return ret;
	for (tries = 0, ret = -EINTR; ret == -EINTR && tries < 100; tries++)
		ret = kx_reap(client->fd, &done, 1, 1, KX_TIMEOUT_MS);
	return ret == 1 ? done.status : ret;
}

TEST_F_TIMEOUT(uring, ring_is_closed, 60)
{
	struct client client;
	struct kxfer_job job;

	ASSERT_EQ(0, open_client(&client, self->port, 0));
	ASSERT_EQ(0, submit_held(&client));
	io_uring_queue_exit(&client.ring);
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_jobs") == KXFER_WIRE_DATA_SLOTS,
				  SOON_MS * kx_slowness()));
	self->server.withhold = false;
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_jobs") == 0, KX_TIMEOUT_MS));

	/* The session goes on, with another ring and without. */
	ASSERT_EQ(0, uring_open(&client.ring, 0));
	job = (struct kxfer_job) { .op = KXFER_OP_NOTIFY, .target = client.target };
	EXPECT_EQ(0, uring_one(&client.ring, client.fd, &job));
	EXPECT_EQ(0, notify_by_submit(&client));
	io_uring_queue_exit(&client.ring);
	close(client.fd);
	EXPECT_EQ(NULL, baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS));
}

TEST_F_TIMEOUT(uring, ring_and_file_are_closed, 60)
{
	struct client client;

	ASSERT_EQ(0, open_client(&client, self->port, 0));
	ASSERT_EQ(0, submit_held(&client));
	close(client.fd);
	io_uring_queue_exit(&client.ring);
	expect_end(_metadata, self);
}

/* In a process of its own: submits, says so, and waits to be killed. */
static void victim(uint16_t port, unsigned int flags, int ready)
{
	struct client client;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!open_client(&client, port, flags) && !submit_held(&client) &&
	    kx_wait_until(kx_counter(client.fd, "live_jobs") == NR_JOBS, KX_TIMEOUT_MS) &&
	    write(ready, "r", 1) == 1)
		pause();
	_exit(1);
}

static void kill_one(struct __test_metadata *_metadata, struct _test_data_uring *self,
		     unsigned int flags)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		victim(self->port, flags, ready[1]);
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	expect_end(_metadata, self);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	close(ready[0]);
}

TEST_F_TIMEOUT(uring, process_is_killed, 60)
{
	kill_one(_metadata, self, 0);
}

TEST_F_TIMEOUT(uring, process_that_defers_is_killed, 60)
{
	kill_one(_metadata, self, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
}

/* Its thread waits for all it has submitted before it goes. */
TEST_F_TIMEOUT(uring, process_with_a_thread_that_polls_is_killed, 60)
{
	kill_one(_metadata, self, IORING_SETUP_SQPOLL);
}

TEST_F_TIMEOUT(uring, process_that_polls_is_killed, 60)
{
	kill_one(_metadata, self, IORING_SETUP_IOPOLL);
}

static void *submit_in_thread(void *argument)
{
	return submit_held(argument) ? argument : NULL;
}

/* The process still waits for them: nothing is cancelled. */
TEST_F_TIMEOUT(uring, thread_that_submitted_has_gone, 60)
{
	struct client client;
	struct io_uring_cqe cqe;
	pthread_t thread;
	void *failed;
	int i;

	ASSERT_EQ(0, open_client(&client, self->port, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit_in_thread, &client));
	pthread_join(thread, &failed);
	ASSERT_EQ(NULL, failed);
	kx_sleep_ms(600);
	EXPECT_EQ(NR_JOBS, kx_counter(self->fd, "live_jobs"));
	self->server.withhold = false;
	for (i = 0; i < NR_JOBS; i++) {
		ASSERT_EQ(0, uring_wait(&client.ring, &cqe, NULL, KX_TIMEOUT_MS));
		EXPECT_EQ(0, cqe.res);
	}
	io_uring_queue_exit(&client.ring);
	close(client.fd);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Rings and processes that end with jobs in flight: queued jobs end soon, posted jobs when the
 * device is done with them, and nothing is left behind. The same holds for execve(), which
 * waits for the jobs of the process in flight.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/uring.h"

#define NR_JOBS		64		/* more than a lane has slots for NOTIFYs */
#define SOON_MS		5000		/* before the end of a link with a silent peer */
#define RECV_END_MS	1500		/* two checks of the module's watch, on a busy host */
#define CANCEL_CPU_MS	250		/* if io_uring reports that a RECV has to end */

FIXTURE(uring)
{
	struct raw_server server;	/* holds its answers to NOTIFY back */
	struct baseline baseline;	/* taken with the link up */
	uint16_t port;
	int fd;				/* session that only reads counters */
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

/* Some of the jobs are posted, the others queued. */
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
 * Queued jobs end although the peer is silent. Posted jobs stay until the peer answers, and
 * then nothing is left.
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

/* A pending CQE interrupts the wait, like a signal. */
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

	/* The session can still be used, with another ring and without one. */
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

/* Runs in a separate process: submits, reports that, and waits to be killed. */
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

/* The ring's thread waits for all its jobs before it exits. */
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

/* The process still waits for its jobs: none is cancelled. */
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

/* ---- RECVs, which neither a peer nor a link ends ---- */

enum ending {
	BY_EXEC,
	BY_EXEC_WITH_SIGNALS,		/* the signals are caught while execve() waits */
	BY_EXEC_OF_OTHER_THREAD,
	BY_EXIT,
	BY_KILL,
	BY_CLOSE_OF_RING,
	NO_END,				/* a failed execve() is no ending */
};

FIXTURE(recv)
{
	struct baseline baseline;
	int fd;				/* session that only reads counters */
};

FIXTURE_VARIANT(recv)
{
	unsigned int setup;		/* IORING_SETUP_* */
	unsigned int sqe;		/* IOSQE_* */
	enum ending ending;
};

#define RECV(name, setup_, sqe_, ending_)					\
	FIXTURE_VARIANT_ADD(recv, name) { .setup = setup_, .sqe = sqe_, .ending = ending_ }
#define DEFER	(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

RECV(exec, 0, 0, BY_EXEC);
RECV(exec_that_defers, DEFER, 0, BY_EXEC);
RECV(exec_with_a_thread_that_polls, IORING_SETUP_SQPOLL, 0, BY_EXEC);
RECV(exec_that_polls, IORING_SETUP_IOPOLL, 0, BY_EXEC);
RECV(exec_of_what_a_worker_submitted, 0, IOSQE_ASYNC, BY_EXEC);
RECV(exec_with_signals, 0, 0, BY_EXEC_WITH_SIGNALS);
RECV(exec_that_defers_with_signals, DEFER, 0, BY_EXEC_WITH_SIGNALS);
RECV(exec_of_other_thread, 0, 0, BY_EXEC_OF_OTHER_THREAD);
RECV(exec_of_other_thread_that_polls, IORING_SETUP_SQPOLL, 0, BY_EXEC_OF_OTHER_THREAD);
RECV(exit, 0, 0, BY_EXIT);
RECV(exit_with_a_thread_that_polls, IORING_SETUP_SQPOLL, 0, BY_EXIT);
RECV(kill, 0, 0, BY_KILL);
RECV(kill_of_what_a_worker_submitted, 0, IOSQE_ASYNC, BY_KILL);
RECV(kill_that_polls, IORING_SETUP_IOPOLL, 0, BY_KILL);
RECV(close_of_ring, 0, 0, BY_CLOSE_OF_RING);
RECV(close_of_ring_that_defers, DEFER, 0, BY_CLOSE_OF_RING);
RECV(close_of_ring_of_a_worker, 0, IOSQE_ASYNC, BY_CLOSE_OF_RING);
RECV(none_by_a_failed_exec, 0, 0, NO_END);

FIXTURE_SETUP(recv)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
}

FIXTURE_TEARDOWN(recv)
{
	close(self->fd);
}

struct receiver {
	const struct _fixture_variant_recv *variant;
	struct io_uring ring;
	char memory[4096];
	int fd;
};

/* A RECV of a mailbox that stays empty is in flight. */
static void *receive(void *argument)
{
	struct receiver *receiver = argument;
	struct kxfer_job job = {
		.op = KXFER_OP_RECV,
		.length = sizeof(receiver->memory),
	};
	struct io_uring_sqe *sqe;

	receiver->fd = kx_open();
	if (receiver->fd < 0 ||
	    kx_region_add(receiver->fd, receiver->memory, sizeof(receiver->memory),
			  KXFER_REGION_F_WRITE, &job.region) ||
	    kx_mailbox_add(receiver->fd, "empty", 1, 64, &job.target) ||
	    uring_open(&receiver->ring, receiver->variant->setup))
		return NULL;
	sqe = uring_job(&receiver->ring, receiver->fd, &job);
	sqe->flags |= receiver->variant->sqe;
	if (io_uring_submit(&receiver->ring) != 1 ||
	    !kx_wait_until(kx_counter(receiver->fd, "live_jobs") == 1, KX_TIMEOUT_MS))
		return NULL;
	return argument;
}

static void *receive_and_wait(void *argument)
{
	if (!receive(argument))
		_exit(1);
	*(_Atomic bool *)((struct receiver *)argument)->memory = true;
	for (;;)
		pause();
	return NULL;
}

static void caught(int signal)
{
}

static void become(const char *program)
{
	execl(program, program, "exec", (char *)NULL);
}

/* Runs in a separate process. Writes a byte to @ready before its ending begins. */
static void end_with_recv(const struct _fixture_variant_recv *variant, int ready)
{
	static struct receiver receiver;
	struct sigaction action = { .sa_handler = caught };
	uint64_t end;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	receiver.variant = variant;
	if (variant->ending == BY_EXEC_OF_OTHER_THREAD) {
		if (pthread_create(&thread, NULL, receive_and_wait, &receiver) ||
		    !kx_wait_until(*(_Atomic bool *)receiver.memory, KX_TIMEOUT_MS))
			_exit(1);
	} else if (!receive(&receiver)) {
		_exit(1);
	}
	/* The signal is ignored by default, so it does not end the next program. */
	sigaction(SIGWINCH, &action, NULL);
	/* At almost every check the watch finds the process in execve(). */
	end = kx_deadline_ns(RECV_END_MS);
	while (variant->ending == NO_END && kx_now_ns() < end)
		become("/there/is/no/such/program");
	if (write(ready, "r", 1) != 1)
		_exit(1);
	switch (variant->ending) {
	case BY_EXEC:
	case BY_EXEC_WITH_SIGNALS:
	case BY_EXEC_OF_OTHER_THREAD:
		become("/bin/true");
		_exit(1);
	case BY_EXIT:
		_exit(0);
	case BY_CLOSE_OF_RING:
		io_uring_queue_exit(&receiver.ring);
		break;
	case BY_KILL:
	case NO_END:
		break;
	}
	for (;;)
		pause();
}

static uint32_t cpu_ms(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

/* As in kmod/base/compat.h: whether io_uring of this kernel reports that a RECV has to end. */
static bool kernel_cancels(void)
{
	struct utsname name;
	unsigned int major, minor;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 7));
}

static void expect_recv_ends(struct __test_metadata *_metadata, struct _test_data_recv *self,
			     enum ending ending, pid_t pid)
{
	uint32_t end_ms = RECV_END_MS * kx_slowness();
	bool ends = ending != BY_CLOSE_OF_RING && ending != NO_END;
	struct rusage usage = {};
	int status = 0;

	if (ends) {
		bool ended = kx_wait_until(wait4(pid, &status, WNOHANG, &usage) == pid,
					   end_ms);

		EXPECT_TRUE(ended) {
			kill(pid, SIGKILL);
			wait4(pid, &status, 0, &usage);
		}
		printf("# %u ms of a CPU\n", cpu_ms(&usage));
		EXPECT_EQ(ending == BY_KILL ? SIGKILL : 0, status);
		if (kernel_cancels())
			EXPECT_GT(CANCEL_CPU_MS * kx_slowness(), cpu_ms(&usage));
	}
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "live_jobs") == (ending == NO_END),
				  end_ms));
	if (!ends) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
}

TEST_F_TIMEOUT(recv, ends, 60)
{
	const char *left;
	int ready[2], i;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		end_with_recv(variant, ready[1]);
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	close(ready[0]);
	if (variant->ending == BY_KILL)
		ASSERT_EQ(0, kill(pid, SIGKILL));
	for (i = 0; variant->ending == BY_EXEC_WITH_SIGNALS && i < 5; i++) {
		kx_sleep_ms(10);
		kill(pid, SIGWINCH);
	}
	expect_recv_ends(_metadata, self, variant->ending, pid);
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	EXPECT_EQ(NULL, left) {
		TH_LOG("left behind: %s", left);
	}
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: MIT
/* Crew: threads; see crew.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call.h"
#include "coverage.h"
#include "crew.h"
#include "harness/baseline.h"
#include "memory.h"
#include "model.h"
#include "peers/responder.h"
#include "tally.h"

#define SIGNAL_MS	100	/* a longer wait is interrupted */
#define STUCK_MS	120000	/* longer than any call may take */

struct worker {
	pthread_t thread;
	pid_t tid;
	struct actor *actor;
};

static struct worker workers[NR_THREADS];
static uint32_t nr_workers;
static pthread_barrier_t begin, end, sync_point;
static const struct sequence *running;
static uint64_t nurse_seed;
static _Atomic bool idle = true;
static pid_t responder;

/* ---- ops that are not calls ---- */

static void look(const struct op *op)
{
	struct pollfd poller = {
		.fd = MODEL_FD + op->session,
		.events = POLLIN | POLLOUT | POLLPRI,
	};

	poll(&poller, 1, op->args[0] % 3);
}

static void be_a_child(struct actor *actor, const struct op *op)
{
	static const uint8_t kinds[] = {
		OP_SUBMIT, OP_REAP, OP_REGION_ADD, OP_TARGET_OPEN, OP_EXPORT_ADD, OP_INFO,
	};
	uint32_t nr = 1 + op->args[1] % 4;

	actor->child = true;
	while (nr--) {
		struct op call = *op;

		call.kind = kinds[random_below(&actor->random, sizeof(kinds))];
		call_do(actor, &call);
	}
	for (;;)
		pause();
}

/*
 * Forks a process with the same sessions, which makes calls until it is killed at a random
 * moment.
 */
static void breed(struct actor *actor, const struct op *op)
{
	uint32_t i;
	pid_t child;

	for (i = 0; i < NR_SESSIONS; i++)
		model->sessions[i].inexact = true;
	child = fork();
	if (!child)
		be_a_child(actor, op);
	if (child < 0)
		return;
	usleep(op->args[3] % 3000);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	tally->kills++;
}

static bool device_usable(void)
{
	struct kxfer_info_listener listeners[64];
	uint64_t cursor = 0;
	int fd = kx_open(), nr, i;

	if (fd < 0)
		return false;
	nr = kx_info(fd, KXFER_INFO_LISTENERS, listeners, sizeof(*listeners), 64, &cursor);
	close(fd);
	for (i = 0; i < nr; i++)
		if (listeners[i].addr.port == KXFER_PORT && !listeners[i].active)
			return false;
	return nr > 0;
}

static void unplug(void)
{
	const char *netdev = getenv("KXFER_NETDEV") ?: "dummy0";
	char device[64], provider[8];

	/* The responder would keep the device open. */
	crew_hush();
	/* Read before the removal, because they cannot be seen after it. */
	snprintf(device, sizeof(device), "%s", kx_device());
	snprintf(provider, sizeof(provider), "%s", kx_provider());
	if (baseline_command("rdma link del %s", device) ||
	    baseline_command("rdma link add %s type %s netdev %s", device, provider, netdev)) {
		model_find("the device cannot be removed and added");
		return;
	}
	tally->unplugs++;
	if (!kx_wait_until(device_usable(), 20000))
		model_find("listeners do not come back with the device");
}

/* ---- workers ---- */

/* Everything random in an op is derived from its arguments, so that it can be reproduced. */
static void do_op(struct actor *actor, const struct op *op)
{
	actor->random = random_of((uint64_t)op->args[1] << 32 | op->args[2], op->args[3]);
	switch (op->kind) {
	case OP_OPEN:
		model_open(op->session);
		break;
	case OP_CLOSE:
		model_close(op->session);
		break;
	case OP_POLL:
		look(op);
		break;
	case OP_READ_RING:
		model_read_ring(op->session, op->args[0], op->args[1]);
		break;
	case OP_REMAP:
		memory_remap(&actor->random, MEMORY_RACING + op->args[0] % MEMORY_NR_RACING);
		break;
	case OP_FORK:
		breed(actor, op);
		break;
	case OP_UNPLUG:
		unplug();
		break;
	default:
		call_do(actor, op);
	}
}

static void run_sequence(uint32_t me)
{
	struct actor *actor = workers[me].actor;
	uint32_t i;

	for (i = 0; i < running->nr; i++) {
		const struct op *op = &running->ops[i];

		if (op->kind == OP_SYNC) {
			pthread_barrier_wait(&sync_point);
		} else if (op->thread % nr_workers == me) {
			actor->since_ns = kx_now_ns();
			actor->now = i + 1;
			do_op(actor, op);
			actor->now = 0;
		}
	}
}

static void *work(void *argument)
{
	uint32_t me = (uintptr_t)argument;

	workers[me].tid = gettid();
	coverage_start(me);
	for (;;) {
		pthread_barrier_wait(&begin);
		run_sequence(me);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

/* ---- the thread that watches the workers ---- */

static void show_stack(uint32_t me)
{
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", workers[me].tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		printf("#   %s", line);
	if (file)
		fclose(file);
}

static void give_up(uint32_t me, uint32_t number)
{
	printf("# thread %u is stuck in: ", me);
	op_write(stdout, &running->ops[number - 1]);
	show_stack(me);
	printf("not ok 1 every call returns\n");
	fflush(stdout);
	_exit(1);
}

static void look_after(uint32_t me, bool disturb)
{
	struct actor *actor = workers[me].actor;
	uint32_t number = actor->now;
	uint64_t ms = (kx_now_ns() - actor->since_ns) / 1000000;

	if (!number)
		return;
	if (ms > STUCK_MS && actor->now == number)
		give_up(me, number);
	if (ms > SIGNAL_MS || disturb)
		pthread_kill(workers[me].thread, SIGUSR1);
}

static void *nurse(void *argument)
{
	struct random random = random_of(nurse_seed, 1);
	uint32_t i;

	for (;;) {
		usleep(500 + random_below(&random, 1000));
		if (idle)
			continue;
		for (i = 0; i < nr_workers; i++)
			look_after(i, nr_workers > 1 && random_one_in(&random, 50));
		if (nr_workers > 1)
			memory_remap(&random, MEMORY_RACING +
					      random_below(&random, MEMORY_NR_RACING));
	}
	return NULL;
}

static void ignore(int signal)
{
}

/** crew_start() - start the threads; @seed: of the watching thread. Return: 0 or -errno */
int crew_start(uint32_t nr_threads, uint64_t seed)
{
	struct sigaction action = { .sa_handler = ignore };
	pthread_t thread;
	uint32_t i;
	int ret;

	sigaction(SIGUSR1, &action, NULL);
	nr_workers = nr_threads;
	nurse_seed = seed;
	pthread_barrier_init(&begin, NULL, nr_threads + 1);
	pthread_barrier_init(&end, NULL, nr_threads + 1);
	pthread_barrier_init(&sync_point, NULL, nr_threads);
	for (i = 0; i < nr_threads; i++) {
		workers[i].actor = calloc(1, sizeof(struct actor));
		if (!workers[i].actor)
			return -ENOMEM;
		ret = call_prepare(workers[i].actor, i) ?:
		      -pthread_create(&workers[i].thread, NULL, work, (void *)(uintptr_t)i);
		if (ret)
			return ret;
	}
	return -pthread_create(&thread, NULL, nurse, NULL);
}

/**
 * crew_respond() - start a responder for dedicated connections, if there is none
 *
 * Must be called between sequences, because the responder inherits all open files; no session
 * is open then.
 */
void crew_respond(void)
{
	if (model->responder)
		return;
	crew_hush();
	model->responder = responder_spawn(&responder);
}

/** crew_hush() - end the responder */
void crew_hush(void)
{
	model->responder = 0;
	responder_kill(&responder);
}

/** crew_run() - run a sequence to its end */
void crew_run(const struct sequence *sequence)
{
	running = sequence;
	idle = false;
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	idle = true;
}

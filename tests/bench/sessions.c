// SPDX-License-Identifier: GPL-2.0
/*
 * Many sessions on one link, by the wall clock: what they do together, and what one
 * does to another. Each process has a session of its own.
 *
 *	open			PEER_OPEN that makes a link, one after the other
 *	rate N DEPTH [MS]	READs of 64 bytes of N processes together
 *	beside [MS]		READs of 64 bytes alone, then beside a session that
 *				keeps WRITEs of 1 MiB queued; and those alone
 *
 * For a guest with two CPUs on a host that has nothing else to do.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define LENGTH		(4u * 1024 * 1024)
#define PIECE		(1024u * 1024)
#define NR_BULK		4096
#define MAX_DEPTH	256
#define MAX_WORKERS	256
#define MAX_SAMPLES	200000
#define NR_OPENS	20

/* What workers and their parent tell each other. */
struct shared {
	uint32_t ready;
	bool go;
	bool stop;
	uint64_t nr[MAX_WORKERS];
};

static struct shared *shared;
static struct rig server;

static void die(const char *what, int error)
{
	fprintf(stderr, "sessions: %s: %s\n", what, strerror(-error));
	exit(1);
}

static struct rig client(uint64_t length)
{
	struct rig rig = server;
	int ret;

	rig.client = -1;
	rig.options.length = length;
	ret = rig_open_client(&rig);
	if (ret)
		die("open", ret);
	return rig;
}

/* SUBMIT that waits for a completion of those in flight. Return: completions. */
static uint32_t submit(const struct rig *rig, const struct kxfer_job *jobs, uint32_t nr,
		       struct kxfer_completion *done, uint32_t room)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.nr_jobs = nr,
		.jobs = (uintptr_t)jobs,
		.stride = sizeof(*jobs),
		.completions = (uintptr_t)done,
		.nr_completions = room,
		.wait = 1,
	};
	uint32_t i;
	int ret = kx_call(rig->client, KXFER_SUBMIT, &cmd);

	if (ret || cmd.accepted != nr)
		die("submit", ret ?: -(int)cmd.error);
	for (i = 0; i < cmd.reaped; i++)
		if (done[i].status)
			die("job", done[i].status);
	return cmd.reaped;
}

static void wait_for_go(void)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->go, __ATOMIC_SEQ_CST))
		usleep(1000);
}

static void read_on(uint32_t number, uint32_t depth)
{
	struct kxfer_completion done[MAX_DEPTH];
	struct rig rig = client(PIECE);
	struct kxfer_job jobs[MAX_DEPTH];
	uint32_t left = depth, i;

	for (i = 0; i < depth; i++)
		jobs[i] = rig_job(&rig, KXFER_OP_READ, i * 64, i * 64, 64);
	wait_for_go();
	while (!__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST)) {
		left = submit(&rig, jobs, left, done, depth);
		__atomic_add_fetch(&shared->nr[number], left, __ATOMIC_RELAXED);
	}
	/* What is in flight ends with the session. */
	close(rig.client);
}

static void write_on(uint32_t number)
{
	static struct kxfer_completion done[NR_BULK];
	static struct kxfer_job jobs[NR_BULK];
	struct rig rig = client(LENGTH);
	uint32_t left = NR_BULK, i, n;
	int ret;

	for (i = 0; i < NR_BULK; i++)
		jobs[i] = rig_job(&rig, KXFER_OP_WRITE, 0, 0, PIECE);
	wait_for_go();
	while (left) {
		n = left < 256 ? left : 256;
		if (kx_submit(rig.client, jobs, n) != (int)n)
			die("submit", -EAGAIN);
		left -= n;
	}
	while (!__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST)) {
		ret = kx_reap(rig.client, done, 16, 1, RIG_WAIT_MS);
		if (ret <= 0 || done[0].status || kx_submit(rig.client, jobs, ret) != ret)
			die("WRITE", ret > 0 ? done[0].status : ret);
		__atomic_add_fetch(&shared->nr[number], ret, __ATOMIC_RELAXED);
	}
}

static pid_t start(uint32_t number, uint32_t depth)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(server.server);
	if (depth)
		read_on(number, depth);
	else
		write_on(number);
	_exit(0);
}

static uint64_t count(uint32_t nr)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < nr; i++)
		sum += __atomic_load_n(&shared->nr[i], __ATOMIC_RELAXED);
	return sum;
}

static void go(uint32_t nr)
{
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < nr)
		usleep(1000);
	__atomic_store_n(&shared->go, true, __ATOMIC_SEQ_CST);
}

static void end(const pid_t *pids, uint32_t nr)
{
	uint32_t i;

	__atomic_store_n(&shared->stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < nr; i++) {
		usleep(1000);
		waitpid(pids[i], NULL, 0);
	}
}

static void rate(uint32_t nr, uint32_t depth, uint32_t ms)
{
	uint64_t before, after, began, ended;
	pid_t pids[MAX_WORKERS];
	uint32_t i;

	memset(shared, 0, sizeof(*shared));
	for (i = 0; i < nr; i++)
		pids[i] = start(i, depth);
	go(nr);
	kx_sleep_ms(ms / 5);
	before = count(nr);
	began = kx_now_ns();
	kx_sleep_ms(ms);
	after = count(nr);
	ended = kx_now_ns();
	printf("%3u sessions, %3u deep: %9.0f READs/s, %llu lanes\n", nr, depth,
	       (after - before) * 1e9 / (ended - began),
	       (unsigned long long)kx_counter(server.server, "live_lanes"));
	end(pids, nr);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sample(const char *what, uint32_t ms)
{
	static uint64_t took[MAX_SAMPLES];
	struct kxfer_completion done;
	struct rig rig = client(PIECE);
	struct kxfer_job job = rig_job(&rig, KXFER_OP_READ, 0, 0, 64);
	uint64_t stop = kx_deadline_ns(ms);
	uint32_t nr = 0;

	while (nr < MAX_SAMPLES && kx_now_ns() < stop) {
		submit(&rig, &job, 1, &done, 1);
		took[nr++] = done.completed_ns - done.submitted_ns;
	}
	qsort(took, nr, sizeof(*took), by_size);
	printf("READ 64 B %-12s p50 %8.1f us  p99 %8.1f us  (%u)\n", what,
	       took[nr / 2] / 1e3, took[nr * 99ull / 100] / 1e3, nr);
	close(rig.client);
}

static void beside(uint32_t ms)
{
	uint64_t before, began;
	double alone;
	pid_t pid;

	sample("alone", ms);
	memset(shared, 0, sizeof(*shared));
	pid = start(0, 0);
	go(1);
	kx_sleep_ms(ms / 5);
	before = count(1);
	began = kx_now_ns();
	kx_sleep_ms(ms);
	alone = (count(1) - before) * 1e9 / (kx_now_ns() - began);
	printf("WRITE 1 MiB alone  %8.1f a second, one takes %.1f us\n", alone, 1e6 / alone);
	before = count(1);
	began = kx_now_ns();
	sample("beside bulk", ms);
	printf("WRITE 1 MiB beside %8.1f a second\n",
	       (count(1) - before) * 1e9 / (kx_now_ns() - began));
	end(&pid, 1);
}

static void open_links(void)
{
	uint64_t began;
	uint32_t i;
	int fd = kx_open(), ret;

	for (i = 0; i < NR_OPENS; i++) {
		/* Another service type is another link. */
		struct kxfer_peer_open cmd = {
			.size = sizeof(cmd),
			.remote = kx_addr(kx_address(), KXFER_PORT),
			.tos = i * 4,
			.timeout_ms = KX_TIMEOUT_MS,
		};

		began = kx_now_ns();
		ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);
		if (ret)
			die("PEER_OPEN", ret);
		printf("PEER_OPEN %8.1f us\n", (kx_now_ns() - began) / 1e3);
	}
	printf("%llu lanes\n", (unsigned long long)kx_counter(fd, "live_lanes"));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct rig_options options = { .length = LENGTH };
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int ret;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	setlinebuf(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ret = rig_open_server(&server, &options);
	if (ret || shared == MAP_FAILED)
		die("server", ret);
	if (!strcmp(what, "open"))
		open_links();
	else if (!strcmp(what, "rate") && argc > 3)
		rate(atoi(argv[2]), atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 3000);
	else if (!strcmp(what, "beside"))
		beside(argc > 2 ? atoi(argv[2]) : 5000);
	else
		die("usage: open | rate N DEPTH [ms] | beside [ms]", -EINVAL);
	return 0;
}

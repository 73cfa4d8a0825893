// SPDX-License-Identifier: GPL-2.0
/*
 * Many sessions on one link, measured by the wall clock: their total rate, and the effect of
 * one on another. Each process has a session of its own.
 *
 *	open				PEER_OPENs that make a link each, one after the other
 *	rate N M DEPTH ROUNDS MS	READs of 64 bytes of N processes, and of M
 *	threads N M DEPTH ROUNDS MS	READs of 64 bytes of N threads of a session, and of M
 *	beside ROUNDS MS		READs of 64 bytes alone, then next to a session that
 *					keeps WRITEs of 1 MiB queued; then those WRITEs alone
 *	busy ROUNDS MS			a process that computes, alone on a CPU, then with a
 *					process there whose READs of 64 bytes, one at a time,
 *					sleep until they are done; then with one whose READs poll
 *
 * A round is A B B A or A B C C B A, blocks of MS milliseconds. All but `open` print lines
 * "FIGURE ROUND VALUE", one for each block.
 *
 * For a guest with two CPUs on a host that has nothing else to do.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rigs/rig.h"

#define LENGTH		(4u * 1024 * 1024)
#define PIECE		(1024u * 1024)
#define SMALL		64u
#define NR_BULK		4096
#define MAX_DEPTH	256
#define MAX_WORKERS	256
#define MAX_THREADS	64
#define TAKE_MS		50	/* then a thread looks whether it is to stop */
#define TURNS		1000	/* of a loop that computes, counted as one */
#define MAX_LANES	64
#define MAX_SAMPLES	200000
#define NR_OPENS	20
#define START_MS	120000	/* for all workers, on a slow machine */

/* shared by the workers and their parent */
struct shared {
	uint32_t ready;
	uint32_t go;
	bool stop;
	uint64_t nr[MAX_WORKERS];
};

static struct shared *shared;
static struct rig server;
static uint32_t wait_flags;	/* KXFER_WAIT_F_* of SUBMITs */

static void die(const char *what, int error)
{
	fprintf(stderr, "sessions: %s: %s\n", what, strerror(-error));
	exit(1);
}

/* Not inherited: pinned pages would be copied for each child. */
static void keep_from_children(const struct buffer *buffer)
{
	if (madvise(buffer->mapping, buffer->mapped, MADV_DONTFORK))
		die("MADV_DONTFORK", -errno);
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
	keep_from_children(&rig.here);
	return rig;
}

static void check(const struct kxfer_completion *done, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (done[i].status)
			die("job", done[i].status);
}

/* SUBMIT that waits for one completion of the jobs in flight. Return: completions. */
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
		.flags = wait_flags,
	};
	int ret = kx_call(rig->client, KXFER_SUBMIT, &cmd);

	if (ret || cmd.accepted != nr)
		die("submit", ret ?: -(int)cmd.error);
	check(done, cmd.reaped);
	return cmd.reaped;
}

/* For a thread whose completions were taken by others of its session. Return: completions. */
static uint32_t take(const struct rig *rig, struct kxfer_completion *done, uint32_t room)
{
	int ret = kx_reap(rig->client, done, room, 1, TAKE_MS);

	if (ret == -ETIMEDOUT)
		return 0;
	if (ret < 0)
		die("REAP", ret);
	check(done, ret);
	return ret;
}

static long futex(uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* Sleep, so that workers started later get the CPUs. */
static void wait_for_go(void)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->go, __ATOMIC_SEQ_CST))
		futex(&shared->go, FUTEX_WAIT, 0);
}

/* Each completion makes room for a job, whichever thread of the session takes it. */
static void keep_reading(const struct rig *rig, uint32_t number, uint32_t depth)
{
	struct kxfer_completion done[MAX_DEPTH];
	struct kxfer_job jobs[MAX_DEPTH];
	uint32_t left = depth, i;

	for (i = 0; i < depth; i++)
		jobs[i] = rig_job(rig, KXFER_OP_READ, i * SMALL, i * SMALL, SMALL);
	wait_for_go();
	while (!__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST)) {
		left = left ? submit(rig, jobs, left, done, depth) : take(rig, done, depth);
		__atomic_add_fetch(&shared->nr[number], left, __ATOMIC_RELAXED);
	}
}

static void read_on(uint32_t number, uint32_t depth)
{
	struct rig rig = client(MAX_DEPTH * SMALL);

	keep_reading(&rig, number, depth);
	/* Jobs in flight end with the session. */
	close(rig.client);
}

struct reader {
	pthread_t thread;
	const struct rig *rig;
	uint32_t number;
	uint32_t depth;
};

static void *read_in_thread(void *of)
{
	const struct reader *reader = of;

	keep_reading(reader->rig, reader->number, reader->depth);
	return NULL;
}

static void read_together(uint32_t nr, uint32_t depth)
{
	struct rig rig = client(MAX_DEPTH * SMALL);
	struct reader readers[MAX_THREADS];
	uint32_t i;
	int ret;

	for (i = 0; i < nr; i++) {
		readers[i] = (struct reader) { .rig = &rig, .number = i, .depth = depth };
		ret = pthread_create(&readers[i].thread, NULL, read_in_thread, &readers[i]);
		if (ret)
			die("thread", -ret);
	}
	for (i = 0; i < nr; i++)
		pthread_join(readers[i].thread, NULL);
	close(rig.client);
}

static void stay_on_first_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("affinity", -errno);
}

static void read_on_first_cpu(uint32_t number, uint32_t depth)
{
	stay_on_first_cpu();
	read_on(number, depth);
}

static void compute_on_first_cpu(uint32_t number, uint32_t turns)
{
	volatile uint32_t left;

	stay_on_first_cpu();
	wait_for_go();
	while (!__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST)) {
		for (left = turns; left; left--)
			;
		__atomic_add_fetch(&shared->nr[number], 1, __ATOMIC_RELAXED);
	}
}

static void write_on(uint32_t number, uint32_t nr_jobs)
{
	static struct kxfer_completion done[NR_BULK];
	static struct kxfer_job jobs[NR_BULK];
	struct rig rig = client(LENGTH);
	uint32_t left = nr_jobs, i, n;
	int ret;

	for (i = 0; i < nr_jobs; i++)
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

/* Start a worker: a process that does @work, of @a and @b. */
static pid_t start(void (*work)(uint32_t a, uint32_t b), uint32_t a, uint32_t b)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork", -errno);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(server.server);
	work(a, b);
	_exit(0);
}

static uint64_t count_of(uint32_t number)
{
	return __atomic_load_n(&shared->nr[number], __ATOMIC_RELAXED);
}

static uint64_t count(uint32_t nr)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < nr; i++)
		sum += count_of(i);
	return sum;
}

static uint32_t nr_ready(void)
{
	return __atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST);
}

/* Wait until the workers have opened all they need. A worker that ends has printed why. */
static void wait_for_workers(uint32_t nr)
{
	if (!kx_wait_until(nr_ready() == nr || waitpid(-1, NULL, WNOHANG) > 0, START_MS) ||
	    nr_ready() != nr)
		die("workers", -ECHILD);
}

static void go(void)
{
	__atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
	futex(&shared->go, FUTEX_WAKE, MAX_WORKERS);
}

static void end(const pid_t *pids, uint32_t nr)
{
	int status;
	uint32_t i;

	__atomic_store_n(&shared->stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < nr; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			die("worker", -ECHILD);
}

/* Sum over the data lanes that this node initiated; only these post jobs. */
static uint32_t take_lanes(struct kxfer_info_lane *lanes)
{
	uint64_t cursor = 0;
	int nr = kx_info(server.server, KXFER_INFO_LANES, lanes, sizeof(*lanes), MAX_LANES,
			 &cursor);

	if (nr < 0)
		die("INFO", nr);
	return nr;
}

static uint32_t nr_lanes_used(const struct kxfer_info_lane *before)
{
	struct kxfer_info_lane after[MAX_LANES];
	uint32_t nr = take_lanes(after), used = 0, i;

	for (i = 0; i < nr; i++)
		used += after[i].index && after[i].nr_wr != before[i].nr_wr;
	return used;
}

/* Counts as the RDMA core reports them. */
static uint32_t nr_qps(void)
{
	uint32_t nr = 0, n;
	char line[256];
	char *at;
	FILE *rdma = popen("rdma resource show", "re");

	while (rdma && fgets(line, sizeof(line), rdma)) {
		at = strstr(line, " qp ");
		if (at && sscanf(at, " qp %u", &n) == 1)
			nr += n;
	}
	if (!rdma || pclose(rdma) || !nr)
		die("rdma resource show", -EIO);
	return nr;
}

/* Each run uses the same number of sessions, so their ids are consecutive: see flow.c. */
static void rate_block(uint32_t round, uint32_t nr, uint32_t depth, uint32_t ms, bool threads)
{
	struct kxfer_info_lane lanes[MAX_LANES] = {};
	uint64_t before, after, began, ended;
	uint32_t nr_pids = threads ? 1 : nr, i;
	pid_t pids[MAX_WORKERS];

	memset(shared, 0, sizeof(*shared));
	if (threads)
		pids[0] = start(read_together, nr, depth);
	for (i = 0; !threads && i < nr; i++)
		pids[i] = start(read_on, i, depth);
	wait_for_workers(nr);
	printf("qps.%u %u %u\n", nr, round, nr_qps());
	go();
	kx_sleep_ms(ms / 5);
	take_lanes(lanes);
	before = count(nr);
	began = kx_now_ns();
	kx_sleep_ms(ms);
	after = count(nr);
	ended = kx_now_ns();
	printf("rate.%u %u %.1f\n", nr, round, (after - before) * 1e9 / (ended - began));
	printf("lanes.%u %u %u\n", nr, round, nr_lanes_used(lanes));
	end(pids, nr_pids);
}

/* A higher priority, to look at the clock in time; workers do not inherit it. */
static void go_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		die("SCHED_FIFO", -errno);
}

static void rate(uint32_t a, uint32_t b, uint32_t depth, uint32_t rounds, uint32_t ms, bool threads)
{
	/* holds the link while no block runs */
	struct rig keep = client(PIECE);
	uint32_t i;

	go_first();
	for (i = 0; i < rounds; i++) {
		rate_block(i, a, depth, ms, threads);
		rate_block(i, b, depth, ms, threads);
		rate_block(i, b, depth, ms, threads);
		rate_block(i, a, depth, ms, threads);
	}
	close(keep.client);
}

/* The first worker computes. With @what other than "alone" the second reads, on the same CPU. */
static void busy_block(uint32_t round, const char *what, uint32_t ms)
{
	uint32_t nr = strcmp(what, "alone") ? 2 : 1;
	uint64_t turns, reads, began, took;
	pid_t pids[2];

	memset(shared, 0, sizeof(*shared));
	wait_flags = strcmp(what, "sleep") ? 0 : KXFER_WAIT_F_SLEEP;
	pids[0] = start(compute_on_first_cpu, 0, TURNS);
	if (nr > 1)
		pids[1] = start(read_on_first_cpu, 1, 1);
	wait_for_workers(nr);
	go();
	kx_sleep_ms(ms / 5);
	turns = count_of(0);
	reads = count_of(1);
	began = kx_now_ns();
	kx_sleep_ms(ms);
	turns = count_of(0) - turns;
	reads = count_of(1) - reads;
	took = kx_now_ns() - began;
	printf("rate.busy.%s %u %.1f\n", what, round, turns * 1e9 / took);
	if (nr > 1)
		printf("rate.reads.%s %u %.1f\n", what, round, reads * 1e9 / took);
	end(pids, nr);
}

static void busy(uint32_t rounds, uint32_t ms)
{
	static const char *const order[] = { "alone", "sleep", "poll", "poll", "sleep", "alone" };
	struct rig keep = client(PIECE);
	uint32_t i, k;

	go_first();
	for (i = 0; i < rounds; i++)
		for (k = 0; k < sizeof(order) / sizeof(order[0]); k++)
			busy_block(i, order[k], ms);
	close(keep.client);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Measured by the caller: from the call to its return. */
static void sample(const struct rig *rig, const char *what, uint32_t round, uint32_t ms)
{
	static uint64_t took[MAX_SAMPLES];
	struct kxfer_job job = rig_job(rig, KXFER_OP_READ, 0, 0, SMALL);
	uint64_t stop = kx_deadline_ns(ms), began;
	struct kxfer_completion done;
	uint32_t nr = 0;

	do {
		began = kx_now_ns();
		submit(rig, &job, 1, &done, 1);
		took[nr++] = kx_now_ns() - began;
	} while (nr < MAX_SAMPLES && kx_now_ns() < stop);
	qsort(took, nr, sizeof(*took), by_size);
	printf("p50.%s %u %llu\n", what, round, (unsigned long long)took[nr / 2]);
	printf("p99.%s %u %llu\n", what, round, (unsigned long long)took[nr * 99ull / 100]);
	printf("samples.%s %u %u\n", what, round, nr);
}

/* @small: session that reads meanwhile, or NULL */
static void bulk_block(const struct rig *small, uint32_t round, uint32_t ms)
{
	uint64_t before = count(1), began = kx_now_ns();
	const char *what = small ? "beside" : "alone";

	if (small)
		sample(small, what, round, ms);
	else
		kx_sleep_ms(ms);
	printf("bulk.%s %u %.3f\n", what, round, (count(1) - before) * 1e9 / (kx_now_ns() - began));
}

static void beside_round(const struct rig *small, uint32_t round, uint32_t ms)
{
	pid_t pid;

	sample(small, "alone", round, ms);
	memset(shared, 0, sizeof(*shared));
	pid = start(write_on, 0, NR_BULK);
	wait_for_workers(1);
	go();
	kx_sleep_ms(ms / 5);
	bulk_block(NULL, round, ms);
	bulk_block(small, round, ms);
	bulk_block(small, round, ms);
	bulk_block(NULL, round, ms);
	end(&pid, 1);
	sample(small, "alone", round, ms);
}

static void beside(uint32_t rounds, uint32_t ms)
{
	struct rig small = client(PIECE);
	uint32_t i;

	for (i = 0; i < rounds; i++)
		beside_round(&small, i, ms);
	close(small.client);
}

static void open_links(void)
{
	uint64_t began;
	uint32_t i;
	int fd = kx_open(), ret;

	for (i = 0; i < NR_OPENS; i++) {
		/* A different service type makes a separate link. */
		struct kxfer_peer_open cmd = {
			.size = sizeof(cmd),
			.remote = kx_addr(kx_address(), KXFER_PORT),
			.flags = KXFER_PEER_F_TOS,
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
	keep_from_children(&server.there);
	if (!strcmp(what, "open"))
		open_links();
	else if ((!strcmp(what, "rate") || !strcmp(what, "threads")) && argc == 7)
		rate(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6]),
		     !strcmp(what, "threads"));
	else if (!strcmp(what, "busy") && argc == 4)
		busy(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(what, "beside") && argc == 4)
		beside(atoi(argv[2]), atoi(argv[3]));
	else
		die("usage: open | rate|threads N M DEPTH ROUNDS MS | beside|busy ROUNDS MS",
		    -EINVAL);
	return 0;
}

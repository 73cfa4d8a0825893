// SPDX-License-Identifier: GPL-2.0
/*
 * Every accepted job completes exactly once, with a possible status, and its data is right,
 * while links break under it:
 *
 *	once [--seed N] [--jobs N] [--duration SECONDS] [--break SECONDS]
 *
 * Without arguments they are taken from KXFER_FUZZ_ARGUMENTS, separated by blanks. A number of
 * jobs sets no time limit, unless a duration is given too. --break sets the seconds between two
 * breaks of a link; 0: never.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/storm.h"
#include "harness/baseline.h"
#include "harness/fault.h"
#include "harness/words.h"
#include "kselftest_harness.h"
#include "once/worker.h"

#define INJECT_MS	5000		/* time for an armed fault to happen */
#define TELL_MS		30000		/* time between two lines of progress */

static struct {
	uint64_t seed;
	uint64_t jobs;		/* both limits end the run; 0: no limit */
	uint64_t seconds;
	uint64_t break_s;
} wanted = { .break_s = 4 };

/* ---- breaking links ---- */

FIXTURE(once)
{
	struct rig rig;
	struct shared *shared;
	struct baseline baseline;
	pid_t workers[NR_WORKERS];
	uint32_t nr_replugs;
	uint32_t nr_injected;
	unsigned int seed;
};

static bool is_listening(int fd)
{
	struct kxfer_info_listener listener;
	uint64_t cursor = 0;

	return kx_info(fd, KXFER_INFO_LISTENERS, &listener, sizeof(listener), 1, &cursor) == 1 &&
	       listener.active;
}

/* Removes the device and adds it again. Return: NULL, or what is wrong. */
static const char *replug(FIXTURE_DATA(once) *self)
{
	const char *netdev = getenv("KXFER_NETDEV") ?: "dummy0";

	if (baseline_command("rdma link del %s", kx_device()))
		return "the device cannot be removed";
	self->nr_replugs++;
	if (kx_counter(self->rig.server, "live_mrs") ||
	    kx_counter(self->rig.server, "live_mappings"))
		return "something is left of a device that was removed";
	if (baseline_command("rdma link add %s type %s netdev %s", kx_device(),
			     kx_provider(), netdev))
		return "the device cannot be made again";
	if (!kx_wait_until(is_listening(self->rig.server), BACK_MS))
		return "the listener does not come back with its device";
	return NULL;
}

/* Makes one post or one completion fail; each ends one link. */
static const char *inject(FIXTURE_DATA(once) *self)
{
	const char *site = rand_r(&self->seed) % 2 ? "LANE_POST_SEND" : "CHAIN_DONE";
	struct fault_counts counts = {};

	if (fault_reset() || fault_arm(site, 1 + rand_r(&self->seed) % 100))
		return "no fault can be armed";
	kx_wait_until(fault_counts(site, &counts) || counts.injected, INJECT_MS);
	fault_arm(site, 0);
	fault_counts(site, &counts);
	fault_reset();
	self->nr_injected += counts.injected > 0;
	return NULL;
}

static void break_link(FIXTURE_DATA(once) *self)
{
	struct shared *shared = self->shared;
	const char *wrong;

	shared->nr_begun++;
	if (fault_available() && rand_r(&self->seed) % 3)
		wrong = inject(self);
	else
		wrong = replug(self);
	shared->over_ns = kx_now_ns();
	shared->nr_over++;
	if (wrong)
		worker_fault(shared, "break %u: %s", shared->nr_begun, wrong);
}

/* ---- the run ---- */

static struct count sum(const struct shared *shared)
{
	struct count all = {};
	uint32_t i, op;

	for (i = 0; i < NR_WORKERS; i++) {
		const struct count *count = &shared->counts[i];

		for (op = KXFER_OP_NOP; op <= KXFER_OP_RECV; op++)
			all.accepted[op] += count->accepted[op];
		all.verified += count->verified;
		all.bytes += count->bytes;
		all.failed += count->failed;
		all.refused += count->refused;
		all.messages += count->messages;
		all.long_messages += count->long_messages;
		all.full += count->full;
		all.tides += count->tides;
	}
	return all;
}

/* Number of jobs that the module has accepted. */
static uint64_t jobs_of(const struct count *all)
{
	uint64_t jobs = 0;
	uint32_t op;

	for (op = KXFER_OP_NOP; op <= KXFER_OP_RECV; op++)
		jobs += all->accepted[op];
	return jobs;
}

static void tell(struct __test_metadata *_metadata, FIXTURE_DATA(once) *self, uint64_t began)
{
	struct count all = sum(self->shared);
	uint64_t jobs = jobs_of(&all);
	uint64_t ms = (kx_now_ns() - began) / 1000000;

	TH_LOG("%llu jobs in %llu s, %llu a second; %llu refused, %llu failed",
	       LLU(jobs), LLU(ms / 1000), LLU(jobs * 1000 / (ms ?: 1)), LLU(all.refused),
	       LLU(all.failed));
	TH_LOG("%llu NOPs, %llu READs, %llu WRITEs; %llu of these verified, %llu bytes",
	       LLU(all.accepted[KXFER_OP_NOP]), LLU(all.accepted[KXFER_OP_READ]),
	       LLU(all.accepted[KXFER_OP_WRITE]), LLU(all.verified), LLU(all.bytes));
	TH_LOG("%llu SENDs, %llu found no room; %llu RECVs; %llu messages came whole, %llu long",
	       LLU(all.accepted[KXFER_OP_SEND]), LLU(all.full),
	       LLU(all.accepted[KXFER_OP_RECV]), LLU(all.messages), LLU(all.long_messages));
	TH_LOG("%u breaks: %u of the device, %u injected; targets opened %llu times",
	       self->nr_replugs + self->nr_injected, self->nr_replugs, self->nr_injected,
	       LLU(all.tides));
}

/* Number of workers still running; an unexpected exit of a worker is a fault. */
static uint32_t look_at_workers(FIXTURE_DATA(once) *self)
{
	uint32_t left = 0, i;
	int status;

	for (i = 0; i < NR_WORKERS; i++) {
		if (self->workers[i] <= 0)
			continue;
		if (waitpid(self->workers[i], &status, WNOHANG) != self->workers[i]) {
			left++;
			continue;
		}
		self->workers[i] = 0;
		if (status)
			worker_fault(self->shared, "worker %u ended with status %x", i, status);
	}
	return left;
}

static void stop_workers(FIXTURE_DATA(once) *self)
{
	uint32_t i;

	self->shared->stop = true;
	if (!kx_wait_until(!look_at_workers(self), 2 * STUCK_MS * kx_slowness()))
		worker_fault(self->shared, "workers do not end");
	for (i = 0; i < NR_WORKERS; i++)
		if (self->workers[i] > 0) {
			kill(self->workers[i], SIGKILL);
			waitpid(self->workers[i], NULL, 0);
		}
}

FIXTURE_SETUP(once)
{
	struct rig_options options = {
		.length = 2 * NR_WORKERS * SPACE,
		.there = BUFFER_SHARED,
	};

	self->rig.server = -1;
	self->rig.client = -1;
	if (geteuid())
		SKIP(return, "needs root");
	self->seed = wanted.seed;
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	ASSERT_EQ(0, rig_open_server(&self->rig, &options));
	/* The state without a link and with a listener. */
	ASSERT_EQ(NULL, replug(self));
	self->nr_replugs = 0;
	ASSERT_TRUE(kx_wait_until(!kx_counter(self->rig.server, "live_lanes"), BACK_MS));
	ASSERT_EQ(0, baseline_take(self->rig.server, &self->baseline));
}

FIXTURE_TEARDOWN(once)
{
	rig_close(&self->rig);
}

static void run_all(struct __test_metadata *_metadata, FIXTURE_DATA(once) *self, uint64_t began)
{
	uint64_t end = wanted.seconds ? began + wanted.seconds * 1000000000 : UINT64_MAX;
	uint64_t budget = wanted.jobs ? wanted.jobs / NR_WORKERS : UINT64_MAX;
	uint64_t tell_at = kx_deadline_ns(TELL_MS), break_at;
	uint32_t i;

	for (i = 0; i < NR_WORKERS; i++) {
		self->workers[i] = fork();
		ASSERT_LE(0, self->workers[i]);
		if (!self->workers[i])
			worker_run(i, wanted.seed * NR_WORKERS + i, budget, self->shared,
				   &self->rig);
	}
	break_at = kx_deadline_ns(wanted.break_s * 1000);
	while (look_at_workers(self) && !self->shared->nr_faults && kx_now_ns() < end) {
		kx_sleep_ms(100);
		if (wanted.break_s && kx_now_ns() > break_at) {
			break_link(self);
			break_at = kx_deadline_ns(wanted.break_s * 1000);
		}
		if (kx_now_ns() > tell_at) {
			tell(_metadata, self, began);
			tell_at = kx_deadline_ns(TELL_MS);
		}
	}
	stop_workers(self);
}

TEST_F_TIMEOUT(once, each_job_completes_whatever_breaks, 14400)
{
	uint64_t submitted = kx_counter(self->rig.server, "jobs_submitted");
	uint64_t began = kx_now_ns();
	const char *wrong;
	struct count all;

	TH_LOG("seed %llu", LLU(wanted.seed));
	run_all(_metadata, self, began);
	tell(_metadata, self, began);
	EXPECT_EQ(0, self->shared->nr_faults) {
		TH_LOG("%s", self->shared->fault);
	}
	all = sum(self->shared);
	/* The module has the same counts, and each kind occurred. */
	EXPECT_EQ(kx_counter(self->rig.server, "jobs_submitted") - submitted,
		  jobs_of(&all));
	EXPECT_LT(0, all.accepted[KXFER_OP_NOP]);
	EXPECT_LT(0, all.verified);
	EXPECT_LT(0, all.messages);
	EXPECT_LT(0, all.long_messages);
	EXPECT_LE(NR_WORKERS, all.tides);
	ASSERT_EQ(NULL, replug(self));
	wrong = baseline_wait(self->rig.server, &self->baseline, BASELINE_WAIT_MS);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

static void usage(const char *name)
{
	fprintf(stderr, "usage: %s [--seed N] [--jobs N] [--duration SECONDS] [--break SECONDS]\n",
		name);
	exit(2);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "duration", required_argument, NULL, 'd' },
		{ "break", required_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	wanted.seed = (uint32_t)(time(NULL) ^ getpid() << 16);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 0) : 0;

		if (option == 's')
			wanted.seed = value;
		else if (option == 'j' && value)
			wanted.jobs = value;
		else if (option == 'd' && value)
			wanted.seconds = value;
		else if (option == 'b')
			wanted.break_s = value;
		else
			usage(argv[0]);
	}
	if (wanted.jobs || wanted.seconds)
		return;
	wanted.jobs = storm_amount(0, 10000000);
	wanted.seconds = storm_amount(20, 3000);
}

/* The harness has other options. */
#define main run_tests
TEST_HARNESS_MAIN
#undef main

int main(int argc, char **argv)
{
	argc = words_or_environment(argc, &argv);
	read_options(argc, argv);
	optind = 1;
	return run_tests(1, argv);
}

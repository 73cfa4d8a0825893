// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of the calls of /dev/kxfer.
 *
 * It generates sequences of mostly valid calls, over several sessions of this node with itself
 * as the peer, spoils some calls, and runs them in several threads. It checks that the kernel
 * reports no error, that every errno is one of the contract, that every accepted job completes
 * exactly once, that memory that was not given away does not change, and that nothing is left
 * behind. On a kernel with kcov, sequences that reach new code are mutated further.
 *
 *	ioctl [--seed N] [--duration SECONDS] [--calls N] [--threads 1-3]
 *	      [--unplug N] [--verbose] [--output DIR]
 *	ioctl --replay FILE...		run recorded sequences instead
 *	ioctl --dump N --seed S [--log FILE]	print sequence N of a run; needs no module
 *
 * Without arguments they are taken from KXFER_FUZZ_ARGUMENTS, separated by blanks. With one
 * thread the ops of a sequence run in the printed order.
 * --unplug N removes the device in one of N sequences; 0: never.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/words.h"
#include "ioctl/corpus.h"
#include "ioctl/coverage.h"
#include "ioctl/crew.h"
#include "ioctl/memory.h"
#include "ioctl/model.h"
#include "ioctl/tally.h"
#include "kselftest.h"

#define MIN_GOOD_PERCENT	30
#define CALLS_PER_JOB		20	/* a million calls post at least 50,000 jobs */
#define FEW_CALLS		2000	/* of so few, none may be one that posts a job */
#define SLOWNESS		4	/* times the duration, to make more than that */
#define IDLE_MS			45000	/* longer than an idle link lives */

static struct options {
	struct generate_options generate;
	uint64_t seed;
	uint64_t calls;
	uint32_t duration;
	uint32_t dump;
	const char *log;
	const char *output;
	bool replay;
	bool verbose;
} options = {
	.generate = { .nr_threads = NR_THREADS, .unplug_one_in = 24 },
	.duration = 20,
	.output = "/results",
};

/* session that listens for all the others */
static int keeper;
static struct kxfer_info_listener kept[64];
static int nr_kept;
static struct baseline baseline;
static struct kx_live between;	/* counters expected between two sequences */
static uint64_t completed_before;

/* ---- before and after ---- */

static int list_listeners(struct kxfer_info_listener *listeners)
{
	uint64_t cursor = 0;

	return kx_info(keeper, KXFER_INFO_LISTENERS, listeners, sizeof(*listeners), 64, &cursor);
}

/* Unplugging the device ends all links, and with them everything that they have. */
static void drop_links(void)
{
	struct sequence unplug = { .nr = 1, .ops = { { .kind = OP_UNPLUG } } };

	crew_hush();
	if (options.generate.unplug_one_in)
		crew_run(&unplug);
	kx_wait_until(!kx_counter(keeper, "live_links"), IDLE_MS);
}

/* Links stay up for a while, with everything that they have. */
static void take_between(void)
{
	static const char *const of_links[] = {
		"live_links", "live_lanes", "live_mrs", "live_mappings", "live_exposures",
		"live_grants",
	};
	uint32_t i, j;

	kx_live_take(keeper, &between);
	for (i = 0; i < between.nr; i++)
		for (j = 0; j < ARRAY_SIZE(of_links); j++)
			if (!strcmp((char *)between.counters[i].name, of_links[j]))
				between.counters[i].value = UINT64_MAX;
}

static void set_up(void)
{
	uint64_t listener;
	uint32_t i;

	if (geteuid())
		ksft_exit_skip("needs root\n");
	keeper = kx_open();
	if (keeper < 0)
		ksft_exit_skip("no %s\n", KX_NODE);
	if (memory_make() || model_make() || tally_make())
		ksft_exit_fail_msg("cannot make memory\n");
	for (i = 0; i < options.generate.nr_threads; i++)
		if (coverage_make(i))
			break;
	if (crew_start(options.generate.nr_threads, options.seed) ||
	    kx_listen_add(keeper, kx_addr(kx_address(), KXFER_PORT), 0, &listener) ||
	    kx_listen_add(keeper, kx_addr(kx_address6(), KXFER_PORT), 0, &listener))
		ksft_exit_fail_msg("cannot begin\n");
	drop_links();
	nr_kept = list_listeners(kept);
	take_between();
	if (baseline_take(keeper, &baseline))
		ksft_exit_fail_msg("no baseline\n");
	completed_before = kx_counter(keeper, "jobs_completed");
}

/* Kept listeners belong to no session, and are left behind on purpose. */
static void delete_listeners(void)
{
	struct kxfer_info_listener now[64];
	int nr = list_listeners(now), i, j;

	for (i = 0; i < nr; i++) {
		for (j = 0; j < nr_kept && kept[j].id != now[i].id; j++)
			;
		if (j == nr_kept)
			kx_listen_del(keeper, now[i].id);
	}
}

/* ---- one sequence ---- */

static void check_after(void)
{
	const char *wrong = model_drain();

	delete_listeners();
	wrong = wrong ?: kx_live_wait(keeper, &between, BASELINE_WAIT_MS);
	if (model->kept_given)
		memory_keep();
	else
		wrong = wrong ?: memory_check_kept();
	model->kept_given = false;
	if (wrong)
		model_find("%s", wrong);
}

static bool run(const struct sequence *sequence)
{
	model_reset();
	crew_respond();
	crew_run(sequence);
	check_after();
	return !model->broken;
}

static void keep_finding(const struct sequence *sequence, uint32_t number)
{
	char path[256];
	FILE *file;

	ksft_print_msg("finding: %s\n", model->finding);
	ksft_print_msg("seed %" PRIu64 ", sequence %u, %u threads\n", options.seed, number,
		       options.generate.nr_threads);
	snprintf(path, sizeof(path), "%s/finding.ops", options.output);
	file = fopen(path, "we");
	if (file) {
		fprintf(file, "# %s\n", model->finding);
		sequence_write(file, sequence);
		fclose(file);
		ksft_print_msg("the sequence is in %s\n", path);
	}
}

static void announce(const struct origin *origin)
{
	static uint64_t last_ns;
	uint64_t now = kx_now_ns();

	if (!options.verbose && now - last_ns < 1000000000)
		return;
	last_ns = now;
	if (origin->parents[0])
		ksft_print_msg("sequence %u of %u and %u\n", origin->number, origin->parents[0],
			       origin->parents[1]);
	else
		ksft_print_msg("sequence %u\n", origin->number);
}

/* A slow machine makes few calls in the time that it was given. */
static bool goes_on(uint64_t begin_ns)
{
	uint64_t ns = kx_now_ns() - begin_ns, given_ns = options.duration * 1000000000ull;

	if (options.calls && tally_calls() >= options.calls)
		return false;
	return ns < given_ns || (tally_calls() < FEW_CALLS && ns < SLOWNESS * given_ns);
}

static bool run_all(uint64_t begin_ns)
{
	static struct sequence sequence;
	uint32_t number = 0;
	bool good = true;

	while (good && goes_on(begin_ns)) {
		struct origin origin = corpus_choose(options.seed, ++number);

		announce(&origin);
		corpus_make(options.seed, &options.generate, &origin, &sequence);
		good = run(&sequence);
		if (!good)
			keep_finding(&sequence, number);
		else if (coverage_collect())
			corpus_add(&origin, &sequence);
	}
	ksft_print_msg("%u sequences, corpus of %u, %u edges%s\n", number, corpus_size(),
		       coverage_edges(), coverage_there() ? "" : " (no kcov here)");
	return good;
}

static bool replay_all(char **paths)
{
	static struct sequence sequence;
	bool good = true;
	int ret;

	for (; good && *paths; paths++) {
		ret = sequence_read(*paths, &sequence);
		if (ret)
			ksft_exit_fail_msg("%s: %s\n", *paths, strerror(-ret));
		ksft_print_msg("replay %s\n", *paths);
		good = run(&sequence);
		if (!good)
			keep_finding(&sequence, 0);
	}
	return good;
}

/* ---- checks of the whole run ---- */

static void report(uint64_t took_ns)
{
	uint64_t calls = tally_calls(), good = tally_good(), posted, nops;
	uint64_t completed = kx_counter(keeper, "jobs_completed") - completed_before;
	const char *wrong;

	tally_print();
	nops = tally->nops_accepted;
	posted = completed > nops ? completed - nops : 0;
	ksft_print_msg("%" PRIu64 " calls in %" PRIu64 " ms, %" PRIu64 " a second; %" PRIu64
		       " %% succeeded\n", calls, took_ns / 1000000,
		       calls * 1000000000 / (took_ns ?: 1), 100 * good / (calls ?: 1));
	ksft_print_msg("at least %" PRIu64 " jobs posted, %" PRIu64 " long messages received, %"
		       PRIu64 " runs on dedicated connections; %" PRIu64 " unplugs, %" PRIu64
		       " processes killed\n", posted, (uint64_t)tally->long_messages,
		       (uint64_t)tally->dedicated, (uint64_t)tally->unplugs,
		       (uint64_t)tally->kills);
	if (!options.replay) {
		ksft_test_result(100 * good >= MIN_GOOD_PERCENT * calls,
				 "at least %d %% of calls succeed\n", MIN_GOOD_PERCENT);
		ksft_test_result(posted && posted >= calls / CALLS_PER_JOB,
				 "a job is posted for each %d calls\n", CALLS_PER_JOB);
	}
	drop_links();
	wrong = baseline_wait(keeper, &baseline, BASELINE_WAIT_MS);
	if (wrong)
		ksft_print_msg("%s\n", wrong);
	ksft_test_result(!wrong, "nothing is left behind\n");
}

static int dump(void)
{
	static struct sequence sequence;
	int ret = corpus_recall(options.seed, &options.generate, options.log, options.dump,
				&sequence);

	if (ret) {
		fprintf(stderr, "cannot make sequence %u again: %s\n", options.dump,
			strerror(-ret));
		return 1;
	}
	sequence_write(stdout, &sequence);
	return 0;
}

static void set_option(int option)
{
	switch (option) {
	case 's':
		options.seed = strtoull(optarg, NULL, 0);
		break;
	case 'd':
		options.duration = atoi(optarg);
		break;
	case 'c':
		options.calls = strtoull(optarg, NULL, 0);
		break;
	case 't':
		options.generate.nr_threads = atoi(optarg);
		break;
	case 'u':
		options.generate.unplug_one_in = atoi(optarg);
		break;
	case 'n':
		options.dump = atoi(optarg);
		break;
	case 'l':
		options.log = optarg;
		break;
	case 'o':
		options.output = optarg;
		break;
	case 'r':
		options.replay = true;
		break;
	case 'v':
		options.verbose = true;
		break;
	default:
		exit(2);
	}
}

static void read_options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", 1, NULL, 's' }, { "duration", 1, NULL, 'd' },
		{ "calls", 1, NULL, 'c' }, { "threads", 1, NULL, 't' },
		{ "unplug", 1, NULL, 'u' }, { "dump", 1, NULL, 'n' },
		{ "log", 1, NULL, 'l' }, { "output", 1, NULL, 'o' },
		{ "replay", 0, NULL, 'r' }, { "verbose", 0, NULL, 'v' }, {}
	};
	int option;

	options.seed = time(NULL);
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		set_option(option);
	if (options.generate.nr_threads < 1 || options.generate.nr_threads > NR_THREADS) {
		fprintf(stderr, "--threads takes 1 to %d\n", NR_THREADS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t begin;
	bool good;

	argc = words_or_environment(argc, &argv);
	read_options(argc, argv);
	if (options.dump)
		return dump();
	setvbuf(stdout, NULL, _IOLBF, 0);
	ksft_print_header();
	ksft_set_plan(options.replay ? 2 : 4);
	ksft_print_msg("seed %" PRIu64 ", %u threads\n", options.seed,
		       options.generate.nr_threads);
	set_up();
	begin = kx_now_ns();
	good = options.replay ? replay_all(argv + optind) :
				run_all(begin);
	ksft_test_result(good, "every sequence ends well\n");
	report(kx_now_ns() - begin);
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of every job while things go wrong between two machines: WRITEs, READs, SENDs,
 * NOTIFYs and atomics of known content go to store on the other machine, round after round. After
 * an error the link is made anew, and it goes on.
 *
 *	probe SECONDS [LOSS_MS]
 *
 * With LOSS_MS jobs wait so long for another link, WRITEs may be repeated, and only a READ or
 * WRITE that failed makes it begin anew. KXFER_PEER is the address of store, and KXFER_STORE what
 * its names end with. Printed are each error and each recovery, and one line of JSON at the end.
 * SIGUSR1 asks for such a line of what was until now; the times in the next one are those from
 * there on. SIGTERM ends it early. Status 0: every accepted job had one completion, and no byte,
 * message or event was wrong, lost, doubled or out of order.
 *
 * What a job that ended with an error did at the peer is not known, and all of it is allowed: but
 * only until a later job of the same slot has succeeded.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "store.h"

#define SKIPPED		4	/* as kselftest */
#define NR_JOBS		10	/* of a round */
#define END_MS		60000	/* in which each job ends */
#define SETTLE_MS	10000	/* in which store takes the last messages and events */
#define RETRY_MS	100
#define NR_ERRORS	8

enum content { EMPTY, KNOWN, UNKNOWN };
enum number_state { NOT_SENT, SENT, PERHAPS_SENT };

/** struct end - how jobs ended */
struct end {
	int error;
	uint64_t nr;
};

/**
 * struct probe - the state of this machine
 * @fd: session, or -1
 * @region: @here
 * @store: target on the memory of store
 * @inbox: target on its mailbox
 * @id: of the store that the states below are about
 * @here: a slot for each job, and room for the counts of a series
 * @slots: what is in the slots of store; @stamps: the stamp of a KNOWN slot
 * @numbers: enum number_state of each number of a series; @next: the first that is not used
 * @sum: what atomics that succeeded have added; @perhaps: those that failed
 */
static struct probe {
	int fd;
	uint32_t region;
	uint32_t store;
	uint32_t inbox;
	uint64_t id;
	uint8_t *here;
	enum content slots[STORE_SLOTS];
	uint64_t stamps[STORE_SLOTS];
	uint8_t numbers[STORE_NR_SERIES][STORE_NUMBERS];
	uint64_t next[STORE_NR_SERIES];
	uint64_t sum;
	uint64_t perhaps;
	uint64_t next_stamp;
} probe = { .fd = -1, .next_stamp = 1 };

static uint32_t loss_ms;
static uint64_t end_ns;	/* of the rounds; 0 after SIGTERM */

static struct {
	uint64_t began_ns;
	uint64_t ok_ns;			/* last success */
	uint64_t error_ns;		/* first error since; 0: none */
	uint64_t submitted;
	uint64_t ok;
	uint64_t refused;		/* by SUBMIT */
	uint64_t failed;		/* accepted, and not because something was full */
	uint64_t transfers_failed;	/* READs and WRITEs */
	uint64_t lost;
	uint64_t doubled;
	uint64_t corrupt;
	uint64_t reordered;
	uint64_t breaks;
	uint64_t stores;		/* lives of store that were met */
	uint64_t marks;
	uint64_t detected_ms;		/* longest from the last success to an error */
	uint64_t recovered_ms;		/* longest from an error to the next success */
	struct end errors[NR_ERRORS];
} figures;

#define HERE_LENGTH	((size_t)NR_JOBS * STORE_SLOT + STORE_NUMBERS)

static double seconds(void)
{
	return (kx_now_ns() - figures.began_ns) / 1e9;
}

/* ---- content ---- */

static void fill(uint8_t *slot, uint64_t stamp)
{
	uint64_t words[STORE_SLOT / 8];
	size_t i;

	for (i = 0; i < STORE_SLOT / 8; i++)
		words[i] = stamp * 0x9e3779b97f4a7c15ULL + i;
	memcpy(slot, words, sizeof(words));
}

static bool is_filled(const uint8_t *slot, uint64_t stamp)
{
	uint8_t wanted[STORE_SLOT];

	fill(wanted, stamp);
	return !memcmp(slot, wanted, sizeof(wanted));
}

static bool is_empty(const uint8_t *slot)
{
	size_t i;

	for (i = 0; i < STORE_SLOT; i++)
		if (slot[i])
			return false;
	return true;
}

/* ---- figures ---- */

static void note_error(int error)
{
	size_t i;

	for (i = 0; i < NR_ERRORS - 1 && figures.errors[i].nr; i++)
		if (figures.errors[i].error == error)
			break;
	figures.errors[i].error = error;
	figures.errors[i].nr++;
}

/* Only the first error since a success is an event. */
static void note_break(const char *what, int error)
{
	uint64_t ms = (kx_now_ns() - figures.ok_ns) / 1000000;

	if (figures.error_ns)
		return;
	figures.error_ns = kx_now_ns();
	figures.breaks++;
	if (ms > figures.detected_ms)
		figures.detected_ms = ms;
	printf("%.3f %s: %s, %" PRIu64 " ms after the last success\n", seconds(), what,
	       strerror(-error), ms);
}

static void note_success(void)
{
	uint64_t ms;

	figures.ok++;
	figures.ok_ns = kx_now_ns();
	if (!figures.error_ns)
		return;
	ms = (figures.ok_ns - figures.error_ns) / 1000000;
	figures.error_ns = 0;
	if (ms > figures.recovered_ms)
		figures.recovered_ms = ms;
	printf("%.3f back %" PRIu64 " ms after the error\n", seconds(), ms);
}

static void report(uint64_t *figure, const char *what, uint64_t number)
{
	++*figure;
	printf("%.3f WRONG: %s: %" PRIu64 "\n", seconds(), what, number);
}

static void print_figures(void)
{
	size_t i;

	printf("{\"marks\": %" PRIu64 ", \"seconds\": %.1f, \"submitted\": %" PRIu64
	       ", \"ok\": %" PRIu64, figures.marks, seconds(), figures.submitted, figures.ok);
	printf(", \"refused\": %" PRIu64 ", \"transfers_failed\": %" PRIu64 ", \"errors\": {",
	       figures.refused, figures.transfers_failed);
	for (i = 0; i < NR_ERRORS && figures.errors[i].nr; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "",
		       strerrorname_np(figures.errors[i].error), figures.errors[i].nr);
	printf("}, \"lost\": %" PRIu64 ", \"doubled\": %" PRIu64 ", \"corrupt\": %" PRIu64
	       ", \"reordered\": %" PRIu64, figures.lost, figures.doubled, figures.corrupt,
	       figures.reordered);
	printf(", \"breaks\": %" PRIu64 ", \"stores\": %" PRIu64 ", \"detected_ms\": %" PRIu64
	       ", \"recovered_ms\": %" PRIu64 ", \"down\": %d}\n", figures.breaks, figures.stores,
	       figures.detected_ms, figures.recovered_ms, !!figures.error_ns);
}

/* SIGUSR1 and SIGTERM are blocked: no call is interrupted. */
static void block_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGUSR1);
	sigaddset(signals, SIGTERM);
	sigprocmask(SIG_BLOCK, signals, NULL);
}

static void take_signals(void)
{
	static const struct timespec no_time;
	sigset_t signals;
	int signal;

	block_signals(&signals);
	while ((signal = sigtimedwait(&signals, NULL, &no_time)) > 0) {
		if (signal == SIGTERM) {
			end_ns = 0;
			continue;
		}
		figures.marks++;
		print_figures();
		figures.detected_ms = 0;
		figures.recovered_ms = 0;
	}
}

/* ---- the link ---- */

static void leave(void)
{
	if (probe.fd >= 0)
		close(probe.fd);
	probe.fd = -1;
}

/* Another life of store: nothing of before is there. */
static void meet(uint64_t id)
{
	probe.id = id;
	figures.stores++;
	memset(probe.slots, 0, sizeof(probe.slots));
	memset(probe.numbers, 0, sizeof(probe.numbers));
	probe.sum = 0;
	probe.perhaps = 0;
}

static int reach(void)
{
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = kx_addr(getenv("KXFER_PEER"), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = loss_ms,
	};
	char name[KXFER_NAME_MAX + 1], inbox[KXFER_NAME_MAX + 1];
	uint64_t id;
	int ret;

	store_name(name, STORE_NAME);
	store_name(inbox, STORE_INBOX);
	probe.fd = kx_open();
	if (probe.fd < 0)
		return probe.fd;
	ret = kx_region_add(probe.fd, probe.here, HERE_LENGTH, KXFER_REGION_F_WRITE,
			    &probe.region) ?:
	      kx_call(probe.fd, KXFER_PEER_OPEN, &open) ?:
	      kx_target_open(probe.fd, open.peer, name, 0, &probe.store) ?:
	      kx_target_open(probe.fd, open.peer, inbox, 0, &probe.inbox) ?:
	      kx_transfer(probe.fd, KXFER_OP_READ, probe.region, 0, probe.store,
			  offsetof(struct store, id), sizeof(id));
	if (ret)
		return ret;
	memcpy(&id, probe.here, sizeof(id));
	if (id != probe.id)
		meet(id);
	return 0;
}

/* Return: whether there is a link. */
static bool reach_by(const uint64_t *by_ns)
{
	int ret;

	for (;;) {
		ret = reach();
		if (!ret)
			return true;
		note_break("no link", ret);
		leave();
		take_signals();
		if (kx_now_ns() >= *by_ns)
			return false;
		kx_sleep_ms(RETRY_MS);
	}
}

/* ---- a round ---- */

/** struct round - jobs that are submitted together; a job's number is its slot here */
struct round {
	struct kxfer_job jobs[NR_JOBS];
	uint32_t slots[NR_JOBS];	/* of store */
	uint64_t stamps[NR_JOBS];	/* of a WRITE; the number of a SEND or NOTIFY */
	bool ended[NR_JOBS];
	uint32_t nr;
};

static struct kxfer_job *add(struct round *round, uint32_t op, uint32_t target, uint64_t length)
{
	struct kxfer_job *job = &round->jobs[round->nr];

	*job = (struct kxfer_job) {
		.op = op,
		.region = probe.region,
		.target = target,
		.region_offset = (uint64_t)round->nr * STORE_SLOT,
		.length = length,
		.user_data = round->nr++,
	};
	return job;
}

static void add_slot(struct round *round, uint32_t op, uint32_t slot)
{
	uint32_t at = round->nr;
	struct kxfer_job *job;

	round->slots[at] = slot;
	if (op == KXFER_OP_WRITE) {
		round->stamps[at] = probe.next_stamp++;
		fill(probe.here + at * STORE_SLOT, round->stamps[at]);
	}
	job = add(round, op, probe.store, STORE_SLOT);
	job->target_offset = offsetof(struct store, slots) + (uint64_t)slot * STORE_SLOT;
	if (loss_ms && op == KXFER_OP_WRITE)
		job->flags = KXFER_JOB_F_IDEMPOTENT;
}

/* Return: whether there was a number left for the next job */
static bool take_number(struct round *round, enum store_series series)
{
	if (probe.next[series] == STORE_NUMBERS)
		return false;
	round->stamps[round->nr] = probe.next[series]++;
	return true;
}

static void add_letter(struct round *round)
{
	struct letter letter = {};

	if (!take_number(round, STORE_LETTERS))
		return;
	letter.number = round->stamps[round->nr];
	memcpy(probe.here + round->nr * STORE_SLOT, &letter, sizeof(letter));
	add(round, KXFER_OP_SEND, probe.inbox, sizeof(letter));
}

static void add_notice(struct round *round)
{
	struct kxfer_job *job;

	if (!take_number(round, STORE_NOTICES))
		return;
	job = add(round, KXFER_OP_NOTIFY, probe.store, 0);
	job->region = 0;
	job->region_offset = 0;
	job->cookie = round->stamps[round->nr - 1];
}

static void add_atomic(struct round *round)
{
	struct kxfer_job *job = add(round, KXFER_OP_FETCH_ADD, probe.store, 8);

	job->target_offset = offsetof(struct store, sum);
	job->compare_add = 1;
}

static void make_round(struct round *round, uint32_t number)
{
	uint32_t i;

	memset(round, 0, sizeof(*round));
	for (i = 0; i < 2; i++) {
		add_slot(round, KXFER_OP_WRITE, (2 * number + i) % STORE_SLOTS);
		add_slot(round, KXFER_OP_READ, (2 * number + i + STORE_SLOTS / 2) % STORE_SLOTS);
		add_letter(round);
		add_notice(round);
		if (kx_has_atomics())
			add_atomic(round);
	}
}

static void end_write(const struct round *round, uint32_t at, bool ok)
{
	probe.slots[round->slots[at]] = ok ? KNOWN : UNKNOWN;
	probe.stamps[round->slots[at]] = round->stamps[at];
}

static void end_read(const struct round *round, uint32_t at, bool ok)
{
	const uint8_t *slot = probe.here + at * STORE_SLOT;
	uint32_t there = round->slots[at];

	if (!ok || probe.slots[there] == UNKNOWN)
		return;
	if (probe.slots[there] == EMPTY ? !is_empty(slot) : !is_filled(slot, probe.stamps[there]))
		report(&figures.corrupt, "a READ brought other bytes, of slot", there);
}

/* A full mailbox takes nothing, nor does a session with many events. */
static void end_number(const struct round *round, uint32_t at, enum store_series series, int status)
{
	probe.numbers[series][round->stamps[at]] = !status ? SENT :
						   status == -EAGAIN ? NOT_SENT : PERHAPS_SENT;
}

static void end_job(struct round *round, const struct kxfer_completion *done)
{
	uint32_t at = done->user_data;

	if (done->user_data >= round->nr || round->ended[at]) {
		report(&figures.doubled, "a completion too many, of job", done->user_data);
		return;
	}
	round->ended[at] = true;
	if (!done->status) {
		note_success();
	} else {
		note_error(-done->status);
		figures.transfers_failed += round->jobs[at].op <= KXFER_OP_WRITE;
		if (done->status != -EAGAIN) {
			figures.failed++;
			note_break("a job", done->status);
		}
	}
	switch (round->jobs[at].op) {
	case KXFER_OP_WRITE:
		end_write(round, at, !done->status);
		break;
	case KXFER_OP_READ:
		end_read(round, at, !done->status);
		break;
	case KXFER_OP_SEND:
		end_number(round, at, STORE_LETTERS, done->status);
		break;
	case KXFER_OP_NOTIFY:
		end_number(round, at, STORE_NOTICES, done->status);
		break;
	case KXFER_OP_FETCH_ADD:
		*(done->status ? &probe.perhaps : &probe.sum) += 1;
		break;
	}
}

/* Return: 0, or -errno: the link is to be made anew. */
static int run_round(struct round *round)
{
	struct kxfer_completion done[NR_JOBS];
	uint64_t jobs_end_ns = kx_deadline_ns(END_MS + loss_ms), failed = figures.failed;
	uint64_t transfers_failed = figures.transfers_failed;
	int accepted, nr, i, ended = 0;

	accepted = kx_submit(probe.fd, round->jobs, round->nr);
	if (accepted < 0) {
		figures.refused += round->nr;
		note_break("submitting", accepted);
		return accepted;
	}
	figures.submitted += accepted;
	figures.refused += round->nr - accepted;
	while (ended < accepted && kx_now_ns() < jobs_end_ns) {
		nr = kx_reap(probe.fd, done, NR_JOBS, 1, 1000);
		for (i = 0; i < nr; i++)
			end_job(round, &done[i]);
		ended += nr > 0 ? nr : 0;
		take_signals();
	}
	for (; ended < accepted; ended++)
		report(&figures.lost, "a job has no completion, of the round's", accepted);
	if (loss_ms)
		return figures.transfers_failed != transfers_failed ? -ECONNRESET : 0;
	return figures.failed != failed || accepted < (int)round->nr ? -ECONNRESET : 0;
}

/* ---- what has arrived ---- */

static int look_at_head(struct store *head)
{
	int ret = kx_transfer(probe.fd, KXFER_OP_READ, probe.region, 0, probe.store, 0,
			      offsetof(struct store, pad));

	memcpy(head, probe.here, offsetof(struct store, pad));
	return ret;
}

/* Return: 0 or -errno; the counts are at *@counts */
static int look_at_counts(enum store_series series, const uint8_t **counts)
{
	*counts = probe.here + NR_JOBS * STORE_SLOT;
	return kx_transfer(probe.fd, KXFER_OP_READ, probe.region, NR_JOBS * STORE_SLOT, probe.store,
			   offsetof(struct store, counts) + series * STORE_NUMBERS, STORE_NUMBERS);
}

static uint64_t count_missing(enum store_series series, const uint8_t *counts)
{
	uint64_t number, nr = 0;

	for (number = 0; number < STORE_NUMBERS; number++)
		nr += probe.numbers[series][number] == SENT && !counts[number];
	return nr;
}

static int check_series(enum store_series series)
{
	uint64_t end_ns = kx_deadline_ns(SETTLE_MS), number;
	const uint8_t *counts;
	int ret;

	do {
		ret = look_at_counts(series, &counts);
	} while (!ret && count_missing(series, counts) && kx_now_ns() < end_ns);
	for (number = 0; !ret && number < STORE_NUMBERS; number++) {
		uint8_t state = probe.numbers[series][number];

		if (state == SENT && !counts[number])
			report(&figures.lost, series == STORE_LETTERS ? "a message is not there" :
			       "an event is not there", number);
		if (counts[number] > (state == NOT_SENT ? 0 : 1))
			report(&figures.doubled, series == STORE_LETTERS ?
			       "a message came too often" : "an event came too often", number);
	}
	return ret;
}

static int check_store(void)
{
	struct store *head = kx_alloc(sizeof(*head));
	int ret = head ? 0 : -ENOMEM;

	ret = ret ?: check_series(STORE_LETTERS) ?: check_series(STORE_NOTICES) ?:
	      look_at_head(head);
	if (ret)
		return ret;
	if (head->sum < probe.sum || head->sum > probe.sum + probe.perhaps)
		report(&figures.corrupt, "atomics have added", head->sum);
	figures.reordered += head->reordered;
	return 0;
}

int main(int argc, char **argv)
{
	static struct round round;
	uint64_t last_ns;
	uint32_t number;
	sigset_t signals;
	int ret = 0;

	if (argc < 2 || !getenv("KXFER_PEER")) {
		printf("# SKIP no other machine: KXFER_PEER is not set\n");
		return SKIPPED;
	}
	block_signals(&signals);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("probe: begins\n");
	loss_ms = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	figures.began_ns = kx_now_ns();
	figures.ok_ns = figures.began_ns;
	end_ns = kx_deadline_ns(strtoul(argv[1], NULL, 10) * 1000);
	probe.here = kx_alloc(HERE_LENGTH);
	if (!probe.here)
		return 1;
	for (number = 0; kx_now_ns() < end_ns; number++) {
		if (probe.fd < 0 && !reach_by(&end_ns))
			break;
		make_round(&round, number);
		if (run_round(&round))
			leave();
	}
	last_ns = kx_deadline_ns(END_MS);
	if (probe.fd < 0 && !reach_by(&last_ns))
		ret = -ENOTCONN;
	ret = ret ?: check_store();
	if (ret)
		printf("%.3f store cannot be looked at: %s\n", seconds(), strerror(-ret));
	print_figures();
	return ret || figures.lost || figures.doubled || figures.corrupt || figures.reordered;
}

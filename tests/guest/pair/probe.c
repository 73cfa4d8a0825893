// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of every job while things go wrong between two machines: WRITEs, READs, SENDs and
 * atomics of known content go to store on the other machine, round after round. After an error
 * the link is made anew, and it goes on.
 *
 *	probe SECONDS [LOSS_MS]
 *
 * With LOSS_MS jobs wait so long for another link, WRITEs may be repeated, and only a READ or
 * WRITE that failed makes it begin anew. KXFER_PEER is the address of store. Printed are each error
 * and each recovery, and one line of JSON at the end. Status 0: every accepted job had one
 * completion, and no byte or message was wrong, lost, doubled or out of order.
 *
 * What a job that ended with an error did at the peer is not known, and all of it is allowed: but
 * only until a later job of the same slot has succeeded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "store.h"

#define SKIPPED		4	/* as kselftest */
#define NR_JOBS		8	/* of a round */
#define END_MS		60000	/* in which each job ends */
#define SETTLE_MS	10000	/* in which store takes the last messages */
#define RETRY_MS	100
#define NR_ERRORS	8

enum content { EMPTY, KNOWN, UNKNOWN };
enum letter_state { NOT_SENT, SENT, PERHAPS_SENT };

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
 * @here: a slot for each job, and room for all letters
 * @slots: what is in the slots of store; @stamps: the stamp of a KNOWN slot
 * @letters: enum letter_state by number
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
	uint8_t letters[STORE_LETTERS];
	uint64_t sum;
	uint64_t perhaps;
	uint64_t next_letter;
	uint64_t next_stamp;
} probe = { .fd = -1, .next_stamp = 1 };

static uint32_t loss_ms;

static struct {
	uint64_t began_ns;
	uint64_t ok_ns;			/* last success */
	uint64_t error_ns;		/* first error since; 0: none */
	uint64_t submitted;
	uint64_t ok;
	uint64_t refused;		/* by SUBMIT */
	uint64_t transfers_failed;	/* READs and WRITEs */
	uint64_t lost;
	uint64_t doubled;
	uint64_t corrupt;
	uint64_t reordered;
	uint64_t breaks;
	uint64_t stores;		/* lives of store that were met */
	uint64_t detected_ms;		/* longest from the last success to an error */
	uint64_t recovered_ms;		/* longest from an error to the next success */
	struct end errors[NR_ERRORS];
} figures;

#define HERE_LENGTH	((size_t)NR_JOBS * STORE_SLOT + STORE_LETTERS)

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
	memset(probe.letters, 0, sizeof(probe.letters));
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
	uint64_t id;
	int ret;

	probe.fd = kx_open();
	if (probe.fd < 0)
		return probe.fd;
	ret = kx_region_add(probe.fd, probe.here, HERE_LENGTH, KXFER_REGION_F_WRITE,
			    &probe.region) ?:
	      kx_call(probe.fd, KXFER_PEER_OPEN, &open) ?:
	      kx_target_open(probe.fd, open.peer, STORE_NAME, 0, &probe.store) ?:
	      kx_target_open(probe.fd, open.peer, STORE_INBOX, 0, &probe.inbox) ?:
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
static bool reach_by(uint64_t end_ns)
{
	int ret;

	for (;;) {
		ret = reach();
		if (!ret)
			return true;
		note_break("no link", ret);
		leave();
		if (kx_now_ns() >= end_ns)
			return false;
		kx_sleep_ms(RETRY_MS);
	}
}

/* ---- a round ---- */

/** struct round - jobs that are submitted together; a job's number is its slot here */
struct round {
	struct kxfer_job jobs[NR_JOBS];
	uint32_t slots[NR_JOBS];	/* of store */
	uint64_t stamps[NR_JOBS];	/* of a WRITE */
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

static void add_letter(struct round *round)
{
	struct letter letter = { .number = probe.next_letter };

	if (probe.next_letter == STORE_LETTERS)
		return;
	probe.next_letter++;
	round->stamps[round->nr] = letter.number;
	memcpy(probe.here + round->nr * STORE_SLOT, &letter, sizeof(letter));
	add(round, KXFER_OP_SEND, probe.inbox, sizeof(letter));
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

/* A full mailbox takes nothing. */
static void end_send(const struct round *round, uint32_t at, int status)
{
	probe.letters[round->stamps[at]] = !status ? SENT :
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
		if (done->status != -EAGAIN)
			note_break("a job", done->status);
	}
	switch (round->jobs[at].op) {
	case KXFER_OP_WRITE:
		end_write(round, at, !done->status);
		break;
	case KXFER_OP_READ:
		end_read(round, at, !done->status);
		break;
	case KXFER_OP_SEND:
		end_send(round, at, done->status);
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
	uint64_t end_ns = kx_deadline_ns(END_MS + loss_ms), breaks = figures.breaks;
	uint64_t failed = figures.transfers_failed;
	int accepted, nr, i, ended = 0;

	accepted = kx_submit(probe.fd, round->jobs, round->nr);
	if (accepted < 0) {
		figures.refused += round->nr;
		note_break("submitting", accepted);
		return accepted;
	}
	figures.submitted += accepted;
	figures.refused += round->nr - accepted;
	while (ended < accepted && kx_now_ns() < end_ns) {
		nr = kx_reap(probe.fd, done, NR_JOBS, 1, 1000);
		for (i = 0; i < nr; i++)
			end_job(round, &done[i]);
		ended += nr > 0 ? nr : 0;
	}
	for (; ended < accepted; ended++)
		report(&figures.lost, "a job has no completion, of the round's", accepted);
	if (loss_ms)
		return figures.transfers_failed != failed ? -ECONNRESET : 0;
	return figures.breaks != breaks || accepted < (int)round->nr ? -ECONNRESET : 0;
}

/* ---- what has arrived ---- */

static int look_at_store(struct store *head)
{
	uint8_t *letters = probe.here + NR_JOBS * STORE_SLOT;
	int ret;

	ret = kx_transfer(probe.fd, KXFER_OP_READ, probe.region, 0, probe.store, 0,
			  offsetof(struct store, pad)) ?:
	      kx_transfer(probe.fd, KXFER_OP_READ, probe.region, letters - probe.here, probe.store,
			  offsetof(struct store, letters), STORE_LETTERS);
	memcpy(head, probe.here, offsetof(struct store, pad));
	return ret;
}

static uint64_t count_missing(void)
{
	const uint8_t *letters = probe.here + NR_JOBS * STORE_SLOT;
	uint64_t number, nr = 0;

	for (number = 0; number < STORE_LETTERS; number++)
		nr += probe.letters[number] == SENT && !letters[number];
	return nr;
}

static void check_letters(void)
{
	const uint8_t *letters = probe.here + NR_JOBS * STORE_SLOT;
	uint64_t number;

	for (number = 0; number < STORE_LETTERS; number++) {
		if (probe.letters[number] == SENT && !letters[number])
			report(&figures.lost, "a message is not there", number);
		if (letters[number] > (probe.letters[number] == NOT_SENT ? 0 : 1))
			report(&figures.doubled, "a message came too often", number);
	}
}

static int check_store(void)
{
	uint64_t end_ns = kx_deadline_ns(SETTLE_MS);
	struct store *head = kx_alloc(sizeof(*head));
	int ret;

	do {
		ret = look_at_store(head);
	} while (!ret && count_missing() && kx_now_ns() < end_ns);
	if (ret)
		return ret;
	check_letters();
	if (head->sum < probe.sum || head->sum > probe.sum + probe.perhaps)
		report(&figures.corrupt, "atomics have added", head->sum);
	figures.reordered += head->reordered;
	return 0;
}

static void print_figures(void)
{
	size_t i;

	printf("{\"seconds\": %.1f, \"submitted\": %" PRIu64 ", \"ok\": %" PRIu64, seconds(),
	       figures.submitted, figures.ok);
	printf(", \"refused\": %" PRIu64 ", \"transfers_failed\": %" PRIu64 ", \"errors\": {",
	       figures.refused, figures.transfers_failed);
	for (i = 0; i < NR_ERRORS && figures.errors[i].nr; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "",
		       strerrorname_np(figures.errors[i].error), figures.errors[i].nr);
	printf("}, \"lost\": %" PRIu64 ", \"doubled\": %" PRIu64 ", \"corrupt\": %" PRIu64
	       ", \"reordered\": %" PRIu64, figures.lost, figures.doubled, figures.corrupt,
	       figures.reordered);
	printf(", \"breaks\": %" PRIu64 ", \"stores\": %" PRIu64 ", \"detected_ms\": %" PRIu64
	       ", \"recovered_ms\": %" PRIu64 "}\n", figures.breaks, figures.stores,
	       figures.detected_ms, figures.recovered_ms);
}

int main(int argc, char **argv)
{
	static struct round round;
	uint64_t end_ns;
	uint32_t number;
	int ret = 0;

	if (argc < 2 || !getenv("KXFER_PEER")) {
		printf("# SKIP no other machine: KXFER_PEER is not set\n");
		return SKIPPED;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	loss_ms = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	figures.began_ns = kx_now_ns();
	figures.ok_ns = figures.began_ns;
	end_ns = kx_deadline_ns(strtoul(argv[1], NULL, 10) * 1000);
	probe.here = kx_alloc(HERE_LENGTH);
	if (!probe.here)
		return 1;
	for (number = 0; kx_now_ns() < end_ns; number++) {
		if (probe.fd < 0 && !reach_by(end_ns))
			break;
		make_round(&round, number);
		if (run_round(&round))
			leave();
	}
	if (probe.fd < 0 && !reach_by(kx_deadline_ns(END_MS)))
		ret = -ENOTCONN;
	ret = ret ?: check_store();
	if (ret)
		printf("%.3f store cannot be looked at: %s\n", seconds(), strerror(-ret));
	print_figures();
	return ret || figures.lost || figures.doubled || figures.corrupt || figures.reordered;
}

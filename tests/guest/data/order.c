// SPDX-License-Identifier: GPL-2.0
/*
 * Litmus tests of the order of jobs: one for nearly each cell of the tables in
 * Documentation/uapi.rst, 'Order'.
 *
 * A cell is two jobs of a session, submitted together, and a check whether the later job was
 * seen to take effect before the first one. Each is tried plain, with KXFER_JOB_F_FENCE and
 * with KXFER_JOB_F_ORDERED on the later job, for jobs of a word, of some packets, and of
 * several work requests. If the table promises an order, no try may show the relaxed outcome.
 * If it promises none, the test only reports whether the relaxed outcome was seen.
 */
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define AREA		(512u * 1024)	/* bytes of each area, more than any job */
#define LENGTH		(4 * AREA)
#define MESSAGE		64u
#define FIRST		1		/* user_data */
#define LATER		2

/* offsets of the areas, here and there */
enum { A = 0, B = AREA, C = 2 * AREA };

/* the old bytes, and the bytes that the changing job writes */
enum { OLD = 0x11, NEW = 0x22 };

enum promise {
	ALWAYS,		/* without a flag */
	BY_FENCE,	/* by FENCE, and by ORDERED */
	BY_ORDERED,
	NEVER,
};

FIXTURE(order)
{
	struct rig rig;
	struct rig other;	/* another client of the same server, in some tests */
	uint32_t mailbox;	/* mailbox of the server */
	uint32_t post;		/* the client's target on the mailbox */
};

FIXTURE_SETUP(order)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.there = BUFFER_SCATTERED,
	};

	ASSERT_EQ(0, rig_open(&self->rig, &options));
	test_cmd_mailbox_add(self->rig.server, "order", 8, MESSAGE, &self->mailbox);
	test_cmd_target_open(self->rig.client, self->rig.peer, "order", 0, &self->post);
}

FIXTURE_TEARDOWN(order)
{
	rig_close(&self->rig);
}

/* One try of a cell. Return: 0: in order; 1: relaxed; -errno. */
typedef int (*cell_fn)(struct _test_data_order *self, uint32_t length, uint32_t flags);

static bool is_all(const uint8_t *bytes, uint8_t value, uint32_t length)
{
	return bytes[0] == value && !memcmp(bytes, bytes + 1, length - 1);
}

static uint8_t *here(struct _test_data_order *self, uint32_t at)
{
	return self->rig.here.bytes + at;
}

static uint8_t *there(struct _test_data_order *self, uint32_t at)
{
	return self->rig.there.bytes + at;
}

static struct kxfer_job notify(const struct _test_data_order *self)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_NOTIFY, .target = self->rig.target, .cookie = 7,
	};
}

/* A SEND of the bytes at @at here. */
static struct kxfer_job send(const struct _test_data_order *self, uint32_t at, uint32_t length)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_SEND, .target = self->post, .region = self->rig.here_region,
		.region_offset = at, .length = length < MESSAGE ? length : MESSAGE,
	};
}

static int submit_pair(struct _test_data_order *self, struct kxfer_job first,
		       struct kxfer_job later, uint32_t flags)
{
	struct kxfer_job jobs[2] = { first, later };
	int ret;

	jobs[0].user_data = FIRST;
	jobs[1].user_data = LATER;
	jobs[1].flags |= flags;
	ret = kx_submit(self->rig.client, jobs, 2);
	return ret == 2 ? 0 : ret < 0 ? ret : -EIO;
}

/* Return: user_data of the next successful job, or -errno. */
static int reap_one(int fd)
{
	struct kxfer_completion done;
	int ret = kx_reap(fd, &done, 1, 1, RIG_WAIT_MS);

	if (ret != 1)
		return ret < 0 ? ret : -EIO;
	return done.status ?: (int)done.user_data;
}

static int run_pair(struct _test_data_order *self, struct kxfer_job first,
		    struct kxfer_job later, uint32_t flags)
{
	int ret = submit_pair(self, first, later, flags);

	ret = ret ?: reap_one(self->rig.client);
	if (ret > 0)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : 0;
}

static int take_event(struct _test_data_order *self, uint32_t ms)
{
	struct kxfer_event event;

	return kx_event_reap(self->rig.server, &event, 1, ms);
}

/* Takes a message into C there. Return: whether one was in the mailbox, or -errno. */
static int take_message(struct _test_data_order *self, uint32_t ms)
{
	struct kxfer_job job = {
		.op = KXFER_OP_RECV, .target = self->mailbox,
		.region = self->rig.there_region, .region_offset = C,
		.length = sizeof(struct kxfer_message) + MESSAGE,
		.deadline_ns = ms ? kx_deadline_ns(ms) : 1,
	};
	int ret = kx_submit(self->rig.server, &job, 1);

	ret = ret == 1 ? reap_one(self->rig.server) : ret ?: -EIO;
	return ret == -ETIMEDOUT ? 0 : ret < 0 ? ret : 1;
}

/* ---- first a READ ---- */

/* READ A there, WRITE it: the READ gets the old bytes. */
static int read_then_write(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	memset(there(self, A), OLD, length);
	memset(here(self, B), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_READ, A, A, length),
		       rig_job(&self->rig, KXFER_OP_WRITE, B, A, length), flags);
	return ret ?: !is_all(here(self, A), OLD, length);
}

/* READ into A here, WRITE from it: the WRITE sends the bytes of the READ. */
static int read_then_send_it_on(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	memset(here(self, A), OLD, length);
	memset(there(self, A), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_READ, A, A, length),
		       rig_job(&self->rig, KXFER_OP_WRITE, A, B, length), flags);
	return ret ?: !is_all(there(self, B), NEW, length);
}

/* The same with a SEND. */
static int read_then_send(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	const uint8_t *payload = there(self, C) + sizeof(struct kxfer_message);
	struct kxfer_job message = send(self, A, length);
	int ret;

	memset(here(self, A), OLD, length);
	memset(there(self, A), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_READ, A, A, length), message, flags);
	ret = ret ?: take_message(self, RIG_WAIT_MS);
	return ret < 0 ? ret : !is_all(payload, NEW, message.length);
}

/* The exporter changes the source of the READ after the event; the READ must not see the change. */
static int read_then_notify(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret, n;

	memset(there(self, A), OLD, length);
	ret = submit_pair(self, rig_job(&self->rig, KXFER_OP_READ, A, A, length), notify(self),
			  flags);
	if (ret)
		return ret;
	if (take_event(self, RIG_WAIT_MS) != 1)
		return -ETIMEDOUT;
	memset(there(self, A), NEW, length);
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : !is_all(here(self, A), OLD, length);
}

/* READ B, READ A: if the first saw new bytes, the later one must see them too. */
static int read_then_read(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	struct kxfer_job jobs[2] = {
		rig_job(&self->rig, KXFER_OP_READ, A, A, length),
		rig_job(&self->rig, KXFER_OP_READ, B, A, length),
	};
	int ret, n;

	memset(there(self, A), OLD, length);
	ret = submit_pair(self, jobs[0], jobs[1], flags);
	/* Change them while the READs are in flight, from the end on. */
	for (n = length; !ret && n--;)
		*(volatile uint8_t *)(there(self, A) + n) = NEW;
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	if (ret < 0)
		return ret;
	for (n = 0; n < (int)length; n++)
		if (here(self, A)[n] == NEW && here(self, B)[n] != NEW)
			return 1;
	return 0;
}

/* READ twice into A here: the bytes of the later READ remain. */
static int read_then_read_over_it(struct _test_data_order *self, uint32_t length,
				  uint32_t flags)
{
	int ret;

	memset(there(self, A), OLD, length);
	memset(there(self, B), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_READ, A, A, length),
		       rig_job(&self->rig, KXFER_OP_READ, A, B, length), flags);
	return ret ?: !is_all(here(self, A), NEW, length);
}

/* ---- first a WRITE ---- */

static int write_then_read(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	memset(there(self, A), OLD, length);
	memset(here(self, A), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length),
		       rig_job(&self->rig, KXFER_OP_READ, B, A, length), flags);
	return ret ?: !is_all(here(self, B), NEW, length);
}

/* WRITE from A here, READ into it: the WRITE sends the old bytes. */
static int write_then_read_over_it(struct _test_data_order *self, uint32_t length,
				   uint32_t flags)
{
	int ret;

	memset(here(self, A), OLD, length);
	memset(there(self, B), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length),
		       rig_job(&self->rig, KXFER_OP_READ, A, B, length), flags);
	return ret ?: !is_all(there(self, A), OLD, length);
}

static int write_then_write(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	memset(here(self, A), OLD, length);
	memset(here(self, B), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length),
		       rig_job(&self->rig, KXFER_OP_WRITE, B, A, length), flags);
	return ret ?: !is_all(there(self, A), NEW, length);
}

static int write_then_notify(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	bool relaxed;
	int ret, n;

	memset(there(self, A), OLD, length);
	memset(here(self, A), NEW, length);
	ret = submit_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length), notify(self),
			  flags);
	if (ret)
		return ret;
	if (take_event(self, RIG_WAIT_MS) != 1)
		return -ETIMEDOUT;
	relaxed = !is_all(there(self, A), NEW, length);
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : relaxed;
}

static int write_then_send(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	bool relaxed;
	int ret, n;

	memset(there(self, A), OLD, length);
	memset(here(self, A), NEW, length);
	ret = submit_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length),
			  send(self, A, length), flags);
	ret = ret ?: take_message(self, RIG_WAIT_MS);
	if (ret != 1)
		return ret ?: -ETIMEDOUT;
	relaxed = !is_all(there(self, A), NEW, length);
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : relaxed;
}

/*
 * Watches the memory there meanwhile: the first WRITE has to be complete when the later one
 * begins.
 */
static int write_is_seen_before_write(struct _test_data_order *self, uint32_t length,
				      uint32_t flags)
{
	const volatile uint8_t *begin = there(self, B), *end = there(self, B) + length - 1;
	uint64_t deadline = kx_deadline_ns(RIG_WAIT_MS);
	bool relaxed;
	int ret, n;

	memset(there(self, A), OLD, length);
	memset(there(self, B), OLD, length);
	memset(here(self, A), NEW, length);
	ret = submit_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length),
			  rig_job(&self->rig, KXFER_OP_WRITE, A, B, length), flags);
	if (ret)
		return ret;
	while (*begin != NEW && *end != NEW)
		if (kx_now_ns() > deadline)
			return -ETIMEDOUT;
	relaxed = !is_all(there(self, A), NEW, length);
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : relaxed;
}

/* ---- first a message ---- */

/*
 * Checks whether the message is there after the later job has ended. @take: checks it. Takes
 * the message in any case, and both completions.
 */
static int message_then(struct _test_data_order *self, struct kxfer_job message,
			struct kxfer_job later, uint32_t flags,
			int (*take)(struct _test_data_order *self, uint32_t ms))
{
	int ret = submit_pair(self, message, later, flags), at_once = 0, nr = 0;

	for (; !ret && nr < 2; nr++) {
		ret = reap_one(self->rig.client);
		if (ret == LATER)
			at_once = take(self, 0);
		ret = ret < 0 ? ret : 0;
	}
	if (ret || at_once < 0)
		return ret ?: at_once;
	if (!at_once && take(self, RIG_WAIT_MS) != 1)
		return -ETIMEDOUT;
	return !at_once;
}

static int notify_then_read(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	return message_then(self, notify(self),
			    rig_job(&self->rig, KXFER_OP_READ, A, A, length), flags, take_event);
}

static int notify_then_write(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	return message_then(self, notify(self),
			    rig_job(&self->rig, KXFER_OP_WRITE, A, A, length), flags, take_event);
}

static int send_then_read(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	return message_then(self, send(self, A, length),
			    rig_job(&self->rig, KXFER_OP_READ, B, A, length), flags,
			    take_message);
}

static int send_then_write(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	return message_then(self, send(self, A, length),
			    rig_job(&self->rig, KXFER_OP_WRITE, A, A, length), flags,
			    take_message);
}

/* READ into the source of the message: the message has the old bytes. */
static int send_then_read_over_it(struct _test_data_order *self, uint32_t length,
				  uint32_t flags)
{
	const uint8_t *payload = there(self, C) + sizeof(struct kxfer_message);
	struct kxfer_job message = send(self, A, length);
	int ret;

	memset(here(self, A), OLD, length);
	memset(there(self, A), NEW, length);
	ret = run_pair(self, message, rig_job(&self->rig, KXFER_OP_READ, A, A, length), flags);
	ret = ret ?: take_message(self, RIG_WAIT_MS);
	return ret < 0 ? ret : !is_all(payload, OLD, message.length);
}

static int send_then_notify(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret = submit_pair(self, send(self, A, length), notify(self), flags), n;
	int there_too = 0;

	if (ret)
		return ret;
	if (take_event(self, RIG_WAIT_MS) != 1)
		return -ETIMEDOUT;
	there_too = take_message(self, 0);
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : there_too < 0 ? there_too : !there_too;
}

static int notify_then_notify(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	struct kxfer_job jobs[2] = { notify(self), notify(self) };
	struct kxfer_event events[2] = {};
	int ret, n, taken;

	jobs[1].cookie = 8;
	ret = run_pair(self, jobs[0], jobs[1], flags);
	for (n = 0; !ret && n < 2; n += taken) {
		taken = kx_event_reap(self->rig.server, events + n, 2 - n, RIG_WAIT_MS);
		if (taken <= 0)
			return -ETIMEDOUT;
	}
	return ret ?: events[0].cookie != 7 || events[1].cookie != 8;
}

/* ---- atomics ---- */

static struct kxfer_job add_one(const struct _test_data_order *self, uint32_t at_here,
				uint32_t at_there)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_FETCH_ADD, at_here, at_there, 8);

	job.compare_add = 1;
	return job;
}

static uint64_t *word(uint8_t *at)
{
	return (uint64_t *)at;
}

/* The last word of a WRITE has its new value when it is added to. */
static int write_then_atomic(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	uint32_t last = (length - 8) & ~7u;
	int ret;

	memset(there(self, A), OLD, length);
	memset(here(self, A), NEW, length);
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_WRITE, A, A, length),
		       add_one(self, B, A + last), flags);
	return ret ?: !is_all(here(self, B), NEW, 8);
}

static int atomic_then_read(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	*word(there(self, A)) = 41;
	ret = run_pair(self, add_one(self, A, A), rig_job(&self->rig, KXFER_OP_READ, B, A, length),
		       flags);
	return ret ?: *word(here(self, B)) != 42;
}

static int atomic_then_atomic(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	*word(there(self, A)) = 41;
	ret = run_pair(self, add_one(self, A, A), add_one(self, B, A), flags);
	return ret ?: *word(here(self, A)) != 41 || *word(here(self, B)) != 42;
}

/* The atomic sees the value from before the WRITE, and does not change the written value. */
static int atomic_then_write(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	*word(there(self, A)) = 41;
	memset(here(self, B), NEW, length);
	ret = run_pair(self, add_one(self, A, A),
		       rig_job(&self->rig, KXFER_OP_WRITE, B, A, length), flags);
	return ret ?: *word(here(self, A)) != 41 || !is_all(there(self, A), NEW, length);
}

/* The fetched value is sent on. */
static int atomic_then_send_it_on(struct _test_data_order *self, uint32_t length,
				  uint32_t flags)
{
	int ret;

	*word(there(self, A)) = 41;
	*word(here(self, A)) = 0;
	ret = run_pair(self, add_one(self, A, A),
		       rig_job(&self->rig, KXFER_OP_WRITE, A, B, length), flags);
	return ret ?: *word(there(self, B)) != 41;
}

/* The fetched value is sent on by a message, which is copied when it is posted. */
static int atomic_then_send(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	uint64_t got;
	int ret;

	*word(there(self, A)) = 41;
	*word(here(self, A)) = 0;
	ret = run_pair(self, add_one(self, A, A), send(self, A, length), flags);
	ret = ret ?: take_message(self, RIG_WAIT_MS);
	memcpy(&got, there(self, C) + sizeof(struct kxfer_message), sizeof(got));
	return ret < 0 ? ret : got != 41;
}

static int read_then_atomic(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	int ret;

	*word(there(self, A)) = 41;
	ret = run_pair(self, rig_job(&self->rig, KXFER_OP_READ, A, A, length),
		       add_one(self, B, A), flags);
	return ret ?: *word(here(self, A)) != 41;
}

static int notify_then_atomic(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	return message_then(self, notify(self), add_one(self, A, A), flags, take_event);
}

static int atomic_then_notify(struct _test_data_order *self, uint32_t length, uint32_t flags)
{
	bool relaxed;
	int ret, n;

	*word(there(self, A)) = 41;
	ret = submit_pair(self, add_one(self, A, A), notify(self), flags);
	if (ret)
		return ret;
	if (take_event(self, RIG_WAIT_MS) != 1)
		return -ETIMEDOUT;
	relaxed = *(volatile uint64_t *)word(there(self, A)) != 42;
	for (n = 0; n < 2 && ret >= 0; n++)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : relaxed;
}

/* ---- another session, on the same link ---- */

/* A WRITE of one session, then a READ of another one. */
static int write_then_read_of_another(struct _test_data_order *self, uint32_t length,
				      uint32_t flags)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_WRITE, A, A, length);
	int ret;

	memset(there(self, A), OLD, length);
	memset(here(self, A), NEW, length);
	job.flags = flags;
	if (kx_submit(self->rig.client, &job, 1) != 1)
		return -EIO;
	job = rig_job(&self->other, KXFER_OP_READ, B, A, length);
	job.flags = flags;
	if (kx_submit(self->other.client, &job, 1) != 1)
		return -EIO;
	ret = reap_one(self->other.client);
	if (ret >= 0)
		ret = reap_one(self->rig.client);
	return ret < 0 ? ret : !is_all(self->other.here.bytes + B, NEW, length);
}

/* ---- the table ---- */

static const struct {
	const char *name;
	uint32_t length;	/* the last length takes several work requests and is bulk */
	int rounds;
} sizes[] = {
	{ "a word", 8, 100 }, { "5000 bytes", 5000, 50 }, { "400 KiB", 400 * 1024, 6 },
};

static const struct {
	const char *name;
	uint32_t flags;
} ways[] = {
	{ "plain", 0 }, { "FENCE", KXFER_JOB_F_FENCE }, { "ORDERED", KXFER_JOB_F_ORDERED },
};

static bool is_promised(enum promise promise, uint32_t flags)
{
	switch (promise) {
	case ALWAYS:
		return true;
	case BY_FENCE:
		return flags;
	case BY_ORDERED:
		return flags & KXFER_JOB_F_ORDERED;
	default:
		return false;
	}
}

/* Return: number of tries with the relaxed outcome, or -errno. */
static int try_cell(struct _test_data_order *self, cell_fn run, uint32_t length, int rounds,
		    uint32_t flags)
{
	int relaxed = 0, round, ret;

	for (round = 0; round < rounds; round++) {
		ret = run(self, length, flags);
		if (ret < 0)
			return ret;
		relaxed += ret;
	}
	return relaxed;
}

static void litmus(struct __test_metadata *_metadata, struct _test_data_order *self,
		   cell_fn run, enum promise promise)
{
	size_t way, size;
	int relaxed;

	for (way = 0; way < 3; way++) {
		for (size = 0; size < 3; size++) {
			relaxed = try_cell(self, run, sizes[size].length, sizes[size].rounds,
					   ways[way].flags);
			ASSERT_LE(0, relaxed) {
				TH_LOG("%s, %s: %s", ways[way].name, sizes[size].name,
				       strerror(-relaxed));
			}
			if (is_promised(promise, ways[way].flags)) {
				EXPECT_EQ(0, relaxed) {
					TH_LOG("%s, %s: not in order %d of %d times",
					       ways[way].name, sizes[size].name, relaxed,
					       sizes[size].rounds);
				}
			} else {
				TH_LOG("%s, %s: nothing promised, relaxed %d of %d times",
				       ways[way].name, sizes[size].name, relaxed,
				       sizes[size].rounds);
			}
		}
	}
}

static void litmus_of_atomics(struct __test_metadata *_metadata, struct _test_data_order *self,
			      cell_fn run, enum promise promise)
{
	if (!kx_has_atomics())
		SKIP(return, "the device has no atomics");
	litmus(_metadata, self, run, promise);
}

#define LITMUS(cell, promise)							\
	TEST_F_TIMEOUT(order, cell, 120)					\
	{									\
		litmus(_metadata, self, cell, promise);				\
	}

#define LITMUS_OF_ATOMICS(cell, promise)					\
	TEST_F_TIMEOUT(order, cell, 120)					\
	{									\
		litmus_of_atomics(_metadata, self, cell, promise);		\
	}

LITMUS(read_then_read, ALWAYS)
LITMUS(read_then_read_over_it, BY_FENCE)
LITMUS(read_then_write, BY_FENCE)
LITMUS(read_then_send_it_on, BY_FENCE)
LITMUS(read_then_notify, BY_FENCE)
LITMUS(read_then_send, BY_FENCE)
LITMUS(write_then_read, ALWAYS)
LITMUS(write_then_read_over_it, BY_ORDERED)
LITMUS(write_then_write, ALWAYS)
LITMUS(write_is_seen_before_write, BY_ORDERED)
LITMUS(write_then_notify, ALWAYS)
LITMUS(write_then_send, ALWAYS)
LITMUS(notify_then_read, BY_ORDERED)
LITMUS(notify_then_write, BY_ORDERED)
LITMUS(notify_then_notify, ALWAYS)
LITMUS(send_then_read, BY_ORDERED)
LITMUS(send_then_write, BY_ORDERED)
LITMUS(send_then_read_over_it, BY_ORDERED)
LITMUS(send_then_notify, ALWAYS)
LITMUS_OF_ATOMICS(write_then_atomic, ALWAYS)
LITMUS_OF_ATOMICS(atomic_then_read, ALWAYS)
LITMUS_OF_ATOMICS(atomic_then_atomic, ALWAYS)
LITMUS_OF_ATOMICS(atomic_then_write, BY_FENCE)
LITMUS_OF_ATOMICS(atomic_then_send_it_on, BY_FENCE)
LITMUS_OF_ATOMICS(atomic_then_notify, BY_FENCE)
LITMUS_OF_ATOMICS(atomic_then_send, BY_FENCE)
LITMUS_OF_ATOMICS(read_then_atomic, BY_FENCE)
LITMUS_OF_ATOMICS(notify_then_atomic, BY_ORDERED)

TEST_F_TIMEOUT(order, write_then_read_of_another_session, 120)
{
	self->other = self->rig;
	self->other.client = -1;
	ASSERT_EQ(0, rig_open_client(&self->other));
	litmus(_metadata, self, write_then_read_of_another, NEVER);
	close(self->other.client);
	buffer_free(&self->other.here);
}

TEST_HARNESS_MAIN

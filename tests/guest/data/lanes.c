// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes of a link: which lane a session's jobs take, that short jobs do not wait behind another
 * session's long jobs, how much of these is posted at a time, and that the promised order of a
 * session's jobs holds when they move from one lane to another.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB		(1024u * 1024)
#define LENGTH		(4 * MIB)
#define SMALL		64u
#define BULK		(2 * MIB)
#define LONGEST_SMALL	(64 * 1024u)
#define NR_BULK		16	/* more than a lane posts at a time */
#define NR_QUEUED	256
#define NR_IN_FLIGHT	24
#define NR_LOOKS	32
#define NR_MESSAGES	100	/* until some are eager */
#define ROUNDS		8

FIXTURE(lanes)
{
	struct rig rig;
	uint32_t nr;		/* data lanes of the link; the last one is for bulk */
	uint64_t posted[8];	/* work requests by index - 1, at the last mark() */
};

static int look(const struct rig *rig, struct kxfer_info_lane *lanes)
{
	struct kxfer_info_lane all[256];
	uint64_t cursor = 0;
	int i, n = kx_info(rig->client, KXFER_INFO_LANES, all, sizeof(*all), 256, &cursor);
	int nr = 0;

	for (i = 0; i < n; i++)
		if (all[i].link == rig->link && all[i].index)
			lanes[nr++] = all[i];
	return nr;
}

static uint32_t mark(struct _test_data_lanes *self)
{
	struct kxfer_info_lane lanes[8];
	int nr = look(&self->rig, lanes), i;

	for (i = 0; i < nr; i++)
		self->posted[i] = lanes[i].nr_wr;
	return nr;
}

/* Index of the only lane that has posted since mark(); 0: none; -1: several. */
static int used(struct _test_data_lanes *self)
{
	struct kxfer_info_lane lanes[8];
	int nr = look(&self->rig, lanes), i, found = 0;

	for (i = 0; i < nr; i++)
		if (lanes[i].nr_wr != self->posted[i])
			found = found ? -1 : (int)lanes[i].index;
	return found;
}

FIXTURE_SETUP(lanes)
{
	struct rig_options options = { .length = LENGTH };

	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->nr = mark(self);
	ASSERT_LE(2, self->nr);
}

FIXTURE_TEARDOWN(lanes)
{
	rig_close(&self->rig);
}

#define BULK_LANE		((int)self->nr)
#define EXPECT_SMALL_LANE() do {						\
	int used__ = used(self);						\
										\
	EXPECT_LT(0, used__);							\
	EXPECT_GT(BULK_LANE, used__);						\
} while (0)

static int reap(const struct rig *rig, int nr)
{
	struct kxfer_completion done[NR_QUEUED];
	int i, n, status = 0;

	for (; nr > 0; nr -= n) {
		n = kx_reap(rig->client, done, nr < NR_QUEUED ? nr : NR_QUEUED, 1, RIG_WAIT_MS);
		if (n <= 0)
			return n ?: -ETIMEDOUT;
		for (i = 0; i < n; i++)
			status = status ?: done[i].status;
	}
	return status;
}

/* ---- the choice of a lane ---- */

TEST_F(lanes, short_jobs_go_on_a_small_one)
{
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, SMALL));
	EXPECT_SMALL_LANE();
	mark(self);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, LONGEST_SMALL));
	EXPECT_SMALL_LANE();
	mark(self);
	EXPECT_EQ(0, kx_notify(self->rig.client, self->rig.target, 1));
	EXPECT_SMALL_LANE();
}

TEST_F(lanes, long_jobs_go_on_the_last_one)
{
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LONGEST_SMALL + 1));
	EXPECT_EQ(BULK_LANE, used(self));
	mark(self);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, BULK));
	EXPECT_EQ(BULK_LANE, used(self));
	mark(self);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, SMALL));
	EXPECT_SMALL_LANE();
}

static void submit_bulk(struct __test_metadata *_metadata, const struct rig *rig, int nr)
{
	struct kxfer_job jobs[NR_QUEUED];
	int i;

	for (i = 0; i < nr; i++)
		jobs[i] = rig_job(rig, KXFER_OP_WRITE, 0, 0, BULK);
	ASSERT_EQ(nr, kx_submit(rig->client, jobs, nr));
}

/* Whether the READ was accepted while a WRITE was in flight. Return: -errno if a job fails. */
static int reap_overlapping(const struct rig *rig, int nr)
{
	uint64_t accepted = 0, last = 0;
	struct kxfer_completion done;

	while (nr-- > 0) {
		int n = kx_reap(rig->client, &done, 1, 1, RIG_WAIT_MS);

		if (n <= 0 || done.status)
			return n <= 0 ? -ETIMEDOUT : done.status;
		if (done.op == KXFER_OP_READ)
			accepted = done.submitted_ns;
		else if (done.completed_ns > last)
			last = done.completed_ns;
	}
	return accepted < last;
}

/* On a machine with other loads the long jobs may be over before the short one is handed in. */
TEST_F_TIMEOUT(lanes, jobs_of_a_session_stay_together_while_one_is_in_flight, 120)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, 0, 0, SMALL);
	int overlapping = 0, round;

	for (round = 0; !overlapping && round < ROUNDS; round++) {
		mark(self);
		submit_bulk(_metadata, &self->rig, NR_BULK);
		ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
		overlapping = reap_overlapping(&self->rig, NR_BULK + 1);
	}
	EXPECT_EQ(1, overlapping);
	EXPECT_EQ(BULK_LANE, used(self));
}

/*
 * On iWARP a WRITE without a placement READ completes before it is placed; later jobs must not
 * overtake it.
 */
TEST_F(lanes, writes_without_a_fence_keep_a_session_on_its_lane)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, BULK);
	bool iwarp = !strcmp(kx_provider(), "siw");

	job.flags = KXFER_JOB_F_LOCAL_ONLY;
	ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
	EXPECT_EQ(0, reap(&self->rig, 1));
	EXPECT_EQ(BULK_LANE, used(self));
	mark(self);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, SMALL));
	EXPECT_EQ(iwarp, used(self) == BULK_LANE);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, SMALL));
	mark(self);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, SMALL));
	EXPECT_SMALL_LANE();
}

static bool goes_on_bulk_lane(FIXTURE_DATA(lanes) *self)
{
	mark(self);
	return !rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, BULK) && used(self) == BULK_LANE;
}

/* Eager messages complete before the peer has handled them; later jobs must not overtake them. */
TEST_F(lanes, eager_messages_keep_a_session_on_its_lane)
{
	uint64_t before = kx_counter(self->rig.client, "sends_eager");
	uint32_t mailbox, target, i;

	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "no eager messages on iWARP");
	test_cmd_mailbox_add(self->rig.server, "lanes-mailbox", NR_MESSAGES + 64, SMALL, &mailbox);
	test_cmd_target_open(self->rig.client, self->rig.peer, "lanes-mailbox", 0, &target);
	for (i = 0; i < NR_MESSAGES; i++)
		test_cmd_send(self->rig.client, self->rig.here_region, 0, SMALL, target);
	ASSERT_LT(before, kx_counter(self->rig.client, "sends_eager"));
	mark(self);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, BULK));
	EXPECT_SMALL_LANE();
	/* The peer is asked meanwhile, and answers. */
	EXPECT_TRUE(kx_wait_until(goes_on_bulk_lane(self), RIG_WAIT_MS));
	test_cmd_target_close(self->rig.client, target);
	test_cmd_export_del(self->rig.server, mailbox);
}

/* ---- order ---- */

static int submit_one(const struct rig *rig, uint32_t op, uint64_t at, uint64_t length,
		      uint32_t flags)
{
	struct kxfer_job job = rig_job(rig, op, at, at, length);

	job.flags = flags;
	if (op == KXFER_OP_NOTIFY) {
		job.region = 0;
		job.region_offset = 0;
		job.target_offset = 0;
	}
	return kx_submit(rig->client, &job, 1);
}

/* When the event is there, all data written before it is there. */
static void expect_data_with_event(struct __test_metadata *_metadata, struct rig *rig,
				   uint64_t length, int round)
{
	struct kxfer_event event;

	ASSERT_EQ(1, kx_event_reap(rig->server, &event, 1, RIG_WAIT_MS));
	ASSERT_EQ(0, memcmp(rig->here.bytes, rig->there.bytes, length)) {
		TH_LOG("round %d: the event came before the data", round);
	}
}

TEST_F_TIMEOUT(lanes, notify_comes_behind_long_writes, 120)
{
	int round;

	for (round = 0; round < ROUNDS; round++) {
		memset(self->rig.here.bytes, 1 + round, BULK);
		submit_bulk(_metadata, &self->rig, NR_BULK);
		ASSERT_EQ(1, submit_one(&self->rig, KXFER_OP_NOTIFY, 0, 0, 0));
		expect_data_with_event(_metadata, &self->rig, BULK, round);
		ASSERT_EQ(0, reap(&self->rig, NR_BULK + 1));
	}
}

TEST_F(lanes, notify_comes_behind_writes_of_either_kind)
{
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		memset(self->rig.here.bytes, 0x40 + round, LENGTH);
		for (i = 0; i < 64; i++)
			ASSERT_EQ(1, submit_one(&self->rig, KXFER_OP_WRITE, i * SMALL, SMALL, 0));
		ASSERT_EQ(1, submit_one(&self->rig, KXFER_OP_WRITE, 64 * SMALL,
					LENGTH - 64 * SMALL, 0));
		ASSERT_EQ(1, submit_one(&self->rig, KXFER_OP_NOTIFY, 0, 0, 0));
		expect_data_with_event(_metadata, &self->rig, LENGTH, round);
		ASSERT_EQ(0, reap(&self->rig, 66));
	}
}

/* completed, but on iWARP not placed yet */
TEST_F(lanes, notify_comes_behind_local_only_writes_that_have_completed)
{
	int round;

	for (round = 0; round < 4 * ROUNDS; round++) {
		memset(self->rig.here.bytes, 0x80 + round, BULK);
		ASSERT_EQ(1, submit_one(&self->rig, KXFER_OP_WRITE, 0, BULK,
					KXFER_JOB_F_LOCAL_ONLY));
		ASSERT_EQ(0, reap(&self->rig, 1));
		ASSERT_EQ(1, submit_one(&self->rig, KXFER_OP_NOTIFY, 0, 0, 0));
		expect_data_with_event(_metadata, &self->rig, BULK, round);
		ASSERT_EQ(0, reap(&self->rig, 1));
	}
}

/* A short READ of the same place, after long WRITEs, sees the last WRITE. */
TEST_F(lanes, read_sees_what_long_writes_wrote)
{
	uint8_t *last = self->rig.here.bytes + BULK - SMALL;
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, BULK, BULK - SMALL, SMALL);
	int round;

	for (round = 0; round < ROUNDS; round++) {
		memset(self->rig.here.bytes, 1 + round, BULK);
		memset(self->rig.here.bytes + BULK, 0xff, SMALL);
		submit_bulk(_metadata, &self->rig, NR_BULK);
		ASSERT_EQ(1, kx_submit(self->rig.client, &job, 1));
		ASSERT_EQ(0, reap(&self->rig, NR_BULK + 1));
		ASSERT_EQ(0, memcmp(last, self->rig.here.bytes + BULK, SMALL));
	}
}

/* ---- concurrent sessions ---- */

/* What a short job met while another session had long ones: see look_beside(). */
struct beside {
	struct kxfer_completion looks[NR_LOOKS];
	struct kxfer_completion done[NR_QUEUED];
	uint32_t passed;	/* long jobs that ended while a short one was under way */
	bool first;		/* the first short job ended before the last long one */
	bool last;		/* so did the last */
};

/* One short job after another, while @other has long ones. Return: 0 or -errno. */
static int look_beside(const struct rig *rig, const struct rig *other, struct beside *beside)
{
	struct kxfer_job job = rig_job(rig, KXFER_OP_READ, 0, 0, SMALL);
	struct kxfer_completion *looks = beside->looks, *done = beside->done;
	struct kxfer_job jobs[NR_QUEUED];
	int i, n, ended;

	for (i = 0; i < NR_QUEUED; i++)
		jobs[i] = rig_job(other, KXFER_OP_WRITE, 0, 0, MIB);
	if (kx_submit(other->client, jobs, NR_QUEUED) != NR_QUEUED)
		return -EIO;
	for (i = 0; i < NR_LOOKS; i++)
		if (kx_submit(rig->client, &job, 1) != 1 ||
		    kx_reap(rig->client, &looks[i], 1, 1, RIG_WAIT_MS) != 1 || looks[i].status)
			return -EIO;
	for (ended = 0; ended < NR_QUEUED; ended += n) {
		n = kx_reap(other->client, done + ended, NR_QUEUED - ended, 1, RIG_WAIT_MS);
		if (n <= 0)
			return -ETIMEDOUT;
	}
	beside->passed = 0;
	for (i = 0; i < NR_LOOKS; i++)
		for (n = 0; n < NR_QUEUED; n++)
			beside->passed += done[n].completed_ns > looks[i].submitted_ns &&
					  done[n].completed_ns < looks[i].completed_ns;
	beside->first = looks[0].completed_ns < done[NR_QUEUED - 1].completed_ns;
	beside->last = looks[NR_LOOKS - 1].completed_ns < done[NR_QUEUED - 1].completed_ns;
	return 0;
}

/* On a machine with other loads the long jobs may be over too soon: there are some tries. */
TEST_F_TIMEOUT(lanes, short_jobs_do_not_wait_behind_anothers_long_ones, 120)
{
	/* siw sends for all QPs of a CPU in one thread, whatever their lane. */
	bool siw = !strcmp(kx_provider(), "siw"), good = false;
	struct rig other = self->rig;
	struct beside beside;
	int tries;

	other.client = -1;
	ASSERT_EQ(0, rig_open_client(&other));
	for (tries = 0; tries < 4 && !good; tries++) {
		ASSERT_EQ(0, look_beside(&self->rig, &other, &beside));
		TH_LOG("%u pieces passed %u READs", beside.passed, NR_LOOKS);
		good = beside.first &&
		       (siw || (beside.last && beside.passed <= 2 * NR_LOOKS));
	}
	EXPECT_TRUE(good);
	close(other.client);
	buffer_free(&other.here);
}

/* ---- how much of the long jobs is posted ---- */

FIXTURE(in_flight)
{
	struct rig rig;
};

FIXTURE_VARIANT(in_flight)
{
	uint32_t kib;		/* of PEER_OPEN */
	uint32_t nr_mib;	/* jobs of a MiB that are posted at a time */
};

FIXTURE_VARIANT_ADD(in_flight, least) { .kib = KXFER_IN_FLIGHT_MIN_KIB, .nr_mib = 1 };
FIXTURE_VARIANT_ADD(in_flight, usual) { .nr_mib = 4 };
FIXTURE_VARIANT_ADD(in_flight, more) { .kib = 12 * 1024, .nr_mib = 12 };

FIXTURE_SETUP(in_flight)
{
	struct rig_options options = { .length = LENGTH, .in_flight_kib = variant->kib };

	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(in_flight)
{
	rig_close(&self->rig);
}

/*
 * Whether the device only takes note of work in ib_post_send(): rxe does from Linux 6.4 on. Others
 * may complete jobs there, and so never have as many.
 */
static bool works_later(void)
{
	struct utsname name;
	int major, minor;

	return !strcmp(kx_provider(), "rxe") && !uname(&name) &&
	       sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 4));
}

TEST_F(in_flight, is_what_the_opener_wants)
{
	struct kxfer_job jobs[NR_IN_FLIGHT];
	struct kxfer_info_lane lanes[8];
	uint32_t most = 0;
	int i, nr;

	for (i = 0; i < NR_IN_FLIGHT; i++)
		jobs[i] = rig_job(&self->rig, KXFER_OP_READ, 0, 0, MIB);
	ASSERT_EQ(NR_IN_FLIGHT, kx_submit(self->rig.client, jobs, NR_IN_FLIGHT));
	do {
		nr = look(&self->rig, lanes);
		ASSERT_LE(2, nr);
		if (lanes[nr - 1].nr_posted > most)
			most = lanes[nr - 1].nr_posted;
	} while (lanes[nr - 1].nr_queued);
	EXPECT_GE(variant->nr_mib, most);
	if (works_later())
		EXPECT_EQ(variant->nr_mib, most);
	EXPECT_EQ(0, reap(&self->rig, NR_IN_FLIGHT));
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Withdrawal: after the return of EXPORT_DEL or the exporter's end, no peer writes to the
 * memory, whatever was in flight. Jobs succeed or end with EKEYREVOKED. The link and its other
 * users go on.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/load.h"
#include "rigs/rig.h"

#define MIB	(1024u * 1024)
#define LENGTH	(16 * MIB)	/* so long that some jobs are still in flight at the withdrawal */
#define NR_JOBS	64

FIXTURE(revoke)
{
	struct rig rig;
	struct baseline baseline;
	uint64_t lost;
	bool slow;	/* the wire has a delay */
	int fd;
};

FIXTURE_SETUP(revoke)
{
	struct rig_options options = { .length = LENGTH, .here = BUFFER_SCATTERED };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	self->lost = kx_counter(self->fd, "links_lost");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(revoke)
{
	const char *left;

	if (self->slow)
		baseline_command("tc qdisc del dev lo root");
	rig_close(&self->rig);
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	EXPECT_EQ(self->lost, kx_counter(self->fd, "links_lost"));
	close(self->fd);
}

static int submit_many(const struct rig *rig, uint32_t op)
{
	struct kxfer_job jobs[NR_JOBS];
	int i;

	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = rig_job(rig, op, 0, 0, LENGTH);
		jobs[i].user_data = i;
	}
	return kx_submit(rig->client, jobs, NR_JOBS);
}

/* Every job ends once, with success or revoked. Return: number of revoked jobs, or -1 */
static int reap_revoked(const struct rig *rig, int already)
{
	struct kxfer_completion done[NR_JOBS];
	bool seen[NR_JOBS] = { 0 };
	int i, revoked = 0, n = NR_JOBS - already;

	if (n && kx_reap(rig->client, done, n, n, RIG_WAIT_MS) != n)
		return -1;
	for (i = 0; i < n; i++) {
		if (seen[done[i].user_data] ||
		    (done[i].status && done[i].status != -EKEYREVOKED))
			return -1;
		seen[done[i].user_data] = true;
		revoked += !!done[i].status;
	}
	return revoked;
}

static void expect_revoked(struct __test_metadata *_metadata, const struct rig *rig,
			   int already)
{
	int revoked = reap_revoked(rig, already);

	TH_LOG("%d of %d jobs were revoked", revoked, NR_JOBS);
	EXPECT_LE(1, revoked);
}

/* The withdrawal has returned: no operation in flight may change the memory. */
static void memory_is_left_alone(struct __test_metadata *_metadata, struct rig *rig)
{
	struct pattern pattern = { .seed = 0x901, .generation = 77 };
	struct pattern_fault fault;
	char text[320];
	int i;

	pattern_fill(rig->there.bytes, LENGTH, &pattern);
	for (i = 0; i < 5; i++) {
		kx_sleep_ms(60);
		ASSERT_EQ(PATTERN_GOOD, pattern_check(rig->there.bytes, LENGTH, &pattern, NULL,
						      &fault)) {
			TH_LOG("written after the withdrawal: %s",
			       pattern_describe(&pattern, &fault, text, sizeof(text)));
		}
	}
}

static void withdraw_under_jobs(struct __test_metadata *_metadata, struct rig *rig,
				uint32_t op, int after)
{
	struct kxfer_completion done[NR_JOBS];

	memset(rig->here.bytes, 0x33, LENGTH);
	ASSERT_EQ(NR_JOBS, submit_many(rig, op));
	if (after)
		ASSERT_EQ(after, kx_reap(rig->client, done, after, after, RIG_WAIT_MS));
	ASSERT_EQ(0, kx_export_del(rig->server, rig->export_id));
	memory_is_left_alone(_metadata, rig);
	expect_revoked(_metadata, rig, after);
	EXPECT_EQ(-EKEYREVOKED, rig_move(rig, op, 0, 0, 1));
}

TEST_F_TIMEOUT(revoke, export_del_under_writes, 60)
{
	withdraw_under_jobs(_metadata, &self->rig, KXFER_OP_WRITE, 0);
}

TEST_F_TIMEOUT(revoke, export_del_under_writes_later, 60)
{
	withdraw_under_jobs(_metadata, &self->rig, KXFER_OP_WRITE, 7);
}

TEST_F_TIMEOUT(revoke, export_del_under_reads, 60)
{
	withdraw_under_jobs(_metadata, &self->rig, KXFER_OP_READ, 3);
}

/*
 * On a wire with a delay long WRITEs take several round trips, and the answer to the withdrawal
 * takes one: an answer that does not wait for them overtakes them, and they find the key gone.
 * Theirs is another connection, so nothing else keeps the order.
 */
static void withdraw_on_slow_wire(struct __test_metadata *_metadata, struct rig *rig,
				  uint32_t flags)
{
	struct kxfer_completion done[8];
	struct kxfer_job jobs[8];
	int i;

	for (i = 0; i < 8; i++) {
		jobs[i] = rig_job(rig, KXFER_OP_WRITE, 0, 0, MIB);
		jobs[i].flags = flags;
	}
	ASSERT_EQ(8, kx_submit(rig->client, jobs, 8));
	if (flags)
		ASSERT_EQ(8, kx_reap(rig->client, done, 8, 8, RIG_WAIT_MS));
	ASSERT_EQ(0, kx_export_del(rig->server, rig->export_id));
	memory_is_left_alone(_metadata, rig);
	if (!flags)
		ASSERT_EQ(8, kx_reap(rig->client, done, 8, 8, RIG_WAIT_MS));
	for (i = 0; i < 8; i++)
		if (done[i].status)
			EXPECT_EQ(-EKEYREVOKED, done[i].status);
}

/* Return: whether it has a delay until the test ends. */
static bool make_wire_slow(FIXTURE_DATA(revoke) *self)
{
	self->slow = !baseline_command("tc qdisc add dev lo root netem delay 20ms limit 100000");
	return self->slow;
}

TEST_F_TIMEOUT(revoke, export_del_under_writes_on_a_slow_wire, 60)
{
	if (!make_wire_slow(self))
		SKIP(return, "needs root and tc's netem");
	withdraw_on_slow_wire(_metadata, &self->rig, 0);
}

TEST_F_TIMEOUT(revoke, export_del_behind_local_only_writes_on_a_slow_wire, 60)
{
	if (!make_wire_slow(self))
		SKIP(return, "needs root and tc's netem");
	withdraw_on_slow_wire(_metadata, &self->rig, KXFER_JOB_F_LOCAL_ONLY);
}

/*
 * Jobs that a flag holds until READs of the export have ended: none is posted after the
 * withdrawal, whichever is next, and EXPORT_DEL does not wait for them.
 */
static void withdraw_under_held(struct __test_metadata *_metadata, struct rig *rig,
				uint32_t flags)
{
	struct kxfer_completion done[NR_JOBS];
	struct kxfer_job jobs[NR_JOBS];
	int i, revoked = 0;

	memset(rig->there.bytes, 0x33, 64);
	memset(rig->here.bytes + LENGTH / 2, 0x44, 64);
	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = rig_job(rig, KXFER_OP_READ, 0, 0, LENGTH / 2);
		if (i % 2) {
			jobs[i] = rig_job(rig, KXFER_OP_WRITE, LENGTH / 2, 0, 64);
			jobs[i].flags = flags;
		}
		jobs[i].user_data = i;
	}
	ASSERT_EQ(NR_JOBS, kx_submit(rig->client, jobs, NR_JOBS));
	ASSERT_EQ(0, kx_export_del(rig->server, rig->export_id));
	memset(rig->there.bytes, 0x33, 64);
	ASSERT_EQ(NR_JOBS, kx_reap(rig->client, done, NR_JOBS, NR_JOBS, RIG_WAIT_MS));
	for (i = 0; i < NR_JOBS; i++) {
		EXPECT_EQ(done[i].status ? -EKEYREVOKED : 0, done[i].status);
		revoked += done[i].status && done[i].user_data % 2;
	}
	TH_LOG("%d of %d jobs that waited were revoked", revoked, NR_JOBS / 2);
	EXPECT_LT(0, revoked);
	EXPECT_EQ(0x33, rig->there.bytes[0]);
	EXPECT_EQ(-EKEYREVOKED, rig_move(rig, KXFER_OP_WRITE, 0, 0, 1));
}

TEST_F_TIMEOUT(revoke, export_del_under_fenced_jobs, 60)
{
	withdraw_under_held(_metadata, &self->rig, KXFER_JOB_F_FENCE);
}

TEST_F_TIMEOUT(revoke, export_del_under_ordered_jobs, 60)
{
	withdraw_under_held(_metadata, &self->rig, KXFER_JOB_F_ORDERED);
}

TEST_F(revoke, export_del_without_jobs)
{
	struct kxfer_content content;

	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	EXPECT_EQ(-EKEYREVOKED, rig_move(&self->rig, KXFER_OP_READ, 0, 0, 1));
	EXPECT_EQ(-EKEYREVOKED, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH));
	EXPECT_EQ(-EKEYREVOKED, kx_target_info(self->rig.client, self->rig.target, 0, 1000,
					       &content));
	EXPECT_EQ(-ENOENT, kx_target_open(self->rig.client, self->rig.peer, self->rig.name, 0,
					  &self->rig.target));
	EXPECT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
}

TEST_F(revoke, name_is_free_at_once)
{
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 4096));
		ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
		ASSERT_EQ(0, kx_export_add(self->rig.server, self->rig.there_region, 0, LENGTH,
					   KXFER_RIGHT_ALL, self->rig.name,
					   &self->rig.export_id));
		ASSERT_EQ(-EKEYREVOKED, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 4096));
		ASSERT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
		ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, self->rig.name, 0,
					    &self->rig.target));
	}
}

TEST_F_TIMEOUT(revoke, exporter_closes_under_writes, 60)
{
	memset(self->rig.here.bytes, 0x33, LENGTH);
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig, KXFER_OP_WRITE));
	close(self->rig.server);
	self->rig.server = -1;
	memory_is_left_alone(_metadata, &self->rig);
	expect_revoked(_metadata, &self->rig, 0);
}

TEST_F_TIMEOUT(revoke, one_export_of_two_on_the_link, 60)
{
	uint32_t other_export, other;
	struct rig second = self->rig;

	test_cmd_export_add(self->rig.server, self->rig.there_region, 0, LENGTH,
			    KXFER_RIGHT_ALL, "revoke-other", &other_export);
	test_cmd_target_open(self->rig.client, self->rig.peer, "revoke-other", 0, &other);
	second.target = other;
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig, KXFER_OP_WRITE));
	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	expect_revoked(_metadata, &self->rig, 0);
	/* The same memory stays reachable under its other name. */
	rig_prepare(&second, KXFER_OP_WRITE);
	EXPECT_EQ(NULL, rig_try(&second, KXFER_OP_WRITE, 0, 0, LENGTH));
}

/* WRITEs that may not be placed yet when they complete. */
static void write_local_only(struct __test_metadata *_metadata, struct rig *rig)
{
	struct kxfer_job job = rig_job(rig, KXFER_OP_WRITE, 0, 0, LENGTH);
	struct kxfer_completion done;

	job.flags = KXFER_JOB_F_LOCAL_ONLY;
	ASSERT_EQ(1, kx_submit(rig->client, &job, 1));
	ASSERT_EQ(1, kx_reap(rig->client, &done, 1, 1, RIG_WAIT_MS));
	ASSERT_EQ(0, done.status);
}

/*
 * On iWARP these WRITEs must not find the key gone, because that would end the link for all
 * users.
 */
TEST_F_TIMEOUT(revoke, export_del_behind_local_only_writes, 60)
{
	write_local_only(_metadata, &self->rig);
	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	memory_is_left_alone(_metadata, &self->rig);
}

/* TARGET_CLOSE does not wait. EXPORT_DEL waits until the grant is released, after all WRITEs. */
TEST_F_TIMEOUT(revoke, target_close_behind_local_only_writes, 60)
{
	write_local_only(_metadata, &self->rig);
	ASSERT_EQ(0, kx_target_close(self->rig.client, self->rig.target));
	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	memory_is_left_alone(_metadata, &self->rig);
}

TEST_F_TIMEOUT(revoke, client_closes_under_writes, 60)
{
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig, KXFER_OP_WRITE));
	close(self->rig.client);
	self->rig.client = -1;
	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	memory_is_left_alone(_metadata, &self->rig);
}

TEST_F_TIMEOUT(revoke, several_holders, 120)
{
	struct load loads[4];
	uint64_t before;
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, load_start(&loads[i], &self->rig, i, 32, 32768));
	before = kx_now_ns();
	ASSERT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	EXPECT_GT(15000, (kx_now_ns() - before) / 1000000);
	memory_is_left_alone(_metadata, &self->rig);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(LOAD_BROKEN, load_end(&loads[i], 0));
}

/* An exporter in a separate process. */
static pid_t start_exporter(const struct rig *rig, const char *name)
{
	int ready[2], i;
	pid_t child;
	char byte;

	if (pipe(ready))
		return -1;
	child = fork();
	if (!child) {
		uint8_t *bytes = kx_alloc(LENGTH);
		uint32_t region, export_id;
		int fd = kx_open();

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(rig->client);
		close(rig->server);
		if (kx_region_add(fd, bytes, LENGTH, KXFER_REGION_F_WRITE, &region) ||
		    kx_export_add(fd, region, 0, LENGTH, KXFER_RIGHT_ALL, name, &export_id) ||
		    write(ready[1], "r", 1) != 1)
			_exit(1);
		for (i = 0; i < 60; i++)
			sleep(1);
		_exit(2);
	}
	close(ready[1]);
	i = read(ready[0], &byte, 1);
	close(ready[0]);
	return i == 1 ? child : -1;
}

TEST_F_TIMEOUT(revoke, exporter_killed_beside_one_that_goes_on, 90)
{
	struct rig victim = self->rig;
	struct load load;
	pid_t exporter;
	int round, i;

	ASSERT_EQ(0, load_start(&load, &self->rig, 0, 16, 16384));
	for (round = 0; round < 3; round++) {
		exporter = start_exporter(&self->rig, "revoke-victim");
		ASSERT_LT(0, exporter);
		ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, "revoke-victim",
					    0, &victim.target));
		ASSERT_EQ(NR_JOBS, submit_many(&victim, round % 2 ? KXFER_OP_READ :
								    KXFER_OP_WRITE));
		kill(exporter, SIGKILL);
		ASSERT_EQ(exporter, waitpid(exporter, NULL, 0));
		expect_revoked(_metadata, &victim, 0);
		ASSERT_EQ(0, kx_target_close(self->rig.client, victim.target));
		for (i = 0; i < 3; i++)
			ASSERT_EQ(0, load_wait_round(&load, RIG_WAIT_MS));
	}
	EXPECT_EQ(-SIGKILL, load_end(&load, SIGKILL));
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, LENGTH));
}

struct opener {
	struct rig *rig;
	atomic_bool stop;
	int opened;
	int refused;
	int wrong;
};

static void *open_again_and_again(void *argument)
{
	struct opener *opener = argument;
	struct rig own = *opener->rig;
	int ret;

	while (!atomic_load(&opener->stop)) {
		ret = kx_target_open(own.client, own.peer, "revoke-race", 0, &own.target);
		if (ret == -ENOENT || ret == -EKEYREVOKED) {
			opener->refused++;
			continue;
		}
		if (ret)
			opener->wrong = ret;
		opener->opened++;
		ret = rig_move(&own, KXFER_OP_WRITE, 0, 0, 1000);
		if (ret && ret != -EKEYREVOKED)
			opener->wrong = ret;
		kx_target_close(own.client, own.target);
	}
	return NULL;
}

TEST_F_TIMEOUT(revoke, races_with_open, 60)
{
	struct opener opener = { .rig = &self->rig };
	uint64_t end = kx_deadline_ns(5000);
	uint32_t export_id;
	pthread_t thread;
	int rounds = 0;

	ASSERT_EQ(0, pthread_create(&thread, NULL, open_again_and_again, &opener));
	while (kx_now_ns() < end && rounds < 300) {
		ASSERT_EQ(0, kx_export_add(self->rig.server, self->rig.there_region, 0, 65536,
					   KXFER_RIGHT_ALL, "revoke-race", &export_id));
		kx_sleep_ms(rounds % 4);
		ASSERT_EQ(0, kx_export_del(self->rig.server, export_id));
		rounds++;
	}
	atomic_store(&opener.stop, true);
	pthread_join(thread, NULL);
	TH_LOG("%d withdrawals, %d opens, %d refused", rounds, opener.opened, opener.refused);
	EXPECT_EQ(0, opener.wrong);
	EXPECT_LT(0, opener.opened);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT: which jobs are refused with which errno, how much of an array is accepted, and that
 * no job is accepted whose completion could not be stored.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "harness/slow.h"
#include "kselftest_harness.h"

#define LENGTH	(64UL << 10)

FIXTURE(submit)
{
	struct kx_pair pair;
	int fd;			/* session of the client */
	struct kxfer_job job;	/* a WRITE of the whole region; tests change one member */
};

FIXTURE_SETUP(submit)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->fd = self->pair.client;
	self->job = (struct kxfer_job) {
		.op = KXFER_OP_WRITE,
		.region = self->pair.client_region,
		.target = self->pair.target,
		.length = LENGTH,
		.user_data = 42,
	};
}

FIXTURE_TEARDOWN(submit)
{
	kx_pair_close(&self->pair);
}

static struct kxfer_submit good(const struct kxfer_job *jobs, uint32_t nr)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = nr,
		.stride = sizeof(*jobs),
	};

	return cmd;
}

static int submit(int fd, struct kxfer_submit *cmd)
{
	return kx_call(fd, KXFER_SUBMIT, cmd);
}

/* ---- what works ---- */

TEST_F(submit, moves_bytes_and_tells_so)
{
	struct kxfer_completion completion;
	uint64_t before = kx_now_ns();

	memset(self->pair.client_memory, 0x5a, LENGTH);
	test_cmd_submit(1, self->fd, &self->job, 1);
	test_cmd_reap(1, self->fd, &completion, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(42, completion.user_data);
	EXPECT_EQ(LENGTH, completion.bytes);
	EXPECT_EQ(0, completion.status);
	EXPECT_EQ(KXFER_OP_WRITE, completion.op);
	EXPECT_LE(before, completion.submitted_ns);
	EXPECT_LE(completion.submitted_ns, completion.completed_ns);
	EXPECT_GE(kx_now_ns(), completion.completed_ns);
	EXPECT_EQ(0, memcmp(self->pair.client_memory, self->pair.server_memory, LENGTH));
}

TEST_F(submit, waits_for_completions_in_the_same_call)
{
	struct kxfer_completion completions[8];
	struct kxfer_job jobs[8];
	struct kxfer_submit cmd = good(jobs, 8);
	int i;

	for (i = 0; i < 8; i++) {
		jobs[i] = self->job;
		jobs[i].user_data = i;
	}
	cmd.completions = (uintptr_t)completions;
	cmd.nr_completions = 8;
	cmd.wait = 8;
	cmd.deadline_ns = kx_deadline_ns(KX_TIMEOUT_MS);
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(8, cmd.accepted);
	EXPECT_EQ(8, cmd.reaped);
	EXPECT_EQ(0, cmd.error);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(0, completions[i].status);
		EXPECT_EQ(i, completions[i].user_data);
	}
}

TEST_F(submit, of_a_nop_completes_at_once)
{
	struct kxfer_completion completion;
	struct kxfer_job nop = { .op = KXFER_OP_NOP, .user_data = 7 };

	test_cmd_submit(1, self->fd, &nop, 1);
	test_cmd_reap(1, self->fd, &completion, 1, 0, 0);
	EXPECT_EQ(7, completion.user_data);
	EXPECT_EQ(0, completion.status);
	EXPECT_EQ(0, completion.bytes);
	EXPECT_EQ(KXFER_OP_NOP, completion.op);
}

TEST_F(submit, takes_a_wider_stride_of_zeros)
{
	struct { struct kxfer_job job; char tail[256 - sizeof(struct kxfer_job)]; } wide[2] = {
		{ .job = self->job }, { .job = self->job },
	};
	struct kxfer_submit cmd = good(&wide[0].job, 2);
	struct kxfer_completion completions[2];

	cmd.stride = sizeof(wide[0]);
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(2, cmd.accepted);
	test_cmd_reap(2, self->fd, completions, 2, 2, KX_TIMEOUT_MS);
}

/* Two jobs: the bytes after the first are the second, not a part of the first. */
TEST_F(submit, takes_jobs_of_callers_who_know_no_operands)
{
	struct kxfer_completion completions[2];
	char old[2][KXFER_JOB_SIZE_MIN];
	struct kxfer_submit cmd = good((struct kxfer_job *)old, 2);
	int i;

	cmd.stride = KXFER_JOB_SIZE_MIN;
	for (i = 0; i < 2; i++) {
		self->job.user_data = i;
		self->job.length = 100 + i;
		memcpy(old[i], &self->job, KXFER_JOB_SIZE_MIN);
	}
	memset(self->pair.client_memory, 0x5a, LENGTH);
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(2, cmd.accepted);
	test_cmd_reap(2, self->fd, completions, 2, 2, KX_TIMEOUT_MS);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, completions[i].status);
		EXPECT_EQ(100 + completions[i].user_data, completions[i].bytes);
	}
	EXPECT_EQ(0, memcmp(self->pair.client_memory, self->pair.server_memory, 101));
	EXPECT_EQ(0, self->pair.server_memory[101]);
}

TEST_F(submit, takes_such_jobs_that_end_where_memory_does)
{
	char *cut = kx_before_hole(2UL * KXFER_JOB_SIZE_MIN);
	struct kxfer_submit cmd = good((struct kxfer_job *)cut, 3);
	struct kxfer_completion completions[3];

	memcpy(cut, &self->job, KXFER_JOB_SIZE_MIN);
	memcpy(cut + KXFER_JOB_SIZE_MIN, &self->job, KXFER_JOB_SIZE_MIN);
	cmd.stride = KXFER_JOB_SIZE_MIN;
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(2, cmd.accepted);
	EXPECT_EQ(EFAULT, cmd.error);
	test_cmd_reap(2, self->fd, completions, 3, 3, KX_TIMEOUT_MS);
}

TEST_F(submit, takes_a_stride_between_what_is_known)
{
	struct { char job[KXFER_JOB_SIZE_MIN]; uint64_t compare_add; } jobs[2] = {};
	struct kxfer_submit cmd = good((struct kxfer_job *)jobs, 2);
	struct kxfer_completion completions[2];

	memcpy(jobs[0].job, &self->job, sizeof(jobs[0].job));
	memcpy(jobs[1].job, &self->job, sizeof(jobs[1].job));
	jobs[1].compare_add = 1;
	cmd.stride = sizeof(jobs[0]);
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(EINVAL, cmd.error);
	test_cmd_reap(1, self->fd, completions, 2, 2, KX_TIMEOUT_MS);
}

TEST_F(submit, refuses_unknown_data_behind_a_job)
{
	struct { struct kxfer_job job; char tail[8]; } wide[2] = {
		{ .job = self->job }, { .job = self->job, .tail = { [7] = 1 } },
	};
	struct kxfer_submit cmd = good(&wide[0].job, 2);

	cmd.stride = sizeof(wide[0]);
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(1, cmd.accepted);
	EXPECT_EQ(E2BIG, cmd.error);
	cmd = good(&wide[1].job, 1);
	cmd.stride = sizeof(wide[0]);
	EXPECT_EQ(-E2BIG, submit(self->fd, &cmd));
}

TEST_F(submit, takes_local_only_for_writes)
{
	self->job.flags = KXFER_JOB_F_LOCAL_ONLY;
	test_cmd_submit(1, self->fd, &self->job, 1);
	self->job.op = KXFER_OP_READ;
	test_err_submit(EINVAL, self->fd, &self->job, 1);
	self->job = (struct kxfer_job) { .op = KXFER_OP_NOP,
					 .flags = KXFER_JOB_F_LOCAL_ONLY };
	test_err_submit(EINVAL, self->fd, &self->job, 1);
}

TEST_F(submit, takes_batch_for_transfers)
{
	self->job.flags = KXFER_JOB_F_BATCH;
	test_cmd_submit(1, self->fd, &self->job, 1);
	self->job.op = KXFER_OP_READ;
	test_cmd_submit(1, self->fd, &self->job, 1);
	self->job.flags |= KXFER_JOB_F_LOCAL_ONLY;
	test_err_submit(EINVAL, self->fd, &self->job, 1);
	self->job.flags = KXFER_JOB_F_ALL + 1;
	test_err_submit(EOPNOTSUPP, self->fd, &self->job, 1);
	self->job = (struct kxfer_job) { .op = KXFER_OP_NOP, .flags = KXFER_JOB_F_BATCH };
	test_err_submit(EINVAL, self->fd, &self->job, 1);
	self->job = (struct kxfer_job) { .op = KXFER_OP_NOTIFY, .flags = KXFER_JOB_F_BATCH,
					 .target = self->pair.target, .cookie = 1 };
	test_err_submit(EINVAL, self->fd, &self->job, 1);
}

/* ---- the call ---- */

TEST_F(submit, needs_a_number_of_jobs_in_range)
{
	struct kxfer_job *jobs = calloc(257, sizeof(*jobs));

	test_err_submit(EINVAL, self->fd, jobs, 0);
	test_err_submit(EINVAL, self->fd, jobs, 257);
	test_cmd_submit(256, self->fd, jobs, 256);
	free(jobs);
}

TEST_F(submit, needs_a_stride_in_range)
{
	struct kxfer_submit cmd = good(&self->job, 1);
	static const uint32_t strides[] = { 0, 8, 56, 63, 65, 68, 264, 512, UINT32_MAX };
	size_t i;

	for (i = 0; i < sizeof(strides) / sizeof(*strides); i++) {
		cmd.stride = strides[i];
		EXPECT_EQ(-EINVAL, submit(self->fd, &cmd));
	}
}

TEST_F(submit, waits_in_one_way_only)
{
	struct kxfer_submit cmd = good(&self->job, 1);

	cmd.flags = KXFER_WAIT_F_POLL | KXFER_WAIT_F_SLEEP;
	EXPECT_EQ(-EINVAL, submit(self->fd, &cmd));
	cmd.flags = KXFER_WAIT_F_ALL + 1;
	EXPECT_EQ(-EOPNOTSUPP, submit(self->fd, &cmd));
}

TEST_F(submit, needs_room_for_what_it_waits_for)
{
	struct kxfer_completion completions[2];
	struct kxfer_submit cmd = good(&self->job, 1);

	cmd.completions = (uintptr_t)completions;
	cmd.nr_completions = 2;
	cmd.wait = 3;
	EXPECT_EQ(-EINVAL, submit(self->fd, &cmd));
	cmd.nr_completions = 4097;
	cmd.wait = 0;
	EXPECT_EQ(-EINVAL, submit(self->fd, &cmd));
	cmd.completions = 0;
	cmd.nr_completions = 2;
	EXPECT_EQ(-EINVAL, submit(self->fd, &cmd));
}

TEST_F(submit, accepts_nothing_that_it_could_not_report)
{
	uint64_t before = kx_counter(self->fd, "jobs_submitted");
	struct kxfer_completion *cut = kx_before_hole(sizeof(*cut));
	struct kxfer_completion *frozen = kx_alloc(4096);
	struct kxfer_submit cmd = good(&self->job, 1);

	cmd.completions = (uintptr_t)cut;
	cmd.nr_completions = 2;
	EXPECT_EQ(-EFAULT, submit(self->fd, &cmd));
	ASSERT_EQ(0, mprotect(frozen, 4096, PROT_READ));
	cmd.completions = (uintptr_t)frozen;
	EXPECT_EQ(-EFAULT, submit(self->fd, &cmd));
	cmd.completions = 8;
	EXPECT_EQ(-EFAULT, submit(self->fd, &cmd));
	EXPECT_EQ(before, kx_counter(self->fd, "jobs_submitted"));
}

TEST_F(submit, refuses_jobs_that_cannot_be_read)
{
	test_err_submit(EFAULT, self->fd, NULL, 1);
	test_err_submit(EFAULT, self->fd, (void *)8, 1);
}

TEST_F(submit, accepts_jobs_up_to_the_first_that_cannot_be_read)
{
	struct kxfer_job *cut = kx_before_hole(3 * sizeof(*cut));
	struct kxfer_submit cmd = good(cut, 5);
	struct kxfer_completion completions[5];
	int i;

	for (i = 0; i < 3; i++)
		cut[i] = self->job;
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(3, cmd.accepted);
	EXPECT_EQ(EFAULT, cmd.error);
	test_cmd_reap(3, self->fd, completions, 5, 5, KX_TIMEOUT_MS);
}

TEST_F(submit, accepts_jobs_up_to_the_first_bad_one)
{
	struct kxfer_job jobs[5] = {
		self->job, self->job, self->job, self->job, self->job,
	};
	struct kxfer_submit cmd = good(jobs, 5);
	struct kxfer_completion completions[5];

	jobs[2].target_offset = LENGTH;
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(2, cmd.accepted);
	EXPECT_EQ(ERANGE, cmd.error);
	test_cmd_reap(2, self->fd, completions, 5, 5, KX_TIMEOUT_MS);
}

TEST_F(submit, with_a_bad_first_job_accepts_none)
{
	struct kxfer_job jobs[2] = { self->job, self->job };
	uint64_t before = kx_counter(self->fd, "jobs_submitted");

	jobs[0].region = 77;
	test_err_submit(ENOENT, self->fd, jobs, 2);
	EXPECT_EQ(before, kx_counter(self->fd, "jobs_submitted"));
}

/* ---- the jobs ---- */

TEST_F(submit, refuses_an_unknown_operation)
{
	self->job.op = KXFER_OP_RECV + 1;
	test_err_submit(EOPNOTSUPP, self->fd, &self->job, 1);
	self->job.op = UINT32_MAX;
	test_err_submit(EOPNOTSUPP, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_an_unknown_flag)
{
	self->job.flags = 1U << 31;
	test_err_submit(EOPNOTSUPP, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_a_job_without_bytes)
{
	self->job.length = 0;
	test_err_submit(EINVAL, self->fd, &self->job, 1);
	self->job.op = KXFER_OP_READ;
	test_err_submit(EINVAL, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_a_cookie_with_a_transfer)
{
	self->job.cookie = 1;
	test_err_submit(EINVAL, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_operands_with_a_transfer)
{
	static const uint32_t ops[] = { KXFER_OP_READ, KXFER_OP_WRITE };
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		self->job.op = ops[i];
		self->job.compare_add = 1ULL << 63;
		test_err_submit(EINVAL, self->fd, &self->job, 1);
		self->job.compare_add = 0;
		self->job.swap = 1;
		test_err_submit(EINVAL, self->fd, &self->job, 1);
		self->job.swap = 0;
	}
}

TEST_F(submit, refuses_a_region_that_does_not_exist)
{
	self->job.region = 0;
	test_err_submit(ENOENT, self->fd, &self->job, 1);
	self->job.region = 77;
	test_err_submit(ENOENT, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_a_target_that_does_not_exist)
{
	self->job.target = 0;
	test_err_submit(ENOENT, self->fd, &self->job, 1);
	self->job.target = 77;
	test_err_submit(ENOENT, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_what_belongs_to_another_session)
{
	test_err_submit(ENOENT, self->pair.server, &self->job, 1);
}

TEST_F(submit, stays_inside_the_region)
{
	self->job.region_offset = 1;
	test_err_submit(ERANGE, self->fd, &self->job, 1);
	self->job.region_offset = LENGTH;
	self->job.length = 1;
	test_err_submit(ERANGE, self->fd, &self->job, 1);
	self->job.region_offset = LENGTH - 1;
	test_cmd_submit(1, self->fd, &self->job, 1);
	/* Behind a job of the same objects, too. */
	self->job.length = 2;
	test_err_submit(ERANGE, self->fd, &self->job, 1);
	self->job.region_offset = UINT64_MAX;
	test_err_submit(EOVERFLOW, self->fd, &self->job, 1);
}

TEST_F(submit, stays_inside_the_target)
{
	self->job.target_offset = 1;
	test_err_submit(ERANGE, self->fd, &self->job, 1);
	self->job.target_offset = LENGTH;
	self->job.length = 1;
	test_err_submit(ERANGE, self->fd, &self->job, 1);
	self->job.target_offset = LENGTH - 1;
	test_cmd_submit(1, self->fd, &self->job, 1);
	self->job.length = 2;
	test_err_submit(ERANGE, self->fd, &self->job, 1);
	self->job.target_offset = UINT64_MAX;
	test_err_submit(EOVERFLOW, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_ranges_that_wrap)
{
	self->job.region_offset = UINT64_MAX;
	test_err_submit(EOVERFLOW, self->fd, &self->job, 1);
	self->job.region_offset = 0;
	self->job.target_offset = UINT64_MAX - 1;
	test_err_submit(EOVERFLOW, self->fd, &self->job, 1);
	self->job.target_offset = 1;
	self->job.length = UINT64_MAX;
	test_err_submit(EOVERFLOW, self->fd, &self->job, 1);
}

TEST_F(submit, refuses_a_read_into_a_read_only_region)
{
	uint32_t frozen;

	test_cmd_region_add(self->fd, self->pair.client_memory, LENGTH, 0, &frozen);
	test_err_transfer(EACCES, self->fd, KXFER_OP_READ, frozen, 0, self->pair.target, 0, 1);
	test_cmd_transfer(self->fd, KXFER_OP_WRITE, frozen, 0, self->pair.target, 0, 1);
	test_err_transfer(EACCES, self->fd, KXFER_OP_READ, frozen, 0, self->pair.target, 0, 1);
}

TEST_F(submit, asks_for_the_right_of_each_job)
{
	uint32_t target;

	test_cmd_target_open(self->fd, self->pair.peer, self->pair.name, KXFER_RIGHT_READ, &target);
	test_cmd_transfer(self->fd, KXFER_OP_READ, self->pair.client_region, 0, target, 0, 64);
	test_err_transfer(EACCES, self->fd, KXFER_OP_WRITE, self->pair.client_region, 0, target, 0,
			  64);
	test_cmd_transfer(self->fd, KXFER_OP_READ, self->pair.client_region, 0, target, 0, 64);
}

TEST_F(submit, asks_for_the_right_of_each_job_of_a_list)
{
	struct kxfer_completion completions[2];
	struct kxfer_job jobs[3];
	struct kxfer_submit cmd = good(jobs, 3);
	uint32_t target;
	int round;

	test_cmd_target_open(self->fd, self->pair.peer, self->pair.name, KXFER_RIGHT_READ, &target);
	self->job.op = KXFER_OP_READ;
	self->job.target = target;
	self->job.length = 64;
	for (round = 0; round < 3; round++) {
		jobs[0] = self->job;
		jobs[1] = self->job;
		jobs[2] = self->job;
		jobs[2].op = KXFER_OP_WRITE;
		ASSERT_EQ(0, submit(self->fd, &cmd));
		EXPECT_EQ(2, cmd.accepted);
		EXPECT_EQ(EACCES, cmd.error);
		test_cmd_reap(2, self->fd, completions, 2, 2, KX_TIMEOUT_MS);
	}
}

/* A call of good jobs and a bad one: the good ones before it are accepted, and no others. */
TEST_F(submit, stops_in_a_list_of_jobs_of_the_same_objects)
{
	struct kxfer_completion completions[64];
	struct kxfer_job jobs[64];
	struct kxfer_submit cmd = good(jobs, 64);
	uint32_t i, bad;

	for (bad = 1; bad < 64; bad += 9) {
		for (i = 0; i < 64; i++) {
			jobs[i] = self->job;
			jobs[i].length = 100;
			jobs[i].op = i % 3 ? KXFER_OP_READ : KXFER_OP_WRITE;
		}
		jobs[bad].target_offset = LENGTH - 99;
		ASSERT_EQ(0, submit(self->fd, &cmd));
		ASSERT_EQ(bad, cmd.accepted);
		ASSERT_EQ(ERANGE, cmd.error);
		test_cmd_reap((int)bad, self->fd, completions, 64, bad, KX_TIMEOUT_MS);
	}
}

TEST_F(submit, refuses_a_nop_with_arguments)
{
	struct kxfer_job nop = { .op = KXFER_OP_NOP }, job;

	job = nop;
	job.region = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.target = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.length = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.region_offset = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.target_offset = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.cookie = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.compare_add = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = nop;
	job.swap = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
}

TEST_F(submit, refuses_a_notify_with_a_range)
{
	struct kxfer_job notify = { .op = KXFER_OP_NOTIFY, .target = self->pair.target }, job;

	job = notify;
	job.region = self->pair.client_region;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = notify;
	job.length = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = notify;
	job.region_offset = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = notify;
	job.target_offset = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = notify;
	job.compare_add = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	job = notify;
	job.swap = 1;
	test_err_submit(EINVAL, self->fd, &job, 1);
	test_cmd_submit(1, self->fd, &notify, 1);
}

/* ---- memory that is not there ---- */

#define BEFORE		40	/* jobs in the page before the missing one */

struct caller {
	int fd;
	struct kxfer_submit cmd;
	int ret;
};

static void *call_submit(void *argument)
{
	struct caller *caller = argument;

	caller->ret = submit(caller->fd, &caller->cmd);
	return NULL;
}

/* A page may take any time to be supplied; accepted jobs do not wait for it (batch.c). */
TEST_F(submit, completes_jobs_while_it_waits_for_the_next_ones_memory)
{
	struct kxfer_completion completions[BEFORE];
	struct kxfer_job last[KX_SLOW_PAGE / sizeof(self->job) + 1] = { { .op = KXFER_OP_NOP } };
	struct kxfer_job *jobs;
	struct kx_slow slow;
	struct caller caller;
	pthread_t thread;
	int ret, i;

	ret = kx_slow_open(&slow);
	if (slow.fd < 0)
		SKIP(return, "no userfaultfd in this kernel");
	ASSERT_EQ(0, ret);
	self->job.length = 64;
	jobs = (struct kxfer_job *)(slow.pages + KX_SLOW_PAGE) - BEFORE;
	for (i = 0; i < BEFORE; i++)
		jobs[i] = self->job;
	caller = (struct caller) { .fd = self->fd, .cmd = good(jobs, BEFORE + 1) };
	ASSERT_EQ(0, pthread_create(&thread, NULL, call_submit, &caller));
	EXPECT_TRUE(kx_slow_is_waited_for(&slow));
	test_cmd_reap(BEFORE, self->fd, completions, BEFORE, BEFORE, KX_TIMEOUT_MS);
	EXPECT_EQ(0, kx_slow_supply(&slow, last));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, caller.ret);
	EXPECT_EQ(BEFORE + 1, caller.cmd.accepted);
	test_cmd_reap(1, self->fd, completions, BEFORE, 1, KX_TIMEOUT_MS);
	kx_slow_close(&slow);
}

/* ---- the queue ---- */

TEST_F(submit, beyond_the_queue_has_to_reap_first)
{
	static struct kxfer_completion completions[4096];
	struct kxfer_job *nops = calloc(256, sizeof(*nops));
	struct kxfer_submit cmd = good(nops, 256);
	struct kxfer_query query;
	uint32_t n;

	test_cmd_query(self->fd, &query);
	for (n = 0; n < query.max_jobs; n += 256)
		test_cmd_submit(256, self->fd, nops, 256);
	test_err_submit(EAGAIN, self->fd, nops, 1);
	test_cmd_reap(10, self->fd, completions, 10, 0, 0);
	ASSERT_EQ(0, submit(self->fd, &cmd));
	EXPECT_EQ(10, cmd.accepted);
	EXPECT_EQ(EAGAIN, cmd.error);
	test_cmd_reap((int)query.max_jobs, self->fd, completions, 4096, 0, 0);
	test_cmd_submit(256, self->fd, nops, 256);
	free(nops);
}

TEST_F(submit, of_transfers_beyond_the_queue_has_to_reap_first)
{
	static struct kxfer_completion completions[4096];
	struct kxfer_job *jobs = calloc(256, sizeof(*jobs));
	struct kxfer_query query;
	uint32_t n, i;

	for (i = 0; i < 256; i++) {
		jobs[i] = self->job;
		jobs[i].length = 8;
	}
	test_cmd_query(self->fd, &query);
	for (n = 0; n < query.max_jobs; n += 256)
		test_cmd_submit(256, self->fd, jobs, 256);
	test_err_submit(EAGAIN, self->fd, jobs, 1);
	test_cmd_reap((int)query.max_jobs, self->fd, completions, 4096, query.max_jobs,
		      2 * KX_TIMEOUT_MS);
	test_cmd_submit(256, self->fd, jobs, 256);
	free(jobs);
}

TEST_F(submit, leaves_what_its_jobs_have_used)
{
	int i;

	for (i = 0; i < 3; i++)
		test_cmd_transfer(self->fd, KXFER_OP_READ, self->pair.client_region, 0,
				  self->pair.target, 0, 100);
	test_cmd_target_close(self->fd, self->pair.target);
	test_cmd_region_del(self->fd, self->pair.client_region);
}

/* More calls than a uid may have jobs, each of a job that is refused. */
TEST_F(submit, of_refused_jobs_takes_nothing_from_the_share_of_the_uid)
{
	int i;

	self->job.target_offset = LENGTH;
	/* Without CAP_SYS_RESOURCE the share is a limit. */
	ASSERT_EQ(0, seteuid(1000));
	for (i = 0; i < 33000; i++)
		ASSERT_EQ(-ERANGE, kx_submit(self->fd, &self->job, 1));
	self->job.target_offset = 0;
	EXPECT_EQ(1, kx_submit(self->fd, &self->job, 1));
	ASSERT_EQ(0, seteuid(0));
}

static void *submit_a_nop(void *fd)
{
	struct kxfer_job nop = { .op = KXFER_OP_NOP };

	kx_sleep_ms(200);
	return (void *)(long)kx_submit(*(int *)fd, &nop, 1);
}

/* The RECV keeps the waiter waiting; the NOP wakes it. */
TEST_F(submit, of_a_nop_wakes_another_thread)
{
	struct kxfer_job recv = { .op = KXFER_OP_RECV, .region = self->pair.client_region };
	struct kxfer_completion completion;
	uint64_t began = kx_now_ns();
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, kx_mailbox_add(self->fd, "submit-box", 1, 64, &recv.target));
	recv.length = sizeof(struct kxfer_message) + 64;
	test_cmd_submit(1, self->fd, &recv, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit_a_nop, &self->fd));
	EXPECT_EQ(1, kx_reap(self->fd, &completion, 1, 1, 10000));
	EXPECT_EQ(KXFER_OP_NOP, completion.op);
	EXPECT_GT(5000, (kx_now_ns() - began) / 1000000);
	pthread_join(thread, &ret);
	EXPECT_EQ(1, (long)ret);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs under jobs: the exporter withdraws, the client goes, the device goes. Afterwards no
 * device works on the buffer, whose owner has it for itself, and nothing is left behind: no
 * mapping, no attachment, no buffer.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB	(1024u * 1024)
#define LENGTH	(8 * MIB)	/* so long that some jobs are still in flight at the end */
#define NR_JOBS	64
#define NR_WHOLE	8	/* of those that move all their bytes, on slow kernels too */

FIXTURE(dmabuf)
{
	struct rig rig;
	struct baseline baseline;
	long nr_dmabufs;
	char device[64];
	char netdev[32];
	int fd;
};

FIXTURE_VARIANT(dmabuf)
{
	enum buffer_kind kind;
};

FIXTURE_VARIANT_ADD(dmabuf, of_a_memfd)
{
	.kind = BUFFER_UDMABUF,
};

FIXTURE_VARIANT_ADD(dmabuf, of_the_system_heap)
{
	.kind = BUFFER_HEAP,
};

FIXTURE_SETUP(dmabuf)
{
	struct rig_options options = {
		.length = LENGTH, .here = variant->kind, .there = variant->kind,
	};
	int ret;

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ret = rig_open(&self->rig, &options);
	if (ret)
		rig_close(&self->rig);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "this kernel makes no such dma-buf, or not for the CPU");
	ASSERT_EQ(0, ret);
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	self->nr_dmabufs = buffer_nr_dmabufs();
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(dmabuf)
{
	const char *left;

	rig_close(&self->rig);
	if (!self->nr_dmabufs)
		EXPECT_TRUE(kx_wait_until(!buffer_nr_dmabufs(), BASELINE_WAIT_MS));
	/* A device that was made anew has other resources. */
	if (self->baseline.live.nr && !self->device[0]) {
		left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
		if (left)
			TH_LOG("left behind: %s", left);
		EXPECT_EQ(NULL, left);
	}
	close(self->fd);
}

static int submit(const struct rig *rig, uint32_t op, int nr_jobs)
{
	struct kxfer_job jobs[NR_JOBS];
	int i;

	for (i = 0; i < nr_jobs; i++) {
		jobs[i] = rig_job(rig, op, 0, 0, LENGTH);
		jobs[i].user_data = i;
	}
	return kx_submit(rig->client, jobs, nr_jobs);
}

static int submit_many(const struct rig *rig, uint32_t op)
{
	return submit(rig, op, NR_JOBS);
}

/* Every job ends once, with success or @error. Return: number of those with it, or -1 */
static int reap(const struct rig *rig, int error, int nr_jobs)
{
	struct kxfer_completion done[NR_JOBS];
	bool seen[NR_JOBS] = { 0 };
	int i, nr = 0;

	if (kx_reap(rig->client, done, nr_jobs, nr_jobs, RIG_WAIT_MS) != nr_jobs)
		return -1;
	for (i = 0; i < nr_jobs; i++) {
		if (seen[done[i].user_data] || (done[i].status && done[i].status != -error))
			return -1;
		seen[done[i].user_data] = true;
		nr += !!done[i].status;
	}
	return nr;
}

static int reap_ended(const struct rig *rig, int error)
{
	return reap(rig, error, NR_JOBS);
}

/* No operation in flight may change the buffer any more. */
static void is_left_alone(struct __test_metadata *_metadata, const struct buffer *buffer)
{
	struct pattern pattern = { .seed = 0xd3a, .generation = 5 };
	struct pattern_fault fault;
	char text[320];
	int i;

	pattern_fill(buffer->bytes, LENGTH, &pattern);
	for (i = 0; i < 5; i++) {
		kx_sleep_ms(60);
		ASSERT_EQ(PATTERN_GOOD, pattern_check(buffer->bytes, LENGTH, &pattern, NULL,
						      &fault)) {
			TH_LOG("written later: %s",
			       pattern_describe(&pattern, &fault, text, sizeof(text)));
		}
	}
}

TEST_F_TIMEOUT(dmabuf, withdrawn_under_writes_is_left_alone, 90)
{
	int nr;

	ASSERT_EQ(NR_JOBS, submit_many(&self->rig, KXFER_OP_WRITE));
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	is_left_alone(_metadata, &self->rig.there);
	nr = reap_ended(&self->rig, EKEYREVOKED);
	TH_LOG("%d of %d jobs were revoked", nr, NR_JOBS);
	EXPECT_LE(1, nr);
	/* Its owner is free to end it too. */
	test_cmd_region_del(self->rig.server, self->rig.there_region);
}

TEST_F_TIMEOUT(dmabuf, of_an_exporter_that_ends_is_left_alone, 90)
{
	int nr;

	ASSERT_EQ(NR_JOBS, submit_many(&self->rig, KXFER_OP_WRITE));
	ASSERT_EQ(0, close(self->rig.server));
	self->rig.server = -1;
	is_left_alone(_metadata, &self->rig.there);
	nr = reap_ended(&self->rig, EKEYREVOKED);
	TH_LOG("%d of %d jobs were revoked", nr, NR_JOBS);
	EXPECT_LE(1, nr);
}

TEST_F_TIMEOUT(dmabuf, of_a_client_that_ends_under_reads_is_left_alone, 90)
{
	ASSERT_EQ(NR_JOBS, submit_many(&self->rig, KXFER_OP_READ));
	ASSERT_EQ(0, close(self->rig.client));
	self->rig.client = -1;
	is_left_alone(_metadata, &self->rig.here);
}

TEST_F_TIMEOUT(dmabuf, cannot_be_taken_from_jobs, 90)
{
	ASSERT_EQ(NR_WHOLE, submit(&self->rig, KXFER_OP_READ, NR_WHOLE));
	test_err_region_del(EBUSY, self->rig.client, self->rig.here_region);
	/* Who closes and unmaps it takes nothing away either. */
	buffer_free(&self->rig.here);
	EXPECT_EQ(0, reap(&self->rig, EIO, NR_WHOLE));
	test_cmd_region_del(self->rig.client, self->rig.here_region);
}

/* Return: 0 or -errno of the last try */
static int reach_again(struct rig *rig)
{
	uint64_t end = kx_deadline_ns(15000);
	int ret;

	do {
		ret = kx_peer_open(rig->client, kx_addr(kx_address(), KXFER_PORT), &rig->peer) ?:
		      kx_target_open(rig->client, rig->peer, rig->name, 0, &rig->target);
		if (ret)
			kx_sleep_ms(100);
	} while (ret && kx_now_ns() < end);
	return ret;
}

TEST_F_TIMEOUT(dmabuf, outlives_its_device, 120)
{
	struct rig *rig = &self->rig;
	uint64_t listener;
	int nr;

	snprintf(self->device, sizeof(self->device), "%s", kx_device());
	if (geteuid() || !baseline_netdev(self->device, self->netdev, sizeof(self->netdev)))
		SKIP(return, "needs root and a software RDMA device to remove");
	ASSERT_EQ(NR_JOBS, submit_many(rig, KXFER_OP_READ));
	ASSERT_EQ(0, baseline_command("rdma link del %s", self->device));
	is_left_alone(_metadata, &rig->here);
	nr = reap_ended(rig, ENODEV);
	TH_LOG("%d of %d jobs ended with ENODEV", nr, NR_JOBS);
	EXPECT_LE(0, nr);
	EXPECT_EQ(0, kx_counter(self->fd, "live_mappings"));
	ASSERT_EQ(0, baseline_command("rdma link add %s type %s netdev %s", self->device,
				      kx_provider(), self->netdev));
	kx_wait_until(!kx_listen_add(rig->server, kx_addr(kx_address(), KXFER_PORT), 0, &listener),
		      15000);
	ASSERT_EQ(0, reach_again(rig));
	memset(rig->there.bytes, 0x3c, LENGTH);
	EXPECT_EQ(0, kx_transfer(rig->client, KXFER_OP_READ, rig->here_region, 0, rig->target, 0,
				 LENGTH));
	EXPECT_EQ(0, memcmp(rig->here.bytes, rig->there.bytes, LENGTH));
}

TEST_HARNESS_MAIN

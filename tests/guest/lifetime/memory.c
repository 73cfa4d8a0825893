// SPDX-License-Identifier: GPL-2.0
/*
 * A region keeps its pinned pages, whatever happens to the mapping that they came from: munmap,
 * other memory in its place, truncation, hole punching, fork. Its pins are given back at its
 * end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define LENGTH	(256u * 1024)

FIXTURE(memory)
{
	struct rig rig;
	struct baseline baseline;
	struct pattern pattern;
	int fd;
};

FIXTURE_VARIANT(memory)
{
	enum buffer_kind there;
};

FIXTURE_VARIANT_ADD(memory, anonymous)
{
	.there = BUFFER_PLAIN,
};

FIXTURE_VARIANT_ADD(memory, shared)
{
	.there = BUFFER_SHARED,
};

FIXTURE_SETUP(memory)
{
	struct rig_options options = { .length = LENGTH, .there = variant->there };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	/* The first rig brings the link up. */
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->pattern = (struct pattern) { .seed = 0x701, .generation = 1 };
	pattern_fill(self->rig.there.bytes, LENGTH, &self->pattern);
}

FIXTURE_TEARDOWN(memory)
{
	const char *left;

	rig_close(&self->rig);
	left = baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS);
	if (left)
		TH_LOG("left behind: %s", left);
	EXPECT_EQ(NULL, left);
	close(self->fd);
}

/* The export still serves the old pages, for READ and for WRITE. */
static void region_is_as_before(struct __test_metadata *_metadata, struct rig *rig,
				struct pattern *pattern)
{
	struct pattern_fault fault;
	char text[320];

	ASSERT_EQ(0, rig_move(rig, KXFER_OP_READ, 0, 0, LENGTH));
	ASSERT_EQ(PATTERN_GOOD, pattern_check(rig->here.bytes, LENGTH, pattern, NULL, &fault)) {
		TH_LOG("READ brought %s", pattern_describe(pattern, &fault, text, sizeof(text)));
	}
	pattern->generation++;
	pattern_fill(rig->here.bytes, LENGTH, pattern);
	ASSERT_EQ(0, rig_move(rig, KXFER_OP_WRITE, 0, 0, LENGTH));
	memset(rig->here.bytes, 0, LENGTH);
	ASSERT_EQ(0, rig_move(rig, KXFER_OP_READ, 0, 0, LENGTH));
	ASSERT_EQ(PATTERN_GOOD, pattern_check(rig->here.bytes, LENGTH, pattern, NULL, NULL));
}

TEST_F(memory, survives_munmap)
{
	munmap(self->rig.there.mapping, self->rig.there.mapped);
	self->rig.there.mapping = NULL;
	region_is_as_before(_metadata, &self->rig, &self->pattern);
}

TEST_F(memory, is_not_what_is_mapped_there_later)
{
	uint8_t *other = mmap(self->rig.there.mapping, self->rig.there.mapped,
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	size_t i;

	ASSERT_EQ((void *)other, self->rig.there.mapping);
	memset(other, 0x77, LENGTH);
	region_is_as_before(_metadata, &self->rig, &self->pattern);
	for (i = 0; i < LENGTH; i++)
		ASSERT_EQ(0x77, other[i]);
}

TEST_F(memory, survives_protection_against_access)
{
	ASSERT_EQ(0, mprotect(self->rig.there.mapping, self->rig.there.mapped, PROT_NONE));
	region_is_as_before(_metadata, &self->rig, &self->pattern);
}

TEST_F(memory, survives_hole_punching)
{
	uint8_t byte = 1;

	if (variant->there == BUFFER_SHARED) {
		ASSERT_EQ(0, fallocate(self->rig.there.fd,
				       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, LENGTH));
		ASSERT_EQ(1, pread(self->rig.there.fd, &byte, 1, 4096));
		EXPECT_EQ(0, byte);
	} else {
		ASSERT_EQ(0, madvise(self->rig.there.mapping, self->rig.there.mapped,
				     MADV_DONTNEED));
		EXPECT_EQ(0, self->rig.there.bytes[4096]);
	}
	region_is_as_before(_metadata, &self->rig, &self->pattern);
}

TEST_F(memory, survives_truncation)
{
	if (variant->there != BUFFER_SHARED)
		SKIP(return, "only files are truncated");
	ASSERT_EQ(0, ftruncate(self->rig.there.fd, 0));
	region_is_as_before(_metadata, &self->rig, &self->pattern);
}

TEST_F(memory, stays_the_parents_after_fork)
{
	struct pattern new = { .seed = 0x701, .generation = 9 };
	int go[2], status;
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		/* From the fork on, private memory is the child's own; shared memory is not. */
		const struct pattern *want = variant->there == BUFFER_SHARED ? &new :
									       &self->pattern;

		_exit(read(go[0], &byte, 1) == 1 &&
		      !pattern_check(self->rig.there.bytes, LENGTH, want, NULL, NULL) ? 0 : 1);
	}
	pattern_fill(self->rig.here.bytes, LENGTH, &new);
	ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, LENGTH));
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, LENGTH, &new,
					      &self->pattern, NULL));
	ASSERT_EQ(1, write(go[1], "g", 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* The region shows new writes of the parent. */
	new.generation = 10;
	pattern_fill(self->rig.there.bytes, LENGTH, &new);
	region_is_as_before(_metadata, &self->rig, &new);
}

TEST_F(memory, pins_are_counted_and_given_back)
{
	long before = baseline_pinned_kib();
	uint32_t region;
	uint8_t *bytes = self->rig.here.bytes;

	/* 4 KiB + 2 bytes that touch three pages. */
	test_cmd_region_add(self->rig.client, bytes + 4095, 4098, 0, &region);
	EXPECT_EQ(before + 12, baseline_pinned_kib());
	test_cmd_region_del(self->rig.client, region);
	EXPECT_EQ(before, baseline_pinned_kib());
}

TEST_F(memory, pins_are_given_back_after_a_failure)
{
	long before = baseline_pinned_kib();
	uint64_t pins = kx_counter(self->fd, "live_pins");
	uint8_t *gap = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint32_t region;

	ASSERT_NE(MAP_FAILED, (void *)gap);
	munmap(gap + 40 * 4096, 4096);
	test_err_region_add(EFAULT, self->rig.client, gap, 64 * 4096, KXFER_REGION_F_WRITE,
			    &region);
	EXPECT_EQ(before, baseline_pinned_kib());
	EXPECT_EQ(pins, kx_counter(self->fd, "live_pins"));
	munmap(gap, 64 * 4096);
}

/* Each page has a pin of its own, but the pages of a huge page are unpinned together. */
TEST_F(memory, pins_of_huge_pages_are_given_back)
{
	static const struct {
		enum buffer_kind kind;
		size_t offset;
		size_t length;
	} parts[] = {
		{ BUFFER_HUGETLB, 0, 2 * BUFFER_HUGE },
		{ BUFFER_HUGETLB, 4097, 2 * BUFFER_HUGE - 8194 },
		{ BUFFER_HUGETLB, BUFFER_HUGE - 4096, BUFFER_HUGE },
		{ BUFFER_MIXED, 0, 4 * BUFFER_HUGE },
		{ BUFFER_MIXED, BUFFER_HUGE - 1, BUFFER_HUGE + 2 },
	};
	struct baseline before;
	struct buffer buffer;
	uint32_t region;
	size_t i;

	ASSERT_EQ(0, baseline_take(self->fd, &before));
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (buffer_alloc(&buffer, parts[i].kind, 4 * BUFFER_HUGE))
			SKIP(return, "no huge pages are free");
		test_cmd_region_add(self->rig.client, buffer.bytes + parts[i].offset,
				    parts[i].length, KXFER_REGION_F_WRITE, &region);
		test_cmd_region_del(self->rig.client, region);
		buffer_free(&buffer);
		EXPECT_EQ(NULL, baseline_wait(self->fd, &before, BASELINE_WAIT_MS)) {
			TH_LOG("part %zu", i);
		}
	}
}

struct swapper {
	uint8_t *bytes;
	atomic_bool stop;
};

/*
 * Removes the mapping, maps other memory there, forbids access, and restores it, again and
 * again.
 */
static void *swap_mappings(void *argument)
{
	struct swapper *swapper = argument;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	while (!atomic_load(&swapper->stop)) {
		munmap(swapper->bytes + LENGTH / 2, LENGTH / 2);
		mmap(swapper->bytes, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0);
		mprotect(swapper->bytes, LENGTH / 4, PROT_NONE);
		mmap(swapper->bytes, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0);
		mmap(swapper->bytes, LENGTH / 2, PROT_READ, flags, -1, 0);
		mmap(swapper->bytes, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0);
	}
	return NULL;
}

TEST_F_TIMEOUT(memory, may_be_swapped_while_it_is_pinned, 60)
{
	struct swapper swapper = { 0 };
	uint64_t end = kx_deadline_ns(5000);
	uint32_t region, added = 0, refused = 0;
	pthread_t thread;
	int ret;

	swapper.bytes = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)swapper.bytes);
	ASSERT_EQ(0, pthread_create(&thread, NULL, swap_mappings, &swapper));
	while (kx_now_ns() < end && (added < 300 || !refused)) {
		ret = kx_region_add(self->rig.client, swapper.bytes, LENGTH,
				    KXFER_REGION_F_WRITE, &region);
		if (ret == -EFAULT) {
			refused++;
			continue;
		}
		ASSERT_EQ(0, ret);
		added++;
		ASSERT_EQ(0, kx_region_del(self->rig.client, region));
	}
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	munmap(swapper.bytes, LENGTH);
	TH_LOG("%u regions added, %u refused", added, refused);
	EXPECT_LT(0, added);
}

TEST_HARNESS_MAIN

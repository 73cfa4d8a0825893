// SPDX-License-Identifier: GPL-2.0
/* REGION_ADD and REGION_DEL: which memory may be pinned, limits, and use. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define PAGE	4096UL
#define HUGE	(2UL << 20)

FIXTURE(region)
{
	int fd;
	uint32_t id;
	char *page;
};

FIXTURE_SETUP(region)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->page = kx_alloc(4 * PAGE);
	ASSERT_NE(NULL, self->page);
}

FIXTURE_TEARDOWN(region)
{
	close(self->fd);
}

TEST_F(region, of_any_alignment_is_taken)
{
	test_cmd_region_add(self->fd, self->page, 1, 0, &self->id);
	EXPECT_LT(0, self->id);
	test_cmd_region_add(self->fd, self->page + 1, 1, 0, &self->id);
	test_cmd_region_add(self->fd, self->page + PAGE - 1, 2, 0, &self->id);
	test_cmd_region_add(self->fd, self->page + 3, 2 * PAGE, KXFER_REGION_F_WRITE,
			    &self->id);
}

TEST_F(region, may_overlap_another)
{
	uint32_t other;

	test_cmd_region_add(self->fd, self->page, 2 * PAGE, 0, &self->id);
	test_cmd_region_add(self->fd, self->page + PAGE, 2 * PAGE, 0, &other);
	EXPECT_NE(self->id, other);
}

TEST_F(region, without_bytes_is_refused)
{
	test_err_region_add(EINVAL, self->fd, self->page, 0, 0, &self->id);
}

TEST_F(region, that_wraps_is_refused)
{
	test_err_region_add(EOVERFLOW, self->fd, (void *)-PAGE, 2 * PAGE, 0, &self->id);
	test_err_region_add(EOVERFLOW, self->fd, self->page, UINT64_MAX, 0, &self->id);
}

TEST_F(region, longer_than_the_limit_is_refused)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	test_err_region_add(EDQUOT, self->fd, self->page, query.max_region_bytes + 1, 0,
			    &self->id);
}

TEST_F(region, of_memory_that_is_not_there_is_refused)
{
	test_err_region_add(EFAULT, self->fd, NULL, PAGE, 0, &self->id);
	ASSERT_EQ(0, munmap(self->page + PAGE, PAGE));
	test_err_region_add(EFAULT, self->fd, self->page + PAGE, 1, 0, &self->id);
	test_err_region_add(EFAULT, self->fd, self->page, 3 * PAGE, 0, &self->id);
	test_err_region_add(EFAULT, self->fd, self->page, PAGE + 1, 0, &self->id);
	test_cmd_region_add(self->fd, self->page, PAGE, 0, &self->id);
}

TEST_F(region, of_kernel_addresses_is_refused)
{
	struct kxfer_region_add cmd = {
		.size = sizeof(cmd),
		.addr = 0xffff888000000000ULL,
		.length = PAGE,
	};

	EXPECT_EQ(-EFAULT, kx_call(self->fd, KXFER_REGION_ADD, &cmd));
}

TEST_F(region, of_memory_without_access_is_refused)
{
	ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_NONE));
	test_err_region_add(EFAULT, self->fd, self->page, PAGE, 0, &self->id);
	test_err_region_add(EFAULT, self->fd, self->page, PAGE, KXFER_REGION_F_WRITE,
			    &self->id);
}

TEST_F(region, of_read_only_memory_cannot_be_writable)
{
	ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_READ));
	test_err_region_add(EFAULT, self->fd, self->page, PAGE, KXFER_REGION_F_WRITE,
			    &self->id);
	test_cmd_region_add(self->fd, self->page, PAGE, 0, &self->id);
}

TEST_F(region, that_failed_leaves_nothing_pinned)
{
	uint64_t pins = kx_counter(self->fd, "live_pins");
	uint64_t regions = kx_counter(self->fd, "live_regions");

	ASSERT_EQ(0, munmap(self->page + 3 * PAGE, PAGE));
	test_err_region_add(EFAULT, self->fd, self->page, 4 * PAGE, 0, &self->id);
	EXPECT_EQ(pins, kx_counter(self->fd, "live_pins"));
	EXPECT_EQ(regions, kx_counter(self->fd, "live_regions"));
}

TEST_F(region, counts_its_pages_while_it_exists)
{
	uint64_t pins = kx_counter(self->fd, "live_pins");

	test_cmd_region_add(self->fd, self->page + 1, 2 * PAGE, 0, &self->id);
	EXPECT_EQ(pins + 3, kx_counter(self->fd, "live_pins"));
	test_cmd_region_del(self->fd, self->id);
	EXPECT_EQ(pins, kx_counter(self->fd, "live_pins"));
}

TEST_F(region, is_known_to_its_session_only)
{
	int other = kx_open();

	ASSERT_LE(0, other);
	test_cmd_region_add(self->fd, self->page, PAGE, 0, &self->id);
	test_err_region_del(ENOENT, other, self->id);
	test_cmd_region_del(self->fd, self->id);
	close(other);
}

TEST_F(region, is_deleted_once)
{
	test_err_region_del(ENOENT, self->fd, 0);
	test_cmd_region_add(self->fd, self->page, PAGE, 0, &self->id);
	test_cmd_region_del(self->fd, self->id);
	test_err_region_del(ENOENT, self->fd, self->id);
}

TEST_F(region, with_an_export_is_busy)
{
	uint32_t export_id;

	test_cmd_region_add(self->fd, self->page, PAGE, 0, &self->id);
	test_cmd_export_add(self->fd, self->id, 0, PAGE, KXFER_RIGHT_READ, "busy",
			    &export_id);
	test_err_region_del(EBUSY, self->fd, self->id);
	test_cmd_export_del(self->fd, export_id);
	test_cmd_region_del(self->fd, self->id);
}

TEST_F(region, beyond_the_number_allowed_is_refused)
{
	struct kxfer_query query;
	uint32_t i;

	test_cmd_query(self->fd, &query);
	for (i = 0; i < query.max_regions; i++)
		test_cmd_region_add(self->fd, self->page, 1, 0, &self->id);
	test_err_region_add(EDQUOT, self->fd, self->page, 1, 0, &self->id);
	test_cmd_region_del(self->fd, 1);
	test_cmd_region_add(self->fd, self->page, 1, 0, &self->id);
}

/* ---- RLIMIT_MEMLOCK ---- */

static int limit_memlock(unsigned long bytes)
{
	struct rlimit limit = { bytes, bytes };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return -errno;
	return kx_become_tester();
}

TEST_F(region, counts_against_memlock)
{
	uint32_t second;

	ASSERT_EQ(0, limit_memlock(2 * PAGE));
	test_err_region_add(ENOMEM, self->fd, self->page, 2 * PAGE + 1, 0, &self->id);
	test_cmd_region_add(self->fd, self->page, 2 * PAGE, 0, &self->id);
	test_err_region_add(ENOMEM, self->fd, self->page, 1, 0, &second);
	test_cmd_region_del(self->fd, self->id);
	test_cmd_region_add(self->fd, self->page, 1, 0, &second);
}

TEST_F(region, is_refused_without_memlock)
{
	ASSERT_EQ(0, limit_memlock(0));
	test_err_region_add(ENOMEM, self->fd, self->page, 1, 0, &self->id);
}

TEST_F(region, that_failed_does_not_count_against_memlock)
{
	ASSERT_EQ(0, munmap(self->page + PAGE, PAGE));
	ASSERT_EQ(0, limit_memlock(2 * PAGE));
	test_err_region_add(EFAULT, self->fd, self->page, 2 * PAGE, 0, &self->id);
	test_err_region_add(EFAULT, self->fd, self->page, 2 * PAGE, 0, &self->id);
	test_cmd_region_add(self->fd, self->page, PAGE, 0, &self->id);
}

/* ---- kinds of memory ---- */

static int nr_segments(int fd, const void *memory, uint64_t length)
{
	struct kxfer_region_add cmd = {
		.size = sizeof(cmd),
		.flags = KXFER_REGION_F_WRITE,
		.addr = (uintptr_t)memory,
		.length = length,
	};
	int ret = kx_call(fd, KXFER_REGION_ADD, &cmd);

	return ret ? ret : (int)cmd.nr_segments;
}

TEST_F(region, of_shared_anonymous_memory_is_taken)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, memory);
	test_cmd_region_add(self->fd, memory, PAGE, KXFER_REGION_F_WRITE, &self->id);
}

TEST_F(region, of_a_memfd_is_taken)
{
	int file = memfd_create("region", MFD_CLOEXEC);
	void *memory;

	ASSERT_LE(0, file);
	ASSERT_EQ(0, ftruncate(file, 2 * PAGE));
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, memory);
	test_cmd_region_add(self->fd, memory, 2 * PAGE, KXFER_REGION_F_WRITE, &self->id);
	test_cmd_region_add(self->fd, memory, 2 * PAGE, 0, &self->id);
}

TEST_F(region, beyond_the_end_of_a_memfd_is_refused)
{
	int file = memfd_create("short", MFD_CLOEXEC);
	void *memory;

	ASSERT_LE(0, file);
	ASSERT_EQ(0, ftruncate(file, PAGE));
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, memory);
	test_err_region_add(EFAULT, self->fd, memory, 2 * PAGE, 0, &self->id);
}

TEST_F(region, of_a_huge_page_is_one_segment)
{
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "w");
	void *memory;

	if (!pool)
		SKIP(return, "this kernel has no huge pages");
	fprintf(pool, "2\n");
	fclose(pool);
	memory = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		SKIP(return, "no huge page is free");
	EXPECT_EQ(1, nr_segments(self->fd, memory, HUGE));
	EXPECT_EQ(1, nr_segments(self->fd, memory + 5, HUGE - 10));
}

TEST_F(region, of_transparent_huge_pages_has_few_segments)
{
	char *memory = mmap(NULL, 3 * HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned = (char *)(((uintptr_t)memory + HUGE - 1) & ~(HUGE - 1));
	int nr;

	ASSERT_NE(MAP_FAILED, memory);
	if (madvise(aligned, 2 * HUGE, MADV_HUGEPAGE))
		SKIP(return, "this kernel has no transparent huge pages");
	memset(aligned, 1, 2 * HUGE);
	nr = nr_segments(self->fd, aligned, 2 * HUGE);
	EXPECT_LE(1, nr);
	EXPECT_GE(64, nr);
}

TEST_F(region, of_mixed_mappings_is_taken)
{
	char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_NE(MAP_FAILED, mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	test_cmd_region_add(self->fd, memory, 3 * PAGE, KXFER_REGION_F_WRITE, &self->id);
}

/* ---- files of a real file system ---- */

#define DISK	"/tmp/region.ext4"
#define MOUNT	"/tmp/region.mnt"

FIXTURE(file)
{
	int fd;
	int file;
	uint32_t id;
	bool mounted;
};

FIXTURE_SETUP(file)
{
	char zeros[4 * 4096] = "";

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	mkdir(MOUNT, 0700);
	if (system("modprobe -a loop ext4 && truncate -s 8M " DISK " && "
		   "mke2fs -q -F -t ext4 " DISK " && "
		   "mount -t ext4 -o loop " DISK " " MOUNT))
		SKIP(return, "a file system with a disk cannot be made here");
	self->mounted = true;
	self->file = open(MOUNT "/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_LE(0, self->file);
	ASSERT_EQ(sizeof(zeros), write(self->file, zeros, sizeof(zeros)));
}

FIXTURE_TEARDOWN(file)
{
	close(self->fd);
	if (self->mounted) {
		close(self->file);
		EXPECT_EQ(0, umount2(MOUNT, MNT_DETACH));
	}
	unlink(DISK);
}

TEST_F(file, mapped_shared_and_writable_is_refused)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, self->file, 0);

	ASSERT_NE(MAP_FAILED, memory);
	test_err_region_add(EFAULT, self->fd, memory, PAGE, KXFER_REGION_F_WRITE, &self->id);
	test_err_region_add(EFAULT, self->fd, memory, PAGE, 0, &self->id);
}

TEST_F(file, mapped_shared_for_reading_is_refused)
{
	void *memory = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->file, 0);

	ASSERT_NE(MAP_FAILED, memory);
	test_err_region_add(EFAULT, self->fd, memory, PAGE, 0, &self->id);
}

TEST_F(file, mapped_shared_in_the_middle_is_refused)
{
	char *memory = kx_alloc(3 * PAGE);

	ASSERT_NE(NULL, memory);
	ASSERT_NE(MAP_FAILED, mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, self->file, 0));
	test_err_region_add(EFAULT, self->fd, memory, 3 * PAGE, KXFER_REGION_F_WRITE,
			    &self->id);
	test_cmd_region_add(self->fd, memory, PAGE, KXFER_REGION_F_WRITE, &self->id);
}

TEST_F(file, mapped_private_is_taken)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->file, 0);

	ASSERT_NE(MAP_FAILED, memory);
	test_cmd_region_add(self->fd, memory, PAGE, KXFER_REGION_F_WRITE, &self->id);
	test_cmd_region_add(self->fd, memory, PAGE, 0, &self->id);
}

/* ---- sessions ---- */

TEST(sessions_beyond_the_number_allowed_are_refused)
{
	struct rlimit files = { 8192, 8192 };
	int *fds = calloc(8192, sizeof(*fds));
	int nr = 0, again;

	ASSERT_NE(NULL, fds);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	while (nr < 6000 && (fds[nr] = kx_open()) >= 0)
		nr++;
	EXPECT_EQ(-EMFILE, fds[nr]);
	EXPECT_LE(1024, nr);
	EXPECT_GE(4096, nr);
	close(fds[0]);
	again = kx_open();
	EXPECT_LE(0, again);
	close(again);
	while (--nr > 0)
		close(fds[nr]);
	free(fds);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of dma-bufs: which descriptors and ranges are taken, what works on them, what does
 * not, and that they stay as long as they are used and no longer. How bytes move is for
 * data:transfer, what ends under jobs for lifetime:dmabuf.
 */
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/buffer.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define PAGE	4096UL
#define LENGTH	(64 * PAGE)
#define FENCE_WAIT_MS	1500	/* less than kxfer would wait for a move of the memory */

FIXTURE(dmabuf)
{
	struct rig rig;
	struct kx_live before;
	long nr_dmabufs;
	int fd;
	struct kxfer_region_add add;
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
	struct buffer buffer;
	int ret = buffer_alloc(&buffer, variant->kind, PAGE);

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "this kernel makes no dma-buf of this kind");
	ASSERT_EQ(0, ret);
	buffer_free(&buffer);
	/* The first link of the node makes mappings that stay. */
	ret = rig_open(&self->rig, &options);
	rig_close(&self->rig);
	if (ret == -EOPNOTSUPP && buffer_lacks_vmap())
		SKIP(return, "udmabuf of 6.1 has no mapping for the CPU");
	ASSERT_EQ(0, ret);
	self->nr_dmabufs = buffer_nr_dmabufs();
	ASSERT_EQ(0, kx_live_take(self->fd, &self->before));
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->add = (struct kxfer_region_add) {
		.size = sizeof(self->add),
		.flags = KXFER_REGION_F_WRITE | KXFER_REGION_F_DMABUF,
		.length = LENGTH,
		.dmabuf_fd = self->rig.here.fd,
	};
}

FIXTURE_TEARDOWN(dmabuf)
{
	if (self->add.size) {
		rig_close(&self->rig);
		EXPECT_EQ(NULL, kx_live_wait(self->fd, &self->before, KX_TIMEOUT_MS));
		EXPECT_TRUE(kx_wait_until(buffer_nr_dmabufs() == self->nr_dmabufs, KX_TIMEOUT_MS));
	}
	close(self->fd);
}

static int add(FIXTURE_DATA(dmabuf) *self)
{
	return kx_call(self->rig.client, KXFER_REGION_ADD, &self->add);
}

/* One member is other than good for the time of a call. */
#define REFUSED(_error, _member, _value) do {		\
	__typeof__(self->add) good__ = self->add;	\
							\
	self->add._member = (_value);			\
	EXPECT_EQ(-(_error), add(self)) {		\
		TH_LOG(#_member " = " #_value);		\
	}						\
	self->add = good__;				\
} while (0)

/* Needs no dma-buf: also where there are none. */
TEST(another_descriptor_is_none)
{
	int fd = kx_open(), memfd = memfd_create("kxfer-test", MFD_CLOEXEC);
	struct kxfer_region_add add = {
		.size = sizeof(add),
		.flags = KXFER_REGION_F_DMABUF,
		.length = PAGE,
		.dmabuf_fd = memfd,
	};

	ASSERT_LE(0, fd);
	ASSERT_LE(0, memfd);
	ASSERT_EQ(0, ftruncate(memfd, PAGE));
	EXPECT_EQ(-EINVAL, kx_call(fd, KXFER_REGION_ADD, &add));
	close(memfd);
	EXPECT_EQ(-EBADF, kx_call(fd, KXFER_REGION_ADD, &add));
	close(fd);
}

TEST_F(dmabuf, refuses_what_is_not_there)
{
	int memfd = memfd_create("kxfer-test", MFD_CLOEXEC);
	struct kxfer_query query;

	ASSERT_LE(0, memfd);
	test_cmd_query(self->fd, &query);
	EXPECT_TRUE(query.features & KXFER_FEATURE_DMABUF);
	REFUSED(EBADF, dmabuf_fd, -1);
	REFUSED(EBADF, dmabuf_fd, INT32_MIN);
	REFUSED(EBADF, dmabuf_fd, 100000);
	REFUSED(EINVAL, dmabuf_fd, memfd);
	REFUSED(EINVAL, dmabuf_fd, self->fd);
	REFUSED(EINVAL, length, 0);
	REFUSED(ERANGE, length, LENGTH + 1);
	REFUSED(ERANGE, addr, 1);
	REFUSED(ERANGE, addr, LENGTH);
	REFUSED(EOVERFLOW, addr, UINT64_MAX);
	REFUSED(ERANGE, length, UINT64_MAX);
	REFUSED(EINVAL, __reserved, 1);
	REFUSED(EOPNOTSUPP, flags, KXFER_REGION_F_DMABUF << 1);
	/* Memory of the process, and a descriptor beside it. */
	REFUSED(EINVAL, flags, KXFER_REGION_F_WRITE);
	/* A program of a time without dma-bufs has descriptor 0, which is none here. */
	REFUSED(EINVAL, size, offsetof(struct kxfer_region_add, dmabuf_fd));
	EXPECT_EQ(0, add(self));
	close(memfd);
}

TEST_F(dmabuf, that_is_open_for_reading_is_not_writable)
{
	int fd;

	if (variant->kind != BUFFER_HEAP)
		SKIP(return, "only a heap makes descriptors for reading");
	fd = buffer_open_heap(LENGTH, O_RDONLY);
	ASSERT_LE(0, fd);
	self->add.dmabuf_fd = fd;
	EXPECT_EQ(-EACCES, add(self));
	self->add.flags &= ~KXFER_REGION_F_WRITE;
	EXPECT_EQ(0, add(self));
	close(fd);
}

/* A part that begins within a page, and is no multiple of a word. */
TEST_F(dmabuf, gives_a_part_of_itself)
{
	struct rig *rig = &self->rig;

	self->add.addr = 3 * PAGE + 5;
	self->add.length = 2 * PAGE + 7;
	ASSERT_EQ(0, add(self));
	EXPECT_EQ(0, self->add.nr_segments);
	memset(rig->here.bytes, 0x11, LENGTH);
	memset(rig->there.bytes, 0x22, LENGTH);
	test_cmd_transfer(rig->client, KXFER_OP_READ, self->add.region, 0, rig->target, 1,
			  self->add.length);
	EXPECT_EQ(0x11, rig->here.bytes[self->add.addr - 1]);
	EXPECT_EQ(0x22, rig->here.bytes[self->add.addr]);
	EXPECT_EQ(0x22, rig->here.bytes[self->add.addr + self->add.length - 1]);
	EXPECT_EQ(0x11, rig->here.bytes[self->add.addr + self->add.length]);
	test_err_transfer(ERANGE, rig->client, KXFER_OP_READ, self->add.region, 1, rig->target,
			  0, self->add.length);
}

/* Short WRITEs go inline where the device can; a dma-buf has no bytes for that. */
TEST_F(dmabuf, is_written_from_in_short_pieces)
{
	struct rig *rig = &self->rig;
	uint32_t i;

	for (i = 0; i < 200; i++)
		rig->here.bytes[i] = i;
	memset(rig->there.bytes, 0xff, 200);
	for (i = 0; i < 200; i += 8)
		test_cmd_transfer(rig->client, KXFER_OP_WRITE, rig->here_region, i, rig->target,
				  i, 8);
	EXPECT_EQ(0, memcmp(rig->here.bytes, rig->there.bytes, 200));
}

TEST_F(dmabuf, takes_atomics)
{
	struct rig *rig = &self->rig;
	uint64_t word = 40;
	int ret;

	memcpy(rig->there.bytes + 64, &word, sizeof(word));
	ret = kx_atomic(rig->client, KXFER_OP_FETCH_ADD, rig->here_region, 128, rig->target, 64,
			2, 0);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no atomics");
	ASSERT_EQ(0, ret);
	memcpy(&word, rig->here.bytes + 128, sizeof(word));
	EXPECT_EQ(40, word);
	memcpy(&word, rig->there.bytes + 64, sizeof(word));
	EXPECT_EQ(42, word);
}

TEST_F(dmabuf, is_no_place_for_messages)
{
	struct rig *rig = &self->rig;
	uint32_t mailbox, mail;
	char name[64];

	snprintf(name, sizeof(name), "mail-%d", getpid());
	ASSERT_EQ(0, kx_mailbox_add(rig->server, name, 4, 64, &mailbox));
	test_cmd_target_open(rig->client, rig->peer, name, 0, &mail);
	test_err_send(EOPNOTSUPP, rig->client, rig->here_region, 0, 64, mail);
	/* One that could be posted without a look at its neighbours (quick.c). */
	test_err_send(EOPNOTSUPP, rig->client, rig->here_region, 0, 1, mail);
	test_err_recv(EOPNOTSUPP, rig->server, mailbox, rig->there_region, 0, LENGTH);
}

TEST_F(dmabuf, stays_when_its_descriptor_is_closed)
{
	struct rig *rig = &self->rig;

	memset(rig->here.bytes, 0x5a, LENGTH);
	memset(rig->there.bytes, 0, LENGTH);
	close(rig->here.fd);
	close(rig->there.fd);
	rig->here.fd = -1;
	rig->there.fd = -1;
	test_cmd_transfer(rig->client, KXFER_OP_WRITE, rig->here_region, 0, rig->target, 0, LENGTH);
	EXPECT_EQ(0, memcmp(rig->here.bytes, rig->there.bytes, LENGTH));
}

TEST_F(dmabuf, is_let_go_with_its_last_region)
{
	struct rig *rig = &self->rig;
	uint32_t regions[8];
	int i;

	if (self->nr_dmabufs < 0)
		SKIP(return, "needs dma_buf/bufinfo in debugfs");
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, add(self));
		regions[i] = self->add.region;
		test_cmd_transfer(rig->client, KXFER_OP_READ, regions[i], i * PAGE, rig->target, 0,
				  PAGE);
	}
	test_cmd_region_del(rig->client, rig->here_region);
	buffer_free(&rig->here);
	EXPECT_EQ(self->nr_dmabufs + 2, buffer_nr_dmabufs());
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(self->nr_dmabufs + 2, buffer_nr_dmabufs());
		test_cmd_region_del(rig->client, regions[i]);
	}
	EXPECT_TRUE(kx_wait_until(buffer_nr_dmabufs() == self->nr_dmabufs + 1, KX_TIMEOUT_MS));
}

TEST_F(dmabuf, is_busy_while_it_is_exported)
{
	test_err_region_del(EBUSY, self->rig.server, self->rig.there_region);
	test_cmd_export_del(self->rig.server, self->rig.export_id);
	test_cmd_region_del(self->rig.server, self->rig.there_region);
}

/* Both ends of a transfer, and the CPU between the calls that its owner makes. */
TEST_F(dmabuf, may_be_at_both_ends_and_synced_by_its_owner)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	struct rig *rig = &self->rig;
	uint32_t id, target;
	char name[64];

	snprintf(name, sizeof(name), "same-%d", getpid());
	ASSERT_EQ(0, kx_call(rig->server, KXFER_REGION_ADD, &self->add));
	test_cmd_export_add(rig->server, self->add.region, 0, LENGTH, KXFER_RIGHT_READ, name, &id);
	test_cmd_target_open(rig->client, rig->peer, name, 0, &target);
	ASSERT_EQ(0, ioctl(rig->here.fd, DMA_BUF_IOCTL_SYNC, &sync));
	memset(rig->here.bytes, 0x77, PAGE);
	memset(rig->here.bytes + PAGE, 0, PAGE);
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	ASSERT_EQ(0, ioctl(rig->here.fd, DMA_BUF_IOCTL_SYNC, &sync));
	test_cmd_transfer(rig->client, KXFER_OP_READ, rig->here_region, PAGE, target, 0, PAGE);
	sync.flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ;
	ASSERT_EQ(0, ioctl(rig->here.fd, DMA_BUF_IOCTL_SYNC, &sync));
	EXPECT_EQ(0, memcmp(rig->here.bytes, rig->here.bytes + PAGE, PAGE));
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ;
	EXPECT_EQ(0, ioctl(rig->here.fd, DMA_BUF_IOCTL_SYNC, &sync));
}

/* Fences that a process signals, or never does: drivers/dma-buf/sw_sync.c has no uapi header. */
#define SW_SYNC	"/sys/kernel/debug/sync/sw_sync"
struct sw_sync_fence {
	uint32_t value;		/* signalled when the timeline gets there */
	char name[32];
	int32_t fd;
};
#define SW_SYNC_CREATE_FENCE _IOWR('W', 0, struct sw_sync_fence)

/* Return: descriptor of the fence, which all work on the buffer is to come after; or -errno */
static int put_fence(int timeline, int dmabuf)
{
	struct sw_sync_fence fence = { .value = 1, .name = "kxfer-test" };
	struct dma_buf_import_sync_file import = { .flags = DMA_BUF_SYNC_RW };

	if (ioctl(timeline, SW_SYNC_CREATE_FENCE, &fence))
		return -errno;
	import.fd = fence.fd;
	if (!ioctl(dmabuf, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import))
		return fence.fd;
	close(fence.fd);
	return -errno;
}

static bool is_signalled(int fence)
{
	struct pollfd ask = { .fd = fence, .events = POLLIN };

	return poll(&ask, 1, 0) != 0;
}

/*
 * A handler of a link makes the buffer reachable when a peer first asks for it. A fence of the
 * owner's process, who may never signal it, does not keep it and the requests behind it.
 */
TEST_F(dmabuf, with_a_fence_of_its_owner_keeps_no_peer_waiting)
{
	int timeline = open(SW_SYNC, O_RDWR | O_CLOEXEC), fence;
	struct rig *rig = &self->rig;
	uint32_t id, target;
	uint64_t end;
	char name[64];

	if (timeline < 0)
		SKIP(return, "no " SW_SYNC ": the kernel is without SW_SYNC");
	fence = put_fence(timeline, rig->here.fd);
	ASSERT_LE(0, fence);
	snprintf(name, sizeof(name), "fenced-%d", getpid());
	ASSERT_EQ(0, add(self));
	test_cmd_export_add(rig->client, self->add.region, 0, LENGTH, KXFER_RIGHT_READ, name, &id);
	end = kx_deadline_ns(FENCE_WAIT_MS);
	test_cmd_target_open(rig->client, rig->peer, name, 0, &target);
	memset(rig->here.bytes, 0x66, PAGE);
	test_cmd_transfer(rig->client, KXFER_OP_READ, rig->here_region, PAGE, target, 0, PAGE);
	EXPECT_GT(end, kx_now_ns());
	EXPECT_EQ(0, memcmp(rig->here.bytes, rig->here.bytes + PAGE, PAGE));
	EXPECT_FALSE(is_signalled(fence));
	close(fence);
	close(timeline);
}

TEST_HARNESS_MAIN

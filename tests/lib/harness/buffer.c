// SPDX-License-Identifier: MIT
/*
 * Buffers: memory with a certain kind of pages; see buffer.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness/buffer.h"

#define PAGE		4096u

/* Touches the pages in an order where no two neighbours follow each other. */
static void touch_scattered(uint8_t *bytes, size_t pages)
{
	size_t step, first, page;

	for (step = 7; pages > step && pages % step == 0; step += 2)
		;
	for (first = 0; first < step; first++)
		for (page = first; page < pages; page += step)
			bytes[(pages - 1 - page) * PAGE] = 1;
}

static void touch(uint8_t *bytes, size_t length)
{
	size_t at;

	for (at = 0; at < length; at += PAGE)
		bytes[at] = 1;
}

static int map(struct buffer *buffer, size_t length, int flags)
{
	void *mapping = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, buffer->fd, 0);

	if (mapping == MAP_FAILED)
		return -errno;
	buffer->mapping = mapping;
	buffer->mapped = length;
	buffer->bytes = mapping;
	return 0;
}

static size_t round_up(size_t length, size_t to)
{
	return (length + to - 1) / to * to;
}

static int map_thp(struct buffer *buffer, size_t length)
{
	int ret = map(buffer, round_up(length, BUFFER_HUGE) + BUFFER_HUGE,
		      MAP_PRIVATE | MAP_ANONYMOUS);

	if (ret)
		return ret;
	buffer->bytes = (uint8_t *)round_up((size_t)buffer->mapping, BUFFER_HUGE);
	/* A kernel without transparent huge pages rejects the advice. */
	if (madvise(buffer->bytes, round_up(length, BUFFER_HUGE), MADV_HUGEPAGE))
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	return 0;
}

static long pool_number(const char *name, long set)
{
	char path[96];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-2048kB/%s", name);
	file = fopen(path, set < 0 ? "re" : "we");
	if (!file)
		return -1;
	if (set >= 0)
		value = fprintf(file, "%ld\n", set) > 0 ? set : -1;
	else if (fscanf(file, "%ld", &value) != 1)
		value = -1;
	return fclose(file) ? -1 : value;
}

/* Makes the hugetlb pool have @nr free pages. */
static int fill_pool(long want)
{
	long free = pool_number("free_hugepages", -1);
	long all = pool_number("nr_hugepages", -1);

	if (free < 0 || all < 0)
		return -EOPNOTSUPP;
	if (free < want)
		pool_number("nr_hugepages", all + want - free);
	return pool_number("free_hugepages", -1) < want ? -ENOMEM : 0;
}

static int map_hugetlb(struct buffer *buffer, size_t length)
{
	size_t rounded = round_up(length, BUFFER_HUGE);
	int ret = fill_pool(rounded / BUFFER_HUGE);

	return ret ?: map(buffer, rounded, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
}

static int map_mixed(struct buffer *buffer, size_t length)
{
	size_t rounded = round_up(length, BUFFER_HUGE), at;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	int ret = fill_pool(rounded / BUFFER_HUGE / 2);

	ret = ret ?: map(buffer, rounded + BUFFER_HUGE, flags);
	if (ret)
		return ret;
	buffer->bytes = (uint8_t *)round_up((size_t)buffer->mapping, BUFFER_HUGE);
	for (at = BUFFER_HUGE; at < rounded; at += 2 * BUFFER_HUGE)
		if (mmap(buffer->bytes + at, BUFFER_HUGE, PROT_READ | PROT_WRITE,
			 flags | MAP_HUGETLB | MAP_FIXED, -1, 0) == MAP_FAILED)
			return -errno;
	for (at = 0; at < rounded; at += 2 * BUFFER_HUGE) {
		madvise(buffer->bytes + at, BUFFER_HUGE, MADV_NOHUGEPAGE);
		touch_scattered(buffer->bytes + at, BUFFER_HUGE / PAGE);
	}
	return 0;
}

static int map_shared(struct buffer *buffer, size_t length)
{
	buffer->fd = memfd_create("kxfer-test", MFD_CLOEXEC);
	if (buffer->fd < 0 || ftruncate(buffer->fd, length))
		return -errno;
	return map(buffer, length, MAP_SHARED);
}

/* Asks a device for a dma-buf. Return: its descriptor or -errno, -EOPNOTSUPP without device. */
static int ask(const char *path, unsigned long call, void *arg)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	ret = ioctl(fd, call, arg);
	if (ret < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/** buffer_open_udmabuf() - make a dma-buf of whole pages. Return: its descriptor or -errno */
int buffer_open_udmabuf(size_t length)
{
	int memfd = memfd_create("kxfer-test", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;
	struct udmabuf_create create = {
		.memfd = memfd,
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = round_up(length, PAGE),
	};

	if (memfd < 0)
		return -errno;
	if (ftruncate(memfd, create.size) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		ret = -errno;
	else
		ret = ask("/dev/udmabuf", UDMABUF_CREATE, &create);
	close(memfd);
	return ret;
}

/** buffer_open_heap() - as buffer_open_udmabuf(), from the system heap; @flags: O_RDWR .. */
int buffer_open_heap(size_t length, int flags)
{
	struct dma_heap_allocation_data data = {
		.len = round_up(length, PAGE),
		.fd_flags = flags | O_CLOEXEC,
	};
	int ret = ask("/dev/dma_heap/system", DMA_HEAP_IOCTL_ALLOC, &data);

	return ret < 0 ? ret : (int)data.fd;
}

/** buffer_lacks_vmap() - whether udmabuf of this kernel has no vmap; it came with 6.2 */
bool buffer_lacks_vmap(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return false;
	return major < 6 || (major == 6 && minor < 2);
}

/** buffer_nr_dmabufs() - dma-bufs of this kernel, from debugfs; -1: not known */
long buffer_nr_dmabufs(void)
{
	FILE *file = fopen("/sys/kernel/debug/dma_buf/bufinfo", "re");
	char line[512], what[16];
	long nr = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Total %ld %15s", &nr, what) == 2 && !strncmp(what, "objects", 7))
			break;
	if (file)
		fclose(file);
	return nr;
}

static int map_dmabuf(struct buffer *buffer, int fd, size_t length)
{
	if (fd < 0)
		return fd;
	buffer->fd = fd;
	return map(buffer, round_up(length, PAGE), MAP_SHARED);
}

static int map_kind(struct buffer *buffer, enum buffer_kind kind, size_t length)
{
	switch (kind) {
	case BUFFER_THP:
		return map_thp(buffer, length);
	case BUFFER_HUGETLB:
		return map_hugetlb(buffer, length);
	case BUFFER_MIXED:
		return map_mixed(buffer, length);
	case BUFFER_SHARED:
		return map_shared(buffer, length);
	case BUFFER_UDMABUF:
		return map_dmabuf(buffer, buffer_open_udmabuf(length), length);
	case BUFFER_HEAP:
		return map_dmabuf(buffer, buffer_open_heap(length, O_RDWR), length);
	default:
		return map(buffer, length, MAP_PRIVATE | MAP_ANONYMOUS);
	}
}

/**
 * buffer_alloc() - allocate and touch memory of a kind
 * @buffer: out
 * @kind: kind of memory
 * @length: bytes
 *
 * Return: 0, or -errno: -ENOMEM, -EOPNOTSUPP if this kernel has no such memory.
 */
int buffer_alloc(struct buffer *buffer, enum buffer_kind kind, size_t length)
{
	int ret;

	*buffer = (struct buffer) { .length = length, .kind = kind, .fd = -1 };
	ret = map_kind(buffer, kind, length);
	if (ret) {
		buffer_free(buffer);
		return ret;
	}
	if (kind == BUFFER_SCATTERED) {
		madvise(buffer->mapping, buffer->mapped, MADV_NOHUGEPAGE);
		touch_scattered(buffer->bytes, round_up(length, PAGE) / PAGE);
	}
	touch(buffer->bytes, length);
	return 0;
}

/** buffer_free() - unmap a buffer; pages of the hugetlb pool are given back */
void buffer_free(struct buffer *buffer)
{
	if (buffer->mapping)
		munmap(buffer->mapping, buffer->mapped);
	if (buffer->mapping && (buffer->kind == BUFFER_HUGETLB || buffer->kind == BUFFER_MIXED))
		pool_number("nr_hugepages", 0);
	if (buffer->fd >= 0)
		close(buffer->fd);
	*buffer = (struct buffer) { .fd = -1 };
}

/** buffer_free_memory() - bytes that the machine could allocate now */
size_t buffer_free_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

/**
 * buffer_scattered_limit() - longest scattered buffer, in bytes
 *
 * User-mode Linux needs a separate map in a process of its host for each page without a
 * neighbour. That process may have vm.max_map_count (65,530) maps.
 */
size_t buffer_scattered_limit(void)
{
	size_t limit = SIZE_MAX;
	char line[128];
	FILE *file = fopen("/proc/cpuinfo", "re");

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "User Mode Linux"))
			limit = 50000 * PAGE;
	if (file)
		fclose(file);
	return limit;
}

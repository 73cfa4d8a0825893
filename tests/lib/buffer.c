// SPDX-License-Identifier: MIT
/*
 * Buffers: memory of a certain kind behind the page table; see buffer.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer.h"

#define PAGE		4096u

/* Touch pages in an order in which no two neighbours follow each other. */
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
	/* A kernel without them does not know the advice. */
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

/* Let the pool have so many pages free. */
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

static int map_shared(struct buffer *buffer, size_t length)
{
	buffer->fd = memfd_create("kxfer-test", MFD_CLOEXEC);
	if (buffer->fd < 0 || ftruncate(buffer->fd, length))
		return -errno;
	return map(buffer, length, MAP_SHARED);
}

static int map_kind(struct buffer *buffer, enum buffer_kind kind, size_t length)
{
	switch (kind) {
	case BUFFER_THP:
		return map_thp(buffer, length);
	case BUFFER_HUGETLB:
		return map_hugetlb(buffer, length);
	case BUFFER_SHARED:
		return map_shared(buffer, length);
	default:
		return map(buffer, length, MAP_PRIVATE | MAP_ANONYMOUS);
	}
}

/**
 * buffer_alloc() - memory of a kind, touched
 * @buffer: out
 * @kind: of memory
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

/** buffer_free() - unmap; the pages of a hugetlb pool are given back */
void buffer_free(struct buffer *buffer)
{
	if (buffer->mapping)
		munmap(buffer->mapping, buffer->mapped);
	if (buffer->mapping && buffer->kind == BUFFER_HUGETLB)
		pool_number("nr_hugepages", 0);
	if (buffer->fd >= 0)
		close(buffer->fd);
	*buffer = (struct buffer) { .fd = -1 };
}

/** buffer_free_memory() - bytes that the machine could give now */
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
 * buffer_scattered_limit() - how long a scattered buffer can be, in bytes
 *
 * User-mode Linux maps each page that has no neighbour for itself in a process of its
 * host, which may have vm.max_map_count (65,530) maps.
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

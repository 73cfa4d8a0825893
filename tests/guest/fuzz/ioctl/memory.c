// SPDX-License-Identifier: MIT
/* Memory: the arena; see memory.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/buffer.h"
#include "memory.h"

/* Fixed, so that a sequence finds the arena at the same address again. */
#define ARENA	((uint8_t *)0x300000000ull)

static int self_memory = -1;
static int dmabufs[MEMORY_NR_DMABUFS];

void *memory_block(uint32_t block)
{
	return ARENA + (size_t)block * MEMORY_BLOCK;
}

static uint8_t kept_byte(size_t i)
{
	return i * 7 + (i >> 8);
}

/** memory_keep() - make memory_check_kept() require these bytes from now on */
void memory_keep(void)
{
	uint8_t *kept = memory_block(MEMORY_KEPT);
	size_t i;

	for (i = 0; i < (MEMORY_PLAIN - MEMORY_KEPT) * MEMORY_BLOCK; i++)
		kept[i] = kept_byte(i);
}

static int map(uint32_t block, int protection, int flags, int fd)
{
	void *memory = mmap(memory_block(block), MEMORY_BLOCK, protection, flags | MAP_FIXED,
			    fd, 0);

	return memory == MAP_FAILED ? -errno : 0;
}

static int map_block(uint32_t block, int shared, int file)
{
	int writable = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;

	if (block >= MEMORY_HOLE)
		return map(block, PROT_NONE, anonymous | MAP_NORESERVE, -1);
	if (block == MEMORY_SHARED)
		return map(block, writable, MAP_SHARED, shared);
	if (block == MEMORY_FILE)
		return map(block, PROT_READ, MAP_SHARED, file);
	if (block == MEMORY_READONLY)
		return map(block, PROT_READ, anonymous, -1);
	return map(block, writable, anonymous, -1);
}

/** memory_dmabuf() - a dma-buf of MEMORY_BLOCK bytes. Return: its descriptor; < 0: there is none */
int memory_dmabuf(uint32_t number)
{
	return dmabufs[number];
}

/** memory_make() - map the arena, and make dma-bufs where the kernel can. Return: 0 or -errno */
int memory_make(void)
{
	int shared = memfd_create("fuzz", MFD_CLOEXEC);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint32_t block;
	int ret = 0;

	if (shared < 0 || ftruncate(shared, MEMORY_BLOCK) || file < 0)
		return -errno;
	for (block = 0; !ret && block < MEMORY_BLOCKS; block++)
		ret = map_block(block, shared, file);
	close(shared);
	close(file);
	if (ret)
		return ret;
	self_memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (self_memory < 0)
		return -errno;
	dmabufs[0] = buffer_open_udmabuf(MEMORY_BLOCK);
	dmabufs[1] = buffer_open_heap(MEMORY_BLOCK, O_RDWR);
	dmabufs[2] = buffer_open_heap(MEMORY_BLOCK, O_RDONLY);
	memory_keep();
	return 0;
}

/** memory_fill() - fill memory with random bytes */
void memory_fill(struct random *random, void *bytes, size_t length)
{
	uint8_t *at = bytes;
	size_t i;

	for (i = 0; i < length; i++)
		at[i] = random_next(random);
}

/** memory_poke() - store to memory that may be partly unmapped, without a fault */
void memory_poke(void *to, const void *from, size_t length)
{
	ssize_t n = pwrite(self_memory, from, length, (off_t)(uintptr_t)to);

	(void)n;
}

/** memory_remap() - change a racing block: other permissions, other pages, or unmapped */
void memory_remap(struct random *random, uint32_t block)
{
	uint8_t *memory = memory_block(block);
	size_t page = 4096 * random_below(random, MEMORY_BLOCK / 4096);
	size_t length = random_one_in(random, 2) ? MEMORY_BLOCK - page : 4096;

	switch (random_below(random, 6)) {
	case 0:
		mprotect(memory + page, length, PROT_NONE);
		break;
	case 1:
		mprotect(memory + page, length, PROT_READ);
		break;
	case 2:
		munmap(memory + page, length);
		break;
	case 3:
		madvise(memory + page, length, MADV_DONTNEED);
		break;
	default:
		map(block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	}
}

/** memory_check_kept() - check kept memory. Return: NULL, or what has changed */
const char *memory_check_kept(void)
{
	static char text[80];
	const uint8_t *kept = memory_block(MEMORY_KEPT);
	size_t i;

	for (i = 0; i < (MEMORY_PLAIN - MEMORY_KEPT) * MEMORY_BLOCK; i++)
		if (kept[i] != kept_byte(i)) {
			snprintf(text, sizeof(text),
				 "byte %zu of memory that nobody may write has changed", i);
			return text;
		}
	return NULL;
}

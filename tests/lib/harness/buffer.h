/* SPDX-License-Identifier: MIT */
/*
 * Buffers: memory with a certain kind of pages.
 *
 *	plain		whatever the kernel gives
 *	scattered	4 KiB pages that are not neighbours physically
 *	thp		transparent huge pages
 *	hugetlb		pages of the hugetlb pool, which is filled on demand (needs root)
 *	mixed		by turns 2 MiB of scattered pages and a page of the hugetlb pool
 *	shared		a memfd, shared memory between processes
 *	udmabuf		a dma-buf of the pages of a memfd (needs root); most of 64 MiB
 *	heap		a dma-buf of the system heap (needs root), of as few pieces as it likes
 *
 * The kernel need not comply, with THP in particular. A test checks the kind by the pieces that
 * REGION_ADD counts.
 */
#ifndef KXFER_TEST_BUFFER_H
#define KXFER_TEST_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_HUGE	(2u * 1024 * 1024)

enum buffer_kind {
	BUFFER_PLAIN,
	BUFFER_SCATTERED,
	BUFFER_THP,
	BUFFER_HUGETLB,
	BUFFER_MIXED,
	BUFFER_SHARED,
	BUFFER_UDMABUF,
	BUFFER_HEAP,
};

struct buffer {
	uint8_t *bytes;
	size_t length;
	void *mapping;
	size_t mapped;
	enum buffer_kind kind;
	int fd;		/* memfd, or dma-buf; -1: none */
};

static inline bool buffer_is_dmabuf(const struct buffer *buffer)
{
	return buffer->kind == BUFFER_UDMABUF || buffer->kind == BUFFER_HEAP;
}

int buffer_alloc(struct buffer *buffer, enum buffer_kind kind, size_t length);
void buffer_free(struct buffer *buffer);
int buffer_open_udmabuf(size_t length);
int buffer_open_heap(size_t length, int flags);
bool buffer_lacks_vmap(void);
long buffer_nr_dmabufs(void);
size_t buffer_free_memory(void);
size_t buffer_scattered_limit(void);

#endif /* KXFER_TEST_BUFFER_H */

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
 *
 * The kernel need not comply, with THP in particular. A test checks the kind by the pieces that
 * REGION_ADD counts.
 */
#ifndef KXFER_TEST_BUFFER_H
#define KXFER_TEST_BUFFER_H

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
};

struct buffer {
	uint8_t *bytes;
	size_t length;
	void *mapping;
	size_t mapped;
	enum buffer_kind kind;
	int fd;
};

int buffer_alloc(struct buffer *buffer, enum buffer_kind kind, size_t length);
void buffer_free(struct buffer *buffer);
size_t buffer_free_memory(void);
size_t buffer_scattered_limit(void);

#endif /* KXFER_TEST_BUFFER_H */

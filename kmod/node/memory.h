/* SPDX-License-Identifier: GPL-2.0 */
/* Pages, pinned from a process or owned by the module. See memory.c. */
#ifndef KXFER_MEMORY_H
#define KXFER_MEMORY_H

#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct dma_buf;
struct kxfer_user;
struct mm_struct;
struct page;
struct sg_table;

/* The array of page pointers then has 1 GiB; kvmalloc() is limited to INT_MAX bytes. */
#define KXFER_MEMORY_MAX_BYTES	(512ULL * SZ_1G)

/*
 * For allocations on behalf of a peer's request. They are charged to the memory cgroup of
 * the owner of the export or the listener (set_active_memcg()). At its limit the peer is
 * refused, but no process is killed.
 */
#define KXFER_GFP_FOR_PEER	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * struct kxfer_memory - a range of bytes that stay where they are
 * @dmabuf: owner of the bytes, and a reference on it; NULL: there are @pages
 * @pages: pages of the range, in order; NULL with @dmabuf: the CPU does not work on it
 * @nr_pages: entries of @pages
 * @nr_segments: stretches of physically contiguous pages
 * @segments: number of pages of each stretch; NULL: not kept
 * @offset: offset of the first byte within @pages[0], or within @dmabuf
 * @length: bytes of the range
 * @writable: devices may write the memory
 * @mm: mm whose pinned_vm is charged for the pages; NULL: the module's own pages, or none
 * @user: user charged for the pages; NULL: the limit did not apply, or the module's own
 *
 * No member changes until the memory is freed.
 */
struct kxfer_memory {
	struct dma_buf *dmabuf;
	struct page **pages;
	unsigned long nr_pages;
	u32 nr_segments;
	u32 *segments;
	u64 offset;
	u64 length;
	bool writable;
	struct mm_struct *mm;
	struct kxfer_user *user;
};

struct kxfer_memory *kxfer_memory_pin(struct kxfer_user *user, u64 addr, u64 length,
				      bool writable);
struct kxfer_memory *kxfer_memory_import(int fd, u64 offset, u64 length, bool writable);
struct kxfer_memory *kxfer_memory_alloc(u64 length);
void kxfer_memory_free(struct kxfer_memory *memory);
u64 kxfer_memory_bytes(const struct kxfer_memory *memory);
void kxfer_memory_copy_from(const struct kxfer_memory *memory, u64 offset, void *to,
			    size_t bytes);
void kxfer_memory_copy_to(const struct kxfer_memory *memory, u64 offset, const void *from,
			  size_t bytes);
int kxfer_memory_table(struct kxfer_memory *memory, struct sg_table *table,
		       unsigned int max_segment);

/*
 * Number of physically contiguous pages from page @first on: at least 1, and at most
 * 2 GiB of pages, so that their bytes fit into 32 bits.
 */
static inline unsigned long kxfer_memory_stretch(const struct kxfer_memory *memory,
						 unsigned long first)
{
	unsigned long max = min(memory->nr_pages - first, SZ_2G / PAGE_SIZE), nr = 1;
	unsigned long pfn = page_to_pfn(memory->pages[first]);

	while (nr < max && page_to_pfn(memory->pages[first + nr]) == pfn + nr)
		nr++;
	return nr;
}

/* Number of pages of segment @nr, which begins with page @first. */
static inline unsigned long kxfer_memory_segment(const struct kxfer_memory *memory, u32 nr,
						 unsigned long first)
{
	return memory->segments ? memory->segments[nr] : kxfer_memory_stretch(memory, first);
}

#endif /* KXFER_MEMORY_H */

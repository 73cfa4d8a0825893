/* SPDX-License-Identifier: GPL-2.0 */
/* Pages, pinned from a process or the module's own. See memory.c. */
#ifndef KXFER_MEMORY_H
#define KXFER_MEMORY_H

#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct kxfer_user;
struct mm_struct;
struct page;
struct sg_table;

/* Its array of page pointers, 1 GiB, is what kvmalloc() still gives (INT_MAX bytes). */
#define KXFER_MEMORY_MAX_BYTES	(512ULL * SZ_1G)

/*
 * For what a peer's request may make: it is charged to the memory cgroup of the owner of
 * the export or the listener (set_active_memcg()), whose limit refuses the peer but has
 * no process killed.
 */
#define KXFER_GFP_FOR_PEER	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * struct kxfer_memory - a range of bytes in pages that stay where they are
 * @pages: in order, each once for each page of the range
 * @nr_pages: how many
 * @nr_segments: how many stretches of them follow each other physically
 * @offset: of the first byte within @pages[0]
 * @length: bytes
 * @writable: devices may write it
 * @mm: charged for the pages in pinned_vm; NULL: the module's own pages
 * @user: charged for the pages too; NULL: the limit did not hold, or the module's own
 *
 * Nothing of it changes between making and freeing.
 */
struct kxfer_memory {
	struct page **pages;
	unsigned long nr_pages;
	u32 nr_segments;
	u32 offset;
	u64 length;
	bool writable;
	struct mm_struct *mm;
	struct kxfer_user *user;
};

struct kxfer_memory *kxfer_memory_pin(struct kxfer_user *user, u64 addr, u64 length,
				      bool writable);
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
 * Pages from one of them on that follow each other physically: at least 1, and not so
 * many that their bytes would not fit into 32 bits.
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

#endif /* KXFER_MEMORY_H */

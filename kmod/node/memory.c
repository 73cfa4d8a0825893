// SPDX-License-Identifier: GPL-2.0
/*
 * Memory: the pages of a range, which stay where they are, or a range of a dma-buf.
 * Independent of RDMA.
 *
 * Words. *Pinned* pages belong to a process and are held by long-term FOLL_PIN pins:
 * one pin for each page of the range, whatever the size of the folio. They stay the
 * same pages, whatever happens to the mapping. *Charged* pages count twice against
 * RLIMIT_MEMLOCK of the process that pins them:
 *
 *	in pinned_vm of the mm that they were pinned from, where RDMA user verbs count
 *	their pages too;
 *	for the user of the session that holds them (user.c), and for all users above
 *	that one, as io_uring counts registered buffers.
 *
 * The first count alone sets no bound: the pages stay as long as the session, whose file
 * may be inherited or sent to another process, while the mm may be gone. A process could
 * have children register memory for it. With CAP_IPC_LOCK the limit does not apply, and
 * the pages count for the mm only.
 *
 * Invariants. Memory that exists is pinned and charged in full; a pin that
 * fails half-way leaves neither pins nor charge. The mm is held by mmgrab(), so the
 * charge may outlive the address space, and does not delay the exit of the process.
 * Writable memory is marked dirty when it is unpinned.
 *
 * A shared mapping must not be pinned if the file system of its file has to know of
 * each write: a device bypasses the page tables, so the file system would not see its
 * writes. From 6.5 on the kernel itself refuses this for writable mappings. Here it is
 * refused on all kernels, and for reading too, so that what may be registered depends
 * neither on the kernel nor on the access. Shared memory, memfd and hugetlb files have
 * no such file system, and private mappings write to no file. The VMA is checked under
 * the mmap_lock that is also held for the whole pin of its pages, so it cannot be
 * replaced in between.
 *
 * A dma-buf is the exporter's memory: it is held, but neither pinned nor charged here
 * (ib_umem_dmabuf_get() charges nothing either). A mapping pins it (dmabuf.c).
 *
 * Context: process; may sleep. kxfer_memory_pin() takes mmap_lock. kxfer_memory_bytes(),
 * _copy_from() and _copy_to(): any context.
 */
#include <linux/backing-dev.h>
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/stats.h"
#include "node/dmabuf.h"
#include "node/memory.h"
#include "node/user.h"

/* Pages handled between two checks of signals and the scheduler; 2 MiB. */
#define BATCH_PAGES	512UL

/*
 * The lengths of segments are kept if a segment has this many pages on average. Then their
 * table has at most 1/128 of the bytes of the array of pages.
 */
#define SEGMENT_PAGES	64UL

/* As vma_needs_dirty_tracking() of 6.5, but ignores VM_WRITE. */
static bool needs_dirty_tracking(struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_MAYSHARE))
		return false;
	if (vma->vm_ops && (vma->vm_ops->page_mkwrite || vma->vm_ops->pfn_mkwrite))
		return true;
	return vma->vm_file && vma->vm_file->f_mapping &&
	       mapping_can_writeback(vma->vm_file->f_mapping);
}

/* Called with mmap_lock held. Pins the part of the range that is in the VMA at @addr. */
static long pin_in_vma(unsigned long addr, unsigned long nr_pages, bool writable,
		       struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM;
	struct vm_area_struct *vma;

	vma = find_vma(current->mm, addr);
	if (!vma || vma->vm_start > addr || vma->vm_flags & (VM_IO | VM_PFNMAP) ||
	    needs_dirty_tracking(vma))
		return -EFAULT;
	if (writable)
		flags |= FOLL_WRITE;
	else if (vma->vm_flags & VM_READ)
		flags |= kxfer_pin_read_flags(vma);
	else
		return -EFAULT;
	nr_pages = min(nr_pages, (vma->vm_end - addr) >> PAGE_SHIFT);
	return kxfer_try(MEMORY_PIN, kxfer_pin_user_pages(addr, nr_pages, flags, pages));
}

/*
 * Returns the pages pinned, at least one, or -EINTR, -ENOMEM or -EFAULT. -EFAULT
 * replaces all other errors of get_user_pages: the memory is not there, does not
 * allow this access or is of a kind that cannot be pinned.
 */
static long pin_batch(unsigned long addr, unsigned long nr_pages, bool writable,
		      struct page **pages)
{
	long ret;

	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
	ret = pin_in_vma(addr, min(nr_pages, BATCH_PAGES), writable, pages);
	mmap_read_unlock(current->mm);
	if (ret > 0 || ret == -EINTR || ret == -ENOMEM)
		return ret;
	return -EFAULT;
}

static void unpin_pages(struct page **pages, unsigned long nr_pages, bool dirty)
{
	unsigned long nr;

	for (; nr_pages; pages += nr, nr_pages -= nr) {
		nr = min(nr_pages, BATCH_PAGES);
		unpin_user_pages_dirty_lock(pages, nr, dirty);
		cond_resched();
	}
}

/* Unpin contiguous pages: each folio is locked and put once for all its pages in the batch. */
static void unpin_segment(struct page **pages, unsigned long nr_pages, bool dirty)
{
	unsigned long nr;

	for (; nr_pages; pages += nr, nr_pages -= nr) {
		nr = min(nr_pages, BATCH_PAGES);
		unpin_user_page_range_dirty_lock(*pages, nr, dirty);
		cond_resched();
	}
}

static void unpin_all(struct kxfer_memory *memory)
{
	struct page **pages = memory->pages;
	u32 i;

	if (!memory->segments) {
		unpin_pages(pages, memory->nr_pages, memory->writable);
		return;
	}
	for (i = 0; i < memory->nr_segments; pages += memory->segments[i++])
		unpin_segment(pages, memory->segments[i], memory->writable);
}

static int pin_pages(struct kxfer_memory *memory, unsigned long addr)
{
	unsigned long done = 0;
	long nr;

	while (done < memory->nr_pages) {
		if (fatal_signal_pending(current))
			nr = -EINTR;
		else
			nr = pin_batch(addr + (done << PAGE_SHIFT),
				       memory->nr_pages - done, memory->writable,
				       memory->pages + done);
		if (nr < 0) {
			unpin_pages(memory->pages, done, false);
			return nr;
		}
		done += nr;
		cond_resched();
	}
	kxfer_stat_add(KXFER_STAT_LIVE_PINS, memory->nr_pages);
	return 0;
}

static int charge_user(struct kxfer_memory *memory, struct kxfer_user *user,
		       unsigned long limit)
{
	int ret;

	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return 0;
	ret = kxfer_user_pin(user, memory->nr_pages, limit);
	if (ret)
		return ret;
	kxfer_user_ref(user);
	memory->user = user;
	return 0;
}

/* As ib_umem_get(): charge, then compare, so that two callers cannot both pass. */
static int charge_pages(struct kxfer_memory *memory, struct kxfer_user *user)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	u64 pinned;
	int ret = 0;

	pinned = atomic64_add_return(memory->nr_pages, &mm->pinned_vm);
	if (pinned > limit && !capable(CAP_IPC_LOCK))
		ret = -ENOMEM;
	if (!ret)
		ret = charge_user(memory, user, limit);
	if (ret) {
		atomic64_sub(memory->nr_pages, &mm->pinned_vm);
		return ret;
	}
	mmgrab(mm);
	memory->mm = mm;
	return 0;
}

static void uncharge_pages(struct kxfer_memory *memory)
{
	atomic64_sub(memory->nr_pages, &memory->mm->pinned_vm);
	mmdrop(memory->mm);
	if (!memory->user)
		return;
	kxfer_user_unpin(memory->user, memory->nr_pages);
	kxfer_user_put(memory->user);
}

/* Return: number of segments from page @i on, where one begins. */
static u32 count_segments(const struct kxfer_memory *memory, unsigned long i)
{
	unsigned long end;
	u32 nr = 0;

	while (i < memory->nr_pages) {
		for (end = min(i + BATCH_PAGES, memory->nr_pages); i < end; nr++)
			i += kxfer_memory_stretch(memory, i);
		cond_resched();
	}
	return nr;
}

/*
 * Count the segments, and keep the length of each if there are few. Without the table, because
 * the segments are many or memory is short, all works, page by page.
 */
static void find_segments(struct kxfer_memory *memory)
{
	unsigned long max = memory->nr_pages / SEGMENT_PAGES, i = 0;
	u32 *table = NULL, nr = 0;

	if (max)
		table = kxfer_try_alloc(MEMORY_SEGMENTS,
					kvmalloc_array(max, sizeof(*table),
						       GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	for (; table && i < memory->nr_pages && nr < max; i += table[nr++]) {
		table[nr] = kxfer_memory_stretch(memory, i);
		cond_resched();
	}
	if (i < memory->nr_pages) {
		kvfree(table);
		table = NULL;
	}
	memory->segments = table;
	memory->nr_segments = nr + count_segments(memory, i);
}

static int alloc_array(struct kxfer_memory *memory)
{
	memory->pages = kxfer_try_alloc(MEMORY_ARRAY,
					kvmalloc_array(memory->nr_pages, sizeof(*memory->pages),
						       GFP_KERNEL_ACCOUNT | __GFP_NOWARN));
	return memory->pages ? 0 : -ENOMEM;
}

static struct kxfer_memory *create(u64 offset, u64 length)
{
	struct kxfer_memory *memory;

	memory = kxfer_try_alloc(MEMORY, kzalloc_obj(*memory, GFP_KERNEL_ACCOUNT));
	if (!memory)
		return NULL;
	memory->offset = offset;
	memory->length = length;
	return memory;
}

static unsigned long pages_of(const struct kxfer_memory *memory)
{
	return (memory->offset + memory->length + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* The last page of the address space counts as wrapping: its end is address 0. */
static int check_range(u64 addr, u64 length)
{
	u64 end;

	if (!length)
		return -EINVAL;
	if (check_add_overflow(addr, length, &end) || end > (unsigned long)PAGE_MASK)
		return -EOVERFLOW;
	if (length > KXFER_MEMORY_MAX_BYTES)
		return -EDQUOT;
	return 0;
}

/**
 * kxfer_memory_pin() - pin and charge memory of the calling process
 * @user: user of the session that the memory is for
 * @addr: address of the first byte, with any alignment
 * @length: bytes
 * @writable: devices may write the memory; then the process must be allowed to write it
 *
 * Return: the memory, or ERR_PTR: -EINVAL for no bytes, -EOVERFLOW if the end
 * wraps, -EDQUOT beyond KXFER_MEMORY_MAX_BYTES, -EFAULT if the range is not mapped,
 * does not allow the access or must not be pinned, -ENOMEM if there is no memory or
 * RLIMIT_MEMLOCK is reached, -EINTR if the process is being killed.
 */
struct kxfer_memory *kxfer_memory_pin(struct kxfer_user *user, u64 addr, u64 length,
				      bool writable)
{
	struct kxfer_memory *memory;
	unsigned long start;
	int ret;

	ret = check_range(addr, length);
	if (ret)
		return ERR_PTR(ret);
	start = untagged_addr((unsigned long)addr);
	memory = create(offset_in_page(start), length);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	memory->writable = writable;
	memory->nr_pages = pages_of(memory);
	ret = charge_pages(memory, user);
	if (ret)
		goto err_free;
	ret = alloc_array(memory);
	if (ret)
		goto err_uncharge;
	ret = pin_pages(memory, start & PAGE_MASK);
	if (ret)
		goto err_array;
	find_segments(memory);
	return memory;

err_array:
	kvfree(memory->pages);
err_uncharge:
	uncharge_pages(memory);
err_free:
	kfree(memory);
	return ERR_PTR(ret);
}

/**
 * kxfer_memory_import() - hold a range of a dma-buf
 * @fd: descriptor of the dma-buf, of the calling process
 * @offset: first byte within the buffer
 * @length: bytes
 * @writable: devices may write the range
 *
 * Return: memory without pages, or ERR_PTR: as kxfer_dmabuf_get(); -EOPNOTSUPP if the kernel
 * has no dma-bufs, -EDQUOT beyond KXFER_MEMORY_MAX_BYTES, -ENOMEM.
 */
struct kxfer_memory *kxfer_memory_import(int fd, u64 offset, u64 length, bool writable)
{
	struct kxfer_memory *memory;
	struct dma_buf *dmabuf;

	dmabuf = kxfer_dmabuf_get(fd, offset, length, writable);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	memory = length > KXFER_MEMORY_MAX_BYTES ? ERR_PTR(-EDQUOT) :
						   create(offset, length) ?: ERR_PTR(-ENOMEM);
	if (IS_ERR(memory)) {
		kxfer_dmabuf_put(dmabuf);
		return memory;
	}
	memory->dmabuf = dmabuf;
	memory->writable = writable;
	return memory;
}

static void free_own_pages(struct page **pages, unsigned long nr_pages)
{
	while (nr_pages--)
		__free_page(pages[nr_pages]);
}

/**
 * kxfer_memory_alloc() - allocate zeroed pages for the module itself
 * @length: bytes
 *
 * The pages are not charged, and devices may only read them: they hold data that
 * the module itself publishes.
 *
 * Return: the memory, or ERR_PTR: -EINVAL, -EDQUOT, -ENOMEM.
 */
struct kxfer_memory *kxfer_memory_alloc(u64 length)
{
	struct kxfer_memory *memory;
	unsigned long i;
	int ret;

	ret = check_range(0, length);
	if (ret)
		return ERR_PTR(ret);
	memory = create(0, length);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	memory->nr_pages = pages_of(memory);
	ret = alloc_array(memory);
	if (ret)
		goto err_free;
	for (i = 0; i < memory->nr_pages; i++) {
		memory->pages[i] = kxfer_try_alloc(MEMORY_PAGE,
						   alloc_page(GFP_KERNEL | __GFP_ZERO));
		if (!memory->pages[i])
			goto err_pages;
	}
	find_segments(memory);
	return memory;

err_pages:
	ret = -ENOMEM;
	free_own_pages(memory->pages, i);
	kvfree(memory->pages);
err_free:
	kfree(memory);
	return ERR_PTR(ret);
}

/**
 * kxfer_memory_free() - unpin or free the pages, or let go of the dma-buf
 * @memory: memory that no device can reach any more
 */
void kxfer_memory_free(struct kxfer_memory *memory)
{
	if (memory->dmabuf) {
		kxfer_dmabuf_put(memory->dmabuf);
	} else if (memory->mm) {
		unpin_all(memory);
		kxfer_stat_add(KXFER_STAT_LIVE_PINS, -(s64)memory->nr_pages);
		uncharge_pages(memory);
	} else {
		free_own_pages(memory->pages, memory->nr_pages);
	}
	kvfree(memory->segments);
	kvfree(memory->pages);
	kfree(memory);
}

/**
 * kxfer_memory_bytes() - size of what is held in pages; 0 for a dma-buf
 * @memory: any memory
 *
 * Return: bytes.
 */
u64 kxfer_memory_bytes(const struct kxfer_memory *memory)
{
	return (u64)memory->nr_pages << PAGE_SHIFT;
}

/**
 * kxfer_memory_copy_from() - copy bytes out of the range, by the CPU
 * @memory: memory with pages
 * @offset: offset of the first byte in the range
 * @to: room for @bytes
 * @bytes: number of bytes; the range has at least these after @offset
 *
 * Any context. The owner of the memory may write it meanwhile.
 */
void kxfer_memory_copy_from(const struct kxfer_memory *memory, u64 offset, void *to,
			    size_t bytes)
{
	u64 at = memory->offset + offset;
	size_t here;

	for (; bytes; bytes -= here, at += here, to += here) {
		here = min_t(size_t, bytes, PAGE_SIZE - offset_in_page(at));
		memcpy_from_page(to, memory->pages[at / PAGE_SIZE], offset_in_page(at), here);
	}
}

/**
 * kxfer_memory_copy_to() - copy bytes into the range, by the CPU
 * @memory: writable memory with pages
 * @offset: offset of the first byte in the range
 * @from: source of @bytes
 * @bytes: number of bytes; the range has at least these after @offset
 *
 * Any context.
 */
void kxfer_memory_copy_to(const struct kxfer_memory *memory, u64 offset, const void *from,
			  size_t bytes)
{
	u64 at = memory->offset + offset;
	size_t here;

	for (; bytes; bytes -= here, at += here, from += here) {
		here = min_t(size_t, bytes, PAGE_SIZE - offset_in_page(at));
		memcpy_to_page(memory->pages[at / PAGE_SIZE], offset_in_page(at), from, here);
	}
}

/**
 * kxfer_memory_table() - describe the range as a scatter list
 * @memory: memory with pages; must outlive @table
 * @table: out: the scatter list; on success the caller must call sg_free_table()
 * @max_segment: longest segment, in bytes; at least a page
 *
 * Physically contiguous pages share a segment.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int kxfer_memory_table(struct kxfer_memory *memory, struct sg_table *table,
		       unsigned int max_segment)
{
	if (max_segment < PAGE_SIZE)
		return -EINVAL;
	return kxfer_try(MEMORY_TABLE,
			 sg_alloc_table_from_pages_segment(table, memory->pages, memory->nr_pages,
							   memory->offset, memory->length,
							   max_segment, KXFER_GFP_FOR_PEER));
}

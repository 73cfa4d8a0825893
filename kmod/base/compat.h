/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels from 6.1 on. Only this file tests the kernel's
 * version: all others read as if written for the newest kernel.
 */
#ifndef KXFER_COMPAT_H
#define KXFER_COMPAT_H

#include <linux/eventfd.h>
#include <linux/hugetlb_inline.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/workqueue.h>

/*
 * For a variable on the stack that is always filled before it is used and is too large
 * to be cleared in each call (CONFIG_INIT_STACK_ALL_ZERO). Newer kernels define the macro.
 */
#ifndef __uninitialized
#define __uninitialized	__attribute__((__uninitialized__))
#endif

/* An object of the type of what it is for, as Linux 7 has them. */
#ifndef kzalloc_obj
#define kmalloc_obj(object, gfp)	kmalloc(sizeof(object), gfp)
#define kzalloc_obj(object, gfp)	kzalloc(sizeof(object), gfp)
#endif

#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
#include <linux/io_uring.h>
#include <linux/io_uring_types.h>
#else
#include <linux/io_uring/cmd.h>
#endif

/*
 * Before 6.5 pin_user_pages() has a fifth argument, an array for the VMAs. Without an
 * array it keeps mmap_lock from beginning to end, on all kernels. Before 6.3 it looks up
 * page by page, even in a huge page; so pin_user_pages_fast_only() pins the present pages
 * first. That needs no lock, and since the caller holds mmap_lock the VMA is still the one
 * that the caller checked.
 */
static inline long kxfer_pin_user_pages(unsigned long start, unsigned long nr_pages,
					unsigned int gup_flags, struct page **pages)
{
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
	int nr = pin_user_pages_fast_only(start, nr_pages, gup_flags, pages);

	if (nr > 0)
		return nr;
#endif
#if KERNEL_VERSION(6, 5, 0) > LINUX_VERSION_CODE
	return pin_user_pages(start, nr_pages, gup_flags, pages, NULL);
#else
	return pin_user_pages(start, nr_pages, gup_flags, pages);
#endif
}

/*
 * Since 6.2 a long-term pin for reading breaks COW by itself, so that the process
 * keeps seeing the pinned pages. Before, only a pin for writing did. FOLL_FORCE
 * allows that in a private mapping without PROT_WRITE; hugetlb does not support
 * it, so there a pin for reading has to suffice.
 */
static inline unsigned int kxfer_pin_read_flags(struct vm_area_struct *vma)
{
#if KERNEL_VERSION(6, 2, 0) > LINUX_VERSION_CODE
	if (!is_cow_mapping(vma->vm_flags))
		return 0;
	if (vma->vm_flags & VM_WRITE)
		return FOLL_WRITE;
	return is_vm_hugetlb_page(vma) ? 0 : FOLL_WRITE | FOLL_FORCE;
#else
	return 0;
#endif
}

/*
 * From 6.5 on, if the device is not cache-coherent and one entry is short, the whole mapped
 * scatter list may be in bounce buffers, even if the device reaches the memory.
 */
static inline bool kxfer_sg_is_bounced(struct scatterlist *sg)
{
#if KERNEL_VERSION(6, 5, 0) > LINUX_VERSION_CODE
	return false;
#else
	return sg_dma_is_swiotlb(sg);
#endif
}

/*
 * For a workqueue whose work runs on the CPU that queued it. Up to 6.16 that is the
 * meaning of no flag; later WQ_PERCPU requests it, and 7.2 warns if neither WQ_PERCPU nor
 * WQ_UNBOUND is given.
 */
#if KERNEL_VERSION(6, 17, 0) > LINUX_VERSION_CODE
#define KXFER_WQ_PERCPU	0
#else
#define KXFER_WQ_PERCPU	WQ_PERCPU
#endif

/* Before 6.3 the flags of a VMA are a plain word. Called with mmap_lock held for writing. */
static inline void kxfer_vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				      vm_flags_t clear)
{
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#else
	vm_flags_mod(vma, set, clear);
#endif
}

/* Before 6.8 eventfd_signal() has a second argument, the number to add. */
static inline void kxfer_eventfd_signal(struct eventfd_ctx *eventfd)
{
#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
	eventfd_signal(eventfd, 1);
#else
	eventfd_signal(eventfd);
#endif
}

/* The command area of the SQE; before 6.5 a command has a pointer to this part only. */
static inline const void *kxfer_uring_payload(const struct io_uring_cmd *cmd)
{
#if KERNEL_VERSION(6, 5, 0) > LINUX_VERSION_CODE
	return cmd->cmd;
#else
	return cmd->sqe->cmd;
#endif
}

/*
 * Since 6.7 io_uring asks for the end of a command by IO_URING_F_CANCEL: its ring is being
 * closed, or its task is in execve().
 */
#if KERNEL_VERSION(6, 7, 0) > LINUX_VERSION_CODE
#define KXFER_URING_F_CANCEL	0

static inline void kxfer_uring_mark_cancelable(struct io_uring_cmd *cmd,
					       unsigned int issue_flags)
{
}
#else
#define KXFER_URING_F_CANCEL	IO_URING_F_CANCEL

static inline void kxfer_uring_mark_cancelable(struct io_uring_cmd *cmd,
					       unsigned int issue_flags)
{
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
}
#endif

/* The task that submitted the command; may be the SQPOLL thread. */
static inline struct task_struct *kxfer_uring_task(struct io_uring_cmd *cmd)
{
#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
	return cmd_to_io_kiocb(cmd)->task;
#else
	return io_uring_cmd_get_task(cmd);
#endif
}

/* Complete a command; @big goes into the second half of the CQE, if it has one. */
static inline void kxfer_uring_done(struct io_uring_cmd *cmd, s32 res, u64 big,
				    unsigned int issue_flags)
{
#if KERNEL_VERSION(6, 18, 0) > LINUX_VERSION_CODE
	io_uring_cmd_done(cmd, res, big, issue_flags);
#else
	io_uring_cmd_done32(cmd, res, big, issue_flags);
#endif
}

/*
 * KXFER_URING_IN_TASK(done) wraps done(cmd, issue_flags) into the function that
 * kxfer_uring_in_task() has called in the task of a command, to complete the command with
 * one CQE. Where the task can wait for several CQEs, it is not woken for each.
 */
#if KERNEL_VERSION(6, 19, 0) > LINUX_VERSION_CODE
#define KXFER_URING_IN_TASK(done)						\
static void done##_in_task(struct io_uring_cmd *cmd, unsigned int issue_flags)	\
{										\
	done(cmd, issue_flags);							\
}
#else
#define KXFER_URING_IN_TASK(done)						\
static void done##_in_task(struct io_tw_req req, io_tw_token_t token)		\
{										\
	done(io_uring_cmd_from_tw(req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);	\
}
#endif

#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
#define kxfer_uring_in_task(cmd, done)	io_uring_cmd_complete_in_task(cmd, done##_in_task)
#else
#define kxfer_uring_in_task(cmd, done)	io_uring_cmd_do_in_task_lazy(cmd, done##_in_task)
#endif

/* Symbols of kxfer.ko that kxfer_bench.ko uses. The namespace is a string since 6.13. */
#if KERNEL_VERSION(6, 13, 0) > LINUX_VERSION_CODE
#define KXFER_EXPORT(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, KXFER)
#define KXFER_IMPORT		MODULE_IMPORT_NS(KXFER)
#else
#define KXFER_EXPORT(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, "KXFER")
#define KXFER_IMPORT		MODULE_IMPORT_NS("KXFER")
#endif

/* Before 7.2 rxe sends and receives in the first network namespace only. */
#if KERNEL_VERSION(7, 2, 0) > LINUX_VERSION_CODE
#define KXFER_RXE_HAS_NETS	0
#else
#define KXFER_RXE_HAS_NETS	1
#endif

#if IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)
#include <linux/dma-buf.h>

/* The name of a namespace is a string from 6.13 on. */
#if KERNEL_VERSION(6, 13, 0) > LINUX_VERSION_CODE
#define KXFER_IMPORT_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#else
#define KXFER_IMPORT_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * Before 7.1 a dynamic importer needs a hook for memory that moves, which pinned memory does
 * not. So had ib_umem_dmabuf_get_pinned().
 */
#if KERNEL_VERSION(7, 1, 0) > LINUX_VERSION_CODE
static inline void kxfer_dma_buf_moved(struct dma_buf_attachment *attachment)
{
	pr_warn_ratelimited("a dma-buf of %s moved although it is pinned\n",
			    attachment->dmabuf->exp_name);
}

#define KXFER_DMA_BUF_PINNED	.move_notify = kxfer_dma_buf_moved,
#else
#define KXFER_DMA_BUF_PINNED
#endif

/* From 6.2 on the caller of dma_buf_vmap() holds the reservation lock, as in others. */
static inline int kxfer_dma_buf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
#if KERNEL_VERSION(6, 2, 0) > LINUX_VERSION_CODE
	return dma_buf_vmap(dmabuf, map);
#else
	return dma_buf_vmap_unlocked(dmabuf, map);
#endif
}

static inline void kxfer_dma_buf_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
#if KERNEL_VERSION(6, 2, 0) > LINUX_VERSION_CODE
	dma_buf_vunmap(dmabuf, map);
#else
	dma_buf_vunmap_unlocked(dmabuf, map);
#endif
}
#endif /* CONFIG_DMA_SHARED_BUFFER */

#endif /* KXFER_COMPAT_H */

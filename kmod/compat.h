/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels from 6.1 on. The only file with tests of the
 * kernel's version: all others read as if written for the newest.
 */
#ifndef KXFER_COMPAT_H
#define KXFER_COMPAT_H

#include <linux/eventfd.h>
#include <linux/hugetlb_inline.h>
#include <linux/mm.h>
#include <linux/version.h>
#include <linux/workqueue.h>

/*
 * For a variable on the stack that is always filled before it is used and is too large
 * to be cleared in each call (CONFIG_INIT_STACK_ALL_ZERO). Late kernels have the word.
 */
#ifndef __uninitialized
#define __uninitialized	__attribute__((__uninitialized__))
#endif

/*
 * Before 6.5 it has a fifth argument, an array for the VMAs. Given no array it
 * keeps mmap_lock from beginning to end, then as now.
 */
static inline long kxfer_pin_user_pages(unsigned long start, unsigned long nr_pages,
					unsigned int gup_flags, struct page **pages)
{
#if KERNEL_VERSION(6, 5, 0) > LINUX_VERSION_CODE
	return pin_user_pages(start, nr_pages, gup_flags, pages, NULL);
#else
	return pin_user_pages(start, nr_pages, gup_flags, pages);
#endif
}

/*
 * Since 6.2 a long-term pin for reading breaks COW by itself, so that the pages
 * pinned stay those that the process sees. Before, only a pin for writing did;
 * FOLL_FORCE lets it pass a private mapping without PROT_WRITE, which hugetlb
 * does not know (there a pin for reading has to do).
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
 * For a workqueue whose work runs on the CPU that queued it. Up to 6.16 that is what
 * neither flag means; later WQ_PERCPU says so, and 7.2 warns where neither stands.
 */
#if KERNEL_VERSION(6, 17, 0) > LINUX_VERSION_CODE
#define KXFER_WQ_PERCPU	0
#else
#define KXFER_WQ_PERCPU	WQ_PERCPU
#endif

/* Before 6.3 the flags of a VMA are a plain word. Its mmap_lock is held for writing. */
static inline void kxfer_vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				      vm_flags_t clear)
{
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#else
	vm_flags_mod(vma, set, clear);
#endif
}

/* Before 6.8 it has a second argument, how much to add. */
static inline void kxfer_eventfd_signal(struct eventfd_ctx *eventfd)
{
#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
	eventfd_signal(eventfd, 1);
#else
	eventfd_signal(eventfd);
#endif
}

#endif /* KXFER_COMPAT_H */

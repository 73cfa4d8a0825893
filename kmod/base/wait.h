/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waits that end early when their caller has to end.
 *
 * The caller is a system call, which a fatal signal ends; or a call by io_uring in a thread of
 * io_uring (front/cdev.c). There io_uring sets a notification when nobody will take the CQE: the
 * ring is being closed, or the task is in execve(). No signal but a fatal one is delivered to such
 * a thread; but where the process is stopped or frozen its wait ends too, and the caller calls
 * again.
 */
#ifndef KXFER_WAIT_H
#define KXFER_WAIT_H

#include <linux/completion.h>
#include <linux/sched.h>
#include <linux/wait.h>

/* Return: as wait_event_killable_timeout(). */
#define kxfer_wait_event_timeout(queue, condition, timeout)				\
	(current->flags & PF_IO_WORKER ?						\
	 wait_event_interruptible_timeout(queue, condition, timeout) :			\
	 wait_event_killable_timeout(queue, condition, timeout))

/* Return: as wait_for_completion_killable_timeout(). */
static inline long kxfer_wait_for_completion_timeout(struct completion *done,
						     unsigned long timeout)
{
	if (current->flags & PF_IO_WORKER)
		return wait_for_completion_interruptible_timeout(done, timeout);
	return wait_for_completion_killable_timeout(done, timeout);
}

#endif /* KXFER_WAIT_H */

/* SPDX-License-Identifier: MIT */
/*
 * Memory with a controlled page fault: a task that touches the second of its two pages waits
 * until the page is supplied or removed (userfaultfd).
 */
#ifndef KXFER_TEST_SLOW_H
#define KXFER_TEST_SLOW_H

#include <stdbool.h>

#define KX_SLOW_PAGE	4096UL

/* @fd: negative on kernels without userfaultfd */
struct kx_slow {
	char *pages;
	int fd;
};

/* Return: 0 or -errno. Must be closed in any case. */
int kx_slow_open(struct kx_slow *slow);
void kx_slow_close(struct kx_slow *slow);
/* Whether a task starts waiting for the page within KX_TIMEOUT_MS. */
bool kx_slow_is_waited_for(const struct kx_slow *slow);
/* Supplies these bytes; the waiting task continues. Return: 0 or -errno. */
int kx_slow_supply(const struct kx_slow *slow, const void *page);
/* Removes the page; the waiting task gets EFAULT. Return: 0 or -errno. */
int kx_slow_take_away(const struct kx_slow *slow);

#endif /* KXFER_TEST_SLOW_H */

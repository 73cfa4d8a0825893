/* SPDX-License-Identifier: MIT */
/*
 * Memory that takes as long as its owner likes: whoever touches the second of its two
 * pages waits until it is supplied or taken away (userfaultfd).
 */
#ifndef KXFER_TEST_SLOW_H
#define KXFER_TEST_SLOW_H

#include <stdbool.h>

#define KX_SLOW_PAGE	4096UL

/* @fd: below 0 where the kernel has no userfaultfd */
struct kx_slow {
	char *pages;
	int fd;
};

/* Return: 0 or -errno. To be closed in any case. */
int kx_slow_open(struct kx_slow *slow);
void kx_slow_close(struct kx_slow *slow);
/* Whether somebody waits for the page, within KX_TIMEOUT_MS. */
bool kx_slow_is_waited_for(const struct kx_slow *slow);
/* Who waits goes on with these bytes. Return: 0 or -errno. */
int kx_slow_supply(const struct kx_slow *slow, const void *page);
/* Who waits gets EFAULT. Return: 0 or -errno. */
int kx_slow_take_away(const struct kx_slow *slow);

#endif /* KXFER_TEST_SLOW_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* A call of /dev/kxfer. See cdev.c, and engine.h for calls of another module. */
#ifndef KXFER_CALL_H
#define KXFER_CALL_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/ioctl.h>
#include <linux/types.h>

struct kxfer_session;

/* Bytes of the kernel's copy of a call's structure. */
#define KXFER_CALL_ROOM		256
/* Bytes by which the fault CALL_GROWN makes a structure longer. */
#define KXFER_CALL_GROWTH	8

#define KXFER_CALL_OUT		BIT(0)	/* has results */
#define KXFER_CALL_OUT_ON_ERROR	BIT(1)	/* has results that are returned on failure too */
#define KXFER_CALL_BY_ID	BIT(2)	/* takes struct kxfer_id */
#define KXFER_CALL_URING	BIT(3)	/* also by io_uring: it waits for a peer */
#define KXFER_CALL_BARE		BIT(4)	/* has no structure: its argument is a number */

/**
 * struct kxfer_call - a call of /dev/kxfer
 * @size: bytes of the call's structure
 * @min: bytes of that structure in the first release: the least that a caller passes
 * @flags: KXFER_CALL_*
 * @handle: carries the call out; @arg is the kernel's copy, or the number. May sleep. Return: 0
 *	or -errno; the result of a call without a structure may be positive
 */
struct kxfer_call {
	u16 size;
	u16 min;
	u32 flags;
	int (*handle)(struct kxfer_session *session, void *arg);
};

#define KXFER_CALL_OF(type, min, flags, handle)						\
	{										\
		sizeof(struct type) +							\
			BUILD_BUG_ON_ZERO(sizeof(struct type) + KXFER_CALL_GROWTH >	\
					  KXFER_CALL_ROOM),				\
		min, flags, handle							\
	}

#endif /* KXFER_CALL_H */

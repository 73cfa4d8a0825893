/* SPDX-License-Identifier: MIT */
/*
 * The kernel functions that the pure parts of the module use, for user space.
 *
 * The sources under kmod/ are compiled here without #ifdefs. So the other headers here have the
 * names of kernel headers, and no content of their own.
 */
#ifndef KXFER_PURE_FOR_USER_H
#define KXFER_PURE_FOR_USER_H

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/types.h>

#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX

#define BIT(nr)			(1UL << (nr))
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define WRITE_ONCE(x, value)	(*(volatile typeof(x) *)&(x) = (value))
#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))

#define check_add_overflow(a, b, sum)	__builtin_add_overflow(a, b, sum)
/* The kernel's struct_size() saturates, this one wraps; no table is that long. */
#define struct_size(p, member, count) \
	(offsetof(typeof(*(p)), member) + sizeof(*(p)->member) * (size_t)(count))

#define cpu_to_be16(x)		htobe16(x)
#define cpu_to_be32(x)		htobe32(x)
#define cpu_to_be64(x)		htobe64(x)
#define be16_to_cpu(x)		be16toh(x)
#define be32_to_cpu(x)		be32toh(x)
#define be64_to_cpu(x)		be64toh(x)

/* error pointers */
#define MAX_ERRNO		4095
#define IS_ERR(pointer)		((uintptr_t)(pointer) >= (uintptr_t)-MAX_ERRNO)
#define PTR_ERR(pointer)	((long)(pointer))
#define ERR_PTR(error)		((void *)(long)(error))

/* "User memory" is memory of the test. */
#define u64_to_user_ptr(x)	((void *)(uintptr_t)(x))

#define GFP_KERNEL_ACCOUNT	0

static inline void *kvmalloc_array(size_t nr, size_t size, int flags)
{
	(void)flags;
	return calloc(nr, size);
}

/* Same contract as in the kernel: bytes beyond @size have to be 0, missing bytes are set to 0. */
static inline int copy_struct_from_user(void *to, size_t size, const void *from, size_t given)
{
	const unsigned char *rest = (const unsigned char *)from + size;

	memset(to, 0, size);
	memcpy(to, from, given < size ? given : size);
	for (; given > size; rest++, given--)
		if (*rest)
			return -E2BIG;
	return 0;
}

static inline void kvfree(void *memory)
{
	free(memory);
}

static inline void *memchr_inv(const void *start, int c, size_t bytes)
{
	const unsigned char *p = (const unsigned char *)start;

	for (; bytes; p++, bytes--)
		if (*p != (unsigned char)c)
			return (void *)p;
	return NULL;
}

#endif /* KXFER_PURE_FOR_USER_H */

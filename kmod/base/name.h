/* SPDX-License-Identifier: GPL-2.0 */
/* Names of exports and keys. Pure: user space compiles it too. */
#ifndef KXFER_NAME_H
#define KXFER_NAME_H

#include <linux/ctype.h>
#include <linux/kxfer.h>
#include <linux/string.h>
#include <linux/types.h>

/**
 * kxfer_name_valid() - whether bytes are a name: 1 to KXFER_NAME_MAX of [A-Za-z0-9._-]
 * @name: KXFER_NAME_MAX + 1 bytes; zeros after the name
 */
static inline bool kxfer_name_valid(const u8 *name)
{
	size_t length = strnlen((const char *)name, KXFER_NAME_MAX + 1), i;

	if (!length || length > KXFER_NAME_MAX)
		return false;
	/* The kernel's isalnum() also accepts the letters of Latin-1. */
	for (i = 0; i < length; i++)
		if (!isascii(name[i]) || (!isalnum(name[i]) && !strchr("._-", name[i])))
			return false;
	return !memchr_inv(name + length, 0, KXFER_NAME_MAX + 1 - length);
}

#endif /* KXFER_NAME_H */

/* SPDX-License-Identifier: MIT */
/* uapi headers, also those used by the C library, include this header alone. */
#ifndef KXFER_PURE_TYPES_H
#define KXFER_PURE_TYPES_H

#include_next <linux/types.h>

#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#endif /* KXFER_PURE_TYPES_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Objects by id. See table.c. */
#ifndef KXFER_TABLE_H
#define KXFER_TABLE_H

#include <linux/types.h>
#include <linux/xarray.h>

/* An xarray first allocates without the caller's gfp flags, hence ACCOUNT. */
#define KXFER_TABLE_FLAGS	(XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT)

int kxfer_table_insert(struct xarray *table, void *object, u32 *id, u32 max);
u32 kxfer_table_count(struct xarray *table);

#endif /* KXFER_TABLE_H */

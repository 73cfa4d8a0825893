// SPDX-License-Identifier: GPL-2.0
/*
 * Tables: objects of a session by the ids that its user knows them by.
 *
 * Context: kxfer_table_insert() may sleep.
 */
#include <linux/gfp.h>

#include "base/fault.h"
#include "node/table.h"

/**
 * kxfer_table_insert() - give an object an id
 * @table: table of the session; the session's lock is held for writing
 * @object: object, which can be found from now on
 * @id: out: the id
 * @max: most objects in @table
 *
 * Return: 0, -EDQUOT, -ENOMEM.
 */
int kxfer_table_insert(struct xarray *table, void *object, u32 *id, u32 max)
{
	int ret = kxfer_try(SESSION_ID,
			    xa_alloc(table, id, object, XA_LIMIT(1, max), GFP_KERNEL_ACCOUNT));

	return ret == -EBUSY ? -EDQUOT : ret;
}

/** kxfer_table_count() - count the objects in a table, without a lock; any context */
u32 kxfer_table_count(struct xarray *table)
{
	unsigned long id;
	void *object;
	u32 nr = 0;

	xa_for_each(table, id, object)
		nr++;
	return nr;
}

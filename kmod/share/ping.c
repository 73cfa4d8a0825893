// SPDX-License-Identifier: GPL-2.0
/*
 * @ping: the built-in export, which `kxfer ping` READs. It belongs to the module: no session
 * gets its events and no cgroup is charged for it. LIST leaves it out.
 */
#include <linux/err.h>
#include <linux/kxfer.h>
#include <linux/mm.h>

#include "node/memory.h"
#include "node/region.h"
#include "share/export.h"
#include "share/export_table.h"
#include "share/ping.h"

static struct kxfer_export *ping_export;

static void fill_ping(struct kxfer_memory *memory)
{
	u32 i;

	for (i = 0; i < KXFER_PING_SIZE; i++) {
		u8 *page = page_address(memory->pages[i / PAGE_SIZE]);

		page[i % PAGE_SIZE] = (u8)(i * 7 + i / 256);
	}
}

/** kxfer_ping_publish() - publish the built-in export. Return: 0 or -errno */
int kxfer_ping_publish(void)
{
	struct kxfer_memory *memory;
	struct kxfer_region *region;
	int ret;

	memory = kxfer_memory_alloc(KXFER_PING_SIZE);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	fill_ping(memory);
	region = kxfer_region_create(memory);
	if (IS_ERR(region))
		return PTR_ERR(region);
	ping_export = kxfer_export_alloc(KXFER_PING_NAME, KXFER_RIGHT_READ);
	if (!ping_export) {
		ret = -ENOMEM;
		goto err_destroy;
	}
	ping_export->builtin = true;
	ping_export->region = region;
	ping_export->length = KXFER_PING_SIZE;
	ret = kxfer_export_table_add(ping_export);
	if (ret)
		goto err_put;
	atomic_inc(&region->users);
	return 0;

err_put:
	kxfer_export_put(ping_export);
err_destroy:
	kxfer_region_destroy(region);
	return ret;
}

/** kxfer_ping_withdraw() - withdraw the built-in export; no link is left */
void kxfer_ping_withdraw(void)
{
	struct kxfer_region *region = ping_export->region;

	kxfer_export_withdraw(ping_export);
	kxfer_region_destroy(region);
}

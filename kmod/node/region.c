// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: memory of a session, or of the module, made ready for devices.
 *
 * A region owns its pages, or a reference on a dma-buf (memory.c). It is mapped for DMA once for
 * each device that uses it, at the first use (mapping.c). Jobs and exports count as users of the
 * region, and while it has users it stays.
 *
 * Context: calls of users, and the end of a session; may sleep.
 */
#include "base/log.h"

#include <linux/capability.h>
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/stats.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"

/**
 * kxfer_region_create() - make a region of memory
 * @memory: the memory; passes to the region, and is freed on failure
 *
 * Return: the region, not mapped for any device, or ERR_PTR(-ENOMEM).
 */
struct kxfer_region *kxfer_region_create(struct kxfer_memory *memory)
{
	struct kxfer_region *region;

	region = kxfer_try_alloc(REGION, kzalloc_obj(*region, GFP_KERNEL_ACCOUNT));
	if (!region) {
		kxfer_memory_free(memory);
		return ERR_PTR(-ENOMEM);
	}
	region->memory = memory;
	mutex_init(&region->map_mutex);
	xa_init_flags(&region->mappings, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	kxfer_stat_inc(KXFER_STAT_LIVE_REGIONS);
	return region;
}

/**
 * kxfer_region_destroy() - unmap from all devices and unpin; may sleep
 * @region: region without users that no lookup can find any more
 */
void kxfer_region_destroy(struct kxfer_region *region)
{
	WARN_ON_ONCE(atomic_read(&region->users));
	kxfer_mapping_end_all(region);
	xa_destroy(&region->mappings);
	kxfer_memory_free(region->memory);
	kfree(region);
	kxfer_stat_dec(KXFER_STAT_LIVE_REGIONS);
}

/* Return: the memory of a new region, or ERR_PTR. */
static struct kxfer_memory *take_memory(const struct kxfer_session *session,
					const struct kxfer_region_add *cmd)
{
	bool writable = cmd->flags & KXFER_REGION_F_WRITE;

	if (cmd->flags & ~(KXFER_REGION_F_WRITE | KXFER_REGION_F_DMABUF))
		return ERR_PTR(-EOPNOTSUPP);
	if (cmd->__reserved)
		return ERR_PTR(-EINVAL);
	if (cmd->flags & KXFER_REGION_F_DMABUF)
		return kxfer_memory_import(cmd->dmabuf_fd, cmd->addr, cmd->length, writable);
	if (cmd->dmabuf_fd)
		return ERR_PTR(-EINVAL);
	return kxfer_memory_pin(session->user, cmd->addr, cmd->length, writable);
}

/** kxfer_region_add() - KXFER_REGION_ADD */
int kxfer_region_add(struct kxfer_session *session, void *arg)
{
	struct kxfer_region_add *cmd = arg;
	struct kxfer_memory *memory;
	struct kxfer_region *region;
	int ret;

	memory = take_memory(session, cmd);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	region = kxfer_region_create(memory);
	if (IS_ERR(region))
		return PTR_ERR(region);
	cmd->nr_segments = memory->nr_segments;
	down_write(&session->lock);
	ret = kxfer_table_insert(&session->regions, region, &region->id,
				 KXFER_MAX_REGIONS);
	if (!ret) {
		cmd->region = region->id;
		atomic64_add(kxfer_memory_bytes(memory), &session->pinned_bytes);
	}
	up_write(&session->lock);
	/* On success another thread may have deleted the region by now. */
	if (ret)
		kxfer_region_destroy(region);
	return ret;
}

/** kxfer_region_del() - KXFER_REGION_DEL */
int kxfer_region_del(struct kxfer_session *session, void *arg)
{
	struct kxfer_id *cmd = arg;
	struct kxfer_region *region;
	int ret = 0;

	down_write(&session->lock);
	region = xa_load(&session->regions, cmd->id);
	if (!region) {
		ret = -ENOENT;
	} else if (atomic_read(&region->users)) {
		ret = -EBUSY;
	} else {
		xa_erase(&session->regions, cmd->id);
		session->last_region = NULL;
	}
	up_write(&session->lock);
	if (ret)
		return ret;
	atomic64_sub(kxfer_memory_bytes(region->memory), &session->pinned_bytes);
	kxfer_region_destroy(region);
	return 0;
}

/**
 * kxfer_region_records() - list the regions of a session at one instant
 * @session: the session; stays while this runs
 * @records: out: room for @nr records
 * @nr: room; KXFER_MAX_REGIONS is enough
 *
 * Return: records filled, or -EBUSY: a call of the session holds the session's lock,
 * perhaps for as long as its user likes.
 */
int kxfer_region_records(struct kxfer_session *session,
			 struct kxfer_region_record *records, u32 nr)
{
	struct kxfer_region *region;
	unsigned long id;
	u32 n = 0;

	if (!down_read_trylock(&session->lock))
		return -EBUSY;
	xa_for_each(&session->regions, id, region) {
		if (n == nr)
			break;
		records[n++] = (struct kxfer_region_record) {
			.id = id,
			.nr_users = atomic_read(&region->users),
			.nr_mappings = kxfer_table_count(&region->mappings),
			.nr_pages = region->memory->nr_pages,
			.length = region->memory->length,
			.writable = region->memory->writable,
			.dmabuf = region->memory->dmabuf,
		};
	}
	up_read(&session->lock);
	return n;
}

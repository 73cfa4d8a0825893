// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings: a region mapped for DMA by one device.
 *
 * A region is mapped once for each device that uses it, at the first use. Jobs and exposures
 * then count as users of that mapping; they map and pin nothing themselves.
 *
 * Making and ending a mapping takes time in proportion to its memory, so no unrelated
 * caller waits for either. Only callers that need a new mapping of the same region wait
 * (map_mutex of the region). mappings_lock is held for single steps on the lists.
 *
 * A mapping ends exactly once, by the context that takes it out of its region
 * (kxfer_mapping.stored, under mappings_lock). That is either the end of its region, which
 * is destroyed only without users, or the removal of its device, which has ended all jobs
 * and exposures before (device.c):
 *  1. The device is marked as removed. No mapping is stored from then on: the maker of a
 *     mapping checks the mark under mappings_lock, and ends the mapping itself.
 *  2. Stored mappings are taken out, one by one, and ended when their users have gone. A
 *     submitter may have found one just before; it fails to queue its job and lets go.
 *  3. The removal waits until the list of the device is empty: that is for mappings that
 *     are being made, and for mappings that a region has taken out.
 * The end of a region waits likewise for mappings that a removal has taken out
 * (nr_mappings), because they refer to the region and its memory.
 *
 * A device may see a copy of the memory, in bounce buffers. While the mapping lasts both
 * sides work on the memory, so only making a mapping copies all of it. Each job syncs the
 * bytes that it moves (kxfer_mapping_sync()): before its work requests are posted
 * (kxfer_mapping_to_device()), and when a READ has placed them (kxfer_mapping_to_cpu()).
 * Unmapping copies nothing back, because bytes that the device did not write are old in
 * the copy. An export has no moment for either sync, so on such a device only the module's
 * own memory can be exported (share/registration.c).
 *
 * A mapping of a dma-buf is an attachment of the device to it (dmabuf.c). Nobody syncs it:
 * whoever works on the buffer by the CPU tells its exporter (DMA_BUF_IOCTL_SYNC). A device that
 * may see a copy gets none, because nothing would bring the copy up to date.
 *
 * Context: creating and destroying may sleep; the rest may not.
 * Lock order: session lock, map_mutex of a region, mappings_lock, then devices_lock
 * (device.c) or xa_lock of a region's mappings.
 */
#include "base/log.h"

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <rdma/ib_verbs.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/plan.h"
#include "base/stats.h"
#include "node/device.h"
#include "node/dmabuf.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"

static DEFINE_SPINLOCK(mappings_lock);

static enum dma_data_direction map_direction(const struct kxfer_region *region)
{
	return region->memory->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static int alloc_extents(struct kxfer_mapping *mapping, u32 nr)
{
	mapping->extents = kxfer_try_alloc(MAPPING_EXTENTS,
					   kvmalloc_array(nr, sizeof(*mapping->extents),
							  KXFER_GFP_FOR_PEER));
	mapping->nr_extents = nr;
	return mapping->extents ? 0 : -ENOMEM;
}

/*
 * A device with virtual DMA uses CPU addresses (ib_dma_virt_map_sg()), so the extents come
 * from the pages, without a scatter list.
 */
static int take_addresses(struct kxfer_mapping *mapping)
{
	const struct kxfer_memory *memory = mapping->region->memory;
	struct kxfer_extent *extent;
	u64 start = 0, offset = memory->offset;
	unsigned long i, nr;
	u32 segment = 0;

	if (alloc_extents(mapping, memory->nr_segments))
		return -ENOMEM;
	extent = mapping->extents;
	for (i = 0; i < memory->nr_pages; i += nr, extent++) {
		nr = kxfer_memory_segment(memory, segment++, i);
		extent->start = start;
		extent->addr = (uintptr_t)page_address(memory->pages[i]) + offset;
		extent->length = min(nr * PAGE_SIZE - offset, memory->length - start);
		extent->key = 0;
		start += extent->length;
		offset = 0;
		if (nr > 1 || segment % 64 == 0)
			cond_resched();
	}
	return 0;
}

/* No segment has more than 2^32 - 1 bytes: ib_dma_max_seg_size() is 32 bits wide. */
static int fill_extents(struct kxfer_mapping *mapping)
{
	struct kxfer_extent *extent;
	struct scatterlist *sg;
	u64 start = 0;
	int i;

	if (alloc_extents(mapping, mapping->table.nents))
		return -ENOMEM;
	extent = mapping->extents;
	for_each_sgtable_dma_sg(&mapping->table, sg, i) {
		*extent++ = (struct kxfer_extent) {
			.start = start,
			.addr = sg_dma_address(sg),
			.length = sg_dma_len(sg),
		};
		start += sg_dma_len(sg);
	}
	return 0;
}

static void unmap_table(struct kxfer_mapping *mapping)
{
	ib_dma_unmap_sgtable_attrs(mapping->dev->ibdev, &mapping->table,
				   map_direction(mapping->region),
				   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(&mapping->table);
}

static int map_table(struct kxfer_mapping *mapping)
{
	struct kxfer_region *region = mapping->region;
	struct ib_device *ibdev = mapping->dev->ibdev;
	int ret;

	ret = kxfer_memory_table(region->memory, &mapping->table,
				 ib_dma_max_seg_size(ibdev));
	if (ret)
		return ret;
	ret = kxfer_try(MAPPING_DMA, ib_dma_map_sgtable_attrs(ibdev, &mapping->table,
							      map_direction(region), 0));
	if (ret) {
		sg_free_table(&mapping->table);
		return ret;
	}
	ret = fill_extents(mapping);
	if (ret)
		unmap_table(mapping);
	return ret;
}

static int fill_buffer_extents(struct kxfer_mapping *mapping)
{
	const struct kxfer_memory *memory = mapping->region->memory;
	const struct kxfer_attachment *attachment = &mapping->attachment;
	u32 nr = kxfer_dmabuf_extents(attachment, memory->offset, memory->length, NULL);

	if (!nr)
		return -EOPNOTSUPP;
	if (alloc_extents(mapping, nr))
		return -ENOMEM;
	kxfer_dmabuf_extents(attachment, memory->offset, memory->length, mapping->extents);
	return 0;
}

static int attach_buffer(struct kxfer_mapping *mapping)
{
	struct kxfer_device *dev = mapping->dev;
	int ret;

	if (!dev->in_place)
		return -EOPNOTSUPP;
	mapping->attachment.dmabuf = mapping->region->memory->dmabuf;
	mapping->attachment.direction = map_direction(mapping->region);
	ret = kxfer_try(MAPPING_DMA, kxfer_dmabuf_attach(&mapping->attachment, dev->ibdev));
	if (ret)
		return ret;
	ret = fill_buffer_extents(mapping);
	if (ret)
		kxfer_dmabuf_detach(&mapping->attachment);
	return ret;
}

static int map_for_device(struct kxfer_mapping *mapping)
{
	int ret;

	if (mapping->region->memory->dmabuf)
		return attach_buffer(mapping);
	if (ib_uses_virt_dma(mapping->dev->ibdev))
		return take_addresses(mapping);
	ret = map_table(mapping);
	mapping->synced = !ret;
	return ret;
}

static void unmap(struct kxfer_mapping *mapping)
{
	if (mapping->region->memory->dmabuf)
		kxfer_dmabuf_detach(&mapping->attachment);
	else if (mapping->synced)
		unmap_table(mapping);
}

static void leave_device(struct kxfer_mapping *mapping)
{
	spin_lock(&mappings_lock);
	kxfer_device_leave(mapping->dev, &mapping->dev_node);
	spin_unlock(&mappings_lock);
}

static struct kxfer_mapping *mapping_create(struct kxfer_region *region,
					    struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping;
	int ret;

	mapping = kxfer_try_alloc(MAPPING, kzalloc_obj(*mapping, KXFER_GFP_FOR_PEER));
	if (!mapping)
		return ERR_PTR(-ENOMEM);
	mapping->region = region;
	mapping->dev = dev;
	ret = kxfer_device_join(dev, &dev->mappings, &mapping->dev_node);
	if (ret)
		goto err_free;
	kxfer_delay(MAPPING_MAKE);
	/* The ib_device is there as long as the device is joined. */
	ret = map_for_device(mapping);
	if (ret)
		goto err_leave;
	atomic_inc(&region->nr_mappings);
	kxfer_stat_inc(KXFER_STAT_LIVE_MAPPINGS);
	return mapping;

err_leave:
	leave_device(mapping);
err_free:
	kfree(mapping);
	return ERR_PTR(ret);
}

/* The mapping has no users and is no longer in its region. */
static void mapping_destroy(struct kxfer_mapping *mapping)
{
	struct kxfer_region *region = mapping->region;

	kxfer_delay(MAPPING_END);
	unmap(mapping);
	kvfree(mapping->extents);
	leave_device(mapping);
	kfree(mapping);
	kxfer_stat_dec(KXFER_STAT_LIVE_MAPPINGS);
	/* The last use of the region: wake_up_var() uses only the address of the counter. */
	if (atomic_dec_and_test(&region->nr_mappings))
		wake_up_var(&region->nr_mappings);
}

/* Store a mapping in its region, with one user, unless its device is going. */
static int mapping_store(struct kxfer_mapping *mapping)
{
	struct kxfer_region *region = mapping->region;
	u64 id = mapping->dev->id;
	bool stored;
	int ret;

	ret = kxfer_try(MAPPING_STORE, xa_reserve_bh(&region->mappings, id, KXFER_GFP_FOR_PEER));
	if (ret)
		return ret;
	atomic_set(&mapping->users, 1);
	spin_lock(&mappings_lock);
	stored = !kxfer_device_is_going(mapping->dev);
	mapping->stored = stored;
	if (stored)
		xa_store_bh(&region->mappings, id, mapping, 0);
	spin_unlock(&mappings_lock);
	kxfer_delay(MAPPING_STORED);
	/* The device's removal may have taken it out by now, and then waits for the user. */
	if (stored)
		return 0;
	xa_erase_bh(&region->mappings, id);
	return -ENODEV;
}

/* Called with mappings_lock held. The caller must end the mapping. */
static void take_out(struct kxfer_mapping *mapping)
{
	struct kxfer_region *region = mapping->region;

	mapping->stored = false;
	xa_lock_bh(&region->mappings);
	__xa_erase(&region->mappings, mapping->dev->id);
	region->last_mapping = NULL;
	xa_unlock_bh(&region->mappings);
}

/**
 * kxfer_mapping_find() - find the mapping of a region for a device
 * @region: the region; stays while this runs
 * @dev: a device that the caller holds a reference on
 *
 * Any context but hard interrupts. Return: the mapping with one more user, or NULL.
 */
struct kxfer_mapping *kxfer_mapping_find(struct kxfer_region *region,
					 struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping;

	xa_lock_bh(&region->mappings);
	mapping = region->last_mapping;
	if (!mapping || mapping->dev != dev)
		mapping = xa_load(&region->mappings, dev->id);
	if (mapping) {
		region->last_mapping = mapping;
		atomic_inc(&mapping->users);
	}
	xa_unlock_bh(&region->mappings);
	return mapping;
}

/**
 * kxfer_mapping_get() - find or make the mapping of a region for a device
 * @region: the region; stays while this runs
 * @dev: a device that the caller holds a reference on
 *
 * May sleep to make the mapping. Return: the mapping with one more user, or ERR_PTR:
 * -ENODEV if the device is going, -ENOMEM, -EIO if the device cannot reach the memory; of a
 * dma-buf as kxfer_dmabuf_attach().
 */
struct kxfer_mapping *kxfer_mapping_get(struct kxfer_region *region,
					struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping = kxfer_mapping_find(region, dev);
	int ret;

	if (mapping)
		return mapping;
	mutex_lock(&region->map_mutex);
	mapping = kxfer_mapping_find(region, dev);
	if (mapping)
		goto out;
	mapping = mapping_create(region, dev);
	if (IS_ERR(mapping))
		goto out;
	ret = mapping_store(mapping);
	if (ret) {
		mapping_destroy(mapping);
		mapping = ERR_PTR(ret);
	}
out:
	mutex_unlock(&region->map_mutex);
	return mapping;
}

/** kxfer_mapping_put() - drop @nr users; any context but hard interrupts */
void kxfer_mapping_put(struct kxfer_mapping *mapping, int nr)
{
	struct kxfer_device *dev;

	/*
	 * The device's removal may free the mapping as soon as users is 0, and then the device,
	 * whose memory stays until here.
	 */
	rcu_read_lock();
	dev = mapping->dev;
	if (atomic_sub_and_test(nr, &mapping->users) && wq_has_sleeper(&dev->wait))
		wake_up_all(&dev->wait);
	rcu_read_unlock();
}

/* Of @bytes at @offset of the region: how many are contiguous for the CPU too. */
static u32 adjacent_bytes(const struct kxfer_memory *memory, u64 offset, u64 bytes)
{
	u64 at = memory->offset + offset, end = PAGE_SIZE - offset_in_page(at);
	struct page **page = &memory->pages[at / PAGE_SIZE];

	for (; end < bytes && page_to_pfn(page[1]) == page_to_pfn(page[0]) + 1; page++)
		end += PAGE_SIZE;
	return min(end, bytes);
}

static void sync_pages(struct kxfer_mapping *mapping, u64 offset, u32 bytes, u64 addr,
		       bool for_device)
{
	enum dma_data_direction direction = map_direction(mapping->region);
	const struct kxfer_memory *memory = mapping->region->memory;
	struct device *device = mapping->dev->ibdev->dma_device;
	u64 at = memory->offset + offset;
	struct scatterlist sg;

	sg_init_table(&sg, 1);
	sg_set_page(&sg, memory->pages[at / PAGE_SIZE], bytes, offset_in_page(at));
	sg_dma_address(&sg) = addr;
	sg_dma_len(&sg) = bytes;
	if (for_device)
		dma_sync_sg_for_device(device, &sg, 1, direction);
	else
		dma_sync_sg_for_cpu(device, &sg, 1, direction);
}

static void sync_address(struct kxfer_mapping *mapping, u64 addr, u32 bytes, bool for_device)
{
	enum dma_data_direction direction = map_direction(mapping->region);
	struct ib_device *ibdev = mapping->dev->ibdev;

	if (for_device)
		ib_dma_sync_single_for_device(ibdev, addr, bytes, direction);
	else
		ib_dma_sync_single_for_cpu(ibdev, addr, bytes, direction);
}

/**
 * kxfer_mapping_sync() - kxfer_mapping_to_device() and kxfer_mapping_to_cpu()
 * @mapping: synced mapping that the caller is a user of
 * @offset: first byte within the region
 * @bytes: length of the range
 * @for_device: for the device; else for the CPU
 *
 * An IOMMU joins pages from anywhere in one segment, but a machine that is not coherent
 * cleans caches by CPU addresses. From the address of a segment the DMA API finds only the
 * first page, and assumes that the rest follow it. So pass the pages: a scatter-list entry
 * for each run of contiguous pages. Do not pass the whole list, because the process may
 * work on its other bytes meanwhile. (DMA_API_DEBUG complains once that the rest of the
 * list is missing.) Bounce buffers are found by their address, and are never part of a
 * joined segment.
 */
void kxfer_mapping_sync(struct kxfer_mapping *mapping, u64 offset, u64 bytes, bool for_device)
{
	const struct kxfer_extent *extent;
	bool bounced;
	u64 addr;
	u32 piece;

	bounced = !mapping->dev->in_place || kxfer_sg_is_bounced(mapping->table.sgl);
	extent = &mapping->extents[kxfer_extents_find(mapping->extents,
						      mapping->nr_extents, offset)];
	for (; bytes; offset += piece, bytes -= piece) {
		if (offset == extent->start + extent->length)
			extent++;
		addr = extent->addr + (offset - extent->start);
		piece = min(bytes, extent->start + extent->length - offset);
		if (bounced) {
			sync_address(mapping, addr, piece, for_device);
		} else {
			piece = adjacent_bytes(mapping->region->memory, offset, piece);
			sync_pages(mapping, offset, piece, addr, for_device);
		}
	}
}

/**
 * kxfer_mapping_pieces() - describe a range for a fast registration
 * @mapping: mapping that the caller is a user of
 * @offset: first byte within the region
 * @bytes: length of the range
 * @sg: out: DMA addresses and lengths; or NULL
 *
 * Any context. Return: number of pieces.
 */
u32 kxfer_mapping_pieces(const struct kxfer_mapping *mapping, u64 offset, u64 bytes,
			 struct scatterlist *sg)
{
	const struct kxfer_extent *extent;
	u32 nr = 0, skip, piece;

	extent = &mapping->extents[kxfer_extents_find(mapping->extents,
						      mapping->nr_extents, offset)];
	skip = offset - extent->start;
	for (; bytes; bytes -= piece, extent++, skip = 0) {
		piece = min_t(u64, bytes, extent->length - skip);
		if (sg) {
			sg_dma_address(&sg[nr]) = extent->addr + skip;
			sg_dma_len(&sg[nr]) = piece;
		}
		nr++;
	}
	return nr;
}

/* Take out a mapping that is not being ended yet; or NULL. */
static struct kxfer_mapping *take_from_device(struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping, *found = NULL;

	spin_lock(&mappings_lock);
	list_for_each_entry(mapping, &dev->mappings, dev_node) {
		if (mapping->stored) {
			take_out(mapping);
			found = mapping;
			break;
		}
	}
	spin_unlock(&mappings_lock);
	return found;
}

/**
 * kxfer_mapping_remove_all() - end the mappings of a device that is being removed
 * @dev: device with no links left, that no mapping joins any more
 *
 * Mappings that another context is making or ending leave the device's list on their own.
 */
void kxfer_mapping_remove_all(struct kxfer_device *dev)
{
	struct kxfer_mapping *mapping;

	while ((mapping = take_from_device(dev))) {
		wait_event(dev->wait, !atomic_read(&mapping->users));
		mapping_destroy(mapping);
	}
}

/* Take out a mapping that no removal of a device is ending; or NULL. */
static struct kxfer_mapping *take_from_region(struct kxfer_region *region)
{
	struct kxfer_mapping *mapping;
	unsigned long index = 0;

	spin_lock(&mappings_lock);
	mapping = xa_find(&region->mappings, &index, ULONG_MAX, XA_PRESENT);
	if (mapping)
		take_out(mapping);
	spin_unlock(&mappings_lock);
	return mapping;
}

/** kxfer_mapping_end_all() - end the mappings of a region without users; may sleep */
void kxfer_mapping_end_all(struct kxfer_region *region)
{
	struct kxfer_mapping *mapping;

	while ((mapping = take_from_region(region)))
		mapping_destroy(mapping);
	wait_var_event(&region->nr_mappings, !atomic_read(&region->nr_mappings));
}

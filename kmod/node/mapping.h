/* SPDX-License-Identifier: GPL-2.0 */
/* Regions mapped for devices. See mapping.c. */
#ifndef KXFER_MAPPING_H
#define KXFER_MAPPING_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/scatterlist.h>

#include "node/dmabuf.h"

struct kxfer_device;
struct kxfer_extent;
struct kxfer_region;

/**
 * struct kxfer_mapping - a region mapped for one device
 * @region: the region
 * @dev: the device; a reference
 * @dev_node: entry of kxfer_device.mappings
 * @stored: the mapping is in its region, and not being ended; protected by mappings_lock
 * @users: jobs and exposures; while not 0 the mapping stays
 * @attachment: the device's of a dma-buf
 * @table: scatter list of pages, mapped bidirectionally if the region is writable; not made
 *	for a device with virtual DMA
 * @synced: @table is mapped, and ranges must be synced
 * @extents: pieces that are contiguous for the device, for plan.c
 * @nr_extents: entries of @extents
 */
struct kxfer_mapping {
	struct kxfer_region *region;
	struct kxfer_device *dev;
	struct list_head dev_node;
	bool stored;
	atomic_t users;
	struct kxfer_attachment attachment;
	struct sg_table table;
	bool synced;
	struct kxfer_extent *extents;
	u32 nr_extents;
};

struct kxfer_mapping *kxfer_mapping_find(struct kxfer_region *region, struct kxfer_device *dev);
struct kxfer_mapping *kxfer_mapping_get(struct kxfer_region *region, struct kxfer_device *dev);
void kxfer_mapping_put(struct kxfer_mapping *mapping, int nr);
void kxfer_mapping_sync(struct kxfer_mapping *mapping, u64 offset, u64 bytes, bool for_device);
u32 kxfer_mapping_pieces(const struct kxfer_mapping *mapping, u64 offset, u64 bytes,
			 struct scatterlist *sg);
void kxfer_mapping_remove_all(struct kxfer_device *dev);
void kxfer_mapping_end_all(struct kxfer_region *region);

/**
 * kxfer_mapping_to_device() - sync a range before the device works on it
 * @mapping: mapping that the caller is a user of
 * @offset: first byte within the region
 * @bytes: length of the range
 */
static inline void kxfer_mapping_to_device(struct kxfer_mapping *mapping, u64 offset, u64 bytes)
{
	if (mapping->synced)
		kxfer_mapping_sync(mapping, offset, bytes, true);
}

/** kxfer_mapping_to_cpu() - sync a range, as above, after the device has written it */
static inline void kxfer_mapping_to_cpu(struct kxfer_mapping *mapping, u64 offset, u64 bytes)
{
	if (mapping->synced)
		kxfer_mapping_sync(mapping, offset, bytes, false);
}

#endif /* KXFER_MAPPING_H */

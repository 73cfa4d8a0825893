/* SPDX-License-Identifier: GPL-2.0 */
/* Registered local memory and its mappings for devices. See region.c. */
#ifndef KXFER_REGION_H
#define KXFER_REGION_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/xarray.h>

struct kxfer_device;
struct kxfer_extent;
struct kxfer_memory;
struct kxfer_session;

/**
 * struct kxfer_region - memory that jobs and exports use
 * @id: id in its session
 * @memory: pages, pinned or the module's own
 * @mappings: struct kxfer_mapping by device id; its lock makes finding a mapping
 *	and counting its user one step
 * @last_mapping: entry of @mappings that was found last, or NULL; protected by its lock
 * @map_mutex: held while a mapping is made
 * @nr_mappings: mappings of the region, including those that are being ended
 * @users: jobs in flight and exports; while not 0 the region stays
 */
struct kxfer_region {
	u32 id;
	struct kxfer_memory *memory;
	struct xarray mappings;
	struct kxfer_mapping *last_mapping;
	struct mutex map_mutex;
	atomic_t nr_mappings;
	atomic_t users;
};

/**
 * struct kxfer_mapping - a region mapped for one device
 * @region: the region
 * @dev: the device; a reference
 * @dev_node: entry of kxfer_device.mappings
 * @stored: the mapping is in its region, and not being ended; protected by mappings_lock
 * @users: jobs and exposures; while not 0 the mapping stays
 * @table: scatter list, mapped bidirectionally if the region is writable; not made
 *	for a device with virtual DMA
 * @extents: pieces that are contiguous for the device, for plan.c
 * @nr_extents: entries of @extents
 */
struct kxfer_mapping {
	struct kxfer_region *region;
	struct kxfer_device *dev;
	struct list_head dev_node;
	bool stored;
	atomic_t users;
	struct sg_table table;
	struct kxfer_extent *extents;
	u32 nr_extents;
};

/**
 * struct kxfer_region_record - a region of a session, as shown to people
 * @id: id in its session
 * @nr_users: jobs in flight and exports
 * @nr_mappings: devices that the region is mapped for
 * @nr_pages: pages pinned
 * @length: bytes
 * @writable: devices may write the region
 */
struct kxfer_region_record {
	u32 id;
	u32 nr_users;
	u32 nr_mappings;
	unsigned long nr_pages;
	u64 length;
	bool writable;
};

struct kxfer_region *kxfer_region_create(struct kxfer_memory *memory);
void kxfer_region_destroy(struct kxfer_region *region);
struct kxfer_mapping *kxfer_mapping_find(struct kxfer_region *region,
					 struct kxfer_device *dev);
struct kxfer_mapping *kxfer_mapping_get(struct kxfer_region *region,
					struct kxfer_device *dev);
void kxfer_mapping_put(struct kxfer_mapping *mapping, int nr);
void kxfer_mapping_to_device(struct kxfer_mapping *mapping, u64 offset, u64 bytes);
void kxfer_mapping_to_cpu(struct kxfer_mapping *mapping, u64 offset, u64 bytes);
u32 kxfer_mapping_pieces(const struct kxfer_mapping *mapping, u64 offset, u64 bytes,
			 struct scatterlist *sg);
void kxfer_mapping_remove_all(struct kxfer_device *dev);

int kxfer_region_records(struct kxfer_session *session,
			 struct kxfer_region_record *records, u32 nr);

int kxfer_region_add(struct kxfer_session *session, void *arg);
int kxfer_region_del(struct kxfer_session *session, void *arg);

#endif /* KXFER_REGION_H */

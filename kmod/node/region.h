/* SPDX-License-Identifier: GPL-2.0 */
/* Registered local memory. See region.c. */
#ifndef KXFER_REGION_H
#define KXFER_REGION_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

struct kxfer_mapping;
struct kxfer_memory;
struct kxfer_session;

/**
 * struct kxfer_region - memory that jobs and exports use
 * @id: id in its session
 * @memory: pages, pinned or the module's own; or a dma-buf
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
 * struct kxfer_region_record - a region of a session, as shown to people
 * @id: id in its session
 * @nr_users: jobs in flight and exports
 * @nr_mappings: devices that the region is mapped for
 * @nr_pages: pages pinned
 * @length: bytes
 * @writable: devices may write the region
 * @dmabuf: the memory is that of a dma-buf
 */
struct kxfer_region_record {
	u32 id;
	u32 nr_users;
	u32 nr_mappings;
	unsigned long nr_pages;
	u64 length;
	bool writable;
	bool dmabuf;
};

struct kxfer_region *kxfer_region_create(struct kxfer_memory *memory);
void kxfer_region_destroy(struct kxfer_region *region);
int kxfer_region_records(struct kxfer_session *session,
			 struct kxfer_region_record *records, u32 nr);

int kxfer_region_add(struct kxfer_session *session, void *arg);
int kxfer_region_del(struct kxfer_session *session, void *arg);

#endif /* KXFER_REGION_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* An RDMA device that kxfer has attached to. See device.c. */
#ifndef KXFER_DEVICE_H
#define KXFER_DEVICE_H

#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "base/plan.h"

#define KXFER_PIECE_BYTES	(1024 * 1024)	/* longest READ or WRITE of ours */

/*
 * Payload that siw copies into the header of a packet (MAX_HDR_INLINE of siw_qp_tx.c), if
 * it is one SGE. If it crosses a page of an MR, siw_try_1seg() of 6.1 to 7.2 takes
 * `bytes - (PAGE_SIZE - off)` for the part in the first page, which is the other part, and
 * sends wrong bytes, some of which may be none of the MR's.
 */
#define KXFER_SIW_INLINE_BYTES	32

struct kxfer_device;
struct kxfer_info_device;

/**
 * struct kxfer_device_user - a link on a device
 * @node: in kxfer_device.links
 * @gone: the device is being removed: leave it soon; called with devices_lock held
 */
struct kxfer_device_user {
	struct list_head node;
	void (*gone)(struct kxfer_device_user *user);
};

/**
 * struct kxfer_device_ops - what listens where devices are; told of each of them
 * @added: there is one more; may sleep
 * @gids_changed: addresses of a device have changed; any context
 * @renamed: a device has another name now; may sleep
 * @removed: no connection is to come by a device any more; may sleep
 */
struct kxfer_device_ops {
	void (*added)(void);
	void (*gids_changed)(void);
	void (*renamed)(const struct kxfer_device *dev, const char *name);
	void (*removed)(struct ib_device *ibdev);
};

/**
 * struct kxfer_device - what kxfer keeps of one ib_device
 * @ref: held by links, mappings and charges; the ib_device itself is valid only
 *	until the remove callback returns, by when their lists are empty
 * @id: grows with every device that comes
 * @events: hears of GIDs that change
 * @ibdev: the device
 * @node: in the list of devices
 * @removing: set once, under the devices lock; no link, mapping or charge joins after
 * @links: links with objects on it: struct kxfer_device_user
 * @mappings: regions mapped for it, by kxfer_mapping.dev_node
 * @charges: what sessions are charged for on it; see charge.c
 * @wait: woken when one of the lists becomes shorter
 * @max_fast_reg_pages: pages of one registration of ours; the device may take more
 * @read_limits: what a READ of ours may have
 * @write_limits: what a WRITE of ours may have
 * @max_msg_bytes: longest RDMA message of the device's ports
 * @iwarp: READ sinks need a remotely writable STag; WRITEs need a fence READ
 * @in_place: it sees memory itself, never a copy of it in a bounce buffer
 * @atomic: it issues atomics and serves them
 */
struct kxfer_device {
	struct kref ref;
	u64 id;
	struct ib_device *ibdev;
	struct ib_event_handler events;
	struct list_head node;
	bool removing;
	struct list_head links;
	struct list_head mappings;
	struct list_head charges;
	wait_queue_head_t wait;
	u32 max_fast_reg_pages;
	struct kxfer_plan_limits read_limits;
	struct kxfer_plan_limits write_limits;
	u64 max_msg_bytes;
	bool iwarp;
	bool in_place;
	bool atomic;
};

/* @op: one that moves bytes */
static inline const struct kxfer_plan_limits *
kxfer_device_limits(const struct kxfer_device *dev, u32 op)
{
	return op == KXFER_OP_READ ? &dev->read_limits : &dev->write_limits;
}

u32 kxfer_device_features(const struct kxfer_device *dev);
u32 kxfer_device_message_pages(const struct kxfer_device *dev);
u32 kxfer_device_sink_pages(const struct kxfer_device *dev);
u64 kxfer_device_longest(const struct kxfer_device *dev);

extern struct ib_client kxfer_ib_client;

int kxfer_device_init(const struct kxfer_device_ops *ops);
void kxfer_device_exit(void);
struct kxfer_device *kxfer_device_attach(struct ib_device *ibdev,
					 struct kxfer_device_user *user);
int kxfer_device_join(struct kxfer_device *dev, struct list_head *list,
		      struct list_head *node);
bool kxfer_device_is_going(struct kxfer_device *dev);
void kxfer_device_leave(struct kxfer_device *dev, struct list_head *node);
void kxfer_device_put(struct kxfer_device *dev);
struct kxfer_device *kxfer_device_next(u64 last);
int kxfer_device_map_mr(struct ib_mr *mr, struct scatterlist *sg, u32 nents);
int kxfer_device_map(struct ib_device *ibdev, void *memory, size_t bytes,
		     enum dma_data_direction direction, u64 *dma);
unsigned int kxfer_device_count(void);
u32 kxfer_device_info(u64 *cursor, void *records, u32 nr);

#endif /* KXFER_DEVICE_H */

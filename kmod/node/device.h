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
 * Most payload of one SGE that siw copies into the header of a packet (MAX_HDR_INLINE of
 * siw_qp_tx.c). If such payload crosses a page of an MR, siw_try_1seg() of 6.1 to 7.2 takes
 * `bytes - (PAGE_SIZE - off)`, the length of the second part, for the length of the part in
 * the first page. It then sends wrong bytes, some of which may not belong to the MR.
 */
#define KXFER_SIW_INLINE_BYTES	32

struct kxfer_device;
struct kxfer_info_device;
struct net;

/**
 * struct kxfer_device_user - a link on a device
 * @node: entry of kxfer_device.links
 * @gone: the device is being removed: leave it soon; called with devices_lock held
 */
struct kxfer_device_user {
	struct list_head node;
	void (*gone)(struct kxfer_device_user *user);
};

/**
 * struct kxfer_device_ops - notifications of changes of devices
 * @added: a device was added; may sleep
 * @gids_changed: addresses of a device have changed; any context
 * @renamed: a device has another name now; may sleep
 * @removed: the device must accept no more connections; may sleep
 */
struct kxfer_device_ops {
	void (*added)(void);
	void (*gids_changed)(void);
	void (*renamed)(const struct kxfer_device *dev, const char *name);
	void (*removed)(struct ib_device *ibdev);
};

/* Page of a registration of huge pages. */
#define KXFER_LARGE_PAGE	SZ_2M

/**
 * struct kxfer_device - what kxfer keeps of one ib_device
 * @ref: held by links, mappings and charges; the ib_device itself is valid only
 *	until the remove callback returns; by then these lists are empty
 * @rcu: frees the memory of the device
 * @id: id of the device; grows with every device added
 * @events: handler of GID changes
 * @ibdev: the device
 * @node: entry of the list of devices
 * @removing: set once, under devices_lock; no link, mapping or charge joins afterwards
 * @links: links with objects on the device: struct kxfer_device_user
 * @mappings: regions mapped for the device, by kxfer_mapping.dev_node
 * @charges: charges of sessions for their objects on the device; see charge.c
 * @wait: woken when a list becomes shorter, or the last user of a mapping is gone
 * @max_fast_reg_pages: most pages of one of our registrations; the device may take more
 * @read_limits: limits of our READs
 * @write_limits: limits of our WRITEs
 * @max_msg_bytes: longest RDMA message that all ports of the device take
 * @large_pages: a registration may have pages of KXFER_LARGE_PAGE bytes
 * @iwarp: READ sinks need a remotely writable STag; WRITEs need a placement READ
 * @in_place: the device accesses memory itself, never a copy in a bounce buffer
 * @atomic: the device issues and serves atomics
 */
struct kxfer_device {
	struct kref ref;
	struct rcu_head rcu;
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
	bool large_pages;
	bool iwarp;
	bool in_place;
	bool atomic;
};

/* @op: an operation that moves bytes */
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
int kxfer_device_map_mr(struct ib_mr *mr, struct scatterlist *sg, u32 nents, u32 page_size);
int kxfer_device_map(struct ib_device *ibdev, void *memory, size_t bytes,
		     enum dma_data_direction direction, u64 *dma);
unsigned int kxfer_device_count(void);
u32 kxfer_device_info(const struct net *net, u64 *cursor, void *records, u32 nr);

#endif /* KXFER_DEVICE_H */

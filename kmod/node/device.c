// SPDX-License-Identifier: GPL-2.0
/*
 * Devices: ib_client add and remove.
 *
 * A kxfer_device exists from add to remove of its ib_device. Links, mappings
 * and charges join it while they own objects of the ib_device, and leave when the
 * last of these objects is destroyed. They may join only as long as the device is not
 * being removed; joining and marking the removal both happen under devices_lock.
 *
 * Removal, as a proof. remove() runs without locks and may sleep.
 *  1. @removing is set: no link, mapping or charge joins any more.
 *  2. Listeners bound to the device are destroyed: no connection comes.
 *  3. Each link is failed with ENODEV. Its teardown drains and destroys the QPs,
 *     ends the jobs, frees registrations, waits for registrations that withdrawals free
 *     (step 5 in link.c), frees the PD, then leaves the list. A link that is still
 *     resolving its address has not joined. It gets DEVICE_REMOVAL from rdma_cm, and is
 *     refused when it tries to join.
 *  4. Each mapping is taken from its region (region.c). Its users were jobs and
 *     exposures, which ended in step 3, and submitters, which let go as soon as they see
 *     that the link is gone. Mappings that are being made or ended leave on their own.
 *  5. Charges of sessions are given back to their cgroups.
 *  6. The lists are empty: no object of the module refers to the ib_device.
 *
 * Lock order: devices_lock, then a link's lock; no other lock under either.
 */
#include "base/log.h"

#include <linux/dma-mapping.h>
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/plan.h"
#include "base/wire.h"
#include "node/charge.h"
#include "node/device.h"
#include "node/mapping.h"

/*
 * Most pages of one registration, even if the device allows more. irdma reports 262,144, but
 * its REG_MR is correct only for lists of up to 512. mlx5 reports 65,536, which takes half a
 * MiB of contiguous memory for each MR. None of our READs, WRITEs and messages needs more
 * pages (KXFER_PIECE_BYTES, KXFER_MESSAGE_LONG_MAX); a longer export has more registrations.
 */
#define MAX_FAST_REG_PAGES	512

static DEFINE_SPINLOCK(devices_lock);
static LIST_HEAD(devices);
static u64 last_device_id;
/* Valid from kxfer_device_init() to kxfer_device_exit(). */
static const struct kxfer_device_ops *device_ops;

static void device_release(struct kref *ref)
{
	/* kxfer_mapping_put() may be about to look at @wait. */
	kfree_rcu(container_of(ref, struct kxfer_device, ref), rcu);
}

/** kxfer_device_put() - drop a reference; any context */
void kxfer_device_put(struct kxfer_device *dev)
{
	kref_put(&dev->ref, device_release);
}

/**
 * kxfer_device_join() - put an object on one of the lists of a device
 * @dev: the device
 * @list: &dev->links, &dev->mappings or &dev->charges
 * @node: node of the object
 *
 * Takes a reference for the object. Any context but hard interrupts.
 * Return: 0, or -ENODEV once the device is being removed.
 */
int kxfer_device_join(struct kxfer_device *dev, struct list_head *list,
		      struct list_head *node)
{
	int ret = -ENODEV;

	spin_lock_bh(&devices_lock);
	if (!dev->removing) {
		kref_get(&dev->ref);
		list_add_tail(node, list);
		ret = 0;
	}
	spin_unlock_bh(&devices_lock);
	return ret;
}

/** kxfer_device_is_going() - is the device being removed? Then none can join it; any context */
bool kxfer_device_is_going(struct kxfer_device *dev)
{
	bool going;

	spin_lock_bh(&devices_lock);
	going = dev->removing;
	spin_unlock_bh(&devices_lock);
	return going;
}

/**
 * kxfer_device_leave() - take an object off its list
 * @dev: the device
 * @node: node of the object, which owns nothing on the ib_device any more
 *
 * Drops the object's reference.
 */
void kxfer_device_leave(struct kxfer_device *dev, struct list_head *node)
{
	spin_lock_bh(&devices_lock);
	list_del_init(node);
	wake_up_all(&dev->wait);
	spin_unlock_bh(&devices_lock);
	kxfer_device_put(dev);
}

/**
 * kxfer_device_attach() - find the device that rdma_cm chose, and join its links
 * @ibdev: device of a cm_id
 * @user: the link; its gone() is called when the device goes
 *
 * Return: the device, or NULL if it is going or never was attached.
 */
struct kxfer_device *kxfer_device_attach(struct ib_device *ibdev,
					 struct kxfer_device_user *user)
{
	struct kxfer_device *dev, *found = NULL;

	spin_lock_bh(&devices_lock);
	list_for_each_entry(dev, &devices, node) {
		if (dev->ibdev == ibdev && !dev->removing) {
			kref_get(&dev->ref);
			list_add_tail(&user->node, &dev->links);
			found = dev;
			break;
		}
	}
	spin_unlock_bh(&devices_lock);
	return found;
}

/** kxfer_device_next() - the device after an id (0: the first), with a reference, or NULL */
struct kxfer_device *kxfer_device_next(u64 last)
{
	struct kxfer_device *dev, *found = NULL;

	spin_lock_bh(&devices_lock);
	list_for_each_entry(dev, &devices, node) {
		if (dev->id > last && !dev->removing) {
			kref_get(&dev->ref);
			found = dev;
			break;
		}
	}
	spin_unlock_bh(&devices_lock);
	return found;
}

/**
 * kxfer_device_map() - map memory of the module for DMA
 * @ibdev: the device
 * @memory: memory from kmalloc()
 * @bytes: length of @memory
 * @direction: direction of the transfers
 * @dma: out: DMA address; 0 on failure
 *
 * May sleep. Undone by ib_dma_unmap_single(). Return: 0 or -EIO.
 */
int kxfer_device_map(struct ib_device *ibdev, void *memory, size_t bytes,
		     enum dma_data_direction direction, u64 *dma)
{
	int ret = kxfer_fault_error(DEVICE_MAP);

	*dma = 0;
	if (ret)
		return ret;
	*dma = ib_dma_map_single(ibdev, memory, bytes, direction);
	if (!ib_dma_mapping_error(ibdev, *dma))
		return 0;
	*dma = 0;
	return -EIO;
}

/**
 * kxfer_device_map_mr() - give an MR its pages, an address and a new key, for its next REG_MR
 * @mr: MR that is not registered, or will be invalidated before the REG_MR
 * @sg: DMA addresses and lengths
 * @nents: entries of @sg
 * @page_size: PAGE_SIZE, or KXFER_LARGE_PAGE if the device has @large_pages. Entries begin and
 *	end on borders of such pages, but for the begin of the first and the end of the last
 *
 * Peers use the address to name the memory; iWARP peers also see that of READ sinks.
 * ib_map_mr_sg() sets it to the DMA address, which with virtual DMA is a kernel address. So
 * it is replaced by the same address for all MRs: the page after page 0. Only the offset in
 * the page stays, because devices need it (rxe, and the border in plan.c). The value does not
 * matter to a device (frwr_map() of xprtrdma), and many MRs may share it: they differ by their
 * keys.
 *
 * Any context. Return: 0; or -EIO, after which the MR can only be deregistered if @page_size is
 * not PAGE_SIZE (rxe of 6.12 loses its pages).
 */
int kxfer_device_map_mr(struct ib_mr *mr, struct scatterlist *sg, u32 nents, u32 page_size)
{
	if (ib_map_mr_sg(mr, sg, nents, NULL, page_size) != nents)
		return -EIO;
	mr->iova = page_size + (mr->iova & (page_size - 1));
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return 0;
}

/** kxfer_device_count() - count the devices attached now */
unsigned int kxfer_device_count(void)
{
	struct kxfer_device *dev;
	unsigned int nr = 0;

	spin_lock_bh(&devices_lock);
	list_for_each_entry(dev, &devices, node)
		nr++;
	spin_unlock_bh(&devices_lock);
	return nr;
}

static u32 count_list(const struct list_head *list)
{
	const struct list_head *p;
	u32 nr = 0;

	list_for_each(p, list)
		nr++;
	return nr;
}

/* A QP issues and serves as many atomics at once as READs, so both limits must allow one. */
static bool has_atomics(struct ib_device *ibdev)
{
	const struct ib_device_attr *attrs = &ibdev->attrs;

	return attrs->atomic_cap != IB_ATOMIC_NONE && attrs->max_qp_init_rd_atom > 0 &&
	       attrs->max_qp_rd_atom > 0;
}

static u32 device_flags(struct ib_device *ibdev)
{
	u32 flags = KXFER_DEVICE_USABLE;

	if (rdma_protocol_iwarp(ibdev, 1))
		flags |= KXFER_DEVICE_IWARP;
	if (rdma_protocol_roce(ibdev, 1))
		flags |= KXFER_DEVICE_ROCE;
	if (rdma_protocol_ib(ibdev, 1))
		flags |= KXFER_DEVICE_IB;
	if (ib_uses_virt_dma(ibdev))
		flags |= KXFER_DEVICE_VIRT_DMA;
	if (has_atomics(ibdev))
		flags |= KXFER_DEVICE_ATOMIC;
	return flags;
}

static void fill_info(struct kxfer_device *dev, struct kxfer_info_device *info)
{
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;

	*info = (struct kxfer_info_device) {
		.id = dev->id,
		.flags = device_flags(dev->ibdev),
		.nr_ports = dev->ibdev->phys_port_cnt,
		.max_send_sge = attrs->max_send_sge,
		.max_sge_rd = attrs->max_sge_rd,
		.max_qp_wr = attrs->max_qp_wr,
		.max_cqe = attrs->max_cqe,
		.max_fast_reg_pages = dev->max_fast_reg_pages,
		.max_qp_rd_atom = attrs->max_qp_rd_atom,
		.max_qp_init_rd_atom = attrs->max_qp_init_rd_atom,
		.nr_comp_vectors = dev->ibdev->num_comp_vectors,
		.max_msg_bytes = dev->max_msg_bytes,
		.nr_links = count_list(&dev->links),
		.nr_mappings = count_list(&dev->mappings),
	};
	strscpy(info->name, dev_name(&dev->ibdev->dev), sizeof(info->name));
}

/**
 * kxfer_device_info() - INFO records of devices; see info.c
 * @net: only devices that may be used there; NULL: all
 * @cursor: id of the last device
 * @records: records
 * @nr: room in @records
 */
u32 kxfer_device_info(const struct net *net, u64 *cursor, void *records, u32 nr)
{
	struct kxfer_info_device *info = records;
	struct kxfer_device *dev;
	u32 n = 0;

	spin_lock_bh(&devices_lock);
	list_for_each_entry(dev, &devices, node) {
		if (n == nr)
			break;
		if (dev->id <= *cursor || dev->removing ||
		    (net && !rdma_dev_access_netns(dev->ibdev, net)))
			continue;
		fill_info(dev, &info[n++]);
		*cursor = dev->id;
	}
	spin_unlock_bh(&devices_lock);
	return n;
}

/* Find the longest message that every port takes; ib_query_port() may sleep. */
static int query_max_msg(struct ib_device *ibdev, u64 *max_bytes)
{
	struct ib_port_attr attr;
	unsigned int port;
	int ret;

	*max_bytes = U32_MAX;
	rdma_for_each_port(ibdev, port) {
		ret = kxfer_try(DEVICE_PORT, ib_query_port(ibdev, port, &attr));
		if (ret)
			return ret;
		if (attr.max_msg_sz)
			*max_bytes = min_t(u64, *max_bytes, attr.max_msg_sz);
	}
	return 0;
}

static bool device_usable(struct ib_device *ibdev)
{
	const struct ib_device_attr *attrs = &ibdev->attrs;

	return ibdev->kverbs_provider &&
	       attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS &&
	       attrs->max_fast_reg_page_list_len > 2 &&
	       attrs->max_send_sge && attrs->max_sge_rd;
}

/** kxfer_device_features() - KXFER_WIRE_FEATURE_* that a link on the device can have */
u32 kxfer_device_features(const struct kxfer_device *dev)
{
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;
	u32 features = KXFER_WIRE_FEATURE_FIRST_KEYS | KXFER_WIRE_FEATURE_RESUME |
		       KXFER_WIRE_FEATURE_VIA;

	/* The passive side READs. */
	if (attrs->max_qp_rd_atom > 0 && attrs->max_qp_init_rd_atom > 0 &&
	    kxfer_device_longest(dev) > KXFER_MESSAGE_MAX)
		features |= KXFER_WIRE_FEATURE_LONG | KXFER_WIRE_FEATURE_WAIT;
	if (!dev->iwarp)
		features |= KXFER_WIRE_FEATURE_EAGER;
	return features;
}

/**
 * kxfer_device_message_pages() - pages of a registration for a long message
 * @dev: the device
 *
 * Not more than a long message can need, even if the device takes more. Return: pages.
 */
u32 kxfer_device_message_pages(const struct kxfer_device *dev)
{
	return min_t(u32, dev->max_fast_reg_pages, KXFER_MESSAGE_LONG_MAX / PAGE_SIZE + 2);
}

/**
 * kxfer_device_sink_pages() - pages of a registration for a READ of a job
 * @dev: an iWARP device
 *
 * Enough for the longest READ, which may begin anywhere in a page. Return: pages.
 */
u32 kxfer_device_sink_pages(const struct kxfer_device *dev)
{
	return DIV_ROUND_UP_ULL(dev->read_limits.max_wr_bytes, PAGE_SIZE) + 1;
}

/**
 * kxfer_device_longest() - longest message that the device can send or receive by READ
 * @dev: the device
 *
 * At either end the message is one registration. It may begin anywhere in a page, and has
 * one page less than the device takes (exposure.c). Return: bytes.
 */
u64 kxfer_device_longest(const struct kxfer_device *dev)
{
	return min3((u64)KXFER_MESSAGE_LONG_MAX, dev->max_msg_bytes,
		    (u64)(kxfer_device_message_pages(dev) - 2) * PAGE_SIZE);
}

/*
 * The DMA API limits how much can be mapped at once only where there may be bounce
 * buffers between memory and the device: with swiotlb=force, in an encrypted guest, or if
 * the device does not reach all memory or is not trusted.
 */
static bool sees_memory_in_place(struct ib_device *ibdev)
{
	return ib_uses_virt_dma(ibdev) ||
	       dma_max_mapping_size(ibdev->dma_device) == SIZE_MAX;
}

/* A registration of large pages may then have MAX_FAST_REG_PAGES of them. */
static bool takes_large_pages(struct ib_device *ibdev)
{
	const struct ib_device_attr *attrs = &ibdev->attrs;

	return attrs->page_size_cap & KXFER_LARGE_PAGE &&
	       attrs->max_mr_size >= (u64)MAX_FAST_REG_PAGES * KXFER_LARGE_PAGE;
}

static void set_limits(struct kxfer_device *dev)
{
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;
	struct kxfer_plan_limits *reads = &dev->read_limits, *writes = &dev->write_limits;

	writes->max_wr_bytes = min_t(u64, dev->max_msg_bytes, KXFER_PIECE_BYTES);
	writes->max_sge = min_t(u32, attrs->max_send_sge, KXFER_PLAN_MAX_SGE);
	*reads = *writes;
	reads->max_sge = min_t(u32, attrs->max_sge_rd, KXFER_PLAN_MAX_SGE);
	if (!dev->iwarp)
		return;
	/* The responder sends the payload of a READ, from its MR. */
	reads->border_bytes = KXFER_SIW_INLINE_BYTES;
	/* The sink of a READ is one registration, unaligned at both ends. */
	reads->max_sge = min_t(u32, KXFER_PLAN_MAX_SGE, dev->max_fast_reg_pages);
	reads->max_wr_bytes = min_t(u64, reads->max_wr_bytes,
				    (u64)(dev->max_fast_reg_pages - 1) * PAGE_SIZE);
}

/* The GIDs of a port have changed: because of an address, or of a bond. */
static void device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	if (event->event == IB_EVENT_GID_CHANGE)
		device_ops->gids_changed();
}

static int add_device(struct ib_device *ibdev)
{
	struct kxfer_device *dev;
	int ret;

	if (!device_usable(ibdev)) {
		kxfer_info("%s: not attached: fast registration is missing",
			   dev_name(&ibdev->dev));
		return -EOPNOTSUPP;
	}
	dev = kxfer_try_alloc(DEVICE, kzalloc_obj(*dev, GFP_KERNEL));
	if (!dev)
		return -ENOMEM;
	ret = query_max_msg(ibdev, &dev->max_msg_bytes);
	if (ret) {
		kfree(dev);
		return ret;
	}
	kref_init(&dev->ref);
	dev->ibdev = ibdev;
	INIT_LIST_HEAD(&dev->links);
	INIT_LIST_HEAD(&dev->mappings);
	INIT_LIST_HEAD(&dev->charges);
	init_waitqueue_head(&dev->wait);
	dev->max_fast_reg_pages = min_t(u32, ibdev->attrs.max_fast_reg_page_list_len,
					MAX_FAST_REG_PAGES);
	dev->iwarp = rdma_protocol_iwarp(ibdev, 1);
	set_limits(dev);
	dev->large_pages = takes_large_pages(ibdev);
	dev->in_place = sees_memory_in_place(ibdev);
	dev->atomic = has_atomics(ibdev);
	if (!dev->in_place)
		kxfer_info("%s: sees memory through bounce buffers: nothing can be exported on it",
			   dev_name(&ibdev->dev));
	ib_set_client_data(ibdev, &kxfer_ib_client, dev);
	spin_lock_bh(&devices_lock);
	dev->id = ++last_device_id;
	list_add_tail(&dev->node, &devices);
	spin_unlock_bh(&devices_lock);
	INIT_IB_EVENT_HANDLER(&dev->events, ibdev, device_event);
	ib_register_event_handler(&dev->events);
	device_ops->added();
	return 0;
}

static bool list_is_drained(struct list_head *list)
{
	bool empty;

	spin_lock_bh(&devices_lock);
	empty = list_empty(list);
	spin_unlock_bh(&devices_lock);
	return empty;
}

static void fail_links(struct kxfer_device *dev)
{
	struct kxfer_device_user *link;

	spin_lock_bh(&devices_lock);
	list_for_each_entry(link, &dev->links, node)
		link->gone(link);
	spin_unlock_bh(&devices_lock);
}

/* The steps are those of the proof at the head of this file. */
static void remove_device(struct ib_device *ibdev, void *client_data)
{
	struct kxfer_device *dev = client_data;

	spin_lock_bh(&devices_lock);
	dev->removing = true;
	spin_unlock_bh(&devices_lock);

	kxfer_delay(DEVICE_REMOVE);
	ib_unregister_event_handler(&dev->events);
	device_ops->removed(ibdev);
	fail_links(dev);
	wait_event(dev->wait, list_is_drained(&dev->links));
	kxfer_delay(DEVICE_MAPPINGS);
	kxfer_mapping_remove_all(dev);
	wait_event(dev->wait, list_is_drained(&dev->mappings));
	kxfer_charge_remove_all(dev);

	spin_lock_bh(&devices_lock);
	list_del(&dev->node);
	spin_unlock_bh(&devices_lock);
	kxfer_device_put(dev);
}

/* `rdma dev set NAME name OTHER`. Links copy the name, because they may outlive the device. */
static void rename_device(struct ib_device *ibdev, void *client_data)
{
	device_ops->renamed(client_data, dev_name(&ibdev->dev));
}

struct ib_client kxfer_ib_client = {
	.name = "kxfer",
	.add = add_device,
	.remove = remove_device,
	.rename = rename_device,
};

/** kxfer_device_init() - attach to all present and future RDMA devices; calls @ops for each */
int kxfer_device_init(const struct kxfer_device_ops *ops)
{
	device_ops = ops;
	return kxfer_try(DEVICE_CLIENT, ib_register_client(&kxfer_ib_client));
}

/** kxfer_device_exit() - detach from all devices; may sleep */
void kxfer_device_exit(void)
{
	ib_unregister_client(&kxfer_ib_client);
}

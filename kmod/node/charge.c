// SPDX-License-Identifier: GPL-2.0
/*
 * Charges: objects that a session owns on a device count against its rdma cgroup.
 *
 *	hca_handle	one for each session and device: from the session's first peer or
 *			export on the device to the end of the session
 *	hca_object	for each export and device as many as one link needs registrations
 *			(exposure.c): from EXPORT_ADD to the end of the withdrawal
 *
 * The controller charges only the cgroup of the calling task, but registrations are
 * made in works, when a peer asks. So an export is charged by the call that makes it,
 * for each device that is there. Registrations of the same export on further links are
 * not charged, like the links, which all sessions share. Registrations on a device that
 * is added later are not charged either, nor is the handle of a session whose line reconnects by
 * such a device (job/peer.c), until the session opens a peer on the device. Nor are those by which
 * a device that refuses large pages has more than was expected (registration.c). All are bounded
 * by the caps on links. (The memory of links is charged to memory cgroups: kxfer_link_alloc().) QPs
 * belong to links; no session has a QP of its own.
 *
 * A charge ends with its owner or with its device. The removal of a device ends all its
 * charges before the device leaves the controller. Both happen under charges_mutex, so a
 * charge ends exactly once.
 *
 * Context: all may sleep. Lock order: session lock, charges_mutex, devices_lock.
 */
#include "base/log.h"

#include <linux/cgroup_rdma.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/stats.h"
#include "node/charge.h"
#include "node/device.h"

#define MOVES_MAX	3	/* tries of a charge while the task changes cgroups */

/**
 * struct charge - units of one resource of one device
 * @node: entry of the owner's list
 * @dev: the device; a reference
 * @dev_node: entry of kxfer_device.charges
 * @cgroup: cgroup that is charged; NULL: none yet
 * @resource: resource that is charged
 * @nr: units charged
 */
struct charge {
	struct list_head node;
	struct kxfer_device *dev;
	struct list_head dev_node;
	struct rdma_cgroup *cgroup;
	enum rdmacg_resource_type resource;
	u32 nr;
};

static DEFINE_MUTEX(charges_mutex);

static void uncharge(struct charge *charge)
{
	struct rdmacg_device *device = &charge->dev->ibdev->cg_device;

	for (; charge->nr; charge->nr--) {
		rdmacg_uncharge(charge->cgroup, device, charge->resource);
		cond_resched();
	}
	charge->cgroup = NULL;
}

/* Charge all units, or none. Return: 0, -EDQUOT, -ENOMEM, -EINTR; 1: the task has moved. */
static int try_charge(struct charge *charge, u32 nr)
{
	struct rdmacg_device *device = &charge->dev->ibdev->cg_device;
	struct rdma_cgroup *cgroup;
	int ret = 0;

	while (!ret && charge->nr < nr) {
		ret = kxfer_try(CHARGE_LIMIT,
				rdmacg_try_charge(&cgroup, device, charge->resource));
		if (!ret && charge->nr && cgroup != charge->cgroup) {
			rdmacg_uncharge(cgroup, device, charge->resource);
			ret = 1;
		} else if (!ret) {
			charge->cgroup = cgroup;
			charge->nr++;
			cond_resched();
		}
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
	}
	if (ret)
		uncharge(charge);
	return ret == -EAGAIN ? -EDQUOT : ret;
}

/* Called with charges_mutex held. */
static void end(struct charge *charge)
{
	uncharge(charge);
	list_del(&charge->node);
	kxfer_device_leave(charge->dev, &charge->dev_node);
	kfree(charge);
	kxfer_stat_dec(KXFER_STAT_LIVE_CHARGES);
}

/* Called with charges_mutex held, so that the device stays until this returns. */
static int add(struct list_head *charges, struct kxfer_device *dev,
	       enum rdmacg_resource_type resource, u32 nr)
{
	struct charge *charge;
	int ret, moves = 0;

	charge = kxfer_try_alloc(CHARGE, kzalloc_obj(*charge, GFP_KERNEL_ACCOUNT));
	if (!charge)
		return -ENOMEM;
	charge->dev = dev;
	charge->resource = resource;
	ret = kxfer_device_join(dev, &dev->charges, &charge->dev_node);
	if (ret) {
		kfree(charge);
		return ret;
	}
	list_add_tail(&charge->node, charges);
	kxfer_stat_inc(KXFER_STAT_LIVE_CHARGES);
	do {
		ret = try_charge(charge, nr);
	} while (ret == 1 && ++moves < MOVES_MAX);
	if (ret)
		end(charge);
	return ret == 1 ? -EDQUOT : ret;
}

/* Called with charges_mutex held. */
static int add_handle(struct list_head *charges, struct kxfer_device *dev)
{
	struct charge *charge;

	list_for_each_entry(charge, charges, node)
		if (charge->dev == dev)
			return 0;
	return add(charges, dev, RDMACG_RESOURCE_HCA_HANDLE, 1);
}

/**
 * kxfer_charge_handle() - charge a session for its use of a device
 * @charges: charges of the session that makes the call
 * @dev: the device; the caller has a reference
 *
 * Return: 0, -EDQUOT (limit of the cgroup), -ENOMEM, -EINTR, -ENODEV.
 */
int kxfer_charge_handle(struct list_head *charges, struct kxfer_device *dev)
{
	int ret;

	mutex_lock(&charges_mutex);
	ret = add_handle(charges, dev);
	mutex_unlock(&charges_mutex);
	return ret;
}

/**
 * kxfer_charge_objects() - charge a session for objects on a device
 * @session: charges of the session that makes the call; gets the handle of the device
 * @owner: charges of the owner of the objects
 * @dev: the device; the caller has a reference
 * @nr: number of objects
 *
 * Return: 0, -EDQUOT (limit of the cgroup), -ENOMEM, -EINTR, -ENODEV.
 */
int kxfer_charge_objects(struct list_head *session, struct list_head *owner,
			 struct kxfer_device *dev, u32 nr)
{
	int ret;

	mutex_lock(&charges_mutex);
	ret = add_handle(session, dev) ?: add(owner, dev, RDMACG_RESOURCE_HCA_OBJECT, nr);
	mutex_unlock(&charges_mutex);
	return ret;
}

/** kxfer_charge_drop() - end the charges of a session or an export */
void kxfer_charge_drop(struct list_head *charges)
{
	struct charge *charge, *next;

	mutex_lock(&charges_mutex);
	list_for_each_entry_safe(charge, next, charges, node)
		end(charge);
	mutex_unlock(&charges_mutex);
}

/** kxfer_charge_remove_all() - end the charges on a device being removed; none joins it */
void kxfer_charge_remove_all(struct kxfer_device *dev)
{
	struct charge *charge, *next;

	mutex_lock(&charges_mutex);
	list_for_each_entry_safe(charge, next, &dev->charges, dev_node)
		end(charge);
	mutex_unlock(&charges_mutex);
}

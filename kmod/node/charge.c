// SPDX-License-Identifier: GPL-2.0
/*
 * Charges: what a session owns on a device counts against its rdma cgroup.
 *
 *	hca_handle	one for a session and device: from its first peer or export
 *			there to its end
 *	hca_object	as many for an export and device as a link needs registrations
 *			for it (exposure.c): from EXPORT_ADD to the end of its withdrawal
 *
 * The controller charges the cgroup of the calling task and no other, while
 * registrations are made in works, when a peer asks. So an export is charged by the
 * call that makes it, for each device that is there. What the same export takes on
 * further links is charged to nobody, like the links, which all sessions share; nor
 * is it on a device that comes later. Both are bounded by the caps on links. (The memory
 * of links is charged, to memory cgroups: kxfer_link_alloc().) QPs
 * belong to links; no session has one of its own.
 *
 * A charge ends with its owner or with its device, whose removal ends all before
 * the device leaves the controller: both under charges_mutex, so exactly once.
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

#define MOVES_MAX	3	/* a task that changes cgroup in mid-charge: begin anew */

/**
 * struct charge - units of one resource of one device
 * @node: in its owner's list
 * @dev: the device; a reference
 * @dev_node: in kxfer_device.charges
 * @cgroup: charged; NULL: nothing yet
 * @resource: which
 * @nr: units
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

/* All units, or none. Return: 0, -EDQUOT, -ENOMEM, -EINTR; 1: the task has moved. */
static int try_charge(struct charge *charge, u32 nr)
{
	struct rdmacg_device *device = &charge->dev->ibdev->cg_device;
	struct rdma_cgroup *cgroup;
	int ret = 0;

	while (!ret && charge->nr < nr) {
		ret = kxfer_fault_error(CHARGE_LIMIT) ?:
		      rdmacg_try_charge(&cgroup, device, charge->resource);
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

/* Called with charges_mutex held: the device stays until this is over. */
static int add(struct list_head *charges, struct kxfer_device *dev,
	       enum rdmacg_resource_type resource, u32 nr)
{
	struct charge *charge;
	int ret, moves = 0;

	charge = kxfer_fault(CHARGE) ? NULL : kzalloc(sizeof(*charge), GFP_KERNEL_ACCOUNT);
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
 * kxfer_charge_handle() - a session uses a device
 * @charges: of the session that makes the call
 * @dev: the caller has a reference
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
 * kxfer_charge_objects() - a session makes objects on a device
 * @session: charges of the session that makes the call; the device becomes one of them
 * @owner: charges of what the objects belong to
 * @dev: the caller has a reference
 * @nr: objects
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

/** kxfer_charge_remove_all() - end those on a device that is being removed; none joins */
void kxfer_charge_remove_all(struct kxfer_device *dev)
{
	struct charge *charge, *next;

	mutex_lock(&charges_mutex);
	list_for_each_entry_safe(charge, next, &dev->charges, dev_node)
		end(charge);
	mutex_unlock(&charges_mutex);
}

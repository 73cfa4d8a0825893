/* SPDX-License-Identifier: GPL-2.0 */
/* Charges of sessions to the rdma cgroup for their objects on devices. See charge.c. */
#ifndef KXFER_CHARGE_H
#define KXFER_CHARGE_H

#include <linux/list.h>

struct kxfer_device;

#ifdef CONFIG_CGROUP_RDMA

int kxfer_charge_handle(struct list_head *charges, struct kxfer_device *dev);
int kxfer_charge_objects(struct list_head *session, struct list_head *owner,
			 struct kxfer_device *dev, u32 nr);
void kxfer_charge_drop(struct list_head *charges);
void kxfer_charge_remove_all(struct kxfer_device *dev);

#else

static inline int kxfer_charge_handle(struct list_head *charges, struct kxfer_device *dev)
{
	return 0;
}

static inline int kxfer_charge_objects(struct list_head *session, struct list_head *owner,
				       struct kxfer_device *dev, u32 nr)
{
	return 0;
}

static inline void kxfer_charge_drop(struct list_head *charges)
{
}

static inline void kxfer_charge_remove_all(struct kxfer_device *dev)
{
}

#endif /* CONFIG_CGROUP_RDMA */

#endif /* KXFER_CHARGE_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* A bus between memory and a soft RDMA device, for tests. See bus.c. */
#ifndef KXFER_TEST_BUS_H
#define KXFER_TEST_BUS_H

#include <linux/types.h>

#define BUS_CLAIMED_PAGES	262144	/* claimed limit of a registration */
#define BUS_SENSIBLE_PAGES	1024	/* a longer registration is a breach */

struct device;
struct ib_device;
struct page;

struct device *bus_attach(struct ib_device *ibdev);
void bus_detach(struct ib_device *ibdev);
void *bus_to_virt(struct ib_device *ibdev, u64 addr, size_t bytes, bool write);
struct page *bus_to_page(struct ib_device *ibdev, u64 addr);
void bus_leave_to_user(struct ib_device *ibdev, u64 addr);
void bus_complain(const char *what);
int bus_init(void);
void bus_exit(void);

#endif /* KXFER_TEST_BUS_H */

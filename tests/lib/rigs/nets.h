/* SPDX-License-Identifier: MIT */
/*
 * Nets: two network namespaces that are joined by a veth pair, with an RDMA device at each end.
 *
 * The test stays in the namespace that it began in. nets_open() opens a session in one of the
 * two: sessions belong to the namespace of their opener, wherever they are used. The two
 * namespaces live until nets_remove(), and as long as sessions or links of theirs do.
 */
#ifndef KXFER_TEST_NETS_H
#define KXFER_TEST_NETS_H

#include <stdbool.h>

#define NETS_KEY	"kt-netns"	/* a listener there needs one; nets_make() adds it */
#define NETS_ADDRESS_0	"10.99.0.1"
#define NETS_ADDRESS_1	"10.99.0.2"
#define NETS_DEVICE_0	"netns0"
#define NETS_DEVICE_1	"netns1"
#define NETS_NETDEV_0	"vnets0"
#define NETS_NETDEV_1	"vnets1"
#define NETS_GONE_MS	30000	/* until a namespace that nothing holds has gone with its devices */

/**
 * struct nets - two network namespaces
 * @home: file of the test's own
 * @sides: files of the two
 */
struct nets {
	int home;
	int sides[2];
};

bool nets_carry(void);
int nets_make(struct nets *nets);
int nets_enter(const struct nets *nets, int side);
int nets_leave(const struct nets *nets);
int nets_open(const struct nets *nets, int side);
int nets_run(const struct nets *nets, int side, const char *command);
bool nets_has_device(int side);
void nets_let_go(struct nets *nets);
bool nets_remove(struct nets *nets);

#endif /* KXFER_TEST_NETS_H */

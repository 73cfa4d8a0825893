// SPDX-License-Identifier: GPL-2.0
/*
 * A listener that is bound to an address follows it: from one interface to another, through the
 * failover of a bond, and back after a time on no interface at all. INFO shows its current
 * device, and connections to the address reach it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define PORT		(KXFER_PORT + 7)
#define FOLLOW_MS	5000	/* the GID's work and 100 ms of the module; a retry is every 2 s */

FIXTURE(address)
{
	struct baseline baseline;
	char device[2][32];
	uint64_t listener;
	int fd;
};

FIXTURE_VARIANT(address)
{
	const char *address;
	const char *prefix;
	const char *options;
};

FIXTURE_VARIANT_ADD(address, ipv4) { .address = "10.88.0.1", .prefix = "24", .options = "" };
FIXTURE_VARIANT_ADD(address, ipv6) { .address = "fd88::1", .prefix = "64", .options = "nodad" };

static int make_device(const char *device, const char *netdev)
{
	return baseline_command("ip link add %s mtu 9000 type dummy && ip link set %s up && "
				"rdma link add %s type %s netdev %s", netdev, netdev, device,
				kx_provider(), netdev);
}

FIXTURE_SETUP(address)
{
	int i;

	if (geteuid() || (strcmp(kx_provider(), "rxe") && strcmp(kx_provider(), "siw")))
		SKIP(return, "needs root and software RDMA devices to make");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	for (i = 0; i < 2; i++)
		snprintf(self->device[i], sizeof(self->device[i]), "%s%d", kx_provider(), i + 1);
	ASSERT_EQ(0, make_device(self->device[0], "dummy1"));
	ASSERT_EQ(0, make_device(self->device[1], "dummy2"));
}

FIXTURE_TEARDOWN(address)
{
	if (!self->device[0][0])
		return;
	if (self->listener)
		EXPECT_EQ(0, kx_listen_del(self->fd, self->listener));
	baseline_command("rdma link del %s; rdma link del %s; ip link del dummy1; "
			 "ip link del dummy2; ip link del bond1 2>/dev/null || true",
			 self->device[0], self->device[1]);
	EXPECT_EQ(NULL, baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS));
	close(self->fd);
}

/* The device that the listener is bound to; "" while it is bound to none. */
static const char *bound_to(const struct _test_data_address *self)
{
	static struct kxfer_info_listener listener;
	uint64_t cursor = self->listener - 1;

	if (kx_info(self->fd, KXFER_INFO_LISTENERS, &listener, sizeof(listener), 1,
		    &cursor) != 1 || listener.id != self->listener)
		return "no listener";
	return listener.active ? (const char *)listener.device : "";
}

static bool follows(const struct _test_data_address *self, const char *device)
{
	return kx_wait_until(!strcmp(bound_to(self), device), FOLLOW_MS);
}

/* A new session connects, so that its link ends with it. */
static int connect_there(const char *address)
{
	uint32_t peer;
	int fd = kx_open(), ret;

	if (fd < 0)
		return fd;
	ret = kx_peer_open(fd, kx_addr(address, PORT), &peer);
	close(fd);
	return ret;
}

#define EXPECT_REACHED(device_) do {						\
	EXPECT_TRUE(follows(self, device_))					\
		TH_LOG("bound to '%s', not to '%s'", bound_to(self), device_);	\
	EXPECT_EQ(0, connect_there(variant->address));				\
} while (0)

TEST_F_TIMEOUT(address, moves_to_another_interface, 90)
{
	int i, from, to;

	ASSERT_EQ(0, baseline_command("ip addr add %s/%s dev dummy1 %s", variant->address,
				      variant->prefix, variant->options));
	ASSERT_TRUE(kx_wait_until(!kx_listen_add(self->fd, kx_addr(variant->address, PORT), 0,
						 &self->listener), FOLLOW_MS));
	EXPECT_REACHED(self->device[0]);
	for (i = 0; i < 3; i++) {
		from = i % 2;
		to = !from;
		ASSERT_EQ(0, baseline_command("ip addr del %s/%s dev dummy%d && "
					      "ip addr add %s/%s dev dummy%d %s",
					      variant->address, variant->prefix, from + 1,
					      variant->address, variant->prefix, to + 1,
					      variant->options));
		EXPECT_REACHED(self->device[to]);
	}
}

TEST_F_TIMEOUT(address, goes_and_comes_back, 90)
{
	ASSERT_EQ(0, baseline_command("ip addr add %s/%s dev dummy1 %s", variant->address,
				      variant->prefix, variant->options));
	ASSERT_TRUE(kx_wait_until(!kx_listen_add(self->fd, kx_addr(variant->address, PORT), 0,
						 &self->listener), FOLLOW_MS));
	ASSERT_EQ(0, baseline_command("ip addr del %s/%s dev dummy1", variant->address,
				      variant->prefix));
	EXPECT_TRUE(follows(self, ""));
	ASSERT_EQ(0, baseline_command("ip addr add %s/%s dev dummy1 %s", variant->address,
				      variant->prefix, variant->options));
	EXPECT_REACHED(self->device[0]);
}

/* The failover of a bond; its MAC address follows the active interface, or stays. */
static void fail_over(struct __test_metadata *_metadata, struct _test_data_address *self,
		      const struct _fixture_variant_address *variant, const char *fail_over_mac)
{
	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "GIDs of siw are its interface's and do not follow a bond");
	if (baseline_command("modprobe bonding max_bonds=0 2>/dev/null && ip link add bond1 "
			     "type bond mode active-backup miimon 50 fail_over_mac %s",
			     fail_over_mac))
		SKIP(return, "this kernel has no bonding");
	ASSERT_EQ(0, baseline_command("ip link set dummy1 down && ip link set dummy2 down && "
				      "ip link set dummy1 master bond1 && "
				      "ip link set dummy2 master bond1 && "
				      "ip link set bond1 mtu 9000 up && "
				      "ip link set bond1 type bond active_slave dummy1 && "
				      "ip addr add %s/%s dev bond1 %s", variant->address,
				      variant->prefix, variant->options));
	ASSERT_TRUE(kx_wait_until(!kx_listen_add(self->fd, kx_addr(variant->address, PORT), 0,
						 &self->listener), FOLLOW_MS));
	EXPECT_REACHED(self->device[0]);
	ASSERT_EQ(0, baseline_command("ip link set bond1 type bond active_slave dummy2"));
	EXPECT_REACHED(self->device[1]);
	ASSERT_EQ(0, baseline_command("ip link set bond1 type bond active_slave dummy1"));
	EXPECT_REACHED(self->device[0]);
}

TEST_F_TIMEOUT(address, fails_over_with_its_mac, 90)
{
	fail_over(_metadata, self, variant, "active");
}

TEST_F_TIMEOUT(address, fails_over_and_keeps_its_mac, 90)
{
	fail_over(_metadata, self, variant, "none");
}

TEST_HARNESS_MAIN

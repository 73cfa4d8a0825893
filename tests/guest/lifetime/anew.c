// SPDX-License-Identifier: GPL-2.0
/*
 * Links between the same two addresses, made and broken one after the other, while other programs
 * have a fourth of the 359 reserved ports from which control connections come. iWARP takes its
 * ports from TCP, which refuses those; and for a minute that of an ended connection.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <string.h>
#include <unistd.h>

#include "harness/fault.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define PORT_MIN	665	/* kmod/link/cm.c */
#define PORT_MAX	1023
#define NR_PORTS	((PORT_MAX - PORT_MIN) / 4 + 1)
#define NR_LINKS	20
#define ENDED_MS	30000

FIXTURE(anew)
{
	struct rig rig;
	int fd;
	int ports[NR_PORTS];
	int nr_taken;
};

/* Return: a socket that listens on a port of kx_address(), or -1: another program has it. */
static int take_port(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, kx_address(), &at.sin_addr);
	if (fd < 0 || (!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1)))
		return fd;
	close(fd);
	return -1;
}

FIXTURE_SETUP(anew)
{
	struct rig_options options = { .length = 65536 };

	int i;

	for (i = 0; i < NR_PORTS; i++) {
		self->ports[i] = take_port(PORT_MIN + 4 * i);
		self->nr_taken += self->ports[i] >= 0;
	}
	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	if (strcmp(kx_provider(), "siw"))
		SKIP(return, "needs iWARP: no other connection takes ports of TCP");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(anew)
{
	int i;

	fault_reset();
	rig_close(&self->rig);
	close(self->fd);
	for (i = 0; i < NR_PORTS; i++)
		close(self->ports[i]);
}

/* A SEND that fails breaks the link. */
static void break_link(struct rig *rig)
{
	struct kxfer_peer_export export;
	uint64_t cursor = 0;

	fault_arm("LANE_POST_SEND", 1);
	kx_peer_list(rig->client, rig->peer, &export, 1, &cursor);
	fault_arm("LANE_POST_SEND", 0);
}

/* Without other tries all 20 would be made in one of 300 runs; with them, one fails in 10,000. */
TEST_F_TIMEOUT(anew, each_of_many_links_can_be_made, 120)
{
	int i;

	/* The rest are those of connections that programs before this one have ended. */
	ASSERT_LE(NR_PORTS / 2, self->nr_taken);
	for (i = 0; i < NR_LINKS; i++) {
		break_link(&self->rig);
		close(self->rig.client);
		buffer_free(&self->rig.here);
		ASSERT_TRUE(kx_wait_until(!kx_counter(self->fd, "live_links"), ENDED_MS));
		ASSERT_EQ(0, rig_open_client(&self->rig)) {
			TH_LOG("link %d", i);
		}
	}
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_WRITE, 0, 0, 65536));
}

TEST_HARNESS_MAIN

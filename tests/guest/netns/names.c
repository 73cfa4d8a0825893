// SPDX-License-Identifier: GPL-2.0
/*
 * What sessions of two network namespaces have apart, without a wire between them: names,
 * addresses, lists, and what is refused outside the first namespace. Runs on all kernels.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "rigs/nets.h"

#define PAGE	4096UL
#define PORT	7671
#define GONE_MS	10000

FIXTURE(names)
{
	int home;		/* session in the test's namespace, the first one */
	int inside;		/* session in another one */
	int namespace;		/* file of the other one */
	int back;		/* file of the test's */
	uint32_t here;		/* region of @home */
	uint32_t there;		/* region of @inside */
	uint64_t listener;
	uint32_t id;
	uint8_t *memory;
};

static const char *const keys[] = { NETS_KEY, NULL };

FIXTURE_SETUP(names)
{
	self->home = -1;
	self->inside = -1;
	if (geteuid())
		SKIP(return, "needs root");
	self->back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	self->home = kx_open();
	ASSERT_EQ(0, kx_key_add(NETS_KEY, 1, 32));
	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	self->namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	self->inside = kx_open();
	ASSERT_EQ(0, setns(self->back, CLONE_NEWNET));
	ASSERT_LE(0, self->home);
	ASSERT_LE(0, self->inside);
	self->memory = kx_alloc(2 * PAGE);
	ASSERT_NE(NULL, self->memory);
	test_cmd_region_add(self->home, self->memory, PAGE, KXFER_REGION_F_WRITE, &self->here);
	test_cmd_region_add(self->inside, self->memory + PAGE, PAGE, KXFER_REGION_F_WRITE,
			    &self->there);
}

FIXTURE_TEARDOWN(names)
{
	if (self->home < 0)
		return;
	close(self->home);
	close(self->inside);
	close(self->namespace);
	close(self->back);
	kx_key_del(NETS_KEY);
}

TEST_F(names, are_reported_as_a_feature)
{
	struct kxfer_query query;

	test_cmd_query(self->home, &query);
	EXPECT_TRUE(query.features & KXFER_FEATURE_NETNS);
}

/* ---- names and addresses ---- */

TEST_F(names, of_exports_are_taken_in_one_namespace_only)
{
	test_cmd_export_add(self->home, self->here, 0, PAGE, KXFER_RIGHT_READ, "same", &self->id);
	test_cmd_export_add(self->inside, self->there, 0, PAGE, KXFER_RIGHT_READ, "same",
			    &self->id);
	test_err_export_add(EEXIST, self->home, self->here, 0, PAGE, KXFER_RIGHT_READ, "same",
			    &self->id);
	EXPECT_EQ(-EEXIST, kx_mailbox_add(self->inside, "same", 1, 1, &self->id));
	/* The one that is left still takes the name. */
	test_cmd_export_del(self->inside, self->id);
	test_err_export_add(EEXIST, self->home, self->here, 0, PAGE, KXFER_RIGHT_READ, "same",
			    &self->id);
}

/* A wildcard address needs no interface. */
TEST_F(names, of_listeners_are_taken_in_one_namespace_only)
{
	struct kxfer_addr addr = kx_addr("0.0.0.0", PORT);
	uint64_t other;

	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "siw listens in the namespace of the calling thread");
	test_cmd_listen_add(self->home, addr, 0, &self->listener);
	ASSERT_EQ(0, kx_listen_add_keys(self->inside, addr, keys, &other));
	EXPECT_EQ(-EADDRINUSE, kx_listen_add_keys(self->inside, addr, keys, &other));
	test_err_listen_add(EADDRINUSE, self->home, addr, 0, &other);
	test_cmd_listen_del(self->inside, other);
	test_err_listen_add(EADDRINUSE, self->home, addr, 0, &other);
}

/* Addresses belong to namespaces, too: this one is at home. */
TEST_F(names, of_addresses_are_those_of_the_session)
{
	struct kxfer_addr addr = kx_addr(kx_address(), PORT);
	uint32_t refusal;

	EXPECT_EQ(-EADDRNOTAVAIL, kx_listen_add_keys(self->inside, addr, keys, &self->listener));
	EXPECT_EQ(0, kx_listen_add_keys(self->home, addr, keys, &self->listener));
	EXPECT_EQ(0, kx_peer_open_key(self->home, addr, NETS_KEY, &self->id, &refusal));
	/* No route, though there is such a link now, of the other namespace. */
	EXPECT_EQ(-EHOSTUNREACH,
		  kx_peer_open_key(self->inside, addr, NETS_KEY, &self->id, &refusal));
}

/* ---- what is refused ---- */

TEST_F(names, without_a_key_do_not_listen)
{
	struct kxfer_addr addr = kx_addr("0.0.0.0", PORT);

	test_err_listen_add(EACCES, self->inside, addr, 0, &self->listener);
	test_err_listen_add(EACCES, self->inside, addr, KXFER_LISTEN_F_ANY_PORT, &self->listener);
	EXPECT_EQ(0, kx_counter(self->home, "live_listeners"));
}

/* Such a listener would hold its namespace for ever. */
TEST_F(names, do_not_listen_without_a_session)
{
	struct kxfer_key_name name = { .name = NETS_KEY };
	struct kxfer_listen_add cmd = {
		.size = sizeof(cmd),
		.flags = KXFER_LISTEN_F_KEEP,
		.addr = kx_addr("0.0.0.0", PORT),
		.keys = (uintptr_t)&name,
		.nr_keys = 1,
	};

	EXPECT_EQ(-EOPNOTSUPP, kx_call(self->inside, KXFER_LISTEN_ADD, &cmd));
	EXPECT_EQ(0, kx_counter(self->home, "live_listeners"));
}

/* Root of a user namespace has CAP_NET_ADMIN there, and nothing outside. */
TEST_F(names, do_not_listen_without_the_capability)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (kx_become_tester() || unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(KSFT_SKIP);
		_exit(kx_listen_add_keys(self->inside, kx_addr("0.0.0.0", PORT), keys,
					 &self->listener) != -EPERM);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == KSFT_SKIP)
		SKIP(return, "no user namespaces");
	EXPECT_EQ(0, status);
}

TEST_F(names, do_not_end_listeners_of_others)
{
	test_cmd_listen_add(self->home, kx_addr(kx_address(), PORT), 0, &self->listener);
	test_err_listen_del(ENOENT, self->inside, self->listener);
	test_cmd_listen_del(self->home, self->listener);
}

/* ---- lists ---- */

static int count_exports(int fd, const char *name)
{
	struct kxfer_info_export exports[64];
	uint64_t cursor = 0;
	int n, i, nr = 0;

	while ((n = kx_info(fd, KXFER_INFO_EXPORTS, exports, sizeof(*exports), 64, &cursor)) > 0)
		for (i = 0; i < n; i++)
			nr += !strcmp((const char *)exports[i].name, name);
	return n < 0 ? n : nr;
}

/* The caller is root with all capabilities: it is not a matter of rights. */
TEST_F(names, in_lists_are_those_of_one_namespace)
{
	struct kxfer_info_session sessions[64];
	struct kxfer_info_listener listeners[8];
	uint64_t cursor = 0;

	test_cmd_export_add(self->home, self->here, 0, PAGE, KXFER_RIGHT_READ, "of-home",
			    &self->id);
	test_cmd_export_add(self->inside, self->there, 0, PAGE, KXFER_RIGHT_READ, "of-inside",
			    &self->id);
	EXPECT_EQ(1, count_exports(self->home, "of-home"));
	EXPECT_EQ(0, count_exports(self->home, "of-inside"));
	EXPECT_EQ(0, count_exports(self->inside, "of-home"));
	EXPECT_EQ(1, count_exports(self->inside, "of-inside"));
	EXPECT_EQ(1, count_exports(self->inside, KXFER_PING_NAME));
	EXPECT_EQ(1, kx_info(self->inside, KXFER_INFO_SESSIONS, sessions, sizeof(*sessions), 64,
			     &cursor));
	test_cmd_listen_add(self->home, kx_addr(kx_address(), PORT), 0, &self->listener);
	cursor = 0;
	EXPECT_EQ(0, kx_info(self->inside, KXFER_INFO_LISTENERS, listeners, sizeof(*listeners), 8,
			     &cursor));
	EXPECT_EQ(1, kx_info(self->home, KXFER_INFO_LISTENERS, listeners, sizeof(*listeners), 8,
			     &cursor));
}

TEST_F(names, in_lists_of_links_are_those_of_one_namespace)
{
	struct kxfer_info_link links[64];
	struct kxfer_info_lane lanes[64];
	uint64_t cursor = 0;

	test_cmd_listen_add(self->home, kx_addr(kx_address(), PORT), 0, &self->listener);
	test_cmd_peer_open(self->home, kx_addr(kx_address(), PORT), &self->id);
	EXPECT_EQ(0, kx_info(self->inside, KXFER_INFO_LINKS, links, sizeof(*links), 64, &cursor));
	EXPECT_EQ(0, kx_info(self->inside, KXFER_INFO_LANES, lanes, sizeof(*lanes), 64, &cursor));
	EXPECT_LE(2, kx_info(self->home, KXFER_INFO_LINKS, links, sizeof(*links), 64, &cursor));
	cursor = 0;
	EXPECT_LE(4, kx_info(self->home, KXFER_INFO_LANES, lanes, sizeof(*lanes), 64, &cursor));
}

/* ---- files that are handed over ---- */

/* As a node agent hands a file to a container: what it does is done where it was opened. */
TEST_F(names, do_not_move_with_a_file)
{
	uint32_t export_id, peer, target;
	int status;
	pid_t pid;

	test_cmd_listen_add(self->home, kx_addr(kx_address(), PORT), 0, &self->listener);
	memset(self->memory, 0x5a, PAGE);
	test_cmd_export_add(self->home, self->here, 0, PAGE, KXFER_RIGHT_READ, "handed",
			    &export_id);
	pid = fork();
	if (!pid) {
		int fd = kx_open();
		uint8_t *memory = kx_alloc(PAGE);
		uint32_t region;
		bool ok;

		/* All that this process has of the first namespace is the file. */
		ok = fd >= 0 && memory && !setns(self->namespace, CLONE_NEWNET) &&
		     !kx_region_add(fd, memory, PAGE, KXFER_REGION_F_WRITE, &region) &&
		     !kx_peer_open(fd, kx_addr(kx_address(), PORT), &peer) &&
		     !kx_target_open(fd, peer, "handed", KXFER_RIGHT_READ, &target) &&
		     !kx_transfer(fd, KXFER_OP_READ, region, 0, target, 0, PAGE) &&
		     memory[0] == 0x5a && memory[PAGE - 1] == 0x5a;
		_exit(!ok);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, count_exports(self->home, "handed"));
}

/* ---- what a session holds ---- */

static bool has_netdev(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	return !access(path, F_OK);
}

/* The end of a veth pair goes when the namespace of the other one dies. */
TEST_F(names, are_held_by_their_session)
{
	ASSERT_EQ(0, setns(self->namespace, CLONE_NEWNET));
	ASSERT_EQ(0, baseline_command("ip link add vheld1 type veth peer name vheld0 netns 1"));
	ASSERT_EQ(0, setns(self->back, CLONE_NEWNET));
	close(self->namespace);
	self->namespace = -1;
	EXPECT_FALSE(kx_wait_until(!has_netdev("vheld0"), 1000));
	/* A listener and an export do not need more than the session. */
	EXPECT_EQ(0, kx_listen_add_keys(self->inside, kx_addr("0.0.0.0", PORT), keys,
					&self->listener));
	test_cmd_export_add(self->inside, self->there, 0, PAGE, KXFER_RIGHT_READ, "held",
			    &self->id);
	close(self->inside);
	self->inside = -1;
	EXPECT_TRUE(kx_wait_until(!has_netdev("vheld0"), GONE_MS));
	baseline_command("ip link del vheld0 2>/dev/null || true");
}

/* ---- drivers without namespaces ---- */

/*
 * siw, and rxe before 7.2, send from the first namespace whatever they are told: with its
 * addresses they could reach hosts there. On 7.2 with rxe the same is allowed: wire.c.
 */
TEST_F(names, are_refused_on_drivers_that_have_none)
{
	struct kxfer_addr addr = kx_addr("10.98.0.1", PORT);
	struct kxfer_info_link links[4];
	uint64_t cursor = 0;
	uint32_t refusal;

	if (nets_carry())
		SKIP(return, "this driver has namespaces");
	ASSERT_EQ(0, setns(self->namespace, CLONE_NEWNET));
	ASSERT_EQ(0, baseline_command("ip link add dnames type dummy && "
				      "ip addr add 10.98.0.1/24 dev dnames && "
				      "ip link set dnames up && "
				      "rdma link add names0 type %s netdev dnames",
				      kx_provider()));
	ASSERT_EQ(0, setns(self->back, CLONE_NEWNET));
	EXPECT_EQ(-EOPNOTSUPP, kx_listen_add_keys(self->inside, addr, keys, &self->listener));
	EXPECT_EQ(-EOPNOTSUPP, kx_peer_open_key(self->inside, kx_addr("10.98.0.2", PORT),
						NETS_KEY, &self->id, &refusal));
	EXPECT_TRUE(kx_wait_until(!kx_info(self->inside, KXFER_INFO_LINKS, links, sizeof(*links),
					   4, &cursor), GONE_MS));
	EXPECT_EQ(0, baseline_command("rdma link del names0"));
}

TEST_HARNESS_MAIN

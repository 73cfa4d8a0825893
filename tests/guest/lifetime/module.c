// SPDX-License-Identifier: GPL-2.0
/*
 * The module can be removed whenever no file is open: with links up, with kept listeners, right
 * after a load was killed. It is as new when it is loaded again.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/module.h"
#include "kselftest_harness.h"
#include "rigs/load.h"
#include "rigs/rig.h"

#define LENGTH	(1024u * 1024)

FIXTURE(module)
{
	struct rig rig;
};

FIXTURE_SETUP(module)
{
	struct rig_options options = { .length = LENGTH };

	if (!module_available())
		SKIP(return, "needs root and the module file; set KXFER_MODULE to it");
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(module)
{
	rig_close(&self->rig);
	if (access(KX_NODE, F_OK))
		module_insert("");
}

/* The module has only the built-in export, and works. */
static void works_as_new(struct __test_metadata *_metadata, struct rig *rig)
{
	struct rig_options options = { .length = LENGTH };
	const char *wrong;
	struct kx_live live;
	uint32_t i;
	int fd = kx_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kx_live_take(fd, &live));
	for (i = 0; i < live.nr; i++) {
		const char *name = (const char *)live.counters[i].name;
		bool one = !strcmp(name, "live_sessions") || !strcmp(name, "live_regions") ||
			   !strcmp(name, "live_exports");

		EXPECT_EQ(one, live.counters[i].value) {
			TH_LOG("%s", name);
		}
	}
	close(fd);
	ASSERT_EQ(0, rig_open(rig, &options));
	rig_prepare(rig, KXFER_OP_WRITE);
	wrong = rig_try(rig, KXFER_OP_WRITE, 1, 2, 500000);
	if (wrong)
		TH_LOG("%s", wrong);
	EXPECT_EQ(NULL, wrong);
}

TEST_F(module, stays_while_a_file_is_open)
{
	EXPECT_EQ(-EWOULDBLOCK, module_remove());
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, LENGTH));
}

TEST_F_TIMEOUT(module, goes_with_links_up, 60)
{
	uint64_t before;
	int i;

	for (i = 0; i < 5; i++) {
		rig_close(&self->rig);
		before = kx_now_ns();
		ASSERT_EQ(0, module_remove_soon());
		EXPECT_GT(15000, (kx_now_ns() - before) / 1000000);
		EXPECT_NE(0, access(KX_NODE, F_OK));
		ASSERT_EQ(0, module_insert(""));
		works_as_new(_metadata, &self->rig);
	}
}

TEST_F_TIMEOUT(module, goes_with_kept_listeners, 60)
{
	uint64_t listener;
	int fd = kx_open();

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kx_listen_add(fd, kx_addr(kx_address(), KXFER_PORT + 7),
				   KXFER_LISTEN_F_KEEP, &listener));
	ASSERT_EQ(0, kx_listen_add(fd, kx_addr(kx_address6(), KXFER_PORT + 7),
				   KXFER_LISTEN_F_KEEP, &listener));
	ASSERT_EQ(0, kx_peer_open(fd, kx_addr(kx_address(), KXFER_PORT + 7),
				  &self->rig.peer));
	close(fd);
	rig_close(&self->rig);
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	works_as_new(_metadata, &self->rig);
}

TEST_F_TIMEOUT(module, goes_right_after_load_was_killed, 120)
{
	struct load loads[3];
	int round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++)
			ASSERT_EQ(0, load_start(&loads[i], &self->rig, i, 128, 16384));
		/* The server ends first: withdrawals are in progress when the holders die. */
		for (i = 0; i < 3; i++)
			kill(loads[i].pid, SIGKILL);
		rig_close(&self->rig);
		ASSERT_EQ(0, module_remove_soon());
		for (i = 0; i < 3; i++)
			load_end(&loads[i], 0);
		ASSERT_EQ(0, module_insert(""));
		works_as_new(_metadata, &self->rig);
	}
}

TEST_F_TIMEOUT(module, goes_while_somebody_connects, 60)
{
	uint64_t before;
	pid_t child = fork();

	if (!child) {
		uint32_t peer;
		int fd = kx_open();

		close(self->rig.client);
		close(self->rig.server);
		for (;;)
			kx_peer_open(fd, kx_addr("10.77.0.99", KXFER_PORT), &peer);
	}
	kx_sleep_ms(300);
	rig_close(&self->rig);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	before = kx_now_ns();
	ASSERT_EQ(0, module_remove_soon());
	EXPECT_GT(15000, (kx_now_ns() - before) / 1000000);
	ASSERT_EQ(0, module_insert(""));
	works_as_new(_metadata, &self->rig);
}

TEST_HARNESS_MAIN

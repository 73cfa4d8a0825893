// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces that die, 100 times, each under load: the process of one end is killed, or the
 * session of the other closed, while jobs are in flight. Each namespace has to go, with its
 * devices, and leave nothing. Needs a driver that sends from any namespace: rxe from 7.2 on.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "rigs/load.h"
#include "rigs/nets.h"
#include "rigs/rig.h"

#define ROUNDS		100
#define AGAIN_MAX	5	/* rounds that may be made again */
#define LENGTH		(LOAD_SHARES * 256 * 1024)
#define DEPTH		16
#define JOB_BYTES	16384

FIXTURE(dying)
{
	struct baseline baseline;
	int fd;
};

FIXTURE_SETUP(dying)
{
	self->fd = -1;
	if (geteuid() || !nets_carry())
		SKIP(return, "needs root, and rxe of Linux 7.2");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
}

FIXTURE_TEARDOWN(dying)
{
	if (self->fd >= 0)
		close(self->fd);
}

/* How a round ends. */
enum ending {
	CLIENT_KILLED,		/* with its jobs in flight; then the server's session is closed */
	SERVER_CLOSED,		/* under the jobs of the client, which is killed then */
	WIRE_CUT,		/* then both, at once */
	NR_ENDINGS,
};

static void end_round(struct nets *nets, struct rig *rig, struct load *load, enum ending ending)
{
	if (ending == WIRE_CUT)
		nets_run(nets, 0, "ip link del " NETS_NETDEV_0);
	nets_let_go(nets);
	if (ending == CLIENT_KILLED)
		load_end(load, SIGKILL);
	rig_close(rig);
	if (ending != CLIENT_KILLED)
		load_end(load, SIGKILL);
	close(load->pipe);
}

/* What is left of a round that did not come to its end. */
static const char *give_up(struct nets *nets, struct rig *rig, struct load *load)
{
	static char text[64];

	snprintf(text, sizeof(text), "the load ended with %d", load_end(load, SIGKILL));
	close(load->pipe);
	rig_close(rig);
	nets_remove(nets);
	return text;
}

/* Return: NULL, or what went wrong. @again: out: the load did not come up, as on a busy host */
static const char *one_round(enum ending ending, bool *again)
{
	struct nets nets;
	struct rig_options options = { .length = LENGTH, .nets = &nets };
	struct load load;
	struct rig rig;

	if (nets_make(&nets))
		return "the namespaces cannot be made";
	if (rig_open_server(&rig, &options))
		return "the server does not listen";
	*again = load_start(&load, &rig, 0, DEPTH, JOB_BYTES) ||
		 load_wait_round(&load, RIG_WAIT_MS);
	if (*again)
		return give_up(&nets, &rig, &load);
	end_round(&nets, &rig, &load, ending);
	return nets_remove(&nets) ? NULL : "a namespace stays";
}

TEST_F_TIMEOUT(dying, namespaces_leave_nothing, 1400)
{
	const char *wrong = NULL;
	int i = 0, nr_again = 0;
	bool again = false;

	while (i < ROUNDS && (!wrong || (again && nr_again++ < AGAIN_MAX))) {
		wrong = one_round(i % NR_ENDINGS, &again);
		if (wrong)
			TH_LOG("round %d: %s", i, wrong);
		else if (!(++i % 10))
			TH_LOG("%d namespaces have died", 2 * i);
	}
	EXPECT_EQ(ROUNDS, i);
	EXPECT_EQ(NULL, baseline_wait(self->fd, &self->baseline, BASELINE_WAIT_MS));
}

TEST_HARNESS_MAIN

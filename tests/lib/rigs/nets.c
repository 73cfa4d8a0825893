// SPDX-License-Identifier: MIT
/*
 * Nets: two network namespaces and a wire between them; see nets.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "rigs/nets.h"

static const char *const devices[] = { NETS_DEVICE_0, NETS_DEVICE_1 };
static const char *const netdevs[] = { NETS_NETDEV_0, NETS_NETDEV_1 };
static const char *const addresses[] = { NETS_ADDRESS_0, NETS_ADDRESS_1 };

/** nets_carry() - whether the kernel's driver of the provider sends from any namespace */
bool nets_carry(void)
{
	struct utsname name;
	int major, minor;

	if (strcmp(kx_provider(), "rxe") || uname(&name) ||
	    sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return false;
	return major > 7 || (major == 7 && minor >= 2);
}

static int own_namespace(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int fresh_namespace(void)
{
	return unshare(CLONE_NEWNET) ? -errno : own_namespace();
}

/** nets_enter() - move this thread into one of the two. Return: 0 or -errno */
int nets_enter(const struct nets *nets, int side)
{
	return setns(nets->sides[side], CLONE_NEWNET) ? -errno : 0;
}

/** nets_leave() - move this thread back. Return: 0 or -errno */
int nets_leave(const struct nets *nets)
{
	return setns(nets->home, CLONE_NEWNET) ? -errno : 0;
}

/** nets_open() - open a session in one of the two. Return: file or -errno */
int nets_open(const struct nets *nets, int side)
{
	int ret = nets_enter(nets, side), fd;

	if (ret)
		return ret;
	fd = kx_open();
	ret = nets_leave(nets);
	return ret ?: fd;
}

/** nets_run() - run a command of the shell in one of the two. Return: 0 or -errno */
int nets_run(const struct nets *nets, int side, const char *command)
{
	int ret = nets_enter(nets, side), status;

	if (ret)
		return ret;
	status = system(command);
	ret = nets_leave(nets);
	return status ? -EIO : ret;
}

/* iproute2 wants the pid of a process in the namespace that gets the other end. */
static pid_t start_holder(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	_exit(0);
}

static int make_wire(const struct nets *nets, pid_t holder)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link add %s type veth peer name %s netns %d", netdevs[1], netdevs[0],
		 (int)holder);
	return nets_run(nets, 1, command);
}

/* A device that is made after the address has its GID at once. */
static int make_device(const struct nets *nets, int side)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "printf 'addr add %s/24 dev %s\\nlink set %s up\\n' | ip -batch - && "
		 "rdma link add %s type %s netdev %s", addresses[side], netdevs[side],
		 netdevs[side], devices[side], kx_provider(), netdevs[side]);
	return nets_run(nets, side, command);
}

static int make_sides(struct nets *nets)
{
	pid_t holder;
	int ret;

	nets->sides[0] = fresh_namespace();
	if (nets->sides[0] < 0)
		return nets->sides[0];
	holder = start_holder();
	if (holder < 0)
		return -errno;
	nets->sides[1] = fresh_namespace();
	ret = nets->sides[1] < 0 ? nets->sides[1] : make_wire(nets, holder);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	return ret ?: make_device(nets, 0) ?: make_device(nets, 1);
}

/** nets_make() - make both; needs root. Return: 0 or -errno; nets_remove() has to follow */
int nets_make(struct nets *nets)
{
	int ret, back;

	*nets = (struct nets) { .home = own_namespace(), .sides = { -1, -1 } };
	if (nets->home < 0)
		return nets->home;
	ret = make_sides(nets);
	back = nets_leave(nets);
	return ret ?: back ?: kx_key_add(NETS_KEY, 1, 32);
}

/** nets_has_device() - whether the RDMA device of a side is there */
bool nets_has_device(int side)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", devices[side]);
	return !access(path, F_OK);
}

/** nets_let_go() - close the files of the namespaces, which go if nothing else holds them */
void nets_let_go(struct nets *nets)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (nets->sides[i] >= 0)
			close(nets->sides[i]);
		nets->sides[i] = -1;
	}
	if (nets->home >= 0)
		close(nets->home);
	nets->home = -1;
}

/**
 * nets_remove() - let go of both namespaces, and wait until they have died
 *
 * Sessions there are closed already. A device goes with the namespace of its interface.
 * Return: false if one stays.
 */
bool nets_remove(struct nets *nets)
{
	nets_let_go(nets);
	kx_key_del(NETS_KEY);
	return kx_wait_until(!nets_has_device(0) && !nets_has_device(1), NETS_GONE_MS);
}

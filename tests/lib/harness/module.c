// SPDX-License-Identifier: MIT
/*
 * Module: removing and loading kxfer.ko; see module.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "harness/module.h"

static const char *module_file(void)
{
	return getenv("KXFER_MODULE") ?: "/kxfer/kxfer.ko";
}

/** module_available() - whether this process may load the module and has its file */
bool module_available(void)
{
	return !geteuid() && !access(module_file(), R_OK);
}

/** module_remove_engine() - remove kxfer_bench.ko now. Return: 0 or -errno */
int module_remove_engine(void)
{
	int ret = syscall(SYS_delete_module, "kxfer_bench", O_NONBLOCK) ? -errno : 0;

	return ret == -ENOENT ? 0 : ret;
}

/**
 * module_remove() - remove kxfer.ko now, and first kxfer_bench.ko, which is loaded again on demand
 *
 * Return: 0 or -errno
 */
int module_remove(void)
{
	return module_remove_engine() ?:
	       syscall(SYS_delete_module, "kxfer", O_NONBLOCK) ? -errno : 0;
}

/** module_remove_soon() - remove kxfer.ko; killed processes may still have it open */
int module_remove_soon(void)
{
	int ret;

	kx_wait_until((ret = module_remove()) != -EWOULDBLOCK && ret != -EBUSY, 30000);
	return ret;
}

/** module_insert() - load kxfer.ko, and wait for its node. Return: 0 or -errno */
int module_insert(const char *parameters)
{
	int fd = open(module_file(), O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, parameters, 0) ? -errno : 0;
	close(fd);
	/* The node appears a moment later. */
	if (!ret && !kx_wait_until(!access(KX_NODE, R_OK | W_OK), 5000))
		return -ENOENT;
	return ret;
}

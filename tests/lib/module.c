// SPDX-License-Identifier: MIT
/*
 * Module: kxfer.ko taken away and put back; see module.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kxfer_test.h"
#include "module.h"

static const char *module_file(void)
{
	return getenv("KXFER_MODULE") ?: "/kxfer/kxfer.ko";
}

/** module_available() - whether this process may and can load the module */
bool module_available(void)
{
	return !geteuid() && !access(module_file(), R_OK);
}

/** module_remove_engine() - take kxfer_bench.ko away now. Return: 0 or -errno */
int module_remove_engine(void)
{
	int ret = syscall(SYS_delete_module, "kxfer_bench", O_NONBLOCK) ? -errno : 0;

	return ret == -ENOENT ? 0 : ret;
}

/**
 * module_remove() - take it away now, and first kxfer_bench.ko, which comes again by itself
 *
 * Return: 0 or -errno
 */
int module_remove(void)
{
	return module_remove_engine() ?:
	       syscall(SYS_delete_module, "kxfer", O_NONBLOCK) ? -errno : 0;
}

/** module_remove_soon() - the killed may need a moment to let go of their files */
int module_remove_soon(void)
{
	int ret;

	kx_wait_until((ret = module_remove()) != -EWOULDBLOCK && ret != -EBUSY, 30000);
	return ret;
}

/** module_insert() - load it, and wait for its node. Return: 0 or -errno */
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

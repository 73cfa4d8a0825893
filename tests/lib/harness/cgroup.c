// SPDX-License-Identifier: MIT
/*
 * Control groups; see cgroup.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cgroup.h"
#include "harness/kxfer_test.h"

static int read_file(const char *path, const char *file, char *text, size_t room)
{
	char name[256];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%s/%s", path, file);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, room - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	text[n] = 0;
	return 0;
}

/** cgroup_write() - set a value. Return: 0 or -errno */
int cgroup_write(const char *path, const char *file, const char *format, ...)
{
	char name[256], text[128];
	va_list arguments;
	int fd, n, ret = 0;

	va_start(arguments, format);
	n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	snprintf(name, sizeof(name), "%s/%s", path, file);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != n)
		ret = -errno;
	close(fd);
	return ret;
}

/** cgroup_has() - whether this kernel has a controller that this process may use */
bool cgroup_has(const char *controller)
{
	char text[512];

	return !read_file(CGROUP_ROOT, "cgroup.controllers", text, sizeof(text)) &&
	       strstr(text, controller);
}

/** cgroup_create() - make a cgroup with a controller; @path: out: folder. Return: 0 or -errno */
int cgroup_create(char *path, unsigned int room, const char *name, const char *controller)
{
	int ret = cgroup_write(CGROUP_ROOT, "cgroup.subtree_control", "+%s", controller);

	if (ret)
		return ret;
	snprintf(path, room, CGROUP_ROOT "/%s-%d", name, (int)getpid());
	return mkdir(path, 0755) ? -errno : 0;
}

/** cgroup_remove() - remove a cgroup whose processes are ending. Return: 0 or -errno */
int cgroup_remove(const char *path)
{
	int ret = 0;

	kx_wait_until(!(ret = rmdir(path) ? -errno : 0), 5000);
	return ret;
}

/**
 * cgroup_number() - read a value
 * @path: folder of the group
 * @file: name of a file in it
 * @key: text before the number ("kernel ", "hca_object="), or "" for the first number
 *
 * Return: the number; 0 without the key; -1 without the file.
 */
long long cgroup_number(const char *path, const char *file, const char *key)
{
	char text[4096];
	const char *at;

	if (read_file(path, file, text, sizeof(text)))
		return -1;
	for (at = text; (at = strstr(at, key)); at++)
		if (at == text || at[-1] == '\n' || at[-1] == ' ')
			return atoll(at + strlen(key));
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Control groups of version 2, made for a test directly below the root.
 */
#ifndef KXFER_TEST_CGROUP_H
#define KXFER_TEST_CGROUP_H

#include <stdbool.h>

#define CGROUP_ROOT	"/sys/fs/cgroup"

bool cgroup_has(const char *controller);
int cgroup_create(char *path, unsigned int room, const char *name, const char *controller);
int cgroup_remove(const char *path);
int cgroup_write(const char *path, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
long long cgroup_number(const char *path, const char *file, const char *key);

#endif /* KXFER_TEST_CGROUP_H */

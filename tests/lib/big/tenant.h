/* SPDX-License-Identifier: MIT */
/*
 * Tenants: different users of one node. One user takes all it can and holds it. Meanwhile the
 * others must be able to work, and the administrator must be able to remove the device and the
 * module.
 *
 *	tenant		a process of another uid that takes objects, reports how many
 *			it got and why no more, and holds them until it is killed
 *	stage		what all users share: a node open to every user, a listener with
 *			an export, and the counters from before
 */
#ifndef KXFER_TEST_TENANT_H
#define KXFER_TEST_TENANT_H

#include <stdint.h>
#include <sys/types.h>

#include "harness/baseline.h"
#include "rigs/rig.h"

#define TENANT_GREEDY	1000	/* uid `tester` */
#define TENANT_OTHER	1001	/* uid `other` */
#define STAGE_LENGTH	(4u * 1024 * 1024)
#define STAGE_WAIT_MS	10000	/* for another user's transfer, including the connection */

/**
 * struct tenant_report - what a tenant got
 * @nr: number of objects
 * @error: errno of the first refused object
 * @more: number of objects of a second kind
 * @more_error: errno of the first refused object of that kind
 */
struct tenant_report {
	uint32_t nr;
	int error;
	uint32_t more;
	int more_error;
};

/* Takes objects in the tenant's process, which holds them after the return. */
typedef void (*tenant_take_fn)(const struct rig *server, struct tenant_report *report);

struct stage {
	int fd;
	struct rig rig;
	struct baseline baseline;
};

/**
 * struct tenant - a process that has taken objects
 * @pid: process id
 * @report: result of the taking
 */
struct tenant {
	pid_t pid;
	struct tenant_report report;
};

int stage_open(struct stage *stage);
const char *stage_close(struct stage *stage);
const char *stage_works(struct stage *stage);
const char *stage_replug(struct stage *stage);
int stage_limit(const char *parameter, unsigned int value);
int stage_reload(void);

int tenant_start(struct tenant *tenant, const struct rig *server, uid_t uid,
		 const char *cgroup, tenant_take_fn take, uint32_t ms);
int tenant_end(struct tenant *tenant);
int tenant_transfer(const struct rig *server, uid_t uid, uint32_t ms, uint64_t *took_ms);

#endif /* KXFER_TEST_TENANT_H */

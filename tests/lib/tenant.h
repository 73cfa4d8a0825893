/* SPDX-License-Identifier: MIT */
/*
 * Tenants: users of one node beside each other. One takes all it can and holds it;
 * the others must be able to work meanwhile, and the administrator must be able to
 * take the device and the module away.
 *
 *	tenant		a process of another uid that takes something, says how much
 *			it got and why no more, and holds it until it is ended
 *	stage		what all of them use: a node open to everybody, a listener with
 *			an export, and how things were before
 */
#ifndef KXFER_TEST_TENANT_H
#define KXFER_TEST_TENANT_H

#include <stdint.h>
#include <sys/types.h>

#include "baseline.h"
#include "rig.h"

#define TENANT_GREEDY	1000	/* uid `tester` */
#define TENANT_OTHER	1001	/* uid `other` */
#define STAGE_LENGTH	(4u * 1024 * 1024)
#define STAGE_WAIT_MS	10000	/* what another user's transfer may take, connecting too */

/**
 * struct tenant_report - what a tenant has come to
 * @nr: objects that it got
 * @error: errno that ended the taking
 * @more: likewise, of a second kind
 * @more_error: likewise
 */
struct tenant_report {
	uint32_t nr;
	int error;
	uint32_t more;
	int more_error;
};

/* Takes; runs in the tenant, which holds what it took when this returns. */
typedef void (*tenant_take_fn)(const struct rig *server, struct tenant_report *report);

struct stage {
	int fd;
	struct rig rig;
	struct baseline baseline;
};

/**
 * struct tenant - a process that has taken
 * @pid: of it
 * @report: as it was when it had taken
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

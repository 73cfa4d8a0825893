// SPDX-License-Identifier: GPL-2.0
/*
 * kxfer_bench.ko: the calls of linux/kxfer_bench.h, as the engine of kxfer.ko. front/engine.c
 * says when this module can be unloaded. kxfer.ko exports what this module uses in the
 * namespace KXFER.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>

#include <linux/kxfer_bench.h>

#include "base/compat.h"
#include "bench/bench.h"
#include "bench/dedicated.h"
#include "front/call.h"
#include "front/engine.h"

/* A structure belongs to one release and never grows: its minimum is its full size. */
#define CALL(cmd, type, flags, handle) \
	[_IOC_NR(cmd) - KXFER_CMD_ENGINE] = \
		KXFER_CALL_OF(type, sizeof(struct type), flags, handle)

static const struct kxfer_call calls[] = {
	CALL(KXFER_BENCH, kxfer_bench, KXFER_CALL_OUT, kxfer_bench_run),
	CALL(KXFER_DEDICATED_OPEN, kxfer_dedicated_open,
	     KXFER_CALL_OUT | KXFER_CALL_OUT_ON_ERROR, kxfer_dedicated_open),
	CALL(KXFER_DEDICATED_CLOSE, kxfer_id, KXFER_CALL_BY_ID, kxfer_dedicated_close),
	CALL(KXFER_DEDICATED_STATUS, kxfer_dedicated_status, KXFER_CALL_OUT,
	     kxfer_dedicated_status),
};

static const struct kxfer_engine engine = {
	.owner = THIS_MODULE,
	.version = KXFER_VERSION,
	.calls = calls,
	.nr_calls = ARRAY_SIZE(calls),
	.end_session = kxfer_dedicated_end_session,
};

static int __init kxfer_bench_init(void)
{
	return kxfer_engine_register(&engine);
}

/*
 * A run ends when its last completion is counted, on a lane that others go on using. The
 * context that counted it, a worker or a softirq, may still be on its way out of
 * kxfer_run_operation_done(): for a worker that was preempted there no reference is held.
 * synchronize_rcu_tasks() waits until every task has left the code that it was preempted in,
 * synchronize_rcu() for softirqs and for owners of a polled CQ.
 */
static void __exit kxfer_bench_exit(void)
{
	kxfer_engine_unregister(&engine);
	synchronize_rcu_tasks();
	synchronize_rcu();
}

module_init(kxfer_bench_init);
module_exit(kxfer_bench_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("What work requests of kernel verbs cost, measured on connections of kxfer");
MODULE_VERSION(KXFER_VERSION);
KXFER_IMPORT;

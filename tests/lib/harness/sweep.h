/* SPDX-License-Identifier: MIT */
/*
 * Sweep: repeats a flow of calls, while each site of kmod/base/fault.h that it passes fails at
 * the first hit, then at the second, and so on until the flow passes the site less often than
 * that.
 *
 * After each failure the flow must have returned an errno of the contract or success (the
 * module recovered), the state must become as before, and the flow must then succeed.
 */
#ifndef KXFER_TEST_SWEEP_H
#define KXFER_TEST_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct sweep_flow - a flow of calls to sweep
 * @before: preparation, without injected failures; or NULL
 * @run: the calls that are swept
 * @after: undoes @before and @run, whether they succeeded or not; or NULL
 * @settled: whether the state is as it was before @before; or NULL
 *
 * The first two return 0 or -errno.
 */
struct sweep_flow {
	int (*before)(void *context);
	int (*run)(void *context);
	void (*after)(void *context);
	bool (*settled)(void *context);
};

/**
 * struct sweep - a sweep under way
 * @flow: flow that is swept
 * @context: argument of its functions
 * @dense: hits of a site that are tried one by one; later hits in growing steps
 * @wrong: out: description of the fault
 */
struct sweep {
	const struct sweep_flow *flow;
	void *context;
	unsigned int dense;
	char wrong[256];
};

/*
 * The module's wait for a silent peer (KXFER_KEEPALIVE_MS and KXFER_SILENCE_MS), and a
 * teardown. On rxe of 6.12 the other end of a broken link sometimes gets no DREQ.
 */
#define SWEEP_SETTLE_MS	15000

const char *sweep_count(struct sweep *sweep);
const char *sweep_site(struct sweep *sweep, const char *site, unsigned int *injected);

#endif /* KXFER_TEST_SWEEP_H */

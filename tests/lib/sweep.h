/* SPDX-License-Identifier: MIT */
/*
 * Sweep: a flow of calls, again and again, while each site of kmod/base/fault.h that it
 * passes fails at the first hit, then at the second, and so on until the flow passes
 * the site less often than that.
 *
 * After each failure: what the flow says is an errno of the contract or nothing (the
 * module has recovered), things become as they were, and the flow succeeds.
 */
#ifndef KXFER_TEST_SWEEP_H
#define KXFER_TEST_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct sweep_flow - what is swept
 * @before: make ready; nothing fails on purpose yet; or NULL
 * @run: the calls
 * @after: undo what @before and @run have done, whatever came of them; or NULL
 * @settled: whether things are as they were before @before; or NULL
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
 * @flow: what is swept
 * @context: handed to it
 * @dense: hits of a site that are tried one by one; behind them in growing steps
 * @wrong: out: what is wrong, in words
 */
struct sweep {
	const struct sweep_flow *flow;
	void *context;
	unsigned int dense;
	char wrong[256];
};

/*
 * What the module waits for a peer that says nothing (KXFER_KEEPALIVE_MS and
 * KXFER_SILENCE_MS), and a teardown: on rxe of 6.12 the other end of a link that
 * breaks hears no DREQ now and then.
 */
#define SWEEP_SETTLE_MS	15000

const char *sweep_count(struct sweep *sweep);
const char *sweep_site(struct sweep *sweep, const char *site, unsigned int *injected);

#endif /* KXFER_TEST_SWEEP_H */

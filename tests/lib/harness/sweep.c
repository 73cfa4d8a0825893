// SPDX-License-Identifier: MIT
/*
 * Sweep: make each hit of a site fail in turn; see sweep.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fault.h"
#include "harness/kxfer_test.h"
#include "harness/sweep.h"

#define NTH_MAX		2000	/* longer than any flow */
#define SLOW_MS		1500	/* a slower hit gets a line of output */

/* Whether linux/kxfer.h allows a call or a job to end with this errno for such a reason. */
static bool sensible(const char *site, int ret)
{
	switch (-ret) {
	case EFAULT:
	/* A listener of siw without memory: inet_csk_get_port(), sock_alloc(), sk_alloc(). */
	case EADDRINUSE:
	case ENFILE:
	case ENOBUFS:
		return !strcmp(site, FAULT_NTH);
	case EBADF:
		return !strcmp(site, "RING_EVENTFD");
	case ENOMEM:
	case EIO:
	case EREMOTEIO:
	case ENODEV:
	case EADDRNOTAVAIL:
	case EHOSTUNREACH:
	case ECONNREFUSED:
	case ECONNRESET:
	case ETIMEDOUT:
	case EDQUOT:
	case EKEYREVOKED:
	case ENOKEY:
		return true;
	default:
		return false;
	}
}

static const char *say(struct sweep *sweep, const char *site, unsigned int nth,
		       const char *what, int ret)
{
	snprintf(sweep->wrong, sizeof(sweep->wrong), "%s, hit %u: %s: %s", site, nth, what,
		 strerror(-ret));
	return sweep->wrong;
}

static bool settle(struct sweep *sweep)
{
	const struct sweep_flow *flow = sweep->flow;

	return !flow->settled || kx_wait_until(flow->settled(sweep->context), SWEEP_SETTLE_MS);
}

/*
 * Runs the flow, with a site armed or with none. @before: out: counts of the site before the
 * run. @ready: out: whether the flow was run. Return: 0 or -errno.
 */
static int run_once(struct sweep *sweep, const char *site, unsigned int nth,
		    struct fault_counts *before, bool *ready)
{
	const struct sweep_flow *flow = sweep->flow;
	int ret = flow->before ? flow->before(sweep->context) : 0;

	*ready = !ret;
	if (!ret && site)
		ret = fault_counts(site, before) ?: fault_arm(site, nth);
	if (!ret)
		ret = flow->run(sweep->context);
	if (site)
		fault_arm(site, 0);
	if (flow->after)
		flow->after(sweep->context);
	return ret;
}

/* Makes one hit of a site fail and checks the result. Return: NULL, or what is wrong. */
static const char *sweep_hit(struct sweep *sweep, const char *site, unsigned int nth,
			     bool *injected)
{
	struct fault_counts before = { 0 }, after = { 0 };
	uint64_t began = kx_now_ns();
	bool ready;
	int ret;

	ret = run_once(sweep, site, nth, &before, &ready);
	if (!ready)
		return say(sweep, site, nth, "it cannot begin", ret);
	if (!settle(sweep))
		return say(sweep, site, nth, "something is left behind after", ret);
	if (fault_counts(site, &after))
		return say(sweep, site, nth, "its counts cannot be read", -EIO);
	*injected = after.injected != before.injected;
	if (!*injected)
		return ret ? say(sweep, site, nth, "without a fault", ret) : NULL;
	if (ret && !sensible(site, ret))
		return say(sweep, site, nth, "it failed with", ret);
	if (getenv("SWEEP_VERBOSE") || kx_now_ns() - began > SLOW_MS * 1000000ULL)
		printf("# %s, hit %u: %s after %u ms\n", site, nth, strerror(-ret),
		       (unsigned int)((kx_now_ns() - began) / 1000000));
	ret = run_once(sweep, NULL, 0, NULL, &ready);
	if (ret)
		return say(sweep, site, nth, "the same again failed with", ret);
	if (!settle(sweep))
		return say(sweep, site, nth, "something is left behind by the same again", 0);
	return NULL;
}

/**
 * sweep_count() - run the flow once, to count the hits of all sites
 * @sweep: flow and context set
 *
 * Return: NULL, or what is wrong.
 */
const char *sweep_count(struct sweep *sweep)
{
	const struct sweep_flow *flow = sweep->flow;
	int ret = flow->before ? flow->before(sweep->context) : 0;

	fault_reset();
	/* Arming any site starts the counting. */
	fault_arm("SESSION", 0);
	if (!ret)
		ret = flow->run(sweep->context);
	if (flow->after)
		flow->after(sweep->context);
	if (ret)
		return say(sweep, "no site", 0, "the flow failed with", ret);
	return settle(sweep) ? NULL :
	       say(sweep, "no site", 0, "something is left behind after", 0);
}

/**
 * sweep_site() - make each hit of a site in the flow fail, one at a time
 * @sweep: flow and context set
 * @site: name of the site
 * @injected: incremented for each failed hit
 *
 * Return: NULL, or what is wrong.
 */
const char *sweep_site(struct sweep *sweep, const char *site, unsigned int *injected)
{
	const char *wrong = NULL;
	bool hit = true;
	unsigned int nth;

	for (nth = 1; hit && !wrong && nth < NTH_MAX;) {
		wrong = sweep_hit(sweep, site, nth, &hit);
		*injected += hit;
		nth += nth < sweep->dense ? 1 : 1 + nth / 4;
	}
	return wrong;
}

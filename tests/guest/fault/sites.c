// SPDX-License-Identifier: GPL-2.0
/*
 * Every failure, once: each site of kmod/base/fault.h fails in each flow of calls that passes
 * it, at its first hit, at its second, and so on (tests/lib/harness/sweep.h). The runner checks
 * the kernel log.
 *
 * home_of() names the flow that has to reach a site; a site without an entry fails the build.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "big/flows.h"
#include "harness/baseline.h"
#include "harness/fault.h"
#include "harness/module.h"
#include "kselftest_harness.h"
#include "sites.h"

#define LOAD		NR_FLOWS	/* while loading, by insmod */
#define NOWHERE		(NR_FLOWS + 1)	/* never; unreached() has the reason */
#define WRONG_MAX	4	/* wrong sites after which the rest of a flow is skipped */

/* The home flow of a site. Where unreached() gives a reason, the site is not expected. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static enum flow home_of(enum site site)
{
	switch (site) {
	case SITE_MISC_REGISTER:
	case SITE_DEVICE_CLIENT:
	case SITE_NET_OPS:
	case SITE_LINK_WORKQUEUE:
	case SITE_LINE_WORKQUEUE:
	case SITE_LINK_HANDLERS:
	case SITE_LINK_LIFE:
	case SITE_CQ_WORKQUEUE:
	case SITE_JOB_CACHE:
	case SITE_EXPORT_WORKQUEUE:
	case SITE_MEMORY_PAGE:
		return LOAD;
	case SITE_CALL_GROWN:
	case SITE_SESSION:
	case SITE_SESSION_ID:
	case SITE_USER:
	case SITE_CHARGE:
	case SITE_CHARGE_LIMIT:
	case SITE_SESSION_EVENTS:
	case SITE_INFO_RECORDS:
	case SITE_MEMORY:
	case SITE_MEMORY_ARRAY:
	case SITE_MEMORY_SEGMENTS:
	case SITE_MEMORY_PIN:
	case SITE_REGION:
	case SITE_EXPORT:
	case SITE_EXPORT_RULES:
	case SITE_EXPORT_TABLE:
	case SITE_MAILBOX:
	case SITE_MAILBOX_MESSAGES:
	case SITE_KEY:
	case SITE_KEY_REQUEST:
	case SITE_KEY_HMAC:
	case SITE_KEYS:
	case SITE_LISTENER:
	case SITE_LISTENER_ID:
	case SITE_LISTENER_AFONLY:
	case SITE_LISTENER_BIND:
	case SITE_LISTENER_LISTEN:
	case SITE_RING:
	case SITE_RING_MEMORY:
	case SITE_RING_EVENTFD:
	case SITE_RING_MAP:
	case SITE_SQ:
	case SITE_SQ_MEMORY:
	case SITE_DEBUGFS_RECORDS:
		return LOCAL;
	case SITE_DEVICE:
	case SITE_DEVICE_PORT:
		return RETURN;
	case SITE_DEVICE_MAP:
	case SITE_CM_ID:
	case SITE_CM_ACK_TIMEOUT:
	case SITE_CM_BIND:
	case SITE_CM_RESOLVE_ADDR:
	case SITE_CM_ADDR_RESOLVED:
	case SITE_CM_RESOLVE_ROUTE:
	case SITE_CM_ROUTE_RESOLVED:
	case SITE_CM_CONNECT:
	case SITE_CM_ESTABLISHED:
	case SITE_CM_ACCEPT:
	case SITE_CM_QUERY:
	case SITE_LINK:
	case SITE_LINK_PD:
	case SITE_LINK_THREAD:
	case SITE_LANE:
	case SITE_LANE_CQ:
	case SITE_LANE_QP:
	case SITE_LANE_CHAINS:
	case SITE_LANE_SCRATCH:
	case SITE_LANE_LATENCY:
	case SITE_LANE_POST_SEND:
	case SITE_LANE_MR:
	case SITE_LANE_MAP:
	case SITE_LANE_WAITED:
	case SITE_LANE_SINKS:
	case SITE_LANE_PLACEMENT:
	case SITE_CHANNEL_MESSAGES:
	case SITE_CHANNEL_COPIES:
	case SITE_CHANNEL_REQUESTS:
	case SITE_CHANNEL_REPLIES:
	case SITE_CHANNEL_RECVS:
	case SITE_CHANNEL_POST_RECV:
	case SITE_CHANNEL_REQUEST_SENT:
	case SITE_CHANNEL_REPLY_SENT:
	case SITE_CHANNEL_RECEIVED:
	case SITE_CONTROL_PLACEMENT:
	case SITE_OFFERS:
	case SITE_FETCHES:
	case SITE_PEER:
	case SITE_PATHS:
	case SITE_LINE:
		return CONNECT;
	case SITE_MEMORY_TABLE:
	case SITE_MAPPING:
	case SITE_MAPPING_DMA:
	case SITE_MAPPING_EXTENTS:
	case SITE_MAPPING_STORE:
	case SITE_EXPOSURE:
	case SITE_EXPOSURE_MRS:
	case SITE_EXPOSURE_KEYS:
	case SITE_EXPOSURE_SG:
	case SITE_EXPOSURE_MAP:
	case SITE_GRANT:
	case SITE_GRANT_ID:
	case SITE_PEER_LIST:
	case SITE_TARGET:
	case SITE_SENDER:
	case SITE_CHANNEL_PAGE:
	case SITE_FLOW:
	case SITE_TARGET_ANSWER:
	case SITE_TARGET_KEYS:
	case SITE_JOB:
	case SITE_DONE:
	case SITE_CHAIN_MAP_SINK:
	case SITE_CHAIN_DONE:
	case SITE_CHAIN_INVALIDATED:
	case SITE_OFFER_SG:
	case SITE_OFFER_MAP:
	case SITE_FETCH_SG:
	case SITE_FETCH_MAP:
	case SITE_FETCHED:
		return TRANSFER;
	case SITE_DEDICATED:
	case SITE_DEDICATED_STATUS:
	case SITE_DEDICATED_READ:
	case SITE_DEDICATED_ANSWERS:
	case SITE_DEDICATED_RECV:
	case SITE_DEDICATED_ANSWER:
	case SITE_CQ_POOL:
	case SITE_CQ_POOL_MARKER:
	case SITE_CQ_POOL_ERROR:
		return DEDICATE;
	case SITE_UD_ID:
	case SITE_UD_BIND:
	case SITE_UD_RESOLVE_ADDR:
	case SITE_UD_RESOLVE_ROUTE:
	case SITE_UD_QP:
	case SITE_UD_CONNECT:
	case SITE_UD_ESTABLISHED:
	case SITE_UD_AH:
		return DATAGRAMS;
	case SITE_BENCH:
	case SITE_BENCH_SAMPLES:
	case SITE_BENCH_SCHEDULE:
	case SITE_BENCH_WORDS:
	case SITE_BENCH_REQUESTS:
	case SITE_BENCH_HISTOGRAM:
	case SITE_BENCH_DONE:
	case SITE_MRS:
	case SITE_MRS_SG:
	case SITE_MRS_POOL:
	case SITE_MRS_MAP:
	case SITE_RUN_RW:
	case SITE_RUN_RW_PIECES:
	case SITE_RUN_RW_SG:
	case SITE_RUN_RW_POOL:
	case SITE_RUN_RW_CTX:
		return MEASURE;
	case SITE_URING_BATCH:
		return BY_URING;
	case SITE_RELEASE_ORPHAN:
		return ABANDONED;
	case SITE_TARGET_REVOKED:
		return OVERTAKEN;
	case SITE_CM_REJECT:
		return REFUSED;
	case SITE_CM_DISCONNECT:
	case SITE_LANE_RESET:
		return DISCONNECT;
	case SITE_CM_NOTIFY:
		return NOWHERE;
	case NR_SITES:
		break;
	}
	return NOWHERE;
}

#pragma GCC diagnostic pop

/* As on siw-dma (tests/guest/dma). */
static bool maps_memory(void)
{
	return !access("/sys/module/siw/parameters/bounce", F_OK);
}

/* The only table of sites that are not reached. Return: why not on this provider, or NULL. */
static const char *unreached(enum site site)
{
	bool siw = !strcmp(kx_provider(), "siw");

	switch (site) {
	case SITE_CM_NOTIFY:
		return "neither rxe nor siw raises IB_EVENT_COMM_EST";
	case SITE_CM_QUERY:
		return siw ? "a QP of iWARP has no path" : NULL;
	case SITE_LANE_RESET:
		return siw ? "a QP of iWARP is destroyed instead" : NULL;
	case SITE_LANE_SINKS:
	case SITE_LANE_PLACEMENT:
	case SITE_CHAIN_MAP_SINK:
	case SITE_CHAIN_INVALIDATED:
		return siw ? NULL : "only iWARP registers the sinks of READs";
	case SITE_CHANNEL_PAGE:
		return siw ? "iWARP has no eager messages" : NULL;
	case SITE_KEY:
	case SITE_KEY_REQUEST:
	case SITE_KEY_HMAC:
	case SITE_KEYS:
		return access("/proc/keys", F_OK) ? "the kernel has no keyrings" : NULL;
	case SITE_FETCH_SG:
		return siw ? "it stays with the lane, where messages went before" : NULL;
	case SITE_MEMORY_TABLE:
	case SITE_MAPPING_DMA:
		return maps_memory() ? NULL : "virtual DMA needs no scatter list";
	default:
		return NULL;
	}
}

/* ---- sweeping ---- */

/* Hits that fail one by one; later hits, which repeat the same code, fail in steps. */
static const unsigned int dense[NR_FLOWS] = {
	[LOCAL] = 20, [CONNECT] = 8, [TRANSFER] = 8, [MEASURE] = 3, [DEDICATE] = 3,
	[DATAGRAMS] = 3, [BY_URING] = 8, [WITHDRAW] = 5, [CLOSE] = 3, [MAILBOX] = 3,
	[OVERTAKEN] = 2, [ABANDONED] = 2, [REFUSED] = 2, [DISCONNECT] = 8, [RETURN] = 2,
};

/*
 * Sweeps a flow: all sites that it passes, or only its home sites. Each home site has to fail
 * at least once.
 */
static void sweep_flow(struct __test_metadata *_metadata, struct world *world, enum flow home,
		       bool all)
{
	struct sweep sweep = { .flow = &flows[home], .context = world, .dense = dense[home] };
	bool passed[NR_SITES] = { false };
	struct fault_counts counts;
	const char *wrong;
	int nr_wrong = 0;
	enum site site;

	wrong = sweep_count(&sweep);
	ASSERT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	for (site = 0; site < NR_SITES; site++)
		passed[site] = !fault_counts(site_names[site], &counts) && counts.hits;
	for (site = 0; site < NR_SITES && nr_wrong < WRONG_MAX; site++) {
		bool own = home_of(site) == home && !unreached(site);
		unsigned int injected = 0;

		if (!own && (!all || !passed[site]))
			continue;
		wrong = sweep_site(&sweep, site_names[site], &injected);
		nr_wrong += !!wrong;
		EXPECT_EQ(NULL, wrong) {
			TH_LOG("%s", wrong);
		}
		EXPECT_TRUE(injected || !own) {
			TH_LOG("%s was not reached", site_names[site]);
		}
		printf("# %s failed %u times\n", site_names[site], injected);
	}
	/* None of the failures may be blamed on a peer. */
	EXPECT_EQ(0, kx_counter(world->observer, "protocol_errors"));
	fault_reset();
}

/* ---- the tests ---- */

FIXTURE(sites)
{
	struct world world;
};

/* Links of earlier tests would end at any time, so each test loads the module anew. */
FIXTURE_SETUP(sites)
{
	char netdev[32];

	if (!fault_available() || !module_available())
		SKIP(return, "needs root, debugfs and the module file");
	if (!baseline_netdev(kx_device(), netdev, sizeof(netdev)))
		SKIP(return, "needs a software RDMA device");
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, module_insert(""));
	ASSERT_EQ(0, world_open(&self->world));
}

FIXTURE_TEARDOWN(sites)
{
	world_close(&self->world);
	fault_reset();
}

TEST_F_TIMEOUT(sites, calls_without_a_peer, 120)
{
	sweep_flow(_metadata, &self->world, LOCAL, true);
}

TEST_F_TIMEOUT(sites, a_link_that_comes_up, 240)
{
	sweep_flow(_metadata, &self->world, CONNECT, true);
}

TEST_F_TIMEOUT(sites, targets_and_jobs, 240)
{
	sweep_flow(_metadata, &self->world, TRANSFER, true);
}

TEST_F_TIMEOUT(sites, work_requests_without_jobs, 120)
{
	sweep_flow(_metadata, &self->world, MEASURE, false);
}

TEST_F_TIMEOUT(sites, a_dedicated_connection, 240)
{
	sweep_flow(_metadata, &self->world, DEDICATE, true);
}

TEST_F_TIMEOUT(sites, a_dedicated_connection_by_ud, 120)
{
	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "iWARP has no UD");
	sweep_flow(_metadata, &self->world, DATAGRAMS, false);
}

TEST_F_TIMEOUT(sites, jobs_by_io_uring, 60)
{
	struct world *world = &self->world;
	struct fault_counts counts;

	sweep_flow(_metadata, world, BY_URING, false);
	/* If memory is not available at once, a waiting thread takes the job. */
	ASSERT_EQ(0, flows[BY_URING].before(world));
	ASSERT_EQ(0, fault_arm("JOB", 1));
	EXPECT_EQ(0, flows[BY_URING].run(world));
	ASSERT_EQ(0, fault_counts("JOB", &counts));
	EXPECT_EQ(1, counts.injected);
	EXPECT_EQ(5, counts.hits);
	flows[BY_URING].after(world);
}

TEST_F_TIMEOUT(sites, a_withdrawal_under_jobs, 120)
{
	sweep_flow(_metadata, &self->world, WITHDRAW, true);
}

TEST_F_TIMEOUT(sites, sessions_closed_under_jobs, 120)
{
	sweep_flow(_metadata, &self->world, CLOSE, true);
}

TEST_F_TIMEOUT(sites, a_mailbox_that_ends_under_messages, 120)
{
	sweep_flow(_metadata, &self->world, MAILBOX, true);
}

TEST_F_TIMEOUT(sites, a_grant_that_comes_too_late, 120)
{
	sweep_flow(_metadata, &self->world, ABANDONED, false);
}

TEST_F_TIMEOUT(sites, a_withdrawal_that_overtakes_a_grant, 120)
{
	sweep_flow(_metadata, &self->world, OVERTAKEN, false);
}

TEST_F_TIMEOUT(sites, a_connection_that_is_refused, 120)
{
	sweep_flow(_metadata, &self->world, REFUSED, false);
}

TEST_F_TIMEOUT(sites, a_link_that_breaks, 120)
{
	sweep_flow(_metadata, &self->world, DISCONNECT, false);
}

TEST_F_TIMEOUT(sites, a_device_that_comes_back, 120)
{
	sweep_flow(_metadata, &self->world, RETURN, false);
}

/*
 * Id of the first link. An id shows a lost link reliably: a state can be missed, an id is never
 * reused.
 */
static uint64_t first_link(struct world *world)
{
	struct kxfer_info_link link;
	uint64_t cursor = 0;

	if (kx_info(world->observer, KXFER_INFO_LINKS, &link, sizeof(link), 1, &cursor) != 1)
		return UINT64_MAX;
	return link.id;
}

/* The peer would lack the RECV at some later time, without a visible cause. */
TEST_F_TIMEOUT(sites, a_recv_that_is_not_posted_again_ends_the_link, 60)
{
	struct world *world = &self->world;
	struct kxfer_peer_export export;
	uint64_t cursor = 0, link;

	ASSERT_EQ(0, flows[TRANSFER].before(world));
	link = first_link(world);
	ASSERT_NE(UINT64_MAX, link);
	ASSERT_EQ(0, fault_arm("CHANNEL_POST_RECV", 1));
	kx_peer_list(world->client, world->peer, &export, 1, &cursor);
	EXPECT_TRUE(kx_wait_until(first_link(world) > link, 5000));
	/* The peer connects anew. */
	cursor = 0;
	EXPECT_TRUE(kx_wait_until(kx_peer_list(world->client, world->peer, &export, 1,
					       &cursor) == 1, 5000));
	flows[TRANSFER].after(world);
	EXPECT_TRUE(kx_wait_until(flows[TRANSFER].settled(world), SWEEP_SETTLE_MS));
}

static bool listening(struct world *world)
{
	struct kxfer_info_listener listener;
	uint64_t cursor = world->listener - 1;

	return kx_info(world->observer, KXFER_INFO_LISTENERS, &listener, sizeof(listener), 1,
		       &cursor) == 1 && listener.active;
}

TEST_F_TIMEOUT(sites, a_listener_that_cannot_come_back_yet_is_tried_again, 60)
{
	struct world *world = &self->world;
	struct fault_counts counts;

	ASSERT_TRUE(listening(world));
	ASSERT_EQ(0, fault_arm("LISTENER_LISTEN", 1));
	ASSERT_EQ(0, world_renew_device(world));
	EXPECT_FALSE(listening(world));
	EXPECT_TRUE(kx_wait_until(listening(world), 15000));
	ASSERT_EQ(0, fault_counts("LISTENER_LISTEN", &counts));
	EXPECT_EQ(1, counts.injected);
	EXPECT_EQ(2, counts.hits);
	EXPECT_EQ(0, flows[CONNECT].run(world));
}

/* ---- loading; the module's parameter arms the sites ---- */

static bool load_with_fault(struct __test_metadata *_metadata, const char *site, unsigned int nth)
{
	struct fault_counts counts = { 0 };
	char parameter[64];
	int ret;

	snprintf(parameter, sizeof(parameter), "fault=%s:%u", site, nth);
	ret = module_insert(parameter);
	if (ret) {
		EXPECT_EQ(-ENOMEM, ret) {
			TH_LOG("%s, hit %u", site, nth);
		}
		return true;
	}
	fault_counts(site, &counts);
	EXPECT_EQ(0, module_remove_soon());
	return counts.injected;
}

/* Finds the sites that loading passes. */
static void count_load(struct __test_metadata *_metadata, bool *passed)
{
	struct fault_counts counts;
	enum site site;

	ASSERT_EQ(0, module_insert("fault=JOB:0"));
	for (site = 0; site < NR_SITES; site++)
		passed[site] = !fault_counts(site_names[site], &counts) && counts.hits;
	ASSERT_EQ(0, module_remove_soon());
}

TEST_F_TIMEOUT(sites, loading, 120)
{
	bool passed[NR_SITES];
	unsigned int nth, injected;
	enum site site;

	world_close(&self->world);
	ASSERT_EQ(0, module_remove_soon());
	EXPECT_EQ(-EINVAL, module_insert("fault=NO_SUCH_SITE:1"));
	EXPECT_EQ(-EINVAL, module_insert("fault=JOB"));
	count_load(_metadata, passed);
	for (site = 0; site < NR_SITES; site++) {
		if (!passed[site] && home_of(site) != LOAD)
			continue;
		for (nth = 1, injected = 0; load_with_fault(_metadata, site_names[site], nth);
		     nth += 1 + nth / 3)
			injected++;
		EXPECT_LT(0, injected) {
			TH_LOG("%s was not reached", site_names[site]);
		}
		printf("# %s failed %u times\n", site_names[site], injected);
	}
	ASSERT_EQ(0, module_insert(""));
	/* The module works. */
	ASSERT_EQ(0, world_open(&self->world));
	EXPECT_EQ(0, flows[TRANSFER].before(&self->world));
	EXPECT_EQ(0, flows[TRANSFER].run(&self->world));
}

TEST(a_site_that_is_not_armed_is_not_hit)
{
	struct fault_counts counts;
	int fd;

	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	ASSERT_EQ(0, fault_reset());
	fd = kx_open();
	ASSERT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, fault_counts("SESSION", &counts));
	EXPECT_EQ(0, counts.hits);
	/* An armed site fails only once. */
	ASSERT_EQ(0, fault_arm("SESSION", 2));
	fd = kx_open();
	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_EQ(-ENOMEM, kx_open());
	fd = kx_open();
	ASSERT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, fault_counts("SESSION", &counts));
	EXPECT_EQ(3, counts.hits);
	EXPECT_EQ(1, counts.injected);
	EXPECT_EQ(0, counts.left);
	ASSERT_EQ(0, fault_reset());
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * The same transfers over different paths: IPv4 and IPv6, link-local addresses, the three
 * completion contexts, and WRITEs that do not wait for placement.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "rigs/rig.h"

#define MIB	(1024u * 1024)
#define LENGTH	(2 * MIB)

/* A link-local address of a network interface other than lo. */
static bool find_link_local(char *text, uint32_t *scope)
{
	struct ifaddrs *all, *one;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (one = all; one && !found; one = one->ifa_next) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)one->ifa_addr;

		if (!in6 || in6->sin6_family != AF_INET6 || one->ifa_flags & IFF_LOOPBACK ||
		    !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			continue;
		inet_ntop(AF_INET6, &in6->sin6_addr, text, INET6_ADDRSTRLEN);
		*scope = in6->sin6_scope_id;
		found = true;
	}
	freeifaddrs(all);
	return found;
}

FIXTURE(path)
{
	struct rig rig;
};

FIXTURE_VARIANT(path)
{
	int family;
	bool link_local;
	uint32_t context;
};

FIXTURE_VARIANT_ADD(path, ipv4_polled)
{
	.family = AF_INET, .context = KXFER_CONTEXT_POLLED,
};

FIXTURE_VARIANT_ADD(path, ipv4_workqueue)
{
	.family = AF_INET, .context = KXFER_CONTEXT_WORKQUEUE,
};

FIXTURE_VARIANT_ADD(path, ipv4_softirq)
{
	.family = AF_INET, .context = KXFER_CONTEXT_SOFTIRQ,
};

FIXTURE_VARIANT_ADD(path, ipv4_unbound)
{
	.family = AF_INET, .context = KXFER_CONTEXT_UNBOUND,
};

FIXTURE_VARIANT_ADD(path, ipv6)
{
	.family = AF_INET6, .context = KXFER_CONTEXT_WORKQUEUE,
};

FIXTURE_VARIANT_ADD(path, ipv6_link_local)
{
	.family = AF_INET6, .link_local = true, .context = KXFER_CONTEXT_SOFTIRQ,
};

FIXTURE_SETUP(path)
{
	struct rig_options options = {
		.length = LENGTH,
		.here = BUFFER_SCATTERED,
		.context = variant->context,
		.address = variant->family == AF_INET6 ? kx_address6() : NULL,
	};
	char text[INET6_ADDRSTRLEN];

	self->rig = (struct rig) { .server = -1, .client = -1 };
	if (variant->link_local) {
		if (!find_link_local(text, &options.scope_id))
			SKIP(return, "no interface has a link-local IPv6 address");
		options.address = text;
	}
	ASSERT_EQ(0, rig_open(&self->rig, &options));
}

FIXTURE_TEARDOWN(path)
{
	rig_close(&self->rig);
}

static void move_all_sizes(struct __test_metadata *_metadata, struct rig *rig, uint32_t op)
{
	static const uint64_t lengths[] = { 1, 8, 100, 4096, 5000, 65536, 100001, MIB };
	const char *wrong;
	size_t i;

	rig_prepare(rig, op);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		wrong = rig_try(rig, op, 1000 * i + 1, 3000 * i + 2, lengths[i]);
		if (wrong)
			TH_LOG("length %llu: %s", (unsigned long long)lengths[i], wrong);
		ASSERT_EQ(NULL, wrong);
	}
	ASSERT_EQ(NULL, rig_untouched(rig, op));
}

TEST_F(path, reads_are_right)
{
	move_all_sizes(_metadata, &self->rig, KXFER_OP_READ);
}

TEST_F(path, writes_are_right)
{
	move_all_sizes(_metadata, &self->rig, KXFER_OP_WRITE);
}

TEST_F(path, notify_comes_behind_a_write)
{
	struct pattern pattern = { .seed = 0x666, .generation = 1 };
	struct kxfer_completion done[2];
	struct kxfer_event event;
	struct kxfer_job jobs[2];

	pattern_fill(self->rig.here.bytes, MIB, &pattern);
	jobs[0] = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, MIB);
	jobs[1] = (struct kxfer_job) {
		.op = KXFER_OP_NOTIFY, .target = self->rig.target, .cookie = 5,
	};
	ASSERT_EQ(2, kx_submit(self->rig.client, jobs, 2));
	ASSERT_EQ(1, kx_event_reap(self->rig.server, &event, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->rig.there.bytes, MIB, &pattern, NULL, NULL));
	EXPECT_EQ(variant->family, event.peer.family);
	EXPECT_EQ(2, kx_reap(self->rig.client, done, 2, 2, KX_TIMEOUT_MS));
}

TEST_F(path, link_tells_how_it_was_made)
{
	struct kxfer_info_link link;
	uint64_t cursor = self->rig.link - 1;

	ASSERT_EQ(1, kx_info(self->rig.client, KXFER_INFO_LINKS, &link, sizeof(link), 1,
			     &cursor));
	EXPECT_EQ(self->rig.link, link.id);
	EXPECT_EQ(variant->context, link.context);
	EXPECT_EQ(variant->family, link.remote.family);
	EXPECT_EQ(variant->family, link.local.family);
	EXPECT_EQ(KXFER_PORT, link.remote.port);
	EXPECT_EQ(KXFER_LINK_LIVE, link.state);
	EXPECT_EQ(KXFER_LINK_INITIATOR, link.flags & KXFER_LINK_INITIATOR);
	EXPECT_STREQ(kx_device(), (const char *)link.device);
}

TEST_F(path, local_only_writes_are_there_for_a_read_behind_them)
{
	struct pattern pattern = { .seed = 0x667 };
	struct kxfer_completion done[2];
	struct kxfer_job jobs[2];
	int i;

	for (i = 1; i <= 20; i++) {
		pattern.generation = i;
		pattern_fill(self->rig.here.bytes, 70000, &pattern);
		jobs[0] = rig_job(&self->rig, KXFER_OP_WRITE, 0, 3, 70000);
		jobs[0].flags = KXFER_JOB_F_LOCAL_ONLY;
		jobs[1] = rig_job(&self->rig, KXFER_OP_READ, MIB, 3, 70000);
		ASSERT_EQ(2, kx_submit(self->rig.client, jobs, 2));
		ASSERT_EQ(2, kx_reap(self->rig.client, done, 2, 2, KX_TIMEOUT_MS));
		ASSERT_EQ(0, done[0].status);
		ASSERT_EQ(0, done[1].status);
		ASSERT_EQ(PATTERN_GOOD, pattern_check(self->rig.here.bytes + MIB, 70000, &pattern,
						      NULL, NULL));
	}
}

/*
 * siw sends over lo. While packets wait there, TCP has what it was given, and the caller changes
 * the memory that it was taken from.
 */
TEST_F(path, local_only_writes_leave_their_memory_to_the_caller)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_WRITE, 0, 0, MIB);
	struct pattern pattern = { .seed = 0x668 };
	struct kxfer_completion done;

	if (baseline_command("tc qdisc add dev lo root netem delay 50ms"))
		SKIP(return, "needs root and tc's netem");
	pattern_fill(self->rig.here.bytes, MIB, &pattern);
	job.flags = KXFER_JOB_F_LOCAL_ONLY;
	EXPECT_EQ(1, kx_submit(self->rig.client, &job, 1));
	EXPECT_EQ(1, kx_reap(self->rig.client, &done, 1, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(0, done.status);
	memset(self->rig.here.bytes, 0xff, MIB);
	EXPECT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, MIB, 0, MIB));
	baseline_command("tc qdisc del dev lo root");
	EXPECT_EQ(PATTERN_GOOD, pattern_check(self->rig.here.bytes + MIB, MIB, &pattern, NULL,
					      NULL));
}

static uint64_t work_requests_of(const struct rig *rig, uint32_t flags)
{
	struct kxfer_job job = rig_job(rig, KXFER_OP_WRITE, 0, 0, 100);
	struct kxfer_completion done;
	uint64_t before = rig_posted(rig).work_requests;

	job.flags = flags;
	if (kx_submit(rig->client, &job, 1) != 1 ||
	    kx_reap(rig->client, &done, 1, 1, KX_TIMEOUT_MS) != 1 || done.status)
		return 0;
	return rig_posted(rig).work_requests - before;
}

/*
 * On iWARP a WRITE completes when TCP has its bytes; a placement READ after it proves their
 * placement.
 */
TEST_F(path, write_is_proved_by_a_read_on_iwarp_only)
{
	EXPECT_EQ(1, work_requests_of(&self->rig, KXFER_JOB_F_LOCAL_ONLY));
	EXPECT_EQ(strcmp(kx_provider(), "siw") ? 1 : 2, work_requests_of(&self->rig, 0));
}

TEST_F(path, local_only_means_nothing_to_a_read)
{
	struct kxfer_job job = rig_job(&self->rig, KXFER_OP_READ, 0, 0, 1);

	job.flags = KXFER_JOB_F_LOCAL_ONLY;
	EXPECT_EQ(-EINVAL, kx_submit(self->rig.client, &job, 1));
}

TEST_HARNESS_MAIN

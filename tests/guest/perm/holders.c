// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile holders of grants during a withdrawal: many of them do not answer it, or release
 * their grant at the same moment. EXPORT_DEL and close() return in time, but not before the
 * memory is out of reach.
 */
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH		4096
#define NR_HOLDERS	3
#define WITHDRAW_MS	18000	/* a wait of 10 s and a teardown, on a slow machine */
#define BIG		(96UL << 20)
#define NR_RACES	25

FIXTURE(holder)
{
	int fd;			/* session of the exporter */
	int looker;		/* session that reads counters */
	uint32_t region;
	uint32_t exports[NR_HOLDERS];
	uint16_t port;
	struct raw_link links[NR_HOLDERS];
	pthread_t thread;
	_Atomic bool stop;
};

FIXTURE_SETUP(holder)
{
	void *memory = kx_alloc(LENGTH);
	uint64_t listener;

	self->port = kx_own_port();
	self->looker = kx_open();
	self->fd = kx_open();
	ASSERT_TRUE(self->looker >= 0 && self->fd >= 0);
	test_cmd_listen_add(self->looker, kx_addr(kx_address(), self->port), 0, &listener);
	test_cmd_region_add(self->fd, memory, LENGTH, KXFER_REGION_F_WRITE, &self->region);
}

FIXTURE_TEARDOWN(holder)
{
	int i;

	self->stop = true;
	if (self->thread)
		pthread_join(self->thread, NULL);
	for (i = 0; i < NR_HOLDERS; i++)
		raw_link_close(&self->links[i]);
	if (self->fd >= 0)
		close(self->fd);
	close(self->looker);
}

/* Keeps all links alive; some holders answer REVOKE, others do not. */
static void *serve_all(void *argument)
{
	FIXTURE_DATA(holder) *self = argument;
	int i;

	while (!self->stop)
		for (i = 0; i < NR_HOLDERS; i++)
			if (self->links[i].control.cq)
				raw_serve(&self->links[i], 5);
	return NULL;
}

static int hold(FIXTURE_DATA(holder) *self, int i, const char *name)
{
	struct kxfer_wire_grant_answer grant;
	int ret = raw_link_open(&self->links[i], self->port);

	self->links[i].answer_revokes = false;
	return ret ?: raw_grant(&self->links[i], name, 0, 0, &grant);
}

static uint64_t ms_since(uint64_t before)
{
	return (kx_now_ns() - before) / 1000000;
}

TEST_F_TIMEOUT(holder, of_one_export_hold_it_up_side_by_side, 120)
{
	uint64_t began;
	int i;

	ASSERT_EQ(0, kx_export_add(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_ALL,
				   "held", &self->exports[0]));
	for (i = 0; i < NR_HOLDERS; i++)
		ASSERT_EQ(0, hold(self, i, "held"));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, serve_all, self));
	began = kx_now_ns();
	EXPECT_EQ(0, kx_export_del(self->fd, self->exports[0]));
	TH_LOG("EXPORT_DEL took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(WITHDRAW_MS, ms_since(began));
	EXPECT_EQ(0, kx_region_del(self->fd, self->region));
}

TEST_F_TIMEOUT(holder, of_several_exports_hold_close_up_side_by_side, 120)
{
	char name[] = "held-0";
	uint64_t began;
	int i;

	for (i = 0; i < NR_HOLDERS; i++) {
		name[5] = '0' + i;
		ASSERT_EQ(0, kx_export_add(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_ALL,
					   name, &self->exports[i]));
		ASSERT_EQ(0, hold(self, i, name));
	}
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, serve_all, self));
	began = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	TH_LOG("close() took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(WITHDRAW_MS, ms_since(began));
}

/* Waits until a released exposure has fewer registrations. */
static bool wait_for_fewer(int fd, uint64_t mrs)
{
	uint64_t end = kx_deadline_ns(500);

	while (kx_now_ns() < end)
		if (kx_counter(fd, "live_mrs") < mrs)
			return true;
	return false;
}

/* @header: out: the sent header, which identifies the answer. */
static int release(struct raw_link *link, const struct kxfer_wire_grant_answer *grant,
		   struct kxfer_wire_header *header)
{
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_grant_id id;
	} message = {
		.header = raw_header(KXFER_WIRE_RELEASE, 5, sizeof(message.id), 1),
		.id = { .grant = grant->grant },
	};

	*header = message.header;
	return raw_push(&link->control, &message, sizeof(message));
}

/* One export is granted, released, and withdrawn during the release. */
static void race(struct __test_metadata *_metadata, FIXTURE_DATA(holder) *self,
		 uint32_t region)
{
	struct kxfer_wire_grant_answer grant;
	struct raw_link *link = &self->links[0];
	uint64_t before = kx_counter(self->looker, "live_mrs"), mrs;
	struct kxfer_wire_header header;

	ASSERT_EQ(0, kx_export_add(self->fd, region, 0, BIG, KXFER_RIGHT_ALL, "big",
				   &self->exports[0]));
	ASSERT_EQ(0, raw_grant(link, "big", 0, 0, &grant));
	mrs = kx_counter(self->looker, "live_mrs");
	ASSERT_LT(before, mrs);
	ASSERT_EQ(0, release(link, &grant, &header));
	ASSERT_TRUE(wait_for_fewer(self->looker, mrs));
	ASSERT_EQ(0, kx_export_del(self->fd, self->exports[0]));
	/* MRs of an idle link that closes meanwhile are gone too. */
	ASSERT_GE(before, kx_counter(self->looker, "live_mrs"));
	EXPECT_EQ(0, raw_await_answer(link, &link->control, &header, NULL, NULL));
}

TEST_F_TIMEOUT(holder, that_gives_a_grant_back_meanwhile_reaches_nothing_later, 120)
{
	void *memory = kx_alloc(BIG);
	struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint32_t region;
	int i, ret;

	ASSERT_NE(NULL, memory);
	/* siw of 6.1 counts pages that are already pinned, without an exception for root. */
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &no_limit));
	test_cmd_region_add(self->fd, memory, BIG, KXFER_REGION_F_WRITE, &region);
	/* On siw the end of an earlier link may delay this one. */
	ASSERT_TRUE(kx_wait_until(!(ret = raw_link_open(&self->links[0], self->port)) ||
				  (raw_link_close(&self->links[0]), false), KX_TIMEOUT_MS)) {
		TH_LOG("connecting: %s", strerror(-ret));
	}
	for (i = 0; i < NR_RACES; i++)
		race(_metadata, self, region);
	/* Nothing may use the region now; a leaked user would make this fail. */
	EXPECT_EQ(0, kx_region_del(self->fd, region));
	kx_free(memory, BIG);
}

TEST_HARNESS_MAIN

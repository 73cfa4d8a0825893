// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile peers must not delay others. Each test has an honest pair on the same node, which
 * repeatedly makes a new link and moves bytes over it, while the hostile peer is slow, silent
 * or drips. Each step of the honest pair must end within its limit. Calls on the hostile peer
 * itself end within the bounds of Documentation/uapi.rst.
 */
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"
#include "rigs/rig.h"

#define LENGTH		4096
#define HONEST_MS	6000	/* a link, a target, a job, close(): on a slow machine */
#define CLOSE_MS	16000	/* a wait of 10 s and a teardown, on a slow machine */
#define SLACK_MS	600	/* of a call with a timeout, on a slow machine */
#define REQUEST_MS	22000	/* 15 s, checked every 2 s, and a new link */

#define NR_DEAF		74	/* links without RECVs: 7 * 74 is more than 512 */
#define NR_GRANTS	7	/* unanswered requests that a link may have */
#define NR_REVOKED	600	/* targets of one link, each to be released */
#define NR_DRIPS	12

FIXTURE(bystander)
{
	struct rig rig;			/* the honest pair */
	uint32_t tos;			/* different for each new link of the honest pair */
	struct raw_server server;	/* hostile peer on the passive side */
	struct raw_link *links;		/* or hostile peers as initiators */
	int fd;
	uint32_t peer;
	_Atomic uint8_t unanswered;	/* type of the request that is not answered */
	_Atomic uint32_t late_ms;	/* delay of answers to RELEASE */
	_Atomic uint32_t revoke;	/* send a REVOKE of this exposure next */
	uint64_t dripped_ns;
	_Atomic uint32_t drip_ms;	/* time between two RECVs */
	_Atomic uint32_t hello_ms;	/* delay of answers to HELLO */
	_Atomic uint32_t nr_granted;
};

static FIXTURE_DATA(bystander) *of_server(struct raw_server *server)
{
	return server->context;
}

static int answer(struct raw_server *server, const struct kxfer_wire_header *request,
		  const void *payload, void *answer, uint16_t *length)
{
	FIXTURE_DATA(bystander) *self = of_server(server);
	struct kxfer_wire_grant_answer *grant = answer;
	int status;

	(void)payload;
	if (request->type == self->unanswered)
		return -1;
	if (request->type == KXFER_WIRE_RELEASE && self->late_ms)
		kx_sleep_ms(self->late_ms);
	status = raw_default_answer(server, request, answer, length);
	if (request->type == KXFER_WIRE_GRANT)
		grant->grant = htobe64(++self->nr_granted);
	return status;
}

static bool intercept(struct raw_server *server, struct raw_lane *lane,
		      const struct kxfer_wire_header *message, uint32_t length)
{
	FIXTURE_DATA(bystander) *self = of_server(server);

	(void)lane;
	(void)length;
	if (message->type == KXFER_WIRE_HELLO && self->hello_ms)
		kx_sleep_ms(self->hello_ms);
	return false;
}

static void idle(struct raw_server *server)
{
	FIXTURE_DATA(bystander) *self = of_server(server);
	struct kxfer_wire_exposure_id id = { .exposure = htobe64(1) };

	if (self->revoke && server->lanes[0].cq) {
		self->revoke = 0;
		raw_post_request(&server->lanes[0],
				 raw_header(KXFER_WIRE_REVOKE, 1, sizeof(id), 1), &id,
				 sizeof(id));
	}
	if (self->drip_ms && server->lanes[1].cq &&
	    kx_now_ns() - self->dripped_ns > self->drip_ms * 1000000ULL) {
		self->dripped_ns = kx_now_ns();
		raw_lane_receive_one(&server->lanes[1]);
	}
}

FIXTURE_SETUP(bystander)
{
	struct rig_options options = { .length = LENGTH };
	uint64_t listener;

	self->fd = -1;
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	test_cmd_listen_add(self->rig.server, kx_addr(kx_address(), kx_own_port()), 0,
			    &listener);
	raw_server_init(&self->server);
	self->server.answer = answer;
	self->server.intercept = intercept;
	self->server.idle = idle;
	self->server.context = self;
}

FIXTURE_TEARDOWN(bystander)
{
	int i;

	if (self->fd >= 0)
		close(self->fd);
	raw_server_stop(&self->server);
	for (i = 0; self->links && i < NR_DEAF; i++)
		raw_link_close(&self->links[i]);
	rig_close(&self->rig);
}

static uint64_t ms_since(uint64_t before)
{
	return (kx_now_ns() - before) / 1000000;
}

static void meet(struct __test_metadata *_metadata, FIXTURE_DATA(bystander) *self)
{
	ASSERT_EQ(0, raw_server_start(&self->server, kx_own_port() + 1));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), kx_own_port() + 1), &self->peer);
}

static int open_target(int fd, uint32_t peer, uint32_t ms, uint32_t *target)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = peer,
		.timeout_ms = ms,
		.name = "window",
	};
	int ret = kx_call(fd, KXFER_TARGET_OPEN, &cmd);

	*target = cmd.target;
	return ret;
}

/* Uses a new link of the honest pair, from PEER_OPEN to close(). Return: 0 or -errno. */
static int try_honest(FIXTURE_DATA(bystander) *self)
{
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = kx_addr(kx_address(), kx_own_port()),
		.timeout_ms = HONEST_MS,
		.flags = KXFER_PEER_F_TOS,
		.tos = (self->tos = (self->tos + 4) % 252),
	};
	struct kxfer_job job = { .op = KXFER_OP_WRITE, .length = LENGTH };
	struct kxfer_completion done = { .status = -EIO };
	uint8_t *memory = kx_alloc(LENGTH);
	int fd = kx_open(), ret;

	ret = kx_call(fd, KXFER_PEER_OPEN, &open);
	if (!ret)
		ret = kx_region_add(fd, memory, LENGTH, 0, &job.region);
	if (!ret)
		ret = kx_target_open(fd, open.peer, self->rig.name, 0, &job.target);
	if (!ret && (kx_submit(fd, &job, 1) != 1 ||
		     kx_reap(fd, &done, 1, 1, HONEST_MS) != 1))
		ret = -ETIMEDOUT;
	close(fd);
	kx_free(memory, LENGTH);
	return ret ?: done.status;
}

/* Repeats the honest pair's round for @ms. Return: longest round in ms. */
static uint64_t honest(struct __test_metadata *_metadata, FIXTURE_DATA(bystander) *self,
		       uint32_t ms)
{
	uint64_t end = kx_deadline_ns(ms), longest = 0, began, took;

	do {
		began = kx_now_ns();
		EXPECT_EQ(0, try_honest(self));
		took = ms_since(began);
		longest = took > longest ? took : longest;
		kx_sleep_ms(200);
	} while (kx_now_ns() < end);
	TH_LOG("the honest pair needed %llu ms at most", (unsigned long long)longest);
	return longest;
}

/* Sends HELLO and GRANTs on a link that takes no message, without waiting. */
static int connect_deaf(FIXTURE_DATA(bystander) *self, struct raw_link *link)
{
	static const struct raw_manners deaf = { .no_receives = true };
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_grant grant;
	} message = { .grant = { .rights = 0 } };
	int ret, i;

	ret = raw_link_connect_as(link, kx_own_port(), NULL, 0, &deaf);
	message.header = raw_header(KXFER_WIRE_HELLO, 1, 0, 1);
	ret = ret ?: raw_push(&link->control, &message.header, sizeof(message.header));
	kx_sleep_ms(20);
	strcpy((char *)message.grant.name, self->rig.name);
	for (i = 0; !ret && i < NR_GRANTS; i++) {
		message.header = raw_header(KXFER_WIRE_GRANT, i ? i + 1 : 0,
					    sizeof(message.grant), i + 2);
		ret = raw_push(&link->control, &message, sizeof(message));
	}
	return ret;
}

TEST_F_TIMEOUT(bystander, of_peers_that_take_no_message_goes_on, 180)
{
	uint64_t began;
	int i;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "a device that waits for a receiver: iWARP has none");
	self->links = calloc(NR_DEAF, sizeof(*self->links));
	for (i = 0; i < NR_DEAF; i++)
		ASSERT_EQ(0, connect_deaf(self, &self->links[i]));
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 5000));
	began = kx_now_ns();
	EXPECT_EQ(0, kx_export_del(self->rig.server, self->rig.export_id));
	TH_LOG("EXPORT_DEL took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(CLOSE_MS, ms_since(began));
}

TEST_F_TIMEOUT(bystander, of_a_peer_that_takes_nothing_back_goes_on, 180)
{
	uint32_t target;
	uint64_t began;
	int i;

	meet(_metadata, self);
	for (i = 0; i < NR_REVOKED; i++)
		ASSERT_EQ(0, open_target(self->fd, self->peer, KX_TIMEOUT_MS, &target));
	self->unanswered = KXFER_WIRE_RELEASE;
	self->revoke = 1;
	ASSERT_TRUE(kx_wait_until(!self->revoke, KX_TIMEOUT_MS));
	kx_sleep_ms(1000);
	began = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	TH_LOG("close() took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(CLOSE_MS, ms_since(began));
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 5000));
}

TEST_F_TIMEOUT(bystander, of_a_peer_that_takes_back_slowly_goes_on_and_close_returns, 180)
{
	uint32_t target;
	uint64_t began;
	int i;

	meet(_metadata, self);
	for (i = 0; i < NR_DRIPS; i++)
		ASSERT_EQ(0, open_target(self->fd, self->peer, KX_TIMEOUT_MS, &target));
	self->late_ms = 4000;
	began = kx_now_ns();
	test_cmd_target_close(self->fd, target);
	EXPECT_GT(1000, ms_since(began));
	began = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	TH_LOG("close() took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(CLOSE_MS, ms_since(began));
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 5000));
	self->late_ms = 0;
}

/* NOTIFYs whose SEND finds a RECV now and then, with WRITEs between them. */
static void submit_dripping(struct __test_metadata *_metadata, FIXTURE_DATA(bystander) *self)
{
	uint8_t *memory = kx_alloc(LENGTH);
	struct kxfer_job jobs[NR_DRIPS] = {};
	uint32_t region, target;
	int i;

	self->server.no_data_receives = true;
	meet(_metadata, self);
	ASSERT_EQ(0, open_target(self->fd, self->peer, KX_TIMEOUT_MS, &target));
	test_cmd_region_add(self->fd, memory, LENGTH, 0, &region);
	for (i = 0; i < NR_DRIPS; i++) {
		jobs[i].op = i % 2 ? KXFER_OP_WRITE : KXFER_OP_NOTIFY;
		jobs[i].region = i % 2 ? region : 0;
		jobs[i].length = i % 2 ? 8 : 0;
		jobs[i].target = target;
	}
	test_cmd_submit(NR_DRIPS, self->fd, jobs, NR_DRIPS);
}

TEST_F_TIMEOUT(bystander, of_a_peer_that_drips_goes_on_and_close_returns, 240)
{
	uint64_t began;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "a device that waits for a receiver: iWARP has none");
	self->drip_ms = 15000;
	self->dripped_ns = kx_now_ns();
	submit_dripping(_metadata, self);
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 3000));
	began = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	TH_LOG("close() took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(CLOSE_MS, ms_since(began));
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 3000));
}

TEST_F_TIMEOUT(bystander, of_a_peer_that_drips_gets_its_jobs_back, 240)
{
	struct kxfer_completion done[NR_DRIPS];
	int nr;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "a device that waits for a receiver: iWARP has none");
	self->drip_ms = 15000;
	self->dripped_ns = kx_now_ns();
	submit_dripping(_metadata, self);
	/* 30 s after the oldest post, checked every 2 s; waiting for all drips would take 90 s. */
	nr = kx_reap(self->fd, done, NR_DRIPS, NR_DRIPS, 42000);
	ASSERT_EQ(NR_DRIPS, nr);
	EXPECT_EQ(-ECONNRESET, done[NR_DRIPS - 1].status);
}

struct lister {
	int fd;
	uint32_t peer;
	uint32_t ms;
	int ret;
	uint64_t took;
	pthread_t thread;
};

static void *list_peer(void *argument)
{
	struct lister *lister = argument;
	struct kxfer_peer_export exports[8];
	struct kxfer_peer_list cmd = {
		.size = sizeof(cmd),
		.peer = lister->peer,
		.nr = 8,
		.timeout_ms = lister->ms,
		.exports = (uintptr_t)exports,
	};
	uint64_t began = kx_now_ns();

	lister->ret = kx_call(lister->fd, KXFER_PEER_LIST, &cmd);
	lister->took = ms_since(began);
	return NULL;
}

TEST_F_TIMEOUT(bystander, of_a_peer_that_answers_no_LIST_gets_its_link_back, 180)
{
	struct lister listers[NR_GRANTS];
	uint32_t target;
	uint64_t began;
	int i;

	meet(_metadata, self);
	self->unanswered = KXFER_WIRE_LIST;
	for (i = 0; i < NR_GRANTS; i++) {
		listers[i] = (struct lister) { .fd = self->fd, .peer = self->peer, .ms = 500 };
		ASSERT_EQ(0, pthread_create(&listers[i].thread, NULL, list_peer, &listers[i]));
	}
	for (i = 0; i < NR_GRANTS; i++) {
		pthread_join(listers[i].thread, NULL);
		EXPECT_EQ(-ETIMEDOUT, listers[i].ret);
	}
	began = kx_now_ns();
	EXPECT_TRUE(kx_wait_until(!open_target(self->fd, self->peer, 1000, &target),
				  REQUEST_MS));
	TH_LOG("others got through after %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 1000));
}

struct opener {
	FIXTURE_DATA(bystander) *self;
	uint32_t ms;
	uint64_t took;
	int ret;
	pthread_t thread;
};

static void *open_in_thread(void *argument)
{
	struct opener *opener = argument;
	uint64_t began = kx_now_ns();
	uint32_t target;

	opener->ret = open_target(opener->self->fd, opener->self->peer, opener->ms, &target);
	opener->took = ms_since(began);
	return NULL;
}

/* Breaks the link; the next one comes late or not at all. */
static void lose_link(struct __test_metadata *_metadata, FIXTURE_DATA(bystander) *self)
{
	uint64_t lost = kx_counter(self->rig.client, "links_lost");

	self->server.mute = true;
	EXPECT_TRUE(kx_wait_until(kx_counter(self->rig.client, "links_lost") > lost, 20000));
	self->server.mute = false;
	kx_sleep_ms(500);
}

TEST_F_TIMEOUT(bystander, behind_another_thread_that_connects_keeps_its_timeout, 120)
{
	struct opener slow = { .self = self, .ms = 5000 }, quick = { .self = self, .ms = 100 };

	meet(_metadata, self);
	lose_link(_metadata, self);
	self->server.deaf = true;
	ASSERT_EQ(0, pthread_create(&slow.thread, NULL, open_in_thread, &slow));
	kx_sleep_ms(300);
	open_in_thread(&quick);
	TH_LOG("100 ms were %llu ms", (unsigned long long)quick.took);
	EXPECT_EQ(-ETIMEDOUT, quick.ret);
	EXPECT_GT(100 + SLACK_MS, quick.took);
	EXPECT_GT(HONEST_MS, honest(_metadata, self, 1000));
	pthread_join(slow.thread, NULL);
	EXPECT_EQ(-ETIMEDOUT, slow.ret);
	EXPECT_GT(5000 + SLACK_MS, slow.took);
}

TEST_F_TIMEOUT(bystander, that_connects_and_lists_has_one_timeout_for_both, 120)
{
	struct lister lister = { .ms = 1500 };

	meet(_metadata, self);
	lose_link(_metadata, self);
	lister.fd = self->fd;
	lister.peer = self->peer;
	self->unanswered = KXFER_WIRE_LIST;
	self->hello_ms = 1000;
	list_peer(&lister);
	TH_LOG("1500 ms were %llu ms", (unsigned long long)lister.took);
	EXPECT_EQ(-ETIMEDOUT, lister.ret);
	EXPECT_GT(1500 + SLACK_MS, lister.took);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile responders and their callers: a responder answers keep-alives, so that its link
 * lives, and nothing else, or it sends nonsense. Calls and close() end in time, and its answers
 * are checked before a caller sees them.
 */
#include <endian.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH		4096
#define NR_TARGETS	4
/* Limits for a link whose peer delays something, with its teardown, on a slow machine. */
#define RELEASE_MS	16000	/* a wait of 10 s */
#define NOTIFY_MS	16000	/* 8 s, checked every 2 s */
#define STUCK_MS	45000	/* 30 s */
#define LATE_MS		700	/* by then a waiting call has nudged the peer more than once */
#define NR_HANG_UPS	40	/* connections */
#define NR_OPENS_MAX	400
#define UNASKED_MS	8000	/* seen with a keep-alive at the latest, every 2 s */
#define HANG_UP_MS	20000	/* longer than making a link takes */

struct tricks {
	uint8_t unanswered;	/* type of the request that is not answered */
	uint8_t late;		/* type of the request that is answered after LATE_MS */
	uint32_t nr_keys;	/* keys are sent one by one, each late */
	uint64_t content_length;
	uint64_t cookie;
	int16_t short_by;	/* bytes that the answer to INFO is too short by */
	uint64_t ids[3];	/* ids in the answer to LIST */
	char name[64];
};

FIXTURE(server)
{
	struct raw_server server;
	struct tricks tricks;
	int fd;
	uint32_t region;
	uint32_t peer;
	uint32_t target;
	uint16_t port;
};

static int list(const struct tricks *tricks, struct kxfer_wire_list_answer *list,
		uint16_t *length)
{
	uint32_t i;

	for (i = 0; i < 3 && tricks->ids[i]; i++) {
		list->entries[i].id = htobe64(tricks->ids[i]);
		list->entries[i].length = htobe64(LENGTH);
		memcpy(list->entries[i].name, tricks->name, sizeof(tricks->name));
	}
	list->nr = htobe32(i);
	*length = sizeof(*list) + i * sizeof(list->entries[0]);
	return KXFER_WIRE_OK;
}

static int one_late_key(struct raw_server *server, struct kxfer_wire_keys_answer *keys,
			uint16_t *length)
{
	kx_sleep_ms(200);
	keys->nr = htobe32(1);
	keys->keys[0].addr = htobe64((uintptr_t)server->window);
	keys->keys[0].rkey = htobe32(server->window_mr->rkey);
	keys->keys[0].length = htobe32(1);
	*length = sizeof(*keys) + sizeof(keys->keys[0]);
	return KXFER_WIRE_OK;
}

static int answer(struct raw_server *server, const struct kxfer_wire_header *request,
		  const void *payload, void *answer, uint16_t *length)
{
	struct tricks *tricks = server->context;
	struct kxfer_wire_grant_answer *grant = answer;
	struct kxfer_wire_info_answer *info = answer;
	int status;

	if (request->type == tricks->unanswered)
		return -1;
	if (request->type == tricks->late)
		kx_sleep_ms(LATE_MS);
	if (request->type == KXFER_WIRE_LIST)
		return list(tricks, answer, length);
	if (request->type == KXFER_WIRE_KEYS && tricks->nr_keys)
		return one_late_key(server, answer, length);
	status = raw_default_answer(server, request, answer, length);
	if (request->type == KXFER_WIRE_GRANT) {
		grant->cookie = htobe64(tricks->cookie);
		grant->content.length = htobe64(tricks->content_length);
		if (tricks->nr_keys) {
			grant->nr_keys = htobe32(tricks->nr_keys);
			grant->length = htobe64(tricks->nr_keys);
		}
	} else if (request->type == KXFER_WIRE_INFO) {
		info->length = htobe64(RAW_WINDOW);
		info->cookie = htobe64(tricks->cookie);
		info->content.generation = htobe64(1);
		info->content.length = htobe64(tricks->content_length);
		*length = sizeof(*info) - tricks->short_by;
	}
	return status;
}

static atomic_bool unasked;

/* Sends an answer to nothing on the data lane, once. */
static void speak_unasked(struct raw_server *server)
{
	struct kxfer_wire_header header;

	if (!atomic_exchange(&unasked, false))
		return;
	header = raw_header(KXFER_WIRE_NOTIFY | KXFER_WIRE_ANSWER, 0, 0, 1);
	raw_post_request(&server->lanes[1], header, NULL, 0);
}

FIXTURE_SETUP(server)
{
	void *memory = kx_alloc(LENGTH);

	self->port = kx_own_port();
	strcpy(self->tricks.name, "good-name");
	raw_server_init(&self->server);
	self->server.answer = answer;
	self->server.idle = speak_unasked;
	self->server.context = &self->tricks;
	ASSERT_EQ(0, raw_server_start(&self->server, self->port));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_region_add(self->fd, memory, LENGTH, KXFER_REGION_F_WRITE, &self->region);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), self->port), &self->peer);
}

FIXTURE_TEARDOWN(server)
{
	if (self->fd >= 0)
		close(self->fd);
	raw_server_stop(&self->server);
}

static uint64_t ms_since(uint64_t before)
{
	return (kx_now_ns() - before) / 1000000;
}

/* Drops the control connection up to 3 ms after the data lane has come. */
static void hang_up(struct raw_server *server)
{
	if (!server->lanes[0].cq || !server->lanes[1].cq)
		return;
	usleep(server->nr_connections % 4 * 1000);
	raw_lane_close(&server->lanes[0]);
}

TEST_F_TIMEOUT(server, that_hangs_up_between_lanes_leaves_nothing_behind, 180)
{
	struct raw_server rude;
	struct kx_live before;
	uint32_t peer, nr_failed = 0;
	int i;

	raw_server_init(&rude);
	rude.idle = hang_up;
	ASSERT_EQ(0, kx_live_take(self->fd, &before));
	ASSERT_EQ(0, raw_server_start(&rude, self->port + 2));
	/* A server that is late hangs up after the next open, which then makes no connection. */
	for (i = 0; i < NR_OPENS_MAX && rude.nr_connections <= NR_HANG_UPS; i++) {
		if (kx_peer_open(self->fd, kx_addr(kx_address(), self->port + 2), &peer))
			nr_failed++;
		else
			test_cmd_peer_close(self->fd, peer);
		ASSERT_EQ(NULL, kx_live_wait(self->fd, &before, HANG_UP_MS)) {
			TH_LOG("after %d opens", i + 1);
		}
	}
	TH_LOG("%u of %d opens failed, %u connections", nr_failed, i, rude.nr_connections);
	EXPECT_LT(NR_HANG_UPS, rude.nr_connections);
	raw_server_stop(&rude);
}

TEST_F_TIMEOUT(server, that_takes_no_grant_back_delays_close_but_once, 120)
{
	uint64_t began;
	int i;

	for (i = 0; i < NR_TARGETS; i++)
		test_cmd_target_open(self->fd, self->peer, "window", 0, &self->target);
	self->tricks.unanswered = KXFER_WIRE_RELEASE;
	began = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	TH_LOG("close() took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(RELEASE_MS, ms_since(began));
}

TEST_F_TIMEOUT(server, that_answers_no_NOTIFY_loses_the_link, 120)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY };
	struct kxfer_completion done;

	test_cmd_target_open(self->fd, self->peer, "window", 0, &self->target);
	self->tricks.unanswered = KXFER_WIRE_NOTIFY;
	job.target = self->target;
	test_cmd_submit(1, self->fd, &job, 1);
	test_cmd_reap(1, self->fd, &done, 1, 1, NOTIFY_MS);
	EXPECT_EQ(-ECONNRESET, done.status);
	/* After the loss was noticed, the next TARGET_OPEN connects as usual. */
	self->tricks.unanswered = 0;
	ASSERT_TRUE(kx_wait_until(!kx_target_open(self->fd, self->peer, "window", 0,
						  &job.target), KX_TIMEOUT_MS));
	test_cmd_submit(1, self->fd, &job, 1);
	test_cmd_reap(1, self->fd, &done, 1, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, done.status);
}

TEST_F_TIMEOUT(server, that_answers_no_NOTIFY_does_not_hold_up_close, 120)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY };
	uint64_t began;

	test_cmd_target_open(self->fd, self->peer, "window", 0, &self->target);
	self->tricks.unanswered = KXFER_WIRE_NOTIFY;
	job.target = self->target;
	test_cmd_submit(1, self->fd, &job, 1);
	began = kx_now_ns();
	close(self->fd);
	self->fd = -1;
	TH_LOG("close() took %llu ms", (unsigned long long)ms_since(began));
	EXPECT_GT(NOTIFY_MS, ms_since(began));
}

TEST_F_TIMEOUT(server, that_never_receives_loses_the_link, 120)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY };
	struct kxfer_completion done;
	uint16_t port = self->port + 1;
	struct raw_server deaf;
	uint32_t peer;

	if (strcmp(kx_provider(), "rxe"))
		SKIP(return, "a device that waits for a receiver: iWARP has none");
	raw_server_init(&deaf);
	deaf.no_data_receives = true;
	ASSERT_EQ(0, raw_server_start(&deaf, port));
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), port), &peer);
	test_cmd_target_open(self->fd, peer, "window", 0, &job.target);
	test_cmd_submit(1, self->fd, &job, 1);
	test_cmd_reap(1, self->fd, &done, 1, 1, STUCK_MS);
	EXPECT_EQ(-ECONNRESET, done.status);
	close(self->fd);
	self->fd = -1;
	raw_server_stop(&deaf);
}

TEST_F(server, that_is_late_is_waited_for)
{
	struct kxfer_job job = {
		.op = KXFER_OP_WRITE,
		.region = self->region,
		.length = LENGTH,
	};
	struct kxfer_completion done;
	uint64_t began = kx_now_ns();

	self->tricks.late = KXFER_WIRE_GRANT;
	test_cmd_target_open(self->fd, self->peer, "window", 0, &self->target);
	EXPECT_LE(LATE_MS, ms_since(began));
	job.target = self->target;
	test_cmd_submit(1, self->fd, &job, 1);
	ASSERT_EQ(1, kx_reap(self->fd, &done, 1, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(0, done.status);
}

TEST_F_TIMEOUT(server, that_tells_its_keys_one_by_one_does_not_stretch_the_call, 60)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = self->peer,
		.timeout_ms = 1000,
		.name = "window",
	};
	uint64_t began = kx_now_ns();

	self->tricks.nr_keys = 100;
	EXPECT_EQ(-ETIMEDOUT, kx_call(self->fd, KXFER_TARGET_OPEN, &cmd));
	EXPECT_GT(5000, ms_since(began));
}

static int list_peer(int fd, uint32_t peer)
{
	struct kxfer_peer_export exports[8];
	uint64_t cursor = 0;

	return kx_peer_list(fd, peer, exports, 8, &cursor);
}

/* The CQ of a lane with nothing under way is not armed. */
TEST_F(server, that_speaks_unasked_on_an_idle_lane_loses_the_link)
{
	struct kxfer_job job = {
		.op = KXFER_OP_READ,
		.region = self->region,
		.length = LENGTH,
	};
	struct kxfer_completion done;
	uint64_t errors;

	test_cmd_target_open(self->fd, self->peer, "window", 0, &job.target);
	test_cmd_submit(1, self->fd, &job, 1);
	ASSERT_EQ(1, kx_reap(self->fd, &done, 1, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(0, done.status);
	errors = kx_counter(self->fd, "protocol_errors");
	atomic_store(&unasked, true);
	EXPECT_TRUE(kx_wait_until(kx_counter(self->fd, "protocol_errors") > errors, UNASKED_MS));
}

TEST_F(server, that_lists_in_order_is_believed)
{
	memcpy(self->tricks.ids, (uint64_t[]){ 1, 2, 7 }, sizeof(self->tricks.ids));
	EXPECT_EQ(3, list_peer(self->fd, self->peer));
}

TEST_F(server, that_lists_in_circles_breaks_the_protocol)
{
	memcpy(self->tricks.ids, (uint64_t[]){ 1, 2, 2 }, sizeof(self->tricks.ids));
	EXPECT_EQ(-EPROTO, list_peer(self->fd, self->peer));
}

TEST_F(server, that_lists_a_name_for_terminals_breaks_the_protocol)
{
	self->tricks.ids[0] = 1;
	strcpy(self->tricks.name, "\033[2Jname");
	EXPECT_EQ(-EPROTO, list_peer(self->fd, self->peer));
}

TEST_F(server, that_lists_a_name_without_end_breaks_the_protocol)
{
	self->tricks.ids[0] = 1;
	memset(self->tricks.name, 'x', sizeof(self->tricks.name));
	EXPECT_EQ(-EPROTO, list_peer(self->fd, self->peer));
}

TEST_F(server, with_more_content_than_the_export_breaks_the_protocol)
{
	self->tricks.content_length = RAW_WINDOW + 1;
	test_err_target_open(EPROTO, self->fd, self->peer, "window", 0, &self->target);
}

TEST_F(server, with_more_content_later_breaks_the_protocol)
{
	struct kxfer_content content;

	self->tricks.content_length = RAW_WINDOW;
	test_cmd_target_open(self->fd, self->peer, "window", 0, &self->target);
	test_cmd_target_info(self->fd, self->target, 0, KX_TIMEOUT_MS, &content);
	EXPECT_EQ(RAW_WINDOW, content.length);
	self->tricks.content_length = RAW_WINDOW + 1;
	test_err_target_info(EPROTO, self->fd, self->target, 0, KX_TIMEOUT_MS, &content);
}

static int ask_info(int fd, uint32_t target, uint64_t *cookie)
{
	struct kxfer_target_info info = {
		.size = sizeof(info),
		.target = target,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int ret = kx_call(fd, KXFER_TARGET_INFO, &info);

	*cookie = info.cookie;
	return ret;
}

/* Every value is a cookie, and a peer may say another later. */
TEST_F(server, with_any_cookie_is_believed)
{
	static const uint64_t cookies[] = { UINT64_MAX, 0, 1ULL << 63, 1 };
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = self->peer,
		.timeout_ms = KX_TIMEOUT_MS,
		.name = "window",
	};
	uint64_t cookie;
	size_t i;

	self->tricks.cookie = 0x0123456789abcdefULL;
	ASSERT_EQ(0, kx_call(self->fd, KXFER_TARGET_OPEN, &cmd));
	EXPECT_EQ(0x0123456789abcdefULL, cmd.cookie);
	for (i = 0; i < sizeof(cookies) / sizeof(*cookies); i++) {
		self->tricks.cookie = cookies[i];
		EXPECT_EQ(0, ask_info(self->fd, cmd.target, &cookie));
		EXPECT_EQ(cookies[i], cookie);
	}
}

TEST_F(server, whose_answer_to_INFO_has_another_length_is_not_believed)
{
	static const int16_t cuts[] = { 1, 8, 56, sizeof(struct kxfer_wire_info_answer), -1, -8 };
	uint64_t cookie;
	size_t i;

	test_cmd_target_open(self->fd, self->peer, "window", 0, &self->target);
	self->tricks.cookie = 5;
	for (i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		self->tricks.short_by = cuts[i];
		EXPECT_EQ(-EPROTO, ask_info(self->fd, self->target, &cookie));
		EXPECT_EQ(0, cookie);
	}
	self->tricks.short_by = 0;
	EXPECT_EQ(0, ask_info(self->fd, self->target, &cookie));
	EXPECT_EQ(5, cookie);
}

/* ---- the first keys, with the answer to GRANT ---- */

/*
 * Every key covers a byte of the window. The answer to KEYS brings one of them.
 */
struct first_keys {
	bool odd;		/* the responder has not agreed on them */
	uint32_t rights;	/* 0: as raw_default_answer() */
	uint32_t announced;	/* keys of the export, a byte each */
	uint32_t claimed;	/* keys of the page as it says */
	uint32_t bytes;		/* bytes of the page */
	int more_bytes;		/* bytes that a key covers more than one */
	uint64_t addr;		/* 0: that of the window */
	uint32_t late_ms;	/* delay of the answer to GRANT */
};

#define PAGE_OF(nr)	(sizeof(struct kxfer_wire_keys_answer) +	\
			 (nr) * sizeof(struct kxfer_wire_key))

FIXTURE(first_keys)
{
	struct raw_server server;
	struct first_keys first;
	uint32_t nr_requests;	/* KEYS */
	atomic_uint nr_released;
	int fd;
	uint32_t peer;
	uint32_t target;
};

FIXTURE_VARIANT(first_keys)
{
	struct first_keys first;
	int error;
	uint32_t nr_requests;
};

#define FIRST_KEYS(name, wanted_error, wanted_requests, ...)		\
FIXTURE_VARIANT_ADD(first_keys, name)					\
{									\
	.first = { __VA_ARGS__ },					\
	.error = wanted_error,						\
	.nr_requests = wanted_requests,					\
}

FIRST_KEYS(all, 0, 0, .announced = 3, .claimed = 3, .bytes = PAGE_OF(3));
FIRST_KEYS(some, 0, 1, .announced = 3, .claimed = 2, .bytes = PAGE_OF(2));
FIRST_KEYS(none, 0, 2, .announced = 2);
FIRST_KEYS(too_many, EPROTO, 0, .announced = 2, .claimed = 3, .bytes = PAGE_OF(3));
FIRST_KEYS(more_than_fit, EPROTO, 0, .announced = UINT16_MAX, .claimed = UINT16_MAX,
	   .bytes = PAGE_OF(3));
FIRST_KEYS(fewer_than_said, EPROTO, 0, .announced = 3, .claimed = 3, .bytes = PAGE_OF(2));
FIRST_KEYS(more_than_said, EPROTO, 0, .announced = 3, .claimed = 2, .bytes = PAGE_OF(3));
FIRST_KEYS(page_without_keys, EPROTO, 0, .announced = 3, .bytes = PAGE_OF(0));
FIRST_KEYS(half_a_page, EPROTO, 0, .announced = 3, .claimed = 3, .bytes = 4);
FIRST_KEYS(half_a_key, EPROTO, 0, .announced = 1, .claimed = 1, .bytes = PAGE_OF(1) - 8);
FIRST_KEYS(beyond_the_end, EPROTO, 0, .announced = 2, .claimed = 2, .bytes = PAGE_OF(2),
	   .more_bytes = 1);
FIRST_KEYS(empty, EPROTO, 0, .announced = 2, .claimed = 2, .bytes = PAGE_OF(2),
	   .more_bytes = -1);
FIRST_KEYS(that_wrap, EPROTO, 0, .announced = 2, .claimed = 2, .bytes = PAGE_OF(2),
	   .addr = UINT64_MAX);
FIRST_KEYS(of_a_mailbox, EPROTO, 0, .claimed = 1, .bytes = PAGE_OF(1),
	   .rights = KXFER_RIGHT_SEND);
FIRST_KEYS(not_agreed_on, EPROTO, 0, .odd = true, .announced = 2, .claimed = 2,
	   .bytes = PAGE_OF(2));

static void write_page(struct raw_server *server, const struct first_keys *first,
		       struct kxfer_wire_keys_answer *page)
{
	uint32_t i;

	page->nr = htobe32(first->claimed);
	for (i = 0; PAGE_OF(i) < first->bytes; i++) {
		page->keys[i].addr = htobe64(first->addr ?: (uintptr_t)server->window);
		page->keys[i].rkey = htobe32(server->window_mr->rkey);
		page->keys[i].length = htobe32(1 + first->more_bytes);
	}
}

static int answer_with_keys(struct raw_server *server, const struct kxfer_wire_header *request,
			    const void *payload, void *answer, uint16_t *length)
{
	FIXTURE_DATA(first_keys) *self = server->context;
	struct kxfer_wire_grant_answer *grant = answer;
	struct kxfer_wire_keys_answer *keys = answer;
	int status = raw_default_answer(server, request, answer, length);

	if (request->type == KXFER_WIRE_RELEASE) {
		self->nr_released++;
	} else if (request->type == KXFER_WIRE_GRANT) {
		kx_sleep_ms(self->first.late_ms);
		grant->nr_keys = htobe32(self->first.announced);
		grant->length = htobe64(self->first.announced ?: 1);
		if (self->first.rights)
			grant->rights = htobe32(self->first.rights);
		write_page(server, &self->first, (void *)(grant + 1));
		*length = sizeof(*grant) + self->first.bytes;
	} else if (request->type == KXFER_WIRE_KEYS) {
		self->nr_requests++;
		keys->keys[0].length = htobe32(1);
	}
	return status;
}

FIXTURE_SETUP(first_keys)
{
	self->first = variant->first;
	raw_server_init(&self->server);
	self->server.answer = answer_with_keys;
	self->server.context = self;
	if (!variant->first.odd)
		self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_FIRST_KEYS);
	ASSERT_EQ(0, raw_server_start(&self->server, kx_own_port()));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), kx_own_port()), &self->peer);
}

FIXTURE_TEARDOWN(first_keys)
{
	close(self->fd);
	raw_server_stop(&self->server);
}

TEST_F(first_keys, are_believed_if_they_make_sense)
{
	struct kxfer_job job = { .op = KXFER_OP_READ };
	struct kxfer_completion done;
	uint8_t *memory = kx_alloc(LENGTH);

	EXPECT_EQ(-variant->error, kx_target_open(self->fd, self->peer, "window", 0,
						  &self->target));
	EXPECT_EQ(variant->nr_requests, self->nr_requests);
	if (variant->error)
		return;
	self->server.window[0] = 0x5a;
	test_cmd_region_add(self->fd, memory, LENGTH, KXFER_REGION_F_WRITE, &job.region);
	job.target = self->target;
	job.length = variant->first.announced;
	test_cmd_submit(1, self->fd, &job, 1);
	ASSERT_EQ(1, kx_reap(self->fd, &done, 1, 1, KX_TIMEOUT_MS));
	EXPECT_EQ(0, done.status);
	EXPECT_EQ(0x5a, memory[0]);
	EXPECT_EQ(0x5a, memory[job.length - 1]);
}

/* A caller that gives up takes no keys, and its grant is given back when it comes. */
TEST_F(first_keys, that_come_too_late_do_not_keep_the_grant)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = self->peer,
		.timeout_ms = LATE_MS / 2,
		.name = "window",
	};
	uint64_t end = kx_deadline_ns(KX_TIMEOUT_MS);

	if (variant->error)
		SKIP(return, "a grant that makes no sense ends the link");
	self->first.late_ms = LATE_MS;
	EXPECT_EQ(-ETIMEDOUT, kx_call(self->fd, KXFER_TARGET_OPEN, &cmd));
	while (!self->nr_released && kx_now_ns() < end)
		kx_sleep_ms(10);
	EXPECT_EQ(1, self->nr_released);
}

TEST_HARNESS_MAIN

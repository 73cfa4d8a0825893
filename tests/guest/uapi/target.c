// SPDX-License-Identifier: GPL-2.0
/*
 * TARGET_OPEN, TARGET_CLOSE and TARGET_INFO: names, rights, content, withdrawal.
 */
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/fault.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH		(64UL << 10)
#define NR_OPENERS	6	/* of the 8 requests of a link */
#define LATE_MS		100

FIXTURE(target)
{
	struct kx_pair pair;
	uint32_t id;
	struct kxfer_target_open cmd;
};

FIXTURE_SETUP(target)
{
	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->cmd = (struct kxfer_target_open) {
		.size = sizeof(self->cmd),
		.peer = self->pair.peer,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	strcpy((char *)self->cmd.name, self->pair.name);
}

FIXTURE_TEARDOWN(target)
{
	kx_pair_close(&self->pair);
}

static int open_target(int fd, struct kxfer_target_open *cmd)
{
	return kx_call(fd, KXFER_TARGET_OPEN, cmd);
}

TEST_F(target, tells_what_is_granted)
{
	test_cmd_export_set(self->pair.server, self->pair.export_id, 5, NULL, NULL);
	ASSERT_EQ(0, open_target(self->pair.client, &self->cmd));
	EXPECT_LT(0, self->cmd.target);
	EXPECT_EQ(KXFER_RIGHT_READ | KXFER_RIGHT_WRITE |
		  (kx_has_atomics() ? KXFER_RIGHT_ATOMIC : 0), self->cmd.granted);
	EXPECT_LE(1, self->cmd.nr_keys);
	EXPECT_EQ(LENGTH, self->cmd.length);
	EXPECT_EQ(1, self->cmd.content.generation);
	EXPECT_EQ(5, self->cmd.content.length);
}

TEST_F(target, with_fewer_rights_has_fewer)
{
	self->cmd.rights = KXFER_RIGHT_READ;
	ASSERT_EQ(0, open_target(self->pair.client, &self->cmd));
	EXPECT_EQ(KXFER_RIGHT_READ, self->cmd.granted);
	test_err_transfer(EACCES, self->pair.client, KXFER_OP_WRITE, self->pair.client_region,
			  0, self->cmd.target, 0, 1);
	test_cmd_transfer(self->pair.client, KXFER_OP_READ, self->pair.client_region, 0,
			  self->cmd.target, 0, 1);
}

/* Atomics depend on the exporter's device; a request for a missing right is refused. */
TEST_F(target, has_atomics_if_the_device_has)
{
	struct kxfer_peer_export exports[8];
	uint32_t export_id, nr = 0;
	uint64_t cursor = 0;
	int n, i;

	test_cmd_export_add(self->pair.server, self->pair.server_region, 0, LENGTH,
			    KXFER_RIGHT_ATOMIC, "words", &export_id);
	n = kx_peer_list(self->pair.client, self->pair.peer, exports, 8, &cursor);
	for (i = 0; i < n; i++)
		nr += !strcmp((char *)exports[i].name, "words") &&
		      exports[i].rights == KXFER_RIGHT_ATOMIC;
	if (kx_has_atomics()) {
		EXPECT_EQ(1, nr);
		test_cmd_target_open(self->pair.client, self->pair.peer, "words",
				     KXFER_RIGHT_ATOMIC, &self->id);
		test_cmd_target_open(self->pair.client, self->pair.peer, "words", 0,
				     &self->id);
	} else {
		EXPECT_EQ(0, nr);
		test_err_target_open(EOPNOTSUPP, self->pair.client, self->pair.peer, "words",
				     KXFER_RIGHT_ATOMIC, &self->id);
		test_err_target_open(EOPNOTSUPP, self->pair.client, self->pair.peer, "words",
				     0, &self->id);
	}
	/* A right that the export lacks is refused whatever the device has. */
	test_err_target_open(EACCES, self->pair.client, self->pair.peer, "words",
			     KXFER_RIGHT_READ, &self->id);
	test_err_target_open(EACCES, self->pair.client, self->pair.peer, "words",
			     KXFER_RIGHT_ALL, &self->id);
}

TEST_F(target, that_does_not_exist_is_not_found)
{
	test_err_target_open(ENOENT, self->pair.client, self->pair.peer, "nothing", 0,
			     &self->id);
}

TEST_F(target, needs_a_peer_of_its_session)
{
	test_err_target_open(ENOENT, self->pair.client, 77, self->pair.name, 0, &self->id);
	test_err_target_open(ENOENT, self->pair.server, self->pair.peer, self->pair.name, 0,
			     &self->id);
}

TEST_F(target, needs_a_wellformed_name)
{
	memset(self->cmd.name, 0, sizeof(self->cmd.name));
	EXPECT_EQ(-EINVAL, open_target(self->pair.client, &self->cmd));
	memset(self->cmd.name, 'n', sizeof(self->cmd.name));
	EXPECT_EQ(-EINVAL, open_target(self->pair.client, &self->cmd));
	memset(self->cmd.name, 0, sizeof(self->cmd.name));
	self->cmd.name[0] = 'n';
	self->cmd.name[KXFER_NAME_MAX] = 'n';
	EXPECT_EQ(-EINVAL, open_target(self->pair.client, &self->cmd));
}

TEST_F(target, refuses_unknown_rights)
{
	self->cmd.rights = KXFER_RIGHT_ANY + 1;
	EXPECT_EQ(-EOPNOTSUPP, open_target(self->pair.client, &self->cmd));
}

TEST_F(target, needs_a_timeout_in_range)
{
	self->cmd.timeout_ms = 0;
	EXPECT_EQ(-EINVAL, open_target(self->pair.client, &self->cmd));
	self->cmd.timeout_ms = 60001;
	EXPECT_EQ(-EINVAL, open_target(self->pair.client, &self->cmd));
}

TEST_F(target, is_closed_once_and_by_its_session)
{
	test_err_target_close(ENOENT, self->pair.server, self->pair.target);
	test_cmd_target_close(self->pair.client, self->pair.target);
	test_err_target_close(ENOENT, self->pair.client, self->pair.target);
	test_err_target_close(ENOENT, self->pair.client, 0);
}

/* A target that an earlier test closed may still be ending. */
TEST_F(target, that_is_closed_leaves_nothing_at_the_exporter)
{
	uint64_t exposures = kx_counter(self->pair.client, "live_exposures");
	uint64_t grants = kx_counter(self->pair.client, "live_grants");

	test_cmd_target_close(self->pair.client, self->pair.target);
	EXPECT_TRUE(kx_wait_until(kx_counter(self->pair.client, "live_exposures") < exposures,
				  KX_TIMEOUT_MS));
	EXPECT_TRUE(kx_wait_until(kx_counter(self->pair.client, "live_grants") < grants,
				  KX_TIMEOUT_MS));
}

TEST_F(target, may_be_opened_many_times)
{
	uint32_t ids[100];
	int i;

	for (i = 0; i < 100; i++)
		test_cmd_target_open(self->pair.client, self->pair.peer, self->pair.name, 0,
				     &ids[i]);
	for (i = 0; i < 100; i++)
		test_cmd_target_close(self->pair.client, ids[i]);
	test_cmd_transfer(self->pair.client, KXFER_OP_READ, self->pair.client_region, 0,
			  self->pair.target, 0, LENGTH);
}

struct opener {
	pthread_t thread;
	const struct kx_pair *pair;
	int ret;
};

static void *open_one(void *argument)
{
	struct opener *opener = argument;
	uint32_t target;

	opener->ret = kx_target_open(opener->pair->client, opener->pair->peer,
				     opener->pair->name, 0, &target);
	return NULL;
}

/* The exporter handles one GRANT of a link at a time. All others are there before it is done. */
TEST_F(target, opened_by_many_at_once_is_granted_to_all)
{
	struct opener openers[NR_OPENERS];
	int i;

	if (!fault_available())
		SKIP(return, "needs the module's sites in debugfs");
	ASSERT_EQ(0, delay_arm("CONTROL_WORK", LATE_MS, NR_OPENERS));
	for (i = 0; i < NR_OPENERS; i++) {
		openers[i].pair = &self->pair;
		ASSERT_EQ(0, pthread_create(&openers[i].thread, NULL, open_one, &openers[i]));
	}
	for (i = 0; i < NR_OPENERS; i++)
		pthread_join(openers[i].thread, NULL);
	fault_reset();
	for (i = 0; i < NR_OPENERS; i++)
		EXPECT_EQ(0, openers[i].ret);
}

TEST_F(target, on_the_own_node_in_one_session_works)
{
	uint32_t peer;

	test_cmd_peer_open(self->pair.server, kx_addr(kx_address(), KXFER_PORT), &peer);
	test_cmd_target_open(self->pair.server, peer, self->pair.name, 0, &self->id);
	test_cmd_transfer(self->pair.server, KXFER_OP_READ, self->pair.server_region, 0,
			  self->id, LENGTH / 2, LENGTH / 2);
}

/* ---- the cookie of the export ---- */

#define COOKIE	0xfedcba9876543210ULL

/* An export, or a mailbox, with a cookie. */
static int add_with_cookie(const struct kx_pair *pair, uint64_t cookie, bool mailbox)
{
	struct kxfer_export_add memory = {
		.size = sizeof(memory),
		.region = pair->server_region,
		.rights = KXFER_RIGHT_READ,
		.length = LENGTH,
		.name = "with-cookie",
		.cookie = cookie,
	};
	struct kxfer_mailbox_add box = {
		.size = sizeof(box),
		.capacity = 1,
		.max_bytes = 1,
		.name = "with-cookie",
		.cookie = cookie,
	};

	return mailbox ? kx_call(pair->server, KXFER_MAILBOX_ADD, &box) :
			 kx_call(pair->server, KXFER_EXPORT_ADD, &memory);
}

static int ask_info(int fd, uint32_t target, struct kxfer_target_info *info)
{
	*info = (struct kxfer_target_info) {
		.size = sizeof(*info),
		.target = target,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	return kx_call(fd, KXFER_TARGET_INFO, info);
}

static void expect_cookie(struct __test_metadata *_metadata, FIXTURE_DATA(target) *self,
			  uint64_t cookie)
{
	struct kxfer_target_info info;

	self->cmd.cookie = 1;
	ASSERT_EQ(0, open_target(self->pair.client, &self->cmd));
	EXPECT_EQ(cookie, self->cmd.cookie);
	ASSERT_EQ(0, ask_info(self->pair.client, self->cmd.target, &info));
	EXPECT_EQ(cookie, info.cookie);
}

TEST_F(target, tells_the_cookie_of_an_export)
{
	strcpy((char *)self->cmd.name, "with-cookie");
	ASSERT_EQ(0, add_with_cookie(&self->pair, COOKIE, false));
	expect_cookie(_metadata, self, COOKIE);
}

TEST_F(target, tells_the_cookie_of_a_mailbox)
{
	strcpy((char *)self->cmd.name, "with-cookie");
	ASSERT_EQ(0, add_with_cookie(&self->pair, COOKIE, true));
	expect_cookie(_metadata, self, COOKIE);
}

TEST_F(target, without_a_cookie_tells_0)
{
	expect_cookie(_metadata, self, 0);
	memset(self->cmd.name, 0, sizeof(self->cmd.name));
	strcpy((char *)self->cmd.name, KXFER_PING_NAME);
	expect_cookie(_metadata, self, 0);
}

/* A caller without room for the cookie gets all else. */
TEST_F(target, of_an_older_caller_tells_no_cookie)
{
	struct kxfer_target_info info = {
		.size = offsetof(struct kxfer_target_info, cookie),
		.timeout_ms = KX_TIMEOUT_MS,
		.cookie = 7,
	};

	strcpy((char *)self->cmd.name, "with-cookie");
	ASSERT_EQ(0, add_with_cookie(&self->pair, COOKIE, false));
	self->cmd.size = offsetof(struct kxfer_target_open, cookie);
	self->cmd.cookie = 7;
	ASSERT_EQ(0, open_target(self->pair.client, &self->cmd));
	EXPECT_EQ(LENGTH, self->cmd.length);
	EXPECT_EQ(7, self->cmd.cookie);
	info.target = self->cmd.target;
	ASSERT_EQ(0, kx_call(self->pair.client, KXFER_TARGET_INFO, &info));
	EXPECT_EQ(LENGTH, info.length);
	EXPECT_EQ(7, info.cookie);
}

/* ---- the built-in export ---- */

static int open_peer_with_loss(struct kx_pair *pair, uint32_t *id)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = 1000,
	};
	int ret = kx_call(pair->client, KXFER_PEER_OPEN, &cmd);

	*id = cmd.peer;
	return ret;
}

TEST_F(target, tells_which_export_it_is_of)
{
	struct kxfer_target_open first, again, ping;

	ASSERT_EQ(0, open_peer_with_loss(&self->pair, &self->cmd.peer));
	first = self->cmd;
	again = self->cmd;
	ping = self->cmd;
	memset(ping.name, 0, sizeof(ping.name));
	strcpy((char *)ping.name, KXFER_PING_NAME);
	ASSERT_EQ(0, open_target(self->pair.client, &first));
	EXPECT_NE(0, first.node);
	EXPECT_NE(0, first.export_id);
	ASSERT_EQ(0, open_peer_with_loss(&self->pair, &again.peer));
	ASSERT_EQ(0, open_target(self->pair.client, &again));
	EXPECT_EQ(first.node, again.node);
	EXPECT_EQ(first.export_id, again.export_id);
	ASSERT_EQ(0, open_target(self->pair.client, &ping));
	EXPECT_EQ(first.node, ping.node);
	EXPECT_NE(first.export_id, ping.export_id);
	/* Another one of that name. */
	test_cmd_export_del(self->pair.server, self->pair.export_id);
	ASSERT_EQ(0, kx_export_add(self->pair.server, self->pair.server_region, 0, LENGTH,
				   KXFER_RIGHT_ALL, self->pair.name, &self->pair.export_id));
	ASSERT_EQ(0, open_target(self->pair.client, &again));
	EXPECT_EQ(first.node, again.node);
	EXPECT_NE(first.export_id, again.export_id);
}

TEST_F(target, of_a_peer_without_loss_does_not_tell_which_export_it_is_of)
{
	self->cmd.node = 1;
	self->cmd.export_id = 1;
	ASSERT_EQ(0, open_target(self->pair.client, &self->cmd));
	EXPECT_EQ(0, self->cmd.node);
	EXPECT_EQ(0, self->cmd.export_id);
}

TEST_F(target, of_ping_is_read_only_and_as_described)
{
	uint32_t i, wrong = 0;

	memset(self->cmd.name, 0, sizeof(self->cmd.name));
	strcpy((char *)self->cmd.name, KXFER_PING_NAME);
	ASSERT_EQ(0, open_target(self->pair.client, &self->cmd));
	EXPECT_EQ(KXFER_RIGHT_READ, self->cmd.granted);
	EXPECT_EQ(KXFER_PING_SIZE, self->cmd.length);
	test_cmd_transfer(self->pair.client, KXFER_OP_READ, self->pair.client_region, 0,
			  self->cmd.target, 0, KXFER_PING_SIZE);
	for (i = 0; i < KXFER_PING_SIZE; i++)
		wrong += self->pair.client_memory[i] != (uint8_t)(i * 7 + i / 256);
	EXPECT_EQ(0, wrong);
}

TEST_F(target, of_ping_cannot_be_written)
{
	test_err_target_open(EACCES, self->pair.client, self->pair.peer, KXFER_PING_NAME,
			     KXFER_RIGHT_WRITE, &self->id);
	test_cmd_target_open(self->pair.client, self->pair.peer, KXFER_PING_NAME, 0,
			     &self->id);
	test_err_transfer(EACCES, self->pair.client, KXFER_OP_WRITE, self->pair.client_region,
			  0, self->id, 0, 1);
	test_err_notify(EACCES, self->pair.client, self->id, 1);
}

/* ---- content ---- */

TEST_F(target, info_tells_the_content_of_now)
{
	struct kxfer_content content;
	uint8_t digest[KXFER_SHA256_SIZE] = { 9, 8, 7 };

	test_cmd_target_info(self->pair.client, self->pair.target, 0, 1000, &content);
	EXPECT_EQ(0, content.generation);
	test_cmd_export_set(self->pair.server, self->pair.export_id, 100, digest, NULL);
	test_cmd_target_info(self->pair.client, self->pair.target, 0, 1000, &content);
	EXPECT_EQ(1, content.generation);
	EXPECT_EQ(100, content.length);
	EXPECT_EQ(0, memcmp(digest, content.sha256, sizeof(digest)));
}

TEST_F(target, info_does_not_wait_for_what_has_come)
{
	struct kxfer_content content;

	test_cmd_export_set(self->pair.server, self->pair.export_id, 1, NULL, NULL);
	test_cmd_export_set(self->pair.server, self->pair.export_id, 2, NULL, NULL);
	test_cmd_target_info(self->pair.client, self->pair.target, 2, 1000, &content);
	EXPECT_EQ(2, content.generation);
}

TEST_F(target, info_times_out_without_new_content)
{
	uint64_t began = kx_now_ns();

	test_cmd_export_set(self->pair.server, self->pair.export_id, 1, NULL, NULL);
	test_err_target_info(ETIMEDOUT, self->pair.client, self->pair.target, 2, 100, NULL);
	EXPECT_LE(kx_least_ns(100), kx_now_ns() - began);
	EXPECT_GE(5000 * 1000000ULL, kx_now_ns() - began);
}

static void *set_later(void *argument)
{
	struct kx_pair *pair = argument;

	kx_sleep_ms(100);
	kx_export_set(pair->server, pair->export_id, 77, NULL, NULL);
	return NULL;
}

TEST_F(target, info_waits_for_new_content)
{
	struct kxfer_content content = { .generation = 0 };
	pthread_t thread;

	test_cmd_export_set(self->pair.server, self->pair.export_id, 1, NULL, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, set_later, &self->pair));
	test_cmd_target_info(self->pair.client, self->pair.target, 2, 10000, &content);
	EXPECT_EQ(2, content.generation);
	EXPECT_EQ(77, content.length);
	pthread_join(thread, NULL);
}

static void *withdraw_later(void *argument)
{
	struct kx_pair *pair = argument;

	kx_sleep_ms(100);
	kx_export_del(pair->server, pair->export_id);
	return NULL;
}

TEST_F(target, info_ends_when_the_export_is_withdrawn)
{
	pthread_t thread;

	test_cmd_export_set(self->pair.server, self->pair.export_id, 1, NULL, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, withdraw_later, &self->pair));
	test_err_target_info(EKEYREVOKED, self->pair.client, self->pair.target, 2, 10000,
			     NULL);
	pthread_join(thread, NULL);
}

TEST_F(target, info_needs_a_target_and_a_timeout_in_range)
{
	test_err_target_info(ENOENT, self->pair.client, 77, 0, 1000, NULL);
	test_err_target_info(EINVAL, self->pair.client, self->pair.target, 0, 0, NULL);
	test_err_target_info(EINVAL, self->pair.client, self->pair.target, 0, 3600001, NULL);
}

TEST_F(target, info_is_interrupted_by_a_signal)
{
	test_cmd_export_set(self->pair.server, self->pair.export_id, 1, NULL, NULL);
	ASSERT_EQ(0, kx_alarms(50, 0));
	test_err_target_info(EINTR, self->pair.client, self->pair.target, 2, 10000, NULL);
	ASSERT_EQ(0, kx_alarms(0, 0));
}

/* ---- withdrawal ---- */

TEST_F(target, of_a_withdrawn_export_ends_jobs)
{
	test_cmd_export_del(self->pair.server, self->pair.export_id);
	test_err_transfer(EKEYREVOKED, self->pair.client, KXFER_OP_READ,
			  self->pair.client_region, 0, self->pair.target, 0, 1);
	test_err_notify(EKEYREVOKED, self->pair.client, self->pair.target, 1);
	test_err_target_info(EKEYREVOKED, self->pair.client, self->pair.target, 0, 1000,
			     NULL);
	test_err_target_open(ENOENT, self->pair.client, self->pair.peer, self->pair.name, 0,
			     &self->id);
	test_cmd_target_close(self->pair.client, self->pair.target);
}

TEST_F(target, of_the_next_export_of_that_name_is_another)
{
	test_cmd_export_del(self->pair.server, self->pair.export_id);
	test_cmd_export_add(self->pair.server, self->pair.server_region, 0, LENGTH,
			    KXFER_RIGHT_READ, self->pair.name, &self->pair.export_id);
	test_err_transfer(EKEYREVOKED, self->pair.client, KXFER_OP_READ,
			  self->pair.client_region, 0, self->pair.target, 0, 1);
	test_cmd_target_open(self->pair.client, self->pair.peer, self->pair.name, 0,
			     &self->id);
	test_cmd_transfer(self->pair.client, KXFER_OP_READ, self->pair.client_region, 0,
			  self->id, 0, LENGTH);
}

TEST_F_TIMEOUT(target, beyond_the_number_allowed_is_refused, 300)
{
	struct kxfer_query query;
	uint32_t i;
	int ret = 0;

	test_cmd_query(self->pair.client, &query);
	for (i = 1; !ret && i < query.max_targets; i++)
		ret = kx_target_open(self->pair.client, self->pair.peer, self->pair.name, 0,
				     &self->id);
	ASSERT_EQ(0, ret);
	test_err_target_open(EDQUOT, self->pair.client, self->pair.peer, self->pair.name, 0,
			     &self->id);
	test_cmd_target_close(self->pair.client, self->pair.target);
	test_cmd_target_open(self->pair.client, self->pair.peer, self->pair.name, 0,
			     &self->id);
}

/* ---- a peer with invalid answers ---- */

struct nonsense {
	uint64_t length;
	uint32_t rights;
	uint32_t nr_keys;
	uint64_t grant;
	uint64_t addr;
	uint32_t key_length;
	uint32_t keys_told;	/* count in the KEYS answer */
	int16_t short_by;	/* bytes that the GRANT answer is too short by */
	int grant_status;
};

static int answer_nonsense(struct raw_server *server, const struct kxfer_wire_header *request,
			   const void *payload, void *answer, uint16_t *length)
{
	const struct nonsense *nonsense = server->context;
	struct kxfer_wire_grant_answer *grant = answer;
	struct kxfer_wire_keys_answer *keys = answer;
	uint32_t i, told;

	switch (request->type) {
	case KXFER_WIRE_GRANT:
		if (nonsense->grant_status)
			return nonsense->grant_status;
		grant->grant = htobe64(nonsense->grant);
		grant->exposure = htobe64(1);
		grant->length = htobe64(nonsense->length);
		grant->rights = htobe32(nonsense->rights);
		grant->nr_keys = htobe32(nonsense->nr_keys);
		*length = sizeof(*grant) - nonsense->short_by;
		return KXFER_WIRE_OK;
	case KXFER_WIRE_KEYS:
		told = nonsense->keys_told;
		keys->nr = htobe32(told);
		for (i = 0; i < told && i < 64; i++) {
			keys->keys[i].addr = htobe64(nonsense->addr);
			keys->keys[i].rkey = htobe32(0x1234);
			keys->keys[i].length = htobe32(nonsense->key_length);
		}
		*length = sizeof(*keys) + i * sizeof(keys->keys[0]);
		return KXFER_WIRE_OK;
	default:
		return KXFER_WIRE_OK;
	}
}

FIXTURE(liar)
{
	int fd;
	uint32_t peer;
	uint32_t id;
	struct raw_server server;
	struct nonsense nonsense;
	uint16_t port;
};

FIXTURE_SETUP(liar)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->port = kx_own_port();
	/* Valid answers; tests change one member. */
	self->nonsense = (struct nonsense) {
		.length = 4096,
		.rights = KXFER_RIGHT_READ,
		.nr_keys = 1,
		.grant = 1,
		.addr = 0x10000,
		.key_length = 4096,
		.keys_told = 1,
	};
	raw_server_init(&self->server);
	self->server.answer = answer_nonsense;
	self->server.context = &self->nonsense;
	ASSERT_EQ(0, raw_server_start(&self->server, self->port));
	test_cmd_peer_open(self->fd, kx_addr(kx_address(), self->port), &self->peer);
}

FIXTURE_TEARDOWN(liar)
{
	close(self->fd);
	raw_server_stop(&self->server);
}

static int open_lie(int fd, uint32_t peer, uint32_t *id)
{
	return kx_target_open(fd, peer, "lie", 0, id);
}

TEST_F(liar, that_tells_the_truth_is_believed)
{
	EXPECT_EQ(0, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, with_a_grant_of_no_length_breaks_the_protocol)
{
	self->nonsense.length = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, with_a_grant_of_no_number_breaks_the_protocol)
{
	self->nonsense.grant = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, with_no_keys_breaks_the_protocol)
{
	self->nonsense.nr_keys = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, with_too_many_keys_breaks_the_protocol)
{
	self->nonsense.nr_keys = UINT32_MAX;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, with_no_rights_breaks_the_protocol)
{
	self->nonsense.rights = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, with_unknown_rights_breaks_the_protocol)
{
	self->nonsense.rights = 1U << 9;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, that_grants_less_than_asked_breaks_the_protocol)
{
	EXPECT_EQ(-EPROTO, kx_target_open(self->fd, self->peer, "lie", KXFER_RIGHT_WRITE,
					  &self->id));
}

TEST_F(liar, with_a_short_grant_breaks_the_protocol)
{
	self->nonsense.short_by = 8;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

/* Without its last bytes, or with more of them though no keys were agreed on. */
#define GRANT_SHORT_BY(name, bytes)					\
	TEST_F(liar, with_a_grant_##name##_breaks_the_protocol)		\
	{								\
		self->nonsense.short_by = bytes;			\
		EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id)); \
	}

GRANT_SHORT_BY(that_lacks_a_byte, 1)
GRANT_SHORT_BY(without_content, sizeof(struct kxfer_wire_content))
GRANT_SHORT_BY(without_cookie_and_content, sizeof(struct kxfer_wire_content) + 8)
GRANT_SHORT_BY(of_no_bytes, sizeof(struct kxfer_wire_grant_answer))
GRANT_SHORT_BY(with_a_byte_more, -1)
GRANT_SHORT_BY(with_a_number_more, -8)

TEST_F(liar, with_an_unknown_status_breaks_the_protocol)
{
	self->nonsense.grant_status = 0x7777;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, whose_keys_do_not_make_up_the_length_breaks_the_protocol)
{
	self->nonsense.key_length = 4095;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, whose_keys_make_up_more_than_the_length_breaks_the_protocol)
{
	self->nonsense.key_length = 4097;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, whose_keys_are_empty_breaks_the_protocol)
{
	self->nonsense.key_length = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, whose_keys_wrap_around_breaks_the_protocol)
{
	self->nonsense.addr = UINT64_MAX - 100;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, that_tells_no_key_where_it_has_some_breaks_the_protocol)
{
	self->nonsense.keys_told = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, that_tells_more_keys_than_it_has_breaks_the_protocol)
{
	self->nonsense.keys_told = 2;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, that_tells_more_keys_than_it_sends_breaks_the_protocol)
{
	self->nonsense.nr_keys = 1000;
	self->nonsense.keys_told = 1000;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
}

TEST_F(liar, harms_no_other_link)
{
	struct kx_pair pair;

	ASSERT_EQ(0, kx_pair_open(&pair, LENGTH, KXFER_RIGHT_ALL));
	self->nonsense.key_length = 0;
	EXPECT_EQ(-EPROTO, open_lie(self->fd, self->peer, &self->id));
	EXPECT_EQ(0, kx_transfer(pair.client, KXFER_OP_WRITE, pair.client_region, 0,
				 pair.target, 0, LENGTH));
	kx_pair_close(&pair);
}

TEST_F(liar, refuses_a_target_with_words_of_its_own)
{
	self->nonsense.grant_status = KXFER_WIRE_NO_ENTRY;
	EXPECT_EQ(-ENOENT, open_lie(self->fd, self->peer, &self->id));
	self->nonsense.grant_status = KXFER_WIRE_NO_ACCESS;
	EXPECT_EQ(-EACCES, open_lie(self->fd, self->peer, &self->id));
	self->nonsense.grant_status = KXFER_WIRE_NO_MEMORY;
	EXPECT_EQ(-ENOMEM, open_lie(self->fd, self->peer, &self->id));
	self->nonsense.grant_status = KXFER_WIRE_QUOTA;
	EXPECT_EQ(-EDQUOT, open_lie(self->fd, self->peer, &self->id));
	self->nonsense.grant_status = KXFER_WIRE_REVOKED;
	EXPECT_EQ(-EKEYREVOKED, open_lie(self->fd, self->peer, &self->id));
}

/* An operation that this side's device lacks is not posted, whatever the peer grants. */
TEST_F(liar, that_promises_atomics_is_not_believed)
{
	char *memory = kx_alloc(4096);
	uint64_t before;
	uint32_t region;
	int at;

	ASSERT_NE(NULL, memory);
	self->nonsense.rights = KXFER_RIGHT_ALL;
	self->nonsense.addr = 0x10004;
	ASSERT_EQ(0, open_lie(self->fd, self->peer, &self->id));
	test_cmd_region_add(self->fd, memory, 4096, KXFER_REGION_F_WRITE, &region);
	before = kx_counter(self->fd, "wr_posted");
	for (at = 0; at < 4; at++)
		test_err_atomic(kx_has_atomics() ? EINVAL : EOPNOTSUPP, self->fd,
				KXFER_OP_FETCH_ADD, region, 0, self->id, at, 1, 0);
	if (!kx_has_atomics())
		test_err_atomic(EOPNOTSUPP, self->fd, KXFER_OP_COMPARE_SWAP, region, 0,
				self->id, 4, 1, 2);
	EXPECT_EQ(before, kx_counter(self->fd, "wr_posted"));
}

TEST_F(liar, with_keys_that_do_not_work_fails_the_job)
{
	char *memory = kx_alloc(4096);
	uint32_t region;
	int ret;

	ASSERT_NE(NULL, memory);
	ASSERT_EQ(0, open_lie(self->fd, self->peer, &self->id));
	test_cmd_region_add(self->fd, memory, 4096, KXFER_REGION_F_WRITE, &region);
	ret = kx_transfer(self->fd, KXFER_OP_READ, region, 0, self->id, 0, 4096);
	/* On iWARP the peer ends the connection, and the reason is lost. */
	EXPECT_TRUE(ret == -EREMOTEIO ||
		    (ret == -ECONNRESET && !strcmp(kx_provider(), "siw")));
}

/*
 * The same of a job whose target and region the session knows: its region was used with a target
 * of another peer, and a job that was refused has named this one.
 */
TEST_F(liar, with_keys_that_do_not_work_fails_a_job_of_known_objects)
{
	struct kx_pair pair;
	uint32_t peer, id;
	int ret;

	ASSERT_EQ(0, kx_pair_open(&pair, LENGTH, KXFER_RIGHT_ALL));
	test_cmd_peer_open(pair.client, kx_addr(kx_address(), self->port), &peer);
	ASSERT_EQ(0, open_lie(pair.client, peer, &id));
	ASSERT_EQ(0, kx_transfer(pair.client, KXFER_OP_READ, pair.client_region, 0, pair.target,
				 0, 64));
	ASSERT_EQ(-ERANGE, kx_transfer(pair.client, KXFER_OP_READ, pair.client_region, 0, id,
				       4096, 64));
	ret = kx_transfer(pair.client, KXFER_OP_READ, pair.client_region, 0, id, 0, 64);
	EXPECT_TRUE(ret == -EREMOTEIO ||
		    (ret == -ECONNRESET && !strcmp(kx_provider(), "siw")));
	kx_pair_close(&pair);
}

TEST_HARNESS_MAIN

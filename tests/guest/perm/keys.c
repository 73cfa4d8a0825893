// SPDX-License-Identifier: GPL-2.0
/*
 * The keys of a grant allow exactly what was granted. The peer is in user space and holds
 * rkeys, like a malicious kernel.
 *
 * The memory around the export is filled and checked after each attempt, and another link goes
 * on undisturbed. On iWARP a WRITE completes before the peer has refused it, and a refusal ends
 * the connection without a reason. So the tests check that the bytes do not change and that the
 * connection ends.
 */
#include <endian.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define PAGE	4096UL
#define LENGTH	(8 * PAGE)
#define FROM	(2 * PAGE + 100)	/* the export begins in the middle of a page */
#define BYTES	(3 * PAGE + 50)		/* the export ends in the middle of a page */
#define FILL	0xa5
#define MARK	0x5a

FIXTURE(keys)
{
	struct kx_pair pair;	/* another link */
	int fd;			/* session of the exporter */
	uint8_t *memory;
	uint32_t region;
	uint32_t export_id;
	uint16_t port;
	struct raw_link link;
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;
};

static int publish(int fd, uint32_t region, uint32_t rights, uint32_t *id)
{
	return kx_export_add(fd, region, FROM, BYTES, rights, "keys", id);
}

/* Opens the export by hand; it is short, so it has one registration. */
static int take_key(struct raw_link *link, uint32_t rights,
		    struct kxfer_wire_grant_answer *grant, struct kxfer_wire_key *key)
{
	int ret = raw_grant(link, "keys", 0, rights, grant);

	if (ret)
		return ret > 0 ? -EREMOTEIO : ret;
	ret = raw_keys(link, be64toh(grant->exposure), key, 1);
	return ret == 1 ? 0 : -EPROTO;
}

FIXTURE_SETUP(keys)
{
	uint64_t listener;

	ASSERT_EQ(0, kx_pair_open(&self->pair, PAGE, KXFER_RIGHT_ALL));
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	memset(self->memory, FILL, LENGTH);
	self->port = kx_own_port();
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), self->port), 0, &listener);
	test_cmd_region_add(self->fd, self->memory, LENGTH, KXFER_REGION_F_WRITE,
			    &self->region);
	ASSERT_EQ(0, publish(self->fd, self->region, KXFER_RIGHT_ALL, &self->export_id));
	ASSERT_EQ(0, raw_link_open(&self->link, self->port));
	ASSERT_EQ(0, take_key(&self->link, 0, &self->grant, &self->key));
}

FIXTURE_TEARDOWN(keys)
{
	EXPECT_EQ(0, kx_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region,
				 0, self->pair.target, 0, PAGE));
	raw_link_close(&self->link);
	close(self->fd);
	kx_pair_close(&self->pair);
}

static bool untouched(const uint8_t *memory)
{
	size_t i;

	for (i = 0; i < LENGTH; i++)
		if (memory[i] != FILL)
			return false;
	return true;
}

/* Tries a READ or WRITE at an offset from the key's address; a WRITE writes MARK. */
static enum ibv_wc_status try_key(struct raw_lane *lane, enum ibv_wr_opcode opcode,
				  const struct kxfer_wire_key *key, int64_t offset,
				  uint32_t length)
{
	memset(raw_scratch(lane), MARK, length);
	return raw_rdma(lane, opcode, be64toh(key->addr) + offset, be32toh(key->rkey),
			length);
}

static bool got_nothing(struct raw_lane *lane, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		if (raw_scratch(lane)[i] != MARK)
			return false;
	return true;
}

static bool completes_early(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE && !strcmp(kx_provider(), "siw");
}

/* A request fails, and costs the connection. */
#define EXPECT_FAILURE(lane, opcode, key, offset, length) ({			\
	enum ibv_wc_status status__ = try_key(lane, opcode, key, offset, length); \
										\
	EXPECT_TRUE(status__ != IBV_WC_SUCCESS || completes_early(opcode));	\
	EXPECT_TRUE(raw_dropped(lane, RAW_MS));					\
})
/* No byte moves either. */
#define EXPECT_REFUSED(lane, opcode, key, offset, length) ({			\
	EXPECT_FAILURE(lane, opcode, key, offset, length);			\
	EXPECT_TRUE(got_nothing(lane, length));					\
	EXPECT_TRUE(untouched(self->memory));					\
})

TEST_F(keys, of_a_grant_read_and_write_what_is_granted)
{
	ASSERT_EQ(BYTES, be64toh(self->grant.length));
	ASSERT_EQ(BYTES, be32toh(self->key.length));
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0,
					  1000));
	EXPECT_EQ(FILL, raw_scratch(&self->link.data)[0]);
	EXPECT_EQ(FILL, raw_scratch(&self->link.data)[999]);
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_WRITE, &self->key,
					  BYTES - 1000, 1000));
	/* A READ after the WRITE: on iWARP the WRITE is placed then. */
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0,
					  1));
	EXPECT_EQ(FILL, self->memory[FROM + BYTES - 1001]);
	EXPECT_EQ(MARK, self->memory[FROM + BYTES - 1000]);
	EXPECT_EQ(MARK, self->memory[FROM + BYTES - 1]);
	EXPECT_EQ(FILL, self->memory[FROM + BYTES]);
}

TEST_F(keys, refuse_a_read_beyond_the_end)
{
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &self->key, BYTES - 1, 2);
}

TEST_F(keys, refuse_a_read_before_the_beginning)
{
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &self->key, -1, 1);
}

TEST_F(keys, refuse_a_write_beyond_the_end)
{
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_WRITE, &self->key, BYTES - 1, 2);
}

TEST_F(keys, refuse_a_write_before_the_beginning)
{
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_WRITE, &self->key, -1, 1);
}

TEST_F(keys, refuse_a_range_that_wraps)
{
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &self->key,
		       -(int64_t)be64toh(self->key.addr) - 1, 2);
}

TEST_F(keys, refuse_a_write_with_a_grant_to_read)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;

	ASSERT_EQ(0, take_key(&self->link, KXFER_RIGHT_READ, &grant, &key));
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &key, 0, 8));
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_WRITE, &key, 0, 8);
}

TEST_F(keys, refuse_a_read_with_a_grant_to_write)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;

	if (!strcmp(kx_provider(), "siw"))
		SKIP(return, "siw lets every key be read, whatever its rights");
	ASSERT_EQ(0, take_key(&self->link, KXFER_RIGHT_WRITE, &grant, &key));
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &key, 0, 8);
}

TEST_F(keys, refuse_a_neighbouring_key)
{
	struct kxfer_wire_key guess = self->key;

	guess.rkey = htobe32(be32toh(guess.rkey) ^ 1);
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &guess, 0, 8);
}

TEST_F(keys, refuse_a_key_of_nothing)
{
	struct kxfer_wire_key guess = self->key;

	guess.rkey = 0;
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &guess, 0, 8);
}

/* ---- another link ---- */

TEST_F(keys, of_one_link_do_not_read_on_another)
{
	struct raw_link other;

	ASSERT_EQ(0, raw_link_open(&other, self->port));
	EXPECT_REFUSED(&other.data, IBV_WR_RDMA_READ, &self->key, 0, 8);
	raw_link_close(&other);
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0,
					  8));
}

TEST_F(keys, of_one_link_do_not_write_on_another)
{
	struct raw_link other;

	ASSERT_EQ(0, raw_link_open(&other, self->port));
	EXPECT_REFUSED(&other.data, IBV_WR_RDMA_WRITE, &self->key, 0, 8);
	raw_link_close(&other);
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0,
					  8));
}

TEST_F(keys, of_one_link_do_not_work_on_the_control_QP_of_another)
{
	struct raw_link other;

	ASSERT_EQ(0, raw_link_open(&other, self->port));
	EXPECT_REFUSED(&other.control, IBV_WR_RDMA_READ, &self->key, 0, 8);
	raw_link_close(&other);
}

TEST_F(keys, of_one_link_are_not_told_to_another)
{
	struct kxfer_wire_key key;
	struct raw_link other;

	ASSERT_EQ(0, raw_link_open(&other, self->port));
	EXPECT_EQ(-EREMOTEIO, raw_keys(&other, be64toh(self->grant.exposure), &key, 1));
	raw_link_close(&other);
}

TEST_F(keys, of_the_same_export_differ_from_link_to_link)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;
	struct raw_link other;

	ASSERT_EQ(0, raw_link_open(&other, self->port));
	ASSERT_EQ(0, take_key(&other, 0, &grant, &key));
	EXPECT_NE(self->key.rkey, key.rkey);
	EXPECT_NE(self->grant.exposure, grant.exposure);
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&other.data, IBV_WR_RDMA_READ, &key, 0, 8));
	raw_link_close(&other);
}

/* ---- addresses ---- */

/* An address reveals only the offset of the memory in its page. */
static bool says_nothing(uint64_t addr)
{
	return addr / PAGE == 1;
}

TEST_F(keys, have_addresses_that_say_nothing_of_the_kernel)
{
	struct kxfer_wire_hello_answer hello;
	struct kxfer_wire_grant_answer grant;
	uint32_t length = sizeof(hello);
	struct raw_link other = {};
	struct kxfer_wire_key key;

	EXPECT_TRUE(says_nothing(be64toh(self->key.addr)));
	EXPECT_EQ(FROM % PAGE, be64toh(self->key.addr) % PAGE);
	ASSERT_EQ(KXFER_WIRE_OK, raw_grant(&self->link, KXFER_PING_NAME, 65534, 0, &grant));
	ASSERT_EQ(1, raw_keys(&self->link, be64toh(grant.exposure), &key, 1));
	EXPECT_TRUE(says_nothing(be64toh(key.addr)));
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &key, 0, 8));
	ASSERT_EQ(0, raw_link_connect(&other, self->port));
	EXPECT_EQ(0, raw_request(&other, &other.control, KXFER_WIRE_HELLO, NULL, 0, &hello,
				 &length));
	EXPECT_TRUE(says_nothing(be64toh(hello.placement_addr)));
	raw_link_close(&other);
}

/* ---- the built-in export and placement READs ---- */

TEST_F(keys, of_ping_do_not_write)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;

	ASSERT_EQ(0, raw_grant(&self->link, KXFER_PING_NAME, 0, 0, &grant));
	ASSERT_EQ(1, raw_keys(&self->link, be64toh(grant.exposure), &key, 1));
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &key, 0, 8));
	EXPECT_FAILURE(&self->link.data, IBV_WR_RDMA_WRITE, &key, 0, 8);
}

TEST_F(keys, of_the_fence_read_eight_bytes_only)
{
	struct kxfer_wire_hello_answer answer;
	struct kxfer_wire_key fence = { .length = htobe32(8) };
	uint32_t length = sizeof(answer);
	struct raw_link other = { .port = 0 };

	ASSERT_EQ(0, raw_link_connect(&other, self->port));
	ASSERT_EQ(0, raw_request(&other, &other.control, KXFER_WIRE_HELLO, NULL, 0, &answer,
				 &length));
	ASSERT_EQ(0, raw_link_connect_data(&other));
	fence.addr = answer.placement_addr;
	fence.rkey = answer.placement_key;
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&other.data, IBV_WR_RDMA_READ, &fence, 0, 8));
	EXPECT_FAILURE(&other.data, IBV_WR_RDMA_READ, &fence, 0, 9);
	raw_link_close(&other);
}

TEST_F(keys, of_the_fence_do_not_write)
{
	struct kxfer_wire_hello_answer answer;
	struct kxfer_wire_key fence = { .length = htobe32(8) };
	uint32_t length = sizeof(answer);
	struct raw_link other = { .port = 0 };

	ASSERT_EQ(0, raw_link_connect(&other, self->port));
	ASSERT_EQ(0, raw_request(&other, &other.control, KXFER_WIRE_HELLO, NULL, 0, &answer,
				 &length));
	ASSERT_EQ(0, raw_link_connect_data(&other));
	fence.addr = answer.placement_addr;
	fence.rkey = answer.placement_key;
	EXPECT_FAILURE(&other.data, IBV_WR_RDMA_WRITE, &fence, 0, 8);
	raw_link_close(&other);
}

/* ---- after the end ---- */

struct withdrawal {
	int fd;
	uint32_t export_id;
	int ret;
	uint64_t took_ns;
	volatile bool done;
};

static void *withdraw(void *argument)
{
	struct withdrawal *withdrawal = argument;
	uint64_t began = kx_now_ns();

	withdrawal->ret = kx_export_del(withdrawal->fd, withdrawal->export_id);
	withdrawal->took_ns = kx_now_ns() - began;
	withdrawal->done = true;
	return NULL;
}

/* EXPORT_DEL while the peer acts, for at most @ms. */
static void withdraw_beside(struct raw_link *link, struct withdrawal *withdrawal,
			    uint32_t ms)
{
	uint64_t end = kx_deadline_ns(ms);
	pthread_t thread;

	if (pthread_create(&thread, NULL, withdraw, withdrawal))
		return;
	while (!withdrawal->done && kx_now_ns() < end) {
		raw_serve(link, 20);
		kx_sleep_ms(1);
	}
	pthread_join(thread, NULL);
}

TEST_F(keys, do_not_work_after_withdrawal)
{
	struct withdrawal withdrawal = { .fd = self->fd, .export_id = self->export_id };

	withdraw_beside(&self->link, &withdrawal, RAW_MS);
	ASSERT_TRUE(withdrawal.done);
	EXPECT_EQ(0, withdrawal.ret);
	EXPECT_EQ(1, self->link.nr_revokes);
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_WRITE, &self->key, 0, 8);
}

TEST_F(keys, are_revoked_once_for_two_grants)
{
	struct withdrawal withdrawal = { .fd = self->fd, .export_id = self->export_id };
	struct kxfer_wire_grant_answer second;

	ASSERT_EQ(0, raw_grant(&self->link, "keys", 0, 0, &second));
	EXPECT_EQ(self->grant.exposure, second.exposure);
	EXPECT_NE(self->grant.grant, second.grant);
	withdraw_beside(&self->link, &withdrawal, RAW_MS);
	EXPECT_EQ(0, withdrawal.ret);
	EXPECT_EQ(1, self->link.nr_revokes);
}

TEST_F(keys, do_not_work_after_release)
{
	struct kxfer_wire_grant_id id = { .grant = self->grant.grant };

	ASSERT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_RELEASE, &id,
				 sizeof(id), NULL, NULL));
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0, 8);
}

TEST_F(keys, work_until_the_last_grant_is_released)
{
	struct kxfer_wire_grant_id id = { .grant = self->grant.grant };
	struct kxfer_wire_grant_answer second;

	ASSERT_EQ(0, raw_grant(&self->link, "keys", 0, 0, &second));
	ASSERT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_RELEASE, &id,
				 sizeof(id), NULL, NULL));
	EXPECT_EQ(IBV_WC_SUCCESS, try_key(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0,
					  8));
	id.grant = second.grant;
	ASSERT_EQ(0, raw_request(&self->link, &self->link.control, KXFER_WIRE_RELEASE, &id,
				 sizeof(id), NULL, NULL));
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_READ, &self->key, 0, 8);
}

/* The longest delay that a peer can cause: 15 s. */
#define MOST_NS	(15 * 1000000000ULL)

TEST_F(keys, of_a_peer_that_ignores_REVOKE_are_withdrawn_in_time)
{
	struct withdrawal withdrawal = { .fd = self->fd, .export_id = self->export_id };

	self->link.answer_revokes = false;
	withdraw_beside(&self->link, &withdrawal, 20000);
	EXPECT_EQ(0, withdrawal.ret);
	EXPECT_GT(MOST_NS, withdrawal.took_ns);
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_WRITE, &self->key, 0, 8);
}

TEST_F(keys, of_a_peer_that_answers_nothing_are_withdrawn_in_time)
{
	struct withdrawal withdrawal = { .fd = self->fd, .export_id = self->export_id };

	self->link.answer_revokes = false;
	self->link.answer_pings = false;
	withdraw_beside(&self->link, &withdrawal, 20000);
	EXPECT_EQ(0, withdrawal.ret);
	EXPECT_GT(MOST_NS, withdrawal.took_ns);
	EXPECT_REFUSED(&self->link.data, IBV_WR_RDMA_WRITE, &self->key, 0, 8);
}

TEST_F(keys, of_a_peer_that_vanished_are_withdrawn)
{
	struct withdrawal withdrawal = { .fd = self->fd, .export_id = self->export_id };

	raw_link_close(&self->link);
	withdraw(&withdrawal);
	EXPECT_EQ(0, withdrawal.ret);
	EXPECT_GT(MOST_NS, withdrawal.took_ns);
}

TEST_HARNESS_MAIN

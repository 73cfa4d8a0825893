// SPDX-License-Identifier: GPL-2.0
/*
 * Two machines of different byte order, each on its side of one wire: both run these
 * tests at once, and each is server and client of the other.
 *
 * KXFER_HERE is the address of this machine, KXFER_PEER that of the other one. A test
 * exports a buffer under the test's name and opens that of the peer. It ends when both
 * machines have notified each other, so that no buffer goes while the peer still moves
 * bytes.
 *
 * With KXFER_KEY in the environment, its value is the name of a key of both, which the machine's
 * listener asks for.
 *
 * The wire is iWARP: rxe of 6.1 sends its checksum in the byte order of the machine, so
 * a machine of the other order drops each packet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define LENGTH		(1u << 20)
#define HALF		(LENGTH / 2)
#define WORD		LENGTH		/* where a number is, past the bytes */
#define SIZE		(LENGTH + 4096)
#define BOOT_MS		60000	/* the slower of two emulated machines */
#define COOKIE		0x0123456789abcdefULL
#define NUMBER		0x00000000fffffff0ULL
#define CONTENT		0x0000000000012345ULL

/* A byte depends on its place alone, so that both machines expect the same. */
static uint8_t byte_at(uint32_t at)
{
	return at ^ at >> 8 ^ at >> 16;
}

FIXTURE(pair)
{
	int fd;
	uint8_t *there;		/* exported; the second half holds the pattern */
	uint8_t *here;		/* what is moved from and to; the first half does */
	uint32_t here_region;
	uint32_t export_id;
	uint32_t peer;
	uint32_t target;
};

static void fill(uint8_t *bytes, uint32_t from, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		bytes[i] = byte_at(from + i);
}

/* Return: the first byte that is wrong, or @length */
static uint32_t compare(const uint8_t *bytes, uint32_t from, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length && bytes[i] == byte_at(from + i); i++)
		;
	return i;
}

static int begin_listening(int fd, struct kxfer_addr addr)
{
	const char *const keys[] = { getenv("KXFER_KEY"), NULL };
	uint64_t listener;

	if (!keys[0])
		return kx_listen_add(fd, addr, 0, &listener);
	return kx_key_add(keys[0], 1, 32) ?: kx_listen_add_keys(fd, addr, keys, &listener);
}

static int publish(struct _test_data_pair *self, const char *name)
{
	uint32_t region;

	return kx_region_add(self->fd, self->there, SIZE, KXFER_REGION_F_WRITE, &region) ?:
	       kx_export_add(self->fd, region, 0, SIZE, KXFER_RIGHT_ALL, name,
			     &self->export_id) ?:
	       kx_export_set(self->fd, self->export_id, CONTENT, NULL, NULL) ?:
	       begin_listening(self->fd, kx_addr(getenv("KXFER_HERE"), KXFER_PORT));
}

/* The peer may still boot, or be at the test before. Return: 0 or the last -errno */
static int open_target(struct _test_data_pair *self, const char *name)
{
	struct kxfer_addr remote = kx_addr(getenv("KXFER_PEER"), KXFER_PORT);
	const char *key = getenv("KXFER_KEY") ?: "";
	uint32_t refusal;
	int ret = -ETIMEDOUT;

	kx_wait_until(({ ret = kx_peer_open_key(self->fd, remote, key, &self->peer, &refusal);
			 !ret; }), BOOT_MS);
	if (ret)
		return ret;
	kx_wait_until(({ ret = kx_target_open(self->fd, self->peer, name, 0, &self->target);
			 !ret; }), BOOT_MS);
	return ret;
}

FIXTURE_SETUP(pair)
{
	if (!getenv("KXFER_HERE") || !getenv("KXFER_PEER"))
		SKIP(return, "no other machine: KXFER_HERE and KXFER_PEER are not set");
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	self->there = kx_alloc(SIZE);
	self->here = kx_alloc(SIZE);
	ASSERT_NE(NULL, self->there);
	ASSERT_NE(NULL, self->here);
	fill(self->there + HALF, HALF, HALF);
	fill(self->here, 0, HALF);
	*(uint64_t *)(self->there + WORD) = NUMBER;
	ASSERT_EQ(0, kx_region_add(self->fd, self->here, SIZE, KXFER_REGION_F_WRITE,
				   &self->here_region));
	ASSERT_EQ(0, publish(self, _metadata->name));
	ASSERT_EQ(0, open_target(self, _metadata->name));
}

FIXTURE_TEARDOWN(pair)
{
	close(self->fd);
}

/* Tells the peer that this machine is done, and waits until the peer is. */
static void meet(struct __test_metadata *_metadata, struct _test_data_pair *self)
{
	struct kxfer_event event = {};

	ASSERT_EQ(0, kx_notify(self->fd, self->target, COOKIE));
	ASSERT_EQ(1, kx_event_reap(self->fd, &event, 1, BOOT_MS));
	EXPECT_EQ(COOKIE, event.cookie);
	EXPECT_EQ(self->export_id, event.export_id);
	EXPECT_EQ(0, event.uid);
}

TEST_F_TIMEOUT(pair, write_arrives, 600)
{
	ASSERT_EQ(0, kx_transfer(self->fd, KXFER_OP_WRITE, self->here_region, 1, self->target, 1,
				 HALF - 1));
	meet(_metadata, self);
	EXPECT_EQ(0, self->there[0]);
	EXPECT_EQ(HALF - 1, compare(self->there + 1, 1, HALF - 1));
	EXPECT_EQ(HALF, compare(self->there + HALF, HALF, HALF));
}

TEST_F_TIMEOUT(pair, read_brings_what_is_there, 600)
{
	ASSERT_EQ(0, kx_transfer(self->fd, KXFER_OP_READ, self->here_region, HALF, self->target,
				 HALF, HALF - 1));
	EXPECT_EQ(HALF, compare(self->here, 0, HALF));
	EXPECT_EQ(HALF - 1, compare(self->here + HALF, HALF, HALF - 1));
	EXPECT_EQ(0, self->here[LENGTH - 1]);
	meet(_metadata, self);
}

TEST_F_TIMEOUT(pair, export_says_what_it_holds, 600)
{
	struct kxfer_content content = {};
	struct kxfer_peer_export exports[8] = {};
	uint64_t cursor = 0;

	ASSERT_EQ(0, kx_target_info(self->fd, self->target, 0, KX_TIMEOUT_MS, &content));
	EXPECT_EQ(1, content.generation);
	EXPECT_EQ(CONTENT, content.length);
	ASSERT_EQ(1, kx_peer_list(self->fd, self->peer, exports, 8, &cursor));
	EXPECT_STREQ(_metadata->name, (char *)exports[0].name);
	EXPECT_EQ(SIZE, exports[0].length);
	EXPECT_EQ(CONTENT, exports[0].content.length);
	meet(_metadata, self);
}

/* An atomic is of numbers, which each machine stores in its own byte order. */
TEST_F_TIMEOUT(pair, fetch_add_adds_numbers, 600)
{
	int ret = kx_atomic(self->fd, KXFER_OP_FETCH_ADD, self->here_region, WORD, self->target,
			    WORD, 0x11, 0);

	if (ret == -EOPNOTSUPP) {
		meet(_metadata, self);
		SKIP(return, "the device has no atomics");
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(NUMBER, *(uint64_t *)(self->here + WORD));
	meet(_metadata, self);
	EXPECT_EQ(NUMBER + 0x11, *(uint64_t *)(self->there + WORD));
}

TEST_F_TIMEOUT(pair, refusals_have_their_errno, 600)
{
	uint32_t target;

	EXPECT_EQ(-ENOENT, kx_target_open(self->fd, self->peer, "no-such-export", 0, &target));
	EXPECT_EQ(-ERANGE, kx_transfer(self->fd, KXFER_OP_WRITE, self->here_region, 0,
				       self->target, SIZE - 1, 2));
	meet(_metadata, self);
}

TEST_HARNESS_MAIN

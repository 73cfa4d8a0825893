// SPDX-License-Identifier: GPL-2.0
/*
 * Names of keys in LISTEN_ADD, PEER_OPEN and rules: invalid names, missing keys, and invalid
 * secrets. tests/guest/perm/auth.c covers the function of keys.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define KEY	"kt-uapi"
#define SHORT	"kt-uapi-short"
#define PORT	7668

FIXTURE(key)
{
	int fd;
	uint64_t keys;		/* value of live_keys */
	bool has_link;
	struct kxfer_key_name names[KXFER_LISTEN_KEYS_MAX + 1];
	struct kxfer_listen_add listen;
	struct kxfer_peer_open open;
};

FIXTURE_SETUP(key)
{
	struct kxfer_query query = { .size = sizeof(query) };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_query(self->fd, &query);
	if (!(query.features & KXFER_FEATURE_KEY))
		SKIP(return, "the kernel has no keyrings");
	ASSERT_EQ(0, kx_key_add(KEY, 1, 32));
	ASSERT_EQ(0, kx_key_add(SHORT, 1, KXFER_KEY_MIN - 1));
	self->keys = kx_counter(self->fd, "live_keys");
	strcpy((char *)self->names[0].name, KEY);
	self->listen = (struct kxfer_listen_add) {
		.size = sizeof(self->listen),
		.addr = kx_addr(kx_address(), PORT),
		.keys = (uintptr_t)self->names,
		.nr_keys = 1,
	};
	self->open = (struct kxfer_peer_open) {
		.size = sizeof(self->open),
		.remote = kx_addr(kx_address(), PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.key = KEY,
	};
}

/* A refused call has left no copy of a secret. An idle link keeps its own copy. */
FIXTURE_TEARDOWN(key)
{
	close(self->fd);
	self->fd = kx_open();
	EXPECT_TRUE(self->has_link ||
		    kx_wait_until(kx_counter(self->fd, "live_keys") <= self->keys, 5000));
	close(self->fd);
	kx_key_del(KEY);
	kx_key_del(SHORT);
}

#define EXPECT_LISTEN(error)	EXPECT_EQ(error, kx_call(self->fd, KXFER_LISTEN_ADD, &self->listen))
#define EXPECT_OPEN(error)	EXPECT_EQ(error, kx_call(self->fd, KXFER_PEER_OPEN, &self->open))

TEST_F(key, of_a_listener_is_named)
{
	EXPECT_LISTEN(0);
	EXPECT_EQ(self->keys + 1, kx_counter(self->fd, "live_keys"));
	EXPECT_EQ(0, kx_listen_del(self->fd, self->listen.listener));
	EXPECT_EQ(self->keys, kx_counter(self->fd, "live_keys"));
}

TEST_F(key, of_a_peer_is_named)
{
	ASSERT_EQ(0, kx_call(self->fd, KXFER_LISTEN_ADD, &self->listen));
	EXPECT_OPEN(0);
	self->has_link = true;
}

TEST_F(key, that_is_not_there)
{
	strcpy((char *)self->names[0].name, "kt-uapi-none");
	strcpy((char *)self->open.key, "kt-uapi-none");
	EXPECT_LISTEN(-ENOKEY);
	EXPECT_OPEN(-ENOKEY);
}

TEST_F(key, that_is_too_short)
{
	strcpy((char *)self->names[0].name, SHORT);
	strcpy((char *)self->open.key, SHORT);
	EXPECT_LISTEN(-EKEYREJECTED);
	EXPECT_OPEN(-EKEYREJECTED);
}

TEST_F(key, without_a_name)
{
	memset(&self->names[0], 0, sizeof(self->names[0]));
	EXPECT_LISTEN(-EINVAL);
}

TEST_F(key, with_a_malformed_name)
{
	static const char *const bad[] = { "kt uapi", "kt/uapi", "kt:uapi", "\xff" };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		memset(self->names[0].name, 0, sizeof(self->names[0].name));
		memset(self->open.key, 0, sizeof(self->open.key));
		strcpy((char *)self->names[0].name, bad[i]);
		strcpy((char *)self->open.key, bad[i]);
		EXPECT_LISTEN(-EINVAL);
		EXPECT_OPEN(-EINVAL);
	}
}

TEST_F(key, with_a_name_without_end)
{
	memset(self->names[0].name, 'k', sizeof(self->names[0].name));
	memset(self->open.key, 'k', sizeof(self->open.key));
	EXPECT_LISTEN(-EINVAL);
	EXPECT_OPEN(-EINVAL);
}

TEST_F(key, with_bytes_behind_its_name)
{
	self->names[0].name[KXFER_NAME_MAX - 1] = 'k';
	self->open.key[KXFER_NAME_MAX - 1] = 'k';
	EXPECT_LISTEN(-EINVAL);
	EXPECT_OPEN(-EINVAL);
}

TEST_F(key, that_is_named_twice)
{
	self->names[1] = self->names[0];
	self->listen.nr_keys = 2;
	EXPECT_LISTEN(-EINVAL);
}

TEST_F(key, of_too_many)
{
	self->listen.nr_keys = KXFER_LISTEN_KEYS_MAX + 1;
	EXPECT_LISTEN(-EDQUOT);
	self->listen.nr_keys = UINT32_MAX;
	EXPECT_LISTEN(-EDQUOT);
}

TEST_F(key, at_a_bad_pointer)
{
	self->listen.keys = 8;
	EXPECT_LISTEN(-EFAULT);
	self->listen.keys = 0;
	EXPECT_LISTEN(-EFAULT);
	self->listen.keys = (uintptr_t)self->names;
	self->listen.nr_keys = 0;
	EXPECT_LISTEN(-EINVAL);
}

TEST_F(key, beside_a_reserved_member)
{
	self->listen.__reserved = 1;
	EXPECT_LISTEN(-EINVAL);
}

TEST_F(key, of_a_rule)
{
	struct kxfer_rule rule = { .match = KXFER_RULE_KEY, .rights = KXFER_RIGHT_READ };
	void *memory = kx_alloc(4096);
	uint32_t region, export_id;

	ASSERT_NE(NULL, memory);
	test_cmd_region_add(self->fd, memory, 4096, 0, &region);
	test_err_export_add_rules(EINVAL, self->fd, region, 0, 4096, KXFER_RIGHT_READ, "keyed",
				  &rule, 1, &export_id);
	strcpy((char *)rule.key, KEY);
	test_cmd_export_add_rules(self->fd, region, 0, 4096, KXFER_RIGHT_READ, "keyed", &rule,
				  1, &export_id);
	rule.match = 0;
	test_err_export_add_rules(EINVAL, self->fd, region, 0, 4096, KXFER_RIGHT_READ, "other",
				  &rule, 1, &export_id);
	rule.match = KXFER_RULE_KEY | KXFER_RULE_NO_UIDS | KXFER_RULE_UID;
	test_err_export_add_rules(EINVAL, self->fd, region, 0, 4096, KXFER_RIGHT_READ, "other",
				  &rule, 1, &export_id);
}

TEST_HARNESS_MAIN

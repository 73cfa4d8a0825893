// SPDX-License-Identifier: GPL-2.0
/*
 * RESUME and identities of exports: which links a peer can end, and what it learns.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define LENGTH	4096

struct info {
	struct kxfer_wire_info_answer info;
	struct kxfer_wire_identity identity;
};

FIXTURE(resume)
{
	struct kx_pair pair;
	struct raw_link old;
	struct raw_link link;
	struct kxfer_wire_resume resume;	/* names @old */
	uint64_t errors;
	uint16_t port;
};

FIXTURE_SETUP(resume)
{
	uint64_t listener;

	ASSERT_EQ(0, kx_pair_open(&self->pair, LENGTH, KXFER_RIGHT_ALL));
	self->port = kx_own_port();
	test_cmd_listen_add(self->pair.server, kx_addr(kx_address(), self->port), 0, &listener);
	ASSERT_EQ(0, raw_link_open_with(&self->old, self->port, KXFER_WIRE_FEATURE_RESUME));
	ASSERT_EQ(0, raw_link_open_with(&self->link, self->port, KXFER_WIRE_FEATURE_RESUME));
	self->resume.epoch = htobe64(self->old.epoch);
	memcpy(self->resume.cookie, self->old.cookie, sizeof(self->resume.cookie));
	self->errors = kx_counter(self->pair.server, "protocol_errors");
}

FIXTURE_TEARDOWN(resume)
{
	raw_link_close(&self->link);
	raw_link_close(&self->old);
	kx_pair_close(&self->pair);
}

static int resume(FIXTURE_DATA(resume) *self)
{
	return raw_request(&self->link, &self->link.control, KXFER_WIRE_RESUME, &self->resume,
			   sizeof(self->resume), NULL, NULL);
}

#define EXPECT_ALIVE(link) \
	EXPECT_EQ(0, raw_request(link, &(link)->control, KXFER_WIRE_PING, NULL, 0, NULL, NULL))

TEST_F(resume, ends_the_link_that_it_names)
{
	EXPECT_EQ(KXFER_WIRE_OK, resume(self));
	EXPECT_TRUE(raw_dropped(&self->old.control, RAW_MS));
	EXPECT_ALIVE(&self->link);
	/* It is gone by then, or as good as gone. */
	EXPECT_EQ(KXFER_WIRE_OK, resume(self));
	EXPECT_EQ(self->errors, kx_counter(self->pair.server, "protocol_errors"));
}

TEST_F(resume, with_another_cookie_ends_nothing)
{
	self->resume.cookie[15] ^= 1;
	EXPECT_EQ(KXFER_WIRE_OK, resume(self));
	EXPECT_ALIVE(&self->old);
	EXPECT_ALIVE(&self->link);
}

TEST_F(resume, with_another_epoch_ends_nothing)
{
	self->resume.epoch ^= htobe64(1ULL << 40);
	EXPECT_EQ(KXFER_WIRE_OK, resume(self));
	EXPECT_ALIVE(&self->old);
}

TEST_F(resume, that_names_its_own_link_ends_nothing)
{
	self->resume.epoch = htobe64(self->link.epoch);
	memcpy(self->resume.cookie, self->link.cookie, sizeof(self->resume.cookie));
	EXPECT_EQ(KXFER_WIRE_OK, resume(self));
	EXPECT_ALIVE(&self->link);
	EXPECT_ALIVE(&self->old);
}

/* The other end of that link is this node's, which has its own number for it. */
TEST_F(resume, does_not_end_links_that_the_node_has_made)
{
	struct kxfer_info_link links[16];
	uint64_t cursor = 0;
	int i, n = kx_info(self->pair.server, KXFER_INFO_LINKS, links, sizeof(links[0]), 16,
			   &cursor);

	memset(self->resume.cookie, 0, sizeof(self->resume.cookie));
	for (i = 0; i < n; i++) {
		self->resume.epoch = htobe64(links[i].id);
		EXPECT_EQ(KXFER_WIRE_OK, resume(self));
	}
	test_cmd_transfer(self->pair.client, KXFER_OP_WRITE, self->pair.client_region, 0,
			  self->pair.target, 0, LENGTH);
}

TEST_F(resume, of_another_length_costs_the_link)
{
	raw_request(&self->link, &self->link.control, KXFER_WIRE_RESUME, &self->resume,
		    sizeof(self->resume) - 1, NULL, NULL);
	EXPECT_TRUE(raw_dropped(&self->link.control, RAW_MS));
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors"));
	EXPECT_ALIVE(&self->old);
}

TEST_F(resume, without_the_feature_costs_the_link)
{
	struct raw_link plain;

	ASSERT_EQ(0, raw_link_open_with(&plain, self->port, 0));
	raw_request(&plain, &plain.control, KXFER_WIRE_RESUME, &self->resume,
		    sizeof(self->resume), NULL, NULL);
	EXPECT_TRUE(raw_dropped(&plain.control, RAW_MS));
	EXPECT_LT(self->errors, kx_counter(self->pair.server, "protocol_errors"));
	EXPECT_ALIVE(&self->old);
	raw_link_close(&plain);
}

/* ---- identities ---- */

static int ask(struct raw_link *link, const char *name, struct info *info, uint32_t *length)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_grant_id id;
	int ret = raw_grant(link, name, 0, KXFER_RIGHT_READ, &grant);

	if (ret)
		return ret;
	id.grant = grant.grant;
	*length = sizeof(*info);
	memset(info, 0, sizeof(*info));
	return raw_request(link, &link->control, KXFER_WIRE_INFO, &id, sizeof(id), info, length);
}

TEST_F(resume, an_export_is_the_same_by_each_link)
{
	struct info one, two;
	uint32_t length;

	ASSERT_EQ(0, ask(&self->old, self->pair.name, &one, &length));
	ASSERT_EQ(sizeof(one), length);
	ASSERT_EQ(0, ask(&self->link, self->pair.name, &two, &length));
	ASSERT_EQ(sizeof(two), length);
	EXPECT_NE(0, one.identity.node);
	EXPECT_EQ(0, memcmp(&one.identity, &two.identity, sizeof(one.identity)));
}

TEST_F(resume, an_export_is_not_the_one_that_had_its_name_before)
{
	struct info one, two;
	uint32_t length;

	ASSERT_EQ(0, ask(&self->link, self->pair.name, &one, &length));
	/* It would have to answer REVOKE. */
	raw_link_close(&self->link);
	test_cmd_export_del(self->pair.server, self->pair.export_id);
	test_cmd_export_add(self->pair.server, self->pair.server_region, 0, LENGTH,
			    KXFER_RIGHT_ALL, self->pair.name, &self->pair.export_id);
	ASSERT_EQ(0, ask(&self->old, self->pair.name, &two, &length));
	EXPECT_EQ(one.identity.node, two.identity.node);
	EXPECT_NE(one.identity.export, two.identity.export);
}

TEST_F(resume, without_the_feature_an_answer_has_no_identity)
{
	struct raw_link plain;
	struct info info;
	uint32_t length;

	ASSERT_EQ(0, raw_link_open_with(&plain, self->port, 0));
	ASSERT_EQ(0, ask(&plain, self->pair.name, &info, &length));
	EXPECT_EQ(sizeof(info.info), length);
	raw_link_close(&plain);
}

/* ---- a peer that cannot ---- */

TEST(a_peer_without_the_feature_is_told_apart)
{
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = 1000,
	};
	struct raw_server server;
	int fd = kx_open();

	ASSERT_LE(0, fd);
	raw_server_init(&server);
	ASSERT_EQ(0, raw_server_start(&server, kx_own_port()));
	open.remote = kx_addr(kx_address(), kx_own_port());
	EXPECT_EQ(-EOPNOTSUPP, kx_call(fd, KXFER_PEER_OPEN, &open));
	open.loss_ms = 0;
	EXPECT_EQ(0, kx_call(fd, KXFER_PEER_OPEN, &open));
	close(fd);
	raw_server_stop(&server);
}

TEST_HARNESS_MAIN

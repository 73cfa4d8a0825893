// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of a peer: valid ones, the same with each byte changed, and noise. decode_model.h
 * defines what may be accepted.
 */
#include <kunit/test.h>

#include "base/decode.c"
#include "decode_model.h"
#include "random.h"

/* Received bytes, aligned like the memory of a RECV. */
static u8 *message_memory(struct kunit *test)
{
	u8 *bytes = kunit_kmalloc_array(test, KXFER_WIRE_CONTROL_BYTES + 64, 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	return bytes;
}

static struct kxfer_wire_hello *good_hello(struct kunit *test, u8 kind, u8 lane)
{
	struct kxfer_wire_hello *hello = (void *)message_memory(test);

	*hello = (struct kxfer_wire_hello) {
		.magic = cpu_to_be32(KXFER_WIRE_MAGIC),
		.version_min = cpu_to_be16(KXFER_WIRE_VERSION_MIN),
		.version_max = cpu_to_be16(KXFER_WIRE_VERSION_MAX),
		.kind = kind,
		.lane = lane,
		.nr_lanes = cpu_to_be16(1),
		.epoch = cpu_to_be64(3),
	};
	return hello;
}

static void hello_of_each_kind(struct kunit *test)
{
	struct kxfer_wire_hello *hello = good_hello(test, KXFER_WIRE_CONTROL, 0);

	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1), (u32)KXFER_REFUSAL_NONE);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 196, 1), (u32)KXFER_REFUSAL_NONE);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 39, 1), (u32)KXFER_REFUSAL_MAGIC);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(NULL, 0, 1), (u32)KXFER_REFUSAL_MAGIC);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(NULL, 40, 1), (u32)KXFER_REFUSAL_MAGIC);
	hello = good_hello(test, KXFER_WIRE_CONTROL, 1);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1), (u32)KXFER_REFUSAL_MAGIC);
	hello = good_hello(test, KXFER_WIRE_DATA, 1);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1), (u32)KXFER_REFUSAL_NONE);
	hello = good_hello(test, KXFER_WIRE_DATA, 0);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1), (u32)KXFER_REFUSAL_MAGIC);
	hello = good_hello(test, KXFER_WIRE_DATA, 2);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1), (u32)KXFER_REFUSAL_MAGIC);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 2), (u32)KXFER_REFUSAL_NONE);
	hello = good_hello(test, 2, 1);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1), (u32)KXFER_REFUSAL_MAGIC);
}

static void hello_of_each_version(struct kunit *test)
{
	struct kxfer_wire_hello *hello = good_hello(test, KXFER_WIRE_CONTROL, 0);
	u32 oldest, newest;

	for (oldest = 0; oldest < 4; oldest++)
		for (newest = 0; newest < 4; newest++) {
			hello->version_min = cpu_to_be16(oldest);
			hello->version_max = cpu_to_be16(newest);
			KUNIT_EXPECT_EQ(test, kxfer_wire_check_hello(hello, 40, 1),
					(u32)(oldest <= 1 && newest >= 1 ? KXFER_REFUSAL_NONE :
					      KXFER_REFUSAL_VERSION));
		}
}

static void hello_with_any_byte_changed(struct kunit *test)
{
	struct kxfer_wire_hello *hello = good_hello(test, KXFER_WIRE_DATA, 1);
	const char *wrong = NULL;
	u32 at, value;
	u8 *bytes = (u8 *)hello;

	for (at = 0; at < sizeof(*hello) && !wrong; at++)
		for (value = 0; value < 256 && !wrong; value++) {
			u8 before = bytes[at];

			bytes[at] = value;
			wrong = hello_wrong(bytes, sizeof(*hello), 1);
			bytes[at] = before;
		}
	if (wrong)
		KUNIT_FAIL(test, "byte %u is %u: %s", at - 1, value - 1, wrong);
}

static void welcome_and_refusal(struct kunit *test)
{
	struct kxfer_wire_refusal *refusal = (void *)message_memory(test);
	struct kxfer_wire_welcome *welcome = (void *)message_memory(test);

	*welcome = (struct kxfer_wire_welcome) {
		.magic = cpu_to_be32(KXFER_WIRE_MAGIC),
		.version = cpu_to_be16(KXFER_WIRE_VERSION_MAX),
		.nr_lanes = cpu_to_be16(3),
	};
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 12, 3), 0);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 12, 8), 0);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 12, 2), -EPROTO);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 11, 3), -EPROTO);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(NULL, 0, 3), -EPROTO);
	welcome->nr_lanes = 0;
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 12, 3), -EPROTO);
	welcome->version = cpu_to_be16(KXFER_WIRE_VERSION_MAX + 1);
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 12, 3), -EPROTONOSUPPORT);
	welcome->magic = 0;
	KUNIT_EXPECT_EQ(test, kxfer_wire_check_welcome(welcome, 12, 3), -EPROTO);

	*refusal = (struct kxfer_wire_refusal) { .magic = cpu_to_be32(KXFER_WIRE_MAGIC) };
	KUNIT_EXPECT_TRUE(test, kxfer_wire_refusal(refusal, 12) == refusal);
	KUNIT_EXPECT_TRUE(test, !kxfer_wire_refusal(refusal, 11));
	KUNIT_EXPECT_TRUE(test, !kxfer_wire_refusal(NULL, 0));
	refusal->magic = 0;
	KUNIT_EXPECT_TRUE(test, !kxfer_wire_refusal(refusal, 12));
}

/* Nodes with versions [1, 2] and [1, 1] connect, in either direction. */
static void version_is_the_newest_of_both(struct kunit *test)
{
	struct kxfer_wire_hello hello = { .version_min = cpu_to_be16(1) };

	hello.version_max = cpu_to_be16(1);
	KUNIT_EXPECT_EQ(test, kxfer_wire_version(&hello, 2), (u16)1);
	hello.version_max = cpu_to_be16(2);
	KUNIT_EXPECT_EQ(test, kxfer_wire_version(&hello, 1), (u16)1);
	hello.version_max = cpu_to_be16(9);
	KUNIT_EXPECT_EQ(test, kxfer_wire_version(&hello, 3), (u16)3);
}

static void refusals_have_an_errno(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_MAGIC), -EPROTONOSUPPORT);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_VERSION), -EPROTONOSUPPORT);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_PORT), -EACCES);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_COOKIE), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_LIMIT), -EDQUOT);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_RESOURCES), -EDQUOT);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_CLOSING), -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_ADDRESS), -EACCES);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(KXFER_REFUSAL_KEY), -EKEYREJECTED);
	KUNIT_EXPECT_EQ(test, kxfer_wire_refusal_errno(0xffff), -EACCES);
}

static void statuses_come_back(struct kunit *test)
{
	u32 status;

	for (status = KXFER_WIRE_OK; status <= KXFER_WIRE_UNSUPPORTED; status++)
		KUNIT_EXPECT_EQ(test, (u32)kxfer_wire_status(kxfer_wire_errno(status)), status);
	KUNIT_EXPECT_EQ(test, kxfer_wire_errno(KXFER_WIRE_UNSUPPORTED + 1), -EPROTO);
	KUNIT_EXPECT_EQ(test, kxfer_wire_errno(0xffff), -EPROTO);
	KUNIT_EXPECT_EQ(test, (u32)kxfer_wire_status(-EIO), (u32)KXFER_WIRE_DEVICE);
}

/* Each type, length, side and lane, as a valid message and with changes. */
static void message_of_each_type_and_length(struct kunit *test)
{
	u8 *bytes = message_memory(test);
	const char *wrong = NULL;
	u32 type, length;

	memset(bytes, 0, KXFER_WIRE_CONTROL_BYTES);
	for (type = 0; type < 256 && !wrong; type++)
		for (length = 0; length <= 128 && !wrong; length++) {
			bytes[0] = type;
			bytes[5] = length;
			wrong = message_wrong(bytes, 16 + length, 8);
		}
	if (wrong)
		KUNIT_FAIL(test, "type %u, length %u: %s", type - 1, length - 1, wrong);
}

static void message_that_is_malformed(struct kunit *test)
{
	struct kxfer_wire_header *header = (void *)message_memory(test);

	*header = (struct kxfer_wire_header) { .type = KXFER_WIRE_PING, .slot = 7 };
	KUNIT_EXPECT_TRUE(test, !kxfer_wire_check_message(header, 16, 8));
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 15, 8));
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 0, 8));
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 17, 8));
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 16, 7));
	header->length = cpu_to_be16(1);
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 16, 8));
	header->length = cpu_to_be16(0xffff);
	KUNIT_EXPECT_TRUE(test, !kxfer_wire_check_message(header, 16 + 0xffff, 8));
	header->length = 0;
	header->reserved = cpu_to_be16(1);
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 16, 8));
	header->reserved = 0;
	header->status = cpu_to_be16(1);
	KUNIT_EXPECT_TRUE(test, kxfer_wire_check_message(header, 16, 8));
	header->type |= KXFER_WIRE_ANSWER;
	KUNIT_EXPECT_TRUE(test, !kxfer_wire_check_message(header, 16, 8));
}

static void grant_terms(struct kunit *test)
{
	struct kxfer_wire_grant_answer *answer = (void *)message_memory(test);
	static const struct {
		u64 grant;
		u64 length;
		u32 rights;
		u32 nr_keys;
		u32 wanted;
		int verdict;
		u64 content;
	} cases[] = {
		{ 1, 1, KXFER_RIGHT_READ, 1, 0, 0, 0 },
		{ U64_MAX, U64_MAX, KXFER_RIGHT_ALL, KXFER_WIRE_KEYS_MAX, KXFER_RIGHT_ALL, 0, 0 },
		{ 0, 1, KXFER_RIGHT_READ, 1, 0, -EPROTO, 0 },
		{ 1, 0, KXFER_RIGHT_READ, 1, 0, -EPROTO, 0 },
		{ 1, 1, 0, 1, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_ALL + 1, 1, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_SEND, 0, 0, 0, 0 },
		{ 1, KXFER_MESSAGE_MAX, KXFER_RIGHT_SEND, 0, KXFER_RIGHT_SEND, 0, 0 },
		{ 1, KXFER_MESSAGE_MAX + 1, KXFER_RIGHT_SEND, 0, 0, 0, 0 },
		{ 1, KXFER_MESSAGE_LONG_MAX, KXFER_RIGHT_SEND, 0, 0, 0, 0 },
		{ 1, KXFER_MESSAGE_LONG_MAX + 1, KXFER_RIGHT_SEND, 0, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_SEND, 1, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_SEND, 0, KXFER_RIGHT_READ, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_SEND | KXFER_RIGHT_READ, 1, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_SEND << 1, 1, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_SEND << 1, 0, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_READ, 0, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_READ, KXFER_WIRE_KEYS_MAX + 1, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_READ, U32_MAX, 0, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_READ, 1, KXFER_RIGHT_WRITE, -EPROTO, 0 },
		{ 1, 1, KXFER_RIGHT_READ, 1, KXFER_RIGHT_ALL, -EPROTO, 0 },
		{ 1, 4096, KXFER_RIGHT_READ, 1, 0, 0, 4096 },
		{ 1, 4096, KXFER_RIGHT_READ, 1, 0, -EPROTO, 4097 },
		{ 1, 4096, KXFER_RIGHT_READ, 1, 0, -EPROTO, U64_MAX },
	};
	struct kxfer_terms terms;
	const char *wrong;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		*answer = (struct kxfer_wire_grant_answer) {
			.grant = cpu_to_be64(cases[i].grant),
			.exposure = cpu_to_be64(9),
			.length = cpu_to_be64(cases[i].length),
			.rights = cpu_to_be32(cases[i].rights),
			.nr_keys = cpu_to_be32(cases[i].nr_keys),
			.cookie = cpu_to_be64(U64_MAX - i),
			.content = {
				.generation = cpu_to_be64(4),
				.length = cpu_to_be64(cases[i].content),
				.sha256 = { 1, 2, 3 },
			},
		};
		KUNIT_EXPECT_EQ(test, kxfer_wire_take_grant(&terms, cases[i].wanted, answer),
				cases[i].verdict);
		/* The grant is filled in even on an error, because it has to be released. */
		KUNIT_EXPECT_EQ(test, terms.grant, cases[i].grant);
		wrong = grant_wrong((u8 *)answer, cases[i].wanted);
		if (wrong)
			KUNIT_FAIL(test, "case %u: %s", i, wrong);
	}
}

static void keys_within_their_room(struct kunit *test)
{
	struct kxfer_extent *keys = kunit_kmalloc_array(test, 129, sizeof(*keys), GFP_KERNEL);
	u8 *bytes = message_memory(test);
	u64 random = 2;
	u32 nr, room, i;

	KUNIT_ASSERT_NOT_NULL(test, keys);
	for (i = 0; i < KXFER_WIRE_CONTROL_BYTES; i++)
		bytes[i] = next_random(&random);
	memset(bytes, 0, 4);
	for (nr = 0; nr <= 126; nr++)
		for (room = 0; room <= 128; room += 1 + room / 3) {
			const char *wrong;

			bytes[3] = nr;
			wrong = keys_wrong(keys, room, nr * 4096ULL, bytes, 8 + 16 * nr);
			if (!wrong)
				wrong = keys_wrong(keys, room, 0, bytes, 8 + 16 * nr + 1);
			if (!wrong)
				wrong = keys_wrong(keys, room, U64_MAX, bytes, 8 + 16 * nr - 1);
			if (wrong)
				KUNIT_FAIL(test, "%u keys, room for %u: %s", nr, room, wrong);
		}
}

static void keys_of_numbers_that_wrap(struct kunit *test)
{
	static const u32 numbers[] = { 0x10000000, 0x10000001, 0x7fffffff, 0x80000000, U32_MAX };
	struct kxfer_wire_keys_answer *answer = (void *)message_memory(test);
	struct kxfer_extent key;
	u64 start = 5;
	u32 i;

	memset(answer, 0, KXFER_WIRE_CONTROL_BYTES);
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		answer->nr = cpu_to_be32(numbers[i]);
		/* The lower 32 bits of 16 * number are those of a short message. */
		KUNIT_EXPECT_EQ(test, kxfer_wire_take_keys(&key, U32_MAX, &start, answer,
							   8 + 16 * numbers[i]), -EPROTO);
		KUNIT_EXPECT_EQ(test, start, 5ULL);
	}
}

static void sends(struct kunit *test)
{
	struct kxfer_wire_send *send = (void *)message_memory(test);
	static const u32 numbers[] = { 0, 1, 2, 3, 4, 5, 7, 8, 0x80000000u, U32_MAX };
	const char *wrong = NULL;
	u32 i, j, length;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		for (j = 0; j < ARRAY_SIZE(numbers); j++)
			for (length = 16; length <= 16 + 992 && !wrong; length += 31) {
				*send = (struct kxfer_wire_send) {
					.flags = cpu_to_be32(numbers[i]),
					.immediate = cpu_to_be32(numbers[j]),
				};
				wrong = send_wrong((u8 *)send, length, false) ?:
					send_wrong((u8 *)send, length, true);
			}
	if (wrong)
		KUNIT_FAIL(test, "%s", wrong);
	/* From the shortest to the longest length, and no longer. */
	KUNIT_EXPECT_FALSE(test, may_send(KXFER_WIRE_SEND, 15, true, KXFER_WIRE_DATA, false));
	KUNIT_EXPECT_TRUE(test, may_send(KXFER_WIRE_SEND, 16, true, KXFER_WIRE_DATA, false));
	KUNIT_EXPECT_TRUE(test, may_send(KXFER_WIRE_SEND, 1008, true, KXFER_WIRE_DATA, false));
	KUNIT_EXPECT_FALSE(test, may_send(KXFER_WIRE_SEND, 1009, true, KXFER_WIRE_DATA, false));
	KUNIT_EXPECT_EQ(test, sizeof(struct kxfer_wire_header) + 1008,
			(size_t)KXFER_WIRE_DATA_BYTES);
}

static void credits(struct kunit *test)
{
	static const u32 numbers[] = { 0, 1, 31, 32, 63, 64, 65, 0x80000000u, U32_MAX };
	struct kxfer_wire_credits *answer = (void *)message_memory(test);
	const char *wrong = NULL;
	u32 i, left, length;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		for (left = 0; left <= 64 && !wrong; left++)
			for (length = 0; length <= 9 && !wrong; length++) {
				*answer = (struct kxfer_wire_credits) {
					.credits = cpu_to_be32(numbers[i]),
					.reserved = cpu_to_be32(length % 3 == 0),
				};
				wrong = credits_wrong((u8 *)answer, length, left);
				answer->reserved = 0;
				wrong = wrong ?: credits_wrong((u8 *)answer, length, left);
			}
	if (wrong)
		KUNIT_FAIL(test, "%s", wrong);
}

static void offers(struct kunit *test)
{
	static const struct {
		u64 address;
		u32 bytes, flags, immediate, id, reserved;
		int verdict;
	} cases[] = {
		{ 0, 993, 0, 0, 0, 0, 0 },
		{ 0, 992, 0, 0, 0, 0, -EPROTO },
		{ 0, 0, 0, 0, 0, 0, -EPROTO },
		{ 1, 1 << 20, 1, 7, 15, 0, 0 },
		{ 1, (1 << 20) + 1, 1, 7, 15, 0, -EPROTO },
		{ 1, U32_MAX, 0, 0, 0, 0, -EPROTO },
		{ U64_MAX - 993, 993, 0, 0, 0, 0, 0 },
		{ U64_MAX - 992, 993, 0, 0, 0, 0, -EPROTO },
		{ U64_MAX, 993, 0, 0, 0, 0, -EPROTO },
		{ 0, 993, 0, 1, 0, 0, -EPROTO },
		{ 0, 993, 2, 1, 0, 0, -EPROTO },
		{ 0, 993, U32_MAX, 1, 0, 0, -EPROTO },
		{ 0, 993, 0, 0, 16, 0, -EPROTO },
		{ 0, 993, 0, 0, U32_MAX, 0, -EPROTO },
		{ 0, 993, 0, 0, 0, 1, -EPROTO },
	};
	static const struct {
		u32 bytes;
		int verdict;
	} waiting[] = {
		{ 0, -EPROTO }, { 1, 0 }, { 992, 0 }, { 1 << 20, 0 }, { (1 << 20) + 1, -EPROTO },
	};
	struct kxfer_offered offered;
	struct kxfer_message message;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kxfer_wire_offer offer = {
			.grant = cpu_to_be64(5),
			.address = cpu_to_be64(cases[i].address),
			.rkey = cpu_to_be32(6),
			.bytes = cpu_to_be32(cases[i].bytes),
			.flags = cpu_to_be32(cases[i].flags),
			.immediate = cpu_to_be32(cases[i].immediate),
			.id = cpu_to_be32(cases[i].id),
			.reserved = cpu_to_be32(cases[i].reserved),
		};
		const char *wrong = offer_wrong((u8 *)&offer, 0) ?:
				    offer_wrong((u8 *)&offer, KXFER_WIRE_FEATURE_EAGER) ?:
				    offer_wrong((u8 *)&offer, KXFER_WIRE_FEATURE_WAIT) ?:
				    offer_wrong((u8 *)&offer, ~0U);

		KUNIT_EXPECT_EQ(test, kxfer_wire_take_offer(&message, &offered, &offer, 0),
				cases[i].verdict);
		if (wrong)
			KUNIT_FAIL(test, "case %u: %s", i, wrong);
	}
	for (i = 0; i < ARRAY_SIZE(waiting); i++) {
		struct kxfer_wire_offer offer = {
			.bytes = cpu_to_be32(waiting[i].bytes),
			.flags = cpu_to_be32(KXFER_WIRE_SEND_WAIT),
		};

		KUNIT_EXPECT_EQ(test, kxfer_wire_take_offer(&message, &offered, &offer,
							    KXFER_WIRE_FEATURE_WAIT),
				waiting[i].verdict);
		KUNIT_EXPECT_EQ(test, kxfer_wire_take_offer(&message, &offered, &offer,
							    KXFER_WIRE_FEATURE_EAGER), -EPROTO);
	}
	KUNIT_EXPECT_FALSE(test, may_send(KXFER_WIRE_OFFER, 40, true, KXFER_WIRE_CONTROL, false));
	KUNIT_EXPECT_FALSE(test, may_send(KXFER_WIRE_FETCHED, 8, true, KXFER_WIRE_DATA, false));
	KUNIT_EXPECT_TRUE(test, may_send(KXFER_WIRE_FETCHED, 8, false, KXFER_WIRE_DATA, false));
}

static void list_entries(struct kunit *test)
{
	u8 *bytes = message_memory(test);
	const char *wrong = NULL;
	u32 nr, length;

	memset(bytes, 0, KXFER_WIRE_CONTROL_BYTES);
	for (nr = 0; nr < 256 && !wrong; nr++)
		for (length = 0; length <= KXFER_WIRE_CONTROL_BYTES && !wrong; length++) {
			bytes[3] = nr;
			wrong = list_wrong(bytes, length);
		}
	if (wrong)
		KUNIT_FAIL(test, "%u entries in %u bytes: %s", nr - 1, length - 1, wrong);
	memset(bytes, 0xff, 4);
	KUNIT_EXPECT_EQ(test, kxfer_wire_nr_entries((void *)bytes, 8), -EPROTO);
	KUNIT_EXPECT_EQ(test, kxfer_wire_nr_entries((void *)bytes, 7), -EPROTO);
}

/* Numbers near valid ones, so that some messages pass. */
static void fill_noise(u8 *bytes, u32 length, u64 *random)
{
	u32 i;

	for (i = 0; i < length; i++)
		bytes[i] = random_below(random, 4) ? random_below(random, 3) :
			   next_random(random);
}

static void noise_is_judged_as_the_model_does(struct kunit *test)
{
	struct kxfer_extent *keys = kunit_kmalloc_array(test, 9, sizeof(*keys), GFP_KERNEL);
	u8 *bytes = message_memory(test);
	const char *wrong = NULL;
	u64 random = 9;
	u32 round;

	KUNIT_ASSERT_NOT_NULL(test, keys);
	for (round = 0; round < 50000 && !wrong; round++) {
		u32 length = random_below(&random, 160);

		fill_noise(bytes, 160, &random);
		wrong = message_wrong(bytes, length, 1 + random_below(&random, 16));
		if (!wrong)
			wrong = grant_wrong(bytes, random_below(&random, 4));
		if (!wrong)
			wrong = send_wrong(bytes, 16 + length, round % 2);
		if (!wrong)
			wrong = credits_wrong(bytes, length, round % 65);
		if (!wrong)
			wrong = keys_wrong(keys, random_below(&random, 9), next_random(&random),
					   bytes, length);
		if (!wrong)
			wrong = list_wrong(bytes, length);
		memcpy(bytes, "kxfr", 4);
		if (!wrong)
			wrong = hello_wrong(bytes, length, 1 + random_below(&random, 8));
		if (!wrong)
			wrong = welcome_wrong(bytes, length, 1 + random_below(&random, 8));
	}
	if (wrong)
		KUNIT_FAIL(test, "round %u: %s", round - 1, wrong);
}

static struct kunit_case decode_cases[] = {
	KUNIT_CASE(hello_of_each_kind),
	KUNIT_CASE(hello_of_each_version),
	KUNIT_CASE(hello_with_any_byte_changed),
	KUNIT_CASE(welcome_and_refusal),
	KUNIT_CASE(version_is_the_newest_of_both),
	KUNIT_CASE(refusals_have_an_errno),
	KUNIT_CASE(statuses_come_back),
	KUNIT_CASE(message_of_each_type_and_length),
	KUNIT_CASE(message_that_is_malformed),
	KUNIT_CASE(grant_terms),
	KUNIT_CASE(keys_within_their_room),
	KUNIT_CASE(keys_of_numbers_that_wrap),
	KUNIT_CASE(sends),
	KUNIT_CASE(credits),
	KUNIT_CASE(offers),
	KUNIT_CASE(list_entries),
	KUNIT_CASE(noise_is_judged_as_the_model_does),
	{}
};

static struct kunit_suite decode_suite = {
	.name = "decode",
	.test_cases = decode_cases,
};
kunit_test_suite(decode_suite);

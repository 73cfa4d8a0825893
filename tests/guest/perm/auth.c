// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: an initiator that does not prove a listener's key gets no link, and a passive side that
 * does not prove the initiator's key gets no jobs. The lying peers speak the wire format
 * themselves, and compute proofs according to protocol.rst, not by the module's code.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <nettle/hmac.h>

#include "harness/kxfer_test.h"
#include "kselftest_harness.h"
#include "peers/raw_peer.h"

#define KEY_A		"kt-auth-a"
#define KEY_B		"kt-auth-b"
#define SEED_A		0xaa
#define SEED_B		0xbb
#define BYTES		32
#define LENGTH		4096UL
#define DROP_MS		3000

/* Input of the proofs: see protocol.rst. */
struct statement {
	char label[16];
	struct kxfer_wire_addr initiator;
	struct kxfer_wire_addr responder;
	struct kxfer_wire_hello hello;
	struct kxfer_wire_keyed_welcome welcome;
	uint32_t lane;
	struct kxfer_wire_hello_answer answer;
};

_Static_assert(sizeof(struct statement) == 144, "no padding");

static void hmac(const uint8_t *key, size_t key_bytes, const void *data, size_t bytes,
		 uint8_t *result)
{
	struct hmac_sha256_ctx context;

	hmac_sha256_set_key(&context, key_bytes, key);
	hmac_sha256_update(&context, bytes, data);
	hmac_sha256_digest(&context, KXFER_WIRE_PROOF_SIZE, result);
}

static void prove(uint8_t seed, const struct statement *statement, uint8_t *proof)
{
	static const char label[16] = "kxfer secret";
	uint8_t payload[BYTES], secret[KXFER_WIRE_PROOF_SIZE];

	memset(payload, seed, sizeof(payload));
	hmac(payload, sizeof(payload), label, sizeof(label), secret);
	hmac(secret, sizeof(secret), statement, sizeof(*statement), proof);
}

static struct kxfer_wire_addr wire_addr(const struct sockaddr *sa)
{
	const struct sockaddr_in *sin = (const void *)sa;
	struct kxfer_wire_addr addr = { .family = htobe16(AF_INET), .port = sin->sin_port };

	memcpy(addr.addr, &sin->sin_addr, 4);
	return addr;
}

/* A link of a raw peer with the input of its proofs. */
struct keyed {
	struct raw_link link;
	struct statement statement;
};

/* Connects the control lane and announces a key. @change: of hello, or NULL. */
static int connect_keyed(struct keyed *keyed, uint16_t port,
			 void (*change)(struct kxfer_wire_hello *hello))
{
	static const struct raw_manners well;
	static uint64_t epoch = 7;
	struct kxfer_wire_hello hello;
	uint8_t nonce[KXFER_WIRE_COOKIE_SIZE];
	int ret;

	memset(keyed, 0, sizeof(*keyed));
	memset(nonce, 0x33, sizeof(nonce));
	hello = raw_hello_data(KXFER_WIRE_CONTROL, nonce, ++epoch);
	hello.features = htobe32(KXFER_WIRE_FEATURE_KEY);
	if (change)
		change(&hello);
	ret = raw_link_connect_as(&keyed->link, port, &hello, sizeof(hello), &well);
	if (ret)
		return ret;
	keyed->statement.hello = hello;
	keyed->statement.welcome = keyed->link.control.welcome;
	keyed->statement.initiator = wire_addr(rdma_get_local_addr(keyed->link.control.id));
	keyed->statement.responder = wire_addr(rdma_get_peer_addr(keyed->link.control.id));
	return 0;
}

static void label(struct statement *statement, const char *text)
{
	memset(statement->label, 0, sizeof(statement->label));
	memcpy(statement->label, text, strlen(text));
}

static struct kxfer_wire_proof initiators_proof(const struct keyed *keyed, uint8_t seed)
{
	struct statement statement = keyed->statement;
	struct kxfer_wire_proof proof;

	label(&statement, "kxfer initiator");
	prove(seed, &statement, proof.proof);
	return proof;
}

/* Sends HELLO with a proof. Return: enum kxfer_wire_status or -errno. */
static int hello_with(struct keyed *keyed, const void *proof, uint32_t bytes,
		      struct kxfer_wire_keyed_hello_answer *answer)
{
	uint32_t length = sizeof(*answer);
	int ret;

	memset(answer, 0, sizeof(*answer));
	ret = raw_request(&keyed->link, &keyed->link.control, KXFER_WIRE_HELLO, proof, bytes,
			  answer, &length);
	return !ret && length != sizeof(*answer) ? -EPROTO : ret;
}

/* Opens a link with correct proofs. */
static int open_keyed(struct keyed *keyed, uint16_t port, uint8_t seed)
{
	struct kxfer_wire_keyed_hello_answer answer;
	struct kxfer_wire_proof proof;
	int ret = connect_keyed(keyed, port, NULL);

	if (ret)
		return ret;
	proof = initiators_proof(keyed, seed);
	return hello_with(keyed, &proof, sizeof(proof), &answer);
}

static struct kxfer_wire_hello lane_hello(const struct keyed *keyed, uint8_t seed, uint32_t lane)
{
	struct statement statement = keyed->statement;
	struct kxfer_wire_hello hello;
	uint8_t proof[KXFER_WIRE_PROOF_SIZE];

	label(&statement, "kxfer lane");
	statement.lane = htobe32(lane);
	prove(seed, &statement, proof);
	hello = raw_hello_data(KXFER_WIRE_DATA, proof, be64toh(statement.hello.epoch));
	hello.features = htobe32(KXFER_WIRE_FEATURE_KEY);
	hello.lane = lane;
	return hello;
}

FIXTURE(auth)
{
	int fd;
	uint16_t port;		/* port with key A; the next port: key B; the third: no key */
	uint64_t listener[3];
	uint32_t peer;
	uint32_t refusal;
	uint64_t refused;
	struct keyed keyed;
	struct raw_lane lane;
};

FIXTURE_SETUP(auth)
{
	static const char *const keys[2][2] = { { KEY_A }, { KEY_B } };
	struct kxfer_query query = { .size = sizeof(query) };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_query(self->fd, &query);
	if (!(query.features & KXFER_FEATURE_KEY))
		SKIP(return, "the kernel has no keyrings");
	ASSERT_EQ(0, kx_key_add(KEY_A, SEED_A, BYTES));
	ASSERT_EQ(0, kx_key_add(KEY_B, SEED_B, BYTES));
	self->port = kx_own_port();
	ASSERT_EQ(0, kx_listen_add_keys(self->fd, kx_addr(kx_address(), self->port), keys[0],
					&self->listener[0]));
	ASSERT_EQ(0, kx_listen_add_keys(self->fd, kx_addr(kx_address(), self->port + 1),
					keys[1], &self->listener[1]));
	test_cmd_listen_add(self->fd, kx_addr(kx_address(), self->port + 2), 0,
			    &self->listener[2]);
	self->refused = kx_counter(self->fd, "keys_refused");
}

/* After every attack, a peer with the key still gets a link. */
FIXTURE_TEARDOWN(auth)
{
	EXPECT_EQ(0, kx_peer_open_key(self->fd, kx_addr(kx_address(), self->port), KEY_A,
				      &self->peer, NULL));
	raw_lane_close(&self->lane);
	raw_link_close(&self->keyed.link);
	close(self->fd);
	kx_key_del(KEY_A);
	kx_key_del(KEY_B);
}

static int open_with(struct __test_metadata *_metadata, FIXTURE_DATA(auth) *self, uint16_t port,
		     const char *key)
{
	return kx_peer_open_key(self->fd, kx_addr(kx_address(), port), key, &self->peer,
				&self->refusal);
}

#define OPEN(port, key)	open_with(_metadata, self, port, key)

/* Number of new refusals because of a key. @nr: both ends are on this node and count. */
#define EXPECT_COUNTED(nr) ({							\
	EXPECT_EQ(self->refused + (nr), kx_counter(self->fd, "keys_refused"));	\
	self->refused = kx_counter(self->fd, "keys_refused");			\
})

/* ---- peers that are kernels ---- */

TEST_F(auth, of_both_ends_makes_a_link_that_says_so)
{
	struct kxfer_peer_export export;
	struct kxfer_info_link links[256];
	uint64_t cursor = 0;
	int i, n, keyed = 0;

	ASSERT_EQ(0, OPEN(self->port, KEY_A));
	EXPECT_LE(0, kx_peer_list(self->fd, self->peer, &export, 1, &cursor));
	cursor = 0;
	n = kx_info(self->fd, KXFER_INFO_LINKS, links, sizeof(*links), 256, &cursor);
	for (i = 0; i < n; i++)
		keyed += links[i].state == KXFER_LINK_LIVE &&
			 !strcmp((char *)links[i].key, KEY_A);
	EXPECT_LE(2, keyed);
	EXPECT_COUNTED(0);
}

TEST_F(auth, by_another_key_is_refused)
{
	EXPECT_EQ(-EKEYREJECTED, OPEN(self->port, KEY_B));
	EXPECT_EQ(KXFER_REFUSAL_KEY, self->refusal);
	EXPECT_COUNTED(2);
}

TEST_F(auth, by_the_key_of_another_listener_is_refused)
{
	EXPECT_EQ(-EKEYREJECTED, OPEN(self->port + 1, KEY_A));
	EXPECT_COUNTED(2);
	EXPECT_EQ(0, OPEN(self->port + 1, KEY_B));
}

TEST_F(auth, without_a_key_is_refused)
{
	EXPECT_EQ(-EKEYREJECTED, OPEN(self->port, ""));
	EXPECT_EQ(KXFER_REFUSAL_KEY, self->refusal);
	EXPECT_COUNTED(1);
}

TEST_F(auth, by_a_key_where_none_is_wanted_is_refused)
{
	EXPECT_EQ(-EKEYREJECTED, OPEN(self->port + 2, KEY_A));
	EXPECT_EQ(KXFER_REFUSAL_KEY, self->refusal);
	EXPECT_COUNTED(1);
	EXPECT_EQ(0, OPEN(self->port + 2, ""));
}

TEST_F(auth, by_any_key_of_a_listener_is_taken)
{
	static const char *const both[] = { KEY_A, KEY_B, NULL };
	struct kxfer_info_listener info;
	uint64_t listener, cursor;

	ASSERT_EQ(0, kx_listen_add_keys(self->fd, kx_addr(kx_address(), self->port + 3), both,
					&listener));
	cursor = listener - 1;
	test_cmd_info(1, self->fd, KXFER_INFO_LISTENERS, &info, sizeof(info), 1, &cursor);
	EXPECT_EQ(2, info.nr_keys);
	EXPECT_EQ(0, OPEN(self->port + 3, KEY_A));
	EXPECT_EQ(0, OPEN(self->port + 3, KEY_B));
	EXPECT_EQ(-EKEYREJECTED, OPEN(self->port + 3, ""));
}

/* A link belongs to users that can search the key, under the same name or not. */
TEST_F(auth, of_another_secret_shares_no_link)
{
	struct kxfer_peer_open first = {
		.size = sizeof(first),
		.remote = kx_addr(kx_address(), self->port),
		.timeout_ms = KX_TIMEOUT_MS,
		.key = KEY_A,
	};
	struct kxfer_peer_open again = first;

	ASSERT_EQ(0, kx_call(self->fd, KXFER_PEER_OPEN, &first));
	ASSERT_EQ(0, kx_call(self->fd, KXFER_PEER_OPEN, &again));
	EXPECT_EQ(first.link, again.link);
	ASSERT_EQ(0, kx_key_add(KEY_A, SEED_B, BYTES));
	EXPECT_EQ(-EKEYREJECTED, OPEN(self->port, KEY_A));
	ASSERT_EQ(0, kx_key_add(KEY_A, SEED_A, BYTES));
}

/* The listener has a copy of the key, and so does a peer that connects anew. */
TEST_F(auth, outlives_the_key_in_the_keyring)
{
	struct kxfer_peer_export export;
	uint64_t cursor = 0;

	ASSERT_EQ(0, OPEN(self->port, KEY_A));
	kx_key_del(KEY_A);
	EXPECT_EQ(-ENOKEY, OPEN(self->port, KEY_A));
	EXPECT_LE(0, kx_peer_list(self->fd, self->peer, &export, 1, &cursor));
	EXPECT_EQ(0, open_keyed(&self->keyed, self->port, SEED_A));
	ASSERT_EQ(0, kx_key_add(KEY_A, SEED_A, BYTES));
}

/* ---- ending former links ---- */

/*
 * RESUME by another link of this host: one without a key, or with another one, ends no link that
 * has proved a key, even if it knows epoch and nonce, which go over the wire in the clear.
 */
static int resume_by(struct raw_link *link, const struct keyed *keyed)
{
	struct kxfer_wire_resume resume = { .epoch = keyed->statement.hello.epoch };

	memcpy(resume.cookie, keyed->statement.hello.cookie, sizeof(resume.cookie));
	return raw_request(link, &link->control, KXFER_WIRE_RESUME, &resume, sizeof(resume), NULL,
			   NULL);
}

static void with_resume(struct kxfer_wire_hello *hello)
{
	hello->features |= htobe32(KXFER_WIRE_FEATURE_RESUME);
}

static int open_keyed_with_resume(struct keyed *keyed, uint16_t port, uint8_t seed)
{
	struct kxfer_wire_keyed_hello_answer answer;
	struct kxfer_wire_proof proof;
	int ret = connect_keyed(keyed, port, with_resume);

	if (ret)
		return ret;
	proof = initiators_proof(keyed, seed);
	return hello_with(keyed, &proof, sizeof(proof), &answer);
}

#define EXPECT_ALIVE(link) \
	EXPECT_EQ(0, raw_request(link, &(link)->control, KXFER_WIRE_PING, NULL, 0, NULL, NULL))

TEST_F(auth, a_link_is_not_ended_by_one_without_its_key)
{
	struct raw_link plain;
	struct keyed other;

	ASSERT_EQ(0, open_keyed(&self->keyed, self->port, SEED_A));
	ASSERT_EQ(0, raw_link_open_with(&plain, self->port + 2, KXFER_WIRE_FEATURE_RESUME));
	EXPECT_EQ(KXFER_WIRE_OK, resume_by(&plain, &self->keyed));
	EXPECT_ALIVE(&self->keyed.link);
	raw_link_close(&plain);
	ASSERT_EQ(0, open_keyed_with_resume(&other, self->port + 1, SEED_B));
	EXPECT_EQ(KXFER_WIRE_OK, resume_by(&other.link, &self->keyed));
	EXPECT_ALIVE(&self->keyed.link);
	raw_link_close(&other.link);
}

TEST_F(auth, a_link_is_ended_by_one_with_its_key)
{
	struct keyed other;

	ASSERT_EQ(0, open_keyed(&self->keyed, self->port, SEED_A));
	ASSERT_EQ(0, open_keyed_with_resume(&other, self->port, SEED_A));
	EXPECT_EQ(KXFER_WIRE_OK, resume_by(&other.link, &self->keyed));
	EXPECT_TRUE(raw_dropped(&self->keyed.link.control, DROP_MS));
	raw_link_close(&other.link);
}

/* ---- initiators that lie ---- */

TEST_F(auth, is_what_the_protocol_says)
{
	struct kxfer_wire_keyed_hello_answer answer;
	struct kxfer_wire_proof proof, theirs;
	struct kxfer_wire_hello hello;

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	ASSERT_EQ(sizeof(self->keyed.statement.welcome), self->keyed.link.control.welcome_bytes);
	proof = initiators_proof(&self->keyed, SEED_A);
	ASSERT_EQ(KXFER_WIRE_OK, hello_with(&self->keyed, &proof, sizeof(proof), &answer));
	label(&self->keyed.statement, "kxfer responder");
	self->keyed.statement.answer = answer.answer;
	prove(SEED_A, &self->keyed.statement, theirs.proof);
	EXPECT_EQ(0, memcmp(&theirs, &answer.proof, sizeof(theirs)));
	memset(&self->keyed.statement.answer, 0, sizeof(answer.answer));
	hello = lane_hello(&self->keyed, SEED_A, 1);
	EXPECT_EQ(0, raw_lane_connect(&self->keyed.link.data, self->port, 0, &hello,
				      sizeof(hello), self->keyed.link.pd));
	EXPECT_COUNTED(0);
}

#define EXPECT_NO_ACCESS(proof, bytes) ({					\
	struct kxfer_wire_keyed_hello_answer answer;				\
										\
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS,						\
		  hello_with(&self->keyed, proof, bytes, &answer));		\
	EXPECT_TRUE(raw_dropped(&self->keyed.link.control, DROP_MS));		\
	EXPECT_COUNTED(1);							\
})

TEST_F(auth, of_a_wrong_proof_is_refused)
{
	struct kxfer_wire_proof proof;

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	proof = initiators_proof(&self->keyed, SEED_A);
	proof.proof[KXFER_WIRE_PROOF_SIZE - 1] ^= 1;
	EXPECT_NO_ACCESS(&proof, sizeof(proof));
}

TEST_F(auth, has_one_try_a_connection)
{
	struct kxfer_wire_keyed_hello_answer answer;
	struct kxfer_wire_proof wrong = {}, proof;
	int ret;

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	proof = initiators_proof(&self->keyed, SEED_A);
	EXPECT_EQ(KXFER_WIRE_NO_ACCESS, hello_with(&self->keyed, &wrong, sizeof(wrong), &answer));
	ret = hello_with(&self->keyed, &proof, sizeof(proof), &answer);
	EXPECT_TRUE(ret == KXFER_WIRE_NO_ACCESS || ret < 0) {
		TH_LOG("the second try: %d", ret);
	}
}

TEST_F(auth, that_is_cut_or_left_out_is_refused)
{
	static const uint32_t lengths[] = { 0, 1, KXFER_WIRE_PROOF_SIZE - 1 };
	struct kxfer_wire_proof proof;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
		proof = initiators_proof(&self->keyed, SEED_A);
		EXPECT_NO_ACCESS(&proof, lengths[i]);
		raw_link_close(&self->keyed.link);
	}
}

TEST_F(auth, that_was_recorded_is_refused)
{
	struct kxfer_wire_keyed_hello_answer answer;
	struct kxfer_wire_proof recorded;
	struct kxfer_wire_hello hello;
	static const struct raw_manners well;
	uint16_t source_port;

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	recorded = initiators_proof(&self->keyed, SEED_A);
	ASSERT_EQ(KXFER_WIRE_OK,
		  hello_with(&self->keyed, &recorded, sizeof(recorded), &answer));
	hello = self->keyed.statement.hello;
	source_port = be16toh(self->keyed.statement.initiator.port);
	raw_link_close(&self->keyed.link);
	/* The source port is the same, so that only the nonce of the other end differs. */
	ASSERT_TRUE(kx_wait_until(raw_lane_connect_as(&self->keyed.link.control, self->port,
						      source_port, &hello, sizeof(hello), NULL,
						      &well) != -EADDRINUSE, 10000));
	self->keyed.link.pd = self->keyed.link.control.pd;
	EXPECT_NO_ACCESS(&recorded, sizeof(recorded));
}

TEST_F(auth, of_the_other_end_is_refused)
{
	struct kxfer_wire_proof proof;

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	label(&self->keyed.statement, "kxfer responder");
	prove(SEED_A, &self->keyed.statement, proof.proof);
	EXPECT_NO_ACCESS(&proof, sizeof(proof));
}

TEST_F(auth, made_for_another_port_is_refused)
{
	struct kxfer_wire_proof proof;

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	self->keyed.statement.responder.port = htobe16(self->port + 1);
	proof = initiators_proof(&self->keyed, SEED_A);
	EXPECT_NO_ACCESS(&proof, sizeof(proof));
}

static void fewer_features(struct kxfer_wire_hello *hello)
{
	hello->features = htobe32(KXFER_WIRE_FEATURE_KEY);
}

static void fewer_versions(struct kxfer_wire_hello *hello)
{
	hello->version_max = htobe16(KXFER_WIRE_VERSION_MIN);
}

static void fewer_lanes(struct kxfer_wire_hello *hello)
{
	hello->nr_lanes = htobe16(1);
}

/* The hello of an initiator after a downgrade by an attacker on the path. */
TEST_F(auth, of_a_hello_that_was_downgraded_is_refused)
{
	static void (*const changes[])(struct kxfer_wire_hello *hello) = {
		fewer_features, fewer_versions, fewer_lanes,
	};
	struct kxfer_wire_proof proof;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct kxfer_wire_hello *said = &self->keyed.statement.hello;

		ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, changes[i]));
		if (i == 0)
			said->features |= htobe32(KXFER_WIRE_FEATURE_LONG);
		else if (i == 1)
			said->version_max = htobe16(KXFER_WIRE_VERSION_MAX + 1);
		else
			said->nr_lanes = htobe16(2);
		proof = initiators_proof(&self->keyed, SEED_A);
		EXPECT_NO_ACCESS(&proof, sizeof(proof));
		raw_link_close(&self->keyed.link);
	}
}

static void no_key(struct kxfer_wire_hello *hello)
{
	hello->features = 0;
}

TEST_F(auth, that_a_hello_does_not_announce_is_refused)
{
	EXPECT_EQ(-ECONNREFUSED, connect_keyed(&self->keyed, self->port, no_key));
	EXPECT_EQ(KXFER_REFUSAL_KEY, self->keyed.link.control.refusal);
	EXPECT_COUNTED(1);
}

TEST_F(auth, comes_before_any_other_message)
{
	struct kxfer_wire_grant grant = { .name = KXFER_PING_NAME };

	ASSERT_EQ(0, connect_keyed(&self->keyed, self->port, NULL));
	raw_post_request(&self->keyed.link.control,
			 raw_header(KXFER_WIRE_GRANT, 1, sizeof(grant), 1), &grant,
			 sizeof(grant));
	EXPECT_TRUE(raw_dropped(&self->keyed.link.control, DROP_MS));
}

TEST_F(auth, where_there_is_no_key_ends_the_link)
{
	struct kxfer_wire_proof proof = {};
	static const struct raw_manners well;

	ASSERT_EQ(0, raw_link_connect_as(&self->keyed.link, self->port + 2, NULL, 0, &well));
	raw_post_request(&self->keyed.link.control,
			 raw_header(KXFER_WIRE_HELLO, 1, sizeof(proof), 1), &proof,
			 sizeof(proof));
	EXPECT_TRUE(raw_dropped(&self->keyed.link.control, DROP_MS));
}

#define EXPECT_NO_LANE(hello) ({						\
	EXPECT_EQ(-ECONNREFUSED, raw_lane_connect(&self->lane, self->port, 0, &(hello),	\
						  sizeof(hello), NULL));	\
	EXPECT_EQ(KXFER_REFUSAL_COOKIE, self->lane.refusal);			\
})

TEST_F(auth, of_a_lane_is_its_own)
{
	struct kxfer_wire_hello hello, other;

	ASSERT_EQ(0, open_keyed(&self->keyed, self->port, SEED_A));
	/* The nonce, which every observer has seen. */
	hello = raw_hello_data(KXFER_WIRE_DATA, self->keyed.statement.hello.cookie,
			       be64toh(self->keyed.statement.hello.epoch));
	EXPECT_NO_LANE(hello);
	hello.features = htobe32(KXFER_WIRE_FEATURE_KEY);
	EXPECT_NO_LANE(hello);
	/* Zeros, which a link has before the first proof. */
	memset(hello.cookie, 0, sizeof(hello.cookie));
	EXPECT_NO_LANE(hello);
	other = lane_hello(&self->keyed, SEED_A, 2);
	other.lane = 1;
	EXPECT_NO_LANE(other);
	hello = lane_hello(&self->keyed, SEED_B, 1);
	EXPECT_NO_LANE(hello);
	hello = lane_hello(&self->keyed, SEED_A, 1);
	hello.features = 0;
	EXPECT_NO_LANE(hello);
	hello.features = htobe32(KXFER_WIRE_FEATURE_KEY);
	EXPECT_EQ(0, raw_lane_connect(&self->keyed.link.data, self->port, 0, &hello,
				      sizeof(hello), self->keyed.link.pd));
	/* a replayed proof */
	EXPECT_NO_LANE(hello);
}

/* ---- servers that lie ---- */

static struct {
	int answer_bytes;
	bool reflect;
	bool revoke_first;
	int nr_hellos;
} liar;

/* Answers HELLO with the configured lie. */
static bool lie(struct raw_server *server, struct raw_lane *lane,
		const struct kxfer_wire_header *message, uint32_t length)
{
	struct kxfer_wire_keyed_hello_answer answer = {};
	struct kxfer_wire_header header = *message;
	struct kxfer_wire_exposure_id exposure = {};

	if (message->type != KXFER_WIRE_HELLO)
		return false;
	liar.nr_hellos++;
	if (liar.revoke_first)
		raw_post_request(lane, raw_header(KXFER_WIRE_REVOKE, 1, sizeof(exposure), 1),
				 &exposure, sizeof(exposure));
	if (liar.reflect && length >= sizeof(header) + sizeof(answer.proof))
		memcpy(&answer.proof, message + 1, sizeof(answer.proof));
	header.type |= KXFER_WIRE_ANSWER;
	header.length = htobe16(liar.answer_bytes);
	raw_post_request(lane, header, &answer, liar.answer_bytes);
	return true;
}

FIXTURE(liar)
{
	int fd;
	uint16_t port;
	uint32_t peer;
	uint32_t refusal;
	uint64_t refused;
	struct raw_server server;
};

FIXTURE_SETUP(liar)
{
	struct kxfer_query query = { .size = sizeof(query) };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_query(self->fd, &query);
	if (!(query.features & KXFER_FEATURE_KEY))
		SKIP(return, "the kernel has no keyrings");
	ASSERT_EQ(0, kx_key_add(KEY_A, SEED_A, BYTES));
	self->port = kx_own_port();
	raw_server_init(&self->server);
	self->server.welcome.features = htobe32(KXFER_WIRE_FEATURE_KEY);
	self->server.welcome_bytes = sizeof(self->server.keyed_welcome);
	self->server.intercept = lie;
	memset(&liar, 0, sizeof(liar));
	liar.answer_bytes = sizeof(struct kxfer_wire_keyed_hello_answer);
	self->refused = kx_counter(self->fd, "keys_refused");
}

FIXTURE_TEARDOWN(liar)
{
	raw_server_stop(&self->server);
	close(self->fd);
	kx_key_del(KEY_A);
}

#define EXPECT_REJECTED(refusal_, hellos) ({					\
	ASSERT_EQ(0, raw_server_start(&self->server, self->port));		\
	EXPECT_EQ(-EKEYREJECTED,						\
		  kx_peer_open_key(self->fd, kx_addr(kx_address(), self->port),	\
				   KEY_A, &self->peer, &self->refusal));	\
	EXPECT_EQ(refusal_, self->refusal);					\
	EXPECT_EQ(hellos, liar.nr_hellos);					\
	EXPECT_EQ(self->refused + 1, kx_counter(self->fd, "keys_refused"));	\
})

TEST_F(liar, who_proves_nothing_is_left)
{
	EXPECT_REJECTED(KXFER_REFUSAL_KEY, 1);
}

TEST_F(liar, who_reflects_the_proof_is_left)
{
	liar.reflect = true;
	EXPECT_REJECTED(KXFER_REFUSAL_KEY, 1);
}

TEST_F(liar, who_leaves_the_proof_out_is_left)
{
	liar.answer_bytes = sizeof(struct kxfer_wire_hello_answer);
	EXPECT_REJECTED(KXFER_REFUSAL_KEY, 1);
}

/* The server does not get a proof of the initiator. */
TEST_F(liar, who_wants_no_key_is_left)
{
	self->server.welcome.features = 0;
	EXPECT_REJECTED(KXFER_REFUSAL_KEY, 0);
}

/* InfiniBand pads with zeros, so rxe shows a nonce of zeros, which is a wrong one. */
TEST_F(liar, whose_welcome_is_cut_is_left)
{
	self->server.welcome_bytes = sizeof(self->server.welcome);
	EXPECT_REJECTED(KXFER_REFUSAL_KEY, strcmp(kx_provider(), "siw") ? 1 : 0);
}

TEST_F(liar, who_asks_before_it_proves_is_left)
{
	uint64_t errors = kx_counter(self->fd, "protocol_errors");

	liar.revoke_first = true;
	ASSERT_EQ(0, raw_server_start(&self->server, self->port));
	EXPECT_GT(0, kx_peer_open_key(self->fd, kx_addr(kx_address(), self->port), KEY_A,
				      &self->peer, &self->refusal));
	EXPECT_LT(errors, kx_counter(self->fd, "protocol_errors"));
}

/* ---- rules ---- */

FIXTURE(keyrule)
{
	int fd;
	uint16_t port;
	uint64_t listener;
	uint32_t region;
	uint32_t export_id;
	uint32_t peer, target;
	void *memory;
};

FIXTURE_SETUP(keyrule)
{
	static const char *const both[] = { KEY_A, KEY_B, NULL };
	struct kxfer_query query = { .size = sizeof(query) };

	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	test_cmd_query(self->fd, &query);
	if (!(query.features & KXFER_FEATURE_KEY))
		SKIP(return, "the kernel has no keyrings");
	ASSERT_EQ(0, kx_key_add(KEY_A, SEED_A, BYTES));
	ASSERT_EQ(0, kx_key_add(KEY_B, SEED_B, BYTES));
	self->port = kx_own_port();
	ASSERT_EQ(0, kx_listen_add_keys(self->fd, kx_addr(kx_address(), self->port), both,
					&self->listener));
	self->memory = kx_alloc(LENGTH);
	ASSERT_NE(NULL, self->memory);
	test_cmd_region_add(self->fd, self->memory, LENGTH, KXFER_REGION_F_WRITE,
			    &self->region);
}

FIXTURE_TEARDOWN(keyrule)
{
	close(self->fd);
	kx_key_del(KEY_A);
	kx_key_del(KEY_B);
}

static int target_by(int fd, uint16_t port, const char *key, uint32_t *target)
{
	uint32_t peer;

	return kx_peer_open_key(fd, kx_addr(kx_address(), port), key, &peer, NULL) ?:
	       kx_target_open(fd, peer, "keyruled", KXFER_RIGHT_WRITE, target);
}

TEST_F(keyrule, lets_in_who_proved_that_key)
{
	struct kxfer_rule rule = {
		.match = KXFER_RULE_KEY,
		.rights = KXFER_RIGHT_WRITE,
		.key = KEY_A,
	};

	test_cmd_export_add_rules(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_WRITE,
				  "keyruled", &rule, 1, &self->export_id);
	EXPECT_EQ(-EACCES, target_by(self->fd, self->port, KEY_B, &self->target));
	EXPECT_EQ(0, target_by(self->fd, self->port, KEY_A, &self->target));
}

TEST_F(keyrule, lets_nobody_in_without_a_key)
{
	struct kxfer_rule rule = {
		.match = KXFER_RULE_KEY,
		.rights = KXFER_RIGHT_WRITE,
		.key = KEY_A,
	};
	uint64_t listener;

	test_cmd_listen_add(self->fd, kx_addr(kx_address(), self->port + 1), 0, &listener);
	test_cmd_export_add_rules(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_WRITE,
				  "keyruled", &rule, 1, &self->export_id);
	EXPECT_EQ(-EACCES, target_by(self->fd, self->port + 1, "", &self->target));
}

TEST_F(keyrule, says_whether_uids_are_believed)
{
	struct kxfer_rule rules[] = {
		{
			.match = KXFER_RULE_KEY | KXFER_RULE_NO_UIDS,
			.rights = KXFER_RIGHT_WRITE,
			.key = KEY_B,
		},
		{ .match = KXFER_RULE_KEY, .rights = KXFER_RIGHT_WRITE, .key = KEY_A },
	};
	struct kxfer_event event = {};

	test_cmd_export_add_rules(self->fd, self->region, 0, LENGTH, KXFER_RIGHT_WRITE,
				  "keyruled", rules, 2, &self->export_id);
	ASSERT_EQ(0, target_by(self->fd, self->port, KEY_A, &self->target));
	test_cmd_notify(self->fd, self->target, 1);
	test_cmd_event_reap(1, self->fd, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(0, event.uid);
	ASSERT_EQ(0, target_by(self->fd, self->port, KEY_B, &self->target));
	test_cmd_notify(self->fd, self->target, 2);
	test_cmd_event_reap(1, self->fd, &event, 1, KX_TIMEOUT_MS);
	EXPECT_EQ(KXFER_UID_UNKNOWN, event.uid);
	EXPECT_EQ(KXFER_UID_UNKNOWN, event.gid);
}

TEST_HARNESS_MAIN

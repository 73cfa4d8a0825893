// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: secrets that two nodes share, and the proof that the other end of a link has
 * one.
 *
 * A secret is a key of type logon in the kernel's keyring, described as kxfer:NAME. The
 * caller of LISTEN_ADD or PEER_OPEN has to be able to search it. The module keeps a copy
 * derived from the secret, so revoking the key in the keyring ends no listener, peer or
 * link. The copy is zeroed when the last reference is dropped.
 *
 * The proof of a link takes four steps (protocol.rst shows the bytes):
 *
 *	initiator				passive side
 *	hello: KEY, a nonce		->
 *					<-	welcome: KEY, a nonce
 *	HELLO: proof of the initiator	->	compares with each key of the listener
 *	compares			<-	answer: proof of the passive side
 *
 * Each proof is an HMAC-SHA256 by the key over a label (the end that proves) and the whole
 * of hello, welcome, and the addresses and ports of both ends. So:
 *  - A recorded proof is worth nothing later: each end chooses a new nonce.
 *  - The proof of one end is never that of the other: the labels differ.
 *  - If versions, features, lanes or the epoch were changed between the ends, the ends
 *    compute different proofs. Leaving the key out of hello or welcome is refused before
 *    any proof: each end knows for itself whether it wants one.
 *  - A proof made for one listener is worth nothing at another one: its port differs.
 *
 * The passive side compares first, and shows nothing to an initiator without the key. It
 * checks one HELLO only, so that an initiator has one try for each connection. Before the
 * proof a passive link takes no other message (decode.c), and the link of an initiator
 * takes only PING (control.c).
 *
 * A data lane shows 16 bytes, derived in the same way, in place of the link's cookie. They
 * differ from lane to lane, and a lane is accepted once. A link with a key has no cookie:
 * the cookie field of its hello carries the nonce.
 *
 * A key decides which peers may connect and what they may do. It does not protect the
 * packets that follow: they can be read on the wire, and a packet injected with the right
 * queue pair, sequence number and rkey is believed.
 *
 * Context: all may sleep, except _get, _put, _end, and kxfer_handshake_lane_proven(), which
 * a handler of rdma_cm calls. Nothing here takes a lock of this module.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/key.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <keys/user-type.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/name.h"
#include "base/rule.h"
#include "base/stats.h"
#include "link/key.h"

/* The end that gives a proof, or the use of a derived value. Equal length, zero-filled. */
struct label {
	char text[16];
};

static const struct label label_secret = { "kxfer secret" };
static const struct label label_id = { "kxfer id" };
static const struct label label_initiator = { "kxfer initiator" };
static const struct label label_responder = { "kxfer responder" };
static const struct label label_lane = { "kxfer lane" };

/* Input of a proof: no padding, and each part of fixed length. */
struct statement {
	struct label label;
	struct kxfer_wire_addr initiator;
	struct kxfer_wire_addr responder;
	struct kxfer_wire_hello hello;
	struct kxfer_wire_keyed_welcome welcome;
	__be32 lane;
	struct kxfer_wire_hello_answer answer;
};

static_assert(sizeof(struct statement) == 144);

/* Allocate the kernel's HMAC-SHA256, without a key yet. */
static struct crypto_shash *alloc_hmac(void)
{
	struct crypto_shash *hmac;

	hmac = kxfer_try_ptr(KEY_HMAC, crypto_alloc_shash("hmac(sha256)", 0, 0));
	/* The caller would take ENOENT for a missing key. */
	return hmac == ERR_PTR(-ENOENT) ? ERR_PTR(-EOPNOTSUPP) : hmac;
}

static int compute(struct crypto_shash *hmac, const void *secret, u32 secret_bytes,
		   const void *data, u32 bytes, u8 *result)
{
	return crypto_shash_setkey(hmac, secret, secret_bytes) ?:
	       crypto_shash_tfm_digest(hmac, data, bytes, result);
}

/* @result: KXFER_WIRE_PROOF_SIZE bytes */
static int hmac_of(const struct kxfer_key *key, const void *data, u32 bytes, u8 *result)
{
	struct crypto_shash *hmac = alloc_hmac();
	int ret;

	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	ret = compute(hmac, key->secret, sizeof(key->secret), data, bytes, result);
	crypto_free_shash(hmac);
	return ret;
}

#ifdef CONFIG_KEYS
/* Called with the semaphore of @from held. */
static int derive_locked(struct kxfer_key *key, struct key *from)
{
	const struct user_key_payload *payload = user_key_payload_locked(from);
	struct crypto_shash *hmac;
	int ret;

	/* The key was revoked since it was found. */
	if (!payload)
		return -ENOKEY;
	if (payload->datalen < KXFER_KEY_MIN)
		return -EKEYREJECTED;
	hmac = alloc_hmac();
	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	ret = compute(hmac, payload->data, payload->datalen, &label_secret,
		      sizeof(label_secret), key->secret);
	crypto_free_shash(hmac);
	return ret;
}

/* Revoked, expired or out of reach: for the caller there is no such key. */
static int search_error(int error)
{
	return error == -ENOMEM || error == -EINTR ? error : -ENOKEY;
}

static int read_keyring(struct kxfer_key *key)
{
	char description[sizeof(KXFER_KEY_PREFIX) + KXFER_NAME_MAX];
	struct key *from;
	int ret;

	snprintf(description, sizeof(description), KXFER_KEY_PREFIX "%s", key->name);
	from = kxfer_try_ptr(KEY_REQUEST, request_key(&key_type_logon, description, NULL));
	if (IS_ERR(from))
		return search_error(PTR_ERR(from));
	down_read(&from->sem);
	ret = derive_locked(key, from);
	up_read(&from->sem);
	key_put(from);
	return ret;
}
#else
static int read_keyring(struct kxfer_key *key)
{
	return -EOPNOTSUPP;
}
#endif

static int derive_id(struct kxfer_key *key)
{
	struct {
		struct label label;
		u8 name[sizeof(key->name)];
	} data = { .label = label_id };
	u8 result[KXFER_WIRE_PROOF_SIZE];
	int ret;

	memcpy(data.name, key->name, sizeof(data.name));
	ret = hmac_of(key, &data, sizeof(data), result);
	memcpy(key->id, result, sizeof(key->id));
	return ret;
}

/**
 * kxfer_key_create() - copy a key of the calling process's keyrings
 * @name: name of the key, KXFER_NAME_MAX + 1 bytes
 *
 * Return: the key with one reference; or ERR_PTR: -EINVAL for a malformed name, -ENOKEY,
 * -EKEYREJECTED if the secret is too short, -EOPNOTSUPP if the kernel has no keyrings or no
 * HMAC-SHA256, -ENOMEM.
 */
struct kxfer_key *kxfer_key_create(const u8 *name)
{
	struct kxfer_key *key;
	int ret;

	if (!kxfer_name_valid(name))
		return ERR_PTR(-EINVAL);
	key = kxfer_try_alloc(KEY, kzalloc_obj(*key, GFP_KERNEL_ACCOUNT));
	if (!key)
		return ERR_PTR(-ENOMEM);
	kref_init(&key->ref);
	strscpy((char *)key->name, (const char *)name, sizeof(key->name));
	kxfer_stat_inc(KXFER_STAT_LIVE_KEYS);
	ret = read_keyring(key) ?: derive_id(key);
	if (!ret)
		return key;
	kxfer_key_put(key);
	return ERR_PTR(ret);
}

static void key_release(struct kref *ref)
{
	kfree_sensitive(container_of(ref, struct kxfer_key, ref));
	kxfer_stat_dec(KXFER_STAT_LIVE_KEYS);
}

/** kxfer_key_get() - take a reference; @key may be NULL. Return: @key */
struct kxfer_key *kxfer_key_get(struct kxfer_key *key)
{
	if (key)
		kref_get(&key->ref);
	return key;
}

/** kxfer_key_put() - drop a reference; @key may be NULL; any context */
void kxfer_key_put(struct kxfer_key *key)
{
	if (key)
		kref_put(&key->ref, key_release);
}

static void keys_release(struct kref *ref)
{
	struct kxfer_keys *keys = container_of(ref, struct kxfer_keys, ref);
	u32 i;

	for (i = 0; i < keys->nr; i++)
		kxfer_key_put(keys->keys[i]);
	kfree(keys);
}

/** kxfer_keys_get() - take a reference; @keys may be NULL. Return: @keys */
struct kxfer_keys *kxfer_keys_get(struct kxfer_keys *keys)
{
	if (keys)
		kref_get(&keys->ref);
	return keys;
}

/** kxfer_keys_put() - drop a reference; @keys may be NULL; any context */
void kxfer_keys_put(struct kxfer_keys *keys)
{
	if (keys)
		kref_put(&keys->ref, keys_release);
}

static bool has_name(const struct kxfer_keys *keys, const struct kxfer_key_name *name)
{
	u32 i;

	for (i = 0; i < keys->nr; i++)
		if (!memcmp(keys->keys[i]->name, name->name, sizeof(name->name)))
			return true;
	return false;
}

static int add_key(struct kxfer_keys *keys, const struct kxfer_key_name __user *from)
{
	struct kxfer_key_name name;
	struct kxfer_key *key;

	if (copy_from_user(&name, from, sizeof(name)))
		return -EFAULT;
	key = kxfer_key_create(name.name);
	if (IS_ERR(key))
		return PTR_ERR(key);
	if (has_name(keys, &name)) {
		kxfer_key_put(key);
		return -EINVAL;
	}
	keys->keys[keys->nr++] = key;
	return 0;
}

/**
 * kxfer_keys_copy() - copy the keys for a listener
 * @keys: out: the keys, with one reference, or NULL if @nr is 0
 * @from: user address of the array of names; 0 if @nr is 0
 * @nr: number of names
 *
 * Return: 0; -EDQUOT for too many, -EFAULT, -EINVAL for a name given twice or a wrong
 * @from, -ENOMEM, or an error of kxfer_key_create().
 */
int kxfer_keys_copy(struct kxfer_keys **keys, u64 from, u32 nr)
{
	const struct kxfer_key_name __user *names = u64_to_user_ptr(from);
	struct kxfer_keys *copy;
	int ret = 0;
	u32 i;

	*keys = NULL;
	if (nr > KXFER_LISTEN_KEYS_MAX)
		return -EDQUOT;
	if (!nr)
		return from ? -EINVAL : 0;
	copy = kxfer_try_alloc(KEYS, kzalloc(struct_size(copy, keys, nr), GFP_KERNEL_ACCOUNT));
	if (!copy)
		return -ENOMEM;
	kref_init(&copy->ref);
	for (i = 0; !ret && i < nr; i++)
		ret = add_key(copy, &names[i]);
	if (ret)
		kxfer_keys_put(copy);
	else
		*keys = copy;
	return ret;
}

/* ---- the handshake ---- */

/* Leaves out the scope, whose numbers are local to each node. */
static void addr_to_wire(struct kxfer_wire_addr *wire, const struct kxfer_addr *addr)
{
	*wire = (struct kxfer_wire_addr) {
		.family = cpu_to_be16(addr->family),
		.port = cpu_to_be16(addr->port),
	};
	memcpy(wire->addr, addr->addr, sizeof(wire->addr));
}

/** kxfer_handshake_set_addrs() - set the addresses of both ends of the control connection */
void kxfer_handshake_set_addrs(struct kxfer_handshake *handshake,
			       const struct kxfer_addr *initiator,
			       const struct kxfer_addr *responder)
{
	addr_to_wire(&handshake->initiator, initiator);
	addr_to_wire(&handshake->responder, responder);
}

/*
 * @answer: answer that the passive side proves, or NULL. @lane: number of the data lane with
 * label_lane, else 0. @result: KXFER_WIRE_PROOF_SIZE bytes.
 */
static int prove(const struct kxfer_handshake *handshake, const struct kxfer_key *key,
		 const struct label *label, const struct kxfer_wire_hello_answer *answer,
		 u32 lane, u8 *result)
{
	struct statement statement = {
		.label = *label,
		.initiator = handshake->initiator,
		.responder = handshake->responder,
		.hello = handshake->hello,
		.welcome = handshake->welcome,
		.lane = cpu_to_be32(lane),
	};

	if (answer)
		statement.answer = *answer;
	return hmac_of(key, &statement, sizeof(statement), result);
}

static int make_lane_proofs(struct kxfer_handshake *handshake, const struct kxfer_key *key)
{
	u8 result[KXFER_WIRE_PROOF_SIZE];
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < KXFER_WIRE_LANES_MAX; i++) {
		ret = prove(handshake, key, &label_lane, NULL, i + 1, result);
		memcpy(handshake->lane_proofs[i], result, sizeof(handshake->lane_proofs[i]));
	}
	memzero_explicit(result, sizeof(result));
	return ret;
}

/* From here on data lanes can connect or be accepted. */
static int accept_key(struct kxfer_handshake *handshake, struct kxfer_key *key)
{
	int ret = make_lane_proofs(handshake, key);

	if (!ret)
		WRITE_ONCE(handshake->proven, kxfer_key_get(key));
	return ret;
}

/** kxfer_handshake_prove() - compute the proof of an initiator's HELLO. Return: 0 or -errno */
int kxfer_handshake_prove(const struct kxfer_handshake *handshake, struct kxfer_key *key,
			  struct kxfer_wire_proof *proof)
{
	return prove(handshake, key, &label_initiator, NULL, 0, proof->proof);
}

static int check_key(struct kxfer_handshake *handshake, struct kxfer_key *key,
		     const struct kxfer_wire_proof *proof)
{
	u8 right[KXFER_WIRE_PROOF_SIZE];
	int ret;

	ret = prove(handshake, key, &label_initiator, NULL, 0, right);
	if (ret)
		return ret;
	if (crypto_memneq(right, proof->proof, sizeof(right)))
		return -EACCES;
	return accept_key(handshake, key);
}

/**
 * kxfer_handshake_check() - whether an initiator has proved a key
 * @handshake: handshake of a passive link
 * @keys: keys of its listener
 * @proof: payload of HELLO
 * @length: bytes of @proof
 *
 * Serialized by the caller. Return: 0, @handshake->proven is the proved key; -EACCES;
 * -errno if this side cannot check.
 */
int kxfer_handshake_check(struct kxfer_handshake *handshake, struct kxfer_keys *keys,
			  const struct kxfer_wire_proof *proof, u32 length)
{
	int ret = -EACCES;
	u32 i;

	if (handshake->tried || length != sizeof(*proof))
		return -EACCES;
	handshake->tried = true;
	for (i = 0; ret == -EACCES && i < keys->nr; i++)
		ret = check_key(handshake, keys->keys[i], proof);
	return ret;
}

/** kxfer_handshake_answer() - prove the passive side's answer to HELLO. Return: 0 or -errno */
int kxfer_handshake_answer(const struct kxfer_handshake *handshake,
			   struct kxfer_wire_keyed_hello_answer *answer)
{
	return prove(handshake, handshake->proven, &label_responder, &answer->answer, 0,
		     answer->proof.proof);
}

/**
 * kxfer_handshake_check_answer() - whether the passive side has proved the key
 * @handshake: handshake of an initiator's link
 * @key: key of the link
 * @answer: answer to HELLO
 *
 * Return: 0, @handshake->proven is set; -EKEYREJECTED; -errno if this side cannot check.
 */
int kxfer_handshake_check_answer(struct kxfer_handshake *handshake, struct kxfer_key *key,
				 const struct kxfer_wire_keyed_hello_answer *answer)
{
	u8 right[KXFER_WIRE_PROOF_SIZE];
	int ret;

	ret = prove(handshake, key, &label_responder, &answer->answer, 0, right);
	if (ret)
		return ret;
	if (crypto_memneq(right, answer->proof.proof, sizeof(right)))
		return -EKEYREJECTED;
	return accept_key(handshake, key);
}

/**
 * kxfer_handshake_lane_proven() - whether a data lane belongs to a link with a key
 * @handshake: handshake of a passive link that is or was LIVE
 * @hello: hello of the lane; kxfer_wire_check_hello() has checked the lane number
 *
 * Does not sleep.
 */
bool kxfer_handshake_lane_proven(const struct kxfer_handshake *handshake,
				 const struct kxfer_wire_hello *hello)
{
	return !crypto_memneq(handshake->lane_proofs[hello->lane - 1], hello->cookie,
			      sizeof(hello->cookie));
}

/** kxfer_handshake_end() - drop the key and erase all secrets; any context */
void kxfer_handshake_end(struct kxfer_handshake *handshake)
{
	kxfer_key_put(handshake->proven);
	memzero_explicit(handshake, sizeof(*handshake));
}

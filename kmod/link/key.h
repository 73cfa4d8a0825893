/* SPDX-License-Identifier: GPL-2.0 */
/* Shared secrets of links, and the proof that both ends have one. See key.c. */
#ifndef KXFER_KEY_H
#define KXFER_KEY_H

#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/types.h>

#include "base/wire.h"

struct kxfer_addr;

#define KXFER_KEY_ID_BYTES	16

/**
 * struct kxfer_key - a copy of a shared secret
 * @ref: references
 * @name: name of the key, zero-terminated and zero-filled
 * @secret: secret derived from that of the keyring; zeroed when the key is freed
 * @id: digest of @secret and @name: equal for equal keys, and reveals nothing about them
 */
struct kxfer_key {
	struct kref ref;
	u8 name[KXFER_NAME_MAX + 1];
	u8 secret[KXFER_WIRE_PROOF_SIZE];
	u8 id[KXFER_KEY_ID_BYTES];
};

/**
 * struct kxfer_keys - the keys of a listener
 * @ref: references: of the listener, and of the links that it accepted
 * @nr: number of keys, at least 1
 * @keys: keys, with a reference on each
 */
struct kxfer_keys {
	struct kref ref;
	u32 nr;
	struct kxfer_key *keys[];
};

/**
 * struct kxfer_handshake - what a link's ends have said, and the key that they proved
 * @initiator: address and port of the initiator's end of the control connection
 * @responder: address and port of the listener
 * @hello: hello of the control connection, as sent or received
 * @welcome: welcome of the control connection, as sent or received
 * @tried: passive: the initiator has used its one try
 * @proven: proved key: initiator: its own; passive: a key of the listener; a reference;
 *	NULL: none, or not yet
 * @lane_proofs: proofs that data lanes show; [0] is lane 1's
 */
struct kxfer_handshake {
	struct kxfer_wire_addr initiator;
	struct kxfer_wire_addr responder;
	struct kxfer_wire_hello hello;
	struct kxfer_wire_keyed_welcome welcome;
	bool tried;
	struct kxfer_key *proven;
	u8 lane_proofs[KXFER_WIRE_LANES_MAX][KXFER_WIRE_COOKIE_SIZE];
};

struct kxfer_key *kxfer_key_create(const u8 *name);
struct kxfer_key *kxfer_key_get(struct kxfer_key *key);
void kxfer_key_put(struct kxfer_key *key);
int kxfer_keys_copy(struct kxfer_keys **keys, u64 from, u32 nr);
struct kxfer_keys *kxfer_keys_get(struct kxfer_keys *keys);
void kxfer_keys_put(struct kxfer_keys *keys);

void kxfer_handshake_set_addrs(struct kxfer_handshake *handshake,
			       const struct kxfer_addr *initiator,
			       const struct kxfer_addr *responder);
int kxfer_handshake_prove(const struct kxfer_handshake *handshake, struct kxfer_key *key,
			  struct kxfer_wire_proof *proof);
int kxfer_handshake_check(struct kxfer_handshake *handshake, struct kxfer_keys *keys,
			  const struct kxfer_wire_proof *proof, u32 length);
int kxfer_handshake_answer(const struct kxfer_handshake *handshake,
			   struct kxfer_wire_keyed_hello_answer *answer);
int kxfer_handshake_check_answer(struct kxfer_handshake *handshake, struct kxfer_key *key,
				 const struct kxfer_wire_keyed_hello_answer *answer);
bool kxfer_handshake_lane_proven(const struct kxfer_handshake *handshake,
				 const struct kxfer_wire_hello *hello);
void kxfer_handshake_end(struct kxfer_handshake *handshake);

#endif /* KXFER_KEY_H */

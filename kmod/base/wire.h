/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every byte that crosses the network between two kxfer nodes.
 *
 * All numbers are big-endian, all structures free of padding. A connection
 * request and its answer carry private data (struct kxfer_wire_hello, _welcome,
 * _refusal; at most 56 bytes, what rdma_connect() leaves on InfiniBand). After
 * that both ends speak in messages: a header and a payload in one SEND.
 *
 * A message is a request or its one answer; only an eager message is neither. Each side owns
 * a fixed number of request slots a lane (KXFER_WIRE_CONTROL_SLOTS, KXFER_WIRE_DATA_SLOTS) and
 * may have one unanswered request in each; the answer names the same slot and
 * sequence number. A receiver posts the RECV of a request again before it
 * answers, and has two RECVs for each slot: one for the peer's request and one
 * for its answer. The passive side has one more for each credit that it gives for
 * eager messages. So no SEND ever lacks a RECV; iWARP would drop the connection
 * otherwise. A peer that breaks these rules loses the link.
 *
 * The initiator of a link sends first (MPA of iWARP requires that): HELLO on the
 * control QP; NOTIFY, SEND, OFFER or an RDMA request on a data lane.
 *
 * User-space tests include this file too.
 */
#ifndef KXFER_WIRE_H
#define KXFER_WIRE_H

#include <linux/types.h>

#define KXFER_WIRE_MAGIC		0x6b786672	/* "kxfr" */
#define KXFER_WIRE_VERSION_MIN		1
#define KXFER_WIRE_VERSION_MAX		1

#define KXFER_WIRE_COOKIE_SIZE		16
#define KXFER_WIRE_PROOF_SIZE		32	/* of HMAC-SHA256 */
#define KXFER_WIRE_CONTROL_SLOTS	8
#define KXFER_WIRE_DATA_SLOTS		16
#define KXFER_WIRE_CONTROL_BYTES	2048	/* longest message on a control QP */
#define KXFER_WIRE_DATA_BYTES		1024	/* longest message on a data lane */
#define KXFER_WIRE_LANES_MAX		8	/* data lanes of a link */
#define KXFER_WIRE_PING_SLOT		0	/* of a control QP: kept for PING */

enum kxfer_wire_kind {
	KXFER_WIRE_CONTROL	= 0,
	KXFER_WIRE_DATA		= 1,
};

/* Long messages (OFFER, FETCHED, TAKE_BACK); used only if both ends have the feature. */
#define KXFER_WIRE_FEATURE_LONG	1U
/*
 * In hello of a control connection: the initiator will prove a key, and expects the
 * passive side to prove it too. In welcome: the same for the passive side. In hello of a
 * data lane: its link has a key. A connection is refused if only one end has this feature.
 */
#define KXFER_WIRE_FEATURE_KEY	2U

/* The answer to GRANT brings the first keys. */
#define KXFER_WIRE_FEATURE_FIRST_KEYS	4U

/*
 * Eager messages. The answer to CREDITS gives credits to a grant on a mailbox. A message that
 * takes one is a SEND with immediate data, the id of the grant; it has no header, its payload, of
 * KXFER_MESSAGE_EAGER_MAX bytes at most, is that of the message, and it is not answered. RELEASE
 * is struct kxfer_wire_release. Not on iWARP, where a SEND completes before it has arrived.
 */
#define KXFER_WIRE_FEATURE_EAGER	8U

/* KXFER_WIRE_SEND_WAIT; with KXFER_WIRE_FEATURE_LONG only. */
#define KXFER_WIRE_FEATURE_WAIT	16U

/* Links that succeed others: RESUME, and struct kxfer_wire_identity in the answer to INFO. */
#define KXFER_WIRE_FEATURE_RESUME	32U

/* RESUME may name a link to another address of its initiator. */
#define KXFER_WIRE_FEATURE_VIA	64U

#define KXFER_WIRE_OFFERS	16	/* most long messages under way on a data lane */
#define KXFER_WIRE_EAGER	64	/* most eager messages under way on a data lane */

/**
 * struct kxfer_wire_hello - private data of a connection request
 * @magic: KXFER_WIRE_MAGIC
 * @version_min: oldest protocol that the initiator speaks
 * @version_max: newest protocol that the initiator speaks
 * @kind: enum kxfer_wire_kind
 * @lane: 0 for the control QP, data lanes from 1
 * @nr_lanes: data lanes that the initiator wants, at least 1
 * @features: KXFER_WIRE_FEATURE_* that the initiator has; unknown ones are ignored
 * @cookie: random; chosen by the initiator of the control connection, shown by
 *	every data lane of the link. With KXFER_WIRE_FEATURE_KEY: the initiator's nonce,
 *	or on a data lane a value derived from the key for that lane
 * @epoch: number of the link on the initiator; grows with every connection
 */
struct kxfer_wire_hello {
	__be32 magic;
	__be16 version_min;
	__be16 version_max;
	__u8 kind;
	__u8 lane;
	__be16 nr_lanes;
	__be32 features;
	__u8 cookie[KXFER_WIRE_COOKIE_SIZE];
	__be64 epoch;
};

/**
 * struct kxfer_wire_welcome - private data of an accepted connection
 * @magic: KXFER_WIRE_MAGIC
 * @version: protocol that both ends will speak
 * @nr_lanes: data lanes granted: at least 1, at most what was asked for
 * @features: KXFER_WIRE_FEATURE_* that both ends have
 */
struct kxfer_wire_welcome {
	__be32 magic;
	__be16 version;
	__be16 nr_lanes;
	__be32 features;
};

/**
 * struct kxfer_wire_keyed_welcome - private data of an accepted control connection with a key
 * @welcome: welcome with KXFER_WIRE_FEATURE_KEY
 * @nonce: random; chosen by the passive side
 */
struct kxfer_wire_keyed_welcome {
	struct kxfer_wire_welcome welcome;
	__u8 nonce[KXFER_WIRE_COOKIE_SIZE];
};

/**
 * struct kxfer_wire_refusal - private data of a refused connection
 * @magic: KXFER_WIRE_MAGIC
 * @reason: enum kxfer_refusal
 * @version_min: oldest protocol that the refusing side speaks
 * @version_max: newest protocol that the refusing side speaks
 * @reserved: 0
 */
struct kxfer_wire_refusal {
	__be32 magic;
	__be16 reason;
	__be16 version_min;
	__be16 version_max;
	__be16 reserved;
};

enum kxfer_wire_type {
	KXFER_WIRE_HELLO	= 1,	/* initiator: first message */
	KXFER_WIRE_PING		= 2,	/* both: are you there? */
	KXFER_WIRE_GRANT	= 3,	/* initiator: open a target */
	KXFER_WIRE_KEYS		= 4,	/* initiator: the grant's table of keys, page by page */
	KXFER_WIRE_RELEASE	= 5,	/* initiator: a target is closed, its jobs have ended */
	KXFER_WIRE_INFO		= 6,	/* initiator: what does the export hold now? */
	KXFER_WIRE_LIST		= 7,	/* initiator: exports open to this user */
	KXFER_WIRE_REVOKE	= 8,	/* responder: stop; answered once no job is posted */
	KXFER_WIRE_CONTENT	= 9,	/* responder: what the export holds has changed */
	KXFER_WIRE_NOTIFY	= 10,	/* initiator, on a data lane: the cookie of a NOTIFY job */
	KXFER_WIRE_SEND		= 11,	/* initiator, on a data lane: a message for a mailbox */
	KXFER_WIRE_OFFER	= 12,	/* initiator, on a data lane: a message to be READ */
	KXFER_WIRE_FETCHED	= 13,	/* responder, on a data lane: an offer is over */
	KXFER_WIRE_TAKE_BACK	= 14,	/* initiator, on a data lane: do not READ an offer */
	KXFER_WIRE_CREDITS	= 15,	/* initiator, on a data lane: eager messages of a grant */
	KXFER_WIRE_RESUME	= 16,	/* initiator: another link, which this one succeeds */
};

/* Outcome of a request; not an errno, because errno numbers differ among architectures. */
enum kxfer_wire_status {
	KXFER_WIRE_OK			= 0,
	KXFER_WIRE_NO_ENTRY		= 1,	/* ENOENT */
	KXFER_WIRE_NO_ACCESS		= 2,	/* EACCES */
	KXFER_WIRE_NO_MEMORY		= 3,	/* ENOMEM */
	KXFER_WIRE_QUOTA		= 4,	/* EDQUOT */
	KXFER_WIRE_REVOKED		= 5,	/* EKEYREVOKED */
	KXFER_WIRE_BUSY			= 6,	/* EAGAIN */
	KXFER_WIRE_INVALID		= 7,	/* EINVAL */
	KXFER_WIRE_DEVICE		= 8,	/* EREMOTEIO: the device refused */
	KXFER_WIRE_UNSUPPORTED		= 9,	/* EOPNOTSUPP: not on this device */
};

#define KXFER_WIRE_ANSWER	0x80	/* in @type: the answer to a request of that type */

/**
 * struct kxfer_wire_header - header before every payload
 * @type: enum kxfer_wire_type, with KXFER_WIRE_ANSWER set in answers
 * @slot: slot of the side that sent the request
 * @status: enum kxfer_wire_status in answers, 0 in requests; the payload of an
 *	answer that is not OK is empty
 * @length: bytes of payload
 * @reserved: 0
 * @sequence: chosen by the requester, returned in the answer
 */
struct kxfer_wire_header {
	__u8 type;
	__u8 slot;
	__be16 status;
	__be16 length;
	__be16 reserved;
	__be64 sequence;
};

/* Longest payload on a control QP. */
#define KXFER_WIRE_CONTROL_PAYLOAD \
	(KXFER_WIRE_CONTROL_BYTES - sizeof(struct kxfer_wire_header))

struct kxfer_wire_content {
	__be64 generation;
	__be64 length;
	__u8 sha256[32];
};

/**
 * struct kxfer_wire_addr - address of one end of a control connection, as proofs cover it
 * @family: AF_INET (2) or AF_INET6 (10)
 * @port: port of that end
 * @addr: IP address; IPv4 uses the first four bytes, the rest is zero
 */
struct kxfer_wire_addr {
	__be16 family;
	__be16 port;
	__u8 addr[16];
};

/**
 * struct kxfer_wire_proof - payload of HELLO on a link with a key; empty without a key
 * @proof: HMAC-SHA256; see key.c
 */
struct kxfer_wire_proof {
	__u8 proof[KXFER_WIRE_PROOF_SIZE];
};

/**
 * struct kxfer_wire_hello_answer - answer to HELLO
 * @placement_addr: address of eight readable bytes; an iWARP initiator READs them after
 *	its WRITEs, which proves that the WRITEs are placed
 * @placement_key: rkey of these bytes; 0: none
 * @reserved: 0
 */
struct kxfer_wire_hello_answer {
	__be64 placement_addr;
	__be32 placement_key;
	__be32 reserved;
};

/**
 * struct kxfer_wire_keyed_hello_answer - answer to HELLO on a link with a key
 * @answer: answer as on a link without a key
 * @proof: proof of the passive side
 */
struct kxfer_wire_keyed_hello_answer {
	struct kxfer_wire_hello_answer answer;
	struct kxfer_wire_proof proof;
};

/**
 * struct kxfer_wire_grant - payload of GRANT
 * @name: name of the export, zero-terminated and zero-filled
 * @uid: effective uid of the process that asks
 * @gid: effective gid of the process that asks
 * @rights: KXFER_RIGHT_* wanted; 0: whatever is granted
 * @reserved: 0
 * @word: value that the process chose for its messages, if the export is a mailbox; else 0
 */
struct kxfer_wire_grant {
	__u8 name[64];
	__be32 uid;
	__be32 gid;
	__be32 rights;
	__be32 reserved;
	__be64 word;
};

/**
 * struct kxfer_wire_grant_answer - answer to GRANT; of a link with
 *	KXFER_WIRE_FEATURE_FIRST_KEYS struct kxfer_wire_keys_answer may follow it
 * @grant: id of the grant on this link
 * @exposure: id of the registration on this link; several grants may share it
 * @length: bytes of the export; for a mailbox: most payload of one message
 * @rights: KXFER_RIGHT_* granted
 * @nr_keys: entries of the table of keys; 0 for a mailbox
 * @cookie: value that the owner gave with the export
 * @content: content of the export
 */
struct kxfer_wire_grant_answer {
	__be64 grant;
	__be64 exposure;
	__be64 length;
	__be32 rights;
	__be32 nr_keys;
	__be64 cookie;
	struct kxfer_wire_content content;
};

/* Payload of KEYS: asks for entries of the table of @exposure, from @first on. */
struct kxfer_wire_keys {
	__be64 exposure;
	__be32 first;
	__be32 reserved;
};

struct kxfer_wire_key {
	__be64 addr;
	__be32 rkey;
	__be32 length;
};

struct kxfer_wire_keys_answer {
	__be32 nr;
	__be32 reserved;
	struct kxfer_wire_key keys[];
};

/* Payload of INFO, CREDITS, and RELEASE without KXFER_WIRE_FEATURE_EAGER. */
struct kxfer_wire_grant_id {
	__be64 grant;
};

/**
 * struct kxfer_wire_release - payload of RELEASE with KXFER_WIRE_FEATURE_EAGER; begins like
 *	struct kxfer_wire_grant_id
 * @grant: id of the grant
 * @sent: messages sent to the grant that took a credit, modulo 2^32. All have arrived, but they
 *	came on a data lane and may not have been handled yet
 * @reserved: 0
 */
struct kxfer_wire_release {
	__be64 grant;
	__be32 sent;
	__be32 reserved;
};

struct kxfer_wire_info_answer {
	__be64 length;
	__be64 cookie;		/* as in struct kxfer_wire_grant_answer */
	struct kxfer_wire_content content;
};

/**
 * struct kxfer_wire_identity - which export a grant is of; follows struct kxfer_wire_info_answer
 *	on a link with KXFER_WIRE_FEATURE_RESUME
 * @node: random; chosen when the module of the passive side was loaded
 * @export: number of the export; no other has had it since then
 */
struct kxfer_wire_identity {
	__be64 node;
	__be64 export;
};

/**
 * struct kxfer_wire_resume - payload of RESUME, with KXFER_WIRE_FEATURE_RESUME
 * @epoch: epoch in the hello of another link of the same initiator
 * @cookie: cookie in the hello of its control connection
 *
 * Answer OK: the passive side has no such link, or has stopped its QPs: nothing that was sent on
 * it takes effect any more. BUSY: not yet; ask again.
 */
struct kxfer_wire_resume {
	__be64 epoch;
	__u8 cookie[KXFER_WIRE_COOKIE_SIZE];
};

struct kxfer_wire_list {
	__be64 cursor;
	__be32 uid;
	__be32 gid;
};

struct kxfer_wire_list_entry {
	__be64 id;		/* of the export; as a cursor: continue after it */
	__u8 name[64];
	__be64 length;
	__be32 rights;
	__be32 reserved;
	struct kxfer_wire_content content;
};

struct kxfer_wire_list_answer {
	__be32 nr;
	__be32 reserved;
	struct kxfer_wire_list_entry entries[];
};

/* Payload of REVOKE. */
struct kxfer_wire_exposure_id {
	__be64 exposure;
};

struct kxfer_wire_content_change {
	__be64 exposure;
	struct kxfer_wire_content content;
};

struct kxfer_wire_notify {
	__be64 grant;
	__be64 cookie;
};

#define KXFER_WIRE_SEND_IMM	1U	/* @immediate was given */
#define KXFER_WIRE_SEND_CREDIT	2U	/* the message takes a credit; with _FEATURE_EAGER */
/* OFFER, with _FEATURE_WAIT: a full mailbox does not refuse the message, which may be short. */
#define KXFER_WIRE_SEND_WAIT	4U

/**
 * struct kxfer_wire_send - payload of SEND: this struct, then the payload of the message
 * @grant: id of a grant on a mailbox
 * @flags: KXFER_WIRE_SEND_*
 * @immediate: immediate data with KXFER_WIRE_SEND_IMM, else 0
 */
struct kxfer_wire_send {
	__be64 grant;
	__be32 flags;
	__be32 immediate;
};

/**
 * struct kxfer_wire_credits - answer to CREDITS
 * @credits: credits for messages to the grant on this lane, in addition to those that earlier
 *	answers gave and no message took: at most KXFER_WIRE_EAGER in all, and all for eager
 *	messages on one lane. An answered message may take one on any lane
 * @reserved: 0
 */
struct kxfer_wire_credits {
	__be32 credits;
	__be32 reserved;
};

/**
 * struct kxfer_wire_offer - payload of OFFER: a message longer than KXFER_MESSAGE_MAX, or one of
 *	any length but 0 with KXFER_WIRE_SEND_WAIT
 * @grant: id of a grant on a mailbox
 * @address: address of the payload, under @rkey
 * @rkey: valid for READs on this link until FETCHED has come, or TAKE_BACK was answered OK
 * @bytes: length of the payload
 * @flags: as in struct kxfer_wire_send
 * @immediate: as in struct kxfer_wire_send
 * @id: chosen by the initiator, below KXFER_WIRE_OFFERS, and unique among the offers under
 *	way on the lane. An offer is under way until the OFFER is refused, FETCHED is
 *	answered, or TAKE_BACK is answered OK
 * @reserved: 0
 *
 * The OFFER is answered when the receiver has noted it.
 */
struct kxfer_wire_offer {
	__be64 grant;
	__be64 address;
	__be32 rkey;
	__be32 bytes;
	__be32 flags;
	__be32 immediate;
	__be32 id;
	__be32 reserved;
};

/**
 * struct kxfer_wire_fetched - payload of FETCHED
 * @id: id of an OFFER on the same lane; the answer to the OFFER may still be under way
 * @status: enum kxfer_wire_status; OK: the message was READ into the region of a RECV
 */
struct kxfer_wire_fetched {
	__be32 id;
	__be32 status;
};

/**
 * struct kxfer_wire_take_back - payload of TAKE_BACK
 * @id: id of an OFFER on the same lane that was answered OK
 * @reserved: 0
 *
 * Answer OK: the message was not READ and will not be. BUSY: FETCHED comes, or has come.
 */
struct kxfer_wire_take_back {
	__be32 id;
	__be32 reserved;
};

#endif /* KXFER_WIRE_H */

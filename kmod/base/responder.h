/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol of the responder of user-space verbs, as userspace/verbs/wire.hpp says it:
 * private data of its connections, and the status that it keeps. All big endian.
 *
 * User space compiles this file too, to compare the two.
 */
#ifndef KXFER_RESPONDER_H
#define KXFER_RESPONDER_H

#include <linux/types.h>

#define KXFER_RESPONDER_MAGIC		0x4b585642	/* "KXVB" */
#define KXFER_RESPONDER_VERSION		2
#define KXFER_RESPONDER_VERSION_MIN	1	/* an answer of every version looks the same */
#define KXFER_RESPONDER_PAGE		4096	/* slots begin on these */
#define KXFER_RESPONDER_IMMEDIATE	0x6b786672	/* of message 0; n: this ^ n */

/* What is done beside READ and WRITE. */
enum kxfer_responder_op {
	KXFER_RESPONDER_READ		= 0,
	KXFER_RESPONDER_WRITE_IMM	= 2,
	KXFER_RESPONDER_SEND		= 3,
	KXFER_RESPONDER_SEND_IMM	= 4,
	KXFER_RESPONDER_COMPARE_SWAP	= 5,
	KXFER_RESPONDER_FETCH_ADD	= 6,
};

/*
 * Beside KXFER_RESPONDER_SEND: in front of each message is a struct
 * kxfer_responder_command, and the responder answers it, as soon as its receive is posted
 * again, with a SEND_WITH_INV of no bytes. Who does not know it knows no such operation.
 */
#define KXFER_RESPONDER_ANSWERED	0x100
/* What messages go by; numbers as of endpoint.hpp. */
#define KXFER_RESPONDER_RC		0
#define KXFER_RESPONDER_UD		2

/**
 * struct kxfer_responder_request - of the initiator
 * @magic: KXFER_RESPONDER_MAGIC
 * @version: KXFER_RESPONDER_VERSION
 * @writable: 1: the memory is to be written
 * @length: bytes of memory wanted
 * @op: enum kxfer_responder_op, and KXFER_RESPONDER_ANSWERED
 * @transport: of messages: KXFER_RESPONDER_RC or _UD: by a QP beside that of this connection
 * @receives: of messages: to be posted at any time
 * @slots: of messages: message n lands in slot n % @slots
 * @bytes: of messages: length of one
 */
struct kxfer_responder_request {
	__be32 magic;
	__be16 version;
	__be16 writable;
	__be64 length;
	__be16 op;
	__be16 transport;
	__be32 receives;
	__be32 slots;
	__be32 bytes;
};

/**
 * struct kxfer_responder_answer - of the responder, and of its refusal
 * @magic: KXFER_RESPONDER_MAGIC
 * @version: that of the request
 * @reserved: 0
 * @error: errno of a refusal, or 0
 * @rkey: of the memory
 * @address: its address
 * @length: bytes; behind them, of messages, is the status
 */
struct kxfer_responder_answer {
	__be32 magic;
	__be16 version;
	__be16 reserved;
	__be32 error;
	__be32 rkey;
	__be64 address;
	__be64 length;
};

/**
 * struct kxfer_responder_lookup - of the initiator, for RDMA_PS_UDP: where is the UD QP?
 * @magic: KXFER_RESPONDER_MAGIC
 * @version: KXFER_RESPONDER_VERSION
 * @reserved: 0
 * @rkey: of the memory of the connection that it is beside
 *
 * The number of the QP and its Q_Key are told by rdma_cm; a refusal is an answer.
 */
struct kxfer_responder_lookup {
	__be32 magic;
	__be16 version;
	__be16 reserved;
	__be32 rkey;
};

/**
 * struct kxfer_responder_status - in the responder's memory
 * @received: messages whose receives are posted again
 * @wrong: of these: other than what was to come
 */
struct kxfer_responder_status {
	__be64 received;
	__be64 wrong;
};

/**
 * struct kxfer_responder_command - in front of a message that is answered
 * @number: that of the message, from 0 on; its lower 32 bits
 * @rkey: to be invalidated by the answer
 */
struct kxfer_responder_command {
	__be32 number;
	__be32 rkey;
};

#endif /* KXFER_RESPONDER_H */

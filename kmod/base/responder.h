/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol of the responder of user-space verbs, as in userspace/verbs/wire.hpp:
 * private data of its connections, and the status that it keeps. All big endian.
 *
 * User space compiles this file too, to compare the two.
 */
#ifndef KXFER_RESPONDER_H
#define KXFER_RESPONDER_H

#include <linux/types.h>

#define KXFER_RESPONDER_MAGIC		0x4b585642	/* "KXVB" */
#define KXFER_RESPONDER_VERSION		2
#define KXFER_RESPONDER_VERSION_MIN	1	/* the answer has one layout in all versions */
#define KXFER_RESPONDER_PAGE		4096	/* slots begin at multiples */
#define KXFER_RESPONDER_IMMEDIATE	0x6b786672	/* of message 0; message n: this ^ n */

/* Operations of a connection besides READ and WRITE. */
enum kxfer_responder_op {
	KXFER_RESPONDER_READ		= 0,
	KXFER_RESPONDER_WRITE_IMM	= 2,
	KXFER_RESPONDER_SEND		= 3,
	KXFER_RESPONDER_SEND_IMM	= 4,
	KXFER_RESPONDER_COMPARE_SWAP	= 5,
	KXFER_RESPONDER_FETCH_ADD	= 6,
};

/*
 * Flag with KXFER_RESPONDER_SEND: each message begins with a struct
 * kxfer_responder_command. As soon as the receive is posted again, the responder answers
 * with a SEND_WITH_INV of no bytes. To a responder that does not know the flag, the number
 * is an unknown operation.
 */
#define KXFER_RESPONDER_ANSWERED	0x100
/* Transport of messages; numbers as in endpoint.hpp. */
#define KXFER_RESPONDER_RC		0
#define KXFER_RESPONDER_UD		2

/**
 * struct kxfer_responder_request - private data of the initiator
 * @magic: KXFER_RESPONDER_MAGIC
 * @version: KXFER_RESPONDER_VERSION
 * @writable: 1: the initiator may write the memory
 * @length: bytes of memory wanted
 * @op: enum kxfer_responder_op, and KXFER_RESPONDER_ANSWERED
 * @transport: for messages: KXFER_RESPONDER_RC, or _UD: by a QP next to this connection's
 * @receives: for messages: number of receives to keep posted
 * @slots: for messages: message n lands in slot n % @slots
 * @bytes: for messages: length of one message
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
 * struct kxfer_responder_answer - private data of the responder's acceptance or refusal
 * @magic: KXFER_RESPONDER_MAGIC
 * @version: version of the request
 * @reserved: 0
 * @error: errno of a refusal, or 0
 * @rkey: rkey of the memory
 * @address: address of the memory
 * @length: bytes of the memory; for messages the status follows after them
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
 * struct kxfer_responder_lookup - the initiator's question for the UD QP, on RDMA_PS_UDP
 * @magic: KXFER_RESPONDER_MAGIC
 * @version: KXFER_RESPONDER_VERSION
 * @reserved: 0
 * @rkey: rkey of the memory of the connection that the UD QP belongs to
 *
 * rdma_cm reports the QP number and Q_Key. A refusal carries a struct
 * kxfer_responder_answer.
 */
struct kxfer_responder_lookup {
	__be32 magic;
	__be16 version;
	__be16 reserved;
	__be32 rkey;
};

/**
 * struct kxfer_responder_status - counts in the responder's memory
 * @received: messages whose receives are posted again
 * @wrong: messages in @received that differ from what was expected
 */
struct kxfer_responder_status {
	__be64 received;
	__be64 wrong;
};

/**
 * struct kxfer_responder_command - beginning of a message that is answered
 * @number: number of the message, counted from 0; its lower 32 bits
 * @rkey: rkey that the answer must invalidate
 */
struct kxfer_responder_command {
	__be32 number;
	__be32 rkey;
};

#endif /* KXFER_RESPONDER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forger: a peer without an RDMA device. RoCE v2 is UDP, so an unprivileged process can make
 * connections with a socket: it sends the datagrams of the communication manager (MADs) and
 * those of a reliable connection, with their checksums.
 *
 *	forger_network	a network with an RDMA device of this node, and a socket beyond it
 *	forger		that socket, and its state
 *	forger_lane	a connection
 *
 * Each step is a separate function: a test gets the datagrams as they are built, and cuts,
 * changes, repeats, reorders or reflects them. Every wait has a time limit; errors are negative
 * errnos. Addresses are GIDs; IPv4 addresses are mapped (::ffff:10.79.0.2).
 */
#ifndef KXFER_TEST_FORGER_H
#define KXFER_TEST_FORGER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/kxfer_test.h"
#include "kmod/base/wire.h"

/*
 * The network: FORGER_DEVICE of this node has two addresses of each family. The forger has one,
 * in a separate network namespace. One address is unused.
 */
#define FORGER_DEVICE	"forged0"
#define FORGER_NETDEV	"forged"
#define FORGER_NODE	"10.79.0.1"
#define FORGER_NODE_2	"10.79.0.9"
#define FORGER_SELF	"10.79.0.2"
#define FORGER_VICTIM	"10.79.0.3"
#define FORGER_NODE6	"fd79::1"
#define FORGER_NODE6_2	"fd79::9"
#define FORGER_SELF6	"fd79::2"
#define FORGER_VICTIM6	"fd79::3"

#define FORGER_MS	5000		/* time limit of each step */
#define FORGER_MTU	1024
#define FORGER_MESSAGE	KXFER_WIRE_CONTROL_BYTES
#define FORGER_LANES	8

/* opcodes of the BTH */
enum forger_opcode {
	FORGER_SEND_FIRST	= 0x00,
	FORGER_SEND_MIDDLE	= 0x01,
	FORGER_SEND_LAST	= 0x02,
	FORGER_SEND_ONLY	= 0x04,
	FORGER_WRITE_ONLY	= 0x0a,
	FORGER_READ_REQUEST	= 0x0c,
	FORGER_READ_FIRST	= 0x0d,
	FORGER_READ_MIDDLE	= 0x0e,
	FORGER_READ_LAST	= 0x0f,
	FORGER_READ_ONLY	= 0x10,
	FORGER_ACK		= 0x11,
	FORGER_UD_SEND_ONLY	= 0x64,
};

/* attributes of MADs of the communication manager */
enum forger_mad_type {
	FORGER_REQ	= 0x10,
	FORGER_MRA	= 0x11,
	FORGER_REJ	= 0x12,
	FORGER_REP	= 0x13,
	FORGER_RTU	= 0x14,
	FORGER_DREQ	= 0x15,
	FORGER_DREP	= 0x16,
};

/**
 * struct forger_packet - a datagram: BTH and what follows
 * @length: bytes without padding and checksum
 */
struct forger_packet {
	uint32_t length;
	uint8_t bytes[2048];
};

#define FORGER_MAD_HEADER	24
#define FORGER_REQ_PRIVATE	(FORGER_MAD_HEADER + 140)	/* offset of private data */
#define FORGER_REP_PRIVATE	(FORGER_MAD_HEADER + 36)
#define FORGER_REJ_PRIVATE	(FORGER_MAD_HEADER + 84)
#define FORGER_CMA_HEADER	36	/* rdma_cm's part of a REQ's private data */

struct forger_mad {
	uint8_t bytes[256];
};

/**
 * struct forger_claim - what a connection request says
 * @gid: path: destination of the answers
 * @gid_there: path: source of the answers
 * @address: private data: address that rdma_cm takes for the peer's
 * @address_there: private data: address of the listener
 * @port: private data: source port
 * @listener: port of the listener
 * @hello: private data of kxfer, after rdma_cm's
 * @hello_bytes: bytes of @hello, at most 56
 */
struct forger_claim {
	struct in6_addr gid;
	struct in6_addr gid_there;
	struct in6_addr address;
	struct in6_addr address_there;
	uint16_t port;
	uint16_t listener;
	uint8_t hello[56];
	uint8_t hello_bytes;
};

/**
 * struct forger_lane - a connection
 * @comm_id: local id of the communication manager
 * @qpn: number of a QP that does not exist
 * @psn: PSN of the next request
 * @psn_there: PSN expected next
 * @acked: last acknowledged PSN
 * @nak: syndrome of a NAK; 0: none
 * @reason: reason of a REJ; 0: none
 * @said: private data of the REP or REJ
 * @refusal: enum kxfer_refusal in @said
 * @gone: a DREQ was received
 * @arriving: incomplete message of several packets
 * @message: received message, while @message_bytes is not 0
 * @data: bytes of the last READ
 */
struct forger_lane {
	uint64_t tid;
	uint32_t comm_id;
	uint32_t comm_id_there;
	uint32_t qpn;
	uint32_t qpn_there;
	uint32_t psn;
	uint32_t psn_there;
	uint32_t msn;
	uint32_t acked;
	uint8_t nak;
	uint16_t reason;
	bool answered;
	uint8_t said[148];
	uint32_t refusal;
	bool gone;
	uint8_t arriving[FORGER_MESSAGE];
	uint32_t arriving_bytes;
	uint8_t message[FORGER_MESSAGE];
	uint32_t message_bytes;
	uint8_t data[FORGER_MTU];
	uint32_t data_bytes;
	bool data_done;
};

/**
 * struct forger - a socket in the other network
 * @here: source of its datagrams
 * @there: destination of its datagrams
 * @lanes: connections whose packets forger_look() handles
 * @nr_packets: packets received
 * @tos: IP type of service of the last packet
 * @req: last connection request received
 * @nr_reqs: number of connection requests, without repetitions
 */
struct forger {
	int socket;
	struct in6_addr here;
	struct in6_addr there;
	struct forger_lane *lanes[FORGER_LANES];
	uint32_t nr_packets;
	uint8_t tos;
	struct forger_mad req;
	uint32_t nr_reqs;
};

struct in6_addr forger_gid(const char *address);

/* Makes and removes the network; needs root. Return: 0 or -errno. */
int forger_network_make(void);
void forger_network_remove(void);

/* @family: AF_INET or AF_INET6. The socket belongs to an unprivileged user. */
int forger_open(struct forger *forger, int family);
void forger_close(struct forger *forger);

/* ---- datagrams ---- */

void forger_packet_begin(struct forger_packet *packet, uint8_t opcode, uint32_t qpn, uint32_t psn);
void forger_packet_add(struct forger_packet *packet, const void *bytes, uint32_t length);
/* Pads a datagram, adds the checksum and sends it. */
int forger_send(struct forger *forger, struct forger_packet *packet);
/* Receives the next datagram, without padding and checksum. */
int forger_receive(struct forger *forger, struct forger_packet *packet, uint32_t ms);

/* ---- the communication manager ---- */

/* Fills in true values, with @address and the defaults for the rest. */
struct forger_claim forger_truth(const struct forger *forger, uint16_t listener,
				 const void *hello, uint8_t hello_bytes);
/* Prepares a connection and registers it with @forger. */
void forger_lane_begin(struct forger *forger, struct forger_lane *lane);
struct forger_mad forger_req(const struct forger_lane *lane, const struct forger_claim *claim);
struct forger_mad forger_mad(const struct forger_lane *lane, enum forger_mad_type type);
int forger_send_mad(struct forger *forger, const struct forger_mad *mad, uint32_t bytes);
/* Return: 0; -ECONNREFUSED (@lane says why); -ETIMEDOUT. */
int forger_await_rep(struct forger *forger, struct forger_lane *lane, uint32_t ms);
/* REQ, REP and RTU */
int forger_connect(struct forger *forger, struct forger_lane *lane,
		   const struct forger_claim *claim);
/* Rejects a request, for @reason, with private data of at most 148 bytes. */
struct forger_mad forger_rej(const struct forger_mad *req, uint16_t reason, const void *data,
			     uint32_t bytes);
void forger_disconnect(struct forger *forger, struct forger_lane *lane);

/* ---- the connection ---- */

/* Takes one datagram and handles it. Return: whether one came. */
bool forger_look(struct forger *forger, uint32_t ms);
/* Sends a message of at most FORGER_MTU and waits for its acknowledgment. */
int forger_post(struct forger *forger, struct forger_lane *lane, const void *message,
		uint32_t length);
/* Return: length of the message, -ECONNRESET, -ETIMEDOUT. */
int forger_take(struct forger *forger, struct forger_lane *lane, void *message, uint32_t ms);
/* Posts a READ of at most FORGER_MTU. Return: 0, -EACCES for a NAK, -ETIMEDOUT. */
int forger_read(struct forger *forger, struct forger_lane *lane, uint64_t addr, uint32_t rkey,
		void *into, uint32_t length);
/*
 * Sends a request of the wire format and waits for its answer. Return: enum kxfer_wire_status
 * or -errno;
 * @answer: FORGER_MESSAGE bytes; @answer_bytes: out: bytes of the answer; both may be NULL.
 */
int forger_call(struct forger *forger, struct forger_lane *lane, uint8_t type,
		const void *payload, uint16_t length, void *answer, uint32_t *answer_bytes);

#endif /* KXFER_TEST_FORGER_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that is only a UDP socket; see forger.h. Formats: InfiniBand Architecture
 * Specification volume 1, chapters 9 (packets), 12 (MADs), annexes A11 (private data) and A17
 * (RoCE v2).
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peers/forger.h"

#define ROCE_PORT	4791
#define GSI_QPN		1
#define GSI_QKEY	0x80010000u
#define FULL_PKEY	0xffff
#define NOBODY		65534

#define BTH_BYTES	12
#define DETH_BYTES	8
#define AETH_BYTES	4
#define ICRC_BYTES	4
#define PSN_MASK	0xffffffu

/* Service id of rdma_cm's RDMA_PS_TCP; the port follows in the low bits. */
#define SERVICE_TCP	0x0000000001060000ull

#define MAD_CLASS_CM	7
#define MAD_SEND	3
#define MTU_1024	3

static void put16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
}

static void put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static uint32_t get24(const uint8_t *at)
{
	return at[0] << 16 | at[1] << 8 | at[2];
}

static uint32_t random_bits(void)
{
	uint32_t bits = 0;

	return getrandom(&bits, sizeof(bits), 0) == sizeof(bits) ? bits : 1;
}

struct in6_addr forger_gid(const char *address)
{
	struct in6_addr gid = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, address, gid.s6_addr + 12) != 1)
		inet_pton(AF_INET6, address, &gid);
	return gid;
}

static bool is_v4(const struct in6_addr *gid)
{
	return IN6_IS_ADDR_V4MAPPED(gid);
}

/* ---- the network ---- */

static int run(const char *command)
{
	return system(command) ? -EIO : 0;
}

/* The module's end of the network, in the test's own namespace. */
static int make_near_end(void)
{
	int ret = run("ip addr add " FORGER_NODE "/24 dev " FORGER_NETDEV " && "
		      "ip addr add " FORGER_NODE_2 "/24 dev " FORGER_NETDEV " && "
		      "ip addr add " FORGER_NODE6 "/64 dev " FORGER_NETDEV " nodad && "
		      "ip addr add " FORGER_NODE6_2 "/64 dev " FORGER_NETDEV " nodad && "
		      "ip link set " FORGER_NETDEV " up && "
		      "rdma link add " FORGER_DEVICE " type rxe netdev " FORGER_NETDEV);
	int fd = kx_open();
	uint64_t listener;

	if (fd < 0)
		return fd;
	/* GIDs appear some time after the addresses. */
	if (!ret && !kx_wait_until(!kx_listen_add(fd, kx_addr(FORGER_NODE6_2, kx_own_port()),
						  0, &listener), FORGER_MS))
		ret = -ETIMEDOUT;
	close(fd);
	return ret;
}

/* A namespace stays while a socket in it is open. This socket keeps the veth pair. */
static int far_end = -1;

static int enter(int namespace)
{
	int ret = setns(namespace, CLONE_NEWNET) ? -errno : 0;

	close(namespace);
	return ret;
}

int forger_network_make(void)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), ret;

	if (home < 0 || unshare(CLONE_NEWNET))
		return -errno;
	far_end = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ret = run("ip link add name beyond type veth peer name " FORGER_NETDEV " netns 1 && "
		  "ip addr add " FORGER_SELF "/24 dev beyond && "
		  "ip addr add " FORGER_SELF6 "/64 dev beyond nodad && "
		  "ip link set beyond up");
	if (enter(home))
		return -EIO;
	return ret ?: make_near_end();
}

void forger_network_remove(void)
{
	if (far_end >= 0)
		close(far_end);
	far_end = -1;
	run("rdma link del " FORGER_DEVICE " 2>/dev/null");
	run("ip link del " FORGER_NETDEV " 2>/dev/null");
}

static int bind_socket(struct forger *forger, int family)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT) };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT) };
	int discover = IP_PMTUDISC_DO, yes = 1;

	forger->socket = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (forger->socket < 0)
		return -errno;
	if (setsockopt(forger->socket, IPPROTO_IP, IP_RECVTOS, &yes, sizeof(yes)))
		return -errno;
	sin6.sin6_addr = forger->here;
	memcpy(&sin.sin_addr, forger->here.s6_addr + 12, 4);
	/* The ICRC covers the IP id. An unconnected socket without fragmentation sends 0. */
	if (family == AF_INET && (setsockopt(forger->socket, IPPROTO_IP, IP_MTU_DISCOVER,
					     &discover, sizeof(discover)) ||
				  bind(forger->socket, (struct sockaddr *)&sin, sizeof(sin))))
		return -errno;
	/* RDMA devices leave UDP's checksum out. */
	if (family == AF_INET6 && (setsockopt(forger->socket, SOL_UDP, UDP_NO_CHECK6_RX, &yes,
					      sizeof(yes)) ||
				   bind(forger->socket, (struct sockaddr *)&sin6, sizeof(sin6))))
		return -errno;
	return 0;
}

int forger_open(struct forger *forger, int family)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), ret;

	*forger = (struct forger) {
		.socket = -1,
		.here = forger_gid(family == AF_INET ? FORGER_SELF : FORGER_SELF6),
		.there = forger_gid(family == AF_INET ? FORGER_NODE : FORGER_NODE6),
	};
	if (home < 0 || setns(far_end, CLONE_NEWNET))
		return -errno;
	/* Binding, and all steps after it, need no capabilities. */
	if (seteuid(NOBODY))
		return -errno;
	ret = bind_socket(forger, family);
	if (seteuid(0) || enter(home))
		return -EIO;
	return ret;
}

void forger_close(struct forger *forger)
{
	if (forger->socket >= 0)
		close(forger->socket);
	forger->socket = -1;
}

/* ---- checksums ---- */

static uint32_t crc32_of(uint32_t crc, const uint8_t *bytes, uint32_t length)
{
	uint32_t i, bit;

	for (i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

/*
 * The IP header as the ICRC covers it: fields that routers change are all ones. Return: its
 * bytes
 */
static uint32_t masked_ip(uint8_t *header, const struct in6_addr *from,
			  const struct in6_addr *to, uint16_t udp_bytes)
{
	if (!is_v4(from)) {
		memset(header, 0xff, 40);
		header[0] = 0x6f;
		put16(header + 4, udp_bytes);
		header[6] = IPPROTO_UDP;
		memcpy(header + 8, from, 16);
		memcpy(header + 24, to, 16);
		return 40;
	}
	header[0] = 0x45;
	header[1] = 0xff;
	put16(header + 2, 20 + udp_bytes);
	put16(header + 4, 0);
	put16(header + 6, 0x4000);
	header[8] = 0xff;
	header[9] = IPPROTO_UDP;
	put16(header + 10, 0xffff);
	memcpy(header + 12, from->s6_addr + 12, 4);
	memcpy(header + 16, to->s6_addr + 12, 4);
	return 20;
}

static uint32_t icrc(const struct in6_addr *from, const struct in6_addr *to,
		     const uint8_t *packet, uint32_t length)
{
	uint16_t udp_bytes = 8 + length + ICRC_BYTES;
	uint8_t pseudo[8 + 40 + 8 + BTH_BYTES];
	uint8_t *udp, *bth;

	/* All ones in place of InfiniBand's LRH. */
	memset(pseudo, 0xff, sizeof(pseudo));
	udp = pseudo + 8 + masked_ip(pseudo + 8, from, to, udp_bytes);
	put16(udp, ROCE_PORT);
	put16(udp + 2, ROCE_PORT);
	put16(udp + 4, udp_bytes);
	bth = udp + 8;
	memcpy(bth, packet, BTH_BYTES);
	bth[4] = 0xff;
	return ~crc32_of(crc32_of(0xffffffffu, pseudo, bth + BTH_BYTES - pseudo),
			 packet + BTH_BYTES, length - BTH_BYTES);
}

/* ---- datagrams ---- */

void forger_packet_begin(struct forger_packet *packet, uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	memset(packet->bytes, 0, BTH_BYTES);
	packet->bytes[0] = opcode;
	put16(packet->bytes + 2, FULL_PKEY);
	put32(packet->bytes + 4, qpn & PSN_MASK);
	put32(packet->bytes + 8, psn & PSN_MASK);
	packet->length = BTH_BYTES;
}

void forger_packet_add(struct forger_packet *packet, const void *bytes, uint32_t length)
{
	uint32_t room = sizeof(packet->bytes) - packet->length - 3 - ICRC_BYTES;

	length = length < room ? length : room;
	memcpy(packet->bytes + packet->length, bytes, length);
	packet->length += length;
}

static void ask_for_ack(struct forger_packet *packet)
{
	packet->bytes[8] = 0x80;
}

int forger_send(struct forger *forger, struct forger_packet *packet)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT) };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT) };
	uint32_t pad = -packet->length & 3, length = packet->length + pad, crc;
	bool v4 = is_v4(&forger->here);

	sin6.sin6_addr = forger->there;
	memcpy(&sin.sin_addr, forger->there.s6_addr + 12, 4);
	memset(packet->bytes + packet->length, 0, pad);
	packet->bytes[1] = (packet->bytes[1] & 0xcf) | pad << 4;
	crc = htole32(icrc(&forger->here, &forger->there, packet->bytes, length));
	memcpy(packet->bytes + length, &crc, sizeof(crc));
	length += ICRC_BYTES;
	if (sendto(forger->socket, packet->bytes, length, 0,
		   v4 ? (struct sockaddr *)&sin : (struct sockaddr *)&sin6,
		   v4 ? sizeof(sin) : sizeof(sin6)) != (ssize_t)length)
		return -errno;
	return 0;
}

static void note_tos(struct forger *forger, struct msghdr *message)
{
	struct cmsghdr *part;

	for (part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part))
		if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS)
			forger->tos = *CMSG_DATA(part);
}

/* The ICRC is not checked: it covers the IP id, which a UDP socket does not show. */
int forger_receive(struct forger *forger, struct forger_packet *packet, uint32_t ms)
{
	struct pollfd poll_fd = { .fd = forger->socket, .events = POLLIN };
	struct iovec iov = { .iov_base = packet->bytes, .iov_len = sizeof(packet->bytes) };
	uint64_t control[8];
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	packet->length = 0;
	if (poll(&poll_fd, 1, ms) != 1)
		return -ETIMEDOUT;
	n = recvmsg(forger->socket, &message, 0);
	if (n < BTH_BYTES + ICRC_BYTES + 3)
		return -EBADMSG;
	forger->nr_packets++;
	note_tos(forger, &message);
	packet->length = n - ICRC_BYTES - (packet->bytes[1] >> 4 & 3);
	return 0;
}

/* ---- the communication manager ---- */

struct forger_claim forger_truth(const struct forger *forger, uint16_t listener,
				 const void *hello, uint8_t hello_bytes)
{
	struct forger_claim claim = {
		.gid = forger->here,
		.gid_there = forger->there,
		.address = forger->here,
		.address_there = forger->there,
		.port = 700,
		.listener = listener,
		.hello_bytes = hello_bytes,
	};

	memcpy(claim.hello, hello, hello_bytes);
	return claim;
}

void forger_lane_begin(struct forger *forger, struct forger_lane *lane)
{
	uint32_t i, mine = 0;

	for (i = 0; i < FORGER_LANES; i++)
		if (!forger->lanes[i] || forger->lanes[i] == lane)
			mine = i;
	*lane = (struct forger_lane) {
		.tid = (uint64_t)random_bits() << 32 | random_bits(),
		.comm_id = random_bits(),
		.qpn = (random_bits() & 0xffff00) | 0x10 | mine,
		.psn_there = random_bits() & PSN_MASK,
	};
	forger->lanes[mine] = lane;
}

struct forger_mad forger_mad(const struct forger_lane *lane, enum forger_mad_type type)
{
	struct forger_mad mad = { .bytes = { 1, MAD_CLASS_CM, 2, MAD_SEND } };

	put64(mad.bytes + 8, lane->tid);
	put16(mad.bytes + 16, type);
	put32(mad.bytes + FORGER_MAD_HEADER, lane->comm_id);
	put32(mad.bytes + FORGER_MAD_HEADER + 4, lane->comm_id_there);
	if (type == FORGER_DREQ)
		put32(mad.bytes + FORGER_MAD_HEADER + 8, lane->qpn_there << 8);
	return mad;
}

/* An address in rdma_cm's format; an IPv4 address is in the last four bytes. */
static void put_address(uint8_t *at, const struct in6_addr *address)
{
	memcpy(at, address, sizeof(*address));
	if (is_v4(address))
		memset(at, 0, 12);
}

static void put_private(uint8_t *at, const struct forger_claim *claim)
{
	at[1] = is_v4(&claim->address) ? 0x40 : 0x60;
	put16(at + 2, claim->port);
	put_address(at + 4, &claim->address);
	put_address(at + 20, &claim->address_there);
	memcpy(at + FORGER_CMA_HEADER, claim->hello, claim->hello_bytes);
}

struct forger_mad forger_req(const struct forger_lane *lane, const struct forger_claim *claim)
{
	struct forger_mad mad = forger_mad(lane, FORGER_REQ);
	uint8_t *req = mad.bytes + FORGER_MAD_HEADER;

	put32(req + 4, 0);
	put64(req + 8, SERVICE_TCP | claim->listener);
	put64(req + 16, 0x0f0e0d0c0b0a0908ull);		/* GUID */
	put32(req + 32, lane->qpn << 8 | 16);		/* number of READs that it answers */
	put32(req + 36, 16);				/* number of its READs in flight */
	req[43] = 20 << 3;				/* time limit of an answer: 4 s */
	/* Each side sets the first PSN of the other side. */
	put32(req + 44, lane->psn_there << 8 | 20 << 3 | 7);
	put16(req + 48, FULL_PKEY);
	req[50] = MTU_1024 << 4;
	req[51] = 3 << 4;
	put16(req + 52, 0xffff);			/* LIDs: none on RoCE */
	put16(req + 54, 0xffff);
	memcpy(req + 56, &claim->gid, 16);
	memcpy(req + 72, &claim->gid_there, 16);
	req[91] = 3;
	req[93] = 64;
	req[94] = 1 << 3;
	req[95] = 17 << 3;
	put_private(req + 140, claim);
	return mad;
}

int forger_send_mad(struct forger *forger, const struct forger_mad *mad, uint32_t bytes)
{
	struct forger_packet packet;
	uint8_t deth[DETH_BYTES];

	put32(deth, GSI_QKEY);
	put32(deth + 4, GSI_QPN);
	forger_packet_begin(&packet, FORGER_UD_SEND_ONLY, GSI_QPN, random_bits());
	forger_packet_add(&packet, deth, sizeof(deth));
	forger_packet_add(&packet, mad->bytes, bytes);
	return forger_send(forger, &packet);
}

static void note_refusal(struct forger_lane *lane)
{
	struct kxfer_wire_refusal refusal;

	memcpy(&refusal, lane->said, sizeof(refusal));
	if (refusal.magic == htobe32(KXFER_WIRE_MAGIC))
		lane->refusal = be16toh(refusal.reason);
}

static struct forger_lane *lane_of_comm_id(struct forger *forger, uint32_t comm_id)
{
	uint32_t i;

	for (i = 0; i < FORGER_LANES; i++)
		if (forger->lanes[i] && forger->lanes[i]->comm_id == comm_id)
			return forger->lanes[i];
	return NULL;
}

static void take_mad(struct forger *forger, const uint8_t *mad, uint32_t bytes)
{
	const uint8_t *body = mad + FORGER_MAD_HEADER;
	struct forger_lane *lane;
	struct forger_mad drep;

	if (bytes < sizeof(drep.bytes) || mad[1] != MAD_CLASS_CM)
		return;
	if (mad[17] == FORGER_REQ) {
		/* A repeated request has the same communication id. */
		if (memcmp(forger->req.bytes + FORGER_MAD_HEADER, body, 4))
			forger->nr_reqs++;
		memcpy(forger->req.bytes, mad, sizeof(forger->req.bytes));
		return;
	}
	lane = lane_of_comm_id(forger, get32(body + 4));
	if (!lane)
		return;
	switch (mad[17]) {
	case FORGER_REP:
		if (lane->answered)
			break;
		lane->comm_id_there = get32(body);
		lane->qpn_there = get24(body + 12);
		lane->psn = get24(body + 20);
		lane->acked = (lane->psn - 1) & PSN_MASK;
		memcpy(lane->said, mad + FORGER_REP_PRIVATE, sizeof(lane->said));
		lane->answered = true;
		break;
	case FORGER_REJ:
		lane->reason = body[10] << 8 | body[11];
		memcpy(lane->said, mad + FORGER_REJ_PRIVATE, sizeof(lane->said));
		note_refusal(lane);
		lane->gone = true;
		break;
	case FORGER_DREQ:
		drep = forger_mad(lane, FORGER_DREP);
		memcpy(drep.bytes + 8, mad + 8, 8);
		forger_send_mad(forger, &drep, sizeof(drep.bytes));
		lane->gone = true;
		break;
	default:
		break;
	}
}

struct forger_mad forger_rej(const struct forger_mad *req, uint16_t reason, const void *data,
			     uint32_t bytes)
{
	struct forger_lane none = { .comm_id = random_bits() };
	struct forger_mad mad = forger_mad(&none, FORGER_REJ);
	uint8_t *rej = mad.bytes + FORGER_MAD_HEADER;

	memcpy(mad.bytes + 8, req->bytes + 8, 8);
	memcpy(rej + 4, req->bytes + FORGER_MAD_HEADER, 4);
	put16(rej + 10, reason);
	if (bytes)
		memcpy(mad.bytes + FORGER_REJ_PRIVATE, data, bytes);
	return mad;
}

int forger_await_rep(struct forger *forger, struct forger_lane *lane, uint32_t ms)
{
	uint64_t end = kx_deadline_ns(ms);

	while (!lane->answered && !lane->gone) {
		if (kx_now_ns() >= end)
			return -ETIMEDOUT;
		forger_look(forger, 100);
	}
	return lane->answered ? 0 : -ECONNREFUSED;
}

int forger_connect(struct forger *forger, struct forger_lane *lane,
		   const struct forger_claim *claim)
{
	struct forger_mad mad;
	int ret;

	forger_lane_begin(forger, lane);
	mad = forger_req(lane, claim);
	ret = forger_send_mad(forger, &mad, sizeof(mad.bytes));
	if (!ret)
		ret = forger_await_rep(forger, lane, FORGER_MS);
	if (ret)
		return ret;
	mad = forger_mad(lane, FORGER_RTU);
	return forger_send_mad(forger, &mad, sizeof(mad.bytes));
}

void forger_disconnect(struct forger *forger, struct forger_lane *lane)
{
	struct forger_mad mad = forger_mad(lane, FORGER_DREQ);

	if (lane->answered && !lane->gone)
		forger_send_mad(forger, &mad, sizeof(mad.bytes));
	lane->gone = true;
}

/* ---- the connection ---- */

static void acknowledge(struct forger *forger, struct forger_lane *lane, uint32_t psn)
{
	struct forger_packet packet;
	uint8_t aeth[AETH_BYTES];

	/* Unlimited credits, and the number of messages received. */
	put32(aeth, 0x1fu << 24 | (lane->msn & PSN_MASK));
	forger_packet_begin(&packet, FORGER_ACK, lane->qpn_there, psn);
	forger_packet_add(&packet, aeth, sizeof(aeth));
	forger_send(forger, &packet);
}

/* Takes the next part of a message. An unexpected part is dropped, because it is sent again. */
static void take_part(struct forger *forger, struct forger_lane *lane, uint8_t opcode,
		      uint32_t psn, const uint8_t *bytes, uint32_t length)
{
	bool last = opcode == FORGER_SEND_ONLY || opcode == FORGER_SEND_LAST;

	if (psn != lane->psn_there) {
		acknowledge(forger, lane, (lane->psn_there - 1) & PSN_MASK);
		return;
	}
	if (last && lane->message_bytes)
		return;
	if (lane->arriving_bytes + length <= sizeof(lane->arriving)) {
		memcpy(lane->arriving + lane->arriving_bytes, bytes, length);
		lane->arriving_bytes += length;
	}
	lane->psn_there = (psn + 1) & PSN_MASK;
	if (last) {
		lane->msn++;
		memcpy(lane->message, lane->arriving, lane->arriving_bytes);
		lane->message_bytes = lane->arriving_bytes;
		lane->arriving_bytes = 0;
	}
	acknowledge(forger, lane, psn);
}

static void take_data(struct forger_lane *lane, const uint8_t *bytes, uint32_t length)
{
	if (length <= sizeof(lane->data)) {
		memcpy(lane->data, bytes, length);
		lane->data_bytes = length;
	}
	lane->data_done = true;
}

static void take_packet(struct forger *forger, struct forger_lane *lane,
			const struct forger_packet *packet)
{
	uint32_t psn = get24(packet->bytes + 9), length = packet->length - BTH_BYTES;
	const uint8_t *bytes = packet->bytes + BTH_BYTES;
	uint8_t opcode = packet->bytes[0];

	switch (opcode) {
	case FORGER_ACK:
		if (length >= AETH_BYTES && bytes[0] >> 5)
			lane->nak = bytes[0];
		else
			lane->acked = psn;
		break;
	case FORGER_READ_ONLY:
		if (length >= AETH_BYTES)
			take_data(lane, bytes + AETH_BYTES, length - AETH_BYTES);
		lane->acked = psn;
		break;
	case FORGER_SEND_FIRST:
	case FORGER_SEND_MIDDLE:
	case FORGER_SEND_LAST:
	case FORGER_SEND_ONLY:
		take_part(forger, lane, opcode, psn, bytes, length);
		break;
	default:
		break;
	}
}

bool forger_look(struct forger *forger, uint32_t ms)
{
	struct forger_packet packet;
	uint32_t qpn, i;

	if (forger_receive(forger, &packet, ms))
		return false;
	qpn = get24(packet.bytes + 5);
	if (qpn == GSI_QPN && packet.length > BTH_BYTES + DETH_BYTES)
		take_mad(forger, packet.bytes + BTH_BYTES + DETH_BYTES,
			 packet.length - BTH_BYTES - DETH_BYTES);
	for (i = 0; i < FORGER_LANES; i++)
		if (forger->lanes[i] && forger->lanes[i]->qpn == qpn)
			take_packet(forger, forger->lanes[i], &packet);
	return true;
}

/* Repeats a request until it is acknowledged. */
static int send_surely(struct forger *forger, struct forger_lane *lane,
		       struct forger_packet *packet)
{
	uint64_t end = kx_deadline_ns(FORGER_MS);
	uint32_t psn = lane->psn;

	lane->psn = (psn + 1) & PSN_MASK;
	ask_for_ack(packet);
	while (lane->acked != psn) {
		if (lane->nak)
			return -EACCES;
		if (lane->gone)
			return -ECONNRESET;
		if (kx_now_ns() >= end)
			return -ETIMEDOUT;
		forger_send(forger, packet);
		while (lane->acked != psn && forger_look(forger, 500))
			;
	}
	return 0;
}

int forger_post(struct forger *forger, struct forger_lane *lane, const void *message,
		uint32_t length)
{
	struct forger_packet packet;

	forger_packet_begin(&packet, FORGER_SEND_ONLY, lane->qpn_there, lane->psn);
	forger_packet_add(&packet, message, length);
	return send_surely(forger, lane, &packet);
}

int forger_take(struct forger *forger, struct forger_lane *lane, void *message, uint32_t ms)
{
	uint64_t end = kx_deadline_ns(ms);
	int length;

	while (!lane->message_bytes) {
		if (lane->gone)
			return -ECONNRESET;
		if (kx_now_ns() >= end)
			return -ETIMEDOUT;
		forger_look(forger, 100);
	}
	length = lane->message_bytes;
	memcpy(message, lane->message, length);
	lane->message_bytes = 0;
	return length;
}

int forger_read(struct forger *forger, struct forger_lane *lane, uint64_t addr, uint32_t rkey,
		void *into, uint32_t length)
{
	struct forger_packet packet;
	uint8_t reth[16];
	int ret;

	put64(reth, addr);
	put32(reth + 8, rkey);
	put32(reth + 12, length);
	lane->data_done = false;
	forger_packet_begin(&packet, FORGER_READ_REQUEST, lane->qpn_there, lane->psn);
	forger_packet_add(&packet, reth, sizeof(reth));
	ret = send_surely(forger, lane, &packet);
	if (ret)
		return ret;
	if (!lane->data_done || lane->data_bytes != length)
		return -EIO;
	memcpy(into, lane->data, length);
	return 0;
}

int forger_call(struct forger *forger, struct forger_lane *lane, uint8_t type,
		const void *payload, uint16_t length, void *answer, uint32_t *answer_bytes)
{
	struct kxfer_wire_header header = {
		.type = type,
		.slot = 1,
		.length = htobe16(length),
		.sequence = htobe64(random_bits()),
	};
	uint8_t message[FORGER_MESSAGE];
	uint64_t end = kx_deadline_ns(FORGER_MS);
	struct kxfer_wire_header got;
	int ret;

	memcpy(message, &header, sizeof(header));
	if (length)
		memcpy(message + sizeof(header), payload, length);
	ret = forger_post(forger, lane, message, sizeof(header) + length);
	while (!ret) {
		ret = forger_take(forger, lane, message, FORGER_MS);
		if (ret < 0)
			return ret;
		memcpy(&got, message, sizeof(got));
		if (got.type == (type | KXFER_WIRE_ANSWER) && got.sequence == header.sequence)
			break;
		ret = kx_now_ns() < end ? 0 : -ETIMEDOUT;
	}
	if (ret < 0)
		return ret;
	if (answer)
		memcpy(answer, message + sizeof(got), ret - sizeof(got));
	if (answer_bytes)
		*answer_bytes = ret - sizeof(got);
	return be16toh(got.status);
}

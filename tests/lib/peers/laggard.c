// SPDX-License-Identifier: GPL-2.0
/*
 * Laggard: a slow initiator in user space; see attack.h. All its messages are correct. It holds
 * its grants, and makes the module wait: for answers, for RECVs, for acknowledgements. Other
 * users of the node must not notice.
 */
#include <endian.h>
#include <string.h>

#include "peers/attack.h"
#include "peers/raw_peer.h"

#define NR_LINKS	6	/* links of one laggard */
#define NR_LATE		8	/* pending answers */
#define DRIP_MS		700	/* time between two small READs */
#define LONGEST_ACK	31	/* 4.096 us << 31: 2.4 hours */
#define NR_UNANSWERED	7	/* unanswered requests that a link may have */
#define NR_GORGES	6	/* rounds until its RECVs are used up */

enum kind {
	LATE,		/* delays answers by 0 to the bound of a REVOKE, and sometimes longer */
	LEAVING,	/* answers a REVOKE and leaves at once */
	SILENT,		/* answers PINGs only */
	DEAF,		/* posts no RECV and sends requests that need an answer */
	GORGED,		/* takes no answers, so it runs out of RECVs */
	DRIPPING,	/* READs a few bytes at a time */
	NR_KINDS
};

/* a pending answer */
struct late {
	struct kxfer_wire_header header;
	uint64_t due_ns;
};

struct lag {
	enum kind kind;
	bool up;
	struct raw_link link;
	struct kxfer_wire_key key;
	struct late late[NR_LATE];
	uint32_t nr_late;
	uint64_t drip_ns;
	uint32_t nr_drips;
};

struct laggard {
	struct attack *attack;
	struct dice dice;
	struct lag lags[NR_LINKS];
};

static void push_request(struct laggard *laggard, struct raw_lane *lane, uint8_t type,
			 uint8_t slot, const void *payload, uint16_t length)
{
	uint8_t message[RAW_BYTES];
	struct kxfer_wire_header header =
		raw_header(type, slot, length, dice_roll(&laggard->dice));

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), payload, length);
	atomic_fetch_add(&laggard->attack->nr_messages, 1);
	raw_push(lane, message, sizeof(header) + length);
}

static void push_grants(struct laggard *laggard, struct raw_lane *lane)
{
	struct kxfer_wire_grant request = { .rights = htobe32(KXFER_RIGHT_READ) };
	uint8_t slot;

	memcpy(request.name, ATTACK_OPEN, sizeof(ATTACK_OPEN));
	push_request(laggard, lane, KXFER_WIRE_HELLO, 1, NULL, 0);
	for (slot = 1; slot < NR_UNANSWERED; slot++)
		push_request(laggard, lane, KXFER_WIRE_GRANT, 1 + slot, &request,
			     sizeof(request));
}

static bool be_granted(struct laggard *laggard, struct lag *lag)
{
	struct kxfer_wire_grant_answer grant;

	atomic_fetch_add(&laggard->attack->nr_messages, 3);
	return !raw_grant(&lag->link, ATTACK_OPEN, 0, 0, &grant) &&
	       raw_keys(&lag->link, be64toh(grant.exposure), &lag->key, 1) == 1;
}

static void come_up(struct laggard *laggard, struct lag *lag)
{
	struct raw_manners manners = {
		.ack_timeout = dice_chance(&laggard->dice, 500) ? LONGEST_ACK : 0,
	}, deaf = manners;
	struct raw_link *link = &lag->link;

	deaf.no_receives = true;
	memset(lag, 0, sizeof(*lag));
	lag->kind = dice_below(&laggard->dice, NR_KINDS);
	atomic_fetch_add(&laggard->attack->nr_connections, 1);
	if (raw_link_connect_as(link, laggard->attack->port, NULL, 0,
				lag->kind == DEAF ? &deaf : &manners))
		return;
	atomic_fetch_add(&laggard->attack->nr_established, 1);
	link->answer_pings = true;
	link->answer_revokes = false;
	lag->up = true;
	if (lag->kind == DEAF) {
		push_grants(laggard, &link->control);
		return;
	}
	lag->up = !raw_link_hello(link) && !raw_link_connect_data(link) &&
		  be_granted(laggard, lag);
	if (!lag->up)
		raw_link_close(link);
}

/* Mostly within the time that the module waits for. */
static uint32_t some_ms(struct dice *dice)
{
	return dice_chance(dice, 700) ? dice_below(dice, 2000) : dice_below(dice, 12000);
}

static void answer(struct laggard *laggard, struct lag *lag, struct kxfer_wire_header header)
{
	header.type |= KXFER_WIRE_ANSWER;
	header.length = 0;
	atomic_fetch_add(&laggard->attack->nr_messages, 1);
	raw_push(&lag->link.control, &header, sizeof(header));
}

/* The module is deregistering the exposure at this moment. */
static void answer_and_leave(struct laggard *laggard, struct lag *lag,
			     const struct kxfer_wire_header *header)
{
	answer(laggard, lag, *header);
	kx_sleep_ms(dice_below(&laggard->dice, 3));
	raw_lane_drop(&lag->link.data);
	raw_lane_drop(&lag->link.control);
	raw_link_close(&lag->link);
	lag->up = false;
}

static void heed(struct laggard *laggard, struct lag *lag,
		 const struct kxfer_wire_header *header)
{
	bool revoke = header->type == KXFER_WIRE_REVOKE;

	if (header->type & KXFER_WIRE_ANSWER) {
		atomic_fetch_add(&laggard->attack->nr_answers, 1);
	} else if (lag->kind == LEAVING && revoke) {
		answer_and_leave(laggard, lag, header);
	} else if (lag->kind == LATE && lag->nr_late < NR_LATE) {
		lag->late[lag->nr_late++] = (struct late) {
			.header = *header,
			.due_ns = kx_deadline_ns(some_ms(&laggard->dice)),
		};
	} else if (!revoke || lag->kind != SILENT) {
		answer(laggard, lag, *header);
	}
}

static void listen_to(struct laggard *laggard, struct lag *lag)
{
	struct kxfer_wire_header message[RAW_BYTES / sizeof(struct kxfer_wire_header)];
	int left = RAW_RECVS;

	if (lag->kind == DEAF || lag->kind == GORGED)
		return;
	while (lag->up && left-- && raw_receive(&lag->link.control, message, 0) > 0)
		heed(laggard, lag, message);
}

static void answer_what_is_due(struct laggard *laggard, struct lag *lag)
{
	uint32_t i = 0;

	while (i < lag->nr_late) {
		if (kx_now_ns() < lag->late[i].due_ns) {
			i++;
			continue;
		}
		answer(laggard, lag, lag->late[i].header);
		lag->late[i] = lag->late[--lag->nr_late];
	}
}

static void drip(struct laggard *laggard, struct lag *lag)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {
			.remote_addr = be64toh(lag->key.addr),
			.rkey = be32toh(lag->key.rkey),
		},
	};
	struct kxfer_wire_list list = {};
	uint64_t nothing = 0;
	uint8_t slot;

	if (kx_now_ns() < lag->drip_ns)
		return;
	lag->drip_ns = kx_deadline_ns(DRIP_MS);
	if (lag->kind == DRIPPING) {
		atomic_fetch_add(&laggard->attack->nr_rdma, 1);
		raw_push_wr(&lag->link.data, &wr, &nothing, sizeof(nothing));
	} else if (lag->kind == GORGED && lag->nr_drips++ < NR_GORGES) {
		for (slot = 1; slot < NR_UNANSWERED; slot++)
			push_request(laggard, &lag->link.control, KXFER_WIRE_LIST, slot, &list,
				     sizeof(list));
	}
}

static void step(struct laggard *laggard, struct lag *lag)
{
	if (!lag->up) {
		come_up(laggard, lag);
		return;
	}
	listen_to(laggard, lag);
	if (!lag->up)
		return;
	answer_what_is_due(laggard, lag);
	drip(laggard, lag);
	if (!raw_look(&lag->link.control)) {
		raw_link_close(&lag->link);
		lag->up = false;
	}
}

/** laggard_run() - be slow for @ms; see attack.h */
void laggard_run(struct attack *attack, uint64_t seed, uint32_t ms)
{
	static struct laggard laggard;
	uint64_t end = kx_deadline_ns(ms);
	uint32_t i;

	laggard.attack = attack;
	laggard.dice.state = seed;
	while (kx_now_ns() < end && !atomic_load(&attack->nr_faults)) {
		for (i = 0; i < NR_LINKS; i++)
			step(&laggard, &laggard.lags[i]);
		kx_sleep_ms(5);
	}
	/* Like the end of a process; some links end without a disconnect. */
	for (i = 0; i < NR_LINKS; i++)
		if (laggard.lags[i].up && dice_chance(&laggard.dice, 500))
			raw_link_close(&laggard.lags[i].link);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Ambusher: a server in user space that attacks the module when the module connects to it; see
 * attack.h.
 *
 * Half of its answers are correct, so that the module reaches the next step; the others differ
 * in one field, or in all. Between them it sends unexpected requests, and work requests with
 * guessed keys.
 *
 * It may or may not READ the long messages that it was OFFERed, and may or may not send
 * FETCHED: before the answer, later, twice, or with another id. It also sends FETCHED for ids
 * that were never offered.
 */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "peers/attack.h"
#include "peers/raw_peer.h"

#define WELL		550	/* of 1000 answers */
#define SLEEPY		15	/* answers that are never given */
#define LETHAL		8	/* answers instead of which the ambusher vanishes */
#define TICK_MS		20

/* @noted: bit mask of ids in @offers that were not answered with FETCHED yet */
struct ambusher {
	struct attack *attack;
	struct dice dice;
	struct kxfer_wire_offer offers[KXFER_WIRE_OFFERS];
	uint32_t noted;
};

static void push(struct raw_server *server, struct raw_lane *lane, const void *message,
		 uint32_t length)
{
	struct ambusher *ambusher = server->context;

	atomic_fetch_add(&ambusher->attack->nr_messages, 1);
	raw_push(lane, message, length);
}

/* Changes one number-sized field anywhere in the payload. */
static void spoil_payload(struct dice *dice, uint8_t *payload, uint32_t length)
{
	uint64_t number = dice_odd(dice);
	uint32_t bytes = dice_chance(dice, 500) ? 8 : 4, at;

	if (length < bytes)
		return;
	at = dice_below(dice, (length - bytes) / 4 + 1) * 4;
	number = htobe64(number);
	memcpy(payload + at, bytes == 8 ? (uint8_t *)&number : (uint8_t *)&number + 4, bytes);
}

static void spoil_answer(struct dice *dice, struct kxfer_wire_header *answer,
			 uint8_t *payload, uint16_t *length)
{
	switch (dice_below(dice, 10)) {
	case 0:
		answer->status = htobe16(dice_below(dice, 12));
		break;
	case 1:
		answer->status = htobe16(dice_odd(dice));
		break;
	case 2:
		*length = dice_below(dice, RAW_BYTES - sizeof(*answer));
		break;
	case 3:
		dice_fill(dice, payload, *length);
		break;
	case 4:
		answer->sequence ^= dice_odd(dice);
		break;
	case 5:
		answer->type = dice_odd(dice);
		break;
	case 6:
		answer->slot = dice_odd(dice);
		break;
	default:
		spoil_payload(dice, payload, *length);
	}
}

static void list_something(struct dice *dice, uint8_t *payload, uint16_t *length)
{
	struct kxfer_wire_list_answer *list = (void *)payload;
	uint32_t nr = dice_below(dice, 15), i;

	list->nr = htobe32(nr);
	*length = sizeof(*list) + nr * sizeof(list->entries[0]);
	for (i = 0; i < nr; i++) {
		list->entries[i].id = htobe64(i + 1);
		memcpy(list->entries[i].name, "ambush", 6);
	}
}

/* The grant of ATTACK_MAIL_NAME. */
static void grant_mailbox(uint8_t *payload)
{
	struct kxfer_wire_grant_answer *grant = (void *)payload;

	grant->length = htobe64(KXFER_MESSAGE_LONG_MAX);
	grant->rights = htobe32(KXFER_RIGHT_SEND);
	grant->nr_keys = 0;
}

/* ---- long messages ---- */

static void say_fetched(struct raw_server *server, struct raw_lane *lane, uint32_t id)
{
	struct ambusher *ambusher = server->context;
	struct dice *dice = &ambusher->dice;
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_fetched fetched;
	} message = {
		.header = raw_header(KXFER_WIRE_FETCHED, id % KXFER_WIRE_DATA_SLOTS,
				     sizeof(message.fetched), dice_roll(dice)),
		.fetched = { .id = htobe32(id) },
	};

	if (dice_chance(dice, 200))
		message.fetched.status = htobe32(dice_below(dice, 12));
	else if (dice_chance(dice, 10))
		message.fetched.status = htobe32(dice_odd(dice));
	push(server, lane, &message, sizeof(message));
	if (id < KXFER_WIRE_OFFERS)
		ambusher->noted &= ~(1u << id);
	atomic_fetch_add(&ambusher->attack->nr_fetched, 1);
}

static void read_offer(struct raw_server *server, struct raw_lane *lane,
		       const struct kxfer_wire_offer *offer)
{
	struct ambusher *ambusher = server->context;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {
			.remote_addr = be64toh(offer->address),
			.rkey = be32toh(offer->rkey),
		},
	};
	uint8_t bytes[64] = "";

	atomic_fetch_add(&ambusher->attack->nr_rdma, 1);
	raw_push_wr(lane, &wr, bytes, sizeof(bytes));
}

/* Records an OFFER before it is answered. */
static void note_offer(struct raw_server *server, struct raw_lane *lane, const void *payload)
{
	struct ambusher *ambusher = server->context;
	const struct kxfer_wire_offer *offer = payload;
	uint32_t id = be32toh(offer->id);

	if (id >= KXFER_WIRE_OFFERS) {
		attack_fault(ambusher->attack, "an OFFER with id %u", id);
		return;
	}
	ambusher->offers[id] = *offer;
	ambusher->noted |= 1u << id;
	atomic_fetch_add(&ambusher->attack->nr_offered, 1);
	if (dice_chance(&ambusher->dice, 200))
		say_fetched(server, lane, id);
}

/* Handles one offer: mostly a recorded one, else any id, offered or not. */
static void heed_offers(struct raw_server *server, struct raw_lane *lane)
{
	struct ambusher *ambusher = server->context;
	struct dice *dice = &ambusher->dice;
	uint32_t id = dice_below(dice, KXFER_WIRE_OFFERS), i;

	for (i = 0; i < KXFER_WIRE_OFFERS && !(ambusher->noted & 1u << id); i++)
		id = (id + 1) % KXFER_WIRE_OFFERS;
	if (!(ambusher->noted & 1u << id) && !dice_chance(dice, 10))
		return;
	if (dice_chance(dice, 500))
		read_offer(server, lane, &ambusher->offers[id]);
	say_fetched(server, lane, dice_chance(dice, 990) ? id : (uint32_t)dice_odd(dice));
	if (dice_chance(dice, 10))
		say_fetched(server, lane, id);
}

/* ---- answers ---- */

static bool answer(struct raw_server *server, struct raw_lane *lane,
		   const struct kxfer_wire_header *request)
{
	struct ambusher *ambusher = server->context;
	struct dice *dice = &ambusher->dice;
	uint8_t message[RAW_BYTES] = "", *payload = message + sizeof(*request);
	struct kxfer_wire_header *header = (void *)message;
	uint16_t length = 0;

	*header = *request;
	header->status = htobe16(raw_default_answer(server, request, payload, &length));
	header->type |= KXFER_WIRE_ANSWER;
	if (request->type == KXFER_WIRE_LIST)
		list_something(dice, payload, &length);
	if (request->type == KXFER_WIRE_GRANT &&
	    !strncmp((const char *)(request + 1), ATTACK_MAIL_NAME, 64))
		grant_mailbox(payload);
	if (request->type == KXFER_WIRE_OFFER)
		note_offer(server, lane, request + 1);
	if (request->type == KXFER_WIRE_TAKE_BACK && dice_chance(dice, 500))
		header->status = htobe16(KXFER_WIRE_BUSY);
	if (!dice_chance(dice, WELL))
		spoil_answer(dice, header, payload, &length);
	header->length = htobe16(length);
	if (dice_chance(dice, 10))
		header->length = htobe16(dice_odd(dice));
	push(server, lane, message, sizeof(*header) + length);
	if (dice_chance(dice, 10))
		push(server, lane, message, sizeof(*header) + length);
	return true;
}

static bool intercept(struct raw_server *server, struct raw_lane *lane,
		      const struct kxfer_wire_header *message, uint32_t length)
{
	struct ambusher *ambusher = server->context;

	if (message->type & KXFER_WIRE_ANSWER) {
		atomic_fetch_add(&ambusher->attack->nr_answers, 1);
		return true;
	}
	if (dice_chance(&ambusher->dice, LETHAL))
		attack_vanish(ambusher->attack, &ambusher->dice);
	if (server->mute || dice_chance(&ambusher->dice, SLEEPY))
		return true;
	/* Keep-alives are answered correctly, because the link would end otherwise. */
	if (message->type == KXFER_WIRE_PING && !dice_chance(&ambusher->dice, 50))
		return false;
	return answer(server, lane, message);
}

/* Sends requests that the module does not expect. */
static void speak_up(struct raw_server *server, struct raw_lane *lane)
{
	static const uint8_t types[] = {
		KXFER_WIRE_REVOKE, KXFER_WIRE_REVOKE, KXFER_WIRE_CONTENT,
		KXFER_WIRE_CONTENT, KXFER_WIRE_PING, KXFER_WIRE_GRANT, KXFER_WIRE_NOTIFY,
	};
	struct ambusher *ambusher = server->context;
	struct dice *dice = &ambusher->dice;
	struct {
		struct kxfer_wire_header header;
		struct kxfer_wire_content_change change;
	} message = { .change = { .exposure = htobe64(1) } };
	uint8_t type = types[dice_below(dice, sizeof(types))];
	uint16_t length = type == KXFER_WIRE_REVOKE ? 8 : type == KXFER_WIRE_CONTENT ?
			  sizeof(message.change) : 0;

	if (dice_chance(dice, 100))
		type |= KXFER_WIRE_ANSWER;
	if (dice_chance(dice, 300))
		message.change.exposure = htobe64(dice_odd(dice));
	message.change.content.generation = htobe64(dice_odd(dice));
	message.change.content.length = htobe64(dice_odd(dice));
	message.header = raw_header(type, dice_below(dice, KXFER_WIRE_CONTROL_SLOTS), length,
				    dice_roll(dice));
	push(server, lane, &message, sizeof(message.header) + length);
}

static void reach(struct raw_server *server, struct raw_lane *lane)
{
	struct ambusher *ambusher = server->context;
	uint8_t bytes[64];
	struct ibv_send_wr wr = {
		.opcode = dice_chance(&ambusher->dice, 500) ? IBV_WR_RDMA_WRITE :
			  IBV_WR_RDMA_READ,
		.wr.rdma = {
			.remote_addr = dice_odd(&ambusher->dice),
			.rkey = dice_odd(&ambusher->dice),
		},
	};

	atomic_fetch_add(&ambusher->attack->nr_rdma, 1);
	memset(bytes, ATTACK_MARK, sizeof(bytes));
	raw_push_wr(lane, &wr, bytes, sizeof(bytes));
}

static void idle(struct raw_server *server)
{
	struct ambusher *ambusher = server->context;
	struct raw_lane *lane = &server->lanes[dice_chance(&ambusher->dice, 200)];

	if (!lane->cq || !lane->events || lane->lost)
		return;
	if (lane == &server->lanes[1] && dice_chance(&ambusher->dice, 100))
		heed_offers(server, lane);
	if (dice_chance(&ambusher->dice, 30))
		speak_up(server, lane);
	else if (dice_chance(&ambusher->dice, 2))
		reach(server, lane);
	else if (dice_chance(&ambusher->dice, 1))
		raw_lane_drop(lane);
}

static void choose_manners(struct raw_server *server, struct dice *dice)
{
	uint32_t manners = dice_below(dice, 100);

	if (manners < 8) {
		dice_fill(dice, &server->refusal, sizeof(server->refusal));
		if (dice_chance(dice, 500))
			server->refusal.magic = htobe32(KXFER_WIRE_MAGIC);
		server->refuse_with = 1 + dice_below(dice, sizeof(server->refusal));
	} else if (manners < 16) {
		dice_fill(dice, &server->welcome, sizeof(server->welcome));
		server->welcome_bytes = dice_below(dice, sizeof(server->welcome) + 1);
		if (dice_chance(dice, 500))
			server->welcome.magic = htobe32(KXFER_WIRE_MAGIC);
	} else if (manners < 19) {
		server->deaf = true;
	} else if (manners < 24) {
		server->no_receives = true;
	} else if (manners < 27) {
		server->mute = true;
	}
}

/** ambusher_run() - ambush for a while; see attack.h */
void ambusher_run(struct attack *attack, uint64_t seed, uint32_t ms)
{
	static struct raw_server server;
	static struct ambusher ambusher;
	uint64_t end = kx_deadline_ns(ms);

	ambusher.attack = attack;
	ambusher.dice.state = seed;
	raw_server_init(&server);
	if (dice_chance(&ambusher.dice, 900))
		server.welcome.features = htobe32(KXFER_WIRE_FEATURE_LONG);
	choose_manners(&server, &ambusher.dice);
	server.context = &ambusher;
	server.intercept = intercept;
	server.idle = idle;
	if (raw_server_start(&server, attack->ambush_port)) {
		attack_fault(attack, "no server can be started");
		return;
	}
	while (kx_now_ns() < end)
		kx_sleep_ms(TICK_MS);
	raw_server_stop(&server);
}

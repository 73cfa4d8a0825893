// SPDX-License-Identifier: GPL-2.0
/*
 * Invader: an initiator in user space that attacks the module's listener; see
 * attack.h.
 *
 * It keeps track of its request slots and grants for two reasons: so that most of its messages
 * are accepted and reach the handlers, and to notice answers that the module must not give.
 */
#include <endian.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "peers/attack.h"
#include "peers/raw_peer.h"

#define NR_GRANTS	16
#define NR_KEYS		32
#define BURST		400	/* messages on a link before the next link */
#define SAY_BYTES	(sizeof(struct kxfer_wire_send) + KXFER_MESSAGE_MAX)	/* longest */
#define PATIENCE_MS	3000	/* for an answer that has to come */
#define SIW_PAGE	4096
#define SIW_INLINE_BYTES 32	/* MAX_HDR_INLINE of siw */

struct slot {
	bool busy;
	uint8_t type;
	uint64_t sequence;
	uint64_t asked;		/* exposure of KEYS, rights of GRANT, id of OFFER and TAKE_BACK,
				 * grant of CREDITS
				 */
	bool guessed;		/* the exposure may be that of a grant in flight */
	int name;		/* GRANT: index in names[] */
};

struct grant {
	uint64_t id;
	uint64_t exposure;
	uint32_t rights;
	uint32_t credits;	/* for messages on the data lane */
	uint32_t sent;		/* messages that took one */
};

struct key {
	struct kxfer_wire_key wire;
	uint32_t rights;
};

struct invader {
	struct attack *attack;
	struct dice dice;
	struct raw_link link;
	bool has_data;
	bool has_long;		/* long messages were agreed on */
	bool has_eager;		/* so were eager messages */
	bool has_resume;	/* and RESUME */
	bool deaf;		/* no RECVs on a lane */
	bool confused;		/* has misbehaved: an answer may have any status */
	struct slot slots[2][KXFER_WIRE_DATA_SLOTS];	/* control, data */
	uint32_t offered;	/* bit mask of OFFER ids in use */
	uint32_t noted;		/* bit mask of OFFER ids that were answered OK */
	struct grant grants[NR_GRANTS];
	uint32_t nr_grants;
	struct key keys[NR_KEYS];
	uint32_t nr_keys;
	uint32_t left;
};

static const char *const names[] = {
	ATTACK_OPEN, ATTACK_READ, ATTACK_FOREIGN, ATTACK_CLOSED, "@ping", "", "nothing",
	ATTACK_MAILBOX,
};

static const uint32_t name_rights[] = {
	KXFER_RIGHT_ALL, KXFER_RIGHT_READ, 0, 0, KXFER_RIGHT_READ, 0, 0, KXFER_RIGHT_SEND,
};

#define NR_NAMES	(int)(sizeof(names) / sizeof(names[0]))

static struct raw_lane *lane_of(struct invader *invader, bool data)
{
	return data ? &invader->link.data : &invader->link.control;
}

static void push(struct invader *invader, bool data, const void *message, uint32_t length)
{
	atomic_fetch_add(&invader->attack->nr_messages, 1);
	if (invader->left)
		invader->left--;
	raw_push(lane_of(invader, data), message, length);
}

static bool is_up(struct invader *invader)
{
	return raw_look(&invader->link.control) &&
	       (!invader->has_data || raw_look(&invader->link.data));
}

/* ---- answers of the module ---- */

static void take_grant(struct invader *invader, const struct slot *slot,
		       const struct kxfer_wire_grant_answer *answer)
{
	uint32_t rights = be32toh(answer->rights);
	struct grant *grant;

	if (slot->name < 0 || rights & ~name_rights[slot->name] || !rights)
		attack_fault(invader->attack, "rights 0x%x granted on \"%s\"", rights,
			     slot->name < 0 ? "?" : names[slot->name]);
	if (slot->asked && rights != slot->asked)
		attack_fault(invader->attack, "rights 0x%x granted, 0x%x asked for", rights,
			     (unsigned int)slot->asked);
	grant = &invader->grants[invader->nr_grants++ % NR_GRANTS];
	*grant = (struct grant) {
		.id = be64toh(answer->grant),
		.exposure = be64toh(answer->exposure),
		.rights = rights,
	};
}

static const struct grant *find_exposure(struct invader *invader, uint64_t exposure)
{
	uint32_t i;

	for (i = 0; i < NR_GRANTS; i++)
		if (invader->grants[i].rights && invader->grants[i].exposure == exposure)
			return &invader->grants[i];
	return NULL;
}

static bool grant_pending(const struct invader *invader)
{
	uint32_t i;

	for (i = 0; i < KXFER_WIRE_CONTROL_SLOTS; i++)
		if (invader->slots[0][i].busy &&
		    invader->slots[0][i].type == KXFER_WIRE_GRANT)
			return true;
	return false;
}

static void take_keys(struct invader *invader, const struct slot *slot,
		      const struct kxfer_wire_keys_answer *answer, uint32_t length)
{
	const struct grant *grant = find_exposure(invader, slot->asked);
	uint32_t nr = be32toh(answer->nr), i;

	if (length != sizeof(*answer) + nr * sizeof(answer->keys[0]))
		attack_fault(invader->attack, "%u keys in %u bytes", nr, length);
	else if (nr && !grant && !slot->guessed && invader->nr_grants <= NR_GRANTS)
		attack_fault(invader->attack, "keys of exposure %llu, which was not granted",
			     (unsigned long long)slot->asked);
	else
		for (i = 0; i < nr && grant; i++)
			invader->keys[invader->nr_keys++ % NR_KEYS] = (struct key) {
				.wire = answer->keys[i],
				.rights = grant->rights,
			};
}

static void take_list(struct invader *invader, const struct kxfer_wire_list_answer *answer,
		      uint32_t length)
{
	uint32_t nr = be32toh(answer->nr), i;

	if (length != sizeof(*answer) + nr * sizeof(answer->entries[0])) {
		attack_fault(invader->attack, "%u exports in %u bytes", nr, length);
		return;
	}
	for (i = 0; i < nr; i++)
		if (!strcmp((const char *)answer->entries[i].name, ATTACK_FOREIGN) ||
		    !strcmp((const char *)answer->entries[i].name, ATTACK_CLOSED))
			attack_fault(invader->attack, "%s is listed", answer->entries[i].name);
}

/* Frees an id for another OFFER. */
static void forget_offer(struct invader *invader, uint64_t id)
{
	if (id >= KXFER_WIRE_OFFERS)
		return;
	invader->offered &= ~(1u << id);
	invader->noted &= ~(1u << id);
}

static void take_long(struct invader *invader, const struct slot *slot, uint16_t status)
{
	if (slot->type == KXFER_WIRE_OFFER && !status && slot->asked < KXFER_WIRE_OFFERS)
		invader->noted |= invader->offered & 1u << slot->asked;
	else if ((slot->type == KXFER_WIRE_OFFER) == !!status)
		forget_offer(invader, slot->asked);
}

/* A RELEASE or the end of the grant may be under way: then there is no record of it. */
static void take_credits(struct invader *invader, uint64_t id,
			 const struct kxfer_wire_credits *answer, uint32_t length)
{
	uint32_t credits = be32toh(answer->credits), i, left = 0;

	for (i = 0; i < NR_GRANTS; i++)
		left += invader->grants[i].credits;
	if (length != sizeof(*answer) || credits + left > KXFER_WIRE_EAGER)
		attack_fault(invader->attack, "%u credits beside %u, in %u bytes", credits, left,
			     length);
	for (i = 0; i < NR_GRANTS; i++) {
		if (invader->grants[i].rights && invader->grants[i].id == id) {
			invader->grants[i].credits += credits;
			return;
		}
	}
}

static void take_answer(struct invader *invader, bool data,
			const struct kxfer_wire_header *header, uint32_t length)
{
	struct slot *slot = &invader->slots[data][header->slot % KXFER_WIRE_DATA_SLOTS];
	uint8_t type = header->type & ~KXFER_WIRE_ANSWER;

	atomic_fetch_add(&invader->attack->nr_answers, 1);
	if (!slot->busy || slot->type != type || slot->sequence != be64toh(header->sequence)) {
		if (!invader->confused)
			attack_fault(invader->attack,
				     "an answer of type %u in slot %u to nothing", type,
				     header->slot);
		return;
	}
	slot->busy = false;
	if (length != be16toh(header->length) || (header->status && length))
		attack_fault(invader->attack, "an answer of type %u, status %u, with %u bytes",
			     type, be16toh(header->status), length);
	if (type == KXFER_WIRE_OFFER || type == KXFER_WIRE_TAKE_BACK)
		take_long(invader, slot, be16toh(header->status));
	if (header->status)
		return;
	if (type == KXFER_WIRE_GRANT)
		take_grant(invader, slot, (const void *)(header + 1));
	else if (type == KXFER_WIRE_KEYS)
		take_keys(invader, slot, (const void *)(header + 1), length);
	else if (type == KXFER_WIRE_LIST)
		take_list(invader, (const void *)(header + 1), length);
	else if (type == KXFER_WIRE_CREDITS)
		take_credits(invader, slot->asked, (const void *)(header + 1), length);
}

/* Handles the module's own requests: mostly answers them correctly. */
static void answer_request(struct invader *invader, bool data,
			   const struct kxfer_wire_header *request)
{
	const struct kxfer_wire_fetched *over = (const void *)(request + 1);
	uint8_t message[sizeof(*request) + 8];
	struct kxfer_wire_header *answer = (void *)message;
	uint32_t extra = 0;

	*answer = *request;
	answer->type |= KXFER_WIRE_ANSWER;
	answer->length = 0;
	if (dice_chance(&invader->dice, 30)) {
		invader->confused = true;
		switch (dice_below(&invader->dice, 5)) {
		case 0:
			return;
		case 1:
			answer->status = htobe16(dice_odd(&invader->dice));
			break;
		case 2:
			answer->sequence ^= dice_odd(&invader->dice);
			break;
		case 3:
			extra = 8;
			answer->length = htobe16(extra);
			break;
		default:
			push(invader, data, message, sizeof(*answer));
		}
	}
	memset(message + sizeof(*answer), 0, 8);
	push(invader, data, message, sizeof(*answer) + extra);
	if (request->type == KXFER_WIRE_FETCHED)
		forget_offer(invader, be32toh(over->id));
}

static void listen_to(struct invader *invader, bool data)
{
	uint8_t message[RAW_BYTES];
	const struct kxfer_wire_header *header = (void *)message;
	int length;

	while ((length = raw_receive(lane_of(invader, data), message, 0)) >= 0) {
		if (length < (int)sizeof(*header))
			attack_fault(invader->attack, "a message of %d bytes", length);
		else if (header->type & KXFER_WIRE_ANSWER)
			take_answer(invader, data, header, length - sizeof(*header));
		else
			answer_request(invader, data, header);
	}
}

static void listen_all(struct invader *invader)
{
	listen_to(invader, false);
	if (invader->has_data)
		listen_to(invader, true);
}

/* ---- well-formed messages with hostile content ---- */

/* Picks one of @nr recorded items, of which the last @room are known. */
static uint32_t some_of(struct invader *invader, uint32_t nr, uint32_t room)
{
	return nr ? dice_below(&invader->dice, nr < room ? nr : room) : 0;
}

static const struct grant *a_grant(struct invader *invader)
{
	return &invader->grants[some_of(invader, invader->nr_grants, NR_GRANTS)];
}

static const struct key *a_key(struct invader *invader)
{
	return &invader->keys[some_of(invader, invader->nr_keys, NR_KEYS)];
}

static uint64_t some_grant(struct invader *invader)
{
	return dice_chance(&invader->dice, 900) ? a_grant(invader)->id :
						  dice_odd(&invader->dice);
}

static uint64_t some_exposure(struct invader *invader)
{
	return dice_chance(&invader->dice, 900) ? a_grant(invader)->exposure :
						  dice_odd(&invader->dice);
}

static uint32_t some_user(struct invader *invader)
{
	uint32_t uid = dice_odd(&invader->dice);

	return uid == ATTACK_FRIEND ? 0 : uid;
}

/* Mostly a name that exists. */
static uint32_t some_rights(struct dice *dice, int name)
{
	if (name >= 0 && dice_chance(dice, 600))
		return name_rights[name];
	return dice_chance(dice, 200) ? (uint32_t)dice_odd(dice) :
					dice_below(dice, KXFER_RIGHT_ANY + 1);
}

static uint32_t say_grant(struct invader *invader, struct slot *slot, void *payload)
{
	struct kxfer_wire_grant *grant = payload;

	memset(grant, 0, sizeof(*grant));
	slot->name = dice_below(&invader->dice, NR_NAMES + 2);
	if (slot->name < NR_NAMES) {
		strcpy((char *)grant->name, names[slot->name]);
	} else {
		slot->name = -1;
		dice_fill(&invader->dice, grant->name, sizeof(grant->name));
	}
	grant->uid = htobe32(some_user(invader));
	grant->gid = htobe32(some_user(invader));
	grant->rights = htobe32(some_rights(&invader->dice, slot->name));
	slot->asked = be32toh(grant->rights);
	grant->reserved = htobe32(dice_chance(&invader->dice, 100));
	grant->word = dice_roll(&invader->dice);
	return sizeof(*grant);
}

static uint32_t say_keys(struct invader *invader, struct slot *slot, void *payload)
{
	struct kxfer_wire_keys *keys = payload;

	slot->asked = some_exposure(invader);
	slot->guessed = grant_pending(invader);
	*keys = (struct kxfer_wire_keys) {
		.exposure = htobe64(slot->asked),
		.first = htobe32(dice_chance(&invader->dice, 700) ? 0 :
				 (uint32_t)dice_odd(&invader->dice)),
		.reserved = htobe32(dice_chance(&invader->dice, 100)),
	};
	return sizeof(*keys);
}

static uint32_t say_list(struct invader *invader, void *payload)
{
	struct kxfer_wire_list *list = payload;

	list->cursor = htobe64(dice_chance(&invader->dice, 500) ? 0 :
			       dice_odd(&invader->dice));
	list->uid = htobe32(some_user(invader));
	list->gid = htobe32(some_user(invader));
	return sizeof(*list);
}

static uint32_t say_grant_id(struct invader *invader, void *payload)
{
	((struct kxfer_wire_grant_id *)payload)->grant = htobe64(some_grant(invader));
	return sizeof(struct kxfer_wire_grant_id);
}

/* The grant is not used any more, unless the module does not take the RELEASE. */
static uint32_t say_release(struct invader *invader, void *payload)
{
	struct kxfer_wire_release *release = payload;
	uint32_t i;

	if (!invader->has_eager)
		return say_grant_id(invader, payload);
	*release = (struct kxfer_wire_release) { .grant = htobe64(some_grant(invader)) };
	for (i = 0; i < NR_GRANTS; i++) {
		if (invader->grants[i].rights && invader->grants[i].id == be64toh(release->grant)) {
			release->sent = htobe32(invader->grants[i].sent);
			invader->grants[i].credits = 0;
		}
	}
	return sizeof(*release);
}

static uint32_t say_credits(struct invader *invader, struct slot *slot, void *payload)
{
	uint32_t length = say_grant_id(invader, payload);

	slot->asked = be64toh(((struct kxfer_wire_grant_id *)payload)->grant);
	return length;
}

static uint32_t say_notify(struct invader *invader, void *payload)
{
	struct kxfer_wire_notify *notify = payload;

	notify->grant = htobe64(some_grant(invader));
	notify->cookie = dice_roll(&invader->dice);
	return sizeof(*notify);
}

static uint32_t say_send(struct invader *invader, void *payload)
{
	struct kxfer_wire_send *send = payload;
	uint32_t bytes = dice_below(&invader->dice, SAY_BYTES - sizeof(*send) + 1);

	send->grant = htobe64(some_grant(invader));
	send->flags = htobe32(dice_chance(&invader->dice, 800) ?
			      dice_below(&invader->dice, 2) : (uint32_t)dice_odd(&invader->dice));
	send->immediate = send->flags ? dice_roll(&invader->dice) : 0;
	dice_fill(&invader->dice, send + 1, bytes);
	return sizeof(*send) + bytes;
}

/* Mostly an OFFER of existing memory, with a free id. */
static uint32_t say_offer(struct invader *invader, struct slot *slot, void *payload)
{
	const struct raw_lane *lane = &invader->link.data;
	struct kxfer_wire_offer *offer = payload;
	struct dice *dice = &invader->dice;
	uint32_t id = dice_below(dice, KXFER_WIRE_OFFERS), i;

	for (i = 0; i < KXFER_WIRE_OFFERS && invader->offered & 1u << id; i++)
		id = (id + 1) % KXFER_WIRE_OFFERS;
	slot->asked = dice_chance(dice, 995) ? id : (uint32_t)dice_odd(dice);
	if (slot->asked < KXFER_WIRE_OFFERS)
		invader->offered |= 1u << slot->asked;
	*offer = (struct kxfer_wire_offer) {
		.grant = htobe64(some_grant(invader)),
		.address = htobe64(dice_chance(dice, 990) ? (uintptr_t)lane->memory :
				   dice_odd(dice)),
		.rkey = htobe32(lane->mr && dice_chance(dice, 990) ? lane->mr->rkey :
				(uint32_t)dice_odd(dice)),
		.bytes = htobe32(dice_chance(dice, 990) ?
				 KXFER_MESSAGE_MAX + 1 + dice_below(dice, RAW_BYTES) :
				 (uint32_t)dice_odd(dice)),
		.flags = htobe32(dice_below(dice, 2) |
				 (dice_chance(dice, 300) ? KXFER_WIRE_SEND_WAIT : 0)),
		.id = htobe32(slot->asked),
		.reserved = htobe32(dice_chance(dice, 5)),
	};
	offer->immediate = offer->flags & htobe32(KXFER_WIRE_SEND_IMM) ? dice_roll(dice) : 0;
	return sizeof(*offer);
}

static uint32_t say_take_back(struct invader *invader, struct slot *slot, void *payload)
{
	uint32_t id = dice_below(&invader->dice, KXFER_WIRE_OFFERS), i;

	for (i = 0; i < KXFER_WIRE_OFFERS && !(invader->noted & 1u << id); i++)
		id = (id + 1) % KXFER_WIRE_OFFERS;
	slot->asked = dice_chance(&invader->dice, 990) ? id : (uint32_t)dice_odd(&invader->dice);
	*(struct kxfer_wire_take_back *)payload = (struct kxfer_wire_take_back) {
		.id = htobe32(slot->asked),
		.reserved = htobe32(dice_chance(&invader->dice, 5)),
	};
	return sizeof(struct kxfer_wire_take_back);
}

/* Names this link, or one that does not exist; the links of others are not known here. */
static uint32_t say_resume(struct invader *invader, struct kxfer_wire_resume *resume)
{
	*resume = (struct kxfer_wire_resume) {
		.epoch = htobe64(dice_chance(&invader->dice, 300) ? invader->link.epoch :
				 dice_odd(&invader->dice)),
	};
	if (dice_chance(&invader->dice, 500))
		memcpy(resume->cookie, invader->link.cookie, sizeof(resume->cookie));
	return sizeof(*resume);
}

static uint32_t say(struct invader *invader, uint8_t type, struct slot *slot, void *payload)
{
	switch (type) {
	case KXFER_WIRE_GRANT:
		return say_grant(invader, slot, payload);
	case KXFER_WIRE_KEYS:
		return say_keys(invader, slot, payload);
	case KXFER_WIRE_LIST:
		return say_list(invader, payload);
	case KXFER_WIRE_RELEASE:
		return say_release(invader, payload);
	case KXFER_WIRE_CREDITS:
		return say_credits(invader, slot, payload);
	case KXFER_WIRE_INFO:
		return say_grant_id(invader, payload);
	case KXFER_WIRE_NOTIFY:
		return say_notify(invader, payload);
	case KXFER_WIRE_SEND:
		return say_send(invader, payload);
	case KXFER_WIRE_OFFER:
		return say_offer(invader, slot, payload);
	case KXFER_WIRE_TAKE_BACK:
		return say_take_back(invader, slot, payload);
	case KXFER_WIRE_RESUME:
		return say_resume(invader, payload);
	default:
		return 0;
	}
}

static struct slot *free_slot(struct invader *invader, bool data)
{
	uint32_t nr = data ? KXFER_WIRE_DATA_SLOTS : KXFER_WIRE_CONTROL_SLOTS;
	uint32_t first = dice_below(&invader->dice, nr), i;

	for (i = 0; i < nr; i++)
		if (!invader->slots[data][(first + i) % nr].busy)
			return &invader->slots[data][(first + i) % nr];
	return NULL;
}

static bool listen_for_slot(struct invader *invader, bool data, struct slot **slot)
{
	listen_all(invader);
	*slot = free_slot(invader, data);
	return *slot || !is_up(invader);
}

static uint8_t some_type(struct invader *invader)
{
	static const uint8_t types[] = {
		KXFER_WIRE_HELLO, KXFER_WIRE_PING, KXFER_WIRE_GRANT, KXFER_WIRE_GRANT,
		KXFER_WIRE_KEYS, KXFER_WIRE_KEYS, KXFER_WIRE_RELEASE, KXFER_WIRE_RELEASE,
		KXFER_WIRE_INFO, KXFER_WIRE_LIST, KXFER_WIRE_NOTIFY, KXFER_WIRE_NOTIFY,
		KXFER_WIRE_SEND, KXFER_WIRE_SEND, KXFER_WIRE_OFFER, KXFER_WIRE_OFFER,
		KXFER_WIRE_OFFER, KXFER_WIRE_TAKE_BACK, KXFER_WIRE_CREDITS, KXFER_WIRE_CREDITS,
		KXFER_WIRE_RESUME,
	};

	return types[dice_below(&invader->dice, sizeof(types))];
}

static bool is_long(uint8_t type)
{
	return type == KXFER_WIRE_OFFER || type == KXFER_WIRE_TAKE_BACK;
}

/* Whether there is an object that a request of this type could name. */
static bool makes_sense(const struct invader *invader, uint8_t type)
{
	if (type == KXFER_WIRE_TAKE_BACK)
		return invader->has_long && invader->noted;
	if (type == KXFER_WIRE_CREDITS)
		return invader->has_eager;
	if (type == KXFER_WIRE_RESUME)
		return invader->has_resume;
	return type != KXFER_WIRE_OFFER || invader->has_long;
}

static void request(struct invader *invader, uint8_t type)
{
	uint8_t message[sizeof(struct kxfer_wire_header) + SAY_BYTES];
	bool data = type == KXFER_WIRE_NOTIFY || type == KXFER_WIRE_SEND ||
		    type == KXFER_WIRE_CREDITS || is_long(type);
	struct kxfer_wire_header *header = (void *)message;
	struct slot *slot = NULL;
	uint32_t length;

	if ((data && !invader->has_data) || !makes_sense(invader, type))
		return;
	if (!kx_wait_until(listen_for_slot(invader, data, &slot), PATIENCE_MS) &&
	    !invader->deaf && !invader->confused)
		attack_fault(invader->attack, "a request was not answered for %u ms",
			     PATIENCE_MS);
	if (!slot)
		return;
	*slot = (struct slot) {
		.busy = true,
		.type = type,
		.sequence = dice_roll(&invader->dice),
	};
	length = say(invader, type, slot, header + 1);
	*header = raw_header(type, slot - invader->slots[data], length, slot->sequence);
	push(invader, data, message, sizeof(*header) + length);
}

/* An eager message that has a credit, if there is one. */
static void send_eager(struct invader *invader)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM };
	uint8_t bytes[100];
	uint32_t i;

	for (i = 0; i < NR_GRANTS && !invader->grants[i].credits; i++)
		;
	if (i == NR_GRANTS || !invader->has_data)
		return;
	invader->grants[i].credits--;
	invader->grants[i].sent++;
	wr.imm_data = htobe32(invader->grants[i].id);
	dice_fill(&invader->dice, bytes, sizeof(bytes));
	atomic_fetch_add(&invader->attack->nr_messages, 1);
	raw_push_wr(&invader->link.data, &wr, bytes, 1 + dice_below(&invader->dice, sizeof(bytes)));
}

/* ---- messages that break the protocol, and cost the link ---- */

static void spoil_header(struct dice *dice, struct kxfer_wire_header *header)
{
	switch (dice_below(dice, 6)) {
	case 0:
		header->type = dice_odd(dice);
		break;
	case 1:
		header->slot = dice_odd(dice);
		break;
	case 2:
		header->status = htobe16(dice_odd(dice));
		break;
	case 3:
		header->length = htobe16(dice_odd(dice));
		break;
	case 4:
		header->reserved = htobe16(dice_odd(dice));
		break;
	default:
		dice_fill(dice, header, sizeof(*header));
	}
}

static void break_protocol(struct invader *invader)
{
	uint8_t message[RAW_PUSH_BYTES];
	struct kxfer_wire_header *header = (void *)message;
	struct dice *dice = &invader->dice;
	bool data = invader->has_data && dice_chance(dice, 300);
	uint8_t type = some_type(invader), slot = dice_below(dice, KXFER_WIRE_CONTROL_SLOTS);
	struct slot none = { .busy = false };
	uint32_t length;

	memset(message, 0, sizeof(message));
	length = say(invader, type, &none, header + 1);
	*header = raw_header(type, slot, length, dice_roll(dice));
	length += sizeof(*header);
	switch (dice_below(dice, 5)) {
	case 0:
		spoil_header(dice, header);
		break;
	case 1:		/* not the length in its header, or too long for any receiver */
		length = dice_chance(dice, 500) ? dice_below(dice, length) :
			 dice_below(dice, sizeof(message));
		break;
	case 2:		/* a type that only the passive side may send */
		header->type = dice_chance(dice, 500) ? KXFER_WIRE_REVOKE :
			       KXFER_WIRE_CONTENT;
		break;
	case 3:		/* an answer without a request */
		header->type |= KXFER_WIRE_ANSWER;
		break;
	default:	/* a slot that may be busy, a lane that may be the wrong one */
		break;
	}
	invader->confused = true;
	push(invader, data, message, length);
}

/* SENDs that are no messages, and work requests that are not allowed. */
static void misuse_verbs(struct invader *invader)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_INV,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	const struct key *key = a_key(invader);
	bool iwarp = !strcmp(kx_provider(), "siw");
	struct kxfer_wire_header ping = raw_header(KXFER_WIRE_PING, 1, 0, 1);
	struct ibv_send_wr wr = {
		.opcode = opcodes[dice_below(&invader->dice, 5)],
		.imm_data = dice_roll(&invader->dice),
	};
	bool atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	/* siw's library must not get opcodes that it does not know. */
	if (iwarp)
		return;
	invader->confused = true;
	if (wr.opcode == IBV_WR_SEND_WITH_INV) {
		/* Invalidate own keys only: rxe lets a peer invalidate any key of the device. */
		wr.invalidate_rkey = be32toh(key->wire.rkey);
	} else if (atomic) {
		wr.wr.atomic.remote_addr = be64toh(key->wire.addr) & ~7ull;
		wr.wr.atomic.rkey = be32toh(key->wire.rkey);
	} else {
		wr.wr.rdma.remote_addr = be64toh(key->wire.addr);
		wr.wr.rdma.rkey = be32toh(key->wire.rkey);
	}
	atomic_fetch_add(&invader->attack->nr_rdma, 1);
	raw_push_wr(lane_of(invader, invader->has_data), &wr, &ping,
		    atomic ? 8 : sizeof(ping));
}

/* ---- memory ---- */

static bool is_siw(void)
{
	return !strcmp(kx_provider(), "siw");
}

static bool fits(const struct key *key, int64_t offset, uint32_t length)
{
	return offset >= 0 && offset + length <= be32toh(key->wire.length);
}

/* An access with a key, and whether it may succeed. */
struct try {
	uint64_t addr;
	uint32_t rkey;
	bool allowed;
};

/* siw of 6.1 to 7.2 does not check whether a registration may be read. */
static uint32_t sufficient_rights(bool write)
{
	if (write)
		return KXFER_RIGHT_WRITE;
	return is_siw() ? KXFER_RIGHT_ALL : KXFER_RIGHT_READ;
}

static struct try aim(struct invader *invader, bool write, uint32_t length)
{
	const struct key *key = a_key(invader);
	const struct kxfer_wire_key *foreign = dice_chance(&invader->dice, 500) ?
		&invader->attack->foreign : &invader->attack->read_key;
	uint32_t room = be32toh(key->wire.length);
	int64_t offset = room ? dice_below(&invader->dice, room) : 0;
	struct try try = {
		.addr = be64toh(key->wire.addr) + offset,
		.rkey = be32toh(key->wire.rkey),
	};

	/* A refused access costs the link. */
	switch (dice_below(&invader->dice, 12)) {
	case 0:		/* beyond an end */
		offset = dice_chance(&invader->dice, 500) ? -(int64_t)length :
			 (int64_t)room - (int64_t)dice_below(&invader->dice, length);
		try.addr = be64toh(key->wire.addr) + offset;
		break;
	case 1:		/* a key of another link */
		try.addr = be64toh(foreign->addr);
		try.rkey = be32toh(foreign->rkey);
		return try;
	case 2:		/* a guessed key, which may be another one of its own */
		try.rkey += dice_chance(&invader->dice, 500) ?
			    dice_below(&invader->dice, 1 << 16) : dice_odd(&invader->dice);
		try.allowed = true;
		return try;
	case 3:
		try.addr = dice_odd(&invader->dice);
		try.allowed = true;
		return try;
	default:
		break;
	}
	try.allowed = key->rights & sufficient_rights(write) && fits(key, offset, length);
	return try;
}

/*
 * For a READ this short across two pages, siw returns bytes of the physical memory after the
 * first page (siw_try_1seg() of 6.1 to 7.2). That is not a defect of kxfer.
 */
static bool is_misread_by_siw(const struct try *try, uint32_t length)
{
	return is_siw() && length <= SIW_INLINE_BYTES &&
	       try->addr % SIW_PAGE + length > SIW_PAGE;
}

static void reach(struct invader *invader)
{
	bool write = dice_chance(&invader->dice, 500);
	bool data = invader->has_data && dice_chance(&invader->dice, 800);
	struct raw_lane *lane = lane_of(invader, data);
	uint32_t length = 1 + dice_below(&invader->dice, RAW_BYTES);
	struct try try = aim(invader, write, length);
	enum ibv_wc_status status;

	atomic_fetch_add(&invader->attack->nr_rdma, 1);
	memset(raw_scratch(lane), ATTACK_MARK, length);
	status = raw_rdma(lane, write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, try.addr,
			  try.rkey, length);
	/* On iWARP a WRITE completes before it is refused. */
	if (status == IBV_WC_SUCCESS && !try.allowed &&
	    !(write && is_siw()))
		attack_fault(invader->attack, "a %s of %u bytes with key 0x%x was let through",
			     write ? "WRITE" : "READ", length, try.rkey);
	if (!write && attack_secret_in(raw_scratch(lane), length) &&
	    !is_misread_by_siw(&try, length))
		attack_fault(invader->attack,
			     "key 0x%x gave away a secret: %u bytes at 0x%llx", try.rkey,
			     length, (unsigned long long)try.addr);
}

/* ---- links ---- */

static void spoil_hello(struct dice *dice, struct kxfer_wire_hello *hello, uint8_t *length)
{
	switch (dice_below(dice, 8)) {
	case 0:
		hello->magic = htobe32(dice_odd(dice));
		break;
	case 1:
		hello->version_min = htobe16(dice_odd(dice));
		hello->version_max = htobe16(dice_odd(dice));
		break;
	case 2:
		hello->kind = dice_odd(dice);
		break;
	case 3:
		hello->lane = dice_odd(dice);
		break;
	case 4:
		hello->nr_lanes = htobe16(dice_odd(dice));
		hello->features = htobe32(dice_odd(dice));
		break;
	case 5:
		dice_fill(dice, hello->cookie, sizeof(hello->cookie));
		hello->epoch = dice_odd(dice);
		break;
	case 6:
		*length = dice_below(dice, sizeof(*hello));
		break;
	default:
		dice_fill(dice, hello, sizeof(*hello));
	}
}

static struct raw_manners some_manners(struct dice *dice)
{
	return (struct raw_manners) {
		.responder_resources = dice_chance(dice, 100) ? dice_below(dice, 16) : 0,
		.initiator_depth = dice_chance(dice, 100) ? dice_below(dice, 16) : 0,
		.retry_count = dice_below(dice, 8),
		.no_receives = dice_chance(dice, 30),
		.leave_early = dice_chance(dice, 30),
	};
}

static bool note_connection(struct invader *invader, int ret)
{
	atomic_fetch_add(&invader->attack->nr_connections, 1);
	if (!ret)
		atomic_fetch_add(&invader->attack->nr_established, 1);
	return !ret;
}

/* Connects from any port, as any user can. One of the listeners has to refuse it. */
static void connect_unprivileged(struct invader *invader, const struct kxfer_wire_hello *hello,
				 uint8_t length)
{
	struct raw_manners manners = some_manners(&invader->dice);
	struct ibv_pd *pd;

	if (!note_connection(invader, raw_lane_connect_as(&invader->link.control,
							  invader->attack->port, 0, hello,
							  length, NULL, &manners)))
		return;
	attack_fault(invader->attack, "a connection from an unprivileged port was accepted");
	pd = invader->link.control.pd;
	raw_lane_close(&invader->link.control);
	ibv_dealloc_pd(pd);
}

static bool connect_control(struct invader *invader)
{
	struct raw_manners manners = some_manners(&invader->dice);
	struct kxfer_wire_hello hello;
	uint8_t cookie[KXFER_WIRE_COOKIE_SIZE], length = sizeof(hello);
	uint64_t epoch = dice_roll(&invader->dice);
	bool open = dice_chance(&invader->dice, 200);

	memset(&invader->link, 0, sizeof(invader->link));
	dice_fill(&invader->dice, cookie, sizeof(cookie));
	hello = raw_hello_data(KXFER_WIRE_CONTROL, cookie, epoch);
	invader->has_long = dice_chance(&invader->dice, 900);
	invader->has_resume = dice_chance(&invader->dice, 800);
	invader->has_eager = dice_chance(&invader->dice, 700) && strcmp(kx_provider(), "siw");
	/* Mostly with KXFER_WIRE_FEATURE_WAIT: without it the flag of that name costs the link. */
	hello.features = htobe32((invader->has_long ? KXFER_WIRE_FEATURE_LONG : 0) |
				 (dice_chance(&invader->dice, 950) ? KXFER_WIRE_FEATURE_WAIT : 0) |
				 (invader->has_resume ? KXFER_WIRE_FEATURE_RESUME : 0) |
				 (invader->has_eager ? KXFER_WIRE_FEATURE_EAGER : 0));
	if (dice_chance(&invader->dice, 150))
		spoil_hello(&invader->dice, &hello, &length);
	if (dice_chance(&invader->dice, 30)) {
		connect_unprivileged(invader, &hello, length);
		return false;
	}
	if (!note_connection(invader, raw_link_connect_as(&invader->link,
							  open ? invader->attack->open_port :
							  invader->attack->port,
							  &hello, length, &manners)))
		return false;
	invader->deaf = manners.no_receives;
	memcpy(invader->link.cookie, hello.cookie, sizeof(cookie));
	invader->link.epoch = be64toh(hello.epoch);
	return true;
}

static void connect_data(struct invader *invader)
{
	struct raw_link *link = &invader->link;
	struct raw_manners manners = some_manners(&invader->dice);
	struct kxfer_wire_hello hello = raw_hello_data(KXFER_WIRE_DATA, link->cookie,
						       link->epoch);
	uint8_t length = sizeof(hello);
	int ret;

	if (dice_chance(&invader->dice, 60))
		spoil_hello(&invader->dice, &hello, &length);
	ret = raw_lane_connect_as(&link->data, link->port, 0, &hello, length, link->pd,
				  &manners);
	invader->has_data = note_connection(invader, ret);
	if (invader->has_data && manners.no_receives)
		invader->deaf = true;
}

static bool control_was_heard(struct invader *invader)
{
	listen_all(invader);
	return !invader->slots[0][1].busy || !is_up(invader);
}

static bool say_hello(struct invader *invader)
{
	struct slot *slot = &invader->slots[0][1];
	struct kxfer_wire_header header;

	*slot = (struct slot) {
		.busy = true,
		.type = KXFER_WIRE_HELLO,
		.sequence = dice_roll(&invader->dice),
	};
	header = raw_header(KXFER_WIRE_HELLO, 1, 0, slot->sequence);
	push(invader, false, &header, sizeof(header));
	return kx_wait_until(control_was_heard(invader), PATIENCE_MS) && !slot->busy;
}

static void converse(struct invader *invader)
{
	uint32_t burst = 1 + dice_below(&invader->dice, BURST);

	while (burst-- && invader->left && is_up(invader)) {
		uint32_t what = dice_below(&invader->dice, 1000);

		if (what < 5)
			break_protocol(invader);
		else if (what < 7)
			misuse_verbs(invader);
		else if (what < (invader->nr_keys ? 100 : 10))
			reach(invader);
		else if (what < 150 && !invader->has_data)
			connect_data(invader);
		else if (what < 250 && invader->has_eager)
			send_eager(invader);
		else
			request(invader, some_type(invader));
		listen_all(invader);
	}
}

static void leave(struct invader *invader)
{
	uint32_t how = dice_below(&invader->dice, 1000);

	if (how < 60)
		attack_vanish(invader->attack, &invader->dice);
	if (how < 300) {
		raw_lane_drop(&invader->link.data);
		raw_lane_drop(&invader->link.control);
	}
	raw_link_close(&invader->link);
}

static void forget(struct invader *invader)
{
	memset(invader->slots, 0, sizeof(invader->slots));
	memset(invader->grants, 0, sizeof(invader->grants));
	memset(invader->keys, 0, sizeof(invader->keys));
	invader->nr_grants = 0;
	invader->nr_keys = 0;
	invader->offered = 0;
	invader->noted = 0;
	invader->has_data = false;
	invader->deaf = false;
	invader->confused = false;
}

static void visit(struct invader *invader)
{
	forget(invader);
	if (!connect_control(invader))
		return;
	if (dice_chance(&invader->dice, 60)) {
		invader->confused = true;
		request(invader, some_type(invader));
	}
	if (!dice_chance(&invader->dice, 30) && say_hello(invader)) {
		if (!dice_chance(&invader->dice, 60))
			connect_data(invader);
		converse(invader);
	}
	leave(invader);
}

/** invader_run() - attack the listener; see attack.h */
void invader_run(struct attack *attack, uint64_t seed, uint32_t nr_messages)
{
	static struct invader invader;

	invader.attack = attack;
	invader.dice.state = seed;
	invader.left = nr_messages;
	while (invader.left && !atomic_load(&attack->nr_faults))
		visit(&invader);
}

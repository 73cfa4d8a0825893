// SPDX-License-Identifier: MIT
/*
 * Generate: sequences that are mostly valid.
 *
 * A sequence is made before it runs, with a plan of the objects that exist if every call
 * succeeds. First one thread makes what most calls need (sessions, regions, exports, peers,
 * targets); then all threads run ops chosen by weight.
 */
#include <string.h>

#include "generate.h"

/* Bit masks of slots whose objects should exist. */
struct plan {
	struct random *random;
	struct sequence *sequence;
	bool open[NR_SESSIONS];
	uint8_t regions[NR_SESSIONS];
	uint8_t exports[NR_SESSIONS];
	uint8_t peers[NR_SESSIONS];
	uint8_t targets[NR_SESSIONS];
	uint8_t dedicated[NR_SESSIONS];
	bool spoiling;
	uint32_t nr_threads;
};

/* Approximate percentage of the ops. */
static const struct weight {
	enum op_kind kind;
	uint32_t weight;
} weights[] = {
	{ OP_SUBMIT, 300 }, { OP_REAP, 180 }, { OP_CANCEL, 25 }, { OP_EVENT_REAP, 25 },
	{ OP_BENCH, 25 }, { OP_DEDICATED_OPEN, 10 }, { OP_DEDICATED_CLOSE, 5 },
	{ OP_DEDICATED_STATUS, 5 },
	{ OP_REGION_ADD, 60 }, { OP_REGION_DEL, 35 },
	{ OP_EXPORT_ADD, 40 }, { OP_EXPORT_DEL, 20 }, { OP_EXPORT_SET, 25 },
	{ OP_MAILBOX_ADD, 20 },
	{ OP_LISTEN_ADD, 8 }, { OP_LISTEN_DEL, 6 },
	{ OP_PEER_OPEN, 30 }, { OP_PEER_CLOSE, 10 }, { OP_PEER_LIST, 12 },
	{ OP_TARGET_OPEN, 50 }, { OP_TARGET_CLOSE, 20 }, { OP_TARGET_INFO, 20 },
	{ OP_QUERY, 10 }, { OP_NOP, 10 }, { OP_INFO, 40 }, { OP_RAW, 10 },
	{ OP_OPEN, 8 }, { OP_CLOSE, 6 }, { OP_POLL, 15 }, { OP_CQ_RING, 12 },
	{ OP_SQ_RING, 12 }, { OP_ENTER, 80 },
	{ OP_READ_RING, 60 }, { OP_REMAP, 25 }, { OP_FORK, 5 },
};

static enum op_kind draw_kind(struct random *random)
{
	uint32_t sum = 0, at, i;

	for (i = 0; i < sizeof(weights) / sizeof(*weights); i++)
		sum += weights[i].weight;
	at = random_below(random, sum);
	for (i = 0; at >= weights[i].weight; i++)
		at -= weights[i].weight;
	return weights[i].kind;
}

static uint8_t draw_set(struct random *random, uint8_t set)
{
	uint8_t slot = random_below(random, NR_SLOTS);

	while (set && !(set & 1 << slot))
		slot = (slot + 1) % NR_SLOTS;
	return slot;
}

/* The plan's set that contains the slot of an op. */
static uint8_t *slots_of(struct plan *plan, const struct op *op)
{
	switch (op->kind) {
	case OP_REGION_ADD:
	case OP_REGION_DEL:
		return &plan->regions[op->session];
	case OP_EXPORT_ADD:
	case OP_EXPORT_DEL:
	case OP_EXPORT_SET:
	case OP_MAILBOX_ADD:
		return &plan->exports[op->session];
	case OP_PEER_OPEN:
	case OP_PEER_CLOSE:
	case OP_PEER_LIST:
		return &plan->peers[op->session];
	case OP_TARGET_OPEN:
	case OP_TARGET_CLOSE:
	case OP_TARGET_INFO:
	case OP_SUBMIT:
	case OP_ENTER:
	case OP_FORK:
		return &plan->targets[op->session];
	case OP_DEDICATED_OPEN:
	case OP_DEDICATED_CLOSE:
	case OP_DEDICATED_STATUS:
		return &plan->dedicated[op->session];
	default:
		return NULL;
	}
}

static bool adds(enum op_kind kind)
{
	return kind == OP_REGION_ADD || kind == OP_EXPORT_ADD || kind == OP_MAILBOX_ADD ||
	       kind == OP_PEER_OPEN || kind == OP_TARGET_OPEN || kind == OP_DEDICATED_OPEN;
}

static bool removes(enum op_kind kind)
{
	return kind == OP_REGION_DEL || kind == OP_EXPORT_DEL || kind == OP_PEER_CLOSE ||
	       kind == OP_TARGET_CLOSE || kind == OP_DEDICATED_CLOSE;
}

static void draw_slot(struct plan *plan, struct op *op)
{
	uint8_t *set = slots_of(plan, op);

	if (!set)
		op->slot = random_below(plan->random, NR_SLOTS);
	else if (adds(op->kind))
		op->slot = draw_set(plan->random, ~*set);
	else
		op->slot = draw_set(plan->random, *set);
}

/* A session with a nonempty set, if there is one; the search begins at a random session. */
static uint32_t draw_owner(struct random *random, const uint8_t *sets)
{
	uint32_t session = random_below(random, NR_SESSIONS), i;

	for (i = 0; i < NR_SESSIONS && !sets[session]; i++)
		session = (session + 1) % NR_SESSIONS;
	return session;
}

/* Draws slots of other objects that the op uses: args[0], and for a target args[1] too. */
static void draw_others(struct plan *plan, struct op *op)
{
	uint32_t from;

	switch (op->kind) {
	case OP_EXPORT_ADD:
	case OP_SUBMIT:
	case OP_FORK:
		op->args[0] = draw_set(plan->random, plan->regions[op->session]);
		break;
	case OP_TARGET_OPEN:
		op->args[0] = draw_set(plan->random, plan->peers[op->session]);
		from = draw_owner(plan->random, plan->exports);
		op->args[1] = from * NR_SLOTS + draw_set(plan->random, plan->exports[from]);
		if (random_one_in(plan->random, 8))
			op->args[1] = NR_SESSIONS * NR_SLOTS;
		break;
	}
}

static void forget_session(struct plan *plan, uint32_t session)
{
	plan->regions[session] = 0;
	plan->exports[session] = 0;
	plan->peers[session] = 0;
	plan->targets[session] = 0;
	plan->dedicated[session] = 0;
}

static void expect(struct plan *plan, const struct op *op)
{
	uint8_t *set = slots_of(plan, op);

	if (op->kind == OP_OPEN || op->kind == OP_CLOSE) {
		plan->open[op->session] = op->kind == OP_OPEN;
		forget_session(plan, op->session);
	} else if (op->spoil && op->spoil != SPOIL_SIZE_ZEROS) {
		return;
	} else if (set && adds(op->kind)) {
		*set |= 1 << op->slot;
	} else if (set && removes(op->kind)) {
		*set &= ~(1 << op->slot);
	}
}

static void add(struct plan *plan, enum op_kind kind, uint32_t session)
{
	struct op op = { .kind = kind, .session = session };
	uint32_t i;

	for (i = 0; i < OP_ARGS; i++)
		op.args[i] = random_next(plan->random);
	/* Mostly one thread for a session, so that most of its ops keep their order. */
	if (plan->nr_threads > 1)
		op.thread = random_below(plan->random, 4) ? session % plan->nr_threads :
			    random_below(plan->random, plan->nr_threads);
	if (plan->spoiling && kind < OP_NR_CALLS && random_one_in(plan->random, 5))
		op.spoil = random_below(plan->random, OP_SPOILS_NR);
	draw_slot(plan, &op);
	draw_others(plan, &op);
	if (sequence_add(plan->sequence, &op))
		expect(plan, &op);
}

/* Makes what most calls need; by one thread, in order. */
static void set_up(struct plan *plan)
{
	uint32_t nr_threads = plan->nr_threads, session, i;
	bool spoiling = plan->spoiling;

	plan->nr_threads = 1;
	plan->spoiling = false;
	for (session = 0; session < NR_SESSIONS - 1; session++) {
		if (!plan->open[session])
			add(plan, OP_OPEN, session);
		for (i = 0; i < 3; i++)
			add(plan, OP_REGION_ADD, session);
		for (i = 0; i < 2; i++)
			add(plan, OP_EXPORT_ADD, session);
		add(plan, OP_PEER_OPEN, session);
	}
	for (session = 0; session < NR_SESSIONS - 1; session++)
		for (i = 0; i < 3; i++)
			add(plan, OP_TARGET_OPEN, session);
	add(plan, OP_SYNC, 0);
	plan->nr_threads = nr_threads;
	plan->spoiling = spoiling;
}

/* The set that an op needs in its session. */
static const uint8_t *needs(const struct plan *plan, enum op_kind kind)
{
	switch (kind) {
	case OP_REGION_DEL:
	case OP_EXPORT_ADD:
		return plan->regions;
	case OP_EXPORT_DEL:
	case OP_EXPORT_SET:
		return plan->exports;
	case OP_PEER_CLOSE:
	case OP_PEER_LIST:
	case OP_TARGET_OPEN:
		return plan->peers;
	case OP_TARGET_CLOSE:
	case OP_TARGET_INFO:
	case OP_SUBMIT:
	case OP_REAP:
	case OP_CANCEL:
	case OP_BENCH:
	case OP_FORK:
		return plan->targets;
	case OP_DEDICATED_CLOSE:
	case OP_DEDICATED_STATUS:
		return plan->dedicated;
	default:
		return NULL;
	}
}

static uint32_t draw_session(struct plan *plan, enum op_kind kind)
{
	const uint8_t *sets = random_one_in(plan->random, 20) ? NULL : needs(plan, kind);
	uint32_t session, i;

	if (sets)
		return draw_owner(plan->random, sets);
	session = random_below(plan->random, NR_SESSIONS);
	/* An open session, or for OPEN one that is not open. */
	for (i = 0; i < NR_SESSIONS && plan->open[session] == (kind == OP_OPEN); i++)
		session = (session + 1) % NR_SESSIONS;
	return session;
}

/**
 * generate() - a new sequence
 * @random: random numbers, which decide everything together with
 * @options: what the sequence may contain
 * @sequence: out: the sequence
 */
void generate(struct random *random, const struct generate_options *options,
	      struct sequence *sequence)
{
	struct plan plan = {
		.random = random,
		.sequence = sequence,
		.spoiling = true,
		.nr_threads = options->nr_threads,
	};
	uint32_t unplug_at = SEQUENCE_MAX, length = 64 + random_below(random, 192), i;

	sequence->nr = 0;
	if (options->unplug_one_in && random_one_in(random, options->unplug_one_in))
		unplug_at = random_below(random, length);
	set_up(&plan);
	for (i = 0; i < length; i++) {
		enum op_kind kind = draw_kind(random);

		if (i == unplug_at) {
			add(&plan, OP_UNPLUG, 0);
			add(&plan, OP_SYNC, 0);
			memset(plan.peers, 0, sizeof(plan.peers));
			memset(plan.targets, 0, sizeof(plan.targets));
			memset(plan.dedicated, 0, sizeof(plan.dedicated));
			set_up(&plan);
		}
		add(&plan, kind, draw_session(&plan, kind));
	}
}

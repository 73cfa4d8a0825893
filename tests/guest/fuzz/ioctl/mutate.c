// SPDX-License-Identifier: MIT
/*
 * Mutate: makes a new sequence from one that reached new code, and another one.
 *
 * A few changes at a time: an op is left out, doubled, moved, spoiled or given another
 * argument, slot or thread; or the child continues with the tail of another sequence.
 */
#include <string.h>

#include "generate.h"

static void remove_at(struct sequence *sequence, uint32_t at)
{
	sequence->nr--;
	memmove(&sequence->ops[at], &sequence->ops[at + 1],
		(sequence->nr - at) * sizeof(struct op));
}

static void insert_at(struct sequence *sequence, uint32_t at, const struct op *op)
{
	struct op copy = *op;

	if (sequence->nr == SEQUENCE_MAX)
		return;
	memmove(&sequence->ops[at + 1], &sequence->ops[at],
		(sequence->nr - at) * sizeof(struct op));
	sequence->ops[at] = copy;
	sequence->nr++;
}

static void change_argument(struct random *random, struct op *op)
{
	uint32_t *arg = &op->args[random_below(random, OP_ARGS)];

	switch (random_below(random, 3)) {
	case 0:
		*arg = random_next(random);
		break;
	case 1:
		*arg ^= 1u << random_below(random, 32);
		break;
	default:
		*arg += random_below(random, 33) - 16;
	}
}

static void change_op(struct random *random, const struct generate_options *options,
		      struct op *op)
{
	switch (random_below(random, 5)) {
	case 0:
		op->slot = random_below(random, NR_SLOTS);
		break;
	case 1:
		op->session = random_below(random, NR_SESSIONS);
		break;
	case 2:
		op->thread = random_below(random, options->nr_threads);
		break;
	case 3:
		op->spoil = random_one_in(random, 2) ? random_below(random, OP_SPOILS_NR) : 0;
		break;
	default:
		change_argument(random, op);
	}
}

static void splice(struct random *random, const struct sequence *other,
		   struct sequence *child)
{
	uint32_t from = random_below(random, other->nr);

	child->nr = random_below(random, child->nr) + 1;
	while (from < other->nr && sequence_add(child, &other->ops[from]))
		from++;
}

/* The device is removed once at most, because that takes as long as a thousand calls. */
static void unplug_once(struct sequence *sequence)
{
	bool seen = false;
	uint32_t i;

	for (i = 0; i < sequence->nr;) {
		bool unplug = sequence->ops[i].kind == OP_UNPLUG;

		if (unplug && seen)
			remove_at(sequence, i);
		else
			i++;
		seen |= unplug;
	}
}

/**
 * mutate() - make a child of a parent
 * @random: random numbers; with @parent and @other they decide everything
 * @options: as for generate()
 * @parent: first parent, not empty
 * @other: second parent, not empty; may be @parent
 * @child: out: the child
 */
void mutate(struct random *random, const struct generate_options *options,
	    const struct sequence *parent, const struct sequence *other,
	    struct sequence *child)
{
	uint32_t changes = 1 + random_below(random, 8), at;

	*child = *parent;
	if (random_one_in(random, 6))
		splice(random, other, child);
	while (changes--) {
		at = random_below(random, child->nr);
		switch (random_below(random, 8)) {
		case 0:
			if (child->nr > 8)
				remove_at(child, at);
			break;
		case 1:
			insert_at(child, at, &child->ops[at]);
			break;
		case 2:
			insert_at(child, at, &other->ops[random_below(random, other->nr)]);
			break;
		case 3:
			insert_at(child, random_below(random, child->nr), &child->ops[at]);
			break;
		default:
			change_op(random, options, &child->ops[at]);
		}
	}
	unplug_once(child);
}

// SPDX-License-Identifier: GPL-2.0
/* Bytes that jobs move, and checks of their arrival; see worker.h. */
#include <stdio.h>
#include <string.h>

#include "worker.h"

#define GUARD		0x5a

/* A MiB of a stream for each number: bits 0 to 7, 8 to 18 and 19 to 24 of the number. */
static struct pattern pattern_of(uint32_t worker, uint32_t number)
{
	return (struct pattern) {
		.seed = worker << 6 | number >> 19,
		.generation = number & 0xff,
		.offset = (uint64_t)(number >> 8 & 0x7ff) << 20,
	};
}

/* Names the job whose bytes these are. */
static void name_owner(const struct pattern *pattern, char *text, size_t room)
{
	uint32_t number = (pattern->seed & 0x3f) << 19 | (pattern->offset >> 20) << 8 |
			  pattern->generation;

	snprintf(text, room, " (byte %llu of worker %u's job %u)",
		 LLU(pattern->offset & (LONG - 1)), pattern->seed >> 6, number);
}

uint64_t bytes_there(const struct worker *worker, const struct slot *slot)
{
	return (2 * worker->id + slot->half) * (uint64_t)SPACE + slot->there;
}

/* Source or destination of a job. */
static uint8_t *end_of(const struct worker *worker, const struct slot *slot, bool sink)
{
	bool read = slot->op == KXFER_OP_READ;

	if (sink == read)
		return worker->here + slot->here;
	return worker->server->there.bytes + bytes_there(worker, slot);
}

void bytes_prepare(const struct worker *worker, const struct slot *slot)
{
	struct pattern pattern = pattern_of(worker->id, slot->number);
	uint8_t *sink = end_of(worker, slot, true);

	pattern_fill(end_of(worker, slot, false), slot->length, &pattern);
	if (slot->op == KXFER_OP_SEND)
		return;
	memset(sink - MARGIN, GUARD, MARGIN);
	memset(sink + slot->length, GUARD, MARGIN);
}

static void report_bytes(struct worker *worker, const struct slot *slot,
			 const struct pattern *want, const struct pattern_fault *found)
{
	const uint8_t *sink = end_of(worker, slot, true);
	struct pattern at = *want;
	char owner[64] = "";
	uint8_t good;

	at.offset += found->first;
	pattern_fill(&good, 1, &at);
	if (found->holds.seed || found->holds.offset)
		name_owner(&found->holds, owner, sizeof(owner));
	worker_fault(worker->shared,
		     "worker %u job %u, %s of %u bytes, here %u there %llu: byte %zu is %02x, expected %02x; %zu bytes from there to byte %zu are wrong: %s%s",
		     worker->id, slot->number, slot->op == KXFER_OP_READ ? "READ" : "WRITE",
		     slot->length, slot->here, LLU(bytes_there(worker, slot)), found->first,
		     sink[found->first], good, found->nr_bytes, found->last,
		     pattern_kind_name(found->kind), owner);
}

void bytes_verify(struct worker *worker, const struct slot *slot)
{
	struct pattern want = pattern_of(worker->id, slot->number);
	const uint8_t *sink = end_of(worker, slot, true);
	struct pattern_fault found;
	int i;

	if (pattern_check(sink, slot->length, &want, NULL, &found))
		report_bytes(worker, slot, &want, &found);
	for (i = 0; i < MARGIN; i++)
		if (sink[i - MARGIN] != GUARD || sink[slot->length + i] != GUARD)
			worker_fault(worker->shared,
				     "worker %u job %u of %u bytes: byte %d is %02x, byte %u is %02x, expected %02x",
				     worker->id, slot->number, slot->length, i - MARGIN,
				     sink[i - MARGIN], slot->length + i, sink[slot->length + i],
				     GUARD);
	worker->count->verified++;
	worker->count->bytes += slot->length;
}


bool bytes_of_message(const struct worker *worker, uint32_t number, const uint8_t *bytes)
{
	struct pattern want = pattern_of(worker->id, number);
	struct pattern_fault found;

	return !pattern_check(bytes, mail_length(number), &want, NULL, &found);
}

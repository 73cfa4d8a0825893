// SPDX-License-Identifier: MIT
/* Op: names and text; see op.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "op.h"

#define OP_NAME(id, name)	name,
static const char *const kinds[] = { OP_KINDS(OP_NAME) };
static const char *const spoils[] = { OP_SPOILS(OP_NAME) };
#undef OP_NAME

const char *op_kind_name(enum op_kind kind)
{
	return kinds[kind];
}

static bool find(const char *const *names, unsigned int nr, const char *name, uint8_t *at)
{
	for (*at = 0; *at < nr; ++*at)
		if (!strcmp(names[*at], name))
			return true;
	return false;
}

void op_write(FILE *file, const struct op *op)
{
	fprintf(file, "%s %u %u %u %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
		kinds[op->kind], op->session, op->slot, op->thread, spoils[op->spoil],
		op->args[0], op->args[1], op->args[2], op->args[3]);
}

/** op_read() - parse an op from a line; false if the line is none */
bool op_read(const char *line, struct op *op)
{
	char kind[24], spoil[24];

	return sscanf(line, "%23s %" SCNu8 " %" SCNu8 " %" SCNu8 " %23s %" SCNu32 " %" SCNu32
		      " %" SCNu32 " %" SCNu32,
		      kind, &op->session, &op->slot, &op->thread, spoil, &op->args[0],
		      &op->args[1], &op->args[2], &op->args[3]) == 9 &&
	       find(kinds, OP_KINDS_NR, kind, &op->kind) &&
	       find(spoils, OP_SPOILS_NR, spoil, &op->spoil) &&
	       op->session < NR_SESSIONS && op->slot < NR_SLOTS && op->thread < NR_THREADS;
}

/** sequence_add() - append an op; false when the sequence is full */
bool sequence_add(struct sequence *sequence, const struct op *op)
{
	if (sequence->nr == SEQUENCE_MAX)
		return false;
	sequence->ops[sequence->nr++] = *op;
	return true;
}

/** sequence_read() - read a file of ops; `#` begins a comment. Return: 0 or -errno */
int sequence_read(const char *path, struct sequence *sequence)
{
	FILE *file = fopen(path, "re");
	char line[256];
	int ret = 0;

	if (!file)
		return -errno;
	sequence->nr = 0;
	while (!ret && fgets(line, sizeof(line), file)) {
		struct op op = { 0 };

		if (*line == '#' || *line == '\n')
			continue;
		if (!op_read(line, &op))
			ret = -EINVAL;
		else if (!sequence_add(sequence, &op))
			ret = -E2BIG;
	}
	fclose(file);
	return ret;
}

void sequence_write(FILE *file, const struct sequence *sequence)
{
	uint32_t i;

	for (i = 0; i < sequence->nr; i++)
		op_write(file, &sequence->ops[i]);
}

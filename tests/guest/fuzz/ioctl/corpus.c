// SPDX-License-Identifier: MIT
/* Corpus: see corpus.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "corpus.h"

struct member {
	uint32_t number;
	struct sequence sequence;
};

static struct member *members[CORPUS_MAX];
static uint32_t nr_members;

static const struct member *find(uint32_t number)
{
	uint32_t i;

	for (i = 0; i < nr_members; i++)
		if (members[i]->number == number)
			return members[i];
	return NULL;
}

/** corpus_choose() - choose the origin of sequence @number: mostly members, if there are any */
struct origin corpus_choose(uint64_t seed, uint32_t number)
{
	struct random random = random_of(~seed, number);
	struct origin origin = { .number = number };

	if (nr_members && random_below(&random, 4)) {
		origin.parents[0] = members[random_below(&random, nr_members)]->number;
		origin.parents[1] = members[random_below(&random, nr_members)]->number;
	}
	return origin;
}

/** corpus_make() - make the sequence of an origin whose parents are members */
void corpus_make(uint64_t seed, const struct generate_options *options,
		 const struct origin *origin, struct sequence *sequence)
{
	struct random random = random_of(seed, origin->number);

	if (origin->parents[0])
		mutate(&random, options, &find(origin->parents[0])->sequence,
		       &find(origin->parents[1])->sequence, sequence);
	else
		generate(&random, options, sequence);
}

/** corpus_add() - keep a sequence; a full corpus drops a random one. Return: 0 or -errno */
int corpus_add(const struct origin *origin, const struct sequence *sequence)
{
	struct random random = random_of(origin->number, 1);
	uint32_t at = nr_members < CORPUS_MAX ? nr_members : random_below(&random, CORPUS_MAX);

	if (at == nr_members) {
		members[at] = malloc(sizeof(*members[at]));
		if (!members[at])
			return -ENOMEM;
		nr_members++;
	}
	members[at]->number = origin->number;
	members[at]->sequence = *sequence;
	return 0;
}

uint32_t corpus_size(void)
{
	return nr_members;
}

/* All origins that a log mentions, by number. */
static struct origin *read_log(const char *path, uint32_t last)
{
	struct origin *origins = calloc(last + 1ul, sizeof(*origins));
	FILE *file = fopen(path, "re");
	char line[512];

	while (origins && file && fgets(line, sizeof(line), file)) {
		struct origin origin = { 0 };

		/* The guest's runner indents the output of tests. */
		if (sscanf(line, " # sequence %u of %u and %u", &origin.number,
			   &origin.parents[0], &origin.parents[1]) >= 1 &&
		    origin.number && origin.number <= last)
			origins[origin.number] = origin;
	}
	if (file)
		fclose(file);
	return origins;
}

static int recall(uint64_t seed, const struct generate_options *options,
		  const struct origin *origins, uint32_t number, struct sequence *sequence)
{
	struct origin origin = origins[number];
	int ret = 0, i;

	origin.number = number;
	for (i = 0; !ret && i < 2; i++)
		if (origin.parents[i] >= number)
			return -EINVAL;
		else if (origin.parents[i] && !find(origin.parents[i]))
			ret = recall(seed, options, origins, origin.parents[i], sequence);
	if (ret)
		return ret;
	if (nr_members == CORPUS_MAX)
		return -ENOSPC;
	corpus_make(seed, options, &origin, sequence);
	return corpus_add(&origin, sequence);
}

/**
 * corpus_recall() - make a sequence of an earlier run again
 * @seed: seed of that run
 * @options: options of that run
 * @log: output of that run; NULL if it had no coverage
 * @number: number of the sequence
 * @sequence: out: the sequence
 *
 * Return: 0 or -errno.
 */
int corpus_recall(uint64_t seed, const struct generate_options *options, const char *log,
		  uint32_t number, struct sequence *sequence)
{
	struct origin *origins = read_log(log ?: "/dev/null", number);
	int ret = origins ? recall(seed, options, origins, number, sequence) : -ENOMEM;

	free(origins);
	return ret;
}

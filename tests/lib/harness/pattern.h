/* SPDX-License-Identifier: MIT */
/*
 * Pattern: bytes that encode their place.
 *
 * A pattern is an endless stream of 8-byte words. Each encodes a seed (the owner of the data),
 * a generation (the number of the filling) and its own place in the stream. The encoding is a
 * bijection that mixes all bits, so that every single byte depends on all three. Sixteen bits
 * are a check value, which distinguishes written words from others.
 *
 * A wrong byte is classified by what stands in its place:
 *
 *	corrupt		no word of any pattern
 *	stale		the earlier content, or a word of another generation
 *	misplaced	a word from elsewhere in the stream, shifted by whole words or bytes
 *	torn		some bytes of a word new and some old
 *	foreign		a word of another seed
 */
#ifndef KXFER_TEST_PATTERN_H
#define KXFER_TEST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_SEED_MAX	0xfffu
#define PATTERN_GENERATION_MAX	0xffu
#define PATTERN_STREAM_MAX	(1ull << 31)	/* bytes */

/**
 * struct pattern - a piece of a stream, without its length
 * @seed: 0 to PATTERN_SEED_MAX
 * @generation: 0 to PATTERN_GENERATION_MAX
 * @offset: byte of the stream that is in the first byte of the memory
 */
struct pattern {
	uint32_t seed;
	uint32_t generation;
	uint64_t offset;
};

enum pattern_fault_kind {
	PATTERN_GOOD,
	PATTERN_CORRUPT,
	PATTERN_STALE,
	PATTERN_MISPLACED,
	PATTERN_TORN,
	PATTERN_FOREIGN,
	PATTERN_KINDS,
};

/**
 * struct pattern_fault - result of a check
 * @kind: kind of most wrong bytes; PATTERN_GOOD: none is wrong
 * @first: index of the first wrong byte
 * @last: index of the last wrong byte
 * @nr_bytes: number of wrong bytes
 * @found: first wrong word of that kind, or a part of it
 * @found_bytes: bytes of @found
 * @holds: decoded @found, if it belongs to a pattern
 */
struct pattern_fault {
	enum pattern_fault_kind kind;
	size_t first;
	size_t last;
	size_t nr_bytes;
	uint8_t found[8];
	size_t found_bytes;
	struct pattern holds;
};

void pattern_fill(void *memory, size_t length, const struct pattern *pattern);
enum pattern_fault_kind pattern_check(const void *memory, size_t length,
				      const struct pattern *want,
				      const struct pattern *before,
				      struct pattern_fault *fault);
const char *pattern_kind_name(enum pattern_fault_kind kind);
const char *pattern_describe(const struct pattern *want, const struct pattern_fault *fault,
			     char *text, size_t room);

/** pattern_at() - the same stream @bytes further on */
static inline struct pattern pattern_at(const struct pattern *pattern, uint64_t bytes)
{
	struct pattern at = *pattern;

	at.offset += bytes;
	return at;
}

#endif /* KXFER_TEST_PATTERN_H */

// SPDX-License-Identifier: MIT
/*
 * Pattern: fills memory with bytes that encode their place, and names what is wrong with memory
 * that should hold them. pattern.h has the terms.
 *
 * Bytes are compared by words of the stream, which may begin anywhere in memory; a range may
 * begin and end within a word. The byte order is the host's, because patterns never leave it.
 */
#include <stdio.h>
#include <string.h>

#include "harness/pattern.h"

#define CHECK		0x6b78ull	/* upper sixteen bits before the bijection */
#define WORDS_NAMED	65536		/* wrong words that are examined closely */

/* check:16 seed:12 generation:8 index:28, mixed by a bijection (splitmix64). */
static uint64_t encode(uint32_t seed, uint32_t generation, uint64_t index)
{
	uint64_t x = CHECK << 48 | (uint64_t)(seed & PATTERN_SEED_MAX) << 36 |
		     (uint64_t)(generation & PATTERN_GENERATION_MAX) << 28 |
		     (index & ((1ull << 28) - 1));

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t unshift(uint64_t x, unsigned int bits)
{
	return x ^ x >> bits ^ (2 * bits < 64 ? x >> 2 * bits : 0);
}

/* The inverse of word(). Return: false if the word belongs to no pattern. */
static bool decode(uint64_t word, struct pattern *pattern)
{
	uint64_t x = unshift(word, 31) * 0x319642b2d24d8ec3ull;

	x = unshift(unshift(x, 27) * 0x96de1b173f119089ull, 30);
	if (x >> 48 != CHECK)
		return false;
	pattern->seed = x >> 36 & PATTERN_SEED_MAX;
	pattern->generation = x >> 28 & PATTERN_GENERATION_MAX;
	pattern->offset = (x & ((1ull << 28) - 1)) * 8;
	return true;
}

static uint64_t word_at(const struct pattern *pattern, uint64_t offset)
{
	return encode(pattern->seed, pattern->generation, offset / 8);
}

/* The bytes of the stream from @offset to the end of its word. */
static size_t piece(const struct pattern *pattern, uint64_t offset, size_t length,
		    uint8_t *bytes)
{
	uint64_t word = word_at(pattern, offset);
	size_t skip = offset % 8, n = 8 - skip;

	n = n < length ? n : length;
	memcpy(bytes, (const uint8_t *)&word + skip, n);
	return n;
}

/* Up to eight bytes of the stream, also across the border of a word. */
static void bytes_of(const struct pattern *pattern, uint64_t offset, size_t length,
		     uint8_t *bytes)
{
	size_t n = piece(pattern, offset, length, bytes);

	if (n < length)
		piece(pattern, offset + n, length - n, bytes + n);
}

/**
 * pattern_fill() - write a piece of a stream
 * @memory: destination, of any alignment
 * @length: bytes
 * @pattern: piece of a stream
 */
void pattern_fill(void *memory, size_t length, const struct pattern *pattern)
{
	uint64_t offset = pattern->offset;
	uint8_t *to = memory;
	size_t n;

	for (; length; to += n, offset += n, length -= n) {
		if (offset % 8 || length < 8) {
			n = piece(pattern, offset, length, to);
		} else {
			uint64_t word = word_at(pattern, offset);

			memcpy(to, &word, sizeof(word));
			n = sizeof(word);
		}
	}
}

struct memory {
	const uint8_t *bytes;
	size_t length;
};

/* Whether it is a word of the stream that is displaced by some bytes. */
static bool shifted(const struct memory *memory, size_t at, const struct pattern *want,
		    struct pattern *holds)
{
	uint64_t word;
	size_t back;

	for (back = 0; back < 8; back++) {
		if (at < back || at - back + sizeof(word) > memory->length)
			continue;
		memcpy(&word, memory->bytes + at - back, sizeof(word));
		if (decode(word, holds) && holds->seed == want->seed)
			return true;
	}
	return false;
}

/* Classifies @n wrong bytes of memory at @at, at most one word. */
static enum pattern_fault_kind classify(const struct memory *memory, size_t at, size_t n,
					const struct pattern *want,
					const struct pattern *before,
					struct pattern_fault *fault)
{
	uint8_t new[8], old[8];
	size_t nr_new = 0, nr_old = 0, nr_known = 0, i;
	uint64_t word;

	bytes_of(want, want->offset + at, n, new);
	if (before)
		bytes_of(before, before->offset + at, n, old);
	for (i = 0; i < n; i++) {
		bool is_new = memory->bytes[at + i] == new[i];
		bool is_old = before && memory->bytes[at + i] == old[i];

		nr_new += is_new;
		nr_old += is_old;
		nr_known += is_new || is_old;
	}
	if (nr_old == n)
		return PATTERN_STALE;
	if (nr_known == n && nr_old)
		return PATTERN_TORN;
	if (n == sizeof(word)) {
		memcpy(&word, memory->bytes + at, sizeof(word));
		if (decode(word, &fault->holds)) {
			if (fault->holds.seed != want->seed)
				return PATTERN_FOREIGN;
			return fault->holds.offset == (want->offset + at) / 8 * 8 ?
			       PATTERN_STALE : PATTERN_MISPLACED;
		}
	}
	return shifted(memory, at, want, &fault->holds) ? PATTERN_MISPLACED : PATTERN_CORRUPT;
}

/* Number of faults of each kind, and the first word of each. */
struct tally {
	size_t nr_bytes[PATTERN_KINDS];
	struct pattern_fault sample[PATTERN_KINDS];
	size_t nr_words;
};

static size_t count_wrong(struct pattern_fault *fault, const uint8_t *bytes,
			  const uint8_t *good, size_t at, size_t n)
{
	size_t wrong = 0, i;

	for (i = 0; i < n; i++) {
		if (bytes[i] == good[i])
			continue;
		if (!fault->nr_bytes++)
			fault->first = at + i;
		fault->last = at + i;
		wrong++;
	}
	return wrong;
}

/* Records a wrong piece of at most one word. */
static void note(struct pattern_fault *fault, struct tally *tally,
		 const struct memory *memory, size_t at, size_t n,
		 const struct pattern *want, const struct pattern *before)
{
	struct pattern_fault word = { .found_bytes = n };
	uint8_t good[8];
	size_t wrong;

	bytes_of(want, want->offset + at, n, good);
	wrong = count_wrong(fault, memory->bytes + at, good, at, n);
	if (tally->nr_words++ >= WORDS_NAMED)
		return;
	word.kind = classify(memory, at, n, want, before, &word);
	memcpy(word.found, memory->bytes + at, n);
	if (!tally->nr_bytes[word.kind])
		tally->sample[word.kind] = word;
	tally->nr_bytes[word.kind] += wrong;
}

/* The kind with the most wrong bytes, because ranges begin and end within words. */
static void name(struct pattern_fault *fault, const struct tally *tally)
{
	const struct pattern_fault *sample;
	enum pattern_fault_kind kind, most = PATTERN_GOOD;

	for (kind = PATTERN_GOOD + 1; kind < PATTERN_KINDS; kind++)
		if (tally->nr_bytes[kind] > tally->nr_bytes[most])
			most = kind;
	sample = &tally->sample[most];
	fault->kind = most;
	fault->found_bytes = sample->found_bytes;
	memcpy(fault->found, sample->found, sizeof(fault->found));
	fault->holds = sample->holds;
}

/**
 * pattern_check() - check that memory holds a piece of a stream
 * @memory: of any alignment
 * @length: bytes
 * @want: expected piece
 * @before: earlier content, or NULL
 * @fault: out: description of the fault; or NULL
 *
 * Return: kind of fault.
 */
enum pattern_fault_kind pattern_check(const void *memory, size_t length,
				      const struct pattern *want,
				      const struct pattern *before,
				      struct pattern_fault *fault)
{
	struct memory all = { memory, length };
	struct pattern_fault own;
	struct tally tally = { 0 };
	size_t at = 0, n;
	uint8_t good[8];

	fault = fault ? fault : &own;
	memset(fault, 0, sizeof(*fault));
	for (; at < length; at += n) {
		uint64_t offset = want->offset + at;

		if (offset % 8 == 0 && length - at >= 8) {
			uint64_t word = word_at(want, offset);

			n = sizeof(word);
			if (!memcmp(all.bytes + at, &word, sizeof(word)))
				continue;
		} else {
			n = piece(want, offset, length - at, good);
			if (!memcmp(all.bytes + at, good, n))
				continue;
		}
		note(fault, &tally, &all, at, n, want, before);
	}
	name(fault, &tally);
	return fault->kind;
}

/** pattern_kind_name() - the name of a kind of fault, one word */
const char *pattern_kind_name(enum pattern_fault_kind kind)
{
	static const char *const names[] = {
		[PATTERN_GOOD] = "good",
		[PATTERN_CORRUPT] = "corrupt",
		[PATTERN_STALE] = "stale",
		[PATTERN_MISPLACED] = "misplaced",
		[PATTERN_TORN] = "torn",
		[PATTERN_FOREIGN] = "foreign",
	};

	return names[kind];
}

/**
 * pattern_describe() - describe a fault in a sentence
 * @want: expected piece
 * @fault: result of pattern_check()
 * @text: out: the sentence
 * @room: bytes of @text
 *
 * Return: @text.
 */
const char *pattern_describe(const struct pattern *want, const struct pattern_fault *fault,
			     char *text, size_t room)
{
	char found[17] = "", holds[96] = "";
	size_t i;

	if (fault->kind == PATTERN_GOOD) {
		snprintf(text, room, "good");
		return text;
	}
	for (i = 0; i < fault->found_bytes; i++)
		snprintf(found + 2 * i, 3, "%02x", fault->found[i]);
	if (fault->holds.offset || fault->holds.seed)
		snprintf(holds, sizeof(holds), " (seed %u generation %u stream byte %llu)",
			 fault->holds.seed, fault->holds.generation,
			 (unsigned long long)fault->holds.offset);
	snprintf(text, room,
		 "%s: bytes %zu to %zu, %zu of them wrong; found %s%s, wanted seed %u generation %u stream byte %llu",
		 pattern_kind_name(fault->kind), fault->first, fault->last, fault->nr_bytes,
		 found, holds, want->seed, want->generation,
		 (unsigned long long)(want->offset + fault->first));
	return text;
}

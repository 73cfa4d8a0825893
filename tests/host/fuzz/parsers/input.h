/* SPDX-License-Identifier: GPL-2.0 */
/* Takes a fuzzer's bytes apart; missing bytes count as 0. */
#ifndef KXFER_FUZZ_INPUT_H
#define KXFER_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's entry point for each input */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t left;
};

static inline uint64_t take(struct input *input, size_t bytes)
{
	uint64_t number = 0;

	if (bytes > input->left)
		bytes = input->left;
	memcpy(&number, input->data, bytes);
	input->data += bytes;
	input->left -= bytes;
	return number;
}

/* From 0 to end - 1. */
static inline uint64_t take_below(struct input *input, uint64_t end)
{
	return take(input, end > 1U << 16 ? 8 : end > 256 ? 2 : 1) % end;
}

/* A finding: libFuzzer keeps the input when the program aborts. */
static inline void found(const char *wrong)
{
	if (!wrong)
		return;
	fprintf(stderr, "FOUND: %s\n", wrong);
	abort();
}

#endif /* KXFER_FUZZ_INPUT_H */

/* SPDX-License-Identifier: MIT */
/*
 * Post: a session with a mailbox, and a session that sends to it, with a region each.
 *
 * Each RECV in flight has a separate place in the region.
 */
#ifndef KXFER_TEST_POST_H
#define KXFER_TEST_POST_H

#include "harness/kxfer_test.h"

#define POST_PLACE	2048	/* bytes of a place: the longest message and some more */
#define POST_PLACES	64
#define POST_BYTES	(POST_PLACE * POST_PLACES)

struct post {
	int server;		/* session with the mailbox */
	int client;
	uint64_t listener;
	uint8_t *inbox;
	uint8_t *outbox;
	uint32_t inbox_region;
	uint32_t outbox_region;
	uint32_t mailbox;
	uint32_t peer;
	uint32_t target;
	char name[KXFER_NAME_MAX + 1];
};

/* Return: 0 or -errno; post_close() accepts a half-open one too. */
int post_open(struct post *post, uint32_t capacity, uint32_t max_bytes);
void post_close(struct post *post);
struct kxfer_job post_send(const struct post *post, uint32_t place, uint32_t bytes);
struct kxfer_job post_recv(const struct post *post, uint32_t place);
const struct kxfer_message *post_message(const struct post *post, uint32_t place);

#endif /* KXFER_TEST_POST_H */

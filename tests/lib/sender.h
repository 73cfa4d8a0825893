/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sender: a session with a dedicated connection to a responder (responder.h), and a run on
 * it: messages one at a time, until a test changes something of that.
 */
#ifndef KXFER_TEST_SENDER_H
#define KXFER_TEST_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "kxfer_test.h"
#include "responder.h"

#define SENDER_SLOTS	8
#define SENDER_BYTES	1000	/* of a message */
#define SENDER_STRIDE	4096
#define SENDER_LENGTH	(SENDER_SLOTS * SENDER_STRIDE)
#define SENDER_RECEIVES	32
#define SENDER_LONG_MS	20000	/* no run of these tests lasts as long */

/**
 * struct sender - one that was opened
 * @fd: its session
 * @transport: KXFER_TRANSPORT_*, of all connections
 * @here: what is sent, SENDER_LENGTH bytes
 * @links: of tests before, which may end meanwhile
 * @mrs: likewise
 * @open: what sender_dedicate() calls with, and its results
 * @bench: likewise, of sender_run()
 */
struct sender {
	struct responder responder;
	int fd;
	uint32_t transport;
	uint8_t *here;
	uint32_t region;
	uint64_t links;
	uint64_t mrs;
	struct kxfer_dedicated_open open;
	struct kxfer_bench bench;
};

/*
 * No link is left but those that there were at first. With two CPUs the last reference may go
 * a moment after its session.
 */
bool sender_links_are_gone(const struct sender *sender, int fd);

/* Return: 0 or -errno */
int sender_open(struct sender *sender, uint32_t transport);
/* The session ends, then the responder. Return: NULL, or what is left of it */
const char *sender_close(struct sender *sender);
/* Another responder instead, and @open and @bench as at first. Return: 0 or -errno */
int sender_begin(struct sender *sender, const struct responder_manners *manners);

/* The calls. Return: 0 or -errno */
int sender_dedicate(struct sender *sender);
int sender_run(struct sender *sender);
int sender_look(struct sender *sender, struct kxfer_dedicated_status *status);
int sender_hang_up(struct sender *sender);

/* Has all that was sent been received? */
bool sender_settled(struct sender *sender, struct kxfer_dedicated_status *status);
/* Has each slot there the bytes of the same slot here? */
bool sender_landed(const struct sender *sender);
/* Whether the responder has no connection any more, in KX_TIMEOUT_MS. */
bool sender_is_alone(struct sender *sender);
/* Runs of many messages, in several depths and chains. Return: NULL, or what is wrong */
const char *sender_try(struct sender *sender);

#define test_sends(sender) do {				\
	const char *wrong__ = sender_try(sender);	\
							\
	ASSERT_EQ(NULL, wrong__) {			\
		TH_LOG("%s", wrong__);			\
	}						\
} while (0)

/* With one member changed the call is refused. */
#define test_err_dedicate(err, sender, member, value) do {		\
	struct kxfer_dedicated_open good__ = (sender)->open;		\
									\
	(sender)->open.member = value;					\
	EXPECT_EQ(-(err), sender_dedicate(sender));			\
	(sender)->open = good__;					\
} while (0)

#define test_err_run(err, sender, member, value) do {			\
	struct kxfer_bench good__ = (sender)->bench;			\
									\
	(sender)->bench.member = value;					\
	EXPECT_EQ(-(err), sender_run(sender));				\
	(sender)->bench = good__;					\
} while (0)

#endif /* KXFER_TEST_SENDER_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sender: a session with a dedicated connection to a responder (responder.h), and a run on it.
 * By default the run sends messages one at a time; a test changes members of it.
 */
#ifndef KXFER_TEST_SENDER_H
#define KXFER_TEST_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/kxfer_test.h"
#include "peers/responder.h"

#define SENDER_SLOTS	8
#define SENDER_BYTES	1000	/* bytes of a message */
#define SENDER_STRIDE	4096
#define SENDER_LENGTH	(SENDER_SLOTS * SENDER_STRIDE)
#define SENDER_RECEIVES	32
#define SENDER_LONG_MS	20000	/* longer than any run of these tests */

/**
 * struct sender - an open sender
 * @fd: file descriptor of the session
 * @transport: KXFER_TRANSPORT_* of all its connections
 * @here: source buffer, SENDER_LENGTH bytes
 * @links: links of earlier tests, which may end meanwhile
 * @mrs: MRs of earlier tests, which may end meanwhile
 * @open: arguments and results of sender_dedicate()
 * @bench: arguments and results of sender_run()
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
 * Whether only the links from before the test are left. With two CPUs the last reference may be
 * dropped a moment after its session.
 */
bool sender_links_are_gone(const struct sender *sender, int fd);

/* Return: 0 or -errno */
int sender_open(struct sender *sender, uint32_t transport);
/* Ends the session, then the responder. Return: NULL, or what is left over */
const char *sender_close(struct sender *sender);
/* Starts another responder, and resets @open and @bench. Return: 0 or -errno */
int sender_begin(struct sender *sender, const struct responder_manners *manners);

/* ---- the calls. Return: 0 or -errno ---- */
int sender_dedicate(struct sender *sender);
int sender_run(struct sender *sender);
int sender_look(struct sender *sender, struct kxfer_dedicated_status *status);
int sender_hang_up(struct sender *sender);

/* Whether all sent messages have been received. */
bool sender_settled(struct sender *sender, struct kxfer_dedicated_status *status);
/* Whether each slot of the responder has the bytes of the same slot here. */
bool sender_landed(const struct sender *sender);
/*
 * Waits at most KX_TIMEOUT_MS until the responder has no connection. Return: whether it has
 * none.
 */
bool sender_is_alone(struct sender *sender);
/* Runs many messages, in several depths and chains. Return: NULL, or what is wrong */
const char *sender_try(struct sender *sender);

#define test_sends(sender) do {				\
	const char *wrong__ = sender_try(sender);	\
							\
	ASSERT_EQ(NULL, wrong__) {			\
		TH_LOG("%s", wrong__);			\
	}						\
} while (0)

/* The call is refused when one member is changed. */
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

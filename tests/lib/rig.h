/* SPDX-License-Identifier: MIT */
/*
 * Rig: two buffers, here and there, and what it takes to move bytes between them.
 *
 * "There" is a server: a session that listens and has exported its buffer. "Here"
 * is a client: a session with its own buffer as a region and a target on the
 * export. Both are in the test's process, so the test sees both memories.
 *
 * rig_try() moves bytes and looks at all that a transfer may touch and must not;
 * rig_move() only moves.
 */
#ifndef KXFER_TEST_RIG_H
#define KXFER_TEST_RIG_H

#include "buffer.h"
#include "kxfer_test.h"
#include "pattern.h"

#define RIG_WAIT_MS	60000	/* the longest transfer, on the slowest machine */
#define RIG_MARGIN	4096	/* neighbours of a range that are looked at */

/**
 * struct rig_options - zero is a good default for all but @length
 * @length: of both buffers
 * @here: kind of memory
 * @there: likewise
 * @export_offset: of the export in the buffer there
 * @export_length: 0: the rest of the buffer
 * @context: enum kxfer_context
 * @address: to listen on and connect to; NULL: kx_address()
 * @scope_id: of an IPv6 link-local @address
 * @local: to connect from; NULL: whichever leads there
 * @rights: 0: all
 */
struct rig_options {
	size_t length;
	enum buffer_kind here;
	enum buffer_kind there;
	size_t export_offset;
	size_t export_length;
	uint32_t context;
	const char *address;
	uint32_t scope_id;
	const char *local;
	uint32_t rights;
};

struct rig {
	struct rig_options options;
	int server;
	int client;
	uint64_t listener;
	uint64_t link;
	struct buffer here;
	struct buffer there;
	uint32_t here_region;
	uint32_t there_region;
	uint32_t here_segments;
	uint32_t there_segments;
	uint32_t export_id;
	uint32_t peer;
	uint32_t target;
	uint32_t nr_keys;
	uint64_t export_length;
	uint32_t generation;
	char name[KXFER_NAME_MAX + 1];
	char fault[512];
};

/* What the data lanes of the link here have posted since they were made, and seen. */
struct rig_posted {
	uint64_t work_requests;
	uint64_t completions;
};

int rig_open(struct rig *rig, const struct rig_options *options);
int rig_open_server(struct rig *rig, const struct rig_options *options);
int rig_open_client(struct rig *rig);
void rig_close(struct rig *rig);
struct rig_posted rig_posted(const struct rig *rig);
struct kxfer_job rig_job(const struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
			 uint64_t length);
int rig_move(const struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
	     uint64_t length);
void rig_prepare(struct rig *rig, uint32_t op);
const char *rig_try(struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
		    uint64_t length);
const char *rig_untouched(struct rig *rig, uint32_t op);

#endif /* KXFER_TEST_RIG_H */

/* SPDX-License-Identifier: MIT */
/*
 * Rig: two buffers, here and there, and the objects to move bytes between them.
 *
 * "There" is a server: a session that listens and has exported its buffer. "Here" is a client:
 * a session with its own buffer as a region and a target on the export. Both are in the test's
 * process, so the test can access both buffers.
 *
 * rig_try() moves bytes and checks the memory that a transfer must change, and that it must
 * not; rig_move() only moves.
 */
#ifndef KXFER_TEST_RIG_H
#define KXFER_TEST_RIG_H

#include "harness/buffer.h"
#include "harness/kxfer_test.h"
#include "harness/pattern.h"

struct nets;

#define RIG_WAIT_MS	60000	/* longest transfer, on the slowest machine */
#define RIG_MARGIN	4096	/* bytes on both sides of a range that are checked */

/**
 * struct rig_options - zero is a good default for every member except @length
 * @length: bytes of both buffers
 * @here: kind of memory of the buffer here
 * @there: kind of memory of the buffer there
 * @export_offset: offset of the export in the buffer there
 * @export_length: bytes of the export; 0: the rest of the buffer
 * @context: enum kxfer_context
 * @address: address to listen on and connect to; NULL: kx_address()
 * @scope_id: scope of an IPv6 link-local @address
 * @local: address to connect from; NULL: chosen by routing
 * @rights: rights of the target; 0: all
 * @loss_ms: how long jobs wait for a lost link
 * @via: address of another path to the same listener's port; NULL: there is one path
 * @silence_ms: of PEER_OPEN
 * @ack_timeout: of PEER_OPEN
 * @retry_count: of PEER_OPEN
 * @in_flight_kib: of PEER_OPEN
 * @listen_silence_ms: of LISTEN_ADD
 * @nets: the server is in the first of these network namespaces, the client in the second, and
 *	both have NETS_KEY; NULL: both are in that of the test, without a key
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
	uint32_t loss_ms;
	const char *via;
	uint32_t silence_ms;
	uint32_t ack_timeout;
	uint32_t retry_count;
	uint32_t in_flight_kib;
	uint32_t listen_silence_ms;
	const struct nets *nets;
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

/* Counts of what the data lanes of the client's link have posted and seen so far. */
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

// SPDX-License-Identifier: MIT
/*
 * Call: makes a system call from an op.
 *
 * For each call one function builds its structure from the op and the model, so that it could
 * succeed, and another function records the result in the model. Between them the op's spoil is
 * applied.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "call.h"
#include "harness/kxfer_test.h"
#include "memory.h"
#include "model.h"
#include "tally.h"

#define KERNEL_ADDRESS	0xffff888000001000ull
#define WRAP_ADDRESS	0xfffffffffffff000ull
#define ROOMS		0x400000000ull
/* No multiple is a power of two, so that no flipped bit leads to another thread's room. */
#define ROOMS_APART	0xc0000000ull

union any {
	struct kxfer_query query;
	struct kxfer_nop nop;
	struct kxfer_info info;
	struct kxfer_region_add region_add;
	struct kxfer_id id;
	struct kxfer_export_add export_add;
	struct kxfer_export_set export_set;
	struct kxfer_mailbox_add mailbox_add;
	struct kxfer_listen_add listen_add;
	struct kxfer_listen_del listen_del;
	struct kxfer_peer_open peer_open;
	struct kxfer_peer_list peer_list;
	struct kxfer_target_open target_open;
	struct kxfer_target_info target_info;
	struct kxfer_submit submit;
	struct kxfer_reap reap;
	struct kxfer_cancel cancel;
	struct kxfer_event_reap event_reap;
	struct kxfer_cq_ring cq_ring;
	struct kxfer_sq_ring sq_ring;
	unsigned long wait;
	struct kxfer_bench bench;
	struct kxfer_dedicated_open dedicated_open;
	struct kxfer_dedicated_status dedicated_status;
	uint32_t size;
	uint8_t bytes[8192];
};

/**
 * struct doing - a call that is being made
 * @number: number of the session
 * @slot: slot of the object that the call uses
 * @result: what ioctl(2) returned
 */
struct doing {
	struct actor *actor;
	const struct op *op;
	uint32_t number;
	struct model_session *session;
	uint32_t slot;
	struct random *random;
	union any any;
	unsigned long cmd;
	int result;
};

/** call_prepare() - map room for results, with nothing else near. Return: 0 or -errno */
int call_prepare(struct actor *actor, uint32_t nr)
{
	void *at = (void *)(ROOMS + nr * ROOMS_APART);

	actor->room = mmap(at, CALL_ROOM, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return actor->room == MAP_FAILED ? -errno : 0;
}

static bool one_in(struct doing *doing, uint32_t n)
{
	return random_one_in(doing->random, n);
}

static uint32_t below(struct doing *doing, uint32_t end)
{
	return end ? random_below(doing->random, end) : 0;
}

/*
 * The slot, or the next one in use. An op may lack its object because other ops failed or came
 * late; then it takes another object.
 */
static uint32_t resolve(const _Atomic uint32_t *ids, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < NR_SLOTS && !ids[(slot + i) % NR_SLOTS]; i++)
		;
	return (slot + i) % NR_SLOTS;
}

static uint32_t id_of(struct doing *doing, uint32_t id)
{
	static const uint32_t ids[] = { 0, 1, 2, 1024, 1025, 4097, 0x7fffffff, 0xffffffff };

	if (doing->op->spoil != SPOIL_ID)
		return id;
	return one_in(doing, 2) ? id + 1 + below(doing, 3) :
	       ids[below(doing, sizeof(ids) / sizeof(*ids))];
}

/*
 * Address of an array that the structure points to: @length bytes at @memory, unless it is
 * spoiled.
 */
static uint64_t inner(struct doing *doing, void *memory, size_t length, bool input)
{
	uint8_t *at;

	switch (doing->op->spoil) {
	case SPOIL_INNER_HOLE:
		return (uintptr_t)memory_block(MEMORY_HOLE);
	case SPOIL_INNER_READONLY:
		at = memory_block(MEMORY_READONLY);
		break;
	case SPOIL_INNER_RACING:
		at = memory_block(MEMORY_RACING + below(doing, MEMORY_NR_RACING));
		break;
	case SPOIL_INNER_CUT:
		at = memory_block(MEMORY_HOLE);
		at -= below(doing, length + 1);
		break;
	case SPOIL_INNER_WRAP:
		return WRAP_ADDRESS + below(doing, 4096);
	case SPOIL_INNER_KERNEL:
		return KERNEL_ADDRESS;
	default:
		return (uintptr_t)memory;
	}
	if (input)
		memory_poke(at, memory, length);
	return (uintptr_t)at;
}

static bool results_seen(const struct op *op)
{
	return op->spoil < SPOIL_ARG_HOLE || op->spoil > SPOIL_ARG_CUT;
}

/* Whether jobs may be accepted or reaped without this process seeing how many, or where. */
static bool effects_hidden(const struct op *op)
{
	return (op->kind == OP_SUBMIT && op->spoil == SPOIL_FLIP) ||
	       ((op->kind == OP_SUBMIT || op->kind == OP_REAP || op->kind == OP_CQ_RING) &&
		!results_seen(op));
}

/* ---- memory and exports ---- */

static void build_query(struct doing *doing)
{
	doing->any.query.size = sizeof(doing->any.query);
}

static void build_nop(struct doing *doing)
{
	doing->any.nop.size = sizeof(doing->any.nop);
}

static void build_info(struct doing *doing)
{
	static const uint32_t strides[] = { 8, 64, 128, 256, 344, 584, 4096, 20 };
	struct kxfer_info *cmd = &doing->any.info;

	*cmd = (struct kxfer_info) {
		.size = sizeof(*cmd),
		.kind = one_in(doing, 32) ? below(doing, 1000) : 1 + below(doing, 8),
		.stride = strides[below(doing, 8)],
		.cursor = one_in(doing, 2) ? 0 : below(doing, 64),
		.nr = one_in(doing, 32) ? below(doing, 2000) : 1 + below(doing, 40),
	};
	cmd->records = inner(doing, doing->actor->room, 4096, false);
}

/* The same length and offset, of a dma-buf instead of the arena. */
static void make_it_of_a_dmabuf(struct doing *doing, struct kxfer_region_add *cmd, uint32_t offset)
{
	cmd->flags |= KXFER_REGION_F_DMABUF;
	cmd->addr = offset;
	cmd->dmabuf_fd = one_in(doing, 16) ? (int)below(doing, 64) - 1 :
					     memory_dmabuf(below(doing, MEMORY_NR_DMABUFS));
}

static void build_region_add(struct doing *doing)
{
	struct kxfer_region_add *cmd = &doing->any.region_add;
	uint32_t block = below(doing, 12) ? below(doing, MEMORY_READONLY) :
					    MEMORY_READONLY + below(doing, 8);
	uint32_t offset = one_in(doing, 2) ? 0 : below(doing, MEMORY_BLOCK / 2);
	uint32_t most = MEMORY_BLOCK - offset;

	*cmd = (struct kxfer_region_add) {
		.size = sizeof(*cmd),
		.addr = (uintptr_t)memory_block(block) + offset,
		.length = one_in(doing, 64) ? below(doing, 4 * MEMORY_BLOCK) :
			  one_in(doing, 4) ? 1 + below(doing, most) :
					     1 + below(doing, most < 20000 ? most : 20000),
		.flags = below(doing, 8) ? KXFER_REGION_F_WRITE : 0,
	};
	if (block < MEMORY_PLAIN)
		cmd->flags = 0;
	if (one_in(doing, 5))
		make_it_of_a_dmabuf(doing, cmd, offset);
	if (one_in(doing, 64))
		cmd->addr = WRAP_ADDRESS + below(doing, 4096);
}

static void done_region_add(struct doing *doing)
{
	const struct kxfer_region_add *cmd = &doing->any.region_add;

	if (cmd->flags & KXFER_REGION_F_WRITE && !(cmd->flags & KXFER_REGION_F_DMABUF) &&
	    cmd->addr < (uintptr_t)memory_block(MEMORY_PLAIN))
		model->kept_given = true;
	if (!results_seen(doing->op))
		return;
	doing->session->regions[doing->slot] = cmd->region;
	doing->session->region_bytes[doing->slot] = cmd->length;
	doing->session->region_writable[doing->slot] = cmd->flags & KXFER_REGION_F_WRITE;
}

static void build_id(struct doing *doing, const _Atomic uint32_t *ids)
{
	doing->slot = resolve(ids, doing->slot);
	doing->any.id = (struct kxfer_id) {
		.size = sizeof(doing->any.id),
		.id = id_of(doing, ids[doing->slot]),
	};
}

static void build_region_del(struct doing *doing)
{
	build_id(doing, doing->session->regions);
}

static void done_region_del(struct doing *doing)
{
	doing->session->regions[doing->slot] = 0;
}

/* Name of an export; @number: session * NR_SLOTS + slot. */
static void export_name(uint8_t *name, uint32_t number)
{
	snprintf((char *)name, KXFER_NAME_MAX + 1, "fuzz-%u", number);
}

static void build_rules(struct doing *doing)
{
	struct kxfer_export_add *cmd = &doing->any.export_add;
	struct kxfer_rule *rules = (void *)doing->actor->jobs;
	uint32_t i;

	cmd->nr_rules = one_in(doing, 16) ? below(doing, 40) : 1 + below(doing, 3);
	for (i = 0; i < cmd->nr_rules; i++) {
		rules[i] = (struct kxfer_rule) {
			.match = below(doing, one_in(doing, 32) ? 64 : 8),
			.rights = below(doing, 8),
			.uid = below(doing, 2) * 1000,
			.gid = below(doing, 2) * 1000,
		};
		if (rules[i].match & KXFER_RULE_ADDR) {
			rules[i].addr = kx_addr(kx_address(), 0);
			rules[i].prefix_len = below(doing, 34);
		}
	}
	/* The last rule admits every peer, in most cases. */
	if (cmd->nr_rules && !one_in(doing, 4))
		rules[cmd->nr_rules - 1] = (struct kxfer_rule) { .rights = cmd->rights };
	cmd->rules = inner(doing, rules, cmd->nr_rules * sizeof(*rules), true);
	cmd->rule_stride = one_in(doing, 32) ? 8 * below(doing, 40) : sizeof(*rules);
}

static void build_export_add(struct doing *doing)
{
	struct kxfer_export_add *cmd = &doing->any.export_add;
	uint32_t region = resolve(doing->session->regions, doing->op->args[0] % NR_SLOTS);
	uint32_t bytes = doing->session->region_bytes[region];
	uint32_t offset = one_in(doing, 2) ? 0 : below(doing, bytes);

	*cmd = (struct kxfer_export_add) {
		.size = sizeof(*cmd),
		.region = id_of(doing, doing->session->regions[region]),
		.rights = one_in(doing, 4) ? 1 + below(doing, 7) : KXFER_RIGHT_ALL,
		.offset = offset,
		.length = one_in(doing, 2) ? bytes - offset : 1 + below(doing, bytes - offset),
	};
	if (!doing->session->region_writable[region] && !one_in(doing, 16))
		cmd->rights = KXFER_RIGHT_READ;
	if (one_in(doing, 32))
		cmd->length += below(doing, 10000);
	export_name(cmd->name, doing->number * NR_SLOTS + doing->slot);
	if (one_in(doing, 128))
		memory_fill(doing->random, cmd->name, 1 + below(doing, sizeof(cmd->name)));
	if (one_in(doing, 8))
		build_rules(doing);
}

static void done_export_add(struct doing *doing)
{
	if (!results_seen(doing->op))
		return;
	doing->session->exports[doing->slot] = doing->any.export_add.export_id;
	doing->session->mailboxes[doing->slot] = 0;
	doing->session->export_bytes[doing->slot] = doing->any.export_add.length;
}

static void build_export_del(struct doing *doing)
{
	build_id(doing, doing->session->exports);
}

static void done_export_del(struct doing *doing)
{
	doing->session->exports[doing->slot] = 0;
	doing->session->mailboxes[doing->slot] = 0;
}

static void build_export_set(struct doing *doing)
{
	struct kxfer_export_set *cmd = &doing->any.export_set;

	doing->slot = resolve(doing->session->exports, doing->slot);
	*cmd = (struct kxfer_export_set) {
		.size = sizeof(*cmd),
		.export_id = id_of(doing, doing->session->exports[doing->slot]),
		.content.length = below(doing, doing->session->export_bytes[doing->slot]),
	};
	if (one_in(doing, 16))
		cmd->content.length = random_next(doing->random);
	memory_fill(doing->random, cmd->content.sha256, KXFER_SHA256_SIZE);
}

/* Payload of a message: mostly one that is copied, else one that is READ. */
static uint32_t draw_message(struct doing *doing)
{
	if (one_in(doing, 64))
		return random_next(doing->random);
	if (one_in(doing, 3))
		return below(doing, one_in(doing, 16) ? KXFER_MESSAGE_LONG_MAX + 2 : 20000);
	return below(doing, one_in(doing, 2) ? KXFER_MESSAGE_MAX + 2 : 101);
}

static void build_mailbox_add(struct doing *doing)
{
	struct kxfer_mailbox_add *cmd = &doing->any.mailbox_add;

	*cmd = (struct kxfer_mailbox_add) {
		.size = sizeof(*cmd),
		.capacity = one_in(doing, 16) ? below(doing, KXFER_MAILBOX_MAX + 2) :
						1 + below(doing, 8),
		.max_bytes = draw_message(doing),
		.message_size = one_in(doing, 8) ? 8 * below(doing, 40) : 0,
	};
	export_name(cmd->name, doing->number * NR_SLOTS + doing->slot);
}

static void done_mailbox_add(struct doing *doing)
{
	if (!results_seen(doing->op))
		return;
	doing->session->exports[doing->slot] = doing->any.mailbox_add.export_id;
	doing->session->mailboxes[doing->slot] = doing->any.mailbox_add.export_id;
	doing->session->export_bytes[doing->slot] = doing->any.mailbox_add.max_bytes;
}

/* ---- listeners, peers, targets ---- */

static struct kxfer_addr draw_address(struct doing *doing, uint16_t port)
{
	struct kxfer_addr addr = kx_addr(one_in(doing, 8) ? kx_address6() : kx_address(), port);

	if (one_in(doing, 32)) {
		addr = kx_addr("10.77.0.99", port);	/* no host has this address */
	} else if (one_in(doing, 32)) {
		memset(&addr, 0, sizeof(addr));
		addr.family = below(doing, 12);
		memory_fill(doing->random, addr.addr, 1 + below(doing, 16));
	}
	return addr;
}

static void build_listen_add(struct doing *doing)
{
	struct kxfer_listen_add *cmd = &doing->any.listen_add;

	*cmd = (struct kxfer_listen_add) {
		.size = sizeof(*cmd),
		.flags = below(doing, 4) ? 0 : below(doing, 4),
		.addr = draw_address(doing, KXFER_PORT + 1 + doing->slot),
		.silence_ms = one_in(doing, 4) ? below(doing, 2 * KXFER_SILENCE_MAX_MS) : 0,
		.ack_timeout = one_in(doing, 4) ? below(doing, 2 * KXFER_ACK_TIMEOUT_MAX) : 0,
	};
}

static void done_listen_add(struct doing *doing)
{
	if (results_seen(doing->op))
		model->listeners[doing->slot] = doing->any.listen_add.listener;
}

static void build_listen_del(struct doing *doing)
{
	struct kxfer_listen_del *cmd = &doing->any.listen_del;

	*cmd = (struct kxfer_listen_del) {
		.size = sizeof(*cmd),
		.listener = model->listeners[doing->slot],
	};
	/* Do not guess the id of the listener that all sessions need. */
	if (doing->op->spoil == SPOIL_ID)
		cmd->listener = random_next(doing->random) | 1ull << 32;
}

static void draw_paths(struct doing *doing, struct kxfer_peer_open *cmd)
{
	struct kxfer_path paths[3] = {};
	uint32_t i;

	for (i = 0; i < 3; i++)
		paths[i].remote = draw_address(doing, 0);
	memcpy(doing->actor->jobs, paths, sizeof(paths));
	cmd->loss_ms = one_in(doing, 8) ? 0 : 1 + below(doing, 2000);
	cmd->nr_via = one_in(doing, 16) ? below(doing, 20) : 1 + below(doing, 3);
	cmd->via = inner(doing, doing->actor->jobs, sizeof(paths), true);
	cmd->timeout_ms = cmd->timeout_ms % 500 + 1;
}

static void build_peer_open(struct doing *doing)
{
	struct kxfer_peer_open *cmd = &doing->any.peer_open;
	uint16_t port = one_in(doing, 16) ? KXFER_PORT + 1 + below(doing, NR_SLOTS) : 0;

	*cmd = (struct kxfer_peer_open) {
		.size = sizeof(*cmd),
		.remote = draw_address(doing, port),
		.context = one_in(doing, 4) ? below(doing, 4) : 0,
		.timeout_ms = one_in(doing, 16) ? below(doing, 20) : 3000,
	};
	if (one_in(doing, 16)) {
		cmd->flags = KXFER_PEER_F_TOS;
		cmd->tos = 8;
	}
	if (one_in(doing, 16)) {
		cmd->silence_ms = below(doing, 2 * KXFER_SILENCE_MAX_MS);
		cmd->ack_timeout = below(doing, 2 * KXFER_ACK_TIMEOUT_MAX);
		cmd->retry_count = below(doing, 2 * KXFER_RETRY_COUNT_MAX);
	}
	if (one_in(doing, 16))
		cmd->in_flight_kib = below(doing, 2 * KXFER_IN_FLIGHT_MAX_KIB);
	if (one_in(doing, 8))
		cmd->local = kx_addr(kx_address(), 0);
	if (one_in(doing, 8))
		snprintf((char *)cmd->device, sizeof(cmd->device), "%s",
			 one_in(doing, 8) ? "nothing0" : kx_device());
	if (one_in(doing, 64))
		cmd->context = random_next(doing->random);
	if (one_in(doing, 8))
		draw_paths(doing, cmd);
	/* Limit the wait for an address that never answers. */
	if (cmd->remote.family != AF_INET || cmd->remote.addr[3] == 99)
		cmd->timeout_ms = cmd->timeout_ms % 500 + 1;
}

static void done_peer_open(struct doing *doing)
{
	if (results_seen(doing->op))
		doing->session->peers[doing->slot] = doing->any.peer_open.peer;
}

static void build_peer_close(struct doing *doing)
{
	build_id(doing, doing->session->peers);
}

static void done_peer_close(struct doing *doing)
{
	doing->session->peers[doing->slot] = 0;
}

static void build_peer_list(struct doing *doing)
{
	struct kxfer_peer_list *cmd = &doing->any.peer_list;

	doing->slot = resolve(doing->session->peers, doing->slot);
	*cmd = (struct kxfer_peer_list) {
		.size = sizeof(*cmd),
		.peer = id_of(doing, doing->session->peers[doing->slot]),
		.timeout_ms = one_in(doing, 32) ? below(doing, 3) : 2000,
		.cursor = one_in(doing, 2) ? 0 : below(doing, 100),
		.nr = one_in(doing, 32) ? below(doing, 2000) : 1 + below(doing, 20),
	};
	cmd->exports = inner(doing, doing->actor->room, 4096, false);
}

/* The export that args[1] names, or the next existing one: session * NR_SLOTS + slot. */
static uint32_t find_export(uint32_t from)
{
	uint32_t i;

	for (i = 0; i < NR_SESSIONS * NR_SLOTS; i++) {
		uint32_t at = (from + i) % (NR_SESSIONS * NR_SLOTS);

		if (model->sessions[at / NR_SLOTS].exports[at % NR_SLOTS])
			return at;
	}
	return from;
}

static void build_target_open(struct doing *doing)
{
	struct kxfer_target_open *cmd = &doing->any.target_open;
	uint32_t from = doing->op->args[1] % (NR_SESSIONS * NR_SLOTS + 1);
	uint32_t peer = resolve(doing->session->peers, doing->op->args[0] % NR_SLOTS);

	*cmd = (struct kxfer_target_open) {
		.size = sizeof(*cmd),
		.peer = id_of(doing, doing->session->peers[peer]),
		.rights = one_in(doing, 8) ? below(doing, 4) : 0,
		.timeout_ms = one_in(doing, 32) ? below(doing, 3) : 3000,
		.word = one_in(doing, 8) ? random_next(doing->random) : 0,
	};
	if (from == NR_SESSIONS * NR_SLOTS)
		strcpy((char *)cmd->name, KXFER_PING_NAME);
	else
		export_name(cmd->name, find_export(from));
}

static void done_target_open(struct doing *doing)
{
	if (!results_seen(doing->op))
		return;
	doing->session->targets[doing->slot] = doing->any.target_open.target;
	doing->session->target_bytes[doing->slot] = doing->any.target_open.length;
	doing->session->target_rights[doing->slot] = doing->any.target_open.granted;
}

static void build_target_close(struct doing *doing)
{
	build_id(doing, doing->session->targets);
}

static void done_target_close(struct doing *doing)
{
	doing->session->targets[doing->slot] = 0;
}

static void build_target_info(struct doing *doing)
{
	struct kxfer_target_info *cmd = &doing->any.target_info;

	doing->slot = resolve(doing->session->targets, doing->slot);
	*cmd = (struct kxfer_target_info) {
		.size = sizeof(*cmd),
		.target = id_of(doing, doing->session->targets[doing->slot]),
		.timeout_ms = 2000,
	};
	if (one_in(doing, 4)) {
		cmd->min_generation = below(doing, 4);
		cmd->timeout_ms = 1 + below(doing, 5);
	}
}

/* ---- jobs ---- */

static uint64_t draw_deadline(struct doing *doing, uint32_t ms)
{
	return one_in(doing, 16) ? 1 : kx_now_ns() + below(doing, ms * 1000000);
}

static uint64_t draw_offset(struct doing *doing, uint32_t bytes, uint64_t length)
{
	if (one_in(doing, 128))
		return random_next(doing->random);
	return length < bytes && !one_in(doing, 3) ? below(doing, bytes - length + 1) : 0;
}

static uint32_t draw_order(struct doing *doing)
{
	if (!one_in(doing, 4))
		return 0;
	return one_in(doing, 2) ? KXFER_JOB_F_ORDERED : KXFER_JOB_F_FENCE;
}

static void draw_transfer(struct doing *doing, struct kxfer_job *job, uint32_t region)
{
	uint32_t local = doing->session->region_bytes[region];
	uint32_t remote = doing->session->target_bytes[doing->slot];
	uint32_t most = local < remote ? local : remote;

	if (!doing->session->region_writable[region] && !one_in(doing, 8) &&
	    doing->session->target_rights[doing->slot] & KXFER_RIGHT_WRITE)
		job->op = KXFER_OP_WRITE;
	job->region = id_of(doing, doing->session->regions[region]);
	if (!one_in(doing, 8) && most > 4096)
		most = 4096;
	if (!one_in(doing, 2) && most > 200)
		most = 200;
	job->length = one_in(doing, 128) ? random_next(doing->random) : 1 + below(doing, most);
	job->region_offset = draw_offset(doing, local, job->length);
	job->target_offset = draw_offset(doing, remote, job->length);
	if (job->op == KXFER_OP_WRITE && one_in(doing, 4))
		job->flags = KXFER_JOB_F_LOCAL_ONLY;
	if (job->op == KXFER_OP_WRITE && one_in(doing, 6)) {
		job->flags |= KXFER_JOB_F_NOTIFY;
		job->cookie = random_next(doing->random);
	}
	if (one_in(doing, 3))
		job->flags |= KXFER_JOB_F_BATCH;
	job->flags |= draw_order(doing);
}

/* Most are valid if the export begins with a word. */
static void draw_atomic(struct doing *doing, struct kxfer_job *job, uint32_t region)
{
	draw_transfer(doing, job, region);
	if (job->op == KXFER_OP_WRITE)
		return;
	if (!one_in(doing, 16))
		job->length = 8;
	if (!one_in(doing, 8)) {
		job->region_offset &= ~7ULL;
		job->target_offset &= ~7ULL;
	}
	job->compare_add = one_in(doing, 2) ? 0 : random_next(doing->random);
	if (job->op == KXFER_OP_COMPARE_SWAP || one_in(doing, 64))
		job->swap = random_next(doing->random);
}

/* A long message has a deadline, because it may have no receiver. */
static void draw_send(struct doing *doing, struct kxfer_job *job, uint32_t region)
{
	uint32_t local = doing->session->region_bytes[region];
	uint32_t most = doing->session->target_bytes[doing->slot];

	job->length = below(doing, most + (one_in(doing, 16) ? 3 : 1));
	/* Lengths around the limit of copied messages, also with the header counted. */
	if (one_in(doing, 32))
		job->length = one_in(doing, 2) ? KXFER_MESSAGE_MAX + below(doing, 80) :
						 draw_message(doing);
	if (job->length > KXFER_MESSAGE_MAX)
		job->deadline_ns = 1 + draw_deadline(doing, 100);
	if (job->length || one_in(doing, 32)) {
		job->region = id_of(doing, doing->session->regions[region]);
		job->region_offset = draw_offset(doing, local, job->length);
	}
	if (one_in(doing, 2)) {
		job->flags = KXFER_JOB_F_IMM;
		job->cookie = (uint32_t)random_next(doing->random);
	}
	job->flags |= draw_order(doing);
}

/* A RECV has a deadline, because it may have no sender. */
static void draw_recv(struct doing *doing, struct kxfer_job *job, uint32_t region)
{
	const _Atomic uint32_t *ids = one_in(doing, 16) ? doing->session->exports :
							  doing->session->mailboxes;
	uint32_t slot = resolve(ids, below(doing, NR_SLOTS));

	job->target = id_of(doing, ids[slot]);
	job->region = id_of(doing, doing->session->regions[region]);
	job->length = sizeof(struct kxfer_message) +
		      (one_in(doing, 8) ? draw_message(doing) :
					  doing->session->export_bytes[slot]);
	if (one_in(doing, 32))
		job->length = below(doing, sizeof(struct kxfer_message) + 1);
	job->region_offset = draw_offset(doing, doing->session->region_bytes[region],
					 job->length);
	job->deadline_ns = 1 + draw_deadline(doing, 50);
}

/* The right that an operation needs; a NOP or a RECV needs none, so any right will do. */
static uint32_t right_of(uint32_t op)
{
	switch (op) {
	case KXFER_OP_READ:
		return KXFER_RIGHT_READ;
	case KXFER_OP_WRITE:
	case KXFER_OP_NOTIFY:
		return KXFER_RIGHT_WRITE;
	case KXFER_OP_COMPARE_SWAP:
	case KXFER_OP_FETCH_ADD:
		return KXFER_RIGHT_ATOMIC;
	case KXFER_OP_SEND:
		return KXFER_RIGHT_SEND;
	default:
		return UINT32_MAX;
	}
}

static void draw_job(struct doing *doing, struct kxfer_job *job, uint32_t region)
{
	static const uint8_t ops[] = {
		KXFER_OP_READ, KXFER_OP_READ, KXFER_OP_READ, KXFER_OP_READ, KXFER_OP_READ,
		KXFER_OP_WRITE, KXFER_OP_WRITE, KXFER_OP_NOTIFY, KXFER_OP_COMPARE_SWAP,
		KXFER_OP_FETCH_ADD, KXFER_OP_SEND, KXFER_OP_SEND, KXFER_OP_RECV, KXFER_OP_NOP,
	};
	/* Jobs that are not posted have to be seen, so that posted jobs can be counted. */
	bool unseen = doing->actor->child || !results_seen(doing->op);
	uint32_t nr_ops = sizeof(ops) - (unseen ? 2 : 0);

	*job = (struct kxfer_job) {
		.op = one_in(doing, 256) ? below(doing, 9) :
					   ops[below(doing, nr_ops)],
		.user_data = below(doing, 64),
	};
	if (one_in(doing, 32))
		job->deadline_ns = draw_deadline(doing, 3);
	/* Sometimes asks for a right that is missing. */
	if (!(doing->session->target_rights[doing->slot] & right_of(job->op)) &&
	    !one_in(doing, 32))
		job->op = doing->session->target_rights[doing->slot] & KXFER_RIGHT_SEND ?
			  KXFER_OP_SEND : KXFER_OP_READ;
	if (job->op != KXFER_OP_NOP)
		job->target = id_of(doing, doing->session->targets[doing->slot]);
	if (job->op == KXFER_OP_READ || job->op == KXFER_OP_WRITE)
		draw_transfer(doing, job, region);
	if (job->op == KXFER_OP_COMPARE_SWAP || job->op == KXFER_OP_FETCH_ADD)
		draw_atomic(doing, job, region);
	if (job->op == KXFER_OP_NOTIFY) {
		job->cookie = random_next(doing->random);
		job->flags = draw_order(doing);
	}
	if (job->op == KXFER_OP_SEND)
		draw_send(doing, job, region);
	if (job->op == KXFER_OP_RECV)
		draw_recv(doing, job, region);
}

static uint32_t draw_wait_flags(struct doing *doing)
{
	if (!one_in(doing, 4))
		return 0;
	return one_in(doing, 2) ? KXFER_WAIT_F_POLL : KXFER_WAIT_F_SLEEP;
}

static void build_submit(struct doing *doing)
{
	struct kxfer_submit *cmd = &doing->any.submit;
	uint8_t *jobs = doing->actor->jobs;
	uint32_t region = resolve(doing->session->regions, doing->op->args[0] % NR_SLOTS), i;
	struct kxfer_job job;

	doing->slot = resolve(doing->session->targets, doing->slot);
	*cmd = (struct kxfer_submit) {
		.size = sizeof(*cmd),
		.nr_jobs = one_in(doing, 8) ? below(doing, CALL_JOBS + 1) : 1 + below(doing, 16),
		.stride = one_in(doing, 4) ? KXFER_JOB_SIZE_MIN + 8 * below(doing, 25) :
					     sizeof(job),
	};
	memset(jobs, 0, cmd->nr_jobs * cmd->stride);
	for (i = 0; i < cmd->nr_jobs; i++) {
		draw_job(doing, &job, region);
		memcpy(jobs + i * cmd->stride, &job,
		       cmd->stride < sizeof(job) ? cmd->stride : sizeof(job));
	}
	cmd->jobs = inner(doing, jobs, cmd->nr_jobs * cmd->stride, true);
	if (one_in(doing, 3))
		return;
	if (doing->session->ring && !one_in(doing, 8)) {
		cmd->flags = draw_wait_flags(doing);
		cmd->wait = below(doing, 16);
		cmd->deadline_ns = draw_deadline(doing, 4);
		return;
	}
	cmd->nr_completions = 1 + below(doing, 300);
	cmd->completions = one_in(doing, 2) ? (uintptr_t)doing->actor->room :
			   inner(doing, doing->actor->room, 4096, false);
	cmd->flags = draw_wait_flags(doing);
	cmd->wait = below(doing, cmd->nr_completions + 1);
	if (!one_in(doing, 4))
		cmd->deadline_ns = draw_deadline(doing, 4);
}

/* NOPs and RECVs, which are not posted. */
static uint32_t count_nops(const struct kxfer_submit *cmd, const uint8_t *jobs)
{
	uint32_t nops = 0, i;

	for (i = 0; i < cmd->accepted; i++) {
		uint32_t op = ((const struct kxfer_job *)(jobs + i * cmd->stride))->op;

		nops += op == KXFER_OP_NOP || op == KXFER_OP_RECV;
	}
	return nops;
}

/* Checks the statuses of completions, unless another thread may write there. */
static void look_at_completions(struct doing *doing, uint64_t where, uint32_t nr)
{
	static const int known[] = {
		0, ETIMEDOUT, ECANCELED, ECONNRESET, EKEYREVOKED, EREMOTEIO, EAGAIN, ENODEV,
		EMSGSIZE,
	};
	const struct kxfer_completion *done = (void *)doing->actor->room;
	uint32_t i;
	size_t j;

	for (i = 0; where == (uintptr_t)done && i < nr; i++) {
		for (j = 0; j < sizeof(known) / sizeof(*known); j++)
			if (done[i].status == -known[j])
				break;
		if (j == sizeof(known) / sizeof(*known) || done[i].op > KXFER_OP_RECV ||
		    (done[i].status && done[i].bytes) ||
		    done[i].completed_ns < done[i].submitted_ns)
			model_find("a completion of op %u has status %d, %llu bytes", done[i].op,
				   done[i].status, (unsigned long long)done[i].bytes);
		if (done[i].op == KXFER_OP_SEND && done[i].bytes > KXFER_MESSAGE_MAX)
			tally->long_messages++;
	}
}

static void done_submit(struct doing *doing)
{
	const struct kxfer_submit *cmd = &doing->any.submit;
	bool all;

	if (doing->op->spoil == SPOIL_FLIP)
		tally->nops_accepted += cmd->accepted;
	if (effects_hidden(doing->op))
		return;
	all = cmd->accepted == cmd->nr_jobs;
	if (cmd->accepted > cmd->nr_jobs || cmd->reaped > cmd->nr_completions ||
	    all == !!cmd->error)
		model_find("SUBMIT of %u says %u accepted, %u reaped, error %u", cmd->nr_jobs,
			   cmd->accepted, cmd->reaped, cmd->error);
	doing->session->accepted += cmd->accepted;
	doing->session->reaped += cmd->reaped;
	if (doing->op->spoil < SPOIL_INNER_HOLE)
		tally->nops_accepted += count_nops(cmd, doing->actor->jobs);
	else
		tally->nops_accepted += cmd->accepted;
	look_at_completions(doing, cmd->completions, cmd->reaped);
}

static void build_reap(struct doing *doing)
{
	struct kxfer_reap *cmd = &doing->any.reap;

	*cmd = (struct kxfer_reap) {
		.size = sizeof(*cmd),
		.nr = one_in(doing, 64) ? below(doing, 5000) : 1 + below(doing, 100),
	};
	cmd->completions = inner(doing, doing->actor->room, 4096, false);
	if (doing->session->ring && !one_in(doing, 8)) {
		cmd->completions = 0;
		cmd->nr = 0;
		cmd->wait = below(doing, 16);
		cmd->deadline_ns = draw_deadline(doing, 4);
		return;
	}
	if (one_in(doing, 2))
		return;
	cmd->flags = draw_wait_flags(doing);
	cmd->wait = below(doing, cmd->nr + 1);
	if (!one_in(doing, 4))
		cmd->deadline_ns = draw_deadline(doing, 4);
}

static void done_reap(struct doing *doing)
{
	const struct kxfer_reap *cmd = &doing->any.reap;

	if (!results_seen(doing->op))
		return;
	doing->session->reaped += cmd->reaped;
	look_at_completions(doing, cmd->completions, cmd->reaped);
}

static void build_cancel(struct doing *doing)
{
	doing->any.cancel = (struct kxfer_cancel) {
		.size = sizeof(doing->any.cancel),
		.flags = one_in(doing, 2) ? KXFER_CANCEL_F_ALL : 0,
		.user_data = one_in(doing, 2) ? 0 : below(doing, 64),
	};
}

static void build_event_reap(struct doing *doing)
{
	struct kxfer_event_reap *cmd = &doing->any.event_reap;

	*cmd = (struct kxfer_event_reap) {
		.size = sizeof(*cmd),
		.nr = one_in(doing, 32) ? below(doing, 2000) : 1 + below(doing, 50),
		.wait = one_in(doing, 4),
		.deadline_ns = draw_deadline(doing, 3),
	};
	cmd->events = inner(doing, doing->actor->room, 4096, false);
}

static void build_cq_ring(struct doing *doing)
{
	doing->any.cq_ring = (struct kxfer_cq_ring) {
		.size = sizeof(doing->any.cq_ring),
		.entries = one_in(doing, 16) ? below(doing, 10000) : 1u << below(doing, 13),
	};
	if (one_in(doing, 4)) {
		doing->any.cq_ring.flags = KXFER_CQ_RING_F_EVENTFD;
		doing->any.cq_ring.eventfd = one_in(doing, 8) ? (int)below(doing, 1000) :
					     model->eventfd;
	}
}

static void done_cq_ring(struct doing *doing)
{
	const struct kxfer_cq_ring *cmd = &doing->any.cq_ring;

	if (results_seen(doing->op))
		model_map_ring(doing->number, cmd->offset, cmd->bytes);
}

static void build_sq_ring(struct doing *doing)
{
	doing->any.sq_ring = (struct kxfer_sq_ring) {
		.size = sizeof(doing->any.sq_ring),
		.entries = one_in(doing, 16) ? below(doing, 1000) : 1u << below(doing, 9),
	};
}

static void done_sq_ring(struct doing *doing)
{
	const struct kxfer_sq_ring *cmd = &doing->any.sq_ring;

	if (results_seen(doing->op))
		model_map_sq(doing->number, cmd->offset, cmd->bytes);
}

static void build_enter(struct doing *doing)
{
	uint32_t region = resolve(doing->session->regions, doing->op->args[0] % NR_SLOTS);
	uint32_t nr = below(doing, 8), i;
	struct kxfer_job jobs[8];

	doing->slot = resolve(doing->session->targets, doing->slot);
	doing->any.wait = one_in(doing, 16) ? random_next(doing->random) : below(doing, 8);
	/* A child has no mapping, and may not tell what was accepted. */
	if (doing->actor->child) {
		doing->session->inexact = true;
		return;
	}
	for (i = 0; i < nr; i++)
		draw_job(doing, &jobs[i], region);
	model_write_sq(doing->number, random_next(doing->random), jobs, nr);
}

static void done_enter(struct doing *doing)
{
	doing->session->accepted += doing->result;
	/* Another thread may have written the jobs. */
	tally->nops_accepted += doing->result;
}

/* Parameters of most connections to the responder. */
#define DEDICATED_BYTES		64
#define DEDICATED_SLOTS		4
#define DEDICATED_RECEIVES	8
#define DEDICATED_LENGTH	(1u << 16)

/* A run for which such a connection may have been opened. */
static void dedicate(struct doing *doing, struct kxfer_bench *cmd, uint32_t dedicated)
{
	bool sends = below(doing, 4);

	*cmd = (struct kxfer_bench) {
		.size = sizeof(*cmd),
		.op = sends ? KXFER_OP_SEND : one_in(doing, 2) ? KXFER_OP_READ : KXFER_OP_WRITE,
		.region = cmd->region,
		.dedicated = id_of(doing, dedicated),
		.depth = 1 + below(doing, DEDICATED_SLOTS),
		.list = 1,
		.signal = 1,
		.length = DEDICATED_BYTES,
		.stride = DEDICATED_BYTES,
		.warm_up = below(doing, 4),
		.count = 1 + below(doing, 64),
		.time_limit_ms = 1 + below(doing, 4),
		.memory = one_in(doing, 2) ? 0 : below(doing, sends ? 3 : 4),
		.interval_ps = one_in(doing, 4) ? 1000ULL << below(doing, 20) : 0,
	};
	if (cmd->memory == KXFER_BENCH_MEMORY_MR_EACH)
		cmd->invalidate = below(doing, 3);
}

/* Short runs: a flipped bit makes a run long, that is, a few ms or operations. */
static void build_bench(struct doing *doing)
{
	uint32_t region = resolve(doing->session->regions, doing->op->args[0] % NR_SLOTS), at;
	struct kxfer_bench *cmd = &doing->any.bench;
	struct kxfer_job job = { .op = one_in(doing, 2) ? KXFER_OP_READ : KXFER_OP_WRITE };

	doing->slot = resolve(doing->session->targets, doing->slot);
	draw_transfer(doing, &job, region);
	*cmd = (struct kxfer_bench) {
		.size = sizeof(*cmd),
		.op = job.op,
		.region = job.region,
		.target = id_of(doing, doing->session->targets[doing->slot]),
		.depth = one_in(doing, 2) ? 1 : 1 + below(doing, 32),
		.list = 1,
		.signal = 1,
		.region_offset = job.region_offset,
		.target_offset = job.target_offset,
		.length = job.length,
		.warm_up = below(doing, 4),
		.count = 1 + below(doing, 64),
		.time_limit_ms = 1 + below(doing, 4),
		.memory = one_in(doing, 2) ? 0 : below(doing, 4),
	};
	if (cmd->memory == KXFER_BENCH_MEMORY_MR_EACH)
		cmd->invalidate = below(doing, 3);
	if (cmd->memory == KXFER_BENCH_MEMORY_MR_EACH && one_in(doing, 4)) {
		cmd->op = KXFER_OP_NOP;
		cmd->target_offset = 0;
	}
	if (one_in(doing, 4)) {
		cmd->nr_buckets = KXFER_BENCH_NR_BUCKETS;
		cmd->histogram = inner(doing, doing->actor->room,
				       KXFER_BENCH_NR_BUCKETS * sizeof(uint32_t), false);
	}
	if (one_in(doing, 8)) {
		cmd->op = one_in(doing, 2) ? KXFER_OP_FETCH_ADD : KXFER_OP_COMPARE_SWAP;
		cmd->length = one_in(doing, 16) ? cmd->length : 8;
		cmd->region_offset &= ~7ULL;
		cmd->target_offset &= ~7ULL;
		if (cmd->op == KXFER_OP_COMPARE_SWAP)
			cmd->words = inner(doing, doing->actor->room, 256 * 8, false);
	}
	if (one_in(doing, 16)) {
		cmd->op = one_in(doing, 2) ? KXFER_OP_SEND : cmd->op;
		cmd->flags = one_in(doing, 2) ? KXFER_BENCH_F_IMM : 0;
		cmd->dedicated = below(doing, 3);
		cmd->target = one_in(doing, 2) ? 0 : cmd->target;
	}
	if (cmd->op == KXFER_OP_WRITE && one_in(doing, 4))
		cmd->flags |= KXFER_BENCH_F_NO_INLINE;
	if (cmd->op == KXFER_OP_WRITE && cmd->depth == 1 && one_in(doing, 4)) {
		cmd->flags |= one_in(doing, 2) ? KXFER_BENCH_F_PING : KXFER_BENCH_F_PONG;
		cmd->echo_offset = below(doing, 4096);
		cmd->echo = one_in(doing, 2) ? 0 : below(doing, 256);
		cmd->memory &= one_in(doing, 8) ? 3 : 1;
	} else if (one_in(doing, 4)) {
		cmd->interval_ps = 1000ULL << below(doing, 30);
		cmd->late_ns = one_in(doing, 2) ? 0 : (int64_t)below(doing, 2000000) - 1000000;
		if (cmd->nr_buckets && one_in(doing, 2))
			cmd->posted_histogram = cmd->histogram;
	}
	if (cmd->depth > 1) {
		cmd->stride = cmd->length == 8 ? 8 + 8 * below(doing, 32) :
						 1 + below(doing, 256);
		cmd->list = 1 + below(doing, cmd->depth);
		cmd->signal = 1 + below(doing, cmd->depth + 1 - cmd->list);
		if (cmd->memory == KXFER_BENCH_MEMORY_RW && !one_in(doing, 8)) {
			cmd->stride = 64 * (1 + below(doing, 64));
			cmd->length = 1 + below(doing, cmd->stride);
			cmd->signal = 1;
		}
		if (cmd->interval_ps && !one_in(doing, 8))
			cmd->signal = 1;
	} else if (one_in(doing, 2)) {
		cmd->nr_samples = 1 + below(doing, 1024);
		cmd->samples = inner(doing, doing->actor->room, 4096, false);
	}
	at = resolve(doing->session->dedicated, doing->slot);
	if (doing->session->dedicated[at] && one_in(doing, 2))
		dedicate(doing, cmd, doing->session->dedicated[at]);
}

static void done_bench(struct doing *doing)
{
	tally->dedicated += doing->any.bench.dedicated && doing->any.bench.operations;
}

/* To the responder, which serves one connection at a time. */
static void open_to_responder(struct doing *doing, struct kxfer_dedicated_open *cmd)
{
	static const uint32_t flags[] = {
		KXFER_DEDICATED_F_WRITE, KXFER_DEDICATED_F_WRITE | KXFER_DEDICATED_F_ANSWERED,
		KXFER_DEDICATED_F_CQ_POOL, 0,
	};

	cmd->remote = kx_addr(kx_address(), model->responder);
	cmd->local = (struct kxfer_addr) {};
	cmd->timeout_ms = 1000;
	cmd->flags = flags[below(doing, 4)];
	cmd->transport = one_in(doing, 8) ? KXFER_TRANSPORT_UD : KXFER_TRANSPORT_RC;
	cmd->length = DEDICATED_LENGTH;
	cmd->op = KXFER_OP_SEND;
	cmd->receives = DEDICATED_RECEIVES;
	cmd->slots = DEDICATED_SLOTS;
	cmd->bytes = DEDICATED_BYTES;
	cmd->qkey = 0;
}

/* To the responder, to an existing listener, or to an address without one. */
static void build_dedicated_open(struct doing *doing)
{
	static const uint32_t ops[] = { KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_SEND,
					KXFER_OP_FETCH_ADD, KXFER_OP_NOTIFY };
	struct kxfer_dedicated_open *cmd = &doing->any.dedicated_open;

	*cmd = (struct kxfer_dedicated_open) {
		.size = sizeof(*cmd),
		.flags = below(doing, 2 * KXFER_DEDICATED_F_CQ_POOL),
		.remote = draw_address(doing, KXFER_PORT + below(doing, NR_SLOTS)),
		.context = below(doing, 4),
		.transport = below(doing, 3),
		.timeout_ms = one_in(doing, 4) ? below(doing, 20) : 1000,
		.length = one_in(doing, 8) ? random_next(doing->random) : below(doing, 1 << 20),
		.op = ops[below(doing, 5)],
	};
	if (cmd->op == KXFER_OP_SEND || cmd->flags & KXFER_DEDICATED_F_IMM) {
		cmd->receives = below(doing, 16);
		cmd->slots = below(doing, 8);
		cmd->bytes = below(doing, 8192);
	}
	if (one_in(doing, 8))
		cmd->local = kx_addr(kx_address(), 0);
	if (cmd->flags & KXFER_DEDICATED_F_QKEY || one_in(doing, 16))
		cmd->qkey = below(doing, 16);
	if (cmd->remote.family != AF_INET || cmd->remote.addr[3] == 99)
		cmd->timeout_ms = cmd->timeout_ms % 500 + 1;
	if (model->responder && !one_in(doing, 3))
		open_to_responder(doing, cmd);
}

static void done_dedicated_open(struct doing *doing)
{
	if (results_seen(doing->op))
		doing->session->dedicated[doing->slot] = doing->any.dedicated_open.dedicated;
}

static void build_dedicated_close(struct doing *doing)
{
	build_id(doing, doing->session->dedicated);
}

static void done_dedicated_close(struct doing *doing)
{
	doing->session->dedicated[doing->slot] = 0;
}

static void build_dedicated_status(struct doing *doing)
{
	doing->slot = resolve(doing->session->dedicated, doing->slot);
	doing->any.dedicated_status = (struct kxfer_dedicated_status) {
		.size = sizeof(doing->any.dedicated_status),
		.dedicated = id_of(doing, doing->session->dedicated[doing->slot]),
	};
}

/* Random bytes under a known or an unknown call number. */
static void build_raw(struct doing *doing)
{
	memory_fill(doing->random, doing->any.bytes, 256);
	doing->any.size = below(doing, 300);
	doing->cmd = one_in(doing, 8) ? random_next(doing->random) :
					_IO(KXFER_TYPE, below(doing, 0x48));
}

#define CALL(id, member, build, done) \
	[OP_##id] = { KXFER_##id, sizeof(struct kxfer_##member), build, done }

static const struct call {
	unsigned long cmd;
	uint32_t size;
	void (*build)(struct doing *doing);
	void (*done)(struct doing *doing);
} calls[OP_NR_CALLS] = {
	CALL(QUERY, query, build_query, NULL),
	CALL(NOP, nop, build_nop, NULL),
	CALL(INFO, info, build_info, NULL),
	CALL(REGION_ADD, region_add, build_region_add, done_region_add),
	CALL(REGION_DEL, id, build_region_del, done_region_del),
	CALL(EXPORT_ADD, export_add, build_export_add, done_export_add),
	CALL(EXPORT_DEL, id, build_export_del, done_export_del),
	CALL(EXPORT_SET, export_set, build_export_set, NULL),
	CALL(MAILBOX_ADD, mailbox_add, build_mailbox_add, done_mailbox_add),
	CALL(LISTEN_ADD, listen_add, build_listen_add, done_listen_add),
	CALL(LISTEN_DEL, listen_del, build_listen_del, NULL),
	CALL(PEER_OPEN, peer_open, build_peer_open, done_peer_open),
	CALL(PEER_CLOSE, id, build_peer_close, done_peer_close),
	CALL(PEER_LIST, peer_list, build_peer_list, NULL),
	CALL(TARGET_OPEN, target_open, build_target_open, done_target_open),
	CALL(TARGET_CLOSE, id, build_target_close, done_target_close),
	CALL(TARGET_INFO, target_info, build_target_info, NULL),
	CALL(SUBMIT, submit, build_submit, done_submit),
	CALL(REAP, reap, build_reap, done_reap),
	CALL(CANCEL, cancel, build_cancel, NULL),
	CALL(EVENT_REAP, event_reap, build_event_reap, NULL),
	CALL(CQ_RING, cq_ring, build_cq_ring, done_cq_ring),
	CALL(SQ_RING, sq_ring, build_sq_ring, done_sq_ring),
	[OP_ENTER] = { KXFER_ENTER, sizeof(unsigned long), build_enter, done_enter },
	CALL(BENCH, bench, build_bench, done_bench),
	CALL(DEDICATED_OPEN, dedicated_open, build_dedicated_open, done_dedicated_open),
	CALL(DEDICATED_CLOSE, id, build_dedicated_close, done_dedicated_close),
	CALL(DEDICATED_STATUS, dedicated_status, build_dedicated_status, NULL),
	[OP_RAW] = { 0, 256, build_raw, NULL },
};

static void spoil(struct doing *doing, uint32_t size)
{
	union any *any = &doing->any;
	uint32_t bit;

	switch (doing->op->spoil) {
	case SPOIL_SIZE_SMALL:
		any->size = below(doing, size);
		break;
	case SPOIL_SIZE_ZEROS:
		any->size = size + below(doing, 4096 - size + 1);
		break;
	case SPOIL_SIZE_JUNK:
		any->size = size + 1 + below(doing, 64);
		any->bytes[size + below(doing, any->size - size)] = 1 + below(doing, 255);
		break;
	case SPOIL_SIZE_HUGE:
		any->size = one_in(doing, 2) ? 4097 : random_next(doing->random) | 0x1000;
		break;
	case SPOIL_FLIP:
		bit = 32 + below(doing, 8 * size - 32);
		any->bytes[bit / 8] ^= 1 << bit % 8;
		break;
	case SPOIL_CMD:
		doing->cmd |= 1ul << (16 + below(doing, 16));
		break;
	}
}

/* Address of the structure, which has @size bytes. */
static void *place(struct doing *doing, uint32_t size)
{
	uint8_t *at;

	switch (doing->op->spoil) {
	case SPOIL_ARG_HOLE:
		return one_in(doing, 2) ? memory_block(MEMORY_HOLE) : (void *)KERNEL_ADDRESS;
	case SPOIL_ARG_READONLY:
		at = memory_block(MEMORY_READONLY);
		break;
	case SPOIL_ARG_RACING:
		at = memory_block(MEMORY_RACING + below(doing, MEMORY_NR_RACING));
		at += MEMORY_BLOCK / 2 + below(doing, 8192);
		break;
	case SPOIL_ARG_CUT:
		at = memory_block(MEMORY_HOLE);
		at -= below(doing, size + 1);
		break;
	default:
		return &doing->any;
	}
	memory_poke(at, &doing->any, size);
	return at;
}

static uint32_t open_session(uint32_t number)
{
	uint32_t i;

	for (i = 0; i < NR_SESSIONS && !model->sessions[number].open; i++)
		number = (number + 1) % NR_SESSIONS;
	return number;
}

/** call_do() - do an op that is an ioctl */
void call_do(struct actor *actor, const struct op *op)
{
	const struct call *call = &calls[op->kind];
	uint32_t number = open_session(op->session);
	struct doing doing = {
		.actor = actor,
		.op = op,
		.number = number,
		.session = &model->sessions[number],
		.slot = op->slot,
		.random = &actor->random,
		.cmd = call->cmd,
	};
	int ret;

	call->build(&doing);
	if (effects_hidden(op))
		doing.session->inexact = true;
	spoil(&doing, call->size);
	ret = ioctl(MODEL_FD + number, doing.cmd,
		    op->kind == OP_ENTER ? (void *)doing.any.wait : place(&doing, call->size));
	doing.result = ret;
	ret = ret < 0 ? errno : 0;
	tally_call(op, ret);
	if (!ret && call->done)
		call->done(&doing);
}

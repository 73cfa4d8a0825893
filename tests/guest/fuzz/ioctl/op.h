/* SPDX-License-Identifier: MIT */
/*
 * Op: one step of a sequence, and sequences of them.
 *
 * A sequence can only be shrunk and mutated if an op means the same without other ops. So an op
 * names sessions and objects by slots of the model, never by the kernel's ids, and derives
 * everything else from its arguments. As text it is a line
 *
 *	kind session slot thread spoil arg0 arg1 arg2 arg3
 */
#ifndef KXFER_FUZZ_OP_H
#define KXFER_FUZZ_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OP_ARGS		4
#define NR_SESSIONS	4
#define NR_SLOTS	8	/* slots that a session has for objects of a kind */
#define NR_THREADS	3
#define SEQUENCE_MAX	320

/* X(ID, name): kind of an op. Those before OP_NR_CALLS are ioctls. */
#define OP_KINDS(X) \
	X(QUERY, "query") \
	X(NOP, "nop") \
	X(INFO, "info") \
	X(REGION_ADD, "region_add") \
	X(REGION_DEL, "region_del") \
	X(EXPORT_ADD, "export_add") \
	X(EXPORT_DEL, "export_del") \
	X(EXPORT_SET, "export_set") \
	X(MAILBOX_ADD, "mailbox_add") \
	X(LISTEN_ADD, "listen_add") \
	X(LISTEN_DEL, "listen_del") \
	X(PEER_OPEN, "peer_open") \
	X(PEER_CLOSE, "peer_close") \
	X(PEER_LIST, "peer_list") \
	X(TARGET_OPEN, "target_open") \
	X(TARGET_CLOSE, "target_close") \
	X(TARGET_INFO, "target_info") \
	X(SUBMIT, "submit") \
	X(REAP, "reap") \
	X(CANCEL, "cancel") \
	X(EVENT_REAP, "event_reap") \
	X(CQ_RING, "cq_ring") \
	X(SQ_RING, "sq_ring") \
	X(ENTER, "enter")		/* after jobs, or nonsense, were written into that ring */ \
	X(BENCH, "bench") \
	X(DEDICATED_OPEN, "dedicated_open") \
	X(DEDICATED_CLOSE, "dedicated_close") \
	X(DEDICATED_STATUS, "dedicated_status") \
	X(RAW, "raw")		/* any number, any memory */ \
	X(OPEN, "open") \
	X(CLOSE, "close") \
	X(POLL, "poll") \
	X(READ_RING, "read_ring")	/* or store an invalid head */ \
	X(REMAP, "remap")	/* change a page table that other threads use */ \
	X(FORK, "fork")		/* a child that calls and is killed */ \
	X(UNPLUG, "unplug")	/* remove the RDMA device and bring it back */ \
	X(SYNC, "sync")		/* all threads wait for each other */

#define OP_ENUM(id, name)	OP_##id,
enum op_kind { OP_KINDS(OP_ENUM) OP_KINDS_NR };
#undef OP_ENUM

#define OP_NR_CALLS	OP_OPEN

/* X(ID, name): what a call is spoiled with */
#define OP_SPOILS(X) \
	X(NONE, "-") \
	X(SIZE_SMALL, "size_small") \
	X(SIZE_ZEROS, "size_zeros")	/* a longer structure, as from a newer caller: valid */ \
	X(SIZE_JUNK, "size_junk") \
	X(SIZE_HUGE, "size_huge") \
	X(FLIP, "flip")			/* flip a bit of the structure */ \
	X(ID, "id")			/* of no object, or of another session's */ \
	X(CMD, "cmd")			/* flip direction and size bits of the number */ \
	X(ARG_HOLE, "arg_hole")		/* the structure is in memory that ... */ \
	X(ARG_READONLY, "arg_readonly") \
	X(ARG_RACING, "arg_racing") \
	X(ARG_CUT, "arg_cut")		/* ends in the middle of it */ \
	X(INNER_HOLE, "inner_hole")	/* what the structure points to is ... */ \
	X(INNER_READONLY, "inner_readonly") \
	X(INNER_RACING, "inner_racing") \
	X(INNER_CUT, "inner_cut") \
	X(INNER_WRAP, "inner_wrap")	/* runs past the end of the address space */ \
	X(INNER_KERNEL, "inner_kernel")

#define OP_ENUM(id, name)	SPOIL_##id,
enum op_spoil { OP_SPOILS(OP_ENUM) OP_SPOILS_NR };
#undef OP_ENUM

struct op {
	uint8_t kind;
	uint8_t session;
	uint8_t slot;
	uint8_t thread;
	uint8_t spoil;
	uint32_t args[OP_ARGS];
};

struct sequence {
	uint32_t nr;
	struct op ops[SEQUENCE_MAX];
};

const char *op_kind_name(enum op_kind kind);
void op_write(FILE *file, const struct op *op);
bool op_read(const char *line, struct op *op);
bool sequence_add(struct sequence *sequence, const struct op *op);
int sequence_read(const char *path, struct sequence *sequence);
void sequence_write(FILE *file, const struct sequence *sequence);

#endif /* KXFER_FUZZ_OP_H */

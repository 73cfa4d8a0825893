/* SPDX-License-Identifier: MIT */
/*
 * Model: what the slots of a sequence hold, as the kernel answered.
 *
 * The model is shared by all threads and children, and is read and written without locks: a
 * stale id is as good as any. Its counts are compared with the kernel's at the end of a
 * sequence, unless the session is inexact: then a call may have had an effect that its caller
 * could not see.
 */
#ifndef KXFER_FUZZ_MODEL_H
#define KXFER_FUZZ_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "op.h"

#define MODEL_FD	500	/* file descriptor of session 0 */

struct kxfer_job;
struct kxfer_ring;
struct kxfer_sq;

struct model_session {
	_Atomic uint32_t regions[NR_SLOTS];
	_Atomic uint32_t region_bytes[NR_SLOTS];
	_Atomic bool region_writable[NR_SLOTS];
	_Atomic uint32_t exports[NR_SLOTS];
	_Atomic uint32_t export_bytes[NR_SLOTS];
	_Atomic uint32_t mailboxes[NR_SLOTS];	/* ids of the exports that are mailboxes */
	_Atomic uint32_t peers[NR_SLOTS];
	_Atomic uint32_t targets[NR_SLOTS];
	_Atomic uint32_t target_bytes[NR_SLOTS];
	_Atomic uint32_t target_rights[NR_SLOTS];
	_Atomic uint32_t dedicated[NR_SLOTS];
	_Atomic uint64_t accepted;
	_Atomic uint64_t reaped;
	_Atomic bool inexact;
	_Atomic bool open;
	struct kxfer_ring *_Atomic ring;	/* mapping, in the process that opened it */
	_Atomic uint64_t ring_bytes;
	struct kxfer_sq *_Atomic sq;	/* the same for the submission ring */
	_Atomic uint64_t sq_bytes;
};

struct model {
	struct model_session sessions[NR_SESSIONS];
	_Atomic uint64_t listeners[NR_SLOTS];
	_Atomic uint32_t responder;	/* port of a responder for dedicated connections, or 0 */
	_Atomic bool kept_given;	/* a flipped bit may have made kept memory writable */
	_Atomic bool broken;
	int eventfd;
	char finding[256];
};

extern struct model *model;

int model_make(void);
void model_reset(void);
void model_open(uint32_t session);
void model_close(uint32_t session);
void model_map_ring(uint32_t session, uint64_t offset, uint64_t bytes);
void model_map_sq(uint32_t session, uint64_t offset, uint64_t bytes);
void model_read_ring(uint32_t session, uint32_t how, uint32_t head);
void model_write_sq(uint32_t session, uint32_t how, const struct kxfer_job *jobs, uint32_t nr);
const char *model_drain(void);
void model_find(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* KXFER_FUZZ_MODEL_H */

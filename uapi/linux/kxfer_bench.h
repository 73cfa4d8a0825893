/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kxfer, measuring: what work requests of kernel verbs cost without jobs.
 *
 * Calls on /dev/kxfer that kxfer_bench.ko carries out, as linux/kxfer.h says it of calls in
 * general. They are NOT stable: they serve the tool of the same release, and any release may
 * change or remove them without a change of KXFER_ABI. So no structure here grows: @size is
 * that of this header.
 *
 * The first such call loads kxfer_bench.ko, if the caller has CAP_NET_ADMIN (EPERM).
 * EOPNOTSUPP: it is not there, or is of another release than kxfer.ko. A session that has made
 * such a call has it in use until the file is closed.
 */
#ifndef _UAPI_LINUX_KXFER_BENCH_H
#define _UAPI_LINUX_KXFER_BENCH_H

#include <linux/kxfer.h>

enum {
	KXFER_CMD_BENCH			= KXFER_CMD_ENGINE,
	KXFER_CMD_DEDICATED_OPEN,
	KXFER_CMD_DEDICATED_CLOSE,
	KXFER_CMD_DEDICATED_STATUS,
};

/* Room for samples, and the longest time limit, of a KXFER_BENCH. */
#define KXFER_BENCH_MAX_SAMPLES		(1U << 20)
#define KXFER_BENCH_MAX_TIME_MS		60000

/**
 * enum kxfer_bench_memory - how work requests of a run name local memory
 * @KXFER_BENCH_MEMORY_DEFAULT: by the PD's local_dma_lkey; a READ of iWARP, which
 *	needs an STag for its sink, as @KXFER_BENCH_MEMORY_MR
 * @KXFER_BENCH_MEMORY_MR: by fast-registration MRs, registered once before the clock
 *	starts
 * @KXFER_BENCH_MEMORY_MR_EACH: by such MRs, one for each operation in flight, mapped and
 *	registered (REG_MR) before each operation, and invalidated as enum
 *	kxfer_bench_invalidate says it
 * @KXFER_BENCH_MEMORY_RW: by the kernel's rdma_rw, as a storage target does it: the pages
 *	of each operation are mapped for DMA, its work requests made, and its pages
 *	unmapped, which for a READ of iWARP takes an MR. READ and WRITE only; with @depth
 *	above 1 @signal is 1 and @stride a multiple of 64 that keeps operations in cache
 *	lines of their own
 */
enum kxfer_bench_memory {
	KXFER_BENCH_MEMORY_DEFAULT	= 0,
	KXFER_BENCH_MEMORY_MR		= 1,
	KXFER_BENCH_MEMORY_MR_EACH	= 2,
	KXFER_BENCH_MEMORY_RW		= 3,
};

/**
 * enum kxfer_bench_invalidate - how an MR of KXFER_BENCH_MEMORY_MR_EACH becomes invalid
 * @KXFER_BENCH_INVALIDATE_DEFERRED: by a LOCAL_INV in the same post as its next
 *	registration, as the kernel's rdma_rw does it: until then its key is good
 * @KXFER_BENCH_INVALIDATE_LOCAL: by a LOCAL_INV, fenced, behind its operation, which is
 *	done when that is
 * @KXFER_BENCH_INVALIDATE_REMOTE: by the peer, as a storage target does it: on a connection
 *	of KXFER_DEDICATED_F_ANSWERED each message carries the key of the MR that it is sent
 *	from, which the peer may READ until it answers by SEND_WITH_INV of that key; then
 *	the operation is done. KXFER_OP_SEND only
 */
enum kxfer_bench_invalidate {
	KXFER_BENCH_INVALIDATE_DEFERRED	= 0,
	KXFER_BENCH_INVALIDATE_LOCAL	= 1,
	KXFER_BENCH_INVALIDATE_REMOTE	= 2,
};

/*
 * Buckets of a histogram of nanoseconds: a value below 256 has one of its own; one of
 * w > 8 bits has that of its eight highest, (w - 8) * 128 + (value >> (w - 8)). So a
 * bucket is no wider than 1/128 of its values. What exceeds 32 bits counts as 2^32 - 1.
 */
#define KXFER_BENCH_NR_BUCKETS		(26 * 128)

/* WRITE, SEND: with immediate; on a dedicated connection only. */
#define KXFER_BENCH_F_IMM	(1U << 0)
/* WRITE: its work request carries no payload, also if the device would take it. */
#define KXFER_BENCH_F_NO_INLINE	(1U << 1)
/*
 * KXFER_BENCH_MEMORY_MR_EACH: each operation takes an MR from the pool of the QP and gives it
 * back (ib_mr_pool_get(), ib_mr_pool_put()), as initiators of storage do; without, each
 * operation in flight has one of its own.
 */
#define KXFER_BENCH_F_MR_POOL	(1U << 2)

/**
 * struct kxfer_bench - what work requests cost without jobs (KXFER_BENCH)
 * @size: sizeof(struct kxfer_bench)
 * @flags: KXFER_BENCH_F_*
 * @op: KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_FETCH_ADD, KXFER_OP_COMPARE_SWAP (both
 *	as enum kxfer_op says it), or KXFER_OP_NOP: of KXFER_BENCH_MEMORY_MR_EACH
 *	registrations without transfers (@target_offset 0); else the loop without work
 *	requests (neither region nor target; offsets, @length and @stride 0); with
 *	@dedicated also KXFER_OP_SEND (@target_offset 0)
 * @region: id of the local memory
 * @target: id of the peer's memory; 0 with @dedicated
 * @depth: operations in flight, 1 to 256
 * @list: operations of one ib_post_send(), 1 to @depth
 * @signal: one operation in so many asks for a completion; @list + @signal may be
 *	at most @depth + 1
 * @region_offset: bytes; of the first operation
 * @target_offset: likewise
 * @length: bytes of one operation
 * @stride: bytes from one operation to the next, on both sides; after @depth of
 *	them it begins again with the first. 0 only if @depth is 1
 * @warm_up: operations before those that count; not on schedule
 * @count: operations that count, at least 1
 * @time_limit_ms: 1 to 60000: no operation is begun after it
 * @nr_samples: in: room in @samples, at most 2^20, 0 unless @depth is 1; out: stored
 * @samples: array of __u32: nanoseconds of each operation, from the end of the one
 *	before; or 0
 * @operations: out: done, less than @count if the time was over
 * @nr_wr: out: work requests of the longest operation
 * @total_ns: out: from the first post to the last completion; on schedule from its
 *	begin, and to the end of the time if that ended it
 * @memory: enum kxfer_bench_memory
 * @nr_buckets: KXFER_BENCH_NR_BUCKETS, or 0
 * @histogram: array of so many __u32: operations by nanoseconds, from the post to when
 *	their completion, or that of a later one which stands for them, was found; or 0
 * @words: KXFER_OP_COMPARE_SWAP only: array of @depth __u64: what each word of the peer
 *	is thought to be; each operation expects that and leaves one more; out: what it
 *	is then, if all went as thought. FETCH_ADD adds 1
 * @dedicated: id of the connection to run on, and by it of the peer's memory; or 0
 * @invalidate: enum kxfer_bench_invalidate; 0 unless @memory is KXFER_BENCH_MEMORY_MR_EACH
 * @interval_ps: picoseconds from when one operation is due to when the next is: they are
 *	begun on schedule, whether others have ended or not, as far as @depth has room,
 *	and @histogram counts from when each was due; 1000 to 60 seconds, with @signal 1
 *	and without @samples. 0: when others have ended
 * @late_ns: with @interval_ps. In: for how long the first operation has been due; less
 *	than 0: it will be. Out: that of the next one, when the last was begun or the time
 *	was over; so a schedule goes on from run to run
 * @posted_histogram: with @interval_ps and @histogram: as that, from the post; or 0
 *
 * A loop in the kernel posts work requests, built before, on a data lane of the
 * target's link: what kernel verbs cost at least. On a link of KXFER_CONTEXT_POLLED it
 * polls the CQ between posts, and when nothing has come for a while it sleeps; on a
 * connection of KXFER_CONTEXT_DIRECT it polls on. On any other it sleeps until completions,
 * handled where the link's context says, have made room, as a kernel user that waits for
 * them does; so it does on a kernel with PREEMPT_RT. It has the lane for itself: jobs of others
 * wait until it ends. What it moves is in no counter of jobs and bytes. Needs
 * CAP_NET_ADMIN.
 *
 * EBUSY: jobs are in flight on the lane, or with KXFER_BENCH_MEMORY_RW the region is
 * mapped already for a device that does DMA, because jobs or exports use it; EINVAL
 * also: more work requests than it takes at once, or longer than the device registers
 * at once; or, on iWARP and by MRs, a WRITE or SEND of 32 bytes at most across a page of the
 * region, which siw gets wrong, but not what is answered; EINTR: a signal came. Atomics are
 * refused as jobs of them are. An error leaves it open what was moved.
 *
 * What is in flight when the time is over, or a signal comes, is waited for, as long as
 * something completes every 30 s; on a dedicated connection for 30 s in all, or 1 s if the
 * process is killed: then that ends (ECONNRESET). Only the last work request of an operation
 * that asks for a completion has one: @signal operations have to take less than 30 s, too.
 *
 * A SEND, and a WRITE with KXFER_BENCH_F_IMM, is a message: of the operation and the bytes
 * that its connection was opened for (EINVAL). Message n, counted from when that was, goes
 * from slot n % @slots of the local memory, whatever @depth is, a WRITE to that of the
 * peer's; its immediate is n ^ 0x6b786672. It is one work request, and none is posted for
 * which the responder has no receive; so @depth may be at most @receives, with
 * KXFER_BENCH_MEMORY_MR_EACH at most @slots, and @list at most @slots (EINVAL). On a
 * connection of KXFER_DEDICATED_F_ANSWERED it is to be KXFER_BENCH_INVALIDATE_REMOTE,
 * elsewhere not (EINVAL). EOPNOTSUPP: iWARP has no immediates.
 */
struct kxfer_bench {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 region;
	__u32 target;
	__u32 depth;
	__u32 list;
	__u32 signal;
	__aligned_u64 region_offset;
	__aligned_u64 target_offset;
	__aligned_u64 length;
	__aligned_u64 stride;
	__u32 warm_up;
	__u32 count;
	__u32 time_limit_ms;
	__u32 nr_samples;
	__aligned_u64 samples;
	__u32 operations;
	__u32 nr_wr;
	__aligned_u64 total_ns;
	__u32 memory;
	__u32 nr_buckets;
	__aligned_u64 histogram;
	__aligned_u64 words;
	__u32 dedicated;
	__u32 invalidate;
	__aligned_u64 interval_ps;
	__s64 late_ns;
	__aligned_u64 posted_histogram;
};

#define KXFER_BENCH			_IO(KXFER_TYPE, KXFER_CMD_BENCH)

/* Dedicated connections of a session, and the longest message and memory of one. */
#define KXFER_MAX_DEDICATED		16
#define KXFER_DEDICATED_MAX_RECEIVES	8192
#define KXFER_DEDICATED_MAX_SLOTS	256
#define KXFER_DEDICATED_MAX_BYTES	(1U << 30)

#define KXFER_DEDICATED_F_WRITE	(1U << 0)	/* the memory is to be written too */
#define KXFER_DEDICATED_F_IMM	(1U << 1)	/* @op is with immediate */
/* KXFER_OP_SEND, without immediate: for KXFER_BENCH_INVALIDATE_REMOTE, and nothing else. */
#define KXFER_DEDICATED_F_ANSWERED	(1U << 2)
#define KXFER_DEDICATED_F_QKEY	(1U << 3)	/* UD: @qkey in place of the responder's */
/* Its completions come on a CQ of the RDMA core's pool; not if somebody polls it by himself. */
#define KXFER_DEDICATED_F_CQ_POOL	(1U << 4)

/**
 * enum kxfer_transport - what messages of a dedicated connection go by
 * @KXFER_TRANSPORT_RC: the reliable connection, which all has
 * @KXFER_TRANSPORT_UD: unreliable datagrams, by a QP beside it
 */
enum kxfer_transport {
	KXFER_TRANSPORT_RC	= 0,
	KXFER_TRANSPORT_UD	= 1,
};

/**
 * struct kxfer_dedicated_open - connect a QP for KXFER_BENCH (KXFER_DEDICATED_OPEN)
 * @size: sizeof(struct kxfer_dedicated_open)
 * @flags: KXFER_DEDICATED_F_*
 * @remote: address and port of a responder of user-space verbs (kxfer serve --verbs)
 * @local: own address to connect from, or family 0; its port has to be 0
 * @device: device that it has to use, or empty; EADDRNOTAVAIL if the address leads
 *	elsewhere
 * @context: enum kxfer_context of its completions; with KXFER_DEDICATED_F_CQ_POOL neither
 *	KXFER_CONTEXT_POLLED nor _DIRECT (EINVAL)
 * @timeout_ms: 1 to 60000
 * @length: bytes of memory wanted at the responder, 1 to 2^30; it is this connection's
 *	alone, and may be READ in any case
 * @op: what is done beside READ and WRITE: KXFER_OP_SEND, _FETCH_ADD, _COMPARE_SWAP, or
 *	KXFER_OP_WRITE with KXFER_DEDICATED_F_IMM; KXFER_OP_READ: nothing
 * @receives: of messages (SEND, and what is with immediate): that the responder is to
 *	have posted, 1 to 8192; else 0
 * @slots: of messages: places that they go to in turn, each on pages of its own, 1 to
 *	256; else 0
 * @bytes: of messages: length of one, at least 1; all @slots are within @length; else 0
 * @dedicated: out: id
 * @refusal: out, on EREMOTEIO too: errno by which the responder refuses, or 0
 * @link: out: node-wide id; it is told of as a link (KXFER_LINK_DEDICATED)
 * @transport: enum kxfer_transport; UD with KXFER_OP_SEND alone (EINVAL)
 * @qkey: KXFER_DEDICATED_F_QKEY: what messages carry; else 0. If its highest bit is set
 *	the device takes the QP's own in its place
 * @mtu: out, on EMSGSIZE too: UD: bytes of the longest message, the path MTU; else 0
 * @__reserved: must be 0
 *
 * A QP and PD of the session's own, and a CQ, or with KXFER_DEDICATED_F_CQ_POOL room on one
 * that others use too; with one data lane and no channel: work requests
 * of a run (KXFER_BENCH) are those of the QP and nothing else is on it. It speaks the
 * protocol of the responder, whose address and rkey stay in the kernel. What the run of
 * user-space verbs does at the responder this does too, so both can be compared. Needs
 * CAP_NET_ADMIN.
 *
 * It ends with DEDICATED_CLOSE (EBUSY while a run is on it), with the file, and when it
 * breaks, which a run tells by ECONNRESET, ENODEV or EREMOTEIO. ECONNREFUSED: nothing
 * there speaks the protocol; EREMOTEIO: @refusal; EPROTO: an answer that makes no sense;
 * EOPNOTSUPP: the device has no atomics, or iWARP and with immediate, or has no UD;
 * EMSGSIZE: UD, and @bytes is more than @mtu; EDQUOT: the session has 16, or the user as
 * many links as it may have.
 *
 * UD: the responder's UD QP is looked up by rdma_cm (RDMA_PS_UDP) once the reliable
 * connection is there, which goes on beside it: READs, WRITEs and those of the status are
 * on that. A message is one packet, and may be lost without a word: that the run and
 * DEDICATED_STATUS have no error does not say that it came. One whose receive is not told
 * of for 200 ms while the run waits for receives is given up, so the run goes on.
 */
struct kxfer_dedicated_open {
	__u32 size;
	__u32 flags;
	struct kxfer_addr remote;
	struct kxfer_addr local;
	__u8 device[KXFER_DEVICE_NAME_MAX];
	__u32 context;
	__u32 timeout_ms;
	__aligned_u64 length;
	__u32 op;
	__u32 receives;
	__u32 slots;
	__u32 bytes;
	__u32 dedicated;
	__u32 refusal;
	__aligned_u64 link;
	__u32 transport;
	__u32 qkey;
	__u32 mtu;
	__u32 __reserved;
};

#define KXFER_DEDICATED_OPEN	_IO(KXFER_TYPE, KXFER_CMD_DEDICATED_OPEN)
#define KXFER_DEDICATED_CLOSE	_IO(KXFER_TYPE, KXFER_CMD_DEDICATED_CLOSE)

/**
 * struct kxfer_dedicated_status - what a responder says (KXFER_DEDICATED_STATUS)
 * @size: sizeof(struct kxfer_dedicated_status)
 * @flags: must be 0
 * @dedicated: id of a connection of messages (EINVAL)
 * @__reserved: must be 0
 * @sent: out: messages posted since it was opened
 * @received: out: of these, whose receives the responder has posted again; UD: what is
 *	missing for long is lost
 * @wrong: out: of these, other than what was to come
 *
 * READs that from the responder, behind all that was posted. EBUSY: a run is on it.
 * Needs CAP_NET_ADMIN.
 */
struct kxfer_dedicated_status {
	__u32 size;
	__u32 flags;
	__u32 dedicated;
	__u32 __reserved;
	__aligned_u64 sent;
	__aligned_u64 received;
	__aligned_u64 wrong;
};

#define KXFER_DEDICATED_STATUS	_IO(KXFER_TYPE, KXFER_CMD_DEDICATED_STATUS)

#endif /* _UAPI_LINUX_KXFER_BENCH_H */

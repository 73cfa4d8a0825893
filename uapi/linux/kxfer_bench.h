/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kxfer, measuring: what work requests of kernel verbs cost without jobs.
 *
 * kxfer_bench.ko carries out these calls on /dev/kxfer. Their general format is that of
 * linux/kxfer.h. They are NOT stable: they serve the tool of the same release, and any release
 * may change or remove them without a change of KXFER_ABI. So no structure here grows: @size
 * is that of this header.
 *
 * The first such call loads kxfer_bench.ko, if the caller has CAP_NET_ADMIN (EPERM).
 * EOPNOTSUPP: the module is not there, or is of another release than kxfer.ko. A session that
 * has made such a call keeps the module in use until the file is closed.
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

/* Most samples, and the longest time limit, of a KXFER_BENCH. */
#define KXFER_BENCH_MAX_SAMPLES		(1U << 20)
#define KXFER_BENCH_MAX_TIME_MS		60000

/**
 * enum kxfer_bench_memory - how work requests of a run name local memory
 * @KXFER_BENCH_MEMORY_DEFAULT: by the PD's local_dma_lkey; a READ on iWARP, which
 *	needs an STag for its sink, as @KXFER_BENCH_MEMORY_MR
 * @KXFER_BENCH_MEMORY_MR: by fast-registration MRs, registered once before the clock
 *	starts
 * @KXFER_BENCH_MEMORY_MR_EACH: by fast-registration MRs, one for each operation in flight,
 *	mapped and registered (REG_MR) before each operation, and invalidated as enum
 *	kxfer_bench_invalidate says
 * @KXFER_BENCH_MEMORY_RW: by the kernel's rdma_rw, as in a storage target: for each
 *	operation pages are mapped for DMA, work requests made, and the pages unmapped; a
 *	READ on iWARP takes an MR for that. READ and WRITE only; with @depth above 1 @signal
 *	must be 1 and @stride a multiple of the kernel's cache lines (64 bytes; 256 on s390x)
 *	that keeps operations in lines of their own
 */
enum kxfer_bench_memory {
	KXFER_BENCH_MEMORY_DEFAULT	= 0,
	KXFER_BENCH_MEMORY_MR		= 1,
	KXFER_BENCH_MEMORY_MR_EACH	= 2,
	KXFER_BENCH_MEMORY_RW		= 3,
};

/**
 * enum kxfer_bench_invalidate - how an MR of KXFER_BENCH_MEMORY_MR_EACH becomes invalid
 * @KXFER_BENCH_INVALIDATE_DEFERRED: by a LOCAL_INV in the same post as the MR's next
 *	registration, as in the kernel's rdma_rw: until then the key is valid
 * @KXFER_BENCH_INVALIDATE_LOCAL: by a fenced LOCAL_INV after the operation, which is done
 *	when the LOCAL_INV is
 * @KXFER_BENCH_INVALIDATE_REMOTE: by the peer, as a storage target does: on a connection of
 *	KXFER_DEDICATED_F_ANSWERED each message carries the key of the MR that it is sent
 *	from. The peer may READ that MR until it answers by SEND_WITH_INV of that key; then
 *	the operation is done. KXFER_OP_SEND only
 */
enum kxfer_bench_invalidate {
	KXFER_BENCH_INVALIDATE_DEFERRED	= 0,
	KXFER_BENCH_INVALIDATE_LOCAL	= 1,
	KXFER_BENCH_INVALIDATE_REMOTE	= 2,
};

/*
 * Buckets of a histogram of nanoseconds: a value below 256 has a bucket of its own; a value
 * of w > 8 bits has that of its eight highest bits, (w - 8) * 128 + (value >> (w - 8)). So a
 * bucket is no wider than 1/128 of its values. A value of over 32 bits counts as 2^32 - 1.
 */
#define KXFER_BENCH_NR_BUCKETS		(26 * 128)

/* WRITE, SEND: with immediate; on a dedicated connection only. */
#define KXFER_BENCH_F_IMM	(1U << 0)
/* WRITE: the work request carries no payload, even if the device would take it. */
#define KXFER_BENCH_F_NO_INLINE	(1U << 1)
/*
 * KXFER_BENCH_MEMORY_MR_EACH: each operation takes an MR from the pool of the QP and gives it
 * back (ib_mr_pool_get(), ib_mr_pool_put()), as storage initiators do. Without this flag each
 * operation in flight has an MR of its own.
 */
#define KXFER_BENCH_F_MR_POOL	(1U << 2)
/*
 * WRITE: round trips with a run of the other flag at the peer, whose WRITEs come into the region.
 * Operation n leaves @echo + n, modulo 256, in its last byte. PING posts one, and it is done when
 * the byte that comes back is the same; PONG posts when such a byte has come.
 */
#define KXFER_BENCH_F_PING	(1U << 3)
#define KXFER_BENCH_F_PONG	(1U << 4)

/**
 * struct kxfer_bench - what work requests cost without jobs (KXFER_BENCH)
 * @size: sizeof(struct kxfer_bench)
 * @flags: KXFER_BENCH_F_*
 * @op: KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_FETCH_ADD, KXFER_OP_COMPARE_SWAP (both
 *	as in enum kxfer_op); with @dedicated also KXFER_OP_SEND (@target_offset 0); or
 *	KXFER_OP_NOP: with KXFER_BENCH_MEMORY_MR_EACH registrations without transfers
 *	(@target_offset 0), else the loop without work requests (neither region nor
 *	target; offsets, @length and @stride 0)
 * @region: id of the local memory
 * @target: id of the peer's memory; 0 with @dedicated
 * @depth: operations in flight, 1 to 256
 * @list: operations of one ib_post_send(), 1 to @depth
 * @signal: one operation in @signal asks for a completion; @list + @signal may be
 *	at most @depth + 1
 * @region_offset: first byte of the first operation in the region
 * @target_offset: first byte of the first operation in the peer's memory
 * @length: bytes of one operation
 * @stride: bytes from one operation to the next, on both sides; after @depth operations
 *	it begins again with the first. 0 only if @depth is 1
 * @warm_up: operations before those that count; not on schedule
 * @count: operations that count, at least 1
 * @time_limit_ms: 1 to 60000: no operation is begun after this time
 * @nr_samples: in: room in @samples, at most 2^20, 0 unless @depth is 1; out: samples stored
 * @samples: array of __u32: nanoseconds of each operation, from the end of the previous
 *	one; or 0
 * @operations: out: operations done, less than @count if the time was over
 * @nr_wr: out: work requests of the longest operation
 * @total_ns: out: time from the first post to the last completion; on schedule from the
 *	begin of the schedule, and to the end of the time if that ended the run
 * @memory: enum kxfer_bench_memory
 * @nr_buckets: KXFER_BENCH_NR_BUCKETS, or 0
 * @histogram: array of @nr_buckets __u32: operations by nanoseconds, from the post until
 *	their completion, or that of a later one which stands for them, was found; or 0
 * @words: KXFER_OP_COMPARE_SWAP only: array of @depth __u64: expected value of each word of
 *	the peer; each operation expects that value and leaves one more; out: the value
 *	afterwards, if all went as expected. FETCH_ADD adds 1
 * @dedicated: id of the connection to run on, which also names the peer's memory; or 0
 * @invalidate: enum kxfer_bench_invalidate; 0 unless @memory is KXFER_BENCH_MEMORY_MR_EACH
 * @interval_ps: picoseconds from one due operation to the next, 1000 to 60 seconds:
 *	operations are begun on schedule, whether others have ended or not, as far as
 *	@depth has room, and @histogram counts from when each was due; needs @signal 1 and
 *	no @samples. 0: operations are begun when others have ended
 * @late_ns: with @interval_ps. In: for how long the first operation has been due; less
 *	than 0: it will be due. Out: the same of the next operation, when the last was begun
 *	or the time was over; so a schedule goes on from run to run
 * @posted_histogram: with @interval_ps and @histogram: as @histogram, but counts from the
 *	post; or 0
 * @echo_offset: with KXFER_BENCH_F_PING or _PONG: first byte of what comes in, of @length
 *	bytes, in the region; else 0
 * @echo: the same; in: number of the first operation, which both ends have to give; out: that
 *	of the next one; else 0
 * @__reserved: must be 0
 *
 * A loop in the kernel posts work requests that were built before, on a data lane of the
 * target's link: the least that kernel verbs cost. On a link of KXFER_CONTEXT_POLLED it polls
 * the CQ between posts, and sleeps when nothing has come for a while; on a connection of
 * KXFER_CONTEXT_DIRECT it polls on. On any other link, and on a kernel with PREEMPT_RT, it
 * sleeps until completions have made room, as a kernel user that waits for them does; they
 * are handled in the link's context. The run has the lane for itself: other jobs wait until
 * it ends. No counter of jobs and bytes covers what it moves. Needs CAP_NET_ADMIN.
 *
 * With KXFER_BENCH_F_PING or _PONG a run posts one WRITE at a time, and looks at the last byte
 * of what comes in until it is the one it waits for. So that byte has to be another one before
 * the first operation, and the region has to be writable. Nothing else in the memory is looked
 * at. After a millisecond without it the run sleeps between two looks. @depth, @list and @signal
 * are 1, without @dedicated, schedule, immediate and KXFER_BENCH_MEMORY_MR_EACH or _RW (EINVAL).
 * A PING whose byte does not come in time is not done, and the next run has to begin with its
 * number: the byte may be there then. EOPNOTSUPP also: the device reaches memory through bounce
 * buffers, where nothing tells when to look.
 *
 * EBUSY: jobs are in flight on the lane, or with KXFER_BENCH_MEMORY_RW the region is
 * mapped already for a device that does DMA, because jobs or exports use it; EINVAL
 * also: more work requests than the lane takes at once, or an operation longer than the
 * device registers at once; or, on iWARP and with MRs, a WRITE or SEND of at most 32 bytes
 * across a page of the region, which siw gets wrong, unless messages are answered; EINTR: a
 * signal came. Atomics are refused as jobs of atomics are. After an error it is unknown what
 * was moved.
 *
 * When the time is over, or a signal comes, operations in flight are waited for, as long as
 * something completes every 30 s; on a dedicated connection for 30 s in all, or 1 s if the
 * process is killed: then the connection ends (ECONNRESET). Only the last work request of an
 * operation that asks for a completion has one: @signal operations must take less than 30 s,
 * too.
 *
 * A SEND, and a WRITE with KXFER_BENCH_F_IMM, is a message. Its operation and length must be
 * those that the connection was opened for (EINVAL). Message n, counted from that opening,
 * goes from slot n % @slots of the local memory, whatever @depth is; a WRITE goes to that
 * slot of the peer's memory. Its immediate is n ^ 0x6b786672. A message is one work request,
 * and is posted only if the responder has a receive for it; so @depth may be at most
 * @receives, with KXFER_BENCH_MEMORY_MR_EACH at most @slots, and @list at most @slots
 * (EINVAL). On a connection of KXFER_DEDICATED_F_ANSWERED @invalidate must be
 * KXFER_BENCH_INVALIDATE_REMOTE, elsewhere it must not be (EINVAL). EOPNOTSUPP: iWARP has no
 * immediates.
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
	__aligned_u64 echo_offset;
	__u32 echo;
	__u32 __reserved;
};

#define KXFER_BENCH			_IO(KXFER_TYPE, KXFER_CMD_BENCH)

/* Most dedicated connections of a session; most receives, slots and memory of one. */
#define KXFER_MAX_DEDICATED		16
#define KXFER_DEDICATED_MAX_RECEIVES	8192
#define KXFER_DEDICATED_MAX_SLOTS	256
#define KXFER_DEDICATED_MAX_BYTES	(1U << 30)

#define KXFER_DEDICATED_F_WRITE	(1U << 0)	/* the memory may be written too */
#define KXFER_DEDICATED_F_IMM	(1U << 1)	/* @op is with immediate */
/* KXFER_OP_SEND, without immediate, only for KXFER_BENCH_INVALIDATE_REMOTE. */
#define KXFER_DEDICATED_F_ANSWERED	(1U << 2)
#define KXFER_DEDICATED_F_QKEY	(1U << 3)	/* UD: @qkey in place of the responder's */
/* Completions come on a CQ of the RDMA core's pool, which a session cannot poll itself. */
#define KXFER_DEDICATED_F_CQ_POOL	(1U << 4)

/**
 * enum kxfer_transport - transport of the messages of a dedicated connection
 * @KXFER_TRANSPORT_RC: the reliable connection, which every dedicated connection has
 * @KXFER_TRANSPORT_UD: unreliable datagrams, by a second QP next to that of the connection
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
 * @local: own address to connect from, or family 0; its port must be 0
 * @device: device that the connection must use, or empty; EADDRNOTAVAIL if the address
 *	leads elsewhere
 * @context: enum kxfer_context of the completions; with KXFER_DEDICATED_F_CQ_POOL neither
 *	KXFER_CONTEXT_POLLED nor _DIRECT (EINVAL)
 * @timeout_ms: 1 to 60000
 * @length: bytes of memory wanted at the responder, 1 to 2^30; the memory is only for this
 *	connection, and may be READ in any case
 * @op: operation besides READ and WRITE: KXFER_OP_SEND, _FETCH_ADD, _COMPARE_SWAP, or
 *	KXFER_OP_WRITE with KXFER_DEDICATED_F_IMM; KXFER_OP_READ: none
 * @receives: for messages (SEND, and WRITE with immediate): receives that the responder has
 *	to keep posted, 1 to 8192; else 0
 * @slots: for messages: places that they go to in turn, each on pages of its own, 1 to
 *	256; else 0
 * @bytes: for messages: length of one, at least 1; all @slots are within @length; else 0
 * @dedicated: out: id of the connection
 * @refusal: out, on EREMOTEIO too: errno by which the responder refuses, or 0
 * @link: out: node-wide id; INFO lists the connection as a link (KXFER_LINK_DEDICATED)
 * @transport: enum kxfer_transport; UD only with KXFER_OP_SEND (EINVAL)
 * @qkey: with KXFER_DEDICATED_F_QKEY: Q_Key that messages carry; else 0. If its highest bit
 *	is set the device uses the QP's own instead
 * @mtu: out, on EMSGSIZE too: UD: bytes of the longest message, the path MTU; else 0
 * @__reserved: must be 0
 *
 * The connection has a QP and a PD of the session's own, and a CQ, or room on a shared CQ
 * with KXFER_DEDICATED_F_CQ_POOL. It has one data lane and no channel: work requests of a run
 * (KXFER_BENCH) are those of the QP; apart from READs of the status, and receives of answers,
 * nothing else is on it. It speaks the protocol of the responder, whose address and rkey stay
 * in the kernel. At the responder it does what the run of user-space verbs does, so both can
 * be compared. Needs CAP_NET_ADMIN.
 *
 * The connection ends with DEDICATED_CLOSE (EBUSY while a run is on it), with the file, and
 * when it breaks; a run then fails with ECONNRESET, ENODEV or EREMOTEIO. ECONNREFUSED:
 * nothing there speaks the protocol; EREMOTEIO: @refusal; EPROTO: an answer that makes no
 * sense; EOPNOTSUPP: the device has no atomics or no UD, or is iWARP and @op is with
 * immediate; EMSGSIZE: UD, and @bytes is more than @mtu; EDQUOT: the session has 16
 * dedicated connections, or the user as many links as it may have.
 *
 * UD: rdma_cm looks up the responder's UD QP (RDMA_PS_UDP) once the reliable connection is
 * there. That connection stays, for READs, WRITEs and READs of the status. A message is one
 * packet, and may be lost silently: a run and DEDICATED_STATUS without an error do not prove
 * that it came. While a run waits for receives, a message whose receive is not reported for
 * 200 ms is given up, so the run goes on.
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
 * struct kxfer_dedicated_status - counts of messages at a responder (KXFER_DEDICATED_STATUS)
 * @size: sizeof(struct kxfer_dedicated_status)
 * @flags: must be 0
 * @dedicated: id of a connection of messages (EINVAL)
 * @__reserved: must be 0
 * @sent: out: messages posted since the connection was opened
 * @received: out: messages whose receives the responder has posted again; UD: a message
 *	that is missing for long is lost
 * @wrong: out: messages in @received that differ from what was expected
 *
 * READs the counts from the responder, after all that was posted. EBUSY: a run is on the
 * connection. Needs CAP_NET_ADMIN.
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

/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kxfer: RDMA transfers by kernel verbs, for any process, through /dev/kxfer.
 *
 * This header is the whole contract between the module and user space.
 */
#ifndef _UAPI_LINUX_KXFER_H
#define _UAPI_LINUX_KXFER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every call takes a pointer to a structure whose first member, @size, is the
 * size of that structure in bytes as the caller knows it. A structure grows at its
 * end only, and zero in a new member means the behaviour without that member. Therefore
 *
 *  - a caller older than the module passes a shorter structure, but no shorter than
 *    that of the first release. Members that it lacks are zero for the module, and no
 *    byte past @size is written;
 *  - a caller newer than the module passes a longer structure. Members that the module
 *    does not know must be zero (E2BIG), and stay zero: the module does not have that
 *    result.
 *
 * struct kxfer_job, struct kxfer_rule and the records of INFO grow in the same way, by the
 * stride of SUBMIT, of EXPORT_ADD and MAILBOX_ADD, and of INFO; struct kxfer_message by
 * @message_size of MAILBOX_ADD. Structures within a structure, an array without a stride or a
 * ring never grow: struct kxfer_addr, kxfer_content, kxfer_completion, kxfer_event,
 * kxfer_line_event, kxfer_peer_export, kxfer_ring and kxfer_sq.
 *
 * All calls of this header are stable. The names of counters are not, nor are the calls of
 * linux/kxfer_bench.h, which a separate module carries out.
 *
 * All structures are the same for 32-bit and 64-bit callers. User memory is copied
 * once and checked afterwards.
 *
 * Reserved members and unused members must be zero.
 * Addresses, keys and QP numbers are neither handed out nor accepted: user
 * space names everything by ids that are valid for its own file only. Ids
 * start at 1; 0 is never an id.
 *
 * A call fails with -1 and one of:
 *
 *  - ENOTTY: no such call
 *  - E2BIG: a part of the structure that the module does not know is not zero
 *  - EFAULT: a bad pointer, memory that is not there, or memory of a kind that
 *    must not be pinned (a shared mapping of an ordinary file)
 *  - EINVAL: nonsense: a @size below that of the first release, a reserved member
 *    that is not zero, a zero length, a malformed name or address
 *  - EOPNOTSUPP: a flag or operation that the module does not know, or that this
 *    device, this peer or the session's network namespace does not have
 *  - EOVERFLOW: offset plus length, or address plus length, wraps around
 *  - ERANGE: outside the region or the target
 *  - EMSGSIZE: a message longer than the mailbox of the target takes
 *  - ENOENT: no such id, or no such export
 *  - EBUSY: in use: jobs are in flight on the object or an export is made of it; or
 *    the session has jobs in flight or completions to reap
 *  - EBADF: the file descriptor given is not open
 *  - EEXIST: the name is taken in the session's network namespace, or the session has such a
 *    ring already
 *  - EADDRINUSE, EADDRNOTAVAIL: the address to listen on or to connect from is in use,
 *    or not available
 *  - EPERM: the caller lacks a capability that the call needs
 *  - EACCES: refused by the rules of the export or by the peer's listener; the export or
 *    region was made without a right that is needed; or a listener outside the first network
 *    namespace has no key
 *  - ENOMEM: no memory, also in the memory cgroup (of the peer's exporter, if a target
 *    is opened), or RLIMIT_MEMLOCK is reached, also by all sessions of a user together
 *  - EDQUOT: a limit is reached: of the session (struct kxfer_query), of the links of
 *    a node, of the rdma cgroup (hca_handle, hca_object), or of the share that the
 *    caller's uid has of exports, links, targets or jobs (CAP_SYS_RESOURCE goes
 *    beyond shares; the uids of a user namespace count for the namespace's owner too)
 *  - EMFILE: too many sessions, of the node or of the caller's uid
 *  - EAGAIN: the session's job queue is full; reap, or read the ring, and submit again
 *  - EINTR: a signal came before anything was done
 *  - ETIMEDOUT: no answer in the time given
 *  - EHOSTUNREACH: no RDMA device or route leads to the peer
 *  - ECONNREFUSED: nothing listens at the peer's address
 *  - ECONNRESET: the link broke while the call waited for the peer
 *  - EKEYREVOKED: the export was withdrawn
 *  - ENOKEY: no key of that name that the caller can search in the kernel's keyrings
 *  - EKEYREJECTED: the peer has no such key, wants a key, or does not prove the key; or
 *    the secret in the keyring is too short
 *  - EPROTONOSUPPORT: the peer speaks no version of the protocol that this node speaks
 *  - EPROTO: the peer breaks the protocol
 *  - ENODEV: the RDMA device is gone
 *  - EIO: the RDMA device did not do what it should
 *  - EREMOTEIO: the RDMA device of the peer did not, or something else failed there
 *
 * struct kxfer_completion says how a job ended; the call does not.
 */

/** define KXFER_ABI - version of this contract; changes only if a stable call breaks */
#define KXFER_ABI		1

/** define KXFER_NAME_MAX - longest export name, without the closing zero */
#define KXFER_NAME_MAX		63
/** define KXFER_KEY_MIN - fewest bytes of a shared secret */
#define KXFER_KEY_MIN		16
/** define KXFER_KEY_TYPE - type of keys in the kernel's keyrings */
#define KXFER_KEY_TYPE		"logon"
/** define KXFER_KEY_PREFIX - prefix of the description of a key, before the name */
#define KXFER_KEY_PREFIX	"kxfer:"
/** define KXFER_DEVICE_NAME_MAX - as IB_DEVICE_NAME_MAX, closing zero included */
#define KXFER_DEVICE_NAME_MAX	64
/** define KXFER_GID_SIZE - bytes of a GID */
#define KXFER_GID_SIZE		16

/** define KXFER_SHA256_SIZE - bytes of a SHA-256 digest */
#define KXFER_SHA256_SIZE	32
/** define KXFER_PORT - default port of listeners */
#define KXFER_PORT		7625
/** define KXFER_PING_NAME - built-in read-only export of every listening node */
#define KXFER_PING_NAME		"@ping"
/** define KXFER_PING_SIZE - bytes of KXFER_PING_NAME; byte i is (i * 7 + i / 256) mod 256 */
#define KXFER_PING_SIZE		65536

/** define KXFER_MESSAGE_MAX - most bytes of payload of a message whose answer waits for no RECV */
#define KXFER_MESSAGE_MAX	992

/** define KXFER_MESSAGE_EAGER_MAX - most bytes of payload of a message that needs no answer */
#define KXFER_MESSAGE_EAGER_MAX	4096
/** define KXFER_MESSAGE_LONG_MAX - most bytes of payload with KXFER_FEATURE_LONG_MESSAGE */
#define KXFER_MESSAGE_LONG_MAX	(1024 * 1024)
/** define KXFER_MAILBOX_MAX - most messages that a mailbox holds */
#define KXFER_MAILBOX_MAX	1024

#define KXFER_TYPE		0xbd

enum {
	KXFER_CMD_QUERY		= 0x00,
	KXFER_CMD_NOP		= 0x01,
	KXFER_CMD_INFO		= 0x02,
	KXFER_CMD_REGION_ADD	= 0x10,
	KXFER_CMD_REGION_DEL	= 0x11,
	KXFER_CMD_EXPORT_ADD	= 0x12,
	KXFER_CMD_EXPORT_DEL	= 0x13,
	KXFER_CMD_EXPORT_SET	= 0x14,
	KXFER_CMD_MAILBOX_ADD	= 0x15,
	KXFER_CMD_LISTEN_ADD	= 0x20,
	KXFER_CMD_LISTEN_DEL	= 0x21,
	KXFER_CMD_PEER_OPEN	= 0x22,
	KXFER_CMD_PEER_CLOSE	= 0x23,
	KXFER_CMD_PEER_LIST	= 0x24,
	KXFER_CMD_TARGET_OPEN	= 0x28,
	KXFER_CMD_TARGET_CLOSE	= 0x29,
	KXFER_CMD_TARGET_INFO	= 0x2a,
	KXFER_CMD_SUBMIT	= 0x30,
	KXFER_CMD_REAP		= 0x31,
	KXFER_CMD_CANCEL	= 0x32,
	KXFER_CMD_EVENT_REAP	= 0x33,
	KXFER_CMD_CQ_RING	= 0x34,
	KXFER_CMD_SQ_RING	= 0x35,
	KXFER_CMD_ENTER		= 0x36,
	/* 0x40 to 0x4f: linux/kxfer_bench.h */
	KXFER_CMD_ENGINE	= 0x40,
	KXFER_CMD_ENGINE_LAST	= 0x4f,
	KXFER_CMD_URING_JOB	= 0x50,
};

/**
 * struct kxfer_addr - an IPv4 or IPv6 address with a port
 * @family: AF_INET (2) or AF_INET6 (10); 0 where an address may be left out
 * @port: in host byte order
 * @scope_id: interface index of an IPv6 link-local address, else 0
 * @addr: in network byte order; IPv4 uses the first four bytes, the rest is zero
 */
struct kxfer_addr {
	__u16 family;
	__u16 port;
	__u32 scope_id;
	__u8 addr[16];
};

/**
 * struct kxfer_query - what this module is and allows (KXFER_QUERY)
 * @size: sizeof(struct kxfer_query)
 * @flags: must be 0
 * @abi: out: KXFER_ABI of the module
 * @nr_devices: out: RDMA devices that the module has attached to
 * @features: out: KXFER_FEATURE_* bits
 * @version: out: version of the module, zero-terminated
 * @max_jobs_per_submit: out: jobs that one SUBMIT takes
 * @max_jobs: out: jobs of a session that may be in flight or not yet reaped
 * @max_regions: out: regions a session may have
 * @max_exports: out: exports a session may have
 * @max_targets: out: targets a session may have
 * @max_peers: out: peers a session may have
 * @max_listeners: out: listeners of the node
 * @max_events: out: events a session holds before notifications are refused, unless one of its
 *	exports asked for more (@nr_events of EXPORT_ADD)
 * @max_rules: out: access rules of one export
 * @__reserved: out: 0
 * @max_region_bytes: out: longest region
 */
struct kxfer_query {
	__u32 size;
	__u32 flags;
	__u32 abi;
	__u32 nr_devices;
	__aligned_u64 features;
	__u8 version[32];
	__u32 max_jobs_per_submit;
	__u32 max_jobs;
	__u32 max_regions;
	__u32 max_exports;
	__u32 max_targets;
	__u32 max_peers;
	__u32 max_listeners;
	__u32 max_events;
	__u32 max_rules;
	__u32 __reserved;
	__aligned_u64 max_region_bytes;
};

#define KXFER_FEATURE_NOTIFY	(1ULL << 0)	/* jobs of KXFER_OP_NOTIFY */
#define KXFER_FEATURE_IPV6	(1ULL << 1)
#define KXFER_FEATURE_CQ_RING	(1ULL << 2)
#define KXFER_FEATURE_URING	(1ULL << 3)	/* KXFER_URING_CMD_JOB */
/* Jobs of KXFER_OP_COMPARE_SWAP and _FETCH_ADD, between devices of KXFER_DEVICE_ATOMIC. */
#define KXFER_FEATURE_ATOMIC	(1ULL << 4)
/* KXFER_MAILBOX_ADD, jobs of KXFER_OP_SEND and _RECV. */
#define KXFER_FEATURE_MAILBOX	(1ULL << 5)
/* KXFER_JOB_F_FENCE and _ORDERED. */
#define KXFER_FEATURE_ORDER	(1ULL << 6)
/* Messages of more than KXFER_MESSAGE_MAX bytes, between nodes that both have it. */
#define KXFER_FEATURE_LONG_MESSAGE	(1ULL << 7)

/* struct kxfer_listen_add.keys, struct kxfer_peer_open.key, KXFER_RULE_KEY. */
#define KXFER_FEATURE_KEY	(1ULL << 8)

/* KXFER_JOB_F_NOTIFY. */
#define KXFER_FEATURE_WRITE_NOTIFY	(1ULL << 9)

/* KXFER_JOB_F_STORED; without that flag a SEND may complete before it is in the mailbox. */
#define KXFER_FEATURE_EAGER	(1ULL << 10)

/* KXFER_JOB_F_APART. */
#define KXFER_FEATURE_APART	(1ULL << 11)

/* Calls by io_uring: struct kxfer_uring_call. */
#define KXFER_FEATURE_URING_CALL	(1ULL << 12)

/* KXFER_JOB_F_WAIT, between nodes that both have it. */
#define KXFER_FEATURE_WAIT	(1ULL << 13)

/* KXFER_SQ_RING and KXFER_ENTER. */
#define KXFER_FEATURE_SQ_RING	(1ULL << 14)

/* struct kxfer_peer_open.loss_ms and KXFER_JOB_F_IDEMPOTENT, between nodes that both have it. */
#define KXFER_FEATURE_LOSS	(1ULL << 15)

/* struct kxfer_peer_open.via, between nodes that both have it. */
#define KXFER_FEATURE_VIA	(1ULL << 16)

/* Listeners, peers and names of exports in each network namespace, not in the first one alone. */
#define KXFER_FEATURE_NETNS	(1ULL << 17)

/* KXFER_REGION_F_DMABUF. */
#define KXFER_FEATURE_DMABUF	(1ULL << 18)

#define KXFER_QUERY		_IO(KXFER_TYPE, KXFER_CMD_QUERY)

/**
 * struct kxfer_nop - do nothing, to measure the cost of a call (KXFER_NOP)
 * @size: sizeof(struct kxfer_nop)
 * @flags: must be 0
 */
struct kxfer_nop {
	__u32 size;
	__u32 flags;
};

#define KXFER_NOP		_IO(KXFER_TYPE, KXFER_CMD_NOP)

/**
 * enum kxfer_info_kind - what INFO lists
 * @KXFER_INFO_DEVICES: struct kxfer_info_device; for every caller
 * @KXFER_INFO_LISTENERS: struct kxfer_info_listener; for every caller
 * @KXFER_INFO_EXPORTS: struct kxfer_info_export
 * @KXFER_INFO_LINKS: struct kxfer_info_link
 * @KXFER_INFO_LANES: struct kxfer_info_lane
 * @KXFER_INFO_SESSIONS: struct kxfer_info_session
 * @KXFER_INFO_COUNTERS: struct kxfer_info_counter; for every caller
 * @KXFER_INFO_LINES: struct kxfer_info_line
 * @KXFER_INFO_LATENCIES: struct kxfer_info_latency
 *
 * Of the other kinds, a caller without CAP_NET_ADMIN sees exports, sessions and lines of its
 * own effective uid; links on which a session of that uid has a peer, with their lanes
 * and latencies; and accepted links by which a peer has targets on exports of that uid,
 * without lanes. For such accepted links @nr_grants counts only those targets. @nr_sessions,
 * @nr_jobs, @idle_ns, @bytes_read, @bytes_written and @key are 0 there, because they cover
 * all users of this node.
 */
enum kxfer_info_kind {
	KXFER_INFO_DEVICES	= 1,
	KXFER_INFO_LISTENERS	= 2,
	KXFER_INFO_EXPORTS	= 3,
	KXFER_INFO_LINKS	= 4,
	KXFER_INFO_LANES	= 5,
	KXFER_INFO_SESSIONS	= 6,
	KXFER_INFO_COUNTERS	= 7,
	KXFER_INFO_LINES	= 8,
	KXFER_INFO_LATENCIES	= 9,
};

/**
 * struct kxfer_info - list objects (KXFER_INFO)
 * @size: sizeof(struct kxfer_info)
 * @flags: must be 0
 * @kind: enum kxfer_info_kind
 * @stride: bytes from one record to the next in @records: at most 4096, at least 8;
 *	records are cut or filled up with zeros to this size
 * @cursor: in: 0 to start; out: where to go on; unchanged once all records were listed
 * @records: array for the records
 * @nr: in: room in @records, 1 to 1024; out: records stored; 0: the end
 * @__reserved: must be 0
 *
 * Each record begins with a __u64 that identifies the object on this node and
 * by which the list is ordered. Objects that come or go while the list is read may
 * be listed or not.
 */
struct kxfer_info {
	__u32 size;
	__u32 flags;
	__u32 kind;
	__u32 stride;
	__aligned_u64 cursor;
	__aligned_u64 records;
	__u32 nr;
	__u32 __reserved;
};

#define KXFER_INFO		_IO(KXFER_TYPE, KXFER_CMD_INFO)

#define KXFER_DEVICE_IWARP	(1U << 0)	/* iWARP: a READ has one SGE, remotely writable */
#define KXFER_DEVICE_ROCE	(1U << 1)
#define KXFER_DEVICE_IB		(1U << 2)
#define KXFER_DEVICE_VIRT_DMA	(1U << 3)	/* software: 'DMA addresses' are kernel addresses */
#define KXFER_DEVICE_ATOMIC	(1U << 4)	/* COMPARE_SWAP and FETCH_ADD, as both ends */
#define KXFER_DEVICE_USABLE	(1U << 5)	/* has all that kxfer needs */

/**
 * struct kxfer_info_device - an RDMA device that kxfer has attached to
 * @id: order in which devices came
 * @name: as `rdma link` shows it
 * @flags: KXFER_DEVICE_*
 * @nr_ports: physical ports
 * @max_send_sge: scatter/gather entries of a SEND or WRITE
 * @max_sge_rd: scatter/gather entries of a READ
 * @max_qp_wr: work requests of a queue
 * @max_cqe: entries of a CQ
 * @max_fast_reg_pages: pages of one fast registration of the module; the device may take more
 * @max_qp_rd_atom: READs and atomics that a QP serves at once
 * @max_qp_init_rd_atom: READs and atomics that a QP issues at once
 * @nr_comp_vectors: completion vectors
 * @max_msg_bytes: longest RDMA message of port 1
 * @nr_links: links on the device
 * @nr_mappings: regions mapped for the device
 */
struct kxfer_info_device {
	__aligned_u64 id;
	__u8 name[KXFER_DEVICE_NAME_MAX];
	__u32 flags;
	__u32 nr_ports;
	__u32 max_send_sge;
	__u32 max_sge_rd;
	__u32 max_qp_wr;
	__u32 max_cqe;
	__u32 max_fast_reg_pages;
	__u32 max_qp_rd_atom;
	__u32 max_qp_init_rd_atom;
	__u32 nr_comp_vectors;
	__aligned_u64 max_msg_bytes;
	__u32 nr_links;
	__u32 nr_mappings;
};

/**
 * struct kxfer_info_listener - an address on which this node accepts links
 * @id: node-wide; what LISTEN_DEL takes
 * @addr: address and port
 * @flags: KXFER_LISTEN_F_* that the listener was made with
 * @active: 1 while it listens; 0 while the device of its address is gone
 * @device: device of the address, empty for a wildcard address
 * @nr_accepted: links accepted
 * @nr_refused: connections refused
 * @nr_keys: keys of which an initiator must prove one; 0: it takes links without a key
 * @silence_ms: accepted links end when nothing was heard of the peer for so long
 * @ack_timeout: as in struct kxfer_listen_add; what accepted links have, if it was not given
 * @__reserved: 0
 */
struct kxfer_info_listener {
	__aligned_u64 id;
	struct kxfer_addr addr;
	__u32 flags;
	__u32 active;
	__u8 device[KXFER_DEVICE_NAME_MAX];
	__aligned_u64 nr_accepted;
	__aligned_u64 nr_refused;
	__u32 nr_keys;
	__u32 silence_ms;
	__u32 ack_timeout;
	__u32 __reserved;
};

/**
 * struct kxfer_content - what an export holds, as set by its owner
 * @generation: 0: nothing set yet; grows by one with each EXPORT_SET
 * @length: bytes of content, counted from the start of the export
 * @sha256: SHA-256 of those bytes
 */
struct kxfer_content {
	__aligned_u64 generation;
	__aligned_u64 length;
	__u8 sha256[KXFER_SHA256_SIZE];
};

/**
 * struct kxfer_info_export - a region published under a name, or a mailbox
 * @id: node-wide
 * @name: zero-terminated
 * @length: bytes; of a mailbox: most payload of one message
 * @rights: KXFER_RIGHT_*
 * @nr_rules: access rules
 * @owner_uid: effective uid of the session that made the export
 * @owner_pid: process that opened that session
 * @nr_links: links on which the export is registered, or known
 * @nr_grants: targets that peers hold on the export
 * @content: what the export holds
 * @cookie: value that the owner of the export gave with it
 */
struct kxfer_info_export {
	__aligned_u64 id;
	__u8 name[KXFER_NAME_MAX + 1];
	__aligned_u64 length;
	__u32 rights;
	__u32 nr_rules;
	__u32 owner_uid;
	__u32 owner_pid;
	__u32 nr_links;
	__u32 nr_grants;
	struct kxfer_content content;
	__aligned_u64 cookie;
};

/**
 * enum kxfer_link_state - life of a link, in order
 * @KXFER_LINK_CONNECTING: rdma_cm and the handshake are at work
 * @KXFER_LINK_LIVE: jobs flow
 * @KXFER_LINK_CLOSING: QPs are drained and destroyed; jobs end
 * @KXFER_LINK_DEAD: nothing of the link is left on the device
 */
enum kxfer_link_state {
	KXFER_LINK_CONNECTING	= 1,
	KXFER_LINK_LIVE		= 2,
	KXFER_LINK_CLOSING	= 3,
	KXFER_LINK_DEAD		= 4,
};

#define KXFER_LINK_INITIATOR	(1U << 0)	/* made by this node; else it was accepted */
#define KXFER_LINK_DEDICATED	(1U << 1)	/* of one session, with a responder of verbs */
#define KXFER_LINK_EAGER	(1U << 2)	/* the modules of both ends have eager messages */

/**
 * enum kxfer_context - where completions of a lane are handled
 * @KXFER_CONTEXT_POLLED: by a session that waits for completions, if one polls
 *	(KXFER_WAIT_F_*); else by a workqueue, bound to the CPU of the interrupt
 * @KXFER_CONTEXT_WORKQUEUE: the RDMA core's ib_comp_wq, bound to the CPU of the interrupt
 * @KXFER_CONTEXT_SOFTIRQ: irq_poll
 * @KXFER_CONTEXT_UNBOUND: ib_comp_unbound_wq, any CPU
 * @KXFER_CONTEXT_DIRECT: dedicated connections only: by the call that waits for them
 *	(IB_POLL_DIRECT), and nowhere else; the CQ is never armed. Not with PREEMPT_RT
 */
enum kxfer_context {
	KXFER_CONTEXT_POLLED	= 0,
	KXFER_CONTEXT_WORKQUEUE	= 1,
	KXFER_CONTEXT_SOFTIRQ	= 2,
	KXFER_CONTEXT_UNBOUND	= 3,
	KXFER_CONTEXT_DIRECT	= 4,
};

/**
 * struct kxfer_info_link - the connection with a peer node
 * @id: node-wide
 * @local: own address
 * @remote: peer's address; the port is the listener's (initiator) or the
 *	reserved source port (accepted link)
 * @device: name of the device
 * @flags: KXFER_LINK_*
 * @state: enum kxfer_link_state
 * @error: 0, or the errno that ended the link
 * @context: enum kxfer_context of the data lanes
 * @tos: IP type of service of the packets, as in the QP; 0 for an accepted iWARP link, where
 *	it is not known
 * @gid_type: enum ib_gid_type of the path: 0 IB or RoCE v1, 1 RoCE v1, 2 RoCE v2; ~0 none (iWARP)
 * @nr_lanes: data lanes
 * @nr_sessions: sessions of this node that use the link
 * @nr_grants: targets open on it (initiator), or grants that the peer holds (accepted link)
 * @nr_jobs: jobs queued or posted
 * @rtt_ns: duration of the last keep-alive, 0: none yet
 * @age_ns: time since the link was made
 * @idle_ns: time since the last message or completion from the peer
 * @bytes_read: payload that READs brought here
 * @bytes_written: payload that WRITEs took to the peer
 * @key: name that this node has for the key that both ends proved; empty: none
 * @sgid: own GID, as in the QP; 0: not known, or none (iWARP)
 * @dgid: GID of the peer, as in the QP; 0: not known, or none (iWARP)
 * @silence_ms: the link ends when nothing was heard of the peer for so long
 * @ack_timeout: as in struct kxfer_peer_open, of the QPs of this end; 0: not known yet, or none
 *	(iWARP)
 * @retry_count: as in struct kxfer_peer_open; of an accepted link as the initiator wants it; 0
 *	also: not known yet, or none (iWARP)
 * @in_flight_kib: as in struct kxfer_peer_open; 0 for an accepted link and a dedicated one, which
 *	have no jobs
 */
struct kxfer_info_link {
	__aligned_u64 id;
	struct kxfer_addr local;
	struct kxfer_addr remote;
	__u8 device[KXFER_DEVICE_NAME_MAX];
	__u32 flags;
	__u32 state;
	__s32 error;
	__u32 context;
	__u32 tos;
	__u32 gid_type;
	__u32 nr_lanes;
	__u32 nr_sessions;
	__u32 nr_grants;
	__u32 nr_jobs;
	__aligned_u64 rtt_ns;
	__aligned_u64 age_ns;
	__aligned_u64 idle_ns;
	__aligned_u64 bytes_read;
	__aligned_u64 bytes_written;
	__u8 key[KXFER_NAME_MAX + 1];
	__u8 sgid[KXFER_GID_SIZE];
	__u8 dgid[KXFER_GID_SIZE];
	__u32 silence_ms;
	__u32 ack_timeout;
	__u32 retry_count;
	__u32 in_flight_kib;
};

/**
 * struct kxfer_info_lane - one QP of a link
 * @id: node-wide
 * @link: id of its link
 * @index: 0: the control QP; data lanes from 1
 * @credits: work requests that may be posted now
 * @max_credits: work requests that the send queue takes
 * @nr_queued: jobs waiting for credits
 * @nr_posted: jobs with work requests posted
 * @max_send_sge: SGEs that a work request on the lane uses
 * @nr_wr: work requests posted since the lane was made
 * @nr_completions: completions seen since the lane was made
 * @max_inline: bytes that a WRITE carries in its work request, so that the device reads no
 *	memory for the WRITE; 0: none
 * @path_mtu: bytes of payload in a packet, as in the QP; it does not follow changes of the
 *	port's MTU; 0: not known, or not connected, or none (iWARP)
 */
struct kxfer_info_lane {
	__aligned_u64 id;
	__aligned_u64 link;
	__u32 index;
	__u32 credits;
	__u32 max_credits;
	__u32 nr_queued;
	__u32 nr_posted;
	__u32 max_send_sge;
	__aligned_u64 nr_wr;
	__aligned_u64 nr_completions;
	__u32 max_inline;
	__u32 path_mtu;
};

/**
 * struct kxfer_info_session - one open file on /dev/kxfer
 * @id: node-wide
 * @pid: process that opened the file
 * @uid: effective uid of the opener
 * @nr_regions: regions
 * @nr_exports: exports
 * @nr_peers: peers
 * @nr_targets: targets
 * @nr_jobs: jobs in flight
 * @nr_done: completions not yet reaped, or unread in the ring
 * @pinned_bytes: memory pinned
 */
struct kxfer_info_session {
	__aligned_u64 id;
	__u32 pid;
	__u32 uid;
	__u32 nr_regions;
	__u32 nr_exports;
	__u32 nr_peers;
	__u32 nr_targets;
	__u32 nr_jobs;
	__u32 nr_done;
	__aligned_u64 pinned_bytes;
};

/**
 * struct kxfer_info_counter - a counter of the module
 * @id: position in the list
 * @name: zero-terminated; live_* count objects in existence, all others only grow
 * @value: current value
 */
struct kxfer_info_counter {
	__aligned_u64 id;
	__u8 name[48];
	__aligned_u64 value;
};

/**
 * enum kxfer_line_event_type - what happened to a line
 * @KXFER_LINE_OPENED: PEER_OPEN connected, or joined @link
 * @KXFER_LINE_BROKE: @link ended with @error; @nr: 1
 * @KXFER_LINE_WAITED: @nr jobs began to wait for another link
 * @KXFER_LINE_TRIED: no link could be made, or the peer did not answer on the new one, @nr times;
 *	the last reason is @error
 * @KXFER_LINE_CONNECTED: @link was made or joined in place of the one before
 * @KXFER_LINE_RENEWED: @nr targets were granted again on @link
 * @KXFER_LINE_REVOKED: @nr targets ended: @error is EKEYREVOKED if another export has the name,
 *	else the reason why the peer does not grant it any more
 * @KXFER_LINE_RESTARTED: the peer's module was loaded again since; no export is that of before
 * @KXFER_LINE_RESUMED: @nr jobs went on over @link
 * @KXFER_LINE_LOST: loss_ms passed: @nr jobs that waited ended
 */
enum kxfer_line_event_type {
	KXFER_LINE_OPENED	= 1,
	KXFER_LINE_BROKE	= 2,
	KXFER_LINE_WAITED	= 3,
	KXFER_LINE_TRIED	= 4,
	KXFER_LINE_CONNECTED	= 5,
	KXFER_LINE_RENEWED	= 6,
	KXFER_LINE_REVOKED	= 7,
	KXFER_LINE_RESTARTED	= 8,
	KXFER_LINE_RESUMED	= 9,
	KXFER_LINE_LOST		= 10,
};

/** define KXFER_LINE_EVENTS - events that a line keeps: the last ones */
#define KXFER_LINE_EVENTS	16

/**
 * struct kxfer_line_event - something that happened to a line
 * @age_ns: time since then, or since the last time if @nr is more than 1
 * @link: id of the link, or 0
 * @type: enum kxfer_line_event_type
 * @error: 0, or a negative errno
 * @nr: how many times in a row, or how many jobs
 * @__reserved: 0
 */
struct kxfer_line_event {
	__aligned_u64 age_ns;
	__aligned_u64 link;
	__u32 type;
	__s32 error;
	__u32 nr;
	__u32 __reserved;
};

#define KXFER_LINE_DOWN		(1U << 0)	/* jobs wait for a link */

/**
 * struct kxfer_info_line - what a session holds of a peer that was opened with loss_ms
 * @id: node-wide
 * @session: id of its session
 * @link: id of the link that it uses now, or used last
 * @remote: the peer's listener, by the path of @link
 * @peer: id of the peer in its session
 * @flags: KXFER_LINE_DOWN
 * @loss_ms: as in struct kxfer_peer_open
 * @nr_waiting: jobs that wait for a link
 * @nr_events: events since the line was opened; KXFER_LINE_EVENTS of them are here at most
 * @__reserved: 0
 * @events: the last events, the oldest first; the rest is 0
 */
struct kxfer_info_line {
	__aligned_u64 id;
	__aligned_u64 session;
	__aligned_u64 link;
	struct kxfer_addr remote;
	__u32 peer;
	__u32 flags;
	__u32 loss_ms;
	__u32 nr_waiting;
	__u32 nr_events;
	__u32 __reserved;
	struct kxfer_line_event events[KXFER_LINE_EVENTS];
};

/** define KXFER_LATENCY_BUCKETS - buckets of a struct kxfer_info_latency */
#define KXFER_LATENCY_BUCKETS	80

/**
 * struct kxfer_info_latency - how long jobs of one op took on one lane of a link made here
 * @id: node-wide: 8 times @lane, plus @op
 * @lane: id of the lane
 * @link: id of its link
 * @op: enum kxfer_op: READ to SEND; NOP and RECV use no lane
 * @__reserved: 0
 * @nr_failed: jobs that ended with an error, also those that were cancelled or withdrawn
 * @sum_ns: sum of the times of all jobs in @buckets
 * @buckets: number of jobs that succeeded, by their time from submission to completion, in ns.
 *	Bucket i begins at (4 + i % 4) << (8 + i / 4) and ends where the next one begins; the
 *	first begins at 0 and ends at 1280, the last begins at 939524096 and has no end
 *
 * There is a record for each op of which a job has ended on the lane. All is counted since the
 * lane was made, and gone with its link. Jobs that end meanwhile may be in some of the figures of
 * a record and not in others.
 */
struct kxfer_info_latency {
	__aligned_u64 id;
	__aligned_u64 lane;
	__aligned_u64 link;
	__u32 op;
	__u32 __reserved;
	__aligned_u64 nr_failed;
	__aligned_u64 sum_ns;
	__aligned_u64 buckets[KXFER_LATENCY_BUCKETS];
};

/**
 * struct kxfer_region_add - pin memory of the calling process, or take that of a dma-buf
 *	(KXFER_REGION_ADD)
 * @size: sizeof(struct kxfer_region_add)
 * @flags: KXFER_REGION_F_*
 * @addr: address of the first byte; need not be aligned; with KXFER_REGION_F_DMABUF the offset
 *	of the first byte in the buffer
 * @length: bytes, at least 1
 * @region: out: id
 * @nr_segments: out: physically contiguous pieces; 0: not known, as for a dma-buf
 * @dmabuf_fd: descriptor of the dma-buf; 0 without KXFER_REGION_F_DMABUF
 * @__reserved: must be 0
 *
 * The pages stay those at the time of the call: the region does not follow munmap,
 * truncation, hole punching and COW after fork. They count against RLIMIT_MEMLOCK as
 * with ibv_reg_mr (mm->pinned_vm).
 *
 * A dma-buf stays while the region does, also when the descriptor is closed; nothing is charged
 * for it, as with ibv_reg_dmabuf_mr. It is pinned and mapped for a device at the first use, by a
 * job or a peer. What cannot reach it gets EOPNOTSUPP then: the exporter has no memory for this
 * device, the device sees copies (bounce buffers), or it is rxe or siw and the memory has no
 * struct page. ETIMEDOUT: a move of its memory did not end within 2 s. READ, WRITE, the atomics
 * and exports work; the CPU looks at no byte, so SEND, RECV and KXFER_BENCH give EOPNOTSUPP.
 * Who works on the buffer by the CPU uses DMA_BUF_IOCTL_SYNC. Jobs do not wait for fences of
 * other work on the buffer.
 *
 * EBADF: no descriptor. EINVAL: no dma-buf. ERANGE: beyond the buffer's end. EACCES: written,
 * and the descriptor is open for reading only.
 */
struct kxfer_region_add {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 region;
	__u32 nr_segments;
	__s32 dmabuf_fd;
	__u32 __reserved;
};

/*
 * The memory may be written: by jobs of READ, COMPARE_SWAP, FETCH_ADD and RECV, and by peers
 * through exports with KXFER_RIGHT_WRITE or KXFER_RIGHT_ATOMIC.
 */
#define KXFER_REGION_F_WRITE	(1U << 0)
/* The memory is that of a dma-buf: KXFER_FEATURE_DMABUF. */
#define KXFER_REGION_F_DMABUF	(1U << 1)

#define KXFER_REGION_ADD	_IO(KXFER_TYPE, KXFER_CMD_REGION_ADD)

/**
 * struct kxfer_id - a call that names one object of the session
 * @size: sizeof(struct kxfer_id)
 * @flags: must be 0
 * @id: id of the object
 * @__reserved: must be 0
 *
 * For REGION_DEL (EBUSY while jobs or an export use the region), EXPORT_DEL (returns when
 * no peer can reach the memory or the mailbox any more), PEER_CLOSE (EBUSY while targets of
 * the peer are open), TARGET_CLOSE (EBUSY while jobs use the target).
 */
struct kxfer_id {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 __reserved;
};

#define KXFER_REGION_DEL	_IO(KXFER_TYPE, KXFER_CMD_REGION_DEL)

#define KXFER_RIGHT_READ	(1U << 0)
#define KXFER_RIGHT_WRITE	(1U << 1)
#define KXFER_RIGHT_ATOMIC	(1U << 2)	/* COMPARE_SWAP, FETCH_ADD */
#define KXFER_RIGHT_SEND	(1U << 3)	/* the only right of a mailbox */
/* Rights that an export of memory may have; and all rights. */
#define KXFER_RIGHT_ALL		(KXFER_RIGHT_READ | KXFER_RIGHT_WRITE | KXFER_RIGHT_ATOMIC)
#define KXFER_RIGHT_ANY		(KXFER_RIGHT_ALL | KXFER_RIGHT_SEND)

#define KXFER_RULE_ADDR		(1U << 0)	/* @addr and @prefix_len must match */
#define KXFER_RULE_UID		(1U << 1)	/* @uid must match */
#define KXFER_RULE_GID		(1U << 2)	/* @gid must match: the effective gid */
#define KXFER_RULE_KEY		(1U << 3)	/* the peer must have proved the key @key */
/*
 * Not a condition: the uid and gid that the peer sends are not believed. Events and messages
 * show KXFER_UID_UNKNOWN. Not together with KXFER_RULE_UID or _GID.
 */
#define KXFER_RULE_NO_UIDS	(1U << 4)

/** define KXFER_UID_UNKNOWN - uid and gid of a peer's process that are not believed */
#define KXFER_UID_UNKNOWN	0xffffffffU

/**
 * struct kxfer_rule - which peers may open an export, and with which rights
 * @match: KXFER_RULE_*; all conditions named must hold; 0 matches every peer
 * @rights: KXFER_RIGHT_* granted, a subset of the export's; 0 refuses
 * @uid: effective uid of the peer's process, as the peer's kernel says
 * @gid: effective gid of the peer's process, as the peer's kernel says
 * @prefix_len: bits of @addr that count
 * @__reserved: must be 0
 * @addr: network; its port must be 0
 * @key: name of a key of the listener, zero-terminated and zero-filled
 *
 * The first rule that matches decides; if no rule matches, the open is refused. Members of
 * a longer rule that the caller does not know are 0: no condition.
 */
struct kxfer_rule {
	__u32 match;
	__u32 rights;
	__u32 uid;
	__u32 gid;
	__u32 prefix_len;
	__u32 __reserved;
	struct kxfer_addr addr;
	__u8 key[KXFER_NAME_MAX + 1];
};

#define KXFER_RULE_SIZE_MIN	112	/* bytes in the first release */

/**
 * struct kxfer_export_add - publish a range of a region (KXFER_EXPORT_ADD)
 * @size: sizeof(struct kxfer_export_add)
 * @flags: must be 0
 * @region: id of the region
 * @rights: KXFER_RIGHT_*, at least one; WRITE and ATOMIC need a region made with
 *	KXFER_REGION_F_WRITE. ATOMIC is granted only on links whose device has
 *	KXFER_DEVICE_ATOMIC
 * @offset: first byte, counted from the start of the region
 * @length: bytes, at least 1
 * @name: [A-Za-z0-9._-]{1,63}, zero-terminated and zero-filled; unique on this node
 * @rules: array of struct kxfer_rule
 * @nr_rules: entries of @rules; 0: every peer whose link is accepted gets @rights
 * @export_id: out: id of the export
 * @rule_stride: bytes from one rule to the next: sizeof(struct kxfer_rule) as the caller
 *	knows it, from KXFER_RULE_SIZE_MIN to 256, a multiple of 8; members of a longer
 *	rule that the module does not know must be zero (E2BIG). 0 without rules
 * @nr_events: events that the session holds from now on, at least; 0: @max_events of QUERY; at
 *	most KXFER_EVENTS_MAX. The queue is one of the session, and does not become shorter again
 * @cookie: any value: TARGET_OPEN and TARGET_INFO give it to each process that has the
 *	export open. It stays as long as the export
 *
 * For each device there is, the rdma cgroup of the caller is charged with an hca_object
 * for each registration that a link needs for the export, until the export is withdrawn.
 */
struct kxfer_export_add {
	__u32 size;
	__u32 flags;
	__u32 region;
	__u32 rights;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u8 name[KXFER_NAME_MAX + 1];
	__aligned_u64 rules;
	__u32 nr_rules;
	__u32 export_id;
	__u32 rule_stride;
	__u32 nr_events;
	__aligned_u64 cookie;
};

#define KXFER_EVENTS_MAX	16384	/* unread events of a session, 1 MiB */

#define KXFER_EXPORT_ADD	_IO(KXFER_TYPE, KXFER_CMD_EXPORT_ADD)
#define KXFER_EXPORT_DEL	_IO(KXFER_TYPE, KXFER_CMD_EXPORT_DEL)

/**
 * struct kxfer_export_set - say what an export holds now (KXFER_EXPORT_SET)
 * @size: sizeof(struct kxfer_export_set)
 * @flags: must be 0
 * @export_id: id
 * @__reserved: must be 0
 * @content: @content.generation must be 0 and is returned; the length is at most that
 *	of the export
 *
 * Peers that hold targets are notified.
 */
struct kxfer_export_set {
	__u32 size;
	__u32 flags;
	__u32 export_id;
	__u32 __reserved;
	struct kxfer_content content;
};

#define KXFER_EXPORT_SET	_IO(KXFER_TYPE, KXFER_CMD_EXPORT_SET)

/**
 * struct kxfer_mailbox_add - publish a mailbox (KXFER_MAILBOX_ADD)
 * @size: sizeof(struct kxfer_mailbox_add)
 * @flags: must be 0
 * @name: as in struct kxfer_export_add, and in the same name space
 * @rules: array of struct kxfer_rule, whose rights are KXFER_RIGHT_SEND or 0
 * @nr_rules: entries of @rules; 0: every peer whose link is accepted may send
 * @capacity: messages that the mailbox holds, 1 to KXFER_MAILBOX_MAX
 * @max_bytes: most payload of one message, 1 to KXFER_MESSAGE_LONG_MAX
 * @export_id: out: id of the mailbox
 * @rule_stride: as in struct kxfer_export_add
 * @message_size: sizeof(struct kxfer_message) as the caller knows it, from
 *	KXFER_MESSAGE_SIZE_MIN to 256, a multiple of 8: so many bytes stand before the payload
 *	of each message. Bytes that the module does not know are 0. 0: KXFER_MESSAGE_SIZE_MIN
 * @cookie: as in struct kxfer_export_add
 *
 * A mailbox is an export that has no memory of a region and one right, KXFER_RIGHT_SEND:
 * it is opened, listed, counted and withdrawn as any other, EXPORT_DEL ends it, and
 * @max_bytes is its length. Peers put messages in by jobs of KXFER_OP_SEND; the session
 * that made the mailbox takes them out by jobs of KXFER_OP_RECV. EXPORT_SET of a mailbox
 * fails with EOPNOTSUPP.
 *
 * The memory for @capacity messages is allocated at once and charged to the caller: at most
 * KXFER_MESSAGE_EAGER_MAX bytes for each, because longer messages stay with their senders until
 * there is a RECV. Messages that have not been received when the mailbox ends are lost,
 * although their SENDs succeeded; but the SEND of a long message ends with EKEYREVOKED. Some
 * places are kept for a target whose messages then need no answer, a quarter of those that are
 * free at most. For others the mailbox is full when only such places are left.
 */
struct kxfer_mailbox_add {
	__u32 size;
	__u32 flags;
	__u8 name[KXFER_NAME_MAX + 1];
	__aligned_u64 rules;
	__u32 nr_rules;
	__u32 capacity;
	__u32 max_bytes;
	__u32 export_id;
	__u32 rule_stride;
	__u32 message_size;
	__aligned_u64 cookie;
};

#define KXFER_MAILBOX_ADD	_IO(KXFER_TYPE, KXFER_CMD_MAILBOX_ADD)

/* @immediate was sent with the message. */
#define KXFER_MESSAGE_F_IMM	(1U << 0)

/**
 * struct kxfer_message - what a RECV puts before the payload of a message
 * @time_ns: time of arrival, CLOCK_MONOTONIC
 * @bytes: bytes of payload, which follows
 * @flags: KXFER_MESSAGE_F_*
 * @immediate: immediate that the sender gave, or 0
 * @__reserved: 0
 * @peer: address of the sender's node
 * @uid: effective uid of the process there, as its kernel says
 * @gid: effective gid of the process there, as its kernel says
 * @word: @word of the TARGET_OPEN that opened the mailbox there: chosen by the process that
 *	made that call, and carried by its kernel. Proves no more than @uid does
 *
 * @message_size of struct kxfer_mailbox_add says how many bytes of it there are.
 */
struct kxfer_message {
	__aligned_u64 time_ns;
	__u32 bytes;
	__u32 flags;
	__u32 immediate;
	__u32 __reserved;
	struct kxfer_addr peer;
	__u32 uid;
	__u32 gid;
	__aligned_u64 word;
};

#define KXFER_MESSAGE_SIZE_MIN	56	/* bytes in the first release */

/* The listener belongs to the module until LISTEN_DEL or removal of the module. */
#define KXFER_LISTEN_F_KEEP	(1U << 0)
/* Accept links from any source port: a process that can open a QP may pass for a kernel. */
#define KXFER_LISTEN_F_ANY_PORT	(1U << 1)

/**
 * struct kxfer_key_name - names a shared secret
 * @name: zero-terminated and zero-filled; letters, digits, '.', '_' and '-'
 *
 * The secret is the payload, at least KXFER_KEY_MIN bytes, of a key of type KXFER_KEY_TYPE
 * whose description is KXFER_KEY_PREFIX and @name. The caller must be able to search that
 * key in the kernel's keyrings. The secret is copied when the call is made: later changes
 * of the key in the keyring have no effect on listeners, peers and links.
 */
struct kxfer_key_name {
	__u8 name[KXFER_NAME_MAX + 1];
};

/** define KXFER_LISTEN_KEYS_MAX - most keys of a listener */
#define KXFER_LISTEN_KEYS_MAX	8

/**
 * struct kxfer_listen_add - accept links (KXFER_LISTEN_ADD); needs CAP_NET_ADMIN
 * @size: sizeof(struct kxfer_listen_add)
 * @flags: KXFER_LISTEN_F_*
 * @addr: address to listen on; port 0: KXFER_PORT
 * @listener: out: node-wide id
 * @keys: array of struct kxfer_key_name, or 0
 * @nr_keys: entries of @keys, at most KXFER_LISTEN_KEYS_MAX
 * @silence_ms: as in struct kxfer_peer_open, for this end of the accepted links
 * @ack_timeout: as in struct kxfer_peer_open, for this end of the accepted links. How often
 *	their QPs send again is the initiator's choice, and so is the type of service
 * @__reserved: must be 0
 *
 * With keys an initiator must prove any one of them; so keys can be changed while peers
 * use the old one and the new one. Without keys an initiator that comes with a key is
 * refused, and only the network protects the listener.
 *
 * The listener is in the network namespace of the session's opener. In other namespaces than the
 * first a listener without keys is refused with EACCES, and KXFER_LISTEN_F_KEEP with EOPNOTSUPP.
 */
struct kxfer_listen_add {
	__u32 size;
	__u32 flags;
	struct kxfer_addr addr;
	__aligned_u64 listener;
	__aligned_u64 keys;
	__u32 nr_keys;
	__u32 silence_ms;
	__u32 ack_timeout;
	__u32 __reserved;
};

#define KXFER_LISTEN_ADD	_IO(KXFER_TYPE, KXFER_CMD_LISTEN_ADD)

/**
 * struct kxfer_listen_del - stop listening (KXFER_LISTEN_DEL); needs CAP_NET_ADMIN
 * @size: sizeof(struct kxfer_listen_del)
 * @flags: must be 0
 * @listener: node-wide id, of any session or of the module
 *
 * Links that the listener accepted stay.
 */
struct kxfer_listen_del {
	__u32 size;
	__u32 flags;
	__aligned_u64 listener;
};

#define KXFER_LISTEN_DEL	_IO(KXFER_TYPE, KXFER_CMD_LISTEN_DEL)

/**
 * enum kxfer_refusal - why a peer refused a link; both kernels log the reason in words
 * @KXFER_REFUSAL_NONE: the link was not refused
 * @KXFER_REFUSAL_MAGIC: not kxfer's private data
 * @KXFER_REFUSAL_VERSION: no protocol version in common
 * @KXFER_REFUSAL_PORT: source port not below 1024
 * @KXFER_REFUSAL_COOKIE: a data lane that shows no cookie of a live link
 * @KXFER_REFUSAL_LIMIT: too many links
 * @KXFER_REFUSAL_RESOURCES: no memory or no room on the device
 * @KXFER_REFUSAL_CLOSING: the node is shutting down
 * @KXFER_REFUSAL_ADDRESS: the addresses in the request are not those of its path
 * @KXFER_REFUSAL_KEY: a key is wanted and none was shown, or the other way round, or the
 *	proof is wrong
 */
enum kxfer_refusal {
	KXFER_REFUSAL_NONE	= 0,
	KXFER_REFUSAL_MAGIC	= 1,
	KXFER_REFUSAL_VERSION	= 2,
	KXFER_REFUSAL_PORT	= 3,
	KXFER_REFUSAL_COOKIE	= 4,
	KXFER_REFUSAL_LIMIT	= 5,
	KXFER_REFUSAL_RESOURCES	= 6,
	KXFER_REFUSAL_CLOSING	= 7,
	KXFER_REFUSAL_ADDRESS	= 8,
	KXFER_REFUSAL_KEY	= 9,
};

/*
 * In place of an enum kxfer_refusal: the transport refused, not kxfer. The low bits then have
 * the reason of InfiniBand's communication manager (REJ), for example 8: nothing listens there.
 */
#define KXFER_REFUSAL_TRANSPORT	(1U << 16)

#define KXFER_PEER_F_TOS	(1U << 0)	/* @tos is given */

#define KXFER_MAX_VIA		7	/* paths beside the first */

/**
 * struct kxfer_path - a way to a peer
 * @remote: as in struct kxfer_peer_open
 * @local: as there
 * @device: as there
 */
struct kxfer_path {
	struct kxfer_addr remote;
	struct kxfer_addr local;
	__u8 device[KXFER_DEVICE_NAME_MAX];
};

/** define KXFER_SILENCE_MIN_MS - shortest @silence_ms */
#define KXFER_SILENCE_MIN_MS	1000
/** define KXFER_SILENCE_MAX_MS - longest @silence_ms */
#define KXFER_SILENCE_MAX_MS	30000
/** define KXFER_ACK_TIMEOUT_MIN - least @ack_timeout: 1 ms */
#define KXFER_ACK_TIMEOUT_MIN	8
/** define KXFER_ACK_TIMEOUT_MAX - largest @ack_timeout: 4.3 s */
#define KXFER_ACK_TIMEOUT_MAX	20
/** define KXFER_RETRY_COUNT_MAX - largest @retry_count */
#define KXFER_RETRY_COUNT_MAX	7
/** define KXFER_IN_FLIGHT_MIN_KIB - smallest @in_flight_kib */
#define KXFER_IN_FLIGHT_MIN_KIB	1024
/** define KXFER_IN_FLIGHT_MAX_KIB - largest @in_flight_kib: 256 MiB */
#define KXFER_IN_FLIGHT_MAX_KIB	262144

/**
 * struct kxfer_peer_open - connect with a node, or join the link to it (KXFER_PEER_OPEN)
 * @size: sizeof(struct kxfer_peer_open)
 * @flags: KXFER_PEER_F_TOS or 0
 * @remote: the peer's listener; port 0: KXFER_PORT
 * @local: own address to connect from, or family 0; its port must be 0
 * @device: device that the link must use, or empty; EADDRNOTAVAIL if the
 *	address leads elsewhere
 * @context: enum kxfer_context of the link's data lanes
 * @tos: with KXFER_PEER_F_TOS: IP type of service, 0 to 255; else 0: the link has the
 *	default of its device (default_roce_tos of rdma_cm's configfs)
 * @timeout_ms: 1 to 60000
 * @peer: out: id of the peer
 * @refusal: out, also if the call fails (EACCES, EPROTONOSUPPORT, EDQUOT, ECONNREFUSED,
 *	ECONNRESET, EKEYREJECTED): enum kxfer_refusal, or KXFER_REFUSAL_TRANSPORT and a reason
 * @loss_ms: 0 to 3600000. 0: jobs end with ECONNRESET when their link breaks. Else jobs to the
 *	targets of this peer may outlive their link: they wait so long for another one, or until
 *	their deadline, and go on there. READs do, and WRITEs with KXFER_JOB_F_IDEMPOTENT, behind
 *	the bytes that are known to be there; and jobs of which nothing was posted, unless a job of
 *	the session before them, to a target of this peer, has ended with the link. All
 *	others end with ECONNRESET. A target is granted again first; EKEYREVOKED: its export is
 *	not there any more. EOPNOTSUPP: the peer lacks KXFER_FEATURE_LOSS
 * @link: out: node-wide id of the link
 * @key: name of the key that both ends must prove (struct kxfer_key_name), or empty.
 *	Sessions with the same name and secret share a link
 * @via: address of an array of struct kxfer_path: more ways to the same node, which stand by. The
 *	first path is @remote, @local and @device. If no link can be made over a path, or the link
 *	breaks, the next one is tried, in turn; the time of a call is divided among them. Once the
 *	first path works again the peer goes back to it: new jobs wait then, at most a second,
 *	until those in flight have ended
 * @nr_via: number of paths at @via, 0 to KXFER_MAX_VIA; needs @loss_ms. EOPNOTSUPP: the peer lacks
 *	KXFER_FEATURE_VIA
 * @silence_ms: the link ends when nothing was heard of the peer for so long; KXFER_SILENCE_MIN_MS
 *	to KXFER_SILENCE_MAX_MS; 0: 8000. A PING asks the peer four times meanwhile, at least every
 *	2 s. The peer judges this node by the @silence_ms of its listener
 * @ack_timeout: InfiniBand, RoCE: the device of this node waits 4.096 us * 2^n for an
 *	acknowledgment, and then sends again; KXFER_ACK_TIMEOUT_MIN to KXFER_ACK_TIMEOUT_MAX. 0: so
 *	long that all tries together take half of @silence_ms or more, which is 17 (0.54 s) if all
 *	three are 0
 * @retry_count: InfiniBand, RoCE: how often the devices of both ends send again before they give
 *	up, which ends the link; 1 to KXFER_RETRY_COUNT_MAX; 0: 7
 * @in_flight_kib: most payload, in KiB, that jobs of more than 64 KiB have posted at a time, of all
 *	sessions on the link; the last job may go beyond. KXFER_IN_FLIGHT_MIN_KIB to
 *	KXFER_IN_FLIGHT_MAX_KIB; 0: 4096. A link needs its bandwidth times its round trip. Others'
 *	bulk jobs wait for that much
 * @__reserved: must be 0
 */
struct kxfer_peer_open {
	__u32 size;
	__u32 flags;
	struct kxfer_addr remote;
	struct kxfer_addr local;
	__u8 device[KXFER_DEVICE_NAME_MAX];
	__u32 context;
	__u32 tos;
	__u32 timeout_ms;
	__u32 peer;
	__u32 refusal;
	__u32 loss_ms;
	__aligned_u64 link;
	__u8 key[KXFER_NAME_MAX + 1];
	__aligned_u64 via;
	__u32 nr_via;
	__u32 silence_ms;
	__u32 ack_timeout;
	__u32 retry_count;
	__u32 in_flight_kib;
	__u32 __reserved;
};

#define KXFER_PEER_OPEN		_IO(KXFER_TYPE, KXFER_CMD_PEER_OPEN)
#define KXFER_PEER_CLOSE	_IO(KXFER_TYPE, KXFER_CMD_PEER_CLOSE)

/**
 * struct kxfer_peer_export - an export that a peer grants the caller
 * @name: zero-terminated
 * @length: bytes; of a mailbox (KXFER_RIGHT_SEND): most payload of one message
 * @rights: KXFER_RIGHT_* that the caller would get
 * @__reserved: 0
 * @content: what the export holds
 */
struct kxfer_peer_export {
	__u8 name[KXFER_NAME_MAX + 1];
	__aligned_u64 length;
	__u32 rights;
	__u32 __reserved;
	struct kxfer_content content;
};

/**
 * struct kxfer_peer_list - exports of a peer that are open to the caller (KXFER_PEER_LIST)
 * @size: sizeof(struct kxfer_peer_list)
 * @flags: must be 0
 * @peer: id of the peer
 * @timeout_ms: 1 to 60000
 * @cursor: in: 0 to start; out: where to go on
 * @exports: array of struct kxfer_peer_export
 * @nr: in: room in @exports, 1 to 1024; out: records stored; 0: the end
 * @__reserved: must be 0
 */
struct kxfer_peer_list {
	__u32 size;
	__u32 flags;
	__u32 peer;
	__u32 timeout_ms;
	__aligned_u64 cursor;
	__aligned_u64 exports;
	__u32 nr;
	__u32 __reserved;
};

#define KXFER_PEER_LIST		_IO(KXFER_TYPE, KXFER_CMD_PEER_LIST)

/**
 * struct kxfer_target_open - get access to an export of a peer (KXFER_TARGET_OPEN)
 * @size: sizeof(struct kxfer_target_open)
 * @flags: must be 0
 * @peer: id of the peer; a broken link is connected again
 * @rights: KXFER_RIGHT_* asked for; 0: whatever is granted, ATOMIC only if the peer's
 *	device has atomics
 * @name: as in struct kxfer_export_add, or KXFER_PING_NAME
 * @timeout_ms: 1 to 60000
 * @target: out: id of the target
 * @granted: out: KXFER_RIGHT_*
 * @nr_keys: out: registrations that the export consists of; 0 for a mailbox
 * @length: out: bytes; of a mailbox: most payload of one message
 * @content: out: what the export holds
 * @cookie: out: value that the owner gave with the export, as the peer's kernel says
 * @word: of a mailbox: any value, which the receiver finds in struct kxfer_message of each
 *	message that is sent to this target; else 0 (EINVAL if memory is opened)
 * @node: out: number of the peer's node since its module was loaded, as its kernel says; 0: not
 *	known, because the peer was opened without @loss_ms
 * @export_id: out: number of the export there, which no other has had since then; 0: not known. So
 *	two targets are of one export if both numbers are the same, whatever path leads there
 *
 * ENOENT: no such export; EACCES: the rules of the export refuse, or the export lacks a
 * right asked for; EOPNOTSUPP: the peer's device sees memory through bounce buffers
 * (swiotlb), so that only KXFER_PING_NAME can be exported on it, or the device has no
 * atomics and nothing else is asked for, or granted.
 */
struct kxfer_target_open {
	__u32 size;
	__u32 flags;
	__u32 peer;
	__u32 rights;
	__u8 name[KXFER_NAME_MAX + 1];
	__u32 timeout_ms;
	__u32 target;
	__u32 granted;
	__u32 nr_keys;
	__aligned_u64 length;
	struct kxfer_content content;
	__aligned_u64 cookie;
	__aligned_u64 word;
	__aligned_u64 node;
	__aligned_u64 export_id;
};

#define KXFER_TARGET_OPEN	_IO(KXFER_TYPE, KXFER_CMD_TARGET_OPEN)
#define KXFER_TARGET_CLOSE	_IO(KXFER_TYPE, KXFER_CMD_TARGET_CLOSE)

/**
 * struct kxfer_target_info - what a target's export holds now (KXFER_TARGET_INFO)
 * @size: sizeof(struct kxfer_target_info)
 * @flags: must be 0
 * @target: id of the target
 * @timeout_ms: 1 to 3600000
 * @min_generation: wait until the generation is at least this; 0: ask the peer and
 *	return at once
 * @length: out: bytes of the export
 * @granted: out: KXFER_RIGHT_*
 * @__reserved: must be 0
 * @content: out: what the export holds
 * @cookie: out: as in struct kxfer_target_open
 *
 * ETIMEDOUT: @min_generation was not reached in time; EKEYREVOKED: the export was withdrawn. If
 * the link breaks and the peer was opened with @loss_ms, the call looks for another one, and asks
 * there; ECONNRESET: not found for @loss_ms, ETIMEDOUT: not in time.
 */
struct kxfer_target_info {
	__u32 size;
	__u32 flags;
	__u32 target;
	__u32 timeout_ms;
	__aligned_u64 min_generation;
	__aligned_u64 length;
	__u32 granted;
	__u32 __reserved;
	struct kxfer_content content;
	__aligned_u64 cookie;
};

#define KXFER_TARGET_INFO	_IO(KXFER_TYPE, KXFER_CMD_TARGET_INFO)

/**
 * enum kxfer_op - what a job does
 * @KXFER_OP_NOP: nothing; completes at once (neither region nor target)
 * @KXFER_OP_READ: from the target into the region
 * @KXFER_OP_WRITE: from the region to the target; success means that the data is placed
 *	in the peer's memory (on iWARP a small READ after it proves that)
 * @KXFER_OP_NOTIFY: hand @cookie to the session that made the export; arrives
 *	after the data of all WRITEs that this session submitted before to the
 *	same peer (no region; offsets and length 0; needs KXFER_RIGHT_WRITE)
 * @KXFER_OP_COMPARE_SWAP: set the word of the target to @swap if it is @compare_add
 * @KXFER_OP_FETCH_ADD: add @compare_add to the word of the target, modulo 2^64
 *
 * @KXFER_OP_SEND: put @length bytes of the region, perhaps none, as one message into the
 *	target, which is a mailbox; success means that the message has arrived at the peer's
 *	device, where a place in the mailbox is kept for it, or more: see KXFER_JOB_F_STORED
 * @KXFER_OP_RECV: take the oldest message of the session's own mailbox, whose id is
 *	@target, or wait for one
 *
 * A SEND needs KXFER_RIGHT_SEND. @target_offset is 0; without bytes @region and
 * @region_offset are 0 too. EMSGSIZE: @length is more than the length of the target. The
 * bytes are read at some time while the job is in flight. The message arrives after the
 * data of all WRITEs that this session submitted before to the same peer, and messages of
 * the session to one mailbox arrive in order. A full mailbox refuses: the SEND ends with
 * -EAGAIN, and later ones may be stored. A message for which a place is kept is not refused, nor
 * one with KXFER_JOB_F_WAIT.
 *
 * A RECV brings a struct kxfer_message and after it the payload into the region, which must
 * be writable: both are counted in @length and in the @bytes of the completion. EINVAL:
 * @length is less than @message_size of the mailbox. Bytes after the payload stay
 * unchanged. With KXFER_JOB_F_APART the payload has a place of its own. RECVs of a mailbox get
 * messages in the order in which the RECVs were submitted.
 * A RECV whose range is too short for its message ends with -EMSGSIZE, and the message stays
 * for the next RECV. A RECV waits until a message comes, its deadline passes, it is
 * cancelled, or the mailbox is withdrawn (-EKEYREVOKED). It belongs to no peer and no link.
 *
 * COMPARE_SWAP and FETCH_ADD, the atomics, need KXFER_RIGHT_ATOMIC and bring the former value
 * of the word into the region. Only that value shows whether a COMPARE_SWAP has swapped. A
 * word is 8 bytes at an address that is a multiple of 8, here (the address of the region
 * plus @region_offset) and where it was exported. Its value is a number in the byte order of
 * the machine that has it; the device assumes that order for both ends. EINVAL: @length is
 * not 8, or one of the addresses is not aligned. EOPNOTSUPP: the device of the link on this
 * side lacks KXFER_DEVICE_ATOMIC; if the peer's device lacks it the right is not granted.
 * Nothing is posted then.
 *
 * An atomic is one step for other atomics through the same device of the exporter, from any
 * initiator. It is not one step for the exporter's CPUs, for READs and WRITEs, and for
 * atomics through other devices: these may see it or make it half done, or be lost. Atomics
 * of a session on one target take effect in the order in which they were submitted, and
 * after earlier WRITEs. Success means that the word was changed (or compared) and that its
 * former value is in the region.
 *
 * No job is carried out twice. Whether an atomic that failed after it was posted has
 * changed the word is unknown, whatever its status: only its answer may have been lost.
 */
enum kxfer_op {
	KXFER_OP_NOP		= 0,
	KXFER_OP_READ		= 1,
	KXFER_OP_WRITE		= 2,
	KXFER_OP_NOTIFY		= 3,
	KXFER_OP_COMPARE_SWAP	= 4,
	KXFER_OP_FETCH_ADD	= 5,
	KXFER_OP_SEND		= 6,
	KXFER_OP_RECV		= 7,
};

/* WRITE on iWARP: success means only that TCP has the data. */
#define KXFER_JOB_F_LOCAL_ONLY	(1U << 0)
/*
 * READ, WRITE, atomics: the job may complete together with a later one that is posted with
 * it, of this call or another. One work request is signalled for all of them, which costs
 * less.
 */
#define KXFER_JOB_F_BATCH	(1U << 1)
/* SEND: @cookie, of 32 bits, goes with the message. */
#define KXFER_JOB_F_IMM		(1U << 2)
/*
 * READ, WRITE, NOTIFY, SEND, atomics: nothing of the job is posted before all READs and
 * atomics of the session that were accepted before it, to targets on the same link, have
 * ended. So it changes nothing that they still fetch, may send what they brought, and may
 * report that they are done.
 */
#define KXFER_JOB_F_FENCE	(1U << 3)
/*
 * READ, WRITE, NOTIFY, SEND, atomics: nothing of the job is posted before all jobs of the
 * session that were accepted before it, to targets on the same link, have ended, with any
 * status. Jobs accepted after it are not posted before it. Implies KXFER_JOB_F_FENCE.
 */
#define KXFER_JOB_F_ORDERED	(1U << 4)
/*
 * WRITE: the session that made the export gets @cookie when the data is there, as by a NOTIFY
 * behind the WRITE. The job ends when both have, with the status of the first that failed: with
 * -EAGAIN the data is there, but the exporter's queue of events was full.
 */
#define KXFER_JOB_F_NOTIFY	(1U << 5)
/*
 * SEND: the job completes when the peer has answered that the message is in the mailbox, or, if it
 * is longer than KXFER_MESSAGE_MAX, in the region of a RECV. A message of at most
 * KXFER_MESSAGE_EAGER_MAX bytes that has neither this flag nor KXFER_JOB_F_IMM may complete when
 * it has arrived at the peer's device and a place in the mailbox is kept for it: then only the end
 * of the peer, or the withdrawal of the mailbox, can keep it out. The next job to the target, or
 * TARGET_INFO, shows that. All other messages complete as with this flag.
 */
#define KXFER_JOB_F_STORED	(1U << 6)
/*
 * RECV: the payload does not follow struct kxfer_message, but begins at @target_offset of the same
 * region, on a page of its own for example. @length and @bytes count both all the same. EINVAL:
 * the two ranges overlap.
 */
#define KXFER_JOB_F_APART	(1U << 7)
/*
 * SEND of at least one byte: a full mailbox does not refuse the message. It waits its turn until
 * there is a RECV for it, its deadline passes, it is cancelled, the mailbox is withdrawn or the
 * link ends. Messages of the session to one mailbox that all have this flag are received in the
 * order in which they were submitted, none left out, except those that end so. The job completes
 * when the message has been received, unless a place was kept for it as without the flag. Eight of
 * a session wait at the peer; then later jobs of the session on the link wait, too. EOPNOTSUPP: the
 * peer lacks KXFER_FEATURE_WAIT.
 */
#define KXFER_JOB_F_WAIT	(1U << 8)
/*
 * WRITE: it may be carried out again, from its beginning or from its middle, if its link breaks and
 * the peer was opened with @loss_ms. The region must not be changed before the job has completed;
 * until then the bytes may be placed at the peer more than once. READs are always so.
 */
#define KXFER_JOB_F_IDEMPOTENT	(1U << 9)
#define KXFER_JOB_F_ALL		(KXFER_JOB_F_LOCAL_ONLY | KXFER_JOB_F_BATCH | KXFER_JOB_F_IMM | \
				 KXFER_JOB_F_FENCE | KXFER_JOB_F_ORDERED | KXFER_JOB_F_NOTIFY | \
				 KXFER_JOB_F_STORED | KXFER_JOB_F_APART | KXFER_JOB_F_WAIT | \
				 KXFER_JOB_F_IDEMPOTENT)

/**
 * struct kxfer_job - one transfer
 * @op: enum kxfer_op
 * @flags: KXFER_JOB_F_*
 * @region: id of the local memory
 * @target: id of the peer's memory or mailbox; RECV: of the session's mailbox
 * @region_offset: first byte in the region
 * @target_offset: first byte in the target; RECV with KXFER_JOB_F_APART: of the payload in the
 *	region
 * @length: bytes, at least 1 for READ and WRITE, 8 for atomics
 * @user_data: returned in the completion
 * @deadline_ns: CLOCK_MONOTONIC, or 0; a job that is still queued then ends
 *	with ETIMEDOUT; checked at the resolution of the kernel's tick; once posted
 *	a job goes on
 * @cookie: NOTIFY, and WRITE with KXFER_JOB_F_NOTIFY: the cookie; SEND with KXFER_JOB_F_IMM: the
 *	immediate; else 0
 * @compare_add: COMPARE_SWAP: expected value of the word; FETCH_ADD: value to add; else 0
 * @swap: COMPARE_SWAP: new value of the word; else 0
 *
 * The first callers did not have the last two members: KXFER_JOB_SIZE_MIN is the size
 * without them.
 */
struct kxfer_job {
	__u32 op;
	__u32 flags;
	__u32 region;
	__u32 target;
	__aligned_u64 region_offset;
	__aligned_u64 target_offset;
	__aligned_u64 length;
	__aligned_u64 user_data;
	__aligned_u64 deadline_ns;
	__aligned_u64 cookie;
	__aligned_u64 compare_add;
	__aligned_u64 swap;
};

#define KXFER_JOB_SIZE_MIN	64	/* bytes; members after that are then 0 */

/**
 * struct kxfer_completion - how a job ended; each accepted job has exactly one
 * @user_data: user_data of the job
 * @bytes: bytes moved, all or none: on success @length, for a RECV what it brought; else 0
 * @status: 0 or a negative errno:
 *	-ETIMEDOUT, -ECANCELED: never posted; of a RECV: it got no message; of a SEND longer
 *	than KXFER_MESSAGE_MAX also: it was taken back before it was READ;
 *	-ECONNRESET: the link broke; what a WRITE, NOTIFY, SEND or atomic did at the peer is
 *	unknown;
 *	-EKEYREVOKED: the export was withdrawn; never posted, or a long job in part;
 *	-EREMOTEIO: the peer refused the work request;
 *	-EAGAIN: NOTIFY: the exporter has too many events unread; SEND: the mailbox is full;
 *	nothing was delivered;
 *	-EMSGSIZE: RECV: the message is longer than the range, and stays; SEND: it has waited for
 *	another link (@loss_ms), which carries no message of that length;
 *	-EOPNOTSUPP: an atomic, or a SEND with KXFER_JOB_F_WAIT, that has waited for another link:
 *	that has none;
 *	-ENODEV: the device is gone
 * @op: enum kxfer_op of the job
 * @submitted_ns: CLOCK_MONOTONIC when the job was accepted
 * @completed_ns: CLOCK_MONOTONIC when it ended
 *
 * A job completes only after no device can touch its local memory any more.
 */
struct kxfer_completion {
	__aligned_u64 user_data;
	__aligned_u64 bytes;
	__s32 status;
	__u32 op;
	__aligned_u64 submitted_ns;
	__aligned_u64 completed_ns;
};

/*
 * How SUBMIT and REAP wait. By default a caller on a link of KXFER_CONTEXT_POLLED
 * polls for completions itself, for as long as that has paid lately, and then
 * sleeps. Not both of:
 */
#define KXFER_WAIT_F_POLL	(1U << 0)	/* poll until the deadline, whatever it costs */
#define KXFER_WAIT_F_SLEEP	(1U << 1)	/* sleep at once */
#define KXFER_WAIT_F_ALL	(KXFER_WAIT_F_POLL | KXFER_WAIT_F_SLEEP)

/**
 * struct kxfer_submit - submit jobs, and perhaps wait (KXFER_SUBMIT)
 * @size: sizeof(struct kxfer_submit)
 * @flags: KXFER_WAIT_F_*
 * @jobs: array of struct kxfer_job
 * @nr_jobs: 1 to @max_jobs_per_submit of struct kxfer_query
 * @stride: bytes from one job to the next: sizeof(struct kxfer_job) as the caller knows
 *	it, from KXFER_JOB_SIZE_MIN to 256, a multiple of 8; members that the module does
 *	not know must be zero
 * @completions: array of struct kxfer_completion, or 0
 * @nr_completions: entries of @completions, at most 4096
 * @wait: number of completions to wait for, at most @nr_completions; 0: do not wait. With
 *	a ring: wait until this many are unread there, at most its entries; @completions
 *	and @nr_completions are 0 then
 * @deadline_ns: CLOCK_MONOTONIC, end of the waiting; 0: no end
 * @accepted: out: jobs accepted, from the first on
 * @reaped: out: completions stored
 * @error: out: 0, or the positive errno of the first job that was not accepted
 * @__reserved: must be 0
 *
 * Fails only if no job was accepted. Otherwise a signal or the deadline is no
 * error: it ends the waiting. A call that failed with EINTR accepted nothing.
 */
struct kxfer_submit {
	__u32 size;
	__u32 flags;
	__aligned_u64 jobs;
	__u32 nr_jobs;
	__u32 stride;
	__aligned_u64 completions;
	__u32 nr_completions;
	__u32 wait;
	__aligned_u64 deadline_ns;
	__u32 accepted;
	__u32 reaped;
	__u32 error;
	__u32 __reserved;
};

#define KXFER_SUBMIT		_IO(KXFER_TYPE, KXFER_CMD_SUBMIT)

/**
 * struct kxfer_reap - take completions (KXFER_REAP)
 * @size: sizeof(struct kxfer_reap)
 * @flags: KXFER_WAIT_F_*
 * @completions: array of struct kxfer_completion
 * @nr: entries of @completions, 1 to 4096
 * @wait: number to wait for, at most @nr; waiting ends early when no job is in flight
 * @deadline_ns: CLOCK_MONOTONIC, end of the waiting; 0: no end
 * @reaped: out: completions stored; if none, a deadline is ETIMEDOUT and a signal EINTR
 * @__reserved: must be 0
 *
 * poll(2) reports POLLIN while there are completions to take.
 *
 * With a ring there is nothing to take: @completions and @nr are 0, and REAP waits until
 * @wait completions are unread in the ring, at most its entries. Completions that another
 * thread reads meanwhile count. ETIMEDOUT and EINTR if they did not come.
 */
struct kxfer_reap {
	__u32 size;
	__u32 flags;
	__aligned_u64 completions;
	__u32 nr;
	__u32 wait;
	__aligned_u64 deadline_ns;
	__u32 reaped;
	__u32 __reserved;
};

#define KXFER_REAP		_IO(KXFER_TYPE, KXFER_CMD_REAP)

/* Every queued job of the session, whatever its user_data. */
#define KXFER_CANCEL_F_ALL	(1U << 0)

/**
 * struct kxfer_cancel - end queued jobs with ECANCELED (KXFER_CANCEL)
 * @size: sizeof(struct kxfer_cancel)
 * @flags: KXFER_CANCEL_F_*
 * @user_data: user_data of the jobs to end
 * @cancelled: out: queued jobs ended, including RECVs that wait. Posted jobs go on and do
 *	not count; nor does a long message that is being taken back: it completes with
 *	ECANCELED, or with 0 if its RECV was faster
 * @__reserved: must be 0
 *
 * ENOENT: no job in flight has that user_data.
 */
struct kxfer_cancel {
	__u32 size;
	__u32 flags;
	__aligned_u64 user_data;
	__u32 cancelled;
	__u32 __reserved;
};

#define KXFER_CANCEL		_IO(KXFER_TYPE, KXFER_CMD_CANCEL)

/**
 * enum kxfer_event_type - what happened to an export of the session
 * @KXFER_EVENT_NOTIFY: a peer's NOTIFY job
 */
enum kxfer_event_type {
	KXFER_EVENT_NOTIFY	= 1,
};

/**
 * struct kxfer_event - an event from a peer
 * @type: enum kxfer_event_type
 * @export_id: id of the export
 * @cookie: cookie of the NOTIFY job
 * @time_ns: time of arrival, CLOCK_MONOTONIC
 * @peer: address of the peer
 * @uid: effective uid of the process there, as its kernel says
 * @gid: effective gid of the process there, as its kernel says
 */
struct kxfer_event {
	__u32 type;
	__u32 export_id;
	__aligned_u64 cookie;
	__aligned_u64 time_ns;
	struct kxfer_addr peer;
	__u32 uid;
	__u32 gid;
};

/**
 * struct kxfer_event_reap - take events (KXFER_EVENT_REAP)
 * @size: sizeof(struct kxfer_event_reap)
 * @flags: must be 0
 * @events: array of struct kxfer_event
 * @nr: in: room in @events, 1 to 1024; out: events stored
 * @wait: 0, or 1: wait for the first
 * @deadline_ns: CLOCK_MONOTONIC, end of the waiting; 0: no end; ETIMEDOUT if it passes
 *	with no event taken
 *
 * poll(2) reports POLLPRI while there are events to take.
 */
struct kxfer_event_reap {
	__u32 size;
	__u32 flags;
	__aligned_u64 events;
	__u32 nr;
	__u32 wait;
	__aligned_u64 deadline_ns;
};

#define KXFER_EVENT_REAP	_IO(KXFER_TYPE, KXFER_CMD_EVENT_REAP)

/* @eventfd is signalled. */
#define KXFER_CQ_RING_F_EVENTFD	(1U << 0)
#define KXFER_CQ_RING_F_ALL	KXFER_CQ_RING_F_EVENTFD

/**
 * struct kxfer_cq_ring - get completions in shared memory (KXFER_CQ_RING)
 * @size: sizeof(struct kxfer_cq_ring)
 * @flags: KXFER_CQ_RING_F_*
 * @entries: completions that the ring holds: a power of two, 1 to @max_jobs of struct
 *	kxfer_query
 * @eventfd: descriptor of an eventfd(2), or 0; EBADF or EINVAL if it is no eventfd. It may
 *	be closed afterwards
 * @offset: out: offset for mmap(2)
 * @bytes: out: length for mmap(2)
 *
 * From now on every completion of the session goes into the ring, which begins with
 * struct kxfer_ring, and none is left for SUBMIT and REAP to store. A job is accepted
 * only if there is room for its completion: EAGAIN while jobs in flight and unread
 * completions are @entries. EBUSY: jobs are in flight or completions not reaped; EEXIST:
 * there is a ring. The ring stays as long as the session.
 *
 * mmap(2) takes @bytes at @offset, MAP_SHARED, not PROT_EXEC, any number of times. A
 * mapping is not inherited by fork(2). It is a reference to the open file, like a
 * duplicated descriptor: the session ends only when the ring is unmapped too.
 *
 * The eventfd is signalled when completions come while no earlier one is unread. See
 * struct kxfer_ring for how to wait for it.
 */
struct kxfer_cq_ring {
	__u32 size;
	__u32 flags;
	__u32 entries;
	__s32 eventfd;
	__aligned_u64 offset;
	__aligned_u64 bytes;
};

#define KXFER_CQ_RING		_IO(KXFER_TYPE, KXFER_CMD_CQ_RING)

/**
 * struct kxfer_ring - start of a ring; struct kxfer_completion[@entries] follows
 * @head: completions read since the ring was made, modulo 2^32; the reader writes it
 * @__reserved: keeps members that different CPUs write in different cache lines
 * @tail: completions written since the ring was made, modulo 2^32; the kernel writes it, and
 *	does not read it
 * @__reserved1: padding, as @__reserved
 * @mask: @entries - 1
 * @entries: entries of the ring, as asked for
 * @__reserved2: padding, as @__reserved
 *
 * Completion n is at index n & @mask. To read: load @tail with acquire; read from @head
 * up to @tail; store @head with release. Before sleeping on the eventfd, the reader needs a
 * full barrier between the store of @head and the load of @tail that finds nothing. Before
 * poll(2) on the session it needs none.
 *
 * A @head that goes backwards or beyond @tail is ignored.
 */
struct kxfer_ring {
	__u32 head;
	__u32 __reserved[15];
	__u32 tail;
	__u32 __reserved1[15];
	__u32 mask;
	__u32 entries;
	__u32 __reserved2[14];
};

/**
 * struct kxfer_sq_ring - submit jobs from shared memory (KXFER_SQ_RING)
 * @size: sizeof(struct kxfer_sq_ring)
 * @flags: must be 0
 * @entries: jobs that the ring holds: a power of two, 1 to @max_jobs_per_submit of struct
 *	kxfer_query
 * @__reserved: must be 0
 * @offset: out: offset for mmap(2)
 * @bytes: out: length for mmap(2)
 *
 * The ring begins with struct kxfer_sq. KXFER_ENTER accepts jobs from it; SUBMIT still takes
 * jobs from elsewhere. EINVAL also: the session has no completion ring (KXFER_CQ_RING comes
 * first); EEXIST: there is a submission ring. It stays as long as the session. mmap(2): as for
 * struct kxfer_cq_ring.
 */
struct kxfer_sq_ring {
	__u32 size;
	__u32 flags;
	__u32 entries;
	__u32 __reserved;
	__aligned_u64 offset;
	__aligned_u64 bytes;
};

#define KXFER_SQ_RING		_IO(KXFER_TYPE, KXFER_CMD_SQ_RING)

/**
 * struct kxfer_sq - start of a submission ring; struct kxfer_job[@entries] follows
 * @tail: jobs written since the ring was made, modulo 2^32; the process writes it
 * @flags: KXFER_WAIT_F_* for ENTER; the process writes it
 * @deadline_ns: CLOCK_MONOTONIC, end of the waiting of ENTER; 0: no end; the process writes it
 * @__reserved: keeps what the process writes and what the kernel writes in different cache lines
 * @head: jobs accepted since the ring was made, modulo 2^32; the kernel writes it, and does not
 *	read it
 * @error: 0, or the positive errno for which the last ENTER left the job at @head; the kernel
 *	writes it
 * @mask: @entries - 1
 * @entries: entries of the ring, as asked for
 * @__reserved1: padding, as @__reserved
 *
 * Job n is at index n & @mask. To submit: write jobs from @tail up to @head + @entries; store
 * @tail with release; call KXFER_ENTER. To drop jobs that were not accepted: set @tail back to
 * @head. What the kernel checks and carries out is one copy of a job: changes meanwhile are in
 * that copy, or not.
 */
struct kxfer_sq {
	__u32 tail;
	__u32 flags;
	__aligned_u64 deadline_ns;
	__u32 __reserved[12];
	__u32 head;
	__u32 error;
	__u32 mask;
	__u32 entries;
	__u32 __reserved1[12];
};

/*
 * KXFER_ENTER: accept the jobs of the submission ring, and perhaps wait. The argument of the
 * call is a number: wait until so many completions are unread in the completion ring, at most its
 * entries; 0: do not wait. Without jobs in the submission ring it only waits.
 *
 * Returns the number of jobs accepted, from @head on. Fails with the error of the job at @head
 * only if none was accepted though there was one. Otherwise a signal or the deadline is no error:
 * it ends the waiting. Without jobs they are, as for REAP: EINTR, ETIMEDOUT.
 * EINVAL also: there is no submission ring; @tail is more than @entries jobs after @head; the
 * argument is more than the entries of the completion ring.
 */
#define KXFER_ENTER		_IO(KXFER_TYPE, KXFER_CMD_ENTER)

/**
 * struct kxfer_uring_job - a job submitted by io_uring (KXFER_URING_CMD_JOB)
 * @job: as for SUBMIT; CANCEL takes its @user_data, the CQE has the user_data of the SQE
 *
 * This is the command area of an SQE of IORING_OP_URING_CMD whose fd is /dev/kxfer and
 * whose cmd_op is KXFER_URING_CMD_JOB, in a ring made with IORING_SETUP_SQE128. The job
 * fills the area: for the first callers the bytes after KXFER_JOB_SIZE_MIN were reserved,
 * and 0; they are still 0 for what those callers could ask for. Each job has one CQE, and
 * no completion in REAP. The res of the CQE is 0 or a negative errno:
 *
 *  - one that struct kxfer_completion lists as @status: the job was accepted, and
 *    ended so. -ECANCELED also: io_uring did not submit it (a chain of SQEs broke);
 *  - any other: the job was refused, as SUBMIT would have refused it, and did nothing.
 *    -EINVAL also: a ring without IORING_SETUP_SQE128; -ENOTTY: another cmd_op;
 *    -EOPNOTSUPP also: an SQE with IORING_URING_CMD_FIXED.
 *
 * -EAGAIN is in both lists; in both cases nothing was delivered. In a ring made with
 * IORING_SETUP_CQE32 big_cqe[0] is @completed_ns for an accepted job, and 0 for a
 * refused one. All jobs of one io_uring_enter() are posted together.
 *
 * A job ends with ECANCELED, as at the end of a session, when its ring is closed, or the
 * process that submitted it exits or becomes another program (execve()). RECVs that wait
 * and queued jobs end within a second. Posted jobs end when they are done; a long one may
 * then have been carried out in part. The file stays open until then, and execve() waits
 * for jobs of the calling thread.
 */
struct kxfer_uring_job {
	struct kxfer_job job;
};

#define KXFER_URING_CMD_JOB	_IO(KXFER_TYPE, KXFER_CMD_URING_JOB)

/**
 * struct kxfer_uring_call - a call that waits for a peer, by io_uring
 * @arg: pointer to the structure of the call, which must stay until the CQE
 * @__reserved: must be 0
 *
 * This is the command area of an SQE of IORING_OP_URING_CMD whose fd is /dev/kxfer and
 * whose cmd_op is KXFER_PEER_OPEN, KXFER_TARGET_OPEN or KXFER_TARGET_INFO, in a ring of any
 * size of SQE. A thread of io_uring carries the call out, so many may wait at once (as many
 * as IORING_REGISTER_IOWQ_MAX_WORKERS allows for bounded work; others wait in line). The res
 * of the CQE is 0 or a negative errno, as errno of the ioctl:
 *
 *  - EINTR: the CQE was no longer wanted: IORING_OP_ASYNC_CANCEL, or the ring is being closed
 *    or its task ends; or the process was stopped or frozen meanwhile, and may call again.
 *    Nothing was opened;
 *  - EOPNOTSUPP also: a ring made with IORING_SETUP_IOPOLL, or IORING_URING_CMD_FIXED;
 *  - ENOTTY also: a call that does not wait for a peer.
 */
struct kxfer_uring_call {
	__aligned_u64 arg;
	__aligned_u64 __reserved;
};

#endif /* _UAPI_LINUX_KXFER_H */

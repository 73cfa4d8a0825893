/* SPDX-License-Identifier: MIT */
/*
 * libkxfer: RDMA transfers through /dev/kxfer, for C programs.
 *
 * A thin layer over <linux/kxfer.h>, where every structure, limit and errno is
 * described; kxfer.hpp is the same for C++20 with objects that clean up.
 *
 * Conventions. Functions return 0, or a count where that is said, or a
 * negative errno; they do not touch the variable errno. Lengths and offsets
 * are bytes, deadlines absolute CLOCK_MONOTONIC nanoseconds (0: none), timeouts
 * milliseconds. Ids are valid within their session; closing the session frees
 * everything that was made through it. A session may be used by several
 * threads at once; a completion that one waits for may be taken by another. The
 * functions fill in the @size of a structure; members that are not mentioned have
 * to be zero.
 *
 * Binaries. Within one soname, now libkxfer.so.0, the structures of the functions that a
 * program was linked with do not grow, even if those of a later <linux/kxfer.h> do. So a
 * program works with each later library of its soname, and the library with each module
 * of the same KXFER_ABI.
 */
#ifndef KXFER_KXFER_H
#define KXFER_KXFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/kxfer.h>

struct sockaddr;

#ifdef __cplusplus
extern "C" {
#endif

#define KXFER_DEVICE_PATH "/dev/kxfer"

/* An open file on /dev/kxfer. */
struct kxfer_session;

/* Version of the library, "0.1.0". */
const char* kxfer_library_version(void);

/* ---- session ---- */

/*
 * Opens a session; the caller closes *session. path NULL: /dev/kxfer.
 * -ENOENT: the module is not loaded; -EACCES: no right to open the device;
 * -EPROTONOSUPPORT: the module has another KXFER_ABI; -EMFILE.
 */
int kxfer_session_open(const char* path, struct kxfer_session** session);

/*
 * Ends all jobs, frees all ids and the session itself. Returns when no device
 * touches memory of the session any more. NULL is ignored.
 */
void kxfer_session_close(struct kxfer_session* session);

/*
 * File descriptor to poll(2): POLLIN while there are completions, POLLOUT while
 * there is room for jobs, POLLPRI while there are events. The session keeps owning it.
 */
int kxfer_session_fd(const struct kxfer_session* session);

/*
 * Sets how calls of the session wait for completions from now on: 0 (initially): polling or
 * sleeping, whichever recent waits favour; or KXFER_WAIT_F_POLL or KXFER_WAIT_F_SLEEP.
 */
int kxfer_session_set_wait(struct kxfer_session* session, uint32_t flags);

/* Version, features and limits of the module. */
int kxfer_session_query(struct kxfer_session* session, struct kxfer_query* query);

/* Does nothing; for measuring what a call costs. */
int kxfer_session_nop(struct kxfer_session* session);

/*
 * Lists objects: stores up to nr records of record_size bytes (a struct
 * kxfer_info_* as of enum kxfer_info_kind) and returns how many; 0: the end.
 * *cursor has to be 0 at the first call.
 */
int kxfer_session_info(struct kxfer_session* session, uint32_t kind, uint64_t* cursor, void* records,
                       size_t record_size, uint32_t nr);

/* ---- memory ---- */

/*
 * Pins length bytes at address. flags: KXFER_REGION_F_WRITE if a device may
 * write there. The memory stays the caller's and must stay mapped as long as
 * its contents matter. -ENOMEM: RLIMIT_MEMLOCK or memory; -EFAULT: memory that
 * is not there or must not be pinned.
 */
int kxfer_region_create(struct kxfer_session* session, void* address, size_t length, uint32_t flags,
                        uint32_t* region);

/*
 * The same of a dma-buf: length bytes at offset in the buffer that the descriptor stands
 * for, which stays the caller's and may be closed. Needs KXFER_FEATURE_DMABUF. The errors
 * are those of struct kxfer_region_add. Jobs of messages are refused on such a region; a
 * device that cannot reach the buffer says so at the first job or export.
 */
int kxfer_region_import(struct kxfer_session* session, int dmabuf_fd, uint64_t offset, uint64_t length,
                        uint32_t flags, uint32_t* region);

/* -EBUSY while jobs or an export use it. */
int kxfer_region_destroy(struct kxfer_session* session, uint32_t region);

/*
 * Publishes a range of a region under a name; the function fills in size and
 * rule_stride, and the id is put into export_args->export_id. -EEXIST: the name is
 * taken on this node.
 */
int kxfer_export_create(struct kxfer_session* session, struct kxfer_export_add* export_args);

/* Returns when no peer can reach the memory any more. */
int kxfer_export_destroy(struct kxfer_session* session, uint32_t export_id);

/*
 * Declares what an export holds: its first length bytes, with their SHA-256.
 * *generation (may be NULL) gets the number of this declaration.
 */
int kxfer_export_publish(struct kxfer_session* session, uint32_t export_id, uint64_t length,
                         const uint8_t sha256[KXFER_SHA256_SIZE], uint64_t* generation);

/*
 * Publishes a mailbox, to which peers send messages. The caller fills in name, rules,
 * capacity and max_bytes, the function fills in size, rule_stride and message_size;
 * mailbox_args->export_id gets the id. A mailbox is in the name
 * space of exports, and peers open it as one (KXFER_RIGHT_SEND).
 */
int kxfer_mailbox_create(struct kxfer_session* session, struct kxfer_mailbox_add* mailbox_args);

/*
 * Returns when no message can arrive any more. Waiting RECVs end with -EKEYREVOKED;
 * messages not taken are lost.
 */
int kxfer_mailbox_destroy(struct kxfer_session* session, uint32_t mailbox);

/* ---- peers ---- */

/*
 * Accepts links at an address; port 0: KXFER_PORT. flags: KXFER_LISTEN_F_*.
 * *listener gets an id that is valid on the whole node. Needs CAP_NET_ADMIN.
 */
int kxfer_listener_create(struct kxfer_session* session, const struct kxfer_addr* address, uint32_t flags,
                          uint64_t* listener);
/*
 * As kxfer_listener_create(), and an initiator has to prove one of the keys (struct
 * kxfer_key_name; at most KXFER_LISTEN_KEYS_MAX). -ENOKEY: the caller can search no such key
 * in the kernel's keyrings.
 */
int kxfer_listener_create_with_keys(struct kxfer_session* session, const struct kxfer_addr* address,
                                    uint32_t flags, const struct kxfer_key_name* keys, uint32_t nr_keys,
                                    uint64_t* listener);
/* All that LISTEN_ADD takes; listen_args->listener gets the id. */
int kxfer_listener_add(struct kxfer_session* session, struct kxfer_listen_add* listen_args);
int kxfer_listener_destroy(struct kxfer_session* session, uint64_t listener);

/*
 * Connects with a node or joins the link to it; peer_args->peer gets the id,
 * peer_args->refusal the peer's reason if it refused.
 */
int kxfer_peer_connect(struct kxfer_session* session, struct kxfer_peer_open* peer_args);

/* -EBUSY while targets of the peer are open. */
int kxfer_peer_disconnect(struct kxfer_session* session, uint32_t peer);

/*
 * Lists the exports of a peer that are open to the caller: stores up to nr records and
 * returns how many; 0: the end. *cursor has to be 0 at the first call.
 */
int kxfer_peer_exports(struct kxfer_session* session, uint32_t peer, uint32_t timeout_ms, uint64_t* cursor,
                       struct kxfer_peer_export* exports, uint32_t nr);

/* The refusal in words, for example "source port not below 1024"; never NULL. */
const char* kxfer_refusal_text(uint32_t refusal);

/* Gets access to an export of a peer; target_args->target gets the id. */
int kxfer_target_create(struct kxfer_session* session, struct kxfer_target_open* target_args);

/* -EBUSY while jobs use it. */
int kxfer_target_destroy(struct kxfer_session* session, uint32_t target);

/* Asks the peer what the export holds; waits for info->min_generation if that is not 0. */
int kxfer_target_query(struct kxfer_session* session, struct kxfer_target_info* info);

/* ---- jobs ---- */

/*
 * Jobs are asynchronous: kxfer_job_submit() hands them in and returns, and
 * kxfer_completion_reap() takes their completions. user_data connects the two; the
 * caller chooses it, a pointer or an index. It need not be unique, except to cancel
 * one job by it.
 *
 * Lifetime. The array of jobs is the caller's again when the call returns. The
 * bytes that a job names in its region are the job's until its completion was
 * taken: the caller must neither read nor write what a READ fills, nor write what a
 * WRITE sends. Region and target cannot be destroyed meanwhile
 * (-EBUSY). Closing the session ends its jobs and drops their completions.
 *
 * Order. Jobs are posted in the order of the array, and of the calls of one
 * thread. Completions come in any order. A table in Documentation/uapi.rst gives what
 * that means for the bytes. In short: a NOTIFY and a READ come after the WRITEs before
 * them; what has to come after a READ must wait for its completion.
 *
 * Room. At most max_jobs (struct kxfer_query) are in flight or not yet taken;
 * -EAGAIN beyond: take completions and submit again.
 *
 * Threads. Any thread may submit, take and cancel at any time. Each completion
 * is taken once, by the first thread that asks.
 *
 * Waiting. kxfer_completion_reap() waits by itself. A program that waits for other
 * things too polls kxfer_session_fd(): POLLIN while there are completions, POLLOUT
 * while there is room for jobs. The library has no threads and no callbacks.
 */

/* A job that copies length bytes of the target into the region, from region_offset on. */
static inline struct kxfer_job kxfer_job_make_read(uint32_t region, uint64_t region_offset, uint32_t target,
                                                   uint64_t target_offset, uint64_t length,
                                                   uint64_t user_data) {
    struct kxfer_job job;
    memset(&job, 0, sizeof(job));
    job.op = KXFER_OP_READ;
    job.region = region;
    job.target = target;
    job.region_offset = region_offset;
    job.target_offset = target_offset;
    job.length = length;
    job.user_data = user_data;
    return job;
}

/* A job that copies length bytes of the region to the target. */
static inline struct kxfer_job kxfer_job_make_write(uint32_t region, uint64_t region_offset, uint32_t target,
                                                    uint64_t target_offset, uint64_t length,
                                                    uint64_t user_data) {
    struct kxfer_job job =
        kxfer_job_make_read(region, region_offset, target, target_offset, length, user_data);
    job.op = KXFER_OP_WRITE;
    return job;
}

/* A job that writes, and then hands the cookie to the exporter's session; see KXFER_JOB_F_NOTIFY. */
static inline struct kxfer_job kxfer_job_make_write_notify(uint32_t region, uint64_t region_offset,
                                                           uint32_t target, uint64_t target_offset,
                                                           uint64_t length, uint64_t cookie,
                                                           uint64_t user_data) {
    struct kxfer_job job =
        kxfer_job_make_write(region, region_offset, target, target_offset, length, user_data);
    job.flags = KXFER_JOB_F_NOTIFY;
    job.cookie = cookie;
    return job;
}

/* A job that hands the cookie to the exporter's session, after the data of the WRITEs before it. */
static inline struct kxfer_job kxfer_job_make_notify(uint32_t target, uint64_t cookie, uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_read(0, 0, target, 0, 0, user_data);
    job.op = KXFER_OP_NOTIFY;
    job.cookie = cookie;
    return job;
}

/*
 * A job that puts length bytes of the region as one message into the mailbox that is the
 * target; at most the target's length. With length 0, region and region_offset are 0. The
 * job's completion has -EAGAIN if the mailbox is full. Success means that the message has
 * arrived at the peer's device, and that a place in the mailbox is kept for it or that it is
 * there already; of a longer one than KXFER_MESSAGE_EAGER_MAX, that it has been received.
 * kxfer_job_make_send_stored() asks for more. The bytes must not change before the job
 * completes.
 */
static inline struct kxfer_job kxfer_job_make_send(uint32_t region, uint64_t region_offset, uint32_t target,
                                                   uint64_t length, uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_read(region, region_offset, target, 0, length, user_data);
    job.op = KXFER_OP_SEND;
    return job;
}

/*
 * A SEND that completes when the message is in the mailbox, or, if it is longer than
 * KXFER_MESSAGE_MAX, has been received; see KXFER_JOB_F_STORED. Needs KXFER_FEATURE_EAGER; a
 * module without it has no other SENDs.
 */
static inline struct kxfer_job kxfer_job_make_send_stored(uint32_t region, uint64_t region_offset,
                                                          uint32_t target, uint64_t length,
                                                          uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_send(region, region_offset, target, length, user_data);
    job.flags = KXFER_JOB_F_STORED;
    return job;
}

/*
 * A SEND that a full mailbox does not refuse: it waits for its turn; see KXFER_JOB_F_WAIT. At least
 * one byte. Needs KXFER_FEATURE_WAIT of both ends; without it the job is refused with EOPNOTSUPP.
 */
static inline struct kxfer_job kxfer_job_make_send_waiting(uint32_t region, uint64_t region_offset,
                                                           uint32_t target, uint64_t length,
                                                           uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_send(region, region_offset, target, length, user_data);
    job.flags = KXFER_JOB_F_WAIT;
    return job;
}

/* A SEND with 32 bits of immediate data; it completes when the message is in the mailbox or received. */
static inline struct kxfer_job kxfer_job_make_send_imm(uint32_t region, uint64_t region_offset,
                                                       uint32_t target, uint64_t length, uint32_t immediate,
                                                       uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_send(region, region_offset, target, length, user_data);
    job.flags = KXFER_JOB_F_IMM;
    job.cookie = immediate;
    return job;
}

/*
 * A job that takes the oldest message of the session's own mailbox, or waits for one. The
 * region gets a struct kxfer_message, followed by the payload, together at most length
 * bytes. The completion's bytes is how many they were.
 */
static inline struct kxfer_job kxfer_job_make_recv(uint32_t region, uint64_t region_offset, uint32_t mailbox,
                                                   uint64_t length, uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_read(region, region_offset, mailbox, 0, length, user_data);
    job.op = KXFER_OP_RECV;
    return job;
}

/*
 * The same with the payload apart from its header: it begins at payload_offset of the region. Needs
 * KXFER_FEATURE_APART; a module without it refuses the job with EOPNOTSUPP.
 */
static inline struct kxfer_job kxfer_job_make_recv_apart(uint32_t region, uint64_t region_offset,
                                                         uint64_t payload_offset, uint32_t mailbox,
                                                         uint64_t length, uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_recv(region, region_offset, mailbox, length, user_data);
    job.flags = KXFER_JOB_F_APART;
    job.target_offset = payload_offset;
    return job;
}

/*
 * A job that sets the 8 bytes at target_offset to `swap` if they equal `compare`, and stores
 * their old value in the region, which shows whether the swap took place. Atomic among
 * atomics only; enum kxfer_op has the requirements on addresses and devices.
 */
static inline struct kxfer_job kxfer_job_make_compare_swap(uint32_t region, uint64_t region_offset,
                                                           uint32_t target, uint64_t target_offset,
                                                           uint64_t compare, uint64_t swap,
                                                           uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_read(region, region_offset, target, target_offset, 8, user_data);
    job.op = KXFER_OP_COMPARE_SWAP;
    job.compare_add = compare;
    job.swap = swap;
    return job;
}

/* A job that adds to the 8 bytes at target_offset; else as kxfer_job_make_compare_swap(). */
static inline struct kxfer_job kxfer_job_make_fetch_add(uint32_t region, uint64_t region_offset,
                                                        uint32_t target, uint64_t target_offset, uint64_t add,
                                                        uint64_t user_data) {
    struct kxfer_job job = kxfer_job_make_read(region, region_offset, target, target_offset, 8, user_data);
    job.op = KXFER_OP_FETCH_ADD;
    job.compare_add = add;
    return job;
}

/*
 * Hands in nr jobs, any number above 0, and does not wait. Returns how many were
 * accepted, counted from the first on; each of them gives exactly one
 * completion. Fails only if none was accepted. *refused (may be NULL) gets 0 or the
 * negative errno of the first one not accepted: -EAGAIN and -EINTR mean that
 * the rest may be handed in again, any other that this job is wrong.
 */
int kxfer_job_submit(struct kxfer_session* session, const struct kxfer_job* jobs, uint32_t nr, int* refused);

/*
 * Hands in jobs and takes completions in one system call. The caller fills in struct
 * kxfer_submit except size and stride. Returns how many jobs were accepted;
 * args->reaped and args->error have the other results. Fails only if no job was accepted.
 */
int kxfer_job_submit_wait(struct kxfer_session* session, struct kxfer_submit* args);

/*
 * Takes up to nr completions, oldest first. Waits until there are `wait` of them (0:
 * takes what is there; at most nr) or the deadline has passed, and returns how
 * many were stored, which may be fewer than asked for: at the deadline, upon a
 * signal, and when no job is in flight any more. 0: nothing is there, and if
 * wait was not 0, nothing is in flight. -ETIMEDOUT, -EINTR: none in time.
 */
int kxfer_completion_reap(struct kxfer_session* session, struct kxfer_completion* completions, uint32_t nr,
                          uint32_t wait, uint64_t deadline_ns);

/*
 * Opens a ring: completions in memory shared with the kernel, so that taking them needs no
 * system call. Has to be opened before the first job, and stays until the session is closed.
 * From then on completions are in the ring alone. kxfer_completion_reap() and kxfer_job_run()
 * fail with -EINVAL, as does kxfer_job_submit_wait() with room for completions; with
 * `wait` the latter waits until so many are unread in the ring. A job for whose completion
 * the ring would have no room is refused with -EAGAIN.
 *
 * entries: a power of two, at most max_jobs of struct kxfer_query. eventfd: -1, or an
 * eventfd(2) that is signalled when a completion comes into a ring in which none is unread.
 * -EBUSY: jobs in flight or completions not taken; -EEXIST: it is open.
 */
int kxfer_ring_open(struct kxfer_session* session, uint32_t entries, int eventfd);

/*
 * Takes up to nr completions from the ring, without a system call, and returns how many. Any
 * number of threads may do so at once. 0: there are none, and the thread may go to sleep
 * on the eventfd or in poll(2).
 */
uint32_t kxfer_ring_take(struct kxfer_session* session, struct kxfer_completion* completions, uint32_t nr);

/*
 * Waits until so many completions are unread in the ring, or no job is in flight any
 * more. -ETIMEDOUT: the deadline passed; -EINTR.
 */
int kxfer_ring_wait(struct kxfer_session* session, uint32_t wait, uint64_t deadline_ns);

/*
 * Opens a submission ring: jobs in memory shared with the kernel, so that handing them in
 * copies neither them nor a structure. Stays until the session is closed.
 *
 * entries: a power of two, at most max_jobs_per_submit of struct kxfer_query. -EINVAL also: no
 * kxfer_ring_open() before; -EEXIST: it is open; -ENOTTY: the module has none
 * (KXFER_FEATURE_SQ_RING).
 */
int kxfer_sq_open(struct kxfer_session* session, uint32_t entries);

/*
 * The next free slot of the submission ring, to be filled in completely; NULL: no slot is free,
 * or the ring is not open. One thread at a time; the others of the session may use all other
 * functions.
 */
struct kxfer_job* kxfer_sq_next(struct kxfer_session* session);

/*
 * Hands in the jobs of all slots that kxfer_sq_next() gave since the last call, in that order, and
 * waits until `wait` completions are unread in the completion ring, no job is in flight any more,
 * or the deadline has passed; 0: does not wait. Returns how many were accepted. *refused (may be
 * NULL) as in kxfer_job_submit(): it gets the reason if not all were; these are dropped, and may
 * be put into new slots. Fails only if there were jobs and none was accepted. Without jobs it
 * only waits, and fails with -ETIMEDOUT or -EINTR. The thread is that of kxfer_sq_next().
 */
int kxfer_sq_enter(struct kxfer_session* session, uint32_t wait, uint64_t deadline_ns, int* refused);

/*
 * Submits one job and waits for its completion; returns its status, and the
 * whole completion if that is not NULL. For sessions that have no other job
 * in flight: a completion of another job would be taken for this one. A
 * deadline or signal that ends the waiting cancels the job if it is still queued; a
 * posted one is waited for.
 */
int kxfer_job_run(struct kxfer_session* session, const struct kxfer_job* job, uint64_t deadline_ns,
                  struct kxfer_completion* completion);

/*
 * Ends queued jobs that have this user_data with -ECANCELED; returns how many.
 * Posted ones go on; a message that waits to be READ by the peer is taken back, and not
 * counted (struct kxfer_cancel). -ENOENT: no such job in flight.
 */
int kxfer_job_cancel(struct kxfer_session* session, uint64_t user_data);
int kxfer_job_cancel_all(struct kxfer_session* session);

/*
 * Ends all jobs: cancels queued ones, waits for posted ones until the deadline,
 * and drops their completions and those not yet taken. After 0, and unless
 * another thread submits meanwhile, no job is in flight: memory, regions and
 * targets are the caller's again. -ETIMEDOUT, -EINTR: some jobs are still posted; the
 * function may be called again.
 */
int kxfer_job_drain(struct kxfer_session* session, uint64_t deadline_ns);

/*
 * Takes notifications of peers; wait 1: waits for the first until the deadline.
 * Returns how many were stored. -ETIMEDOUT, -EINTR: none.
 */
int kxfer_event_take(struct kxfer_session* session, struct kxfer_event* events, uint32_t nr, uint32_t wait,
                     uint64_t deadline_ns);

/* The time now, on the clock of deadlines. */
uint64_t kxfer_clock_ns(void);

/* ---- addresses ---- */

/* Converts a sockaddr_in or sockaddr_in6; -EAFNOSUPPORT for others. */
int kxfer_addr_from_sockaddr(const struct sockaddr* from, struct kxfer_addr* to);

/*
 * Formats as "10.77.0.1:7625" or "[fe80::1%eth0]:7625", without the port if that is 0.
 * Writes at most size bytes, closing zero included; 64 are always enough.
 */
int kxfer_addr_format(const struct kxfer_addr* address, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* KXFER_KXFER_H */

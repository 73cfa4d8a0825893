/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures and delays on purpose: at each place where the module can fail, a test can
 * make it fail, or delay it. See fault.c for how the sites are armed.
 *
 * A site stands before a call that may fail, and replaces the call when it fires:
 *
 *	link = kxfer_fault(LINK) ? NULL : kzalloc_obj(*link, GFP_KERNEL);
 *	pd = kxfer_fault_ptr(LINK_PD) ?: ib_alloc_pd(ibdev, 0);
 *	ret = kxfer_fault_error(CM_CONNECT) ?: rdma_connect(id, &param);
 *	kxfer_fault_wc(RECV_DONE, wc);
 *
 * A fault never undoes what was done: the skipped call has not happened. Only a fault
 * of a completion contradicts the device, as a broken device would. The code after it
 * may then rely on nothing but the destruction of the QP.
 *
 * A delay prolongs the moments in which an ending races with something else: a link fails,
 * a session is closed, a device goes. A fault site in a context that may sleep can delay
 * too; fault sites that may be passed in atomic context are in KXFER_FAULT_ATOMIC_SITES().
 * Where nothing can fail, but an ending can come in between, there is a site for delays
 * alone:
 *
 *	list_del_init(&exposure->link_node);
 *	kxfer_delay(EXPORT_WITHDRAW);
 *	kxfer_exposure_deregister(exposure);
 *
 * Until a site is armed, and after a reset, each site is a jump that is not taken (a static
 * key), on every kernel and in every build. Calls that destroy or unmap have no site: their
 * failure could not be handled.
 */
#ifndef KXFER_FAULT_H
#define KXFER_FAULT_H

#include <linux/err.h>
#include <linux/jump_label.h>
#include <linux/types.h>

#include "base/compat.h"

/*
 * X(ID, errno, what fails), in reading order. tests/guest/fault has a test for each site, and
 * does not build if one is missing (tests/guest/fault/make-sites).
 */
#define KXFER_FAULT_SITES(X) \
	X(MISC_REGISTER, ENOMEM, "misc_register(): /dev/kxfer") \
	X(CALL_GROWN, E2BIG, "nothing: the structure of a call is longer than its caller has it") \
	X(SESSION, ENOMEM, "memory: a session") \
	X(SESSION_ID, ENOMEM, "memory: an id in a table of a session") \
	X(USER, ENOMEM, "memory: a user") \
	X(SESSION_EVENTS, ENOMEM, "memory: the ring of events") \
	X(INFO_RECORDS, ENOMEM, "memory: records of INFO") \
	X(DEVICE, ENOMEM, "memory: a device that comes") \
	X(DEVICE_PORT, EIO, "ib_query_port(): of a device that comes") \
	X(DEVICE_CLIENT, ENOMEM, "ib_register_client()") \
	X(DEVICE_MAP, EIO, "ib_dma_map_single(): memory of the module's own") \
	X(CHARGE, ENOMEM, "memory: a charge to an rdma cgroup") \
	X(CHARGE_LIMIT, EAGAIN, "rdmacg_try_charge(): the limit of a cgroup") \
	X(MEMORY, ENOMEM, "memory: to describe pinned memory") \
	X(MEMORY_ARRAY, ENOMEM, "memory: the array of pages") \
	X(MEMORY_SEGMENTS, ENOMEM, "memory: the lengths of segments") \
	X(MEMORY_PIN, ENOMEM, "pin_user_pages()") \
	X(MEMORY_PAGE, ENOMEM, "alloc_page(): of the built-in export") \
	X(MEMORY_TABLE, ENOMEM, "sg_alloc_table_from_pages_segment()") \
	X(REGION, ENOMEM, "memory: a region") \
	X(MAPPING, ENOMEM, "memory: a region's mapping for a device") \
	X(MAPPING_DMA, EIO, "ib_dma_map_sgtable_attrs(): a region") \
	X(MAPPING_EXTENTS, ENOMEM, "memory: the extents of a mapping") \
	X(MAPPING_STORE, ENOMEM, "xa_reserve(): a mapping in its region") \
	X(EXPORT, ENOMEM, "memory: an export") \
	X(EXPORT_WORKQUEUE, ENOMEM, "alloc_workqueue(): withdrawals") \
	X(EXPORT_RULES, ENOMEM, "memory: the rules of an export") \
	X(EXPORT_TABLE, ENOMEM, "memory: an export's place in the table") \
	X(MAILBOX, ENOMEM, "memory: a mailbox") \
	X(MAILBOX_MESSAGES, ENOMEM, "memory: the messages of a mailbox") \
	X(EXPOSURE, ENOMEM, "memory: an exposure") \
	X(EXPOSURE_MRS, ENOMEM, "memory: the registrations of an exposure") \
	X(EXPOSURE_KEYS, ENOMEM, "memory: the keys of an exposure") \
	X(EXPOSURE_SG, ENOMEM, "memory: the scatter list of a registration") \
	X(EXPOSURE_MAP, EIO, "ib_map_mr_sg(): an exposure") \
	X(GRANT, ENOMEM, "memory: a grant") \
	X(GRANT_ID, ENOMEM, "xa_alloc(): the id of a grant") \
	X(KEY, ENOMEM, "memory: a key") \
	X(KEY_REQUEST, ENOKEY, "request_key()") \
	X(KEY_HMAC, ENOMEM, "crypto_alloc_shash(): HMAC-SHA256") \
	X(KEYS, ENOMEM, "memory: the keys of a listener") \
	X(LISTENER, ENOMEM, "memory: a listener") \
	X(LISTENER_ID, ENOMEM, "rdma_create_id(): a listener") \
	X(LISTENER_AFONLY, EIO, "rdma_set_afonly()") \
	X(LISTENER_BIND, EADDRNOTAVAIL, "rdma_bind_addr(): a listener") \
	X(LISTENER_LISTEN, ENOMEM, "rdma_listen()") \
	X(CM_ID, ENOMEM, "rdma_create_id(): a lane that connects") \
	X(CM_ACK_TIMEOUT, EIO, "rdma_set_ack_timeout()") \
	X(CM_BIND, EADDRNOTAVAIL, "rdma_bind_addr(): a lane that connects") \
	X(CM_RESOLVE_ADDR, EHOSTUNREACH, "rdma_resolve_addr()") \
	X(CM_ADDR_RESOLVED, EHOSTUNREACH, "the event ADDR_RESOLVED: it is ADDR_ERROR") \
	X(CM_RESOLVE_ROUTE, ENOMEM, "rdma_resolve_route()") \
	X(CM_ROUTE_RESOLVED, EHOSTUNREACH, "the event ROUTE_RESOLVED: it is ROUTE_ERROR") \
	X(CM_CONNECT, ENOMEM, "rdma_connect()") \
	X(CM_ESTABLISHED, ECONNRESET, "the event ESTABLISHED: it is CONNECT_ERROR") \
	X(CM_ACCEPT, ENOMEM, "rdma_accept()") \
	X(CM_QUERY, EIO, "ib_query_qp(): of a lane that is connected") \
	X(CM_REJECT, ENOMEM, "rdma_reject()") \
	X(CM_NOTIFY, EIO, "rdma_notify()") \
	X(CM_DISCONNECT, EIO, "rdma_disconnect()") \
	X(LINK, ENOMEM, "memory: a link") \
	X(LINK_PD, ENOMEM, "ib_alloc_pd()") \
	X(LINK_THREAD, ENOMEM, "kthread_create(): kxfer_connect") \
	X(NET_OPS, ENOMEM, "register_pernet_subsys()") \
	X(LINK_WORKQUEUE, ENOMEM, "alloc_workqueue()") \
	X(LINK_HANDLERS, ENOMEM, "alloc_workqueue(): handlers") \
	X(LINK_LIFE, ENOMEM, "alloc_workqueue(): keep-alive and teardown") \
	X(CQ_WORKQUEUE, ENOMEM, "alloc_workqueue(): completions") \
	X(LANE, ENOMEM, "memory: a lane") \
	X(LANE_CQ, ENOMEM, "ib_alloc_cq() or ib_create_cq()") \
	X(CQ_POOL, ENOMEM, "ib_cq_pool_get()") \
	X(CQ_POOL_MARKER, ENOMEM, "ib_create_qp(): that comes last on a CQ of the pool") \
	X(CQ_POOL_ERROR, EIO, "ib_modify_qp(): its error state") \
	X(LANE_QP, ENOMEM, "rdma_create_qp()") \
	X(LANE_RESET, EINVAL, "ib_modify_qp() to RESET") \
	X(LANE_CHAINS, ENOMEM, "memory: the chains of a data lane") \
	X(LANE_SCRATCH, ENOMEM, "memory: to build work requests in") \
	X(LANE_LATENCY, ENOMEM, "memory: how long the jobs of a data lane took") \
	X(LANE_POST_SEND, ENOMEM, "ib_post_send()") \
	X(LANE_MR, ENOMEM, "ib_alloc_mr()") \
	X(LANE_MAP, EIO, "ib_map_mr_sg(): a short piece of the module's own") \
	X(LANE_WAITED, EIO, "the completion of a REG_MR or placement READ") \
	X(LANE_SINKS, ENOMEM, "memory: READ sinks") \
	X(LANE_PLACEMENT, ENOMEM, "memory: the sink of placement READs") \
	X(CHANNEL_MESSAGES, ENOMEM, "memory: messages") \
	X(CHANNEL_COPIES, ENOMEM, "memory: copies of messages") \
	X(CHANNEL_REQUESTS, ENOMEM, "memory: request slots") \
	X(CHANNEL_REPLIES, ENOMEM, "memory: reply slots") \
	X(CHANNEL_RECVS, ENOMEM, "memory: RECVs") \
	X(CHANNEL_PAGE, ENOMEM, "memory: room for an eager message") \
	X(CHANNEL_POST_RECV, ENOMEM, "ib_post_recv()") \
	X(CHANNEL_REQUEST_SENT, EIO, "the completion of a request's SEND") \
	X(CHANNEL_REPLY_SENT, EIO, "the completion of an answer's SEND") \
	X(CHANNEL_RECEIVED, EIO, "the completion of a RECV") \
	X(CONTROL_PLACEMENT, ENOMEM, "memory: what placement READs READ") \
	X(RELEASE_ORPHAN, ENOMEM, "memory: to give a grant back that no target took") \
	X(PEER, ENOMEM, "memory: a peer") \
	X(PATHS, ENOMEM, "memory: the paths to a peer") \
	X(LINE, ENOMEM, "memory: a line") \
	X(LINE_WORKQUEUE, ENOMEM, "alloc_workqueue(): lines") \
	X(PEER_LIST, ENOMEM, "memory: a page of a peer's exports") \
	X(TARGET, ENOMEM, "memory: a target") \
	X(TARGET_ANSWER, ENOMEM, "memory: a page of keys") \
	X(TARGET_KEYS, ENOMEM, "memory: the keys of a target") \
	X(TARGET_REVOKED, ENOMEM, "xa_store(): a withdrawal that overtakes a grant") \
	X(SENDER, ENOMEM, "memory: credits of a target") \
	X(FLOW, ENOMEM, "memory: the jobs of a session on a lane") \
	X(JOB_CACHE, ENOMEM, "kmem_cache_create(): jobs") \
	X(JOB, ENOMEM, "memory: a job") \
	X(DONE, ENOMEM, "memory: places of completions") \
	X(RING, ENOMEM, "memory: a completion ring") \
	X(RING_MEMORY, ENOMEM, "vmalloc(): what a completion ring shares") \
	X(RING_EVENTFD, EBADF, "eventfd_ctx_fdget()") \
	X(RING_MAP, ENOMEM, "vm_insert_page(): a page of a ring") \
	X(SQ, ENOMEM, "memory: a submission ring") \
	X(SQ_MEMORY, ENOMEM, "vmalloc(): what a submission ring shares") \
	X(URING_BATCH, ENOMEM, "blk_check_plugged(): jobs of one io_uring_enter()") \
	X(OFFERS, ENOMEM, "memory: long messages that a lane sends") \
	X(OFFER_SG, ENOMEM, "memory: to describe a long message") \
	X(OFFER_MAP, EIO, "ib_map_mr_sg(): a long message") \
	X(FETCHES, ENOMEM, "memory: long messages that a lane takes") \
	X(FETCH_SG, ENOMEM, "memory: to describe where a long message goes") \
	X(FETCH_MAP, EIO, "ib_map_mr_sg(): where a long message goes") \
	X(FETCHED, EIO, "the completion of a READ of a long message") \
	X(DEDICATED, ENOMEM, "memory: a dedicated connection") \
	X(DEDICATED_STATUS, ENOMEM, "memory: the status of a responder of verbs") \
	X(DEDICATED_READ, EIO, "the completion of a READ of that status") \
	X(DEDICATED_ANSWERS, ENOMEM, "memory: the answers of a responder of verbs") \
	X(DEDICATED_RECV, ENOMEM, "ib_post_recv(): for an answer") \
	X(DEDICATED_ANSWER, EIO, "the completion of a RECV of an answer") \
	X(UD_ID, ENOMEM, "rdma_create_id(): of RDMA_PS_UDP") \
	X(UD_BIND, EADDRNOTAVAIL, "rdma_bind_addr(): of RDMA_PS_UDP") \
	X(UD_RESOLVE_ADDR, EHOSTUNREACH, "rdma_resolve_addr(): of RDMA_PS_UDP") \
	X(UD_RESOLVE_ROUTE, ENOMEM, "rdma_resolve_route(): of RDMA_PS_UDP") \
	X(UD_QP, ENOMEM, "rdma_create_qp(): a UD QP") \
	X(UD_CONNECT, ENOMEM, "rdma_connect(): of RDMA_PS_UDP") \
	X(UD_ESTABLISHED, ECONNREFUSED, "the event ESTABLISHED of RDMA_PS_UDP") \
	X(UD_AH, ENOMEM, "rdma_create_ah()") \
	X(CHAIN_MAP_SINK, EIO, "ib_map_mr_sg(): the sink of a READ") \
	X(CHAIN_DONE, EIO, "the completion of a chain of work requests") \
	X(CHAIN_INVALIDATED, EIO, "the completion of a LOCAL_INV") \
	X(BENCH, ENOMEM, "memory: a measuring run") \
	X(BENCH_SAMPLES, ENOMEM, "memory: the samples of a run") \
	X(BENCH_HISTOGRAM, ENOMEM, "memory: the histogram of a run") \
	X(BENCH_SCHEDULE, ENOMEM, "memory: the schedule of a run") \
	X(BENCH_WORDS, ENOMEM, "memory: the words of a run") \
	X(BENCH_REQUESTS, ENOMEM, "memory: the work requests of a run") \
	X(BENCH_DONE, EIO, "the completion of a run's work request") \
	X(MRS, ENOMEM, "memory: the MRs of a run") \
	X(MRS_SG, ENOMEM, "memory: to describe what the MRs of a run cover") \
	X(MRS_POOL, ENOMEM, "ib_mr_pool_init(): MRs of a run") \
	X(MRS_MAP, EIO, "ib_map_mr_sg(): an MR of a run") \
	X(RUN_RW, ENOMEM, "memory: rdma_rw's part of a run") \
	X(RUN_RW_PIECES, ENOMEM, "memory: the rdma_rw contexts of a run") \
	X(RUN_RW_SG, ENOMEM, "memory: the scatter lists of rdma_rw contexts") \
	X(RUN_RW_POOL, ENOMEM, "ib_mr_pool_init(): MRs for rdma_rw") \
	X(RUN_RW_CTX, ENOMEM, "rdma_rw_ctx_init()") \
	X(DEBUGFS_RECORDS, ENOMEM, "memory: records of debugfs")

/*
 * X(ID): those of the sites above that may be passed in atomic context: with a spinlock
 * held, in a completion handler, in a soft interrupt. They cannot delay.
 */
#define KXFER_FAULT_ATOMIC_SITES(X) \
	X(CM_NOTIFY) \
	X(LANE_POST_SEND) \
	X(LANE_WAITED) \
	X(CHANNEL_PAGE) \
	X(CHANNEL_POST_RECV) \
	X(CHANNEL_REQUEST_SENT) \
	X(CHANNEL_REPLY_SENT) \
	X(CHANNEL_RECEIVED) \
	X(RELEASE_ORPHAN) \
	X(TARGET_REVOKED) \
	X(JOB) \
	X(OFFER_MAP) \
	X(FETCHED) \
	X(DEDICATED_READ) \
	X(DEDICATED_RECV) \
	X(DEDICATED_ANSWER) \
	X(CHAIN_MAP_SINK) \
	X(CHAIN_DONE) \
	X(CHAIN_INVALIDATED) \
	X(BENCH_DONE) \
	X(MRS_MAP)

/* X(ID, what is about to happen): sites for delays alone, in contexts that may sleep. */
#define KXFER_DELAY_SITES(X) \
	X(MODULE_EXIT, "links are told to end, clients of the RDMA core are still there") \
	X(SESSION_END, "a session is off the list, its jobs have not ended") \
	X(SESSION_TARGETS, "jobs have ended, targets are not closed") \
	X(SESSION_EXPORTS, "targets are closed, withdrawals not waited for") \
	X(SESSION_REGIONS, "exports are withdrawn, regions not unpinned") \
	X(DEVICE_REMOVE, "a device goes, its links do not know") \
	X(DEVICE_MAPPINGS, "links of a device are gone, its mappings are not") \
	X(MAPPING_MAKE, "a mapping is on its device's list, and not made") \
	X(MAPPING_STORED, "a mapping is in its region, its maker has not returned") \
	X(MAPPING_END, "a mapping without users, still in use by the device") \
	X(EXPORT_BEGIN, "an export is off the list, its holders do not know") \
	X(EXPORT_REVOKE, "a holder is about to hear of it") \
	X(EXPORT_REVOKED, "a holder has let go, its exposure is on its lists") \
	X(EXPORT_WITHDRAW, "an exposure is off its lists, its registrations are not ended") \
	X(EXPORT_ENDED, "registrations of an exposure are ended, waiters do not know") \
	X(EXPORT_CONTENT, "holders are about to hear of new content") \
	X(GRANT_RELEASE, "a grant is off the table, its exposure may have no other") \
	X(LINK_KEEPALIVE, "a link's keep-alive") \
	X(LINK_TEARDOWN, "a link is CLOSING, its lanes do not know") \
	X(LINK_LANES_STOPPED, "lanes are stopped, jobs, exposures and grants are there") \
	X(LINK_ENDED, "jobs, exposures and grants are gone, QPs are not") \
	X(LINK_LEAVE, "all of a link is gone but its PD") \
	X(LINK_DEAD, "a link is off its device, and not DEAD") \
	X(LINK_LAST, "a link is DEAD, the reference of its life is there") \
	X(LANE_OPENED, "a lane has a QP that is not connected") \
	X(LANE_DRAIN, "a lane is closed, its QP not drained") \
	X(LANE_DRAINED, "a QP is drained, and neither reset nor destroyed") \
	X(LANE_EXCLUSIVE, "a QP is drained, the run that has its lane does not know") \
	X(LANE_CQ_END, "a QP is reset or destroyed, its CQ may have an owner") \
	X(LANE_REGISTER, "a REG_MR is posted, about to be waited for") \
	X(LANE_DEREG, "an MR is about to be deregistered") \
	X(LANE_ACCEPT, "a connection is about to be accepted") \
	X(CQ_WORK, "a work is about to look at a CQ") \
	X(CQ_AWAY, "the owner of a CQ gives the CPU to others") \
	X(CHANNEL_CALL, "a request is posted, about to be waited for") \
	X(CONTROL_WORK, "a request of the peer is about to be handled") \
	X(CONTROL_ORPHAN, "a grant is about to be given back from a work") \
	X(PEER_END, "a peer is closed, its link still counts it") \
	X(FENCE_WAIT, "a peer has named a link that is to be over") \
	X(LINE_TRY, "a line is about to look for a link") \
	X(LINE_MOVE, "a line holds new jobs back, and is about to change its path") \
	X(LINE_CLOSE, "no job may wait in a line any more, its work may run") \
	X(TARGET_RENEW, "a target is granted again, its jobs still wait") \
	X(TARGET_UNLINKED, "a target is off its link's list, its WRITEs may not be placed") \
	X(TARGET_RELEASE, "WRITEs are placed, the grant is not given back") \
	X(TARGET_REVOKE, "jobs of a withdrawn target are stopped, and not answered for") \
	X(JOB_PUMP_WORK, "a work is about to post jobs") \
	X(JOB_DEADLINE_WORK, "a work is about to look for late jobs") \
	X(MAILBOX_DEADLINE_WORK, "a work is about to look for late RECVs") \
	X(RING_END, "a completion ring is about to be freed") \
	X(URING_WATCH, "a work is about to look for abandoned jobs") \
	X(OFFER_WORK, "a work is about to end offers") \
	X(OFFER_END, "an offer is over, its MR is valid") \
	X(FETCH_WORK, "a work is about to serve landings") \
	X(FETCH_END, "a message has landed, its MR is valid") \
	X(DEDICATED_END, "a dedicated connection is off the table, and not failed") \
	X(BENCH_END, "a measuring run is over, its lane is not given back") \
	X(LISTENER_CHECK, "a work is about to look where the addresses of listeners are") \
	X(LISTENER_RETRY, "a work is about to make listeners again")

#define KXFER_FAULT_ENUM(id, ...)	KXFER_FAULT_##id,
#define KXFER_DELAY_ENUM(id, ...)	KXFER_DELAY_##id,

/* The sites: first KXFER_FAULT_<ID>, then KXFER_DELAY_<ID>. */
enum kxfer_fault_site {
	KXFER_FAULT_SITES(KXFER_FAULT_ENUM)
	KXFER_FAULT_MAX,
	KXFER_DELAY_FIRST = KXFER_FAULT_MAX - 1,
	KXFER_DELAY_SITES(KXFER_DELAY_ENUM)
	KXFER_DELAY_MAX
};

#undef KXFER_FAULT_ENUM
#undef KXFER_DELAY_ENUM

struct dentry;

DECLARE_STATIC_KEY_FALSE(kxfer_fault_key);

int kxfer_fault_hit(enum kxfer_fault_site site);
void kxfer_fault_debugfs(struct dentry *parent);

/*
 * Return: 0, or the -errno of the site if it must fail now. Any context for the sites in
 * KXFER_FAULT_ATOMIC_SITES(); the others may sleep.
 */
#define kxfer_fault_error(id)						\
	(static_branch_unlikely(&kxfer_fault_key) ?			\
	 kxfer_fault_hit(KXFER_FAULT_##id) : 0)

/* Must the site fail now? */
#define kxfer_fault(id)			(kxfer_fault_error(id) != 0)

/*
 * A call at a site: its value, or a failure without the call if the site must fail now.
 * kxfer_try() is for calls that return 0 or -errno, kxfer_try_alloc() for those that return
 * NULL, kxfer_try_ptr() for those that return ERR_PTR.
 */
#define kxfer_try(id, call)		(kxfer_fault_error(id) ?: (call))
#define kxfer_try_alloc(id, call)	(kxfer_fault(id) ? NULL : (call))
#define kxfer_try_ptr(id, call)		(ERR_PTR(kxfer_fault_error(id)) ?: (call))

/* Delay here, if a delay of the site is armed. May sleep. */
#define kxfer_delay(id)							\
do {									\
	if (static_branch_unlikely(&kxfer_fault_key))			\
		kxfer_fault_hit(KXFER_DELAY_##id);			\
} while (0)

/* Turn a success into an error. A completion with an error is not a hit of the site. */
#define kxfer_fault_wc(id, wc)						\
do {									\
	struct ib_wc *__wc = (wc);					\
									\
	if (__wc->status == IB_WC_SUCCESS && kxfer_fault(id))		\
		__wc->status = IB_WC_GENERAL_ERR;			\
} while (0)

#endif /* KXFER_FAULT_H */

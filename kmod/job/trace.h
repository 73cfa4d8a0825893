/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: the stages of a job, for perf, trace-cmd and `kxfer bench --stages`. A job
 * whose SUBMIT waits for it passes them in this order:
 *
 *	kxfer_submit		the call's arguments are in the kernel
 *	kxfer_job_checked	copied, checked, and what it names was found
 *	kxfer_job_planned	cut into work requests, as far as that is done before posting
 *	kxfer_handed_over	with others of its batch: posted, or queued if there is no room
 *	kxfer_job_found		a completion of its work requests came off the CQ
 *	kxfer_job_completed	it has ended; its session is about to be notified
 *	kxfer_waited		the waiter runs again
 *
 *	kxfer_target		a target was opened, closed, or its export was withdrawn
 *	kxfer_line		something happened to a line (enum kxfer_line_event_type)
 *
 * A job of several chains is found once for each chain; a job that is refused is not handed
 * over. The link and the lane of a job are 0 while it has none. A tracepoint without a
 * listener is a jump that is not taken. A kernel without perf has none of them: of the kernels
 * tested that is User-mode Linux, which itself warns when a module is loaded without memory for
 * its events (event_define_fields(); fault/fail_nth).
 */
#ifndef CONFIG_PERF_EVENTS

#ifndef KXFER_TRACE_H
#define KXFER_TRACE_H

#include <linux/types.h>

struct kxfer_completion;
struct kxfer_lane;
struct kxfer_line_event;
struct kxfer_session;
struct kxfer_target;

static inline void trace_kxfer_submit(const struct kxfer_session *owner, u32 nr) { }
static inline void trace_kxfer_handed_over(const struct kxfer_session *owner, u32 nr) { }
static inline void trace_kxfer_waited(const struct kxfer_session *owner, u32 nr) { }
#define trace_kxfer_job_found_enabled()	false
static inline void trace_kxfer_job_checked(const struct kxfer_session *owner,
					   const struct kxfer_completion *job, u64 length,
					   const struct kxfer_lane *lane,
					   const struct kxfer_target *target) { }
static inline void trace_kxfer_job_planned(const struct kxfer_session *owner,
					   const struct kxfer_completion *job, u64 length,
					   const struct kxfer_lane *lane,
					   const struct kxfer_target *target) { }
static inline void trace_kxfer_job_found(const struct kxfer_session *owner,
					 const struct kxfer_completion *job, u64 length,
					 const struct kxfer_lane *lane,
					 const struct kxfer_target *target) { }
static inline void trace_kxfer_job_completed(const struct kxfer_session *owner,
					     const struct kxfer_completion *job, u64 length,
					     const struct kxfer_lane *lane,
					     const struct kxfer_target *target) { }
static inline void trace_kxfer_target(const struct kxfer_target *target, u32 what) { }
static inline void trace_kxfer_line(u64 line, const struct kxfer_line_event *event) { }

#endif /* KXFER_TRACE_H */

#else /* CONFIG_PERF_EVENTS */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM kxfer

#if !defined(KXFER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KXFER_TRACE_H

#include <linux/kxfer.h>
#include <linux/tracepoint.h>

#include "job/target.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/session.h"

TRACE_DEFINE_ENUM(KXFER_OP_NOP);
TRACE_DEFINE_ENUM(KXFER_OP_READ);
TRACE_DEFINE_ENUM(KXFER_OP_WRITE);
TRACE_DEFINE_ENUM(KXFER_OP_NOTIFY);
TRACE_DEFINE_ENUM(KXFER_OP_COMPARE_SWAP);
TRACE_DEFINE_ENUM(KXFER_OP_FETCH_ADD);
TRACE_DEFINE_ENUM(KXFER_OP_SEND);
TRACE_DEFINE_ENUM(KXFER_OP_RECV);

#define show_kxfer_op(op)					\
	__print_symbolic(op,					\
			 { KXFER_OP_NOP, "NOP" },		\
			 { KXFER_OP_READ, "READ" },		\
			 { KXFER_OP_WRITE, "WRITE" },		\
			 { KXFER_OP_NOTIFY, "NOTIFY" },		\
			 { KXFER_OP_COMPARE_SWAP, "COMPARE_SWAP" }, \
			 { KXFER_OP_FETCH_ADD, "FETCH_ADD" },	\
			 { KXFER_OP_SEND, "SEND" },		\
			 { KXFER_OP_RECV, "RECV" })

DECLARE_EVENT_CLASS(kxfer_session,
		    TP_PROTO(const struct kxfer_session *owner, u32 nr),
		    TP_ARGS(owner, nr),
		    TP_STRUCT__entry(__field(u64, session)
				     __field(s32, pid)
				     __field(u32, nr)),
		    TP_fast_assign(__entry->session = owner->id;
				   __entry->pid = owner->pid;
				   __entry->nr = nr;),
		    TP_printk("session %llu of process %d: %u jobs",
			      __entry->session, __entry->pid, __entry->nr));

DEFINE_EVENT(kxfer_session, kxfer_submit,
	     TP_PROTO(const struct kxfer_session *owner, u32 nr),
	     TP_ARGS(owner, nr));

DEFINE_EVENT(kxfer_session, kxfer_handed_over,
	     TP_PROTO(const struct kxfer_session *owner, u32 nr),
	     TP_ARGS(owner, nr));

DEFINE_EVENT(kxfer_session, kxfer_waited,
	     TP_PROTO(const struct kxfer_session *owner, u32 nr),
	     TP_ARGS(owner, nr));

DECLARE_EVENT_CLASS(kxfer_job,
		    TP_PROTO(const struct kxfer_session *owner,
			     const struct kxfer_completion *job, u64 length,
			     const struct kxfer_lane *lane, const struct kxfer_target *target),
		    TP_ARGS(owner, job, length, lane, target),
		    TP_STRUCT__entry(__field(u64, session)
				     __field(u64, user_data)
				     __field(u64, length)
				     __field(u64, submitted_ns)
				     __field(u64, completed_ns)
				     __field(u64, link)
				     __field(u32, lane)
				     __field(u32, target)
				     __field(s32, pid)
				     __field(u32, op)
				     __field(s32, status)),
		    TP_fast_assign(__entry->session = owner->id;
				   __entry->pid = owner->pid;
				   __entry->user_data = job->user_data;
				   __entry->submitted_ns = job->submitted_ns;
				   __entry->completed_ns = job->completed_ns;
				   __entry->op = job->op;
				   __entry->status = job->status;
				   __entry->length = length;
				   __entry->link = lane ? lane->link->id : 0;
				   __entry->lane = lane ? lane->index : 0;
				   __entry->target = target ? target->id : 0;),
		    TP_printk("session %llu of process %d: %s, user_data 0x%llx, %llu bytes, target %u, link %llu, lane %u, status %d",
			      __entry->session, __entry->pid, show_kxfer_op(__entry->op),
			      __entry->user_data, __entry->length, __entry->target, __entry->link,
			      __entry->lane, __entry->status));

DEFINE_EVENT(kxfer_job, kxfer_job_checked,
	     TP_PROTO(const struct kxfer_session *owner, const struct kxfer_completion *job,
		      u64 length, const struct kxfer_lane *lane,
		      const struct kxfer_target *target),
	     TP_ARGS(owner, job, length, lane, target));

DEFINE_EVENT(kxfer_job, kxfer_job_planned,
	     TP_PROTO(const struct kxfer_session *owner, const struct kxfer_completion *job,
		      u64 length, const struct kxfer_lane *lane,
		      const struct kxfer_target *target),
	     TP_ARGS(owner, job, length, lane, target));

DEFINE_EVENT(kxfer_job, kxfer_job_found,
	     TP_PROTO(const struct kxfer_session *owner, const struct kxfer_completion *job,
		      u64 length, const struct kxfer_lane *lane,
		      const struct kxfer_target *target),
	     TP_ARGS(owner, job, length, lane, target));

DEFINE_EVENT(kxfer_job, kxfer_job_completed,
	     TP_PROTO(const struct kxfer_session *owner, const struct kxfer_completion *job,
		      u64 length, const struct kxfer_lane *lane,
		      const struct kxfer_target *target),
	     TP_ARGS(owner, job, length, lane, target));

TRACE_DEFINE_ENUM(KXFER_TARGET_OPENED);
TRACE_DEFINE_ENUM(KXFER_TARGET_CLOSED);
TRACE_DEFINE_ENUM(KXFER_TARGET_WITHDRAWN);

#define show_kxfer_target(what)					\
	__print_symbolic(what,					\
			 { KXFER_TARGET_OPENED, "opened" },	\
			 { KXFER_TARGET_CLOSED, "closed" },	\
			 { KXFER_TARGET_WITHDRAWN, "withdrawn" })

TRACE_EVENT(kxfer_target,
	    TP_PROTO(const struct kxfer_target *target, u32 what),
	    TP_ARGS(target, what),
	    TP_STRUCT__entry(__field(u64, link)
			     __field(u64, grant)
			     __field(u64, length)
			     __field(u32, target)
			     __field(u32, rights)
			     __field(u32, what)),
	    TP_fast_assign(__entry->link = target->link->id;
			   __entry->grant = target->grant;
			   __entry->length = target->length;
			   __entry->target = target->id;
			   __entry->rights = target->rights;
			   __entry->what = what;),
	    TP_printk("target %u %s: link %llu, grant %llu, %llu bytes, rights 0x%x",
		      __entry->target, show_kxfer_target(__entry->what), __entry->link,
		      __entry->grant, __entry->length, __entry->rights));

TRACE_DEFINE_ENUM(KXFER_LINE_OPENED);
TRACE_DEFINE_ENUM(KXFER_LINE_BROKE);
TRACE_DEFINE_ENUM(KXFER_LINE_WAITED);
TRACE_DEFINE_ENUM(KXFER_LINE_TRIED);
TRACE_DEFINE_ENUM(KXFER_LINE_CONNECTED);
TRACE_DEFINE_ENUM(KXFER_LINE_RENEWED);
TRACE_DEFINE_ENUM(KXFER_LINE_REVOKED);
TRACE_DEFINE_ENUM(KXFER_LINE_RESTARTED);
TRACE_DEFINE_ENUM(KXFER_LINE_RESUMED);
TRACE_DEFINE_ENUM(KXFER_LINE_LOST);

#define show_kxfer_line_event(type)			\
	__print_symbolic(type,				\
			 { KXFER_LINE_OPENED, "opened" }, \
			 { KXFER_LINE_BROKE, "broke" }, \
			 { KXFER_LINE_WAITED, "waited" }, \
			 { KXFER_LINE_TRIED, "tried" }, \
			 { KXFER_LINE_CONNECTED, "connected" }, \
			 { KXFER_LINE_RENEWED, "renewed" }, \
			 { KXFER_LINE_REVOKED, "revoked" }, \
			 { KXFER_LINE_RESTARTED, "restarted" }, \
			 { KXFER_LINE_RESUMED, "resumed" }, \
			 { KXFER_LINE_LOST, "lost" })

TRACE_EVENT(kxfer_line,
	    TP_PROTO(u64 line, const struct kxfer_line_event *event),
	    TP_ARGS(line, event),
	    TP_STRUCT__entry(__field(u64, line)
			     __field(u64, link)
			     __field(u32, type)
			     __field(s32, error)
			     __field(u32, nr)),
	    TP_fast_assign(__entry->line = line;
			   __entry->link = event->link;
			   __entry->type = event->type;
			   __entry->error = event->error;
			   __entry->nr = event->nr;),
	    TP_printk("line %llu: %s, link %llu, error %d, %u times",
		      __entry->line, show_kxfer_line_event(__entry->type), __entry->link,
		      __entry->error, __entry->nr));

#endif /* KXFER_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

#endif /* CONFIG_PERF_EVENTS */

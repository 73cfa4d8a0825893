/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of what this node serves, of the same system as job/trace.h:
 *
 *	kxfer_grant		a peer has asked for an export; error: why it got none
 *	kxfer_grant_ended	it has given a grant back, or its link ended
 *	kxfer_withdraw		an export is withdrawn: the peer is asked to let go of it
 *	kxfer_withdrawn		the peer has let go; error: why the link was given up instead
 *	kxfer_message		a message for a mailbox has come; error: why it was refused
 *
 * Any user that may trace sees the exports of all.
 */
#ifndef CONFIG_PERF_EVENTS

#ifndef KXFER_SHARE_TRACE_H
#define KXFER_SHARE_TRACE_H

#include <linux/types.h>

struct kxfer_exposure;
struct kxfer_grant;
struct kxfer_link;

static inline void trace_kxfer_grant(const struct kxfer_link *link, const char *name, u32 uid,
				     u64 grant, int error) { }
static inline void trace_kxfer_grant_ended(const struct kxfer_link *link,
					   const struct kxfer_grant *grant) { }
static inline void trace_kxfer_withdraw(const struct kxfer_exposure *exposure, int error) { }
static inline void trace_kxfer_withdrawn(const struct kxfer_exposure *exposure, int error) { }
static inline void trace_kxfer_message(const struct kxfer_exposure *exposure, u32 uid, u32 bytes,
				       int error) { }

#endif /* KXFER_SHARE_TRACE_H */

#else /* CONFIG_PERF_EVENTS */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM kxfer
/* Another header has the same system. */
#undef TRACE_SYSTEM_VAR
#define TRACE_SYSTEM_VAR kxfer_share_trace

#if !defined(KXFER_SHARE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KXFER_SHARE_TRACE_H

#include <linux/kxfer.h>
#include <linux/tracepoint.h>

#include "link/link.h"
#include "share/export.h"
#include "share/exposure.h"
#include "share/grant.h"

#define KXFER_TRACE_NAME	(KXFER_NAME_MAX + 1)

TRACE_EVENT(kxfer_grant,
	    TP_PROTO(const struct kxfer_link *link, const char *name, u32 uid, u64 grant,
		     int error),
	    TP_ARGS(link, name, uid, grant, error),
	    TP_STRUCT__entry(__field(u64, link)
			     __field(u64, grant)
			     __field(u32, uid)
			     __field(s32, error)
			     __array(char, name, KXFER_TRACE_NAME)),
	    TP_fast_assign(__entry->link = link->id;
			   __entry->grant = grant;
			   __entry->uid = uid;
			   __entry->error = error;
			   strscpy(__entry->name, name, KXFER_TRACE_NAME);),
	    TP_printk("link %llu: %s for uid %d: grant %llu, error %d", __entry->link,
		      __entry->name, __entry->uid, __entry->grant, __entry->error));

TRACE_EVENT(kxfer_grant_ended,
	    TP_PROTO(const struct kxfer_link *link, const struct kxfer_grant *grant),
	    TP_ARGS(link, grant),
	    TP_STRUCT__entry(__field(u64, link)
			     __field(u32, uid)
			     __array(char, name, KXFER_TRACE_NAME)),
	    TP_fast_assign(__entry->link = link->id;
			   __entry->uid = grant->uid;
			   memcpy(__entry->name, grant->exposure->export->name,
				  KXFER_TRACE_NAME);),
	    TP_printk("link %llu: %s for uid %d", __entry->link, __entry->name, __entry->uid));

DECLARE_EVENT_CLASS(kxfer_withdrawal,
		    TP_PROTO(const struct kxfer_exposure *exposure, int error),
		    TP_ARGS(exposure, error),
		    TP_STRUCT__entry(__field(u64, link)
				     __field(u64, exposure)
				     __field(s32, error)
				     __array(char, name, KXFER_TRACE_NAME)),
		    TP_fast_assign(__entry->link = exposure->link->id;
				   __entry->exposure = exposure->id;
				   __entry->error = error;
				   memcpy(__entry->name, exposure->export->name,
					  KXFER_TRACE_NAME);),
		    TP_printk("link %llu: %s, exposure %llu, error %d", __entry->link,
			      __entry->name, __entry->exposure, __entry->error));

DEFINE_EVENT(kxfer_withdrawal, kxfer_withdraw,
	     TP_PROTO(const struct kxfer_exposure *exposure, int error),
	     TP_ARGS(exposure, error));

DEFINE_EVENT(kxfer_withdrawal, kxfer_withdrawn,
	     TP_PROTO(const struct kxfer_exposure *exposure, int error),
	     TP_ARGS(exposure, error));

TRACE_EVENT(kxfer_message,
	    TP_PROTO(const struct kxfer_exposure *exposure, u32 uid, u32 bytes, int error),
	    TP_ARGS(exposure, uid, bytes, error),
	    TP_STRUCT__entry(__field(u64, link)
			     __field(u32, uid)
			     __field(u32, bytes)
			     __field(s32, error)
			     __array(char, name, KXFER_TRACE_NAME)),
	    TP_fast_assign(__entry->link = exposure->link->id;
			   __entry->uid = uid;
			   __entry->bytes = bytes;
			   __entry->error = error;
			   memcpy(__entry->name, exposure->export->name, KXFER_TRACE_NAME);),
	    TP_printk("link %llu: %s from uid %d, %u bytes, error %d", __entry->link,
		      __entry->name, __entry->uid, __entry->bytes, __entry->error));

#endif /* KXFER_SHARE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE share_trace
#include <trace/define_trace.h>

#endif /* CONFIG_PERF_EVENTS */

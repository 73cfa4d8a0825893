/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of links, for perf, trace-cmd and bpftrace, of the same system as job/trace.h:
 *
 *	kxfer_link		a link has another state; error: why it closes
 *	kxfer_refused		a connection request of a peer was refused (enum kxfer_refusal)
 *
 * Any user that may trace sees the links of all.
 */
#ifndef CONFIG_PERF_EVENTS

#ifndef KXFER_LINK_TRACE_H
#define KXFER_LINK_TRACE_H

#include <linux/types.h>

struct kxfer_link;
struct sockaddr_storage;

static inline void trace_kxfer_link(const struct kxfer_link *link) { }
static inline void trace_kxfer_refused(const struct sockaddr_storage *peer, u32 refusal) { }

#endif /* KXFER_LINK_TRACE_H */

#else /* CONFIG_PERF_EVENTS */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM kxfer
/* Another header has the same system. */
#undef TRACE_SYSTEM_VAR
#define TRACE_SYSTEM_VAR kxfer_link_trace

#if !defined(KXFER_LINK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KXFER_LINK_TRACE_H

#include <linux/kxfer.h>
#include <linux/tracepoint.h>

#include "link/link.h"

TRACE_DEFINE_ENUM(KXFER_LINK_CONNECTING);
TRACE_DEFINE_ENUM(KXFER_LINK_LIVE);
TRACE_DEFINE_ENUM(KXFER_LINK_CLOSING);
TRACE_DEFINE_ENUM(KXFER_LINK_DEAD);

#define show_link_state(state)						\
	__print_symbolic(state,						\
			 { KXFER_LINK_CONNECTING, "connecting" },	\
			 { KXFER_LINK_LIVE, "live" },			\
			 { KXFER_LINK_CLOSING, "closing" },		\
			 { KXFER_LINK_DEAD, "dead" })

TRACE_EVENT(kxfer_link,
	    TP_PROTO(const struct kxfer_link *link),
	    TP_ARGS(link),
	    TP_STRUCT__entry(__field(u64, link)
			     __field(u32, state)
			     __field(s32, error)
			     __field(bool, initiator)
			     __field(u16, family)
			     __field(u16, port)
			     __array(u8, addr, 16)),
	    TP_fast_assign(__entry->link = link->id;
			   __entry->state = link->state;
			   __entry->error = link->error;
			   __entry->initiator = link->initiator;
			   __entry->family = link->remote.family;
			   __entry->port = link->remote.port;
			   memcpy(__entry->addr, link->remote.addr, sizeof(__entry->addr));),
	    TP_printk("link %llu %s: %s, error %d", __entry->link,
		      __entry->initiator ? "made here" : "accepted",
		      show_link_state(__entry->state), __entry->error));

TRACE_EVENT(kxfer_refused,
	    TP_PROTO(const struct sockaddr_storage *peer, u32 refusal),
	    TP_ARGS(peer, refusal),
	    TP_STRUCT__entry(__array(u8, peer, sizeof(struct sockaddr_storage))
			     __field(u32, refusal)),
	    TP_fast_assign(memcpy(__entry->peer, peer, sizeof(__entry->peer));
			   __entry->refusal = refusal;),
	    TP_printk("%pISpc: refusal %u", __entry->peer, __entry->refusal));

#endif /* KXFER_LINK_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE link_trace
#include <trace/define_trace.h>

#endif /* CONFIG_PERF_EVENTS */

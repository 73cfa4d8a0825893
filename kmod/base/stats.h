/* SPDX-License-Identifier: GPL-2.0 */
/* Counters of the whole module, for INFO and debugfs. See stats.c. */
#ifndef KXFER_STATS_H
#define KXFER_STATS_H

#include <linux/irqflags.h>	/* needed by asm-generic/percpu.h */
#include <linux/percpu.h>
#include <linux/types.h>

/*
 * X(ID, name, meaning), in the order in which INFO lists them. The gauges, live_*,
 * count what exists now and are exact; the totals only grow.
 */
#define KXFER_GAUGES(X) \
	X(LIVE_SESSIONS, "live_sessions", "open files on /dev/kxfer") \
	X(LIVE_REGIONS, "live_regions", "regions, the built-in one included") \
	X(LIVE_PINS, "live_pins", "user pages pinned") \
	X(LIVE_MAPPINGS, "live_mappings", "regions mapped for a device") \
	X(LIVE_EXPORTS, "live_exports", "published regions and mailboxes") \
	X(LIVE_EXPOSURES, "live_exposures", "exports registered on a link") \
	X(LIVE_MRS, "live_mrs", "memory registrations") \
	X(LIVE_LINKS, "live_links", "links, in any state") \
	X(LIVE_LANES, "live_lanes", "QPs with their CQs") \
	X(LIVE_PEERS, "live_peers", "peers that sessions have opened") \
	X(LIVE_TARGETS, "live_targets", "targets that sessions have opened") \
	X(LIVE_GRANTS, "live_grants", "grants held from peers or given to them") \
	X(LIVE_JOBS, "live_jobs", "jobs queued or posted") \
	X(LIVE_RINGS, "live_rings", "completion and submission rings") \
	X(LIVE_CHARGES, "live_charges", "charges of sessions and exports to rdma cgroups") \
	X(LIVE_LISTENERS, "live_listeners", "listeners") \
	X(LIVE_KEYS, "live_keys", "copies of shared secrets, of listeners and peers")

#define KXFER_TOTALS(X) \
	X(LINKS_MADE, "links_made", "links that this node has initiated") \
	X(LINKS_ACCEPTED, "links_accepted", "links accepted from peers") \
	X(LINKS_REFUSED, "links_refused", "connections refused by this node") \
	X(LINKS_FORGED, "links_forged", "of these, for an address that is not the path's") \
	X(KEYS_REFUSED, "keys_refused", "peers that did not prove the key of a link") \
	X(LINKS_LOST, "links_lost", "links that broke or did not answer") \
	X(JOBS_SUBMITTED, "jobs_submitted", "jobs accepted") \
	X(JOBS_COMPLETED, "jobs_completed", "jobs that ended well") \
	X(JOBS_FAILED, "jobs_failed", "jobs that ended with an error") \
	X(JOBS_CANCELLED, "jobs_cancelled", "jobs that ended before they were posted") \
	X(JOBS_WITHDRAWN, "jobs_withdrawn", "jobs whose export or mailbox was withdrawn") \
	X(JOBS_KEPT, "jobs_kept", "jobs that outlived their link, and waited for another") \
	X(JOBS_RESUMED, "jobs_resumed", "jobs that waited for a link and went on") \
	X(PATHS_CHANGED, "paths_changed", "peers that went over to another of their paths") \
	X(BYTES_READ, "bytes_read", "payload that READs brought here") \
	X(BYTES_WRITTEN, "bytes_written", "payload that WRITEs took to peers") \
	X(ATOMICS, "atomics", "words of peers that atomics changed or compared") \
	X(NOTIFIES_SENT, "notifies_sent", "NOTIFY messages sent") \
	X(NOTIFIES_RECEIVED, "notifies_received", "NOTIFY messages received") \
	X(SENDS_SENT, "sends_sent", "messages sent to mailboxes of peers") \
	X(SENDS_EAGER, "sends_eager", "of these, without an answer") \
	X(SENDS_STORED, "sends_stored", "messages that peers put into mailboxes") \
	X(SENDS_REFUSED, "sends_refused", "messages that found a mailbox full") \
	X(REVOKES_SENT, "revokes_sent", "withdrawals told to holders") \
	X(REVOKES_ANSWERED, "revokes_answered", "withdrawals acknowledged by holders") \
	X(REVOKES_TIMED_OUT, "revokes_timed_out", "withdrawals not acknowledged in time") \
	X(KEEPALIVES, "keepalives", "keep-alives answered by peers") \
	X(MESSAGES_RECEIVED, "messages_received", "messages whose header is in order") \
	X(MESSAGES_MALFORMED, "messages_malformed", "messages refused for their header") \
	X(PROTOCOL_ERRORS, "protocol_errors", "messages that broke the protocol") \
	X(WR_POSTED, "wr_posted", "work requests posted on data lanes") \
	X(COMPLETIONS, "completions", "completions seen on data lanes")

#define KXFER_STAT_ENUM(id, ...)	KXFER_STAT_##id,

/* The counters, KXFER_STAT_<ID>: gauges, then totals, without a gap. */
enum kxfer_stat {
	KXFER_GAUGES(KXFER_STAT_ENUM)
	KXFER_STAT_GAUGES,
	KXFER_STAT_BEFORE_TOTALS = KXFER_STAT_GAUGES - 1,
	KXFER_TOTALS(KXFER_STAT_ENUM)
	KXFER_STAT_MAX
};

#undef KXFER_STAT_ENUM

/**
 * struct kxfer_stat_totals - counts of one CPU
 * @values: totals by enum kxfer_stat; the entries of gauges are not used
 */
struct kxfer_stat_totals {
	u64 values[KXFER_STAT_MAX];
};

DECLARE_PER_CPU(struct kxfer_stat_totals, kxfer_stat_totals);

void kxfer_stat_move(enum kxfer_stat id, s64 value);
u64 kxfer_stat_read(enum kxfer_stat id);
const char *kxfer_stat_name(enum kxfer_stat id);
const char *kxfer_stat_meaning(enum kxfer_stat id);

/* @id: a constant. @value: number to add; negative only for gauges. Any context. */
static __always_inline void kxfer_stat_add(enum kxfer_stat id, s64 value)
{
	if (id < KXFER_STAT_GAUGES)
		kxfer_stat_move(id, value);
	else
		this_cpu_add(kxfer_stat_totals.values[id], value);
}

static __always_inline void kxfer_stat_inc(enum kxfer_stat id)
{
	kxfer_stat_add(id, 1);
}

static __always_inline void kxfer_stat_dec(enum kxfer_stat id)
{
	kxfer_stat_add(id, -1);
}

#endif /* KXFER_STATS_H */

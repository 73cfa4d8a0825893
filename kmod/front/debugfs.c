// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/kxfer: what the module holds, for human readers.
 *
 * No ABI: names, columns and their order change whenever that helps the reader.
 * Programs use INFO, whose records are shown here too (info.c).
 *
 * Each file is a table: a heading, then one object per line. A table is read
 * object by object while objects come and go, so it is no snapshot of one
 * instant. Reading is safe at any time: records are copies, made under the locks
 * of the objects. While a line is formatted no lock is held but sessions_mutex,
 * where sessions are walked; nothing is waited for under that one. An open file
 * holds the module; rmmod then reports that the module is in use.
 */
#include "base/log.h"

#include <linux/debugfs.h>
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/stats.h"
#include "front/debugfs.h"
#include "front/info.h"
#include "front/sessions.h"
#include "job/job.h"
#include "node/region.h"
#include "node/session.h"

#define BATCH		16	/* records gathered at a time */
#define ADDR_TEXT	60	/* an IPv6 address with port and zone, and some room */

static struct dentry *root;

/**
 * struct column - a column of a table
 * @title: title in the heading; NULL: end of the columns
 * @width: width, as in the lines; negative: left-aligned; 0: last column, not padded
 */
struct column {
	const char *title;
	int width;
};

/**
 * struct table - a table, which is a file
 * @name: name of the file
 * @columns: columns, in order
 * @kind: enum kxfer_info_kind whose records are the lines, or 0
 * @show_record: with @kind: writes one line
 * @show_session: without @kind: writes the lines of one session
 * @record_bytes: without @kind: bytes of the records of one session
 */
struct table {
	const char *name;
	const struct column *columns;
	u32 kind;
	void (*show_record)(struct seq_file *seq, const void *record);
	void (*show_session)(struct seq_file *seq, struct kxfer_session *session,
			     void *records);
	size_t record_bytes;
};

static const char *addr_text(char *text, const struct kxfer_addr *addr)
{
	struct sockaddr_storage ss;

	if (!addr->family)
		return "-";
	kxfer_addr_to_sockaddr(addr, &ss);
	if (addr->scope_id)
		snprintf(text, ADDR_TEXT, "[%pISc%%%u]:%u", &ss, addr->scope_id, addr->port);
	else
		snprintf(text, ADDR_TEXT, "%pISpc", &ss);
	return text;
}

static const char *device_type(u32 flags)
{
	return flags & KXFER_DEVICE_IWARP ? "iWARP" :
	       flags & KXFER_DEVICE_ROCE ? "RoCE" : "IB";
}

static void show_device(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_device *d = record;

	seq_printf(seq, "%2llu %-12s %-5s %5u %3u %8u %14u %7u %7u %7u/%-6u %7u %11llu %5u %8u %s%s%s\n",
		   d->id, d->name, device_type(d->flags), d->nr_ports, d->max_send_sge,
		   d->max_sge_rd, d->max_fast_reg_pages, d->max_qp_wr, d->max_cqe,
		   d->max_qp_init_rd_atom, d->max_qp_rd_atom, d->nr_comp_vectors,
		   d->max_msg_bytes, d->nr_links, d->nr_mappings,
		   d->flags & KXFER_DEVICE_USABLE ? "usable" : "unusable",
		   d->flags & KXFER_DEVICE_VIRT_DMA ? ",software" : "",
		   d->flags & KXFER_DEVICE_ATOMIC ? ",atomic" : "");
}

static void show_session(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_session *s = record;

	seq_printf(seq, "%7llu %7u %6u %7u %7u %5u %7u %5u %5u %10llu\n",
		   s->id, s->pid, s->uid, s->nr_regions, s->nr_exports, s->nr_peers,
		   s->nr_targets, s->nr_jobs, s->nr_done, s->pinned_bytes >> 10);
}

static const char *rights_text(u32 rights)
{
	static const char *const texts[] = { "-", "r", "w", "rw", "a", "ra", "wa", "rwa" };

	return rights == KXFER_RIGHT_SEND ? "send" : texts[rights & KXFER_RIGHT_ALL];
}

static void show_export(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_export *e = record;

	seq_printf(seq, "%6llu %-24s %13llu %-6s %5u %6u %7u %5u %6u %10llu %13llu\n",
		   e->id, e->name, e->length, rights_text(e->rights), e->nr_rules,
		   e->owner_uid, e->owner_pid, e->nr_links, e->nr_grants,
		   e->content.generation, e->content.length);
}

static const char *state_text(u32 state)
{
	static const char *const texts[] = {
		[KXFER_LINK_CONNECTING]	= "connecting",
		[KXFER_LINK_LIVE]	= "live",
		[KXFER_LINK_CLOSING]	= "closing",
		[KXFER_LINK_DEAD]	= "dead",
	};

	return state < ARRAY_SIZE(texts) && texts[state] ? texts[state] : "?";
}

static const char *context_text(u32 context)
{
	static const char *const texts[] = {
		[KXFER_CONTEXT_POLLED]		= "polled",
		[KXFER_CONTEXT_WORKQUEUE]	= "workqueue",
		[KXFER_CONTEXT_SOFTIRQ]		= "softirq",
		[KXFER_CONTEXT_UNBOUND]		= "unbound",
		[KXFER_CONTEXT_DIRECT]		= "direct",
	};

	return context < ARRAY_SIZE(texts) ? texts[context] : "?";
}

static void show_link(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_link *l = record;
	char local[ADDR_TEXT], remote[ADDR_TEXT];

	seq_printf(seq, "%5llu %-10s %-3s %-12s %-22s %-22s %-9s %5u %5u %6u %4u %7llu %6llu %7llu %10llu %11llu %5d\n",
		   l->id, state_text(l->state),
		   l->flags & KXFER_LINK_INITIATOR ? "out" : "in", l->device,
		   addr_text(local, &l->local), addr_text(remote, &l->remote),
		   context_text(l->context), l->nr_lanes, l->nr_sessions, l->nr_grants,
		   l->nr_jobs, l->rtt_ns / NSEC_PER_USEC, l->age_ns / NSEC_PER_SEC,
		   l->idle_ns / NSEC_PER_MSEC, l->bytes_read >> 10,
		   l->bytes_written >> 10, l->error);
}

static void show_lane(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_lane *l = record;

	seq_printf(seq, "%5llu %4u %-7s %4u %7u %4u %6u %6u %13llu %12llu\n",
		   l->link, l->index, l->index ? "data" : "control", l->path_mtu,
		   l->credits, l->max_credits, l->nr_queued, l->nr_posted, l->nr_wr,
		   l->nr_completions);
}

static const char *op_text(u32 op)
{
	static const char *const texts[] = {
		[KXFER_OP_NOP]		= "nop",
		[KXFER_OP_READ]		= "read",
		[KXFER_OP_WRITE]	= "write",
		[KXFER_OP_NOTIFY]	= "notify",
		[KXFER_OP_COMPARE_SWAP]	= "compare-swap",
		[KXFER_OP_FETCH_ADD]	= "fetch-add",
		[KXFER_OP_SEND]		= "send",
		[KXFER_OP_RECV]		= "recv",
	};

	return op < ARRAY_SIZE(texts) ? texts[op] : "?";
}

/* Where the bucket ends in which the @rank-th of the jobs is, in us; the last ends nowhere. */
static u64 latency_us(const struct kxfer_info_latency *l, u64 rank)
{
	u32 i = 0;

	while (i < KXFER_LATENCY_BUCKETS - 1 && l->buckets[i] < rank)
		rank -= l->buckets[i++];
	i++;
	return ((4ULL + i % 4) << (8 + i / 4)) / NSEC_PER_USEC;
}

static void show_latency(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_latency *l = record;
	u64 nr = 0;
	u32 i;

	for (i = 0; i < KXFER_LATENCY_BUCKETS; i++)
		nr += l->buckets[i];
	seq_printf(seq, "%5llu %4llu %-12s %13llu %9llu", l->link, l->lane & 15, op_text(l->op),
		   nr, l->nr_failed);
	if (nr)
		seq_printf(seq, " %8llu %8llu %8llu\n", l->sum_ns / nr / NSEC_PER_USEC,
			   latency_us(l, nr - nr / 2), latency_us(l, nr - nr / 100));
	else
		seq_printf(seq, " %8s %8s %8s\n", "-", "-", "-");
}

static void show_listener(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_listener *l = record;
	char addr[ADDR_TEXT];

	seq_printf(seq, "%3llu %-28s %-12s %-6s %-4s %-8s %9llu %9llu\n",
		   l->id, addr_text(addr, &l->addr), l->device[0] ? (char *)l->device : "-",
		   l->active ? "active" : "lost",
		   l->flags & KXFER_LISTEN_F_KEEP ? "yes" : "no",
		   l->flags & KXFER_LISTEN_F_ANY_PORT ? "any" : "reserved",
		   l->nr_accepted, l->nr_refused);
}

static void show_counter(struct seq_file *seq, const void *record)
{
	const struct kxfer_info_counter *c = record;

	seq_printf(seq, "%-18s %16llu %s\n", c->name, c->value,
		   kxfer_stat_meaning(c->id - 1));
}

static void show_regions(struct seq_file *seq, struct kxfer_session *session,
			 void *records)
{
	struct kxfer_region_record *r = records;
	int nr = kxfer_region_records(session, r, KXFER_MAX_REGIONS);

	if (nr < 0)
		seq_printf(seq, "%7llu (busy: a call of it is under way)\n", session->id);
	for (; nr > 0; nr--, r++)
		seq_printf(seq, "%7llu %6u %13llu %9lu %-8s %5u %7u %s\n", session->id, r->id,
			   r->length, r->nr_pages, r->writable ? "yes" : "no", r->nr_users,
			   r->nr_mappings, r->dmabuf ? "dma-buf" : "pages");
}

static void show_jobs(struct seq_file *seq, struct kxfer_session *session, void *records)
{
	u32 nr = kxfer_job_records(session, records, KXFER_MAX_JOBS);
	struct kxfer_job_record *r = records;
	u64 now = ktime_get_ns();

	for (; nr; nr--, r++)
		seq_printf(seq, "%7llu %5llu %4u %-12s %13llu %-6s %8llu 0x%llx\n",
			   session->id, r->link, r->lane, op_text(r->op), r->length,
			   r->posted ? "posted" : "queued",
			   (now - min(now, r->submitted_ns)) / NSEC_PER_MSEC,
			   r->user_data);
}

static const struct column device_columns[] = {
	{ "id", 2 }, { "name", -12 }, { "type", -5 }, { "ports", 5 }, { "sge", 3 },
	{ "read-sge", 8 }, { "fast-reg-pages", 14 }, { "qp-wr", 7 }, { "cqe", 7 },
	{ "reads-out/in", -14 }, { "vectors", 7 }, { "max-message", 11 }, { "links", 5 },
	{ "mappings", 8 }, { "flags", 0 },
	{}
};

static const struct column session_columns[] = {
	{ "session", 7 }, { "pid", 7 }, { "uid", 6 }, { "regions", 7 }, { "exports", 7 },
	{ "peers", 5 }, { "targets", 7 }, { "jobs", 5 }, { "done", 5 },
	{ "pinned-KiB", 10 },
	{}
};

static const struct column region_columns[] = {
	{ "session", 7 }, { "region", 6 }, { "bytes", 13 }, { "pages", 9 },
	{ "writable", -8 }, { "users", 5 }, { "devices", 7 }, { "memory", 0 },
	{}
};

static const struct column export_columns[] = {
	{ "id", 6 }, { "name", -24 }, { "bytes", 13 }, { "rights", -6 }, { "rules", 5 },
	{ "uid", 6 }, { "pid", 7 }, { "links", 5 }, { "grants", 6 }, { "generation", 10 },
	{ "content", 13 },
	{}
};

static const struct column link_columns[] = {
	{ "id", 5 }, { "state", -10 }, { "dir", -3 }, { "device", -12 }, { "local", -22 },
	{ "remote", -22 }, { "context", -9 }, { "lanes", 5 }, { "users", 5 },
	{ "grants", 6 }, { "jobs", 4 }, { "rtt-us", 7 }, { "age-s", 6 }, { "idle-ms", 7 },
	{ "read-KiB", 10 }, { "written-KiB", 11 }, { "error", 5 },
	{}
};

static const struct column lane_columns[] = {
	{ "link", 5 }, { "lane", 4 }, { "kind", -7 }, { "mtu", 4 }, { "credits", 7 },
	{ "of", 4 }, { "queued", 6 }, { "posted", 6 }, { "work-requests", 13 },
	{ "completions", 12 },
	{}
};

/* The times are of the jobs that succeeded; p50 and p99 are where a bucket ends. */
static const struct column latency_columns[] = {
	{ "link", 5 }, { "lane", 4 }, { "op", -12 }, { "jobs", 13 }, { "failed", 9 },
	{ "mean-us", 8 }, { "p50-us", 8 }, { "p99-us", 8 },
	{}
};

static const struct column job_columns[] = {
	{ "session", 7 }, { "link", 5 }, { "lane", 4 }, { "op", -12 }, { "bytes", 13 },
	{ "state", -6 }, { "age-ms", 8 }, { "user-data", -9 },
	{}
};

static const struct column listener_columns[] = {
	{ "id", 3 }, { "address", -28 }, { "device", -12 }, { "state", -6 },
	{ "kept", -4 }, { "ports", -8 }, { "accepted", 9 }, { "refused", 9 },
	{}
};

static const struct column counter_columns[] = {
	{ "counter", -18 }, { "value", 16 }, { "meaning", 0 },
	{}
};

static const struct table tables[] = {
	{ "devices", device_columns, KXFER_INFO_DEVICES, show_device },
	{ "sessions", session_columns, KXFER_INFO_SESSIONS, show_session },
	{ "regions", region_columns, .show_session = show_regions,
	  .record_bytes = KXFER_MAX_REGIONS * sizeof(struct kxfer_region_record) },
	{ "exports", export_columns, KXFER_INFO_EXPORTS, show_export },
	{ "links", link_columns, KXFER_INFO_LINKS, show_link },
	{ "lanes", lane_columns, KXFER_INFO_LANES, show_lane },
	{ "latencies", latency_columns, KXFER_INFO_LATENCIES, show_latency },
	{ "jobs", job_columns, .show_session = show_jobs,
	  .record_bytes = KXFER_MAX_JOBS * sizeof(struct kxfer_job_record) },
	{ "listeners", listener_columns, KXFER_INFO_LISTENERS, show_listener },
	{ "counters", counter_columns, KXFER_INFO_COUNTERS, show_counter },
};

static int show_kind(struct seq_file *seq, const struct table *table)
{
	u32 size = kxfer_info_record_size(table->kind), nr, i;
	u64 cursor = 0;
	void *records;

	records = kxfer_try_alloc(DEBUGFS_RECORDS, kvmalloc_array(BATCH, size, GFP_KERNEL));
	if (!records)
		return -ENOMEM;
	do {
		nr = kxfer_info_fill(NULL, table->kind, &cursor, records, BATCH);
		for (i = 0; i < nr; i++)
			table->show_record(seq, records + i * size);
	} while (nr && !seq_has_overflowed(seq));
	kvfree(records);
	return 0;
}

struct walk {
	struct seq_file *seq;
	const struct table *table;
	void *records;
};

static void look_at_session(struct kxfer_session *session, void *context)
{
	struct walk *walk = context;

	if (!seq_has_overflowed(walk->seq))
		walk->table->show_session(walk->seq, session, walk->records);
}

static int show_sessions(struct seq_file *seq, const struct table *table)
{
	struct walk walk = { .seq = seq, .table = table };

	walk.records = kxfer_try_alloc(DEBUGFS_RECORDS, kvmalloc(table->record_bytes, GFP_KERNEL));
	if (!walk.records)
		return -ENOMEM;
	kxfer_session_for_each(look_at_session, &walk);
	kvfree(walk.records);
	return 0;
}

static void show_heading(struct seq_file *seq, const struct column *column)
{
	for (; column->title; column++)
		seq_printf(seq, "%*s%c", column->width, column->title,
			   column[1].title ? ' ' : '\n');
}

/* Called again, with more room, when the lines did not fit. */
static int show_table(struct seq_file *seq, void *unused)
{
	const struct table *table = seq->private;

	show_heading(seq, table->columns);
	return table->kind ? show_kind(seq, table) : show_sessions(seq, table);
}

static int open_table(struct inode *inode, struct file *file)
{
	return single_open(file, show_table, inode->i_private);
}

static const struct file_operations table_fops = {
	.owner = THIS_MODULE,
	.open = open_table,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
};

/** kxfer_debugfs_init() - make the files; nothing depends on them */
void kxfer_debugfs_init(void)
{
	u32 i;

	root = debugfs_create_dir("kxfer", NULL);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		debugfs_create_file(tables[i].name, 0400, root, (void *)&tables[i],
				    &table_fops);
	kxfer_fault_debugfs(root);
}

/** kxfer_debugfs_exit() - remove the files; waits for readers */
void kxfer_debugfs_exit(void)
{
	debugfs_remove(root);
}

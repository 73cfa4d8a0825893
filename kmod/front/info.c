// SPDX-License-Identifier: GPL-2.0
/*
 * INFO: fixed records of the objects of this node.
 *
 * For each kind, the file of the objects has a function that fills an array with the records
 * after a cursor, under a lock of its own. Here the records are cut to the caller's stride
 * and copied. A caller sees what is in the network namespace of its session. debugfs uses the
 * same records, of all namespaces; there @viewer is NULL. Callers without CAP_NET_ADMIN see
 * exports, sessions and lines of their own uid, links on which a session of that uid has a peer,
 * with their lanes, and links by which a peer holds exports of that uid.
 *
 * A user that shares a link sees no more than by joining it: PEER_OPEN is open to every user,
 * and both need the link's key. No session of this node can join an accepted link, so
 * figures to which other users add are left out of its record (link_table.c).
 */
#include "base/log.h"

#include <linux/capability.h>
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/fault.h"
#include "base/stats.h"
#include "front/info.h"
#include "front/sessions.h"
#include "job/latency.h"
#include "job/peer.h"
#include "job/story.h"
#include "link/link.h"
#include "link/listener.h"
#include "node/device.h"
#include "node/session.h"
#include "share/export.h"

#define NR_MAX		1024
#define STRIDE_MAX	4096
#define PAGE_RECORDS	32	/* gathered at a time */

static u32 device_records(const struct kxfer_viewer *viewer, u64 *cursor,
			  void *records, u32 nr)
{
	return kxfer_device_info(viewer ? viewer->session->net : NULL, cursor, records, nr);
}

static u32 listener_records(const struct kxfer_viewer *viewer, u64 *cursor,
			    void *records, u32 nr)
{
	return kxfer_listener_info(viewer, cursor, records, nr);
}

static u32 export_records(const struct kxfer_viewer *viewer, u64 *cursor,
			  void *records, u32 nr)
{
	return kxfer_export_info(viewer, cursor, records, nr);
}

static u32 session_records(const struct kxfer_viewer *viewer, u64 *cursor,
			   void *records, u32 nr)
{
	return kxfer_session_info(viewer, cursor, records, nr);
}

static u32 line_records(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr)
{
	return kxfer_story_info(viewer, cursor, records, nr);
}

static u32 counter_records(const struct kxfer_viewer *viewer, u64 *cursor,
			   void *records, u32 nr)
{
	struct kxfer_info_counter *info = records;
	u32 n;

	for (n = 0; n < nr && *cursor < KXFER_STAT_MAX; n++, ++*cursor) {
		info[n] = (struct kxfer_info_counter) {
			.id = *cursor + 1,
			.value = kxfer_stat_read(*cursor),
		};
		strscpy(info[n].name, kxfer_stat_name(*cursor), sizeof(info[n].name));
	}
	return n;
}

static const struct {
	u32 size;
	u32 (*fill)(const struct kxfer_viewer *viewer, u64 *cursor, void *records,
		    u32 nr);
} kinds[] = {
	[KXFER_INFO_DEVICES]   = { sizeof(struct kxfer_info_device), device_records },
	[KXFER_INFO_LISTENERS] = { sizeof(struct kxfer_info_listener), listener_records },
	[KXFER_INFO_EXPORTS]   = { sizeof(struct kxfer_info_export), export_records },
	[KXFER_INFO_LINKS]     = { sizeof(struct kxfer_info_link), kxfer_link_info },
	[KXFER_INFO_LANES]     = { sizeof(struct kxfer_info_lane), kxfer_lane_info },
	[KXFER_INFO_SESSIONS]  = { sizeof(struct kxfer_info_session), session_records },
	[KXFER_INFO_COUNTERS]  = { sizeof(struct kxfer_info_counter), counter_records },
	[KXFER_INFO_LINES]     = { sizeof(struct kxfer_info_line), line_records },
	[KXFER_INFO_LATENCIES] = { sizeof(struct kxfer_info_latency), kxfer_latency_info },
};

/** kxfer_info_record_size() - bytes of a record, 0 for an unknown kind */
u32 kxfer_info_record_size(u32 kind)
{
	return kind < ARRAY_SIZE(kinds) ? kinds[kind].size : 0;
}

/** kxfer_info_fill() - fill in records of a known kind after *cursor; may sleep */
u32 kxfer_info_fill(const struct kxfer_viewer *viewer, u32 kind, u64 *cursor,
		    void *records, u32 nr)
{
	return kinds[kind].fill(viewer, cursor, records, nr);
}

static int store_record(const void *record, u32 size, void __user *to, u32 stride)
{
	if (copy_to_user(to, record, min(size, stride)))
		return -EFAULT;
	if (stride > size && clear_user(to + size, stride - size))
		return -EFAULT;
	return 0;
}

static int store_records(const struct kxfer_info *cmd, const void *records, u32 nr,
			 u32 done)
{
	u32 size = kinds[cmd->kind].size, i;

	for (i = 0; i < nr; i++) {
		void __user *to = u64_to_user_ptr(cmd->records) +
				  (size_t)(done + i) * cmd->stride;

		if (store_record(records + i * size, size, to, cmd->stride))
			return -EFAULT;
	}
	return 0;
}

/* Make an entry for each link, so that notes need no memory while a lock is held. */
static int enter_links(struct xarray *links)
{
	u64 ids[PAGE_RECORDS], cursor = 0;
	int ret = 0;
	u32 n, i;

	do {
		n = kxfer_link_ids(&cursor, ids, PAGE_RECORDS);
		for (i = 0; !ret && i < n; i++)
			ret = xa_err(xa_store(links, ids[i], xa_mk_value(0),
					      GFP_KERNEL_ACCOUNT));
	} while (!ret && n);
	return ret;
}

static void note_links_of(struct kxfer_session *session, void *context)
{
	struct kxfer_viewer *viewer = context;

	if (kxfer_viewer_sees(viewer, session, session->uid, session->net))
		kxfer_peer_note_links(session, &viewer->links);
}

/* Links are noted before they are listed, because the list is made under a spinlock. */
static int note_links(struct kxfer_viewer *viewer)
{
	int ret = enter_links(&viewer->links);

	if (ret)
		return ret;
	kxfer_session_for_each(note_links_of, viewer);
	kxfer_export_note_links(viewer, &viewer->links);
	return 0;
}

static int list_for(const struct kxfer_viewer *viewer, struct kxfer_info *cmd)
{
	u32 done = 0, n;
	void *records;
	int ret = 0;

	records = kxfer_try_alloc(INFO_RECORDS, kvmalloc_array(PAGE_RECORDS, kinds[cmd->kind].size,
							       GFP_KERNEL_ACCOUNT));
	if (!records)
		return -ENOMEM;
	while (!ret && done < cmd->nr) {
		n = kxfer_info_fill(viewer, cmd->kind, &cmd->cursor, records,
				    min_t(u32, PAGE_RECORDS, cmd->nr - done));
		if (!n)
			break;
		ret = store_records(cmd, records, n, done);
		done += n;
	}
	kvfree(records);
	cmd->nr = done;
	return ret;
}

/** kxfer_info_list() - KXFER_INFO */
int kxfer_info_list(struct kxfer_session *session, void *arg)
{
	struct kxfer_viewer viewer = { .session = session, .admin = capable(CAP_NET_ADMIN) };
	struct kxfer_info *cmd = arg;
	int ret = 0;

	if (cmd->flags || !kxfer_info_record_size(cmd->kind))
		return -EOPNOTSUPP;
	if (cmd->__reserved || !cmd->nr || cmd->nr > NR_MAX || cmd->stride < 8 ||
	    cmd->stride > STRIDE_MAX)
		return -EINVAL;
	if (viewer.admin)
		return list_for(&viewer, cmd);
	xa_init_flags(&viewer.links, XA_FLAGS_ACCOUNT);
	if (cmd->kind == KXFER_INFO_LINKS || cmd->kind == KXFER_INFO_LANES ||
	    cmd->kind == KXFER_INFO_LATENCIES)
		ret = note_links(&viewer);
	ret = ret ?: list_for(&viewer, cmd);
	xa_destroy(&viewer.links);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * INFO: fixed records of the objects of this node.
 *
 * Each kind has a function of its own file that fills an array with the records
 * behind a cursor, under its own lock; here the records are cut to the caller's
 * stride and copied. @viewer is the caller's session, or NULL for callers with
 * CAP_NET_ADMIN: others see exports and sessions of their own uid, and links that
 * their own session uses. debugfs uses the same records.
 */
#include "log.h"

#include <linux/capability.h>
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "device.h"
#include "export.h"
#include "fault.h"
#include "info.h"
#include "link.h"
#include "listener.h"
#include "session.h"
#include "stats.h"

#define NR_MAX		1024
#define STRIDE_MAX	4096
#define PAGE_RECORDS	32	/* gathered at a time */

static u32 device_records(const struct kxfer_session *viewer, u64 *cursor,
			  void *records, u32 nr)
{
	return kxfer_device_info(cursor, records, nr);
}

static u32 listener_records(const struct kxfer_session *viewer, u64 *cursor,
			    void *records, u32 nr)
{
	return kxfer_listener_info(cursor, records, nr);
}

static u32 counter_records(const struct kxfer_session *viewer, u64 *cursor,
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
	u32 (*fill)(const struct kxfer_session *viewer, u64 *cursor, void *records,
		    u32 nr);
} kinds[] = {
	[KXFER_INFO_DEVICES]   = { sizeof(struct kxfer_info_device), device_records },
	[KXFER_INFO_LISTENERS] = { sizeof(struct kxfer_info_listener), listener_records },
	[KXFER_INFO_EXPORTS]   = { sizeof(struct kxfer_info_export), kxfer_export_info },
	[KXFER_INFO_LINKS]     = { sizeof(struct kxfer_info_link), kxfer_link_info },
	[KXFER_INFO_LANES]     = { sizeof(struct kxfer_info_lane), kxfer_lane_info },
	[KXFER_INFO_SESSIONS]  = { sizeof(struct kxfer_info_session), kxfer_session_info },
	[KXFER_INFO_COUNTERS]  = { sizeof(struct kxfer_info_counter), counter_records },
};

/** kxfer_info_record_size() - bytes of a record, 0 for an unknown kind */
u32 kxfer_info_record_size(u32 kind)
{
	return kind < ARRAY_SIZE(kinds) ? kinds[kind].size : 0;
}

/** kxfer_info_fill() - records of a known kind behind *cursor; may sleep */
u32 kxfer_info_fill(const struct kxfer_session *viewer, u32 kind, u64 *cursor,
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

/*
 * A viewer's own tables are looked at by the fill functions of links and lanes,
 * under spinlocks: the session's lock keeps those tables as they are. Sessions
 * take it themselves.
 */
static u32 fill_locked(struct kxfer_session *viewer, struct kxfer_info *cmd,
		       void *records, u32 nr)
{
	bool lock = viewer && cmd->kind != KXFER_INFO_SESSIONS;
	u32 n;

	if (lock)
		down_read(&viewer->lock);
	n = kxfer_info_fill(viewer, cmd->kind, &cmd->cursor, records, nr);
	if (lock)
		up_read(&viewer->lock);
	return n;
}

/** kxfer_info_list() - KXFER_INFO */
int kxfer_info_list(struct kxfer_session *session, void *arg)
{
	struct kxfer_session *viewer = capable(CAP_NET_ADMIN) ? NULL : session;
	struct kxfer_info *cmd = arg;
	u32 done = 0, n;
	void *records;
	int ret = 0;

	if (cmd->flags || !kxfer_info_record_size(cmd->kind))
		return -EOPNOTSUPP;
	if (cmd->__reserved || !cmd->nr || cmd->nr > NR_MAX || cmd->stride < 8 ||
	    cmd->stride > STRIDE_MAX)
		return -EINVAL;
	records = kxfer_fault(INFO_RECORDS) ? NULL :
		  kvmalloc_array(PAGE_RECORDS, kinds[cmd->kind].size, GFP_KERNEL_ACCOUNT);
	if (!records)
		return -ENOMEM;
	while (!ret && done < cmd->nr) {
		n = fill_locked(viewer, cmd, records,
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

// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/kxfer: file operations and the one table of calls.
 *
 * A call's structure is copied in once, checked for size and unknown content,
 * and handed to a handler that works on the kernel's copy; what the handler
 * changed is copied back. Results must not get lost: a structure with results is
 * written back once before the handler runs, so that memory that cannot be written
 * is found before anything has happened.
 *
 * A structure grows at its end only. The caller's structure may be as short as the
 * structure was in the first release (@min of struct kxfer_call): the handler finds
 * zeros in what is missing, and the caller gets no byte past its own size.
 */
#include "base/log.h"

#include <linux/fs.h>
#include <linux/kxfer.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/rule.h"
#include "front/call.h"
#include "front/cdev.h"
#include "front/engine.h"
#include "front/info.h"
#include "front/sessions.h"
#include "job/done.h"
#include "job/job.h"
#include "job/peer.h"
#include "job/reap.h"
#include "job/ring.h"
#include "job/sq.h"
#include "job/submit.h"
#include "job/target.h"
#include "job/uring.h"
#include "link/listener.h"
#include "node/device.h"
#include "node/event.h"
#include "node/memory.h"
#include "node/region.h"
#include "node/session.h"
#include "share/export.h"

static int query(struct kxfer_session *session, void *arg)
{
	struct kxfer_query *cmd = arg;

	if (cmd->flags)
		return -EOPNOTSUPP;
	*cmd = (struct kxfer_query) {
		.size = cmd->size,
		.abi = KXFER_ABI,
		.nr_devices = kxfer_device_count(),
		.features = KXFER_FEATURE_NOTIFY | KXFER_FEATURE_IPV6 |
			    KXFER_FEATURE_CQ_RING | KXFER_FEATURE_ATOMIC |
			    KXFER_FEATURE_MAILBOX | KXFER_FEATURE_ORDER |
			    KXFER_FEATURE_LONG_MESSAGE | KXFER_FEATURE_WRITE_NOTIFY |
			    KXFER_FEATURE_EAGER | KXFER_FEATURE_APART | KXFER_FEATURE_WAIT |
			    KXFER_FEATURE_SQ_RING | KXFER_FEATURE_LOSS |
			    KXFER_FEATURE_VIA | KXFER_FEATURE_NETNS |
			    KXFER_URING_FEATURE |
			    (IS_ENABLED(CONFIG_KEYS) ? KXFER_FEATURE_KEY : 0) |
			    (IS_ENABLED(CONFIG_DMA_SHARED_BUFFER) ? KXFER_FEATURE_DMABUF : 0),
		.max_jobs_per_submit = KXFER_SUBMIT_MAX,
		.max_jobs = KXFER_MAX_JOBS,
		.max_regions = KXFER_MAX_REGIONS,
		.max_exports = KXFER_MAX_EXPORTS,
		.max_targets = KXFER_MAX_TARGETS,
		.max_peers = KXFER_MAX_PEERS,
		.max_listeners = KXFER_MAX_LISTENERS,
		.max_events = KXFER_MAX_EVENTS,
		.max_rules = KXFER_MAX_RULES,
		.max_region_bytes = KXFER_MEMORY_MAX_BYTES,
	};
	strscpy(cmd->version, KXFER_VERSION, sizeof(cmd->version));
	return 0;
}

static int do_nothing(struct kxfer_session *session, void *arg)
{
	const struct kxfer_nop *cmd = arg;

	return cmd->flags ? -EOPNOTSUPP : 0;
}

/* For calls that take struct kxfer_id. */
static int check_id(const struct kxfer_id *cmd)
{
	if (cmd->flags)
		return -EOPNOTSUPP;
	return cmd->__reserved ? -EINVAL : 0;
}

union kxfer_any {
	struct kxfer_query query;
	struct kxfer_nop nop;
	struct kxfer_info info;
	struct kxfer_region_add region_add;
	struct kxfer_id id;
	struct kxfer_export_add export_add;
	struct kxfer_export_set export_set;
	struct kxfer_mailbox_add mailbox_add;
	struct kxfer_listen_add listen_add;
	struct kxfer_listen_del listen_del;
	struct kxfer_peer_open peer_open;
	struct kxfer_peer_list peer_list;
	struct kxfer_target_open target_open;
	struct kxfer_target_info target_info;
	struct kxfer_submit submit;
	struct kxfer_reap reap;
	struct kxfer_cancel cancel;
	struct kxfer_event_reap event_reap;
	struct kxfer_cq_ring cq_ring;
	struct kxfer_sq_ring sq_ring;
	u8 room[KXFER_CALL_ROOM];
};

/* @last: the last member in the first release; it stays when the structure grows. */
#define CALL(cmd, type, last, flags, handle) \
	[_IOC_NR(cmd)] = KXFER_CALL_OF(type, offsetofend(struct type, last), flags, handle)

#define OUT	KXFER_CALL_OUT
#define BY_ID	KXFER_CALL_BY_ID
#define URING	KXFER_CALL_URING
#define BARE	KXFER_CALL_BARE

static const struct kxfer_call calls[] = {
	CALL(KXFER_QUERY, kxfer_query, max_region_bytes, OUT, query),
	CALL(KXFER_NOP, kxfer_nop, flags, 0, do_nothing),
	CALL(KXFER_INFO, kxfer_info, __reserved, OUT, kxfer_info_list),
	CALL(KXFER_REGION_ADD, kxfer_region_add, nr_segments, OUT, kxfer_region_add),
	CALL(KXFER_REGION_DEL, kxfer_id, __reserved, BY_ID, kxfer_region_del),
	CALL(KXFER_EXPORT_ADD, kxfer_export_add, nr_events, OUT, kxfer_export_add),
	CALL(KXFER_EXPORT_DEL, kxfer_id, __reserved, BY_ID, kxfer_export_del),
	CALL(KXFER_EXPORT_SET, kxfer_export_set, content, OUT, kxfer_export_set),
	CALL(KXFER_MAILBOX_ADD, kxfer_mailbox_add, message_size, OUT,
	     kxfer_export_add_mailbox),
	CALL(KXFER_LISTEN_ADD, kxfer_listen_add, listener, OUT, kxfer_listener_add),
	CALL(KXFER_LISTEN_DEL, kxfer_listen_del, listener, 0, kxfer_listener_del),
	CALL(KXFER_PEER_OPEN, kxfer_peer_open, link, OUT | KXFER_CALL_OUT_ON_ERROR | URING,
	     kxfer_peer_open),
	CALL(KXFER_PEER_CLOSE, kxfer_id, __reserved, BY_ID, kxfer_peer_close),
	CALL(KXFER_PEER_LIST, kxfer_peer_list, __reserved, OUT, kxfer_peer_list),
	CALL(KXFER_TARGET_OPEN, kxfer_target_open, content, OUT | URING, kxfer_target_open),
	CALL(KXFER_TARGET_CLOSE, kxfer_id, __reserved, BY_ID, kxfer_target_close),
	CALL(KXFER_TARGET_INFO, kxfer_target_info, content, OUT | URING, kxfer_target_info),
	CALL(KXFER_SUBMIT, kxfer_submit, __reserved, OUT, kxfer_submit),
	CALL(KXFER_REAP, kxfer_reap, __reserved, OUT, kxfer_reap),
	CALL(KXFER_CANCEL, kxfer_cancel, __reserved, OUT, kxfer_job_cancel),
	CALL(KXFER_EVENT_REAP, kxfer_event_reap, deadline_ns, OUT, kxfer_event_reap),
	CALL(KXFER_CQ_RING, kxfer_cq_ring, bytes, OUT, kxfer_ring_create),
	CALL(KXFER_SQ_RING, kxfer_sq_ring, bytes, OUT, kxfer_sq_create),
	[_IOC_NR(KXFER_ENTER)] = { .flags = BARE, .handle = kxfer_submit_enter },
};

/* Return: the call of the table above, or ERR_PTR */
static const struct kxfer_call *own_call(unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd);

	if (cmd != _IO(KXFER_TYPE, nr) || nr >= ARRAY_SIZE(calls))
		return ERR_PTR(-ENOTTY);
	nr = array_index_nospec(nr, ARRAY_SIZE(calls));
	return calls[nr].handle ? &calls[nr] : ERR_PTR(-ENOTTY);
}

/* Return: the call, or ERR_PTR */
static const struct kxfer_call *find_call(struct kxfer_session *session, unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd);

	if (cmd == _IO(KXFER_TYPE, nr) &&
	    nr >= KXFER_CMD_ENGINE && nr <= KXFER_CMD_ENGINE_LAST)
		return kxfer_engine_call(session, nr);
	return own_call(cmd);
}

/*
 * Hardened usercopy checks no copy of a constant length: that is 50 instructions less for each
 * SUBMIT, and as many in copy_out().
 */
static int copy_known(union kxfer_any *any, const void __user *user, u32 known, u32 size)
{
	if (size != sizeof(any->submit) || known != size)
		return copy_struct_from_user(any, known, user, size);
	return copy_from_user(&any->submit, user, sizeof(any->submit)) ? -EFAULT : 0;
}

static int copy_out(void __user *user, const union kxfer_any *any, u32 size)
{
	if (size != sizeof(any->submit))
		return copy_to_user(user, any, size) ? -EFAULT : 0;
	return copy_to_user(user, &any->submit, sizeof(any->submit)) ? -EFAULT : 0;
}

/*
 * @known: bytes of the structure that the module knows.
 * Return: how many of these the caller has, at least 4, or -errno.
 */
static int copy_in(const struct kxfer_call *call, union kxfer_any *any,
		   const void __user *user, u32 known)
{
	u32 size;
	int ret;

	if (get_user(size, (const u32 __user *)user))
		return -EFAULT;
	if (size < call->min)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_known(any, user, known, size);
	if (ret)
		return ret;
	/* User memory may have changed since. */
	any->nop.size = size;
	if (call->flags & BY_ID)
		ret = check_id(&any->id);
	return ret ?: min(size, known);
}

/*
 * No call is carried out whose results could not be returned: can user memory be written?
 * A structure is on two pages at most. Writes the bytes that are there.
 */
static int probe_out(const union kxfer_any *any, u8 __user *user, u32 shared)
{
	return put_user(any->room[0], &user[0]) ||
	       put_user(any->room[shared - 1], &user[shared - 1]) ? -EFAULT : 0;
}

static long kxfer_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct kxfer_call *call = find_call(file->private_data, cmd);
	void __user *user = (void __user *)arg;
	/* Only what copy_in() fills is read. */
	union kxfer_any any __uninitialized;
	int shared, ret;

	if (IS_ERR(call))
		return PTR_ERR(call);
	if (call->flags & BARE)
		return call->handle(file->private_data, (void *)arg);
	shared = copy_in(call, &any, user,
			 call->size + (kxfer_fault(CALL_GROWN) ? KXFER_CALL_GROWTH : 0));
	if (shared < 0)
		return shared;
	if (call->flags & OUT && probe_out(&any, user, shared))
		return -EFAULT;
	ret = call->handle(file->private_data, &any);
	if ((call->flags & OUT && !ret) || call->flags & KXFER_CALL_OUT_ON_ERROR)
		if (copy_out(user, &any, shared) && !ret)
			ret = -EFAULT;
	return ret;
}

#if IS_ENABLED(CONFIG_IO_URING)
/*
 * io_uring first asks not to sleep, which -EAGAIN answers. Then its thread calls, with the
 * credentials and the memory of the process (io-wq). A ring that polls has no such thread.
 */
static int call_by_uring(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct kxfer_uring_call *user = kxfer_uring_payload(cmd);

	if (issue_flags & IO_URING_F_IOPOLL || cmd->flags & IORING_URING_CMD_FIXED)
		return -EOPNOTSUPP;
	if (READ_ONCE(user->__reserved))
		return -EINVAL;
	if (issue_flags & IO_URING_F_NONBLOCK)
		return -EAGAIN;
	return kxfer_ioctl(cmd->file, cmd->cmd_op, READ_ONCE(user->arg));
}

static int kxfer_uring(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct kxfer_call *call = own_call(cmd->cmd_op);

	/* Only jobs are marked, so only they are cancelled. */
	if (IS_ERR(call) || issue_flags & KXFER_URING_F_CANCEL)
		return kxfer_uring_cmd(cmd, issue_flags);
	return call->flags & URING ? call_by_uring(cmd, issue_flags) : -ENOTTY;
}

#define URING_CMD	kxfer_uring
#else
#define URING_CMD	NULL
#endif

static __poll_t kxfer_poll(struct file *file, poll_table *wait)
{
	struct kxfer_session *session = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &session->wait, wait);
	spin_lock_bh(&session->job_lock);
	if (kxfer_done_has_room(session))
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (session->nr_done)
		mask |= EPOLLIN | EPOLLRDNORM;
	spin_unlock_bh(&session->job_lock);
	if (kxfer_event_is_there(session))
		mask |= EPOLLPRI;
	return mask;
}

static int kxfer_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kxfer_session *session = file->private_data;

	return kxfer_sq_is_at(vma) ? kxfer_sq_mmap(session, vma) : kxfer_ring_mmap(session, vma);
}

static int kxfer_open(struct inode *inode, struct file *file)
{
	struct kxfer_session *session = kxfer_session_create(file);

	if (IS_ERR(session))
		return PTR_ERR(session);
	file->private_data = session;
	return nonseekable_open(inode, file);
}

static int kxfer_release(struct inode *inode, struct file *file)
{
	kxfer_session_destroy(file->private_data);
	return 0;
}

static const struct file_operations kxfer_fops = {
	.owner = THIS_MODULE,
	.open = kxfer_open,
	.release = kxfer_release,
	.unlocked_ioctl = kxfer_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = kxfer_poll,
	.mmap = kxfer_mmap,
	.uring_cmd = URING_CMD,
	.uring_cmd_iopoll = KXFER_URING_CMD_IOPOLL,
};

static struct miscdevice kxfer_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kxfer",
	.fops = &kxfer_fops,
	.mode = 0600,
};

/** kxfer_cdev_init() - register the device; from here on calls come */
int kxfer_cdev_init(void)
{
	return kxfer_try(MISC_REGISTER, misc_register(&kxfer_misc));
}

/** kxfer_cdev_exit() - unregister the device; no file is open, none can be opened any more */
void kxfer_cdev_exit(void)
{
	misc_deregister(&kxfer_misc);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Events for an exporter, in a ring of its session.
 *
 * The handlers of a peer's messages put events in; calls of the session take them out. The
 * ring is made with the first export and stays as long as the session.
 *
 * Context: kxfer_event_prepare() and _reap() may sleep, all other functions do not.
 */
#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "base/fault.h"
#include "node/event.h"
#include "node/session.h"

/** kxfer_event_prepare() - make the ring; the session's lock is held for writing */
int kxfer_event_prepare(struct kxfer_session *session)
{
	if (!session->events && !kxfer_fault(SESSION_EVENTS))
		session->events = kvcalloc(KXFER_MAX_EVENTS, sizeof(*session->events),
					   GFP_KERNEL_ACCOUNT);
	return session->events ? 0 : -ENOMEM;
}

/** kxfer_event_push() - deliver an event. Return: 0 or -EAGAIN: the ring is full */
int kxfer_event_push(struct kxfer_session *session, const struct kxfer_event *event)
{
	int ret = -EAGAIN;

	spin_lock_bh(&session->event_lock);
	if (session->event_tail - session->event_head < KXFER_MAX_EVENTS) {
		session->events[session->event_tail++ % KXFER_MAX_EVENTS] = *event;
		wake_up(&session->wait);
		ret = 0;
	}
	spin_unlock_bh(&session->event_lock);
	return ret;
}

/** kxfer_event_is_there() - whether the ring holds an event */
bool kxfer_event_is_there(struct kxfer_session *session)
{
	bool has;

	spin_lock_bh(&session->event_lock);
	has = session->event_tail != session->event_head;
	spin_unlock_bh(&session->event_lock);
	return has;
}

static bool peek_event(struct kxfer_session *session, struct kxfer_event *event)
{
	bool has;

	spin_lock_bh(&session->event_lock);
	has = session->event_tail != session->event_head;
	if (has)
		*event = session->events[session->event_head % KXFER_MAX_EVENTS];
	spin_unlock_bh(&session->event_lock);
	return has;
}

static void drop_event(struct kxfer_session *session)
{
	spin_lock_bh(&session->event_lock);
	session->event_head++;
	spin_unlock_bh(&session->event_lock);
}

/*
 * Another thread may hold the mutex while it faults in user memory, which may take forever
 * (userfaultfd). Return: 0; -EINTR: a fatal signal; -EAGAIN: O_NONBLOCK is set.
 */
static int begin_reap(struct kxfer_session *session)
{
	if (mutex_trylock(&session->event_mutex))
		return 0;
	return kxfer_session_may_wait(session) ?: mutex_lock_killable(&session->event_mutex);
}

/* One caller at a time; an event that cannot be stored stays in the ring. */
static int store_events(struct kxfer_session *session, u64 to, u32 max, u32 *stored)
{
	struct kxfer_event __user *out = u64_to_user_ptr(to);
	struct kxfer_event event;
	int ret;

	*stored = 0;
	ret = begin_reap(session);
	if (ret)
		return ret;
	for (*stored = 0; *stored < max && peek_event(session, &event); ++*stored) {
		if (copy_to_user(out + *stored, &event, sizeof(event))) {
			ret = -EFAULT;
			break;
		}
		drop_event(session);
	}
	mutex_unlock(&session->event_mutex);
	return ret;
}

static int wait_for_event(struct kxfer_session *session, u64 deadline_ns)
{
	int ret;

	if (kxfer_event_is_there(session))
		return 0;
	ret = kxfer_session_may_wait(session);
	if (ret)
		return ret;
	return kxfer_session_wait(session, kxfer_event_is_there(session), deadline_ns);
}

/** kxfer_event_reap() - KXFER_EVENT_REAP */
int kxfer_event_reap(struct kxfer_session *session, void *arg)
{
	struct kxfer_event_reap *cmd = arg;
	u32 stored;
	int ret = 0;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!cmd->nr || cmd->nr > 1024 || cmd->wait > 1)
		return -EINVAL;
	if (cmd->wait)
		ret = wait_for_event(session, cmd->deadline_ns);
	if (!ret)
		ret = store_events(session, cmd->events, cmd->nr, &stored);
	else
		stored = 0;
	cmd->nr = stored;
	return stored ? 0 : ret;
}

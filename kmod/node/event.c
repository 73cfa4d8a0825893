// SPDX-License-Identifier: GPL-2.0
/*
 * Events for an exporter, in a ring of its session.
 *
 * The handlers of a peer's messages put events in; calls of the session take them out. The
 * ring is made with the first export, becomes longer when an export asks for that, and stays as
 * long as the session. Its length is a power of two, as the numbers of events wrap.
 *
 * Context: kxfer_event_prepare() and _reap() may sleep, all other functions do not.
 */
#include <linux/kxfer.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "base/fault.h"
#include "node/event.h"
#include "node/session.h"

/* Move the events into @ring, which is longer. Return: the old ring, or NULL. */
static struct kxfer_event *replace(struct kxfer_session *session, struct kxfer_event *ring, u32 nr)
{
	struct kxfer_event *old = session->events;
	u32 i;

	spin_lock_bh(&session->event_lock);
	for (i = session->event_head; i != session->event_tail; i++)
		ring[i % nr] = old[i % session->nr_events];
	session->events = ring;
	session->nr_events = nr;
	spin_unlock_bh(&session->event_lock);
	return old;
}

/**
 * kxfer_event_prepare() - make the ring, or a longer one
 * @session: session, whose lock the caller holds for writing
 * @nr: events that the ring has to hold, at most KXFER_EVENTS_MAX; or 0
 *
 * May sleep. Return: 0 or -ENOMEM.
 */
int kxfer_event_prepare(struct kxfer_session *session, u32 nr)
{
	struct kxfer_event *ring;

	nr = roundup_pow_of_two(max_t(u32, nr, KXFER_MAX_EVENTS));
	if (nr <= session->nr_events)
		return 0;
	ring = kxfer_try_alloc(SESSION_EVENTS, kvcalloc(nr, sizeof(*ring), GFP_KERNEL_ACCOUNT));
	if (!ring)
		return -ENOMEM;
	kvfree(replace(session, ring, nr));
	return 0;
}

/** kxfer_event_push() - deliver an event. Return: 0 or -EAGAIN: the ring is full */
int kxfer_event_push(struct kxfer_session *session, const struct kxfer_event *event)
{
	int ret = -EAGAIN;

	spin_lock_bh(&session->event_lock);
	if (session->event_tail - session->event_head < session->nr_events) {
		session->events[session->event_tail++ % session->nr_events] = *event;
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
		*event = session->events[session->event_head % session->nr_events];
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

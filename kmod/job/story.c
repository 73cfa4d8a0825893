// SPDX-License-Identifier: GPL-2.0
/*
 * Stories: the last events of each line, for INFO and a tracepoint.
 *
 * A line has room for KXFER_LINE_EVENTS events, allocated with it and charged to its opener, and
 * forgets the oldest ones. The same event on the same link in a row counts up in its place. So a
 * peer that breaks links or refuses for ever costs no memory and writes no log, and drives only
 * events of lines to itself out of their rings.
 *
 * A story is in the list from the making of its line to kxfer_story_end(), which comes before the
 * line's session or peer goes; INFO holds stories_lock as long as it looks at them.
 *
 * Context: any but hard interrupts. Lock order: stories_lock, job_lock of a session, story->lock.
 */
#include <linux/ktime.h>

#include "job/line.h"
#include "job/path.h"
#include "job/peer.h"
#include "job/story.h"
#include "job/trace.h"
#include "node/session.h"

static DEFINE_SPINLOCK(stories_lock);
static LIST_HEAD(stories);
static u64 last_id;

/** kxfer_story_begin() - list a new line, whose peer has no id yet */
void kxfer_story_begin(struct kxfer_line *line)
{
	struct kxfer_story *story = &line->story;

	spin_lock_init(&story->lock);
	story->uid = line->peer->session->uid;
	spin_lock_bh(&stories_lock);
	story->id = ++last_id;
	list_add_tail(&story->node, &stories);
	spin_unlock_bh(&stories_lock);
}

/** kxfer_story_end() - list a line no more; may be called again */
void kxfer_story_end(struct kxfer_line *line)
{
	if (list_empty(&line->story.node))
		return;
	spin_lock_bh(&stories_lock);
	list_del_init(&line->story.node);
	spin_unlock_bh(&stories_lock);
}

/* Called with story->lock held. */
static void add(struct kxfer_story *story, const struct kxfer_line_event *event)
{
	struct kxfer_line_event *last;

	last = &story->events[(story->nr - 1) % KXFER_LINE_EVENTS];
	if (story->nr && last->type == event->type && last->link == event->link) {
		last->age_ns = event->age_ns;
		last->error = event->error;
		last->nr += event->nr;
		return;
	}
	story->events[story->nr++ % KXFER_LINE_EVENTS] = *event;
}

/**
 * kxfer_story_tell() - something happened to a line
 * @line: line that is not freed meanwhile
 * @type: enum kxfer_line_event_type
 * @link: id of the link, or 0
 * @error: 0 or -errno
 * @nr: jobs or targets; else 1
 */
void kxfer_story_tell(struct kxfer_line *line, u32 type, u64 link, int error, u32 nr)
{
	const struct kxfer_line_event event = {
		.age_ns = ktime_get_ns(),
		.link = link,
		.type = type,
		.error = error,
		.nr = nr,
	};

	trace_kxfer_line(line->story.id, &event);
	spin_lock_bh(&line->story.lock);
	add(&line->story, &event);
	spin_unlock_bh(&line->story.lock);
}

/** kxfer_story_broke() - a link of the line has ended; told once, whoever notices */
void kxfer_story_broke(struct kxfer_line *line, struct kxfer_link *link)
{
	bool known;

	spin_lock_bh(&line->story.lock);
	known = line->story.broke == link->id;
	line->story.broke = link->id;
	spin_unlock_bh(&line->story.lock);
	if (!known)
		kxfer_story_tell(line, KXFER_LINE_BROKE, link->id,
				 READ_ONCE(link->error) ?: -ECONNRESET, 1);
}

/** kxfer_story_moved() - the line uses @link from now on, in place of @old */
void kxfer_story_moved(struct kxfer_line *line, struct kxfer_link *old, struct kxfer_link *link)
{
	if (old == link)
		return;
	kxfer_story_broke(line, old);
	kxfer_story_tell(line, KXFER_LINE_CONNECTED, link->id, 0, 1);
}

static void copy_events(struct kxfer_story *story, struct kxfer_info_line *info)
{
	u64 now_ns = ktime_get_ns();
	u32 first, i;

	spin_lock(&story->lock);
	info->nr_events = story->nr;
	first = story->nr > KXFER_LINE_EVENTS ? story->nr - KXFER_LINE_EVENTS : 0;
	for (i = first; i < story->nr; i++) {
		struct kxfer_line_event *event = &info->events[i - first];

		*event = story->events[i % KXFER_LINE_EVENTS];
		event->age_ns = now_ns > event->age_ns ? now_ns - event->age_ns : 0;
	}
	spin_unlock(&story->lock);
}

/* Called with stories_lock held: neither the line nor its peer and session goes. */
static void fill_info(struct kxfer_line *line, struct kxfer_info_line *info)
{
	const struct kxfer_paths *paths = line->peer->paths;
	struct kxfer_session *session = line->peer->session;
	struct list_head *job;

	*info = (struct kxfer_info_line) {
		.id = line->story.id,
		.session = session->id,
		.link = READ_ONCE(line->peer->link_id),
		.remote = paths->keys[READ_ONCE(paths->at)].remote,
		.peer = READ_ONCE(line->peer->id),
		.loss_ms = line->loss_ms,
	};
	spin_lock(&session->job_lock);
	info->flags = line->down ? KXFER_LINE_DOWN : 0;
	list_for_each(job, &line->jobs)
		info->nr_waiting++;
	spin_unlock(&session->job_lock);
	copy_events(&line->story, info);
}

/** kxfer_story_info() - INFO records of lines after *cursor; see info.c */
u32 kxfer_story_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr)
{
	struct kxfer_info_line *info = records;
	struct kxfer_line *line;
	u32 n = 0;

	spin_lock_bh(&stories_lock);
	list_for_each_entry(line, &stories, story.node) {
		if (n == nr)
			break;
		if (line->story.id <= *cursor || !READ_ONCE(line->peer->id) ||
		    !kxfer_viewer_sees(viewer, line->peer->session, line->story.uid,
				       line->peer->session->net))
			continue;
		fill_info(line, &info[n++]);
		*cursor = line->story.id;
	}
	spin_unlock_bh(&stories_lock);
	return n;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Stories: the last events of each line, for INFO and a tracepoint.
 *
 * A line has room for KXFER_LINE_EVENTS events, allocated with it and charged to its opener, and
 * forgets the oldest ones. The same event on the same link in a row counts up in its place. So a
 * peer that breaks links or refuses for ever costs no memory and writes no log, and drives only
 * events of lines to itself out of their rings.
 *
 * A story is in the tree from the making of its line to kxfer_story_end(), which comes before the
 * line's session or peer goes; INFO holds stories_lock as long as it looks at one, and looks at no
 * job, so that no user with many lines or jobs holds up others.
 *
 * Context: any but hard interrupts; INFO may sleep. Lock order: stories_lock, job_lock of a
 * session, story->lock; and lock of a peer, story->lock.
 */
#include <linux/ktime.h>
#include <linux/rbtree.h>

#include "job/line.h"
#include "job/path.h"
#include "job/peer.h"
#include "job/story.h"
#include "job/trace.h"
#include "node/session.h"

static DEFINE_SPINLOCK(stories_lock);
static struct rb_root stories = RB_ROOT;	/* by id */
static u64 last_id;

static struct kxfer_story *story_of(struct rb_node *node)
{
	return rb_entry(node, struct kxfer_story, node);
}

static bool is_before(struct rb_node *a, const struct rb_node *b)
{
	return story_of(a)->id < rb_entry(b, struct kxfer_story, node)->id;
}

/** kxfer_story_begin() - list a new line, whose peer has no id yet */
void kxfer_story_begin(struct kxfer_line *line)
{
	struct kxfer_story *story = &line->story;

	spin_lock_init(&story->lock);
	story->uid = line->peer->session->uid;
	spin_lock_bh(&stories_lock);
	story->id = ++last_id;
	rb_add(&story->node, &stories, is_before);
	spin_unlock_bh(&stories_lock);
}

/** kxfer_story_end() - list a line no more; may be called again */
void kxfer_story_end(struct kxfer_line *line)
{
	if (RB_EMPTY_NODE(&line->story.node))
		return;
	spin_lock_bh(&stories_lock);
	rb_erase(&line->story.node, &stories);
	RB_CLEAR_NODE(&line->story.node);
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
	info->nr_waiting = line->nr_jobs;
	spin_unlock(&session->job_lock);
	copy_events(&line->story, info);
}

/* The first story behind an id. Called with stories_lock held. */
static struct kxfer_story *find_after(u64 id)
{
	struct rb_node *node = stories.rb_node;
	struct kxfer_story *found = NULL;

	while (node) {
		if (story_of(node)->id > id) {
			found = story_of(node);
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/* Whether a viewer may see a line, and it has an id to be shown with. */
static bool is_shown(const struct kxfer_viewer *viewer, const struct kxfer_line *line)
{
	return READ_ONCE(line->peer->id) &&
	       kxfer_viewer_sees(viewer, line->peer->session, line->story.uid,
				 line->peer->session->net);
}

/** kxfer_story_info() - INFO records of lines after *cursor; see info.c */
u32 kxfer_story_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr)
{
	struct kxfer_info_line *info = records;
	struct kxfer_story *story;
	struct kxfer_line *line;
	u64 id = *cursor;
	u32 n = 0;

	do {
		spin_lock_bh(&stories_lock);
		story = n < nr ? find_after(id) : NULL;
		if (story) {
			line = container_of(story, struct kxfer_line, story);
			id = story->id;
			if (is_shown(viewer, line)) {
				fill_info(line, &info[n++]);
				*cursor = id;
			}
		}
		spin_unlock_bh(&stories_lock);
		cond_resched();
	} while (story);
	return n;
}

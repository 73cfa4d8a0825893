/* SPDX-License-Identifier: GPL-2.0 */
/* What happened to a line. See story.c. */
#ifndef KXFER_STORY_H
#define KXFER_STORY_H

#include <linux/kxfer.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct kxfer_line;
struct kxfer_link;
struct kxfer_viewer;

/**
 * struct kxfer_story - the last events of a line
 * @node: entry of the tree of stories; empty: the line is closed
 * @id: node-wide id of the line
 * @uid: uid of its session
 * @lock: over what follows; a leaf, bh-safe
 * @broke: id of the last link whose end is told
 * @nr: events so far, without repetitions
 * @events: ring; event n is at n modulo KXFER_LINE_EVENTS. @age_ns is the time of the event here
 */
struct kxfer_story {
	struct rb_node node;
	u64 id;
	u32 uid;
	spinlock_t lock;
	u64 broke;
	u32 nr;
	struct kxfer_line_event events[KXFER_LINE_EVENTS];
};

void kxfer_story_begin(struct kxfer_line *line);
void kxfer_story_end(struct kxfer_line *line);
void kxfer_story_tell(struct kxfer_line *line, u32 type, u64 link, int error, u32 nr);
void kxfer_story_moved(struct kxfer_line *line, struct kxfer_link *old, struct kxfer_link *link);
void kxfer_story_broke(struct kxfer_line *line, struct kxfer_link *link);
u32 kxfer_story_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr);

#endif /* KXFER_STORY_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The work that finds a new link for a line. See reconnect.c. */
#ifndef KXFER_RECONNECT_H
#define KXFER_RECONNECT_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct kxfer_line;
struct kxfer_target;

#define KXFER_BACKOFF_MIN_MS	100	/* longest pause before the second try */

int kxfer_reconnect_init(void);
void kxfer_reconnect_exit(void);
void kxfer_reconnect_queue(struct kxfer_line *line, u32 delay_ms);
void kxfer_reconnect_work(struct work_struct *work);
int kxfer_reconnect_target(struct kxfer_target *target, unsigned int timeout_ms);
void kxfer_reconnect_home(struct kxfer_line *line);

#endif /* KXFER_RECONNECT_H */

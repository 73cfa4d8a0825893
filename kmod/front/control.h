/* SPDX-License-Identifier: GPL-2.0 */
/* What the messages on a link mean. See control.c. */
#ifndef KXFER_CONTROL_H
#define KXFER_CONTROL_H

struct kxfer_handler;
struct kxfer_reply;

const struct kxfer_handler *kxfer_control_handler(const struct kxfer_reply *reply);

#endif /* KXFER_CONTROL_H */

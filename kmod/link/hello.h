/* SPDX-License-Identifier: GPL-2.0 */
/* HELLO and PING. See hello.c. */
#ifndef KXFER_HELLO_H
#define KXFER_HELLO_H

struct kxfer_link;
struct kxfer_reply;

int kxfer_hello_say(struct kxfer_link *link, unsigned int timeout_ms);
int kxfer_hello_ping(struct kxfer_link *link);
void kxfer_hello_handle(struct kxfer_reply *reply, const void *payload);
void kxfer_hello_handle_ping(struct kxfer_reply *reply, const void *payload);

#endif /* KXFER_HELLO_H */

/* SPDX-License-Identifier: MIT */
/*
 * A side of a test with endpoints of FI_EP_MSG: with an event queue, a passive endpoint at the side that
 * answers, and one active endpoint, with the queues and counters of side.h. Every wait has an end.
 */
#ifndef CONNECTED_H
#define CONNECTED_H

#include "side.h"

/* An address as fi_getname() has it. */
struct name {
    char bytes[64];
    size_t length;
};

/* All but endpoints. */
void connected_open(struct side* s, int other);
/* What is left of it. */
void connected_close(struct side* s);

/* A passive endpoint, whose address the other side gets; the other side takes it. */
void listen_for(struct side* s);
struct name take_name(struct side* s);

/* An endpoint that is enabled; s->ep gets it. */
void make_endpoint(struct side* s, struct fi_info* info);

/* Waits for an event: of this kind, of the object if there is one, with these data. */
struct fi_info* await_event(struct side* s, uint32_t wanted, const struct fid* of, const void* data,
                            size_t length);
/* Waits so many seconds for an error, of the endpoint, and checks that it has words and these data. */
struct fi_eq_err_entry await_failure(struct side* s, int seconds, const void* data, size_t length);
/* Nothing is in the event queue, and nothing comes for a while. */
void expect_no_event(struct side* s, int milliseconds);

/* The whole of it, without data: one side calls one, the other the other. */
void connect_to(struct side* s, const struct name* server);
void accept_one(struct side* s);

#endif

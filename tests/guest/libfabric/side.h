/* SPDX-License-Identifier: MIT */
/*
 * One side of a test of the provider: a process with a domain and an endpoint, and a socket to the
 * other side for addresses, keys and turns. Every wait has an end: a side that waits in vain fails.
 */
#ifndef SIDE_H
#define SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define PATIENCE_S 60
#define PORT 7400

/* The interface that the programs ask for is that of the headers they are built with. */
#define API FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

struct side {
    int other; /* socket */
    struct fi_info* info;
    struct fid_fabric* fabric;
    struct fid_domain* domain;
    struct fid_av* av;
    struct fid_cq *tx, *rx;
    struct fid_cntr *sends, *recvs, *reads, *writes;
    struct fid_ep* ep;
    fi_addr_t peer;
    /* of connected endpoints (connected.h) */
    struct fid_eq* eq;
    struct fid_pep* pep;
};

#define CHECK(CONDITION)                                                                                     \
    do {                                                                                                     \
        if (!(CONDITION)) give_up(__FILE__, __LINE__, #CONDITION);                                           \
    } while (0)

/* A call of libfabric that must succeed. */
#define DO(CALL)                                                                                             \
    do {                                                                                                     \
        long ret_ = (CALL);                                                                                  \
        if (ret_ < 0) {                                                                                      \
            fprintf(stderr, "%s: %s\n", #CALL, fi_strerror((int)-ret_));                                     \
            give_up(__FILE__, __LINE__, #CALL);                                                              \
        }                                                                                                    \
    } while (0)

/* A call that may have no room yet. */
#define POST(SIDE, CALL)                                                                                     \
    do {                                                                                                     \
        long posted_;                                                                                        \
        while ((posted_ = (CALL)) == -FI_EAGAIN) progress(SIDE);                                             \
        DO(posted_);                                                                                         \
    } while (0)

_Noreturn void give_up(const char* file, int line, const char* what);

double now(void);

/* Opens all; the two sides know each other afterwards. @caps: more than messages and memory. */
void side_open(struct side* s, int other, uint64_t caps);
void side_close(struct side* s);

/* The socket between two sides on different nodes: the first one listens at its address. */
int side_accept(const char* address);
int side_connect(const char* address);

/* The parts of it. */
struct fi_info* side_find(enum fi_ep_type type, uint64_t caps);
void side_open_queues(struct side* s);
void side_close_queues(struct side* s);

/* Runs a function in two processes that have a socket to each other. 0: both went well, or the second one
 * was killed and may be. */
int run_sides(void (*run)(const void* what, int socket, bool is_second), const void* what, bool second_dies);

void progress(struct side* s);

/* Waits for the next completion, which must be no error. */
struct fi_cq_tagged_entry await(struct fid_cq* cq);
struct fi_cq_tagged_entry await_from(struct fid_cq* cq, fi_addr_t* source);

/* Waits at most so many seconds for an error, and checks that it has words. */
struct fi_cq_err_entry await_error(struct fid_cq* cq, int seconds);

/* Until both sides are here. Meanwhile this side makes progress. */
void meet(struct side* s);
void give(struct side* s, const void* what, size_t length);
void take(struct side* s, void* what, size_t length);

/* Bytes that depend on the number. */
void fill(void* at, size_t length, unsigned number);
bool holds(const void* at, size_t length, unsigned number);

#endif

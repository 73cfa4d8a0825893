/* SPDX-License-Identifier: MIT */
/*
 * libkxfer, measuring: the calls of <linux/kxfer_bench.h>, which kxfer_bench.ko carries out.
 *
 * They change with any release, as that header says, and so do these functions.
 */
#ifndef KXFER_KXFER_BENCH_H
#define KXFER_KXFER_BENCH_H

#include <stdint.h>

#include <linux/kxfer_bench.h>

#include <kxfer/kxfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Runs work requests in the kernel without jobs, for measuring: everything in
 * struct kxfer_bench is the caller's but size. Needs CAP_NET_ADMIN.
 * -EOPNOTSUPP also: kxfer_bench.ko is not loaded.
 */
int kxfer_bench_run(struct kxfer_session* session, struct kxfer_bench* args);

/*
 * Connects a QP of the session's own with a responder of user-space verbs, for
 * kxfer_bench_run(); args->dedicated gets the id, args->refusal the errno by which the
 * responder refused (-EREMOTEIO), args->mtu the longest message of UD (-EMSGSIZE). Needs
 * CAP_NET_ADMIN.
 */
int kxfer_dedicated_create(struct kxfer_session* session, struct kxfer_dedicated_open* args);

/* -EBUSY while a run is on it. */
int kxfer_dedicated_destroy(struct kxfer_session* session, uint32_t dedicated);

/* What the responder says of messages: everything but size and dedicated is out. */
int kxfer_dedicated_query(struct kxfer_session* session, struct kxfer_dedicated_status* status);

#ifdef __cplusplus
}
#endif

#endif

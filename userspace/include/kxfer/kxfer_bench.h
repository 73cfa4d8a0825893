/* SPDX-License-Identifier: MIT */
/*
 * libkxfer, measuring: the calls of <linux/kxfer_bench.h>, which kxfer_bench.ko implements.
 *
 * These calls may change with any release, as that header says, and so may these functions.
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
 * Runs work requests in the kernel without jobs, for measuring: the caller fills in
 * struct kxfer_bench except size. Needs CAP_NET_ADMIN.
 * -EOPNOTSUPP also: kxfer_bench.ko is not loaded.
 */
int kxfer_bench_run(struct kxfer_session* session, struct kxfer_bench* args);

/*
 * Connects a QP of this session alone with a responder of user-space verbs, for
 * kxfer_bench_run(). args->dedicated gets the id; after -EREMOTEIO args->refusal has the
 * errno with which the responder refused; after -EMSGSIZE args->mtu has the longest
 * message of UD. Needs CAP_NET_ADMIN.
 */
int kxfer_dedicated_create(struct kxfer_session* session, struct kxfer_dedicated_open* args);

/* -EBUSY while a run is on it. */
int kxfer_dedicated_destroy(struct kxfer_session* session, uint32_t dedicated);

/* Reads the responder's status of its messages; all members but size and dedicated are results. */
int kxfer_dedicated_query(struct kxfer_session* session, struct kxfer_dedicated_status* status);

#ifdef __cplusplus
}
#endif

#endif

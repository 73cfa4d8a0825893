/* SPDX-License-Identifier: GPL-2.0 */
/* The engine kverbs: the cost of work requests without jobs. See bench.c. */
#ifndef KXFER_BENCH_H
#define KXFER_BENCH_H

struct kxfer_session;

int kxfer_bench_run(struct kxfer_session *session, void *arg);

#endif /* KXFER_BENCH_H */

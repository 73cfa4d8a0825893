/* SPDX-License-Identifier: GPL-2.0 */
/* What work requests cost without jobs: the engine kverbs. See bench.c. */
#ifndef KXFER_BENCH_H
#define KXFER_BENCH_H

struct kxfer_session;

int kxfer_bench_run(struct kxfer_session *session, void *arg);

#endif /* KXFER_BENCH_H */

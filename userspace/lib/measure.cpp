// SPDX-License-Identifier: MIT
//
// The calls of kxfer_bench.ko: work requests without jobs.

#include <kxfer/kxfer_bench.h>

#include "lib/call.hpp"

int kxfer_bench_run(kxfer_session* session, kxfer_bench* args) {
    args->size = sizeof(*args);
    return kxfer::call(session, KXFER_BENCH, args);
}

int kxfer_dedicated_create(kxfer_session* session, kxfer_dedicated_open* args) {
    args->size = sizeof(*args);
    return kxfer::call(session, KXFER_DEDICATED_OPEN, args);
}

int kxfer_dedicated_destroy(kxfer_session* session, uint32_t dedicated) {
    return kxfer::call_id(session, KXFER_DEDICATED_CLOSE, dedicated);
}

int kxfer_dedicated_query(kxfer_session* session, kxfer_dedicated_status* status) {
    status->size = sizeof(*status);
    return kxfer::call(session, KXFER_DEDICATED_STATUS, status);
}

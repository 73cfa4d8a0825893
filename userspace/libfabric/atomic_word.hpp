// SPDX-License-Identifier: MIT
//
// Which of libfabric's atomics there are: those that are one job of the module, on one word of 64 bits.
//
// FI_ATOMIC_READ is not one of them. A FETCH_ADD of 0 would write the word, and so undo what a CPU of its
// owner stores meanwhile; an RMA read of an aligned word does what is wanted.
#pragma once

#include <cstddef>
#include <cstdint>

#include <kxfer/kxfer.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

namespace kxfer::fi {

inline constexpr size_t word_bytes = 8;

// What an atomic brings back, and whether it compares: the three families of calls.
enum class Form { base, fetch, compare };

// KXFER_OP_*; KXFER_OP_NOP: there is no such atomic.
constexpr uint32_t atomic_op(Form form, fi_datatype type, fi_op op) {
    if (type != FI_INT64 && type != FI_UINT64) return KXFER_OP_NOP;
    if (form == Form::compare) return op == FI_CSWAP ? KXFER_OP_COMPARE_SWAP : KXFER_OP_NOP;
    return op == FI_SUM ? KXFER_OP_FETCH_ADD : KXFER_OP_NOP;
}

// fi_query_atomic()'s flags. False: they ask for nothing that there is.
constexpr bool form_of(uint64_t flags, Form& form) {
    form = flags == FI_COMPARE_ATOMIC ? Form::compare : flags == FI_FETCH_ATOMIC ? Form::fetch : Form::base;
    return flags == 0 || form != Form::base;
}

// The address of the one word that the ranges are. 0; -FI_EMSGSIZE: they are more; -FI_EINVAL: none.
inline int only_word(const fi_ioc* ranges, size_t count, void** word) {
    size_t words = 0;
    *word = nullptr;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].count == 0) continue;
        if (ranges[i].count > 1 || words > 0) return -FI_EMSGSIZE;
        words = 1;
        *word = ranges[i].addr;
    }
    return *word ? 0 : -FI_EINVAL;
}

// The job, but for its user_data. @at: where the former value goes.
inline kxfer_job atomic_job(uint32_t op, uint32_t region, uint64_t at, uint32_t target, uint64_t offset,
                            uint64_t operand, uint64_t compare) {
    return op == KXFER_OP_COMPARE_SWAP
               ? kxfer_job_make_compare_swap(region, at, target, offset, compare, operand, 0)
               : kxfer_job_make_fetch_add(region, at, target, offset, operand, 0);
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/atomic_word.hpp"

#include <gtest/gtest.h>

using namespace kxfer::fi;

namespace {

constexpr Form forms[] = {Form::base, Form::fetch, Form::compare};

// The address that only_word() finds, or NULL with *error.
void* word_of(std::initializer_list<fi_ioc> ranges, int* error) {
    void* word;
    *error = only_word(ranges.begin(), ranges.size(), &word);
    return *error == 0 ? word : nullptr;
}

} // namespace

TEST(LibfabricAtomic, only_sums_and_swaps_of_64_bits_are_there) {
    unsigned nr_there = 0;
    for (Form form : forms)
        for (int type = 0; type < FI_DATATYPE_LAST; type++)
            for (int op = 0; op < FI_ATOMIC_OP_LAST; op++) {
                uint32_t wanted = KXFER_OP_NOP;
                bool is_long = type == FI_INT64 || type == FI_UINT64;
                if (is_long && op == FI_SUM && form != Form::compare) wanted = KXFER_OP_FETCH_ADD;
                if (is_long && op == FI_CSWAP && form == Form::compare) wanted = KXFER_OP_COMPARE_SWAP;
                if (wanted != KXFER_OP_NOP) nr_there++;
                EXPECT_EQ(atomic_op(form, fi_datatype(type), fi_op(op)), wanted)
                    << int(form) << " " << type << " " << op;
            }
    EXPECT_EQ(nr_there, 6U);
}

TEST(LibfabricAtomic, flags_of_a_query_name_one_form) {
    Form form;
    ASSERT_TRUE(form_of(0, form));
    EXPECT_EQ(form, Form::base);
    ASSERT_TRUE(form_of(FI_FETCH_ATOMIC, form));
    EXPECT_EQ(form, Form::fetch);
    ASSERT_TRUE(form_of(FI_COMPARE_ATOMIC, form));
    EXPECT_EQ(form, Form::compare);
    for (uint64_t flags : {FI_TAGGED, FI_TAGGED | FI_FETCH_ATOMIC, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC})
        EXPECT_FALSE(form_of(flags, form)) << flags;
}

TEST(LibfabricAtomic, ranges_are_one_word) {
    uint64_t words[2];
    int error;
    EXPECT_EQ(word_of({{&words[0], 1}}, &error), &words[0]);
    EXPECT_EQ(word_of({{&words[0], 0}, {&words[1], 1}, {nullptr, 0}}, &error), &words[1]);
}

TEST(LibfabricAtomic, more_than_a_word_is_too_long) {
    uint64_t words[2];
    int error;
    EXPECT_EQ(word_of({{words, 2}}, &error), nullptr);
    EXPECT_EQ(error, -FI_EMSGSIZE);
    EXPECT_EQ(word_of({{&words[0], 1}, {&words[1], 1}}, &error), nullptr);
    EXPECT_EQ(error, -FI_EMSGSIZE);
    EXPECT_EQ(word_of({{words, SIZE_MAX}, {words, 2}}, &error), nullptr); // whose sum is 1
    EXPECT_EQ(error, -FI_EMSGSIZE);
}

TEST(LibfabricAtomic, no_word_is_wrong) {
    uint64_t word;
    int error;
    EXPECT_EQ(word_of({}, &error), nullptr);
    EXPECT_EQ(error, -FI_EINVAL);
    EXPECT_EQ(word_of({{&word, 0}}, &error), nullptr);
    EXPECT_EQ(error, -FI_EINVAL);
    EXPECT_EQ(word_of({{nullptr, 1}}, &error), nullptr);
    EXPECT_EQ(error, -FI_EINVAL);
}

TEST(LibfabricAtomic, a_job_adds_the_operand) {
    kxfer_job job = atomic_job(KXFER_OP_FETCH_ADD, 1, 8, 2, 16, 37, 99);
    EXPECT_EQ(job.op, KXFER_OP_FETCH_ADD);
    EXPECT_EQ(job.region, 1U);
    EXPECT_EQ(job.region_offset, 8U);
    EXPECT_EQ(job.target, 2U);
    EXPECT_EQ(job.target_offset, 16U);
    EXPECT_EQ(job.length, word_bytes);
    EXPECT_EQ(job.compare_add, 37U);
    EXPECT_EQ(job.swap, 0U);
}

TEST(LibfabricAtomic, a_job_swaps_the_operand_in) {
    kxfer_job job = atomic_job(KXFER_OP_COMPARE_SWAP, 1, 8, 2, 16, 37, 99);
    EXPECT_EQ(job.op, KXFER_OP_COMPARE_SWAP);
    EXPECT_EQ(job.compare_add, 99U);
    EXPECT_EQ(job.swap, 37U);
    EXPECT_EQ(job.flags, 0U);
}

// SPDX-License-Identifier: MIT
//
// What a job's completed message proves, by operation, size and --stored.
#include "bench/engines/outbox.hpp"

#include <gtest/gtest.h>

using namespace kxfer::bench;

namespace {

std::string promise(Operation operation, uint64_t size, bool stored = false, bool eager = true) {
    return Outbox::promise(operation, size, stored, eager);
}

} // namespace

TEST(Promise, of_a_send_is_a_place_up_to_4_KiB) {
    for (const uint64_t size : {1, 992, 993, 4096}) EXPECT_EQ(promise(Operation::send, size), message_placed);
    EXPECT_EQ(promise(Operation::send, 4097), message_taken);
}

TEST(Promise, of_a_stored_send_and_of_a_module_or_device_without_eager_messages_is_the_mailbox) {
    for (const auto& [stored, eager] : {std::pair(true, true), {false, false}, {true, false}}) {
        EXPECT_EQ(promise(Operation::send, 992, stored, eager), message_answered);
        EXPECT_EQ(promise(Operation::send, 993, stored, eager), message_taken);
        EXPECT_EQ(promise(Operation::send, 4096, stored, eager), message_taken);
    }
}

TEST(Promise, of_messages_with_an_immediate_is_always_kept_by_an_answer) {
    EXPECT_EQ(promise(Operation::send_imm, 64), message_answered);
    EXPECT_EQ(promise(Operation::send_imm, 4096), message_taken);
    // The data is WRITEs, however long it is.
    EXPECT_EQ(promise(Operation::write_imm, 1 << 20), message_answered);
}

// SPDX-License-Identifier: MIT
#include "engine/workload.hpp"

#include <set>

#include <gtest/gtest.h>

using namespace kxfer::bench;

TEST(Workload, slots_begin_on_pages_of_their_own) {
    Workload workload{Operation::read, 64, 4, 1};

    EXPECT_EQ(workload.stride(), 4096U);
    EXPECT_EQ(workload.bytes(), 4U * 4096);
    EXPECT_EQ(workload.slot_offset(3), 3U * 4096);
    EXPECT_EQ(workload.slot_offset(4), 0U);
    workload.size = 4097;
    EXPECT_EQ(workload.stride(), 8192U);
}

TEST(Workload, operations_by_name) {
    std::set<std::string> names;

    for (const Operation operation : all_operations) {
        names.insert(operation_name(operation));
        EXPECT_EQ(operation_from(operation_name(operation)), operation);
    }
    EXPECT_EQ(names, (std::set<std::string>{"read", "write", "write-imm", "send", "send-imm", "compare-swap",
                                            "fetch-add", "atomic-write", "flush"}));
    EXPECT_FALSE(operation_from("send_imm"));
    EXPECT_STREQ((Workload{Operation::send, 64, 1, 1}.name()), "send");
    for (const Work work : other_work) {
        EXPECT_EQ(work_from(work_name(work)), work);
        EXPECT_FALSE(operation_from(work_name(work)));
        EXPECT_STREQ((Workload{Operation::read, 64, 1, 1, work}.name()), work_name(work));
    }
    EXPECT_FALSE(work_from("read"));
    EXPECT_FALSE(work_from(""));
    EXPECT_FALSE(operation_from(""));
}

TEST(Workload, what_an_operation_takes) {
    for (const Operation operation : all_operations) {
        const std::string name = operation_name(operation);
        EXPECT_EQ(has_immediate(operation), name.ends_with("-imm")) << name;
        EXPECT_EQ(is_message(operation), name.starts_with("send") || name == "write-imm") << name;
        EXPECT_EQ(is_fetch(operation), name == "compare-swap" || name == "fetch-add") << name;
        EXPECT_EQ(is_atomic(operation), is_fetch(operation) || name == "atomic-write") << name;
        EXPECT_EQ(is_beyond_kernel(operation), name == "atomic-write" || name == "flush") << name;
    }
}

namespace {

Parameters some_parameters() {
    Parameters parameters;
    parameters.local_bytes = 8192;
    parameters.local_layout = Memory::layout();
    parameters.remote_bytes = 8192;
    parameters.remote_registration = standing_writable;
    parameters.max_depth = 128;
    parameters.write_success = write_acknowledged;
    parameters.device = "rxe0";
    return parameters;
}

} // namespace

TEST(Mismatch, equal_parameters_match) {
    EXPECT_FALSE(find_mismatch("verbs", some_parameters(), "job", some_parameters(), 128));
}

TEST(Mismatch, how_local_memory_is_named_may_differ) {
    Parameters other = some_parameters();

    other.local_registration = local_each;
    EXPECT_FALSE(find_mismatch("verbs", some_parameters(), "kverbs", other, 128));
}

TEST(Mismatch, every_parameter_counts) {
    const std::vector<void (*)(Parameters&)> changes{
        [](Parameters& p) { p.local_bytes++; },
        [](Parameters& p) { p.local_layout = "one huge page"; },
        [](Parameters& p) { p.remote_bytes++; },
        [](Parameters& p) { p.remote_registration = standing_readable; },
        [](Parameters& p) { p.signal_every = 32; },
        [](Parameters& p) { p.write_success = write_handed_to_tcp; },
        [](Parameters& p) { p.device = "rxe1"; },
    };

    for (size_t i = 0; i < changes.size(); i++) {
        Parameters changed = some_parameters();
        changes[i](changed);
        const auto mismatch = find_mismatch("verbs", some_parameters(), "job", changed, 128);
        ASSERT_TRUE(mismatch) << i;
        EXPECT_NE(mismatch->text().find("verbs: "), std::string::npos) << mismatch->text();
        EXPECT_NE(mismatch->text().find("job: "), std::string::npos) << mismatch->text();
    }
}

TEST(Difference, equal_connections_do_not_differ) {
    const Connection connection{4096, 0, "RoCE v2"};

    EXPECT_EQ(find_difference("verbs", connection, "job", connection), "");
}

TEST(Difference, is_named_with_both_values) {
    const Connection connection{4096, 0, "RoCE v2"};

    EXPECT_EQ(find_difference("verbs", connection, "job", {1024, 0, "RoCE v2"}),
              "path MTU: verbs 4096, job 1024");
    EXPECT_EQ(find_difference("verbs", connection, "job", {4096, 32, "RoCE v2"}),
              "type of service: verbs 0, job 32");
    EXPECT_EQ(find_difference("verbs", connection, "job", {4096, 0, "RoCE v1"}),
              "GID type: verbs RoCE v2, job RoCE v1");
}

TEST(Difference, what_is_not_known_does_not_differ) {
    EXPECT_EQ(find_difference("verbs", {4096, 32, "RoCE v2"}, "job", {}), "");
    EXPECT_EQ(find_difference("verbs", {}, "job", {4096, 32, "RoCE v2"}), "");
}

TEST(Mismatch, an_engine_that_cannot_go_so_deep_is_named) {
    Parameters shallow = some_parameters();
    shallow.max_depth = 64;

    EXPECT_FALSE(find_mismatch("verbs", some_parameters(), "job", shallow, 64));
    const auto mismatch = find_mismatch("verbs", some_parameters(), "job", shallow, 65);
    ASSERT_TRUE(mismatch);
    EXPECT_NE(mismatch->what.find("job"), std::string::npos);
    EXPECT_NE(mismatch->hint.find("--depth 64"), std::string::npos);
}

TEST(Mismatch, an_engine_that_cannot_do_one_is_not_told_to_do_none) {
    Parameters unfit = some_parameters();
    unfit.max_depth = 0;

    const auto mismatch = find_mismatch("verbs", some_parameters(), "job", unfit, 1);
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->hint.find("--depth"), std::string::npos) << mismatch->text();
    EXPECT_NE(mismatch->hint.find("--size"), std::string::npos) << mismatch->text();
}

TEST(Memory, is_zero_and_whole_pages) {
    auto memory = Memory::create(5000);

    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->length(), 8192U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % page_bytes, 0U);
    for (std::byte byte : memory->bytes()) ASSERT_EQ(byte, std::byte{0});
}

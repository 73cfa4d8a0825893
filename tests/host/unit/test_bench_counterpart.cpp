// SPDX-License-Identifier: MIT
#include "bench/peer/counterpart_wire.hpp"

#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include <endian.h>
#include <gtest/gtest.h>

using namespace kxfer::bench;
using namespace std::chrono_literals;

namespace {

Ask good_ask() {
    Ask ask;
    ask.request = 0x0123456789abcdef;
    ask.verb = Verb::prepare;
    ask.workload = {Operation::write, 4096, 16, 4};
    ask.duration = 2s;
    ask.warm_up = 7;
    ask.rate = 1000.5;
    ask.context = 1;
    ask.wait_flags = 2;
    ask.port = 7625;
    ask.signal_batch = true;
    ask.tos = 104;
    return ask;
}

std::optional<Ask> decode(const WireAsk& wire) { return decode_ask(std::as_bytes(std::span(&wire, 1))); }

} // namespace

TEST(Counterpart, what_is_asked_arrives) {
    const Ask ask = good_ask();
    const auto got = decode(encode(ask));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->request, ask.request);
    EXPECT_EQ(got->verb, Verb::prepare);
    EXPECT_EQ(got->workload.operation, Operation::write);
    EXPECT_EQ(got->workload.size, 4096U);
    EXPECT_EQ(got->workload.depth, 16U);
    EXPECT_EQ(got->workload.batch, 4U);
    EXPECT_EQ(got->duration, 2s);
    EXPECT_EQ(got->count, 0U);
    EXPECT_EQ(got->warm_up, 7U);
    EXPECT_EQ(got->rate, 1000.5);
    EXPECT_EQ(got->context, 1U);
    EXPECT_EQ(got->wait_flags, 2U);
    EXPECT_EQ(got->port, 7625);
    EXPECT_FALSE(got->ring);
    EXPECT_TRUE(got->signal_batch);
    EXPECT_FALSE(got->by_runs);
    EXPECT_EQ(got->tos, 104);
    EXPECT_TRUE(check_ask(*got));
    EXPECT_EQ(reverse_name(got->request), "kxfer-reverse-0123456789abcdef");
}

TEST(Counterpart, round_trips_by_runs_are_those_of_writes) {
    Ask ask = good_ask();
    ask.verb = Verb::answer;
    ask.by_runs = true;
    ask.workload = {Operation::write, 64, 1, 1};
    ask.workload.work = Work::write_ping_pong;
    const auto got = decode(encode(ask));
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->by_runs);
    EXPECT_TRUE(check_ask(*got));
    ask.workload.work = Work::ping_pong;
    EXPECT_EQ(check_ask(ask).error().number, EINVAL);
}

TEST(Counterpart, a_type_of_service_of_0_is_not_none) {
    Ask ask = good_ask();
    ask.tos = 0;
    EXPECT_EQ(decode(encode(ask))->tos, 0);
    ask.tos.reset();
    EXPECT_FALSE(decode(encode(ask))->tos);
}

TEST(Counterpart, what_is_no_request_is_none) {
    const WireAsk good = encode(good_ask());
    const std::vector<std::function<void(WireAsk&)>> all = {
        [](WireAsk& wire) { wire.magic ^= 1; },
        [](WireAsk& wire) { wire.request = 0; },
        [](WireAsk& wire) { wire.verb = 0; },
        [](WireAsk& wire) { wire.verb = htobe32(7); },
        [](WireAsk& wire) { wire.operation = htobe32(all_operations.size()); },
        [](WireAsk& wire) { wire.flags = htobe32(32); },
        [](WireAsk& wire) { wire.flags = htobe32((static_cast<uint32_t>(last_work) + 1) << 8); },
        [](WireAsk& wire) { wire.flags = htobe32(104U << 16); },
        [](WireAsk& wire) { wire.port = htobe32(65536); },
        [](WireAsk& wire) { wire.duration_ns = htobe64(1ULL << 63); },
    };
    for (size_t i = 0; i < all.size(); i++) {
        WireAsk wire = good;
        all[i](wire);
        EXPECT_FALSE(decode(wire)) << i;
    }
    EXPECT_TRUE(decode(good));
    const auto bytes = std::as_bytes(std::span(&good, 1));
    EXPECT_FALSE(decode_ask(bytes.first(bytes.size() - 1)));
    EXPECT_FALSE(decode_ask({}));
}

TEST(Counterpart, more_than_it_does_is_refused) {
    const std::vector<std::pair<std::function<void(Ask&)>, int>> all = {
        {[](Ask& ask) { ask.workload.operation = Operation::send; }, EOPNOTSUPP},
        {[](Ask& ask) { ask.workload.operation = Operation::fetch_add; }, EINVAL},
        {[](Ask& ask) {
             ask.workload = {Operation::atomic_write, atomic_bytes, 1, 1};
         },
         EOPNOTSUPP},
        {[](Ask& ask) { ask.workload.operation = Operation::flush; }, EOPNOTSUPP},
        {[](Ask& ask) { ask.workload.size = 0; }, EINVAL},
        {[](Ask& ask) { ask.workload.size = UINT64_MAX; }, ERANGE},
        {[](Ask& ask) { ask.workload.size = max_reverse_bytes + 1; }, ERANGE},
        {[](Ask& ask) { ask.workload.size = max_reverse_bytes; }, ERANGE},
        {[](Ask& ask) { ask.workload.depth = 0; }, EINVAL},
        {[](Ask& ask) { ask.workload.depth = UINT32_MAX; }, ERANGE},
        {[](Ask& ask) { ask.workload.batch = 0; }, EINVAL},
        {[](Ask& ask) { ask.workload.batch = 17; }, EINVAL},
        {[](Ask& ask) { ask.port = 0; }, EINVAL},
        {[](Ask& ask) { ask.by_runs = true; }, EINVAL},
        {[](Ask& ask) { ask.rate = 2e9; }, EINVAL},
        {[](Ask& ask) { ask.duration = 0s; }, ERANGE},
        {[](Ask& ask) { ask.duration = max_reverse_time + 1ns; }, ERANGE},
    };
    for (size_t i = 0; i < all.size(); i++) {
        Ask ask = good_ask();
        all[i].first(ask);
        const auto fine = check_ask(ask);
        ASSERT_FALSE(fine) << i;
        EXPECT_EQ(fine.error().number, all[i].second) << i;
        EXPECT_FALSE(fine.error().why.empty()) << i;
    }
    Ask counted = good_ask();
    counted.duration = 0s;
    counted.count = UINT64_MAX; // the run ends by time
    EXPECT_TRUE(check_ask(counted));
}

TEST(Counterpart, round_trips_are_asked_for_and_bounded) {
    Ask ask;
    ask.request = 0x0123456789abcdef;
    ask.verb = Verb::answer;
    ask.workload.work = Work::notify_ping_pong;
    ask.workload.size = 32U << 20;
    ask.port = 7625;
    ask.key = true;
    const auto got = decode(encode(ask));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->verb, Verb::answer);
    EXPECT_EQ(got->workload.work, Work::notify_ping_pong);
    EXPECT_EQ(got->workload.size, 32U << 20);
    EXPECT_TRUE(got->key);
    EXPECT_TRUE(check_ask(*got));
    EXPECT_EQ(round_trip_name(got->request), "kxfer-pong-0123456789abcdef");
    const std::vector<std::pair<std::function<void(Ask&)>, int>> all = {
        {[](Ask& one) { one.workload.work = Work::transfer; }, EINVAL},
        {[](Ask& one) { one.workload.work = Work::registration; }, EINVAL},
        {[](Ask& one) { one.workload.depth = 2; }, EINVAL},
        {[](Ask& one) { one.workload.size = 0; }, EINVAL},
        {[](Ask& one) { one.port = 0; }, EINVAL},
        {[](Ask& one) { one.workload.size++; }, ERANGE},
        {[](Ask& one) { one.workload.size = UINT64_MAX; }, ERANGE},
        {[](Ask& one) { one.verb = Verb::prepare; }, EINVAL},
    };
    for (size_t i = 0; i < all.size(); i++) {
        Ask other = ask;
        all[i].first(other);
        const auto fine = check_ask(other);
        ASSERT_FALSE(fine) << i;
        EXPECT_EQ(fine.error().number, all[i].second) << i;
    }
}

TEST(Counterpart, answers_arrive) {
    std::vector<uint64_t> room((answer_bytes() + 7) / 8);
    const auto memory = std::as_writable_bytes(std::span(room));
    Answer answer;
    answer.request = 5;
    answer.refused = 6;
    answer.progress = Progress::done;
    answer.error = kxfer::Error(std::string(200, 'x'), "there", EBUSY, "", "why not");
    answer.usage = {1e9, 17};
    answer.usage_request = 7;
    answer.total = {2e9, 18};
    answer.node = {"6.1.0 x86_64", "4 x " + std::string(200, 'c'), "0.1.0", "ABCD"};
    answer.result.operations = 3;
    answer.result.elapsed_ns = 1500000000;
    answer.result.verified = true;
    for (const uint64_t ns : {100, 200, 300}) answer.result.latencies.add(ns);
    publish(answer, memory);
    const Answer got = decode_answer(memory);
    EXPECT_EQ(got.request, 5U);
    EXPECT_EQ(got.refused, 6U);
    EXPECT_EQ(got.progress, Progress::done);
    EXPECT_EQ(got.error.what, std::string(127, 'x'));
    EXPECT_EQ(got.error.on, "there");
    EXPECT_EQ(got.error.number, EBUSY);
    EXPECT_EQ(got.error.why, "why not");
    EXPECT_EQ(got.usage.cpu_ns, 1e9);
    EXPECT_EQ(got.usage.switches, 17U);
    EXPECT_EQ(got.usage_request, 7U);
    EXPECT_EQ(got.total.cpu_ns, 2e9);
    EXPECT_EQ(got.total.switches, 18U);
    EXPECT_EQ(got.node.kernel, "6.1.0 x86_64");
    EXPECT_EQ(got.node.cpu, "4 x " + std::string(91, 'c'));
    EXPECT_EQ(got.node.module, "0.1.0");
    EXPECT_EQ(got.node.srcversion, "ABCD");
    EXPECT_TRUE(got.result.verified);
    EXPECT_EQ(got.result.operations_per_second(), 2);
    EXPECT_EQ(got.result.latencies.count(), 3U);
    EXPECT_EQ(got.result.latencies.max(), 300U);
    // memory that another version has written, or that was never written
    memset(memory.data(), 0xff, memory.size());
    EXPECT_EQ(decode_answer(memory).progress, Progress::nothing);
    EXPECT_EQ(decode_answer(memory).node.srcversion, std::string(32, '?'));
    EXPECT_EQ(decode_answer(memory).error.number, EPROTO);
    auto& wire = *reinterpret_cast<WireAnswer*>(memory.data());
    for (const auto& [number, is] :
         {std::pair{0U, 0}, {1U, 1}, {4095U, 4095}, {4096U, EPROTO}, {0x80000000U, EPROTO}}) {
        wire.number = htobe32(number);
        EXPECT_EQ(decode_answer(memory).error.number, is);
    }
}

TEST(Counterpart, what_a_peer_writes_commands_no_terminal) {
    std::vector<uint64_t> room((answer_bytes() + 7) / 8);
    const auto memory = std::as_writable_bytes(std::span(room));
    Answer answer;
    answer.error = kxfer::Error("\033[2Jgone", "a\nb", EIO, "",
                                "\xc2\x9b"
                                "1m");
    answer.node = {"6.1\r\n", "\x7f", "ok ~", "\a"};
    publish(answer, memory);
    const Answer got = decode_answer(memory);
    EXPECT_EQ(got.error.what, "?[2Jgone");
    EXPECT_EQ(got.error.on, "a?b");
    EXPECT_EQ(got.error.why, "??1m");
    EXPECT_EQ(got.node.kernel, "6.1??");
    EXPECT_EQ(got.node.cpu, "?");
    EXPECT_EQ(got.node.module, "ok ~");
    EXPECT_EQ(got.node.srcversion, "?");
}

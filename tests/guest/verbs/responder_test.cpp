// SPDX-License-Identifier: MIT
//
// The responder and misbehaving initiators: it refuses unknown requests with an errno, counts
// wrong messages, ends the connection, and goes on serving others.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "verbs/engine.hpp"
#include "verbs/messages.hpp"
#include "verbs/responder.hpp"
#include "verbs_test.hpp"

using namespace kxfer::verbs;
using namespace std::chrono_literals;
using kxfer::bench::Memory;
using kxfer::bench::Operation;

namespace {

constexpr Receiving receiving{8, 4, 64};

class Responder : public testing::Test {
  protected:
    void SetUp() override {
        auto started = VerbsResponder::start(own_address());
        ASSERT_TRUE(started) << started.error().text();
        responder = std::move(*started);
    }
    // After every test the responder still serves.
    void TearDown() override {
        RawInitiator initiator(responder->port());
        EXPECT_EQ(initiator.connect(encode(Request{length, true})), 0);
        EXPECT_EQ(responder->ended(), 0);
    }
    int ask(const Request& request) {
        RawInitiator initiator(responder->port());
        return initiator.connect(encode(request));
    }

    std::unique_ptr<VerbsResponder> responder;
};

uint16_t number(Operation operation) { return static_cast<uint16_t>(operation); }

} // namespace

TEST_F(Responder, an_operation_that_it_does_not_know_is_refused) {
    EXPECT_EQ(ask({length, true, number(Operation::flush)}), EOPNOTSUPP); // no initiator posts it
    EXPECT_EQ(ask({length, true, 9}), EOPNOTSUPP);
    EXPECT_EQ(ask({length, true, 0xffff, receiving}), EOPNOTSUPP);
}

TEST_F(Responder, another_version_is_refused_in_its_own) {
    RawInitiator older(responder->port()), newer(responder->port()), other(responder->port());
    auto request = encode(Request{length, true});

    request.version = htobe16(1);
    EXPECT_EQ(older.connect(request, 16), EPROTONOSUPPORT);
    EXPECT_EQ(older.answer_version, 1);
    // The initiator cannot parse the answer, but it is a refusal.
    request.version = htobe16(3);
    EXPECT_GE(newer.connect(request), 0);
    EXPECT_EQ(newer.answer.address, 0U);
    request.magic = 0;
    EXPECT_EQ(other.connect(request), EPROTO);
}

// A request beyond the backlog is dropped, and repeated after 4.3 s (rdma_cm's timeout).
TEST_F(Responder, twenty_that_ask_at_once_are_answered_without_a_pause) {
    const auto request = encode(Request{length, true});
    std::vector<std::unique_ptr<RawInitiator>> initiators;
    unsigned accepted = 0, refused = 0;

    for (int i = 0; i < 20; i++) {
        initiators.push_back(std::make_unique<RawInitiator>(responder->port()));
        ASSERT_TRUE(initiators.back()->prepare());
    }
    Clock::duration longest{};
    for (const auto& initiator : initiators) ASSERT_TRUE(initiator->ask(request));
    for (const auto& initiator : initiators) {
        const auto begun = Clock::now();
        const int error = initiator->hear();
        longest = std::max(longest, Clock::now() - begun);
        accepted += error == 0;
        refused += error == EBUSY;
    }
    EXPECT_LT(longest, 2s);
    EXPECT_EQ(accepted, VerbsResponder::max_connections);
    EXPECT_EQ(accepted + refused, initiators.size());
    // The responder notices their ends one after the other.
    initiators.clear();
    for (const auto late = Clock::now() + 10s; ask({length, true}) == EBUSY && Clock::now() < late;)
        std::this_thread::sleep_for(20ms);
}

TEST_F(Responder, receives_that_make_no_sense_are_refused) {
    const auto send = number(Operation::send);

    EXPECT_EQ(ask({length, true, send, {0, 4, 64}}), EINVAL);
    EXPECT_EQ(ask({length, true, send, {8, 0, 64}}), EINVAL);
    EXPECT_EQ(ask({length, true, send, {8, 4, 0}}), EINVAL);
    EXPECT_EQ(ask({length, true, send, {8, 5, 64}}), EINVAL);
    EXPECT_EQ(ask({length, true, send, {8, 4, 4097}}), EINVAL);
    EXPECT_EQ(ask({length, true, send, {8, UINT32_MAX, UINT32_MAX}}), EINVAL);
    EXPECT_EQ(ask({length, true, send, {VerbsResponder::max_receives + 1, 4, 64}}), EINVAL);
    EXPECT_EQ(ask({length, true, number(Operation::write), receiving}), EINVAL);
    EXPECT_EQ(ask({length, true, number(Operation::fetch_add), receiving}), EINVAL);
    EXPECT_EQ(ask({0, true, send, receiving}), EINVAL);
    EXPECT_EQ(ask({UINT64_MAX, true, send, receiving}), EDQUOT);
}

TEST_F(Responder, messages_that_are_right_are_counted_as_such) {
    RawInitiator initiator(responder->port());

    ASSERT_EQ(initiator.connect(encode(Request{length, true, number(Operation::send), receiving})), 0);
    // One message at a time: each receive is posted again before the next is needed.
    for (uint64_t n = 0; n < 3ULL * receiving.receives; n++) {
        ASSERT_EQ(initiator.send(receiving.bytes), IBV_WC_SUCCESS) << n;
        ASSERT_EQ(initiator.status(n + 1).received, n + 1);
    }
    EXPECT_EQ(initiator.status(0).wrong, 0U);
}

TEST_F(Responder, short_messages_and_wrong_immediates_are_counted) {
    RawInitiator initiator(responder->port());

    ASSERT_EQ(initiator.connect(encode(Request{length, true, number(Operation::send), receiving})), 0);
    ASSERT_EQ(initiator.send(receiving.bytes - 1), IBV_WC_SUCCESS);
    EXPECT_EQ(initiator.status(1).wrong, 1U);
    ASSERT_EQ(initiator.send(receiving.bytes), IBV_WC_SUCCESS);
    EXPECT_EQ(initiator.status(2).wrong, 1U);
    if (initiator.iwarp()) GTEST_SKIP() << "iWARP has no immediates";

    RawInitiator other(responder->port());
    ASSERT_EQ(other.connect(encode(Request{length, true, number(Operation::send_imm), receiving})), 0);
    ASSERT_EQ(other.send(receiving.bytes, immediate_of(0)), IBV_WC_SUCCESS);
    EXPECT_EQ(other.status(1).wrong, 0U);
    ASSERT_EQ(other.send(receiving.bytes, immediate_of(0)), IBV_WC_SUCCESS);
    EXPECT_EQ(other.status(2).wrong, 1U);
    ASSERT_EQ(other.send(receiving.bytes), IBV_WC_SUCCESS);
    EXPECT_EQ(other.status(3).wrong, 2U);
    ASSERT_EQ(other.send(receiving.bytes, immediate_of(3)), IBV_WC_SUCCESS);
    EXPECT_EQ(other.status(4).wrong, 2U);
}

TEST_F(Responder, a_message_that_is_too_long_ends_its_connection_alone) {
    RawInitiator bystander(responder->port()), initiator(responder->port());
    const auto request = encode(Request{length, true, number(Operation::send), receiving});

    ASSERT_EQ(bystander.connect(request), 0);
    ASSERT_EQ(initiator.connect(request), 0);
    initiator.send(receiving.bytes + 1);
    // On iWARP a SEND completes when TCP has its bytes, so the end may be noticed some SENDs
    // later.
    bool ended = false;
    for (int i = 0; i < 100 && !ended; i++) {
        ended = initiator.send(receiving.bytes) != IBV_WC_SUCCESS;
        if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(ended);
    ASSERT_EQ(bystander.send(receiving.bytes), IBV_WC_SUCCESS);
    EXPECT_EQ(bystander.status(1).received, 1U);
}

TEST_F(Responder, atomics_are_for_who_asked_for_them) {
    RawInitiator plain(responder->port()), atomic(responder->port());
    ibv_send_wr request{};

    ASSERT_EQ(plain.connect(encode(Request{length, true})), 0);
    if (plain.iwarp()) GTEST_SKIP() << "iWARP has no atomics";
    ASSERT_EQ(atomic.connect(encode(Request{length, true, number(Operation::fetch_add)})), 0);
    for (RawInitiator* initiator : {&plain, &atomic}) {
        request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        request.wr.atomic.remote_addr = initiator->answer.address;
        request.wr.atomic.rkey = initiator->answer.rkey;
        request.wr.atomic.compare_add = 1;
        EXPECT_EQ(initiator->run(request, 0, 8) == IBV_WC_SUCCESS, initiator == &atomic);
    }
}

TEST_F(Responder, atomic_writes_are_for_devices_that_have_them) {
    RawInitiator plain(responder->port());

    ASSERT_EQ(plain.connect(encode(Request{length, true})), 0);
    const bool there = plain.has(atomic_write_bit);
    EXPECT_EQ(ask({length, true, number(Operation::atomic_write)}), there ? 0 : EOPNOTSUPP);
    EXPECT_EQ(ask({length, true, number(Operation::atomic_write), receiving}), EINVAL);
}

// Packets to an address that is taken away are dropped without an answer.
TEST(Silence, of_peers_that_died_without_a_word_makes_room) {
    const auto from = [](const char* verb) {
        return std::system(fmt::format("ip addr {} 10.77.0.2/24 dev dummy0 2>&1", verb).c_str());
    };
    const auto requests = {Request{length, true}, Request{length, true, number(Operation::send), receiving}};
    auto responder = VerbsResponder::start(own_address(), 2s);
    std::vector<std::unique_ptr<RawInitiator>> peers;
    ASSERT_TRUE(responder) << responder.error().text();
    ASSERT_EQ(from("add"), 0);
    const std::shared_ptr<void> taken_away(nullptr, [&](void*) { from("del"); });

    while (peers.size() < VerbsResponder::max_connections)
        for (const auto& request : requests) {
            peers.push_back(std::make_unique<RawInitiator>((*responder)->port(), "10.77.0.2"));
            ASSERT_EQ(peers.back()->connect(encode(request)), 0);
        }
    if (peers.front()->iwarp()) GTEST_SKIP() << "TCP tries for a quarter of an hour";
    const auto connect_one_more = [&] {
        RawInitiator late((*responder)->port());
        return late.connect(encode(Request{length, true}));
    };
    std::this_thread::sleep_for(7s); // three probes, which the initiators answer
    EXPECT_EQ(connect_one_more(), EBUSY);
    ASSERT_EQ(from("del"), 0);
    int error = EBUSY;
    for (const auto deadline = Clock::now() + 60s; error == EBUSY && Clock::now() < deadline;) {
        std::this_thread::sleep_for(200ms);
        error = connect_one_more();
    }
    EXPECT_EQ(error, 0);
}

TEST_F(Responder, the_engine_refuses_atomics_of_other_sizes) {
    auto memory = Memory::create(length);
    EngineOptions options;
    options.peer = own_address(responder->port());
    options.depth = options.batch = 4;
    auto engine = Engine::connect(options, *memory);
    ASSERT_TRUE(engine) << engine.error().text();

    bool any = false;
    for (const auto operation : {Operation::atomic_write, Operation::compare_swap, Operation::fetch_add}) {
        if (!(*engine)->supports(operation)) continue;
        any = true;
        EXPECT_TRUE((*engine)->make_ready({operation, 8, 4, 4}));
        for (const uint64_t size : {1, 4, 16, 4096}) {
            const auto ready = (*engine)->make_ready({operation, size, 4, 4});
            ASSERT_FALSE(ready) << size;
            EXPECT_EQ(ready.error().number, EINVAL);
        }
    }
    if (!any) GTEST_SKIP() << "no atomics";
}

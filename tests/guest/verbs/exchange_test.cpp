// SPDX-License-Identifier: MIT
//
// Explicit connections over TCP, and misbehaving callers: they are refused with an errno or
// disconnected, and others are served meanwhile.
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "verbs/engine.hpp"
#include "verbs/responder.hpp"
#include "verbs_test.hpp"

using namespace kxfer::verbs;
using namespace std::chrono_literals;
using kxfer::bench::Memory;
using kxfer::bench::Operation;

namespace {

class Exchange : public testing::Test {
  protected:
    void SetUp() override {
        auto started = VerbsResponder::start(own_address());
        ASSERT_TRUE(started) << started.error().text();
        responder = std::move(*started);
        const auto engine = connect();
        if (!engine && engine.error().number == EOPNOTSUPP) GTEST_SKIP() << engine.error().text();
        ASSERT_TRUE(engine) << engine.error().text();
    }
    // After every test the responder still serves.
    void TearDown() override {
        if (IsSkipped()) return;
        const auto engine = connect();
        EXPECT_TRUE(engine) << engine.error().text();
        EXPECT_EQ(responder->ended(), 0);
    }

    // The responder notices the end of an old connection itself, which may take a moment.
    tl::expected<std::unique_ptr<Engine>, kxfer::Error> connect(EngineOptions options = {}) {
        const auto deadline = Clock::now() + 20s;

        options.peer = own_address(responder->port());
        options.exchange = own_address(responder->exchange_port());
        options.connect = Connect::tcp;
        options.depth = options.batch = 4;
        for (;;) {
            auto engine = Engine::connect(options, memory);
            if (engine || engine.error().number != EBUSY || Clock::now() > deadline) return engine;
            std::this_thread::sleep_for(10ms);
        }
    }

    Socket call() {
        auto socket = connect_tcp(own_address(responder->exchange_port()), Clock::now() + 10s, "test");
        EXPECT_TRUE(socket) << socket.error().text();
        return socket ? std::move(*socket) : Socket();
    }

    // A valid call except for this change.
    static WireCall right_call(const std::function<void(WireCall&)>& change) {
        Endpoint endpoint;

        endpoint.gid_type = GidType::roce_v2;
        endpoint.reads = 1;
        endpoint.qpn = 0x123456;
        endpoint.gid[10] = endpoint.gid[11] = 0xff;
        const auto address = own_address();
        memcpy(&endpoint.gid[12], &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, 4);
        WireCall request{encode(Request{length, true}), encode(endpoint), encode(Beside{endpoint, 1})};
        change(request);
        return request;
    }

    // The errno of the answer, 0: accepted, -1: no answer.
    int ask(const std::function<void(WireCall&)>& change, Socket* keep = nullptr) {
        Socket socket = call();
        const WireCall request = right_call(change);
        WireReply reply{};
        const auto head = std::as_writable_bytes(std::span(&reply, 1)).first(wire_head);

        if (!socket.send(bytes_of(request), Clock::now() + 10s, "test")) return -1;
        if (!socket.receive(head, Clock::now() + 10s, "test")) return -1;
        if (keep) *keep = std::move(socket);
        const auto answer = decode_answer(&reply.answer, sizeof(reply.answer));
        return answer ? static_cast<int>(answer->error) : -1;
    }

    std::unique_ptr<VerbsResponder> responder;
    Memory memory = std::move(*Memory::create(length));
};

// Callers that announce a QP at an address without a host, all at once: ten seconds' worth of
// them. Needs ARP on the interface.
class Unanswered : public Exchange {
  protected:
    void SetUp() override {
        Exchange::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        const auto began = Clock::now();
        ask(nobody(0));
        if (Clock::now() - began < 500ms) GTEST_SKIP() << "every address has a MAC here";
        for (uint8_t i = 1; i <= 10; i++) {
            callers.push_back(call());
            say(i, 0, half);
        }
        std::this_thread::sleep_for(500ms); // time for the responder to accept them
        for (uint8_t i = 1; i <= 10; i++) say(i, half, wire_head);
        std::this_thread::sleep_for(1200ms); // the responder has finished the first one, or nearly so
    }
    void TearDown() override {}

    static std::function<void(WireCall&)> nobody(uint8_t which) {
        return [which](WireCall& call) { call.from.gid[15] = static_cast<uint8_t>(200 + which); };
    }

    void say(uint8_t which, size_t from, size_t to) {
        const WireCall request = right_call(nobody(which));
        const auto part = bytes_of(request).subspan(from, to - from);

        ASSERT_TRUE(callers[which - 1U].send(part, Clock::now() + 10s, "test"));
    }

    static constexpr size_t half = 20;
    std::vector<Socket> callers;
};

bool ends(const Socket& socket) {
    std::byte byte{};
    const auto got = socket.receive({&byte, 1}, Clock::now() + 30s, "test");

    return !got && got.error().number == ECONNRESET;
}

} // namespace

TEST(ExchangeOverIwarp, it_is_refused_with_the_reason) {
    auto responder = VerbsResponder::start(own_address());
    auto memory = Memory::create(length);
    EngineOptions options;

    ASSERT_TRUE(responder) << responder.error().text();
    options.peer = own_address((*responder)->port());
    options.exchange = own_address((*responder)->exchange_port());
    options.connect = Connect::tcp;
    const auto engine = Engine::connect(options, *memory);
    if (engine) GTEST_SKIP() << "this is no iWARP";
    EXPECT_EQ(engine.error().number, EOPNOTSUPP);
    EXPECT_NE(engine.error().why.find("iWARP"), std::string::npos);
}

TEST_F(Exchange, each_state_is_entered_by_one_call_that_is_told) {
    const auto engine = connect();
    ASSERT_TRUE(engine) << engine.error().text();
    const auto& steps = (*engine)->steps();

    ASSERT_EQ(steps.size(), 3U);
    EXPECT_EQ(steps[0].from + steps[0].to, "RESETINIT");
    EXPECT_EQ(steps[1].from + steps[1].to, "INITRTR");
    EXPECT_EQ(steps[2].from + steps[2].to, "RTRRTS");
}

TEST_F(Exchange, operations_are_done_over_it) {
    const auto engine = connect();
    ASSERT_TRUE(engine) << engine.error().text();

    for (const auto operation : {Operation::write, Operation::read, Operation::send, Operation::fetch_add,
                                 Operation::atomic_write}) {
        const kxfer::bench::Workload workload{operation, 8, 4, 4};
        if (!(*engine)->supports(operation)) continue;
        auto ready = (*engine)->make_ready(workload);
        for (int tries = 0; !ready && ready.error().number == EBUSY && tries < 100; tries++)
            ready = (*engine)->make_ready(workload);
        ASSERT_TRUE(ready) << ready.error().text();
        const auto block = (*engine)->run_block(workload, kxfer::bench::Mode::deep, {100, 10s});
        ASSERT_TRUE(block) << block.error().text();
        const auto settled = (*engine)->settle();
        EXPECT_TRUE(settled) << settled.error().text();
    }
}

TEST_F(Exchange, a_smaller_mtu_is_agreed_on) {
    EngineOptions options;

    options.mtu = IBV_MTU_256;
    const auto engine = connect(options);
    ASSERT_TRUE(engine) << engine.error().text();
    EXPECT_EQ((*engine)->steps()[1].attributes.front().value, "256");
}

TEST_F(Exchange, a_gid_that_is_not_there_is_refused) {
    EngineOptions options;

    options.gid_index = 255;
    const auto engine = connect(options);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().number, EINVAL);
}

TEST_F(Exchange, calls_that_make_no_sense_are_refused) {
    EXPECT_EQ(ask([](WireCall&) {}), 0);
    EXPECT_EQ(ask([](WireCall& call) { call.request.magic = 0; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.request.version = htobe16(1); }), EPROTONOSUPPORT);
    EXPECT_EQ(ask([](WireCall& call) { call.from.mtu = 0; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.mtu = 6; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.qpn = 0; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.qpn = UINT32_MAX; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.psn = UINT32_MAX; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.gid_type = 3; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.min_rnr_timer = 32; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.transport = 9; }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.from.transport = 1; }), 0);
    EXPECT_EQ(ask([](WireCall& call) {
                  call.from.transport = 2;
                  call.beside.control.qpn = 0;
              }),
              EPROTO);
    EXPECT_EQ(ask([](WireCall& call) {
                  call.from.transport = 2;
                  call.beside.control.transport = 2;
              }),
              EPROTO);
    EXPECT_EQ(ask([](WireCall& call) {
                  call.from.transport = 1;
                  call.beside.reserved = 1;
              }),
              EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { memset(call.from.gid, 0, sizeof(call.from.gid)); }), EPROTO);
    EXPECT_EQ(ask([](WireCall& call) { call.request.operation = htobe16(99); }), EOPNOTSUPP);
    EXPECT_EQ(ask([](WireCall& call) { call.request.length = UINT64_MAX; }), EDQUOT);
    EXPECT_EQ(ask([](WireCall& call) { call.request.receives = htobe32(8); }), EINVAL);
}

TEST_F(Exchange, who_says_more_than_the_call_is_cut_off) {
    const std::byte more{1};
    Socket socket;

    ASSERT_EQ(ask([](WireCall&) {}, &socket), 0);
    ASSERT_TRUE(socket.send({&more, 1}, Clock::now() + 10s, "test"));
    EXPECT_TRUE(ends(socket));
}

TEST_F(Exchange, silent_callers_are_bounded_and_do_not_keep_others_waiting) {
    std::vector<Socket> silent;
    const std::byte half[20] = {};

    for (size_t i = 0; i < Callers::max_waiting + 4; i++) {
        silent.push_back(call());
        ASSERT_TRUE(silent.back().send(half, Clock::now() + 10s, "test"));
    }
    const auto engine = connect();
    EXPECT_TRUE(engine) << engine.error().text();
    // The oldest caller was dropped for the new one.
    EXPECT_TRUE(ends(silent.front()));
    // The others time out later.
    EXPECT_TRUE(ends(silent.back()));
}

TEST_F(Unanswered, callers_do_not_keep_rdma_cm_waiting) {
    const auto began = Clock::now();
    RawInitiator initiator(responder->port());
    EXPECT_EQ(initiator.connect(encode(Request{length, true})), 0);
    EXPECT_LT(Clock::now() - began, 5s);
}

TEST_F(Unanswered, callers_do_not_keep_the_end_waiting) {
    const auto began = Clock::now();
    responder.reset();
    EXPECT_LT(Clock::now() - began, 5s);
}

TEST_F(Unanswered, callers_who_hang_up_meanwhile_cost_no_time) {
    const auto began = Clock::now();
    callers.clear();
    const auto engine = connect();
    EXPECT_TRUE(engine) << engine.error().text();
    EXPECT_LT(Clock::now() - began, 5s);
}

TEST_F(Exchange, who_hangs_up_gives_back_what_he_had) {
    for (unsigned i = 0; i < 3 * VerbsResponder::max_connections; i++) {
        const auto engine = connect();
        ASSERT_TRUE(engine) << i << ": " << engine.error().text();
    }
    std::vector<std::unique_ptr<Engine>> all;
    for (unsigned i = 0; i < VerbsResponder::max_connections; i++) {
        auto engine = connect();
        ASSERT_TRUE(engine) << i << ": " << engine.error().text();
        all.push_back(std::move(*engine));
    }
    EXPECT_EQ(ask([](WireCall&) {}), EBUSY);
    all.clear();
}

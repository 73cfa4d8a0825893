// SPDX-License-Identifier: MIT
//
// UC and UD: supported operations work, unsupported ones are refused before anything is posted,
// and losses are counted after a short wait.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bench/stats/comparison.hpp"
#include "verbs/engine.hpp"
#include "verbs/exchange.hpp"
#include "verbs/local_port.hpp"
#include "verbs/responder.hpp"
#include "verbs/walk.hpp"
#include "verbs_test.hpp"

using namespace kxfer::verbs;
using kxfer::bench::Mode;
using kxfer::bench::Operation;
using kxfer::bench::Workload;

namespace {

EngineOptions options_of(Transport transport, uint16_t port) {
    EngineOptions options;

    options.peer = options.exchange = own_address(port);
    options.connect = Connect::tcp;
    options.transport = transport;
    options.depth = options.batch = 4;
    return options;
}

class TransportTest : public testing::Test {
  protected:
    void SetUp() override {
        auto started = VerbsResponder::start(own_address());
        ASSERT_TRUE(started) << started.error().text();
        responder = std::move(*started);
        auto engine = connect(Transport::rc);
        if (!engine && engine.error().number == EOPNOTSUPP) GTEST_SKIP() << engine.error().text();
        ASSERT_TRUE(engine) << engine.error().text();
    }

    tl::expected<std::unique_ptr<Engine>, kxfer::Error> connect(Transport transport,
                                                                std::optional<uint32_t> qkey = {}) {
        auto options = options_of(transport, responder->exchange_port());

        options.qkey = qkey;
        return Engine::connect(options, memory);
    }

    // Runs one operation from the beginning and verifies all of it, like `bench`.
    void expect_verified(Transport transport, Operation operation, uint64_t size) {
        const Workload workload{operation, size, 4, 4};
        auto engine = connect(transport);
        ASSERT_TRUE(engine) << engine.error().text();
        auto evidence = kxfer::bench::prepare_data(**engine, memory, workload);
        ASSERT_TRUE(evidence) << evidence.error().text();
        for (const auto mode : {Mode::single, Mode::deep}) {
            const auto block = (*engine)->run_block(workload, mode, {3000, 60s});
            ASSERT_TRUE(block) << block.error().text();
        }
        const auto settled = (*engine)->settle();
        ASSERT_TRUE(settled) << settled.error().text();
        const auto losses = (*engine)->losses();
        EXPECT_EQ(losses.has_value(), operation != Operation::write);
        if (losses) {
            EXPECT_EQ(losses->lost, 0U) << "of " << losses->sent;
            EXPECT_GE(losses->sent, 6000U);
        }
        const auto verified = kxfer::bench::verify_data(**engine, memory, workload, *evidence);
        ASSERT_TRUE(verified) << verified.error().text();
        EXPECT_TRUE(*verified);
    }

    void expect_refused(Transport transport, Operation operation, uint64_t size, const std::string& why) {
        auto engine = connect(transport);
        ASSERT_TRUE(engine) << engine.error().text();
        const auto ready = (*engine)->make_ready({operation, size, 4, 4});
        ASSERT_FALSE(ready);
        EXPECT_EQ(ready.error().number, EOPNOTSUPP);
        EXPECT_NE(ready.error().why.find(why), std::string::npos) << ready.error().text();
    }

    std::unique_ptr<VerbsResponder> responder;
    Memory memory = std::move(*Memory::create(length));
};

// Q_Key violations that the port of this node's address has counted.
uint32_t qkey_violations() {
    const auto channel = open_channel();
    rdma_cm_id* id = nullptr;
    ibv_port_attr port{};

    if (!channel || rdma_create_id(channel->get(), &id, nullptr, RDMA_PS_TCP)) return 0;
    const std::unique_ptr<rdma_cm_id, DestroyId> owner(id);
    if (!bind_device(id, own_address()) || ibv_query_port(id->verbs, id->port_num, &port)) return 0;
    return port.qkey_viol_cntr;
}

// More messages than receives: a sender that waits for credits would wait for ever.
constexpr uint64_t nr_lost = 1200;

// Messages without a receive: they end, and so does the wait for them.
void expect_all_lost(Engine& engine) {
    const Workload workload{Operation::send, 64, 4, 4};
    const auto start = Clock::now();
    const auto ready = engine.make_ready(workload);
    ASSERT_TRUE(ready) << ready.error().text();
    const auto block = engine.run_block(workload, Mode::deep, {nr_lost, 60s});
    ASSERT_TRUE(block) << block.error().text();
    const auto settled = engine.settle();
    ASSERT_TRUE(settled) << settled.error().text();
    const auto losses = engine.losses();
    ASSERT_TRUE(losses);
    EXPECT_EQ(losses->sent, nr_lost);
    EXPECT_EQ(losses->lost, nr_lost);
    EXPECT_LT(Clock::now() - start, 30s);
}

} // namespace

TEST(TransportOverIwarp, the_provider_says_that_it_has_none_but_rc) {
    auto responder = VerbsResponder::start(own_address());
    auto memory = Memory::create(length);
    ASSERT_TRUE(responder) << responder.error().text();

    for (const auto transport : {Transport::uc, Transport::ud}) {
        const auto engine = Engine::connect(options_of(transport, (*responder)->exchange_port()), *memory);
        if (engine) GTEST_SKIP() << "this is no iWARP";
        EXPECT_EQ(engine.error().number, EOPNOTSUPP) << engine.error().text();
        EXPECT_NE(engine.error().what.find("does not create a"), std::string::npos) << engine.error().text();
        EXPECT_NE(engine.error().why.find("iWARP"), std::string::npos);
    }
}

TEST_F(TransportTest, uc_brings_writes_and_messages) {
    for (const auto operation :
         {Operation::write, Operation::write_imm, Operation::send, Operation::send_imm})
        for (const uint64_t size : {64U, 4000U}) expect_verified(Transport::uc, operation, size);
}

TEST_F(TransportTest, ud_brings_messages_behind_a_grh) {
    for (const auto operation : {Operation::send, Operation::send_imm})
        for (const uint64_t size : {1U, 1024U}) expect_verified(Transport::ud, operation, size);
}

TEST_F(TransportTest, what_they_do_not_carry_is_refused) {
    expect_refused(Transport::uc, Operation::read, 64, "UC has neither READ nor atomics");
    expect_refused(Transport::uc, Operation::fetch_add, 8, "UC has neither READ nor atomics");
    expect_refused(Transport::ud, Operation::write, 64, "UD has SEND");
    expect_refused(Transport::ud, Operation::write_imm, 64, "UD has SEND");
    expect_refused(Transport::ud, Operation::read, 64, "UD has SEND");
    expect_refused(Transport::ud, Operation::send, 4097, "one packet");
}

TEST_F(TransportTest, every_attribute_is_told) {
    const auto find = [](const Step& step, const std::string& name) {
        for (const auto& one : step.attributes)
            if (one.name == name) return one.value;
        return std::string();
    };
    for (const auto transport : {Transport::uc, Transport::ud}) {
        const auto engine = connect(transport);
        ASSERT_TRUE(engine) << engine.error().text();
        const auto& steps = (*engine)->steps();
        const bool ud = transport == Transport::ud;

        ASSERT_EQ(steps.size(), ud ? 7U : 6U);
        EXPECT_EQ(steps[0].of, ud ? "UD QP" : "UC QP");
        EXPECT_EQ(steps.back().of, ud ? "address handle" : "RC QP");
        EXPECT_EQ(find(steps[0], "qkey").empty(), !ud);
        EXPECT_EQ(find(steps.back(), "ud.remote_qkey").size(), ud ? 10U : 0U);
    }
}

TEST_F(TransportTest, a_message_of_another_qkey_is_dropped_and_counted_by_the_port) {
    const uint32_t before = qkey_violations();
    auto engine = connect(Transport::ud, 0x1ee7);
    ASSERT_TRUE(engine) << engine.error().text();
    expect_all_lost(**engine);
    EXPECT_EQ(qkey_violations() - before, nr_lost);
}

namespace {

// Answers callers with a QP of their transport, and posts no receive: messages over UC are
// lost, messages over RC get RNR NAKs.
class LazyCallee {
  public:
    LazyCallee()
        : callers_(std::move(*Callers::listen(own_address()))), channel_(std::move(*open_channel())) {
        port_ = callers_.port();
        thread_ = std::thread([this] {
            while (!stop_) handle();
        });
    }
    ~LazyCallee() {
        stop_ = true;
        thread_.join();
    }
    uint16_t port() const { return port_; }

  private:
    struct Connection {
        Memory memory = std::move(*Memory::create(length + 4096));
        QueuePair pair;
        Socket socket;
    };

    void handle() {
        std::vector<pollfd> waiting;

        callers_.add_to(waiting);
        if (poll(waiting.data(), waiting.size(), 100) < 0) return;
        callers_.handle(waiting);
        if (auto caller = callers_.next()) answer(*caller);
    }

    void answer(Callers::Caller& caller) {
        auto connection = std::make_unique<Connection>();
        auto& pair = connection->pair;
        const auto peer = end_of(caller.call);
        const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        rdma_cm_id* id = nullptr;

        if (!peer || rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP)) return;
        pair.id.reset(id);
        if (!bind_device(id, own_address())) return;
        const auto port = find_local_port(id, own_address(), std::nullopt, std::nullopt);
        if (!port ||
            !pair.create(connection->memory, {1, 1, false, false, peer->endpoint.transport}, access, "test"))
            return;
        End own = end_of(pair, *port);
        agree(own, peer->endpoint.mtu, 1, peer->endpoint.min_rnr_timer);
        EndWalk walk(pair, *port, "test");
        if (!walk.init(access, own) || !walk.connect(own, *peer, {})) return;
        WireReply reply{
            encode(Answer{0, pair.mr->rkey, reinterpret_cast<uintptr_t>(connection->memory.data()), length}),
            encode(own.endpoint),
            {}};
        if (own.beside) reply.beside = encode(*own.beside);
        connection->socket = std::move(caller.socket);
        if (connection->socket.send(bytes_of(reply), Clock::now() + 5s, "test"))
            connections_.push_back(std::move(connection));
    }

    Callers callers_;
    Channel channel_;
    uint16_t port_ = 0;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

} // namespace

TEST_F(TransportTest, messages_over_uc_without_receives_are_lost_and_waited_for_no_longer) {
    LazyCallee callee;
    auto engine = Engine::connect(options_of(Transport::uc, callee.port()), memory);
    ASSERT_TRUE(engine) << engine.error().text();
    expect_all_lost(**engine);
}

// Each RNR NAK leads to one more try after the time of its code. The smallest of five counts,
// because a busy node takes longer.
TEST_F(TransportTest, the_peer_tells_to_wait_as_long_as_was_asked_for) {
    LazyCallee callee;
    std::map<uint8_t, Clock::duration> least;

    for (const uint8_t code : {31, 1, 31, 1, 31, 1, 31, 1, 31, 1}) {
        auto options = options_of(Transport::rc, callee.port());
        options.min_rnr_timer = code;
        options.patience.rnr_retry = 1;
        auto engine = Engine::connect(options, memory);
        ASSERT_TRUE(engine) << engine.error().text();
        const auto ready = (*engine)->make_ready({Operation::send, 64, 4, 4});
        ASSERT_TRUE(ready) << ready.error().text();
        const auto start = Clock::now();
        const auto block = (*engine)->run_block({Operation::send, 64, 4, 4}, Mode::deep, {4, 10s});
        const auto took = Clock::now() - start;
        least[code] = std::min(least.try_emplace(code, took).first->second, took);
        ASSERT_FALSE(block);
        EXPECT_NE(block.error().what.find("RNR retry counter exceeded"), std::string::npos)
            << block.error().text();
    }
    EXPECT_GE(least[31], 450ms); // 491.52 ms
    EXPECT_LT(least[1], least[31]);
}

// SPDX-License-Identifier: MIT
//
// Problems of user-space verbs, caused on purpose: a receiver without receives, a CQ that
// overruns. The error messages have to name the cause.
#include <atomic>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs/engine.hpp"
#include "verbs/responder.hpp"
#include "verbs_test.hpp"

using namespace kxfer::verbs;
using kxfer::bench::Operation;
using kxfer::bench::Workload;

namespace {

// Accepts every connection, and posts no receive.
class LazyResponder {
  public:
    LazyResponder() : channel_(std::move(*open_channel())) {
        auto listener = listen_at(channel_.get(), own_address(), 4);
        if (!listener) throw std::runtime_error(listener.error().text());
        listener_ = std::move(*listener);
        thread_ = std::thread([this] {
            while (!stop_) handle();
        });
    }
    ~LazyResponder() {
        stop_ = true;
        thread_.join();
        connections_.clear();
    }

    uint16_t port() const { return ntohs(rdma_get_src_port(listener_.get())); }

  private:
    struct Connection {
        Memory memory = std::move(*Memory::create(length + 4096));
        QueuePair pair;
    };

    void handle() {
        auto event = next_event(channel_.get(), Clock::now() + 100ms, "waiting", "test");
        if (!event || (*event)->event != RDMA_CM_EVENT_CONNECT_REQUEST) return;
        auto connection = std::make_unique<Connection>();
        auto& pair = connection->pair;
        const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        rdma_conn_param parameters{};

        pair.id.reset((*event)->id);
        if (!pair.create(connection->memory, {1, 1}, access, "test")) return;
        const WireAnswer answer =
            encode(Answer{0, pair.mr->rkey, reinterpret_cast<uintptr_t>(connection->memory.data()), length});
        parameters.private_data = &answer;
        parameters.private_data_len = sizeof(answer);
        parameters.responder_resources = parameters.initiator_depth = 1;
        // Return the initiator's own rnr_retry.
        parameters.rnr_retry_count = (*event)->param.conn.rnr_retry_count;
        if (rdma_accept(pair.id.get(), &parameters) == 0) connections_.push_back(std::move(connection));
    }

    Channel channel_;
    std::unique_ptr<rdma_cm_id, DestroyId> listener_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

// The local ports of this node, few as long as the object is there. A quarter is a TCP socket's, so iWARP
// cannot have it.
class FewPorts {
  public:
    FewPorts() {
        std::ifstream(file) >> low_ >> high_;
        std::ofstream(file) << first << ' ' << last;
        for (uint16_t port = first; port < first + 3; port++) {
            const auto address = own_address(port);
            const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in)), 0);
            sockets_.push_back(fd);
        }
    }
    ~FewPorts() {
        std::ofstream(file) << low_ << ' ' << high_;
        for (const int fd : sockets_) close(fd);
    }

  private:
    static constexpr const char* file = "/proc/sys/net/ipv4/ip_local_port_range";
    // Above the default range (net/ipv4/af_inet.c: 32768 to 60999), from which earlier connections have
    // ports.
    static constexpr uint16_t first = 61000, last = 61011;
    unsigned low_ = 0, high_ = 0;
    std::vector<int> sockets_;
};

// The error of a SEND to this responder, and its duration.
std::pair<kxfer::Error, std::chrono::nanoseconds> send_to_lazy(uint8_t rnr_retry, bool* iwarp) {
    LazyResponder responder;
    auto memory = Memory::create(length);
    EngineOptions options;
    const Workload workload{Operation::send, 64, 4, 4};

    options.peer = own_address(responder.port());
    options.depth = options.batch = 4;
    options.patience.rnr_retry = rnr_retry;
    auto engine = Engine::connect(options, *memory);
    if (!engine) throw std::runtime_error(engine.error().text());
    *iwarp = !(*engine)->supports(Operation::send_imm);
    const auto ready = (*engine)->make_ready(workload);
    if (!ready) throw std::runtime_error(ready.error().text());
    const auto start = Clock::now();
    const auto block = (*engine)->run_block(workload, kxfer::bench::Mode::deep, {4, 10s});
    EXPECT_TRUE(!block || *iwarp) << "a SEND was done without a receive";
    return {block ? kxfer::Error("", "", 0) : block.error(), Clock::now() - start};
}

} // namespace

TEST(Trouble, a_message_without_a_receive_is_told_as_what_it_is) {
    bool iwarp = false;
    const auto [error, took] = send_to_lazy(0, &iwarp);

    if (iwarp) GTEST_SKIP() << "iWARP has no RNR NAK: it ends the connection";
    EXPECT_EQ(error.number, ECONNRESET);
    EXPECT_NE(error.what.find("RNR retry counter exceeded"), std::string::npos) << error.text();
    EXPECT_NE(error.hint.find("kxfer explain 'RNR retry counter exceeded'"), std::string::npos);
}

// rdma_cm sets code 0 at the responder: 655 ms before the next try.
TEST(Trouble, rnr_retry_is_how_often_it_is_tried_again) {
    bool iwarp = false;
    const auto [error, took] = send_to_lazy(1, &iwarp);

    if (iwarp) GTEST_SKIP() << "iWARP has no RNR NAK";
    EXPECT_NE(error.what.find("RNR retry counter exceeded"), std::string::npos) << error.text();
    EXPECT_GE(took, 600ms);
}

// The 17 entries, or as many as the device makes of them, are filled and not polled.
TEST(Trouble, a_cq_that_overruns_is_told_by_the_device) {
    constexpr unsigned many = 256;
    auto responder = VerbsResponder::start(own_address());
    ASSERT_TRUE(responder) << responder.error().text();
    RawInitiator initiator((*responder)->port());
    std::string told;

    ASSERT_EQ(initiator.connect(encode(Request{length, true})), 0);
    EXPECT_EQ(told_event(initiator.context()), "");
    for (unsigned i = 0; i < many; i++) {
        // Completed WRITEs free room in the send queue; on some devices none is ever freed.
        for (int tries = 0; tries < 500 && initiator.post_unseen(1); tries++)
            std::this_thread::sleep_for(1ms);
        told = told_event(initiator.context());
        if (told == "CQ error") break;
    }
    for (int tries = 0; tries < 200 && told != "CQ error"; tries++) {
        told = told_event(initiator.context());
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(told, "CQ error");
}

// In twenty starts and connections one of those ports is chosen, but for three of a thousand runs.
TEST(Trouble, a_port_that_tcp_has_is_replaced_by_another) {
    const FewPorts few;

    for (int i = 0; i < 20; i++) {
        const auto responder = VerbsResponder::start(own_address());
        ASSERT_TRUE(responder) << responder.error().text();
        RawInitiator initiator((*responder)->port());
        ASSERT_EQ(initiator.connect(encode(Request{length, true})), 0);
    }
}

TEST(Trouble, who_waits_for_events_misses_none) {
    auto responder = VerbsResponder::start(own_address());
    auto memory = Memory::create(length);
    EngineOptions options;
    ASSERT_TRUE(responder) << responder.error().text();

    options.peer = own_address((*responder)->port());
    options.depth = options.batch = 4;
    options.events = true;
    auto engine = Engine::connect(options, *memory);
    ASSERT_TRUE(engine) << engine.error().text();
    for (const auto operation : {Operation::read, Operation::write, Operation::send}) {
        const Workload workload{operation, 64, 4, 4};
        ASSERT_TRUE((*engine)->make_ready(workload));
        for (const auto mode : {kxfer::bench::Mode::single, kxfer::bench::Mode::deep}) {
            const auto block = (*engine)->run_block(workload, mode, {500, 60s});
            ASSERT_TRUE(block) << block.error().text();
            EXPECT_EQ(block->operations, 500U);
        }
        const auto settled = (*engine)->settle();
        EXPECT_TRUE(settled) << settled.error().text();
    }
}

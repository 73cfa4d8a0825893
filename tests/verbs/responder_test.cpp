// SPDX-License-Identifier: MIT
//
// The responder against initiators that ask for what it does not know, or send what
// they should not: it refuses with an errno, counts what is wrong, ends the
// connection, and goes on serving others.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "verbs/engine.hpp"
#include "verbs/messages.hpp"
#include "verbs/responder.hpp"

using namespace kxfer::verbs;
using namespace std::chrono_literals;
using kxfer::bench::Memory;
using kxfer::bench::Operation;

namespace {

constexpr uint64_t length = 4 * 4096;
constexpr Receiving receiving{8, 4, 64};

sockaddr_storage own_address(uint16_t port = 0) {
    const char* text = getenv("KXFER_ADDRESS");
    sockaddr_storage storage{};
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);

    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    inet_pton(AF_INET, text ? text : "10.77.0.1", &address->sin_addr);
    return storage;
}

// An initiator that says and posts what it is told.
class RawInitiator {
  public:
    explicit RawInitiator(uint16_t port)
        : memory_(std::move(*Memory::create(length))), peer_(own_address(port)) {}
    ~RawInitiator() {
        if (pair_.qp) rdma_disconnect(pair_.id.get());
    }

    // The errno of a refusal, 0: accepted, -1: neither.
    template <typename Wire> int connect(const Wire& request, size_t bytes = sizeof(Wire)) {
        rdma_conn_param parameters{};
        rdma_cm_id* id = nullptr;

        channel_ = std::move(*open_channel());
        if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP)) return -1;
        pair_.id.reset(id);
        if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&peer_), 2000)) return -1;
        if (next() != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_resolve_route(id, 2000)) return -1;
        if (next() != RDMA_CM_EVENT_ROUTE_RESOLVED) return -1;
        if (!pair_.create(memory_, {16, 0, false}, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, "test"))
            return -1;
        parameters.private_data = &request;
        parameters.private_data_len = static_cast<uint8_t>(bytes);
        parameters.initiator_depth = parameters.responder_resources = 1;
        parameters.retry_count = 7;
        if (rdma_connect(id, &parameters)) return -1;
        const auto event = next();
        if (event == RDMA_CM_EVENT_REJECTED) return static_cast<int>(answer.error);
        return event == RDMA_CM_EVENT_ESTABLISHED ? 0 : -1;
    }

    ibv_wc_status run(ibv_send_wr request, uint64_t offset, uint32_t bytes) {
        ibv_sge sge{reinterpret_cast<uintptr_t>(memory_.data()) + offset, bytes, pair_.mr->lkey};
        ibv_send_wr* bad = nullptr;
        ibv_wc completion{};

        request.sg_list = &sge;
        request.num_sge = 1;
        request.send_flags = IBV_SEND_SIGNALED;
        if (ibv_post_send(pair_.id->qp, &request, &bad)) return IBV_WC_GENERAL_ERR;
        for (int tries = 0; tries < 10000; tries++) {
            if (ibv_poll_cq(pair_.cq.get(), 1, &completion) > 0) return completion.status;
            std::this_thread::sleep_for(1ms);
        }
        return IBV_WC_RESP_TIMEOUT_ERR;
    }

    ibv_wc_status send(uint32_t bytes, std::optional<uint32_t> immediate = {}) {
        ibv_send_wr request{};

        request.opcode = immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        if (immediate) request.imm_data = htobe32(*immediate);
        return run(request, 0, bytes);
    }

    // Once so many messages are in it; what it says after a while otherwise.
    Status status(uint64_t received) {
        WireStatus wire{};
        ibv_send_wr request{};

        request.opcode = IBV_WR_RDMA_READ;
        request.wr.rdma.remote_addr = answer.address + answer.length;
        request.wr.rdma.rkey = answer.rkey;
        for (int tries = 0; tries < 1000; tries++) {
            if (run(request, 4096, sizeof(wire)) != IBV_WC_SUCCESS) break;
            memcpy(&wire, memory_.data() + 4096, sizeof(wire));
            if (decode(wire).received >= received) break;
            std::this_thread::sleep_for(5ms);
        }
        return decode(wire);
    }

    bool iwarp() const { return pair_.iwarp; }
    Answer answer;
    uint16_t answer_version = 0;

  private:
    rdma_cm_event_type next() {
        auto event = next_event(channel_.get(), Clock::now() + 10s, "waiting", "test");

        if (!event) return RDMA_CM_EVENT_UNREACHABLE;
        const auto& param = (*event)->param.conn;
        if (const auto got = decode_answer(param.private_data, param.private_data_len)) {
            answer = *got;
            answer_version = *version_of(param.private_data, param.private_data_len);
        }
        return (*event)->event;
    }

    Memory memory_;
    sockaddr_storage peer_;
    Channel channel_;
    QueuePair pair_;
};

class Responder : public testing::Test {
  protected:
    void SetUp() override {
        auto started = VerbsResponder::start(own_address());
        ASSERT_TRUE(started) << started.error().text();
        responder = std::move(*started);
    }
    // Whatever was done to it, it serves.
    void TearDown() override {
        RawInitiator initiator(responder->port());
        EXPECT_EQ(initiator.connect(encode(Request{length, true})), 0);
        EXPECT_EQ(responder->failure(), "");
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
    EXPECT_EQ(ask({length, true, 7}), EOPNOTSUPP);
    EXPECT_EQ(ask({length, true, 0xffff, receiving}), EOPNOTSUPP);
}

TEST_F(Responder, another_version_is_refused_in_its_own) {
    RawInitiator older(responder->port()), newer(responder->port()), other(responder->port());
    auto request = encode(Request{length, true});

    request.version = htobe16(1);
    EXPECT_EQ(older.connect(request, 16), EPROTONOSUPPORT);
    EXPECT_EQ(older.answer_version, 1);
    // Not understood here, but a refusal it is.
    request.version = htobe16(3);
    EXPECT_GE(newer.connect(request), 0);
    EXPECT_EQ(newer.answer.address, 0U);
    request.magic = 0;
    EXPECT_EQ(other.connect(request), EPROTO);
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
    // One at a time: each receive is posted again before the next is needed.
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
    // On iWARP a SEND is done when TCP has it: it may be some until the end is known.
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

TEST_F(Responder, the_engine_refuses_atomics_of_other_sizes) {
    auto memory = Memory::create(length);
    EngineOptions options;
    options.peer = own_address(responder->port());
    options.depth = options.batch = 4;
    auto engine = Engine::connect(options, *memory);
    ASSERT_TRUE(engine) << engine.error().text();

    for (const auto operation : {Operation::compare_swap, Operation::fetch_add}) {
        if (!(*engine)->supports(operation)) GTEST_SKIP() << "no atomics";
        EXPECT_TRUE((*engine)->make_ready({operation, 8, 4, 4}));
        for (const uint64_t size : {1, 4, 16, 4096}) {
            const auto ready = (*engine)->make_ready({operation, size, 4, 4});
            ASSERT_FALSE(ready) << size;
            EXPECT_EQ(ready.error().number, EINVAL);
        }
    }
}

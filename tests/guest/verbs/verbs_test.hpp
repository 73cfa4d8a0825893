// SPDX-License-Identifier: MIT
//
// Shared by the tests of user-space verbs: the node's address, and an initiator with
// configurable messages.
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include <arpa/inet.h>

#include "verbs/connection.hpp"
#include "verbs/wire.hpp"

namespace kxfer::verbs {

using bench::Memory;
using namespace std::chrono_literals;

constexpr uint64_t length = 4 * 4096;

inline sockaddr_storage own_address(uint16_t port = 0) {
    const char* text = getenv("KXFER_ADDRESS");
    sockaddr_storage storage{};
    auto* address = reinterpret_cast<sockaddr_in*>(&storage);

    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    inet_pton(AF_INET, text ? text : "10.77.0.1", &address->sin_addr);
    return storage;
}

// An initiator that sends and posts what a test asks for.
class RawInitiator {
  public:
    // from: an address of this node, if it differs from the peer's.
    explicit RawInitiator(uint16_t port, const char* from = nullptr)
        : memory_(std::move(*Memory::create(length))), peer_(own_address(port)), from_(own_address()) {
        if (from) inet_pton(AF_INET, from, &reinterpret_cast<sockaddr_in*>(&from_)->sin_addr);
    }
    ~RawInitiator() {
        if (pair_.qp) rdma_disconnect(pair_.id.get());
    }

    // The errno of a refusal, 0: accepted, -1: no answer.
    template <typename Wire> int connect(const Wire& request, size_t bytes = sizeof(Wire)) {
        for (int tries = 1; prepare(); tries++) {
            if (ask(request, bytes)) return hear();
            if (errno != EADDRINUSE || tries == most_ports) break;
            const QueuePair failed = std::move(pair_); // destroyed from its last member to its first
        }
        return -1;
    }

    // The three steps of connect().
    bool prepare() {
        rdma_cm_id* id = nullptr;

        channel_ = std::move(*open_channel());
        if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP)) return false;
        pair_.id.reset(id);
        if (rdma_resolve_addr(id, reinterpret_cast<sockaddr*>(&from_), reinterpret_cast<sockaddr*>(&peer_),
                              2000))
            return false;
        if (next() != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_resolve_route(id, 2000)) return false;
        if (next() != RDMA_CM_EVENT_ROUTE_RESOLVED) return false;
        return pair_.create(memory_, {16, 0, false}, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, "test")
            .has_value();
    }

    template <typename Wire> bool ask(const Wire& request, size_t bytes = sizeof(Wire)) {
        rdma_conn_param parameters{};

        parameters.private_data = &request;
        parameters.private_data_len = static_cast<uint8_t>(bytes);
        parameters.initiator_depth = parameters.responder_resources = 1;
        parameters.retry_count = 7;
        return rdma_connect(pair_.id.get(), &parameters) == 0;
    }

    int hear() {
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

    // The status once it counts @received messages, or after a time limit.
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

    // Posts @times requests whose completions are never polled. Returns the errno of a failed
    // post.
    int post_unseen(unsigned times) {
        ibv_sge sge{reinterpret_cast<uintptr_t>(memory_.data()), 8, pair_.mr->lkey};
        ibv_send_wr request{}, *bad = nullptr;

        request.opcode = IBV_WR_RDMA_WRITE;
        request.wr.rdma.remote_addr = answer.address;
        request.wr.rdma.rkey = answer.rkey;
        request.sg_list = &sge;
        request.num_sge = 1;
        request.send_flags = IBV_SEND_SIGNALED;
        for (unsigned i = 0; i < times; i++)
            if (int error = ibv_post_send(pair_.id->qp, &request, &bad)) return error;
        return 0;
    }

    ibv_context* context() const { return pair_.id->verbs; }
    bool iwarp() const { return pair_.iwarp; }
    bool has(uint64_t capability) const { return pair_.has(capability); }
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
    sockaddr_storage from_;
    Channel channel_;
    QueuePair pair_;
};

} // namespace kxfer::verbs

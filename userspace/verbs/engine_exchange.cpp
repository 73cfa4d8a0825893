// SPDX-License-Identifier: MIT
//
// The explicit way to connect the verbs engine: each end makes a QP, they tell each
// other of them over TCP (endpoint.hpp), and each moves its own through its states
// (walk.hpp). rdma_cm does no more than to find the device of the own address.

#include "verbs/engine.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace kxfer::verbs {

tl::expected<void, Error> Engine::connect_by_tcp(Clock::time_point deadline) {
    rdma_cm_id* id = nullptr;

    auto socket = connect_tcp(options_.exchange, deadline, peer_);
    if (!socket) return tl::unexpected(socket.error());
    socket_ = std::move(*socket);
    const auto address = socket_.own_address();
    if (!address) return tl::unexpected(address.error());
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP))
        return tl::unexpected(Error("cannot create an rdma_cm id", peer_, last_error()));
    pair_.id.reset(id);
    if (auto bound = bind_device(id, *address); !bound) return bound;
    const auto port = find_local_port(id, *address, options_.gid_index, std::nullopt);
    if (!port) return tl::unexpected(port.error());
    if (auto created = create(); !created) return created;

    Walk walk(id->qp, *port, peer_);
    auto own = own_endpoint(*port);
    if (!own) return tl::unexpected(own.error());
    // Nothing of this end is reached by the peer: the operations begin here.
    if (auto ready = walk.init(0); !ready) return ready;
    const auto peer = exchange(*own, deadline);
    if (!peer) return tl::unexpected(peer.error());
    own->mtu = peer->mtu;
    own->reads = peer->reads;
    if (auto ready = walk.ready_to_receive(*own, *peer); !ready) return ready;
    if (auto ready = walk.ready_to_send(*own, options_.patience); !ready) return ready;
    steps_ = walk.steps();
    return {};
}

tl::expected<Endpoint, Error> Engine::own_endpoint(const LocalPort& port) const {
    const auto& attributes = pair_.attributes;
    Endpoint own = endpoint_of(*pair_.id->qp, port);

    own.mtu = options_.mtu.value_or(port.mtu);
    if (own.mtu > port.mtu)
        return tl::unexpected(Error(fmt::format("{} cannot have an MTU of", device_),
                                    std::to_string(128U << own.mtu), EINVAL,
                                    fmt::format("use --mtu {} or less", 128U << port.mtu)));
    own.reads = static_cast<uint8_t>(
        std::clamp(std::min(attributes.max_qp_init_rd_atom, attributes.max_qp_rd_atom), 1, 255));
    own.min_rnr_timer = options_.min_rnr_timer;
    return own;
}

// The responder's QP is ready when it answers.
tl::expected<Endpoint, Error> Engine::exchange(const Endpoint& own, Clock::time_point deadline) {
    const WireCall call{encode(request()), encode(own)};
    WireReply reply{};

    if (auto sent = socket_.send(std::as_bytes(std::span(&call, 1)), deadline, peer_); !sent)
        return tl::unexpected(sent.error());
    if (auto got = socket_.receive(std::as_writable_bytes(std::span(&reply, 1)), deadline, peer_); !got)
        return tl::unexpected(got.error());
    const auto answer = decode_answer(&reply.answer, sizeof(reply.answer));
    if (answer && answer->error) return tl::unexpected(refusal(static_cast<int>(answer->error)));
    const auto peer = decode(reply.from);
    if (!answer || !peer || answer->length < memory_.length() || peer->mtu > own.mtu ||
        peer->reads > own.reads || peer->gid_type != own.gid_type)
        return tl::unexpected(Error("the peer is no responder of this version", peer_, EPROTO,
                                    "start a responder there: kxfer serve SOURCE --verbs"));
    remote_ = *answer;
    return *peer;
}

} // namespace kxfer::verbs

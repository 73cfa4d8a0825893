// SPDX-License-Identifier: MIT
//
// The explicit way to connect the verbs engine: each end creates a QP, they exchange the
// attributes over TCP (endpoint.hpp), and each moves its own QP through its states
// (walk.hpp). rdma_cm only finds the device of the own address.

#include "verbs/engine.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::verbs {

tl::expected<void, Error> Engine::connect_by_tcp(Clock::time_point deadline) {
    rdma_cm_id* id = nullptr;

    TRY_SET(socket_, connect_tcp(options_.exchange, deadline, peer_));
    TRY_SET(const auto address, socket_.own_address());
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP))
        return tl::unexpected(Error("cannot create an rdma_cm id", peer_, last_error()));
    pair_.id.reset(id);
    TRY(bind_device(id, address));
    // The provider fails this if it does not have the transport.
    TRY(create());
    TRY_SET(auto port, find_local_port(id, address, options_.gid_index, std::nullopt));
    port.tos = options_.tos.value_or(0);

    EndWalk walk(pair_, port, peer_);
    TRY_SET(auto own, own_end(port));
    // No rights for the peer: it never accesses this end, where all operations begin.
    TRY(walk.init(0, own));
    TRY_SET(const auto peer, exchange(own, deadline));
    agree(own, peer.endpoint.mtu, peer.endpoint.reads, options_.min_rnr_timer);
    TRY(walk.connect(own, peer, options_.patience));
    steps_ = walk.steps();
    mtu_bytes_ = 128U << peer.endpoint.mtu;
    return options_.transport == Transport::ud ? address_peer(port, peer) : tl::expected<void, Error>();
}

tl::expected<void, Error> Engine::address_peer(const LocalPort& port, const End& peer) {
    Step step;

    remote_qpn_ = peer.endpoint.qpn;
    remote_qkey_ = options_.qkey.value_or(peer.beside->qkey);
    TRY_SET(pair_.ah, address_handle(pair_.pd.get(), port, peer.endpoint, remote_qkey_, peer_, step));
    steps_.push_back(std::move(step));
    return {};
}

tl::expected<End, Error> Engine::own_end(const LocalPort& port) const {
    const auto& attributes = pair_.attributes;
    const ibv_mtu mtu = options_.mtu.value_or(port.mtu);
    End own = end_of(pair_, port);

    if (mtu > port.mtu)
        return tl::unexpected(Error(fmt::format("{} cannot have an MTU of", device_),
                                    std::to_string(128U << mtu), EINVAL,
                                    fmt::format("use --mtu {} or less", 128U << port.mtu)));
    const int reads = std::clamp(std::min(attributes.max_qp_init_rd_atom, attributes.max_qp_rd_atom), 1, 255);
    agree(own, mtu, static_cast<uint8_t>(reads), options_.min_rnr_timer);
    return own;
}

// When the responder answers, its QP is ready.
tl::expected<End, Error> Engine::exchange(const End& own, Clock::time_point deadline) {
    WireCall call{encode(request()), encode(own.endpoint), {}};
    WireReply reply{};
    const auto bytes = std::as_writable_bytes(std::span(&reply, 1));

    if (own.beside) call.beside = encode(*own.beside);
    TRY(socket_.send(bytes_of(call), deadline, peer_));
    TRY(socket_.receive(bytes.first(wire_head), deadline, peer_));
    const auto answer = decode_answer(&reply.answer, sizeof(reply.answer));
    if (answer && answer->error) return tl::unexpected(refusal(static_cast<int>(answer->error)));
    const auto rest = bytes.first(wire_length(reply.from)).subspan(wire_head);
    TRY(socket_.receive(rest, deadline, peer_));
    const auto peer = verbs::end_of(reply);
    if (!answer || !peer || answer->length < memory_.length() ||
        peer->endpoint.transport != own.endpoint.transport || peer->endpoint.mtu > own.endpoint.mtu ||
        peer->endpoint.reads > own.endpoint.reads || peer->endpoint.gid_type != own.endpoint.gid_type)
        return tl::unexpected(Error("the peer is no responder of this version", peer_, EPROTO,
                                    "start a responder there: kxfer serve SOURCE --verbs"));
    remote_ = *answer;
    return *peer;
}

} // namespace kxfer::verbs

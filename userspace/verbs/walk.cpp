// SPDX-License-Identifier: MIT
#include "verbs/walk.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include "base/try.hpp"

namespace kxfer::verbs {

namespace {

constexpr uint8_t hop_limit = 64;
// A Q_Key with the highest bit set is for privileged users; in a work request it stands for the QP's own.
constexpr uint32_t free_qkeys = 0x7fffffff;
constexpr int uc_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

const char* state_name(ibv_qp_state state) {
    switch (state) {
    case IBV_QPS_RESET:
        return "RESET";
    case IBV_QPS_INIT:
        return "INIT";
    case IBV_QPS_RTR:
        return "RTR";
    case IBV_QPS_RTS:
        return "RTS";
    default:
        return "?";
    }
}

std::string access_text(unsigned access) {
    std::vector<std::string> rights;

    if (access & IBV_ACCESS_REMOTE_READ) rights.emplace_back("REMOTE_READ");
    if (access & IBV_ACCESS_REMOTE_WRITE) rights.emplace_back("REMOTE_WRITE");
    if (access & IBV_ACCESS_REMOTE_ATOMIC) rights.emplace_back("REMOTE_ATOMIC");
    return rights.empty() ? "none" : fmt::format("{}", fmt::join(rights, "|"));
}

std::string gid_of(const ibv_gid& gid) {
    char text[INET6_ADDRSTRLEN] = "";

    inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
    return text;
}

// Microseconds of the codes of an RNR NAK's timer, from InfiniBand's table.
double rnr_timer_us(uint8_t code) {
    static constexpr std::array<uint32_t, 32> tens_of_us = {
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

    return tens_of_us[code & 31] * 10.0;
}

std::string timeout_text(uint8_t timeout) {
    if (timeout == 0) return "an acknowledgement is waited for without end";
    return fmt::format("an acknowledgement is missed after {:.4g} ms (4.096 us * 2^{})",
                       4.096e-3 * static_cast<double>(1ULL << (timeout & 31)), timeout);
}

std::string rnr_retry_text(uint8_t retry) {
    if (retry == 7) return "when the peer has no receive (RNR NAK) it is tried again without end";
    if (retry == 0) return "an RNR NAK (no receive at the peer) ends the connection at once";
    return fmt::format("an RNR NAK (no receive at the peer) is answered by {} more tries", retry);
}

void add_path(std::vector<Attribute>& to, const ibv_ah_attr& path, const LocalPort& port) {
    if (path.is_global) {
        to.push_back({"ah_attr.is_global", "1", "packets have a GRH (on RoCE they always do)"});
        to.push_back({"ah_attr.grh.dgid", gid_of(path.grh.dgid), "the peer's GID"});
        to.push_back({"ah_attr.grh.sgid_index", std::to_string(path.grh.sgid_index),
                      fmt::format("the own GID: {}, {}", gid_text(port.gid), gid_type_name(port.gid.type))});
        to.push_back({"ah_attr.grh.traffic_class", std::to_string(path.grh.traffic_class),
                      "type of service of its packets"});
        to.push_back(
            {"ah_attr.grh.hop_limit", std::to_string(path.grh.hop_limit), "routers that a packet may pass"});
    } else {
        to.push_back({"ah_attr.is_global", "0", "no GRH: the peer is in this subnet"});
    }
    to.push_back({"ah_attr.dlid", std::to_string(path.dlid),
                  path.dlid ? "the peer's LID" : "none: RoCE goes by GID and MAC"});
    to.push_back({"ah_attr.sl", std::to_string(path.sl), "service level"});
    to.push_back({"ah_attr.port_num", std::to_string(path.port_num), "the device's port"});
}

ibv_ah_attr path_to(const Endpoint& peer, const LocalPort& port) {
    ibv_ah_attr path{};

    path.dlid = peer.lid;
    path.port_num = port.number;
    path.is_global = port.global;
    if (!port.global) return path;
    memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    path.grh.sgid_index = static_cast<uint8_t>(port.gid.index);
    path.grh.traffic_class = port.tos;
    path.grh.hop_limit = hop_limit;
    return path;
}

std::string qkey_text(uint32_t qkey) { return fmt::format("0x{:08x}", qkey); }

uint32_t random_number(uint32_t mask) {
    uint32_t number = 0;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) number = 1;
    return number & mask;
}

} // namespace

Step explain(Transport transport, ibv_qp_state from, const ibv_qp_attr& attributes, int mask,
             const LocalPort& port) {
    Step step{fmt::format("{} QP", transport_name(transport)),
              state_name(from),
              state_name(attributes.qp_state),
              {}};
    const auto add = [&](int bit, const char* name, const std::string& value, const std::string& meaning) {
        if (mask & bit) step.attributes.push_back({name, value, meaning});
    };

    add(IBV_QP_PKEY_INDEX, "pkey_index", std::to_string(attributes.pkey_index),
        "entry of the P_Key table: the partition");
    add(IBV_QP_PORT, "port_num", std::to_string(attributes.port_num), "the device's port");
    add(IBV_QP_QKEY, "qkey", qkey_text(attributes.qkey),
        "a message that carries another is dropped, and counted by the port alone");
    add(IBV_QP_ACCESS_FLAGS, "qp_access_flags", access_text(attributes.qp_access_flags),
        "what the peer may do, as far as the MR allows it too");
    add(IBV_QP_PATH_MTU, "path_mtu", std::to_string(128U << attributes.path_mtu),
        "most bytes of data in a packet; the same at both ends");
    add(IBV_QP_DEST_QPN, "dest_qp_num", fmt::format("0x{:06x}", attributes.dest_qp_num), "the peer's QP");
    add(IBV_QP_RQ_PSN, "rq_psn", fmt::format("0x{:06x}", attributes.rq_psn),
        "packet number expected first: the peer's sq_psn");
    add(IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", std::to_string(attributes.max_dest_rd_atomic),
        "READs and atomics of the peer served at once");
    add(IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", std::to_string(attributes.min_rnr_timer),
        fmt::format("without a receive the peer is told to wait {:.6g} us",
                    rnr_timer_us(attributes.min_rnr_timer)));
    if (mask & IBV_QP_AV) add_path(step.attributes, attributes.ah_attr, port);
    add(IBV_QP_TIMEOUT, "timeout", std::to_string(attributes.timeout), timeout_text(attributes.timeout));
    add(IBV_QP_RETRY_CNT, "retry_cnt", std::to_string(attributes.retry_cnt),
        "tries after a missed acknowledgement");
    add(IBV_QP_RNR_RETRY, "rnr_retry", std::to_string(attributes.rnr_retry),
        rnr_retry_text(attributes.rnr_retry));
    add(IBV_QP_SQ_PSN, "sq_psn", fmt::format("0x{:06x}", attributes.sq_psn),
        "packet number to begin with, chosen at random");
    add(IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", std::to_string(attributes.max_rd_atomic),
        "own READs and atomics in flight at once");
    return step;
}

tl::expected<std::unique_ptr<ibv_ah, DestroyAh>, Error> address_handle(ibv_pd* pd, const LocalPort& port,
                                                                       const Endpoint& peer, uint32_t qkey,
                                                                       const std::string& on, Step& step) {
    ibv_ah_attr path = path_to(peer, port);

    errno = 0;
    std::unique_ptr<ibv_ah, DestroyAh> handle(ibv_create_ah(pd, &path));
    if (!handle) return tl::unexpected(Error("cannot create an address handle", on, last_error()));
    step = {"address handle", "", "", {}};
    add_path(step.attributes, path, port);
    step.attributes.push_back(
        {"ud.remote_qpn", fmt::format("0x{:06x}", peer.qpn), "of each message: the QP it is for"});
    step.attributes.push_back({"ud.remote_qkey", qkey_text(qkey), "of each message: that of the peer's QP"});
    return handle;
}

tl::expected<void, Error> Walk::modify(ibv_qp_attr& attributes, int mask) {
    auto step = explain(transport_, state_, attributes, mask, port_);

    if (int error = ibv_modify_qp(qp_, &attributes, mask | IBV_QP_STATE))
        return tl::unexpected(Error(fmt::format("cannot move the QP from {} to {}", step.from, step.to), on_,
                                    error, "--explain shows the attributes of the steps before"));
    state_ = attributes.qp_state;
    steps_.push_back(std::move(step));
    return {};
}

tl::expected<void, Error> Walk::init(int access, uint32_t qkey) {
    const int common = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    ibv_qp_attr attributes{};

    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = port_.number;
    attributes.qkey = qkey;
    attributes.qp_access_flags =
        static_cast<unsigned>(transport_ == Transport::uc ? access & uc_access : access);
    return modify(attributes, common | (transport_ == Transport::ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

tl::expected<void, Error> Walk::ready_to_receive(const Endpoint& own, const Endpoint& peer) {
    ibv_qp_attr attributes{};

    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = own.mtu;
    attributes.dest_qp_num = peer.qpn;
    attributes.rq_psn = peer.psn;
    attributes.max_dest_rd_atomic = own.reads;
    attributes.min_rnr_timer = own.min_rnr_timer;
    attributes.ah_attr = path_to(peer, port_);
    const int to_peer = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    switch (transport_) {
    case Transport::rc:
        return modify(attributes, to_peer | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    case Transport::uc:
        return modify(attributes, to_peer);
    case Transport::ud:
        break;
    }
    return modify(attributes, 0);
}

tl::expected<void, Error> Walk::ready_to_send(const Endpoint& own, const Patience& patience) {
    ibv_qp_attr attributes{};

    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = own.psn;
    attributes.timeout = patience.timeout;
    attributes.retry_cnt = patience.retries;
    attributes.rnr_retry = patience.rnr_retry;
    attributes.max_rd_atomic = own.reads;
    const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return modify(attributes, IBV_QP_SQ_PSN | (transport_ == Transport::rc ? reliable : 0));
}

EndWalk::EndWalk(const QueuePair& pair, const LocalPort& port, const std::string& on)
    : main_(pair.id->qp, port, pair.transport, on, steps_) {
    if (pair.control) control_.emplace(pair.control.get(), port, Transport::rc, on, steps_);
}

tl::expected<void, Error> EndWalk::init(int access, const End& own) {
    TRY(main_.init(access, own.beside ? own.beside->qkey : 0));
    return control_ ? control_->init(access, 0) : tl::expected<void, Error>();
}

tl::expected<void, Error> EndWalk::connect(const End& own, const End& peer, const Patience& patience) {
    TRY(main_.ready_to_receive(own.endpoint, peer.endpoint));
    TRY(main_.ready_to_send(own.endpoint, patience));
    if (!control_) return {};
    TRY(control_->ready_to_receive(own.beside->control, peer.beside->control));
    return control_->ready_to_send(own.beside->control, patience);
}

namespace {

Endpoint endpoint_of(const ibv_qp& qp, Transport transport, const LocalPort& port) {
    Endpoint own;

    own.transport = transport;
    own.gid_type = port.gid.type;
    own.qpn = qp.qp_num;
    own.psn = random_number(max_psn);
    own.lid = port.lid;
    own.tos = port.tos;
    own.gid = port.gid.bytes;
    return own;
}

} // namespace

End end_of(const QueuePair& pair, const LocalPort& port) {
    End own{endpoint_of(*pair.id->qp, pair.transport, port), {}};

    if (pair.control)
        own.beside = Beside{endpoint_of(*pair.control, Transport::rc, port), random_number(free_qkeys)};
    return own;
}

void agree(End& end, ibv_mtu mtu, uint8_t reads, uint8_t min_rnr_timer) {
    const auto set = [&](Endpoint& endpoint) {
        endpoint.mtu = mtu;
        endpoint.reads = reads;
        endpoint.min_rnr_timer = min_rnr_timer;
    };

    set(end.endpoint);
    if (end.beside) set(end.beside->control);
}

} // namespace kxfer::verbs

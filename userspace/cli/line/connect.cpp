// SPDX-License-Identifier: MIT
#include "cli/line/connect.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/devices.hpp"
#include "cli/node/interrupt.hpp"

namespace kxfer::cli {

namespace {

// That jobs wait for another link: with several paths there is one soon.
constexpr std::chrono::milliseconds shortest_loss(1000);

// An IPv6 listener needs brackets only with a port.
std::string listen_command(const Peer& peer) {
    return peer.port == KXFER_PORT ? "kxfer listen add " + peer.host : "kxfer listen add " + peer.text();
}

std::string no_answer(std::chrono::milliseconds timeout) {
    return fmt::format("no answer within {:g} s", std::chrono::duration<double>(timeout).count());
}

std::string unreachable_hint(const Peer& peer, const CommonOptions& common) {
    if (!common.device.empty())
        return fmt::format("leave --device {} out, or see: kxfer device list, ip route get {}", common.device,
                           peer.host);
    return fmt::format("see: rdma link, ip route get {}; an interface without RDMA hardware takes soft RoCE: "
                       "rdma link add rxe0 type rxe netdev INTERFACE",
                       peer.host);
}

// Addresses by which other nodes, and this node itself, reach this node.
std::vector<std::string> own_addresses() {
    std::vector<std::string> texts;
    const auto node = find_devices();
    if (!node) return texts;
    for (const auto& device : node->devices)
        for (const auto& port : device.ports)
            for (const std::string& text : port.address_texts())
                if (port.active()) texts.push_back(text);
    return texts;
}

// What a node can know of a peer that does not answer.
std::string no_answer_hint(const Peer& peer) {
    std::string hint = fmt::format(
        "is it up, with an RDMA device and a listener? Does a firewall let UDP port 4791 (RoCE) or "
        "TCP port {} (iWARP) through?",
        peer.port);
    for (const auto& device : known_devices())
        for (const auto& port : device.ports)
            if (port.nr_downs != 0)
                hint += fmt::format("\n{} was down, and may be what does not answer: kxfer doctor",
                                    device.core.name);
    return hint;
}

bool is_loopback(const Peer& peer) {
    const auto addresses = resolve(peer);
    if (!addresses) return false;
    const kxfer_addr& first = addresses->front();
    if (first.family == AF_INET) return first.addr[0] == 127;
    return std::all_of(first.addr, first.addr + 15, [](unsigned char c) { return c == 0; }) &&
           first.addr[15] == 1;
}

// No device has the address of lo; rdma_cm returns ENODEV then, with siw EINVAL.
void explain_no_device(Error& error, const Peer& peer) {
    if (error.number == ENODEV) error.hint = "see: kxfer device list";
    if (!is_loopback(peer)) return;
    error.why = "RDMA does not go over lo";
    if (const auto own = own_addresses(); !own.empty())
        error.hint = fmt::format("this node is reached by {}", fmt::join(own, ", "));
}

Failure connect_failure(Error error, const Peer& peer, const CommonOptions& common,
                        std::chrono::milliseconds timeout) {
    if (error.number == EINTR && interrupted()) return interrupt_failure(error.what, error.on);
    switch (error.number) {
    case ECONNREFUSED:
        if (!error.why.empty()) break;
        error.why = "nothing listens there";
        error.hint = "on the peer: " + listen_command(peer) + " (see also: kxfer listen list)";
        break;
    case EHOSTUNREACH:
    case ENETUNREACH:
        error.why = "no RDMA device or route leads there";
        error.hint = unreachable_hint(peer, common);
        break;
    case EADDRNOTAVAIL:
        error.why = common.device.empty() ? "no own address leads there"
                                          : fmt::format("device {} does not lead there", common.device);
        error.hint = unreachable_hint(peer, common);
        break;
    case EADDRINUSE:
        error.why = "the source ports that were tried, of 665 to 1023, are taken";
        error.hint = "rdma resource show cm_id; on iWARP also: ss -tan sport lt :1024 (TCP keeps the port of "
                     "an ended connection for a minute)";
        break;
    case ETIMEDOUT:
        error.why = no_answer(timeout);
        error.hint = no_answer_hint(peer);
        break;
    case EPROTONOSUPPORT:
        error.hint = "install the same version on both nodes; see: kxfer --version";
        break;
    case ENOKEY:
        error.why = "this user has no key '" + common.key + "' in the kernel's keyrings";
        error.hint = "kxfer key add " + common.key + " FILE, as the user who connects; see: kxfer key list";
        break;
    case EKEYREJECTED:
        error.why = common.key.empty()
                        ? "the peer wants a key"
                        : "the peer does not take or does not prove the key '" + common.key + "'";
        error.hint =
            common.key.empty()
                ? "give the one that its listener has: --key NAME"
                : "has its listener the same secret (kxfer listen list there: keys)? Is it at least 16 "
                  "bytes? The kernel log of both nodes: dmesg | grep kxfer";
        break;
    case EACCES:
        error.hint = "the kernel log of both nodes has the reason: dmesg | grep kxfer";
        break;
    case EOPNOTSUPP:
        error.why = "the device lacks what is needed, or its driver connects from the initial network "
                    "namespace only (siw, and rxe before Linux 7.2)";
        error.hint = "in a container: nsenter -t 1 -n kxfer ...; see: kxfer doctor";
        break;
    case EDQUOT:
        error.hint = "a limit is reached on this node or the peer; see: kxfer stat, kxfer link list";
        break;
    case ENODEV:
    case EINVAL:
        explain_no_device(error, peer);
        break;
    default:
        break;
    }
    return {std::move(error)};
}

// Of several paths each is the first address of its name. A device would be that of one path.
tl::expected<kxfer::Peer, Failure> connect_over(Session& session, const Peer& peer,
                                                const CommonOptions& common, size_t first,
                                                PeerOptions options) {
    if (!options.device.empty())
        return wrong_usage("--device does not go with --via", "leave one of them out");
    std::vector<kxfer_path> paths;
    std::vector<Peer> peers = common.via;
    peers.insert(peers.begin(), peer);
    std::rotate(peers.begin(), peers.begin() + static_cast<ptrdiff_t>(first), peers.end());
    for (const Peer& one : peers) {
        TRY_SET(const auto addresses, resolve(one));
        paths.emplace_back().remote = addresses.front();
    }
    const kxfer_addr remote = paths.front().remote;
    paths.erase(paths.begin());
    options.via = std::move(paths);
    options.timeout = common.call_timeout();
    options.loss = std::max(common.loss.value_or(common.timeout()), shortest_loss);
    auto connected = session.connect(remote, options);
    if (connected) return std::move(*connected);
    if (connected.error().number == EOPNOTSUPP)
        return failed(Error("cannot connect with", peer.text(), EOPNOTSUPP,
                            "the same version on both nodes? Does it work without --via? See: kxfer doctor",
                            "it does not know of several paths, a device lacks what is needed, or this "
                            "network namespace cannot connect"));
    // The module tries one after the other, and says why the last one failed.
    Failure failure = connect_failure(std::move(connected.error()), peers.back(), common, options.timeout);
    failure.error.on = fmt::format("{}, the last of {} addresses", peers.back().text(), peers.size());
    return tl::make_unexpected(std::move(failure));
}

// A hint with the exports to choose from, or with the command if they cannot be listed.
std::string exports_hint(Connection& connection, const Remote& remote, const CommonOptions& common) {
    const std::string command = "see: kxfer ls " + remote.peer.text();
    const auto exports = connection.peer.exports(common.call_timeout());
    if (!exports) return command;
    std::vector<std::string> names;
    for (const kxfer_peer_export& one : *exports) names.push_back(text_of(one.name));
    if (names.empty()) return "the peer exports nothing to this user; on the peer: kxfer serve FILE";
    return fmt::format("it has: {}; {}", fmt::join(names, ", "), command);
}

std::string wanted(uint32_t rights) {
    return rights == KXFER_RIGHT_WRITE ? "write" : rights == KXFER_RIGHT_READ ? "read" : "open";
}

} // namespace

Words rights_words(uint32_t rights) {
    Words words;
    if (rights & KXFER_RIGHT_READ) words.emplace_back("read");
    if (rights & KXFER_RIGHT_WRITE) words.emplace_back("write");
    if (rights & KXFER_RIGHT_ATOMIC) words.emplace_back("atomic");
    if (rights & KXFER_RIGHT_SEND) words.emplace_back("send");
    return words;
}

tl::expected<Connection, Failure> connect(const Peer& peer, const CommonOptions& common) {
    TRY(resolve(peer));
    TRY_SET(auto session, open_session_with_device());
    TRY_SET(auto connected, connect_in(session, peer, common));
    return Connection{std::move(session), std::move(connected)};
}

tl::expected<kxfer::Peer, Failure> connect_in(Session& session, const Peer& peer, const CommonOptions& common,
                                              size_t first) {
    PeerOptions options;
    options.device = common.device;
    options.key = common.key;
    options.tos = common.tos;
    options.patience = common.patience.patience();
    options.in_flight_kib = common.in_flight_kib();
    if (!common.via.empty()) return connect_over(session, peer, common, first, std::move(options));
    TRY_SET(const auto addresses, resolve(peer));
    Error error;
    for (const kxfer_addr& address : addresses) {
        options.timeout = common.call_timeout();
        auto connected = session.connect(address, options);
        if (connected) return std::move(*connected);
        error = std::move(connected.error());
        if (interrupted()) break;
    }
    return tl::make_unexpected(connect_failure(std::move(error), peer, common, options.timeout));
}

Failure target_failure(Error error, const Remote& remote, const CommonOptions& common) {
    if (error.number == EINTR && interrupted()) return interrupt_failure(error.what, remote.text());
    error.on = remote.text();
    switch (error.number) {
    case ECONNRESET:
        error.why = "the link to the peer broke";
        error.hint = fmt::format("is it still up? See: kxfer ping {}, kxfer link list", remote.peer.text());
        break;
    case EKEYREVOKED:
        error.why = "the peer has withdrawn the export";
        error.hint = "see: kxfer ls " + remote.peer.text();
        break;
    case EREMOTEIO:
        error.why = "the peer's device refused the access";
        break;
    case ETIMEDOUT:
        error.why = no_answer(common.timeout());
        error.hint = fmt::format("see: kxfer ping {}; --timeout gives it longer", remote.peer.text());
        break;
    case ENODEV:
        error.why = "the RDMA device went away";
        error.hint = "see: kxfer device list";
        break;
    default:
        break;
    }
    return {std::move(error)};
}

tl::expected<Target, Failure> open_target(Connection& connection, const Remote& remote, uint32_t rights,
                                          const CommonOptions& common) {
    const auto timeout = common.call_timeout();
    auto target = connection.peer.open_target(remote.name, rights, timeout);
    if (target) return std::move(*target);
    Failure failure = target_failure(std::move(target.error()), remote, common);
    Error& error = failure.error;
    if (error.number == ETIMEDOUT) error.why = no_answer(timeout);
    if (error.number == ENOENT) {
        error.why = "the peer has no such export";
        error.hint = exports_hint(connection, remote, common);
    } else if (error.number == EACCES) {
        error.why = fmt::format("the peer does not allow this user to {} it", wanted(rights));
        error.hint =
            fmt::format("see what it allows: kxfer ls {}; on the peer: kxfer serve --writable, --allow",
                        remote.peer.text());
    }
    return tl::make_unexpected(std::move(failure));
}

} // namespace kxfer::cli

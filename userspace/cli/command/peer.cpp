// SPDX-License-Identifier: MIT
#include "cli/command/peer.hpp"

#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>

#include <kxfer/kxfer.h>

#include "base/try.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* peer_forms = "a peer is HOST, HOST:PORT, 10.0.0.1:7625 or [fe80::1%eth0]:7625";

tl::unexpected<std::string> no_peer(std::string_view text, std::string_view why) {
    return tl::make_unexpected(fmt::format("'{}' is not a valid peer: {}; {}", text, why, peer_forms));
}

// 1 to 65535, or 0 for anything else.
uint16_t parse_port(std::string_view text) {
    uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

// Splits "[v6]:port", "v6" without brackets, or "host:port".
struct Split {
    std::string_view host;
    std::string_view port; // with its colon
};

Split split_host(std::string_view text) {
    if (text.starts_with('[')) {
        const size_t close = text.find(']');
        if (close == std::string_view::npos) return {};
        return {text.substr(1, close - 1), text.substr(close + 1)};
    }
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos)
        return {text, {}};
    return {text.substr(0, colon), text.substr(colon)};
}

template <typename Parsed>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Parsed& value,
                        tl::expected<Parsed, std::string> (*parse)(std::string_view),
                        const std::string& description) {
    return app.add_option_function<std::string>(
        name,
        [&value, name, parse](const std::string& text) {
            auto parsed = parse(text);
            if (!parsed) throw CLI::ValidationError(name, parsed.error());
            value = *parsed;
        },
        description);
}

} // namespace

std::string Peer::text() const {
    const bool v6 = host.find(':') != std::string::npos;
    return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

tl::expected<Peer, std::string> parse_peer(std::string_view text) {
    if (text.starts_with('[') && text.find(']') == std::string_view::npos)
        return no_peer(text, "its bracket is not closed");
    const Split split = split_host(text);
    if (split.host.empty()) return no_peer(text, "the host is missing");
    if (split.host.find_first_of(" /[]@") != std::string_view::npos)
        return no_peer(text, "a host has no such characters");
    Peer peer{std::string(split.host), KXFER_PORT};
    if (!split.port.empty()) {
        peer.port = split.port.front() == ':' ? parse_port(split.port.substr(1)) : 0;
        if (peer.port == 0) return no_peer(text, "a port is a number from 1 to 65535");
    }
    return peer;
}

bool is_export_name(std::string_view name) {
    static constexpr std::string_view allowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return !name.empty() && name.size() <= KXFER_NAME_MAX &&
           name.find_first_not_of(allowed) == std::string_view::npos;
}

tl::expected<std::vector<Peer>, std::string> parse_peers(std::string_view text) {
    std::vector<Peer> peers;
    for (;;) {
        const size_t comma = text.find(',');
        TRY_SET(auto peer, parse_peer(text.substr(0, comma)));
        peers.push_back(std::move(peer));
        if (peers.size() > KXFER_MAX_VIA)
            return tl::make_unexpected(fmt::format("more than {} other addresses", KXFER_MAX_VIA));
        if (comma == std::string_view::npos) return peers;
        text.remove_prefix(comma + 1);
    }
}

tl::expected<Remote, std::string> parse_remote(std::string_view text) {
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos)
        return tl::make_unexpected(
            fmt::format("'{}' names no export; give PEER/NAME, such as 10.0.0.1/inbox", text));
    TRY_SET(const auto peer, parse_peer(text.substr(0, slash)));
    const std::string_view name = text.substr(slash + 1);
    if (name != KXFER_PING_NAME && !is_export_name(name))
        return tl::make_unexpected(
            fmt::format("'{}' is not a name of an export; a name is 1 to 63 of A-Z a-z 0-9 . _ -", name));
    return Remote{peer, std::string(name)};
}

// What stands behind the second slash is a path. It is the server that says whether there is one.
tl::expected<RemotePath, std::string> parse_remote_path(std::string_view text) {
    const size_t first = text.find('/');
    const size_t second = first == std::string_view::npos ? first : text.find('/', first + 1);
    TRY_SET(const auto remote, parse_remote(text.substr(0, second)));
    RemotePath place;
    place.remote = remote;
    if (second == std::string_view::npos) return place;
    std::string_view path = text.substr(second + 1);
    while (path.ends_with('/')) path.remove_suffix(1);
    if (path.starts_with('/') || path.find("//") != std::string_view::npos)
        return tl::make_unexpected(fmt::format("'{}' has an empty name in its path", text));
    place.in_folder = true;
    place.path = path;
    return place;
}

// What getaddrinfo() does not say of an IPv6 address: nothing, or what is wrong with its interface.
static std::string interface_fault(const std::string& host) {
    in6_addr address = {};
    const size_t percent = host.find('%');
    if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &address) != 1) return "";
    if (percent == std::string::npos)
        return IN6_IS_ADDR_LINKLOCAL(&address) ? "a link-local address needs its interface, such as %eth0"
                                               : "";
    const std::string name = host.substr(percent + 1);
    const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
    return is_number || if_nametoindex(name.c_str()) != 0
               ? ""
               : fmt::format("this node has no interface '{}'", name);
}

tl::expected<std::vector<kxfer_addr>, Error> resolve(const Peer& peer) {
    if (const auto fault = interface_fault(peer.host); !fault.empty())
        return tl::make_unexpected(Error("cannot connect with", peer.host, 0, "see: ip -6 addr", fault));
    addrinfo hints = {};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int ret = getaddrinfo(peer.host.c_str(), nullptr, &hints, &found);
    if (ret != 0)
        return tl::make_unexpected(Error("cannot find the address of", peer.host,
                                         ret == EAI_SYSTEM ? errno : 0, "is the name written right?",
                                         ret == EAI_SYSTEM ? "" : gai_strerror(ret)));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, freeaddrinfo);
    std::vector<kxfer_addr> addresses;
    for (const addrinfo* info = found; info; info = info->ai_next) {
        kxfer_addr address = {};
        if (kxfer_addr_from_sockaddr(info->ai_addr, &address) != 0) continue;
        address.port = peer.port;
        addresses.push_back(address);
    }
    if (addresses.empty())
        return tl::make_unexpected(Error("cannot find the address of", peer.host, EADDRNOTAVAIL));
    return addresses;
}

CLI::Option* add_peer_option(CLI::App& app, const std::string& name, Peer& peer,
                             const std::string& description) {
    return add_parsed(app, name, peer, parse_peer, description)->type_name("PEER");
}

CLI::Option* add_peers_option(CLI::App& app, const std::string& name, std::vector<Peer>& peers,
                              const std::string& description) {
    return add_parsed(app, name, peers, parse_peers, description)->type_name("PEER,...");
}

CLI::Option* add_remote_option(CLI::App& app, const std::string& name, Remote& remote,
                               const std::string& description) {
    return add_parsed(app, name, remote, parse_remote, description)->type_name("REMOTE");
}

CLI::Option* add_remote_path_option(CLI::App& app, const std::string& name, RemotePath& place,
                                    const std::string& description) {
    return add_parsed(app, name, place, parse_remote_path, description)->type_name("REMOTE[/PATH]");
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Names of places:
//   PEER   := HOST[:PORT] | IPv4[:PORT] | '['IPv6[%IF]']'[:PORT]
//   REMOTE := PEER/NAME         NAME := [A-Za-z0-9._-]{1,63}, or @ping
//   REMOTE/[PATH]               a file or folder in a folder that a peer serves
// An IPv6 address without brackets is accepted too, without a port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>
#include <linux/kxfer.h>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace kxfer::cli {

struct Peer {
    std::string host;
    uint16_t port = KXFER_PORT;

    // "host:port", brackets around IPv6.
    std::string text() const;
};

struct Remote {
    Peer peer;
    std::string name;

    std::string text() const { return peer.text() + '/' + name; }
};

// An export, or a place in a folder.
struct RemotePath {
    Remote remote;
    bool in_folder = false;
    std::string path; // relative to the folder, without a slash at its end

    std::string text() const { return remote.text() + (in_folder ? "/" + path : ""); }
};

// The errors say what is wrong and what is allowed.
tl::expected<Peer, std::string> parse_peer(std::string_view text);
tl::expected<std::vector<Peer>, std::string> parse_peers(std::string_view text); // PEER,...
tl::expected<Remote, std::string> parse_remote(std::string_view text);
tl::expected<RemotePath, std::string> parse_remote_path(std::string_view text);
bool is_export_name(std::string_view name);

// Addresses of the peer, best first; never empty.
tl::expected<std::vector<kxfer_addr>, Error> resolve(const Peer& peer);

CLI::Option* add_peer_option(CLI::App& app, const std::string& name, Peer& peer,
                             const std::string& description);
CLI::Option* add_peers_option(CLI::App& app, const std::string& name, std::vector<Peer>& peers,
                              const std::string& description);
CLI::Option* add_remote_option(CLI::App& app, const std::string& name, Remote& remote,
                               const std::string& description);
CLI::Option* add_remote_path_option(CLI::App& app, const std::string& name, RemotePath& place,
                                    const std::string& description);

} // namespace kxfer::cli

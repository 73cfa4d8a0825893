// SPDX-License-Identifier: MIT
#include "cli/main/lookup.hpp"

#include <kxfer/kxfer.hpp>

#include "cli/line/connect.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/devices.hpp"
#include "cli/node/keys.hpp"

namespace kxfer::cli {

namespace {

// Nobody waits longer for a shell.
constexpr double answer_seconds = 2;

std::vector<kxfer_info_link> known_links() {
    const auto session = open_session();
    if (!session) return {};
    return session->list<kxfer_info_link>(KXFER_INFO_LINKS).value_or(std::vector<kxfer_info_link>());
}

} // namespace

std::vector<Candidate> NodeLookup::devices() const {
    std::vector<Candidate> words;
    for (const DeviceFacts& one : known_devices())
        words.push_back({one.core.name, protocol_name(one.core.protocol)});
    return words;
}

std::vector<Candidate> NodeLookup::peers() const {
    std::vector<Candidate> words;
    for (const kxfer_info_link& link : known_links()) {
        const std::string text = to_string(link.remote);
        // The usual port needs not be written.
        const std::string usual = ":" + std::to_string(KXFER_PORT);
        words.push_back({text.ends_with(usual) ? text.substr(0, text.size() - usual.size()) : text, ""});
    }
    return words;
}

std::vector<Candidate> NodeLookup::links() const {
    std::vector<Candidate> words;
    for (const kxfer_info_link& link : known_links())
        words.push_back({std::to_string(link.id), to_string(link.remote)});
    return words;
}

std::vector<Candidate> NodeLookup::keys() const {
    std::vector<Candidate> words;
    for (const KnownKey& key : known_keys().value_or(std::vector<KnownKey>()))
        words.push_back({key.name, ""});
    return words;
}

std::vector<Candidate> NodeLookup::exports(const std::string& peer, const std::string& key) const {
    const auto parsed = parse_peer(peer);
    if (!parsed) return {};
    CommonOptions common;
    common.key = key;
    common.timeout_seconds = answer_seconds;
    auto connection = connect(*parsed, common);
    if (!connection) return {};
    const auto exports = connection->peer.exports(common.timeout());
    std::vector<Candidate> words;
    if (!exports) return words;
    for (const kxfer_peer_export& one : *exports)
        words.push_back({text_of(one.name), human_bytes(one.length)});
    return words;
}

} // namespace kxfer::cli

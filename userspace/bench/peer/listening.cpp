// SPDX-License-Identifier: MIT
#include "bench/peer/listening.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

bool is_wildcard(const kxfer_addr& address) {
    return std::all_of(std::begin(address.addr), std::end(address.addr),
                       [](uint8_t byte) { return byte == 0; });
}

} // namespace

tl::expected<Listening, Error> listen_at(Session& session, const kxfer_addr& address,
                                         const std::string& key) {
    TRY_SET(const auto listeners, session.list<kxfer_info_listener>(KXFER_INFO_LISTENERS));
    for (const auto& listener : listeners) {
        const bool same = memcmp(listener.addr.addr, address.addr, sizeof(listener.addr.addr)) == 0;
        if (!listener.active || listener.addr.family != address.family) continue;
        if (same || is_wildcard(listener.addr))
            return Listening{{}, listener.addr.port, listener.nr_keys != 0};
    }
    const std::span<const std::string> keys(&key, key.empty() ? 0 : 1);
    auto listener = session.add_listener(address, 0, keys);
    if (!listener) {
        if (listener.error().number == EPERM)
            listener.error().hint = "run as root, or let an administrator do: kxfer listen add ADDR";
        return tl::unexpected(listener.error());
    }
    return Listening{std::move(*listener), address.port ? address.port : uint16_t{KXFER_PORT}, !key.empty()};
}

} // namespace kxfer::bench

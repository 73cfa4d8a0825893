// SPDX-License-Identifier: MIT
#include "bench/engines/connect_time.hpp"

#include <array>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Measurements mostly use the polled context: such a link is most likely up.
constexpr std::array contexts = {KXFER_CONTEXT_SOFTIRQ, KXFER_CONTEXT_UNBOUND, KXFER_CONTEXT_WORKQUEUE,
                                 KXFER_CONTEXT_POLLED};

} // namespace

tl::expected<std::optional<double>, Error> time_connect(const PathOptions& path) {
    TRY_SET(auto session, Session::open());
    for (const auto context : contexts) {
        PathOptions options = path;
        options.context = context;
        const auto begun = Clock::now();
        TRY_SET(const auto peer, open_peer(session, options));
        const auto ended = Clock::now();
        TRY_SET(const auto link, link_of(session, peer, options));
        const auto since = std::chrono::duration<double, std::nano>(Clock::now() - begun).count();
        if (static_cast<double>(link.age_ns) <= since)
            return std::chrono::duration<double, std::nano>(ended - begun).count();
    }
    return std::nullopt;
}

} // namespace kxfer::bench

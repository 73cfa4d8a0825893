// SPDX-License-Identifier: MIT
#include "cli/observe/view.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>
#include <kxfer/kxfer.h>

#include "base/try.hpp"
#include "cli/node/latency.hpp"

namespace kxfer::cli {

tl::expected<View, Failure> view_of(const Session& session) {
    View view;
    TRY_SET(view.counters, session.list<kxfer_info_counter>(KXFER_INFO_COUNTERS));
    TRY_SET(view.devices, session.list<kxfer_info_device>(KXFER_INFO_DEVICES));
    TRY_SET(view.listeners, session.list<kxfer_info_listener>(KXFER_INFO_LISTENERS));
    TRY_SET(view.links, session.list<kxfer_info_link>(KXFER_INFO_LINKS));
    TRY_SET(view.lanes, session.list<kxfer_info_lane>(KXFER_INFO_LANES));
    TRY_SET(view.sessions, session.list<kxfer_info_session>(KXFER_INFO_SESSIONS));
    TRY_SET(view.exports, session.list<kxfer_info_export>(KXFER_INFO_EXPORTS));
    // After the links: the story says why one of them is gone.
    TRY_SET(view.lines, session.list<kxfer_info_line>(KXFER_INFO_LINES));
    TRY_SET(view.latencies, latencies_of(session));
    view.at_ns = kxfer_clock_ns();
    return view;
}

uint64_t counter_of(const View& view, const std::string& name) {
    const auto counter = std::find_if(view.counters.begin(), view.counters.end(),
                                      [&](const auto& one) { return text_of(one.name) == name; });
    return counter == view.counters.end() ? 0 : counter->value;
}

bool is_gauge(const std::string& counter) { return counter.starts_with("live_"); }

uint64_t work_requests_of(const View& view, uint64_t link) {
    uint64_t sum = 0;
    for (const auto& lane : view.lanes)
        if (lane.link == link && lane.index != 0) sum += lane.nr_wr;
    return sum;
}

uint64_t queued_on(const View& view, uint64_t link) {
    uint64_t sum = 0;
    for (const auto& lane : view.lanes)
        if (lane.link == link) sum += lane.nr_queued;
    return sum;
}

std::string utc_text() {
    using namespace std::chrono;
    const auto now = system_clock::now().time_since_epoch();
    const std::time_t seconds = duration_cast<std::chrono::seconds>(now).count();
    std::tm parts = {};
    gmtime_r(&seconds, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                       duration_cast<milliseconds>(now).count() % 1000);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// View: what INFO lists of this node at one time, as far as this user may see it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/output/failure.hpp"

namespace kxfer::cli {

struct View {
    uint64_t at_ns = 0; // kxfer_clock_ns()
    std::vector<kxfer_info_counter> counters;
    std::vector<kxfer_info_device> devices;
    std::vector<kxfer_info_listener> listeners;
    std::vector<kxfer_info_link> links;
    std::vector<kxfer_info_lane> lanes;
    std::vector<kxfer_info_session> sessions;
    std::vector<kxfer_info_export> exports;
    std::vector<kxfer_info_line> lines;
    std::vector<kxfer_info_latency> latencies;
};

tl::expected<View, Failure> view_of(const Session& session);

// 0 if this module does not have the counter.
uint64_t counter_of(const View& view, const std::string& name);
// Gauges count what exists; the other counters only grow.
bool is_gauge(const std::string& counter);

// Work requests posted on the data lanes of a link.
uint64_t work_requests_of(const View& view, uint64_t link);
// Jobs of a link that wait for credits.
uint64_t queued_on(const View& view, uint64_t link);

// The object with this id; nullptr: none.
template <typename Info> const Info* find_by_id(const std::vector<Info>& all, uint64_t id) {
    for (const Info& one : all)
        if (one.id == id) return &one;
    return nullptr;
}

// The time now, in UTC: 2026-01-31T12:00:00.123Z
std::string utc_text();

} // namespace kxfer::cli

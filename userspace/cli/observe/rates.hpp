// SPDX-License-Identifier: MIT
//
// What happened between two views of this node, by the second.
//
// The module counts bytes, work requests and times of jobs by link, so those are what is known of a
// link. A session has no such counts: what is known of it is how much it has in flight.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/node/latency.hpp"
#include "cli/observe/view.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

struct LinkRate {
    kxfer_info_link link = {};
    // Empty: this user does not see it, because it covers other users too.
    std::optional<double> bytes_read;
    std::optional<double> bytes_written;
    std::optional<double> work_requests;
    uint64_t queued = 0;
    Latency latency;              // of the jobs that ended
    std::optional<double> jobs;   // that ended
    std::optional<double> failed; // of those
};

// The links of `now`. One that is new since `before` counts from its beginning.
std::vector<LinkRate> link_rates(const View& before, const View& now);

// Of one of the counters that only grow.
double counter_rate(const View& before, const View& now, const std::string& name);

// What `top` sorts links by. All but number: the highest first.
enum class Order : uint8_t { number, read, written, work_requests, jobs, p99, failed, rtt };
void sort_links(std::vector<LinkRate>& links, Order order);

// One row of a table for people, and for JSON.
Record link_rate_row(const LinkRate& rate);
Record session_row(const kxfer_info_session& session);
// Gauges as they are, all other counters as rates.
Record counter_rates(const View& before, const View& now);

// An entry each, for output that is not a picture on a terminal.
std::string node_line(const View& before, const View& now);
std::string link_line(const LinkRate& rate);
std::string session_line(const kxfer_info_session& session);

// An entry after its time, in lines of at most `width` characters.
std::string dated(const std::string& time, const std::string& entry, size_t width);
// That of the terminal, or 80 where there is none: what is kept in a file is read on one.
size_t entry_width();

// Name of the program that opened a session, from /proc; empty: it is gone.
std::string program_of(uint32_t pid);

} // namespace kxfer::cli

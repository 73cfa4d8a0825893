// SPDX-License-Identifier: MIT
#include "cli/observe/rates.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output/terminal.hpp"
#include "cli/transfer/link_record.hpp"

namespace kxfer::cli {

namespace {

// Of an entry beside its time, on a narrow terminal too.
constexpr size_t least_room = 20;

double seconds_between(const View& before, const View& now) {
    return std::max(static_cast<double>(now.at_ns - before.at_ns), 1.0) / 1e9;
}

// A counter that is less than before is another one's: it counts from 0.
double growth(uint64_t before, uint64_t now) {
    return static_cast<double>(now >= before ? now - before : now);
}

Value or_none(const std::optional<double>& rate, const Value& value) { return rate ? value : Value(None{}); }

Value bytes_value(const std::optional<double>& rate) {
    return or_none(rate, BytesPerSecond{rate.value_or(0)});
}

Value count_value(const std::optional<double>& rate) { return or_none(rate, PerSecond{rate.value_or(0)}); }

std::string count_text(double rate) { return human_value(PerSecond{rate}); }

std::string text_or_dash(const Value& value) { return human_value(value); }

Value time_value(const std::optional<double>& ns) { return or_none(ns, Nanoseconds{ns.value_or(0)}); }

Value rtt_value(const kxfer_info_link& link) {
    return link.rtt_ns == 0 ? Value(None{}) : Value(Nanoseconds{static_cast<double>(link.rtt_ns)});
}

// What stands in the column of `order`, as one number to compare.
double key_of(const LinkRate& rate, Order order) {
    switch (order) {
    case Order::read:
        return rate.bytes_read.value_or(-1);
    case Order::written:
        return rate.bytes_written.value_or(-1);
    case Order::work_requests:
        return rate.work_requests.value_or(-1);
    case Order::jobs:
        return rate.link.nr_jobs;
    case Order::p99:
        return rate.latency.quantile_ns(99).value_or(-1);
    case Order::failed:
        return rate.failed.value_or(-1);
    case Order::rtt:
        return static_cast<double>(rate.link.rtt_ns);
    case Order::number:
        break;
    }
    return -static_cast<double>(rate.link.id);
}

} // namespace

std::vector<LinkRate> link_rates(const View& before, const View& now) {
    const double seconds = seconds_between(before, now);
    std::vector<LinkRate> rates;
    for (const kxfer_info_link& link : now.links) {
        const kxfer_info_link* was = find_by_id(before.links, link.id);
        LinkRate rate;
        rate.link = link;
        rate.queued = queued_on(now, link.id);
        if (shows_all(link)) {
            rate.bytes_read = growth(was ? was->bytes_read : 0, link.bytes_read) / seconds;
            rate.bytes_written = growth(was ? was->bytes_written : 0, link.bytes_written) / seconds;
            rate.work_requests =
                growth(work_requests_of(before, link.id), work_requests_of(now, link.id)) / seconds;
            rate.latency = latency_of(now.latencies, link.id).since(latency_of(before.latencies, link.id));
            rate.failed = static_cast<double>(rate.latency.failed) / seconds;
            rate.jobs = *rate.failed + static_cast<double>(rate.latency.jobs()) / seconds;
        }
        rates.push_back(rate);
    }
    return rates;
}

double counter_rate(const View& before, const View& now, const std::string& name) {
    return growth(counter_of(before, name), counter_of(now, name)) / seconds_between(before, now);
}

void sort_links(std::vector<LinkRate>& links, Order order) {
    std::stable_sort(links.begin(), links.end(), [order](const auto& one, const auto& other) {
        return key_of(one, order) > key_of(other, order);
    });
}

Record link_rate_row(const LinkRate& rate) {
    const kxfer_info_link& link = rate.link;
    const std::string error = link_error(link);
    return Record()
        .add("link", link.id)
        .add("remote", to_string(link.remote))
        .add("device", Value(text_of(link.device)), Show::wide)
        .add("role", Value(std::string(link_role(link))), Show::wide)
        .add("read", bytes_value(rate.bytes_read))
        .add("written", bytes_value(rate.bytes_written))
        .add("work_requests", count_value(rate.work_requests), Show::wide, "WR")
        .add("jobs_ended", count_value(rate.jobs), Show::wide, "ended")
        .add("jobs_failed", count_value(rate.failed), Show::wide, "failed")
        .add("jobs", link.nr_jobs)
        .add("queued", Value(rate.queued), Show::wide)
        .add("p50", time_value(rate.latency.quantile_ns(50)))
        .add("p99", time_value(rate.latency.quantile_ns(99)))
        .add("rtt", rtt_value(link), Show::wide)
        .add("state", Value(std::string(link_state(link))), Show::json_only)
        .add("error", error.empty() ? Value(None{}) : Value(error), Show::json_only)
        .add("state", Value(error.empty() ? link_state(link) : error), Show::text_only);
}

Record session_row(const kxfer_info_session& session) {
    return Record()
        .add("session", session.id)
        .add("pid", session.pid)
        .add("program", program_of(session.pid).c_str())
        .add("uid", session.uid)
        .add("jobs", session.nr_jobs)
        .add("unread", session.nr_done)
        .add("targets", Value(uint64_t{session.nr_targets}), Show::wide)
        .add("exports", Value(uint64_t{session.nr_exports}), Show::wide)
        .add("pinned", Bytes{session.pinned_bytes});
}

Record counter_rates(const View& before, const View& now) {
    Record record;
    for (const kxfer_info_counter& counter : now.counters) {
        const std::string name = text_of(counter.name);
        const double rate = counter_rate(before, now, name);
        if (is_gauge(name))
            record.add(name, counter.value);
        else if (name.starts_with("bytes_"))
            record.add(name.substr(6), BytesPerSecond{rate});
        else
            record.add(name, PerSecond{rate});
    }
    return record;
}

std::string node_line(const View& before, const View& now) {
    const auto rate = [&](const char* name) { return counter_rate(before, now, name); };
    return fmt::format("read {}, written {}, jobs {}, failed {}, WR {}, {} in flight, {} links",
                       human_value(BytesPerSecond{rate("bytes_read")}),
                       human_value(BytesPerSecond{rate("bytes_written")}), count_text(rate("jobs_completed")),
                       count_text(rate("jobs_failed")), count_text(rate("wr_posted")),
                       counter_of(now, "live_jobs"), counter_of(now, "live_links"));
}

std::string link_line(const LinkRate& rate) {
    const std::string error = link_error(rate.link);
    return fmt::format("link {} {} ({}): read {}, written {}, WR {}, ended {}, failed {}, {} in flight, p50 "
                       "{}, p99 {}, rtt {}{}",
                       rate.link.id, to_string(rate.link.remote), link_role(rate.link),
                       text_or_dash(bytes_value(rate.bytes_read)),
                       text_or_dash(bytes_value(rate.bytes_written)),
                       text_or_dash(count_value(rate.work_requests)), text_or_dash(count_value(rate.jobs)),
                       text_or_dash(count_value(rate.failed)), rate.link.nr_jobs,
                       text_or_dash(time_value(rate.latency.quantile_ns(50))),
                       text_or_dash(time_value(rate.latency.quantile_ns(99))),
                       text_or_dash(rtt_value(rate.link)), error.empty() ? "" : ", " + error);
}

std::string session_line(const kxfer_info_session& session) {
    return fmt::format("session {} pid {} ({}) uid {}: {} in flight, {} unread, {} pinned", session.id,
                       session.pid, human_value(Value(program_of(session.pid))), session.uid, session.nr_jobs,
                       session.nr_done, human_bytes(session.pinned_bytes));
}

std::string dated(const std::string& time, const std::string& entry, size_t width) {
    const std::string indent(width_of(time) + 2, ' ');
    const size_t room = width > indent.size() ? width - indent.size() : 0;
    return time + "  " + broken(entry, indent, std::max(room, least_room));
}

size_t entry_width() { return terminal_width(STDOUT_FILENO).value_or(80); }

std::string program_of(uint32_t pid) {
    std::ifstream file(fmt::format("/proc/{}/comm", pid));
    std::string name;
    std::getline(file, name);
    return name;
}

} // namespace kxfer::cli

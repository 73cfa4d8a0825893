// SPDX-License-Identifier: MIT
#include "cli/link_record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "bench/kernel_path.hpp"

namespace kxfer::cli {

namespace {

const char* state_name(uint32_t state) {
    static constexpr std::array names = {"-", "connecting", "live", "closing", "dead"};
    return state < names.size() ? names.at(state) : "unknown";
}

const char* context_name(uint32_t context) {
    static constexpr std::array names = {"polled", "workqueue", "softirq", "unbound", "direct"};
    return context < names.size() ? names.at(context) : "unknown";
}

// ~0 on iWARP, which has none.
Value gid_type(uint32_t type) {
    const std::string name = bench::gid_type_name(type);
    return name.empty() ? Value(None{}) : Value(name);
}

const char* role(const kxfer_info_link& link) {
    if (link.flags & KXFER_LINK_DEDICATED) return "dedicated";
    return link.flags & KXFER_LINK_INITIATOR ? "initiator" : "accepted";
}

Value if_known(uint64_t ns) { return ns == 0 ? Value(None{}) : Value(Nanoseconds{static_cast<double>(ns)}); }

Nanoseconds duration(uint64_t ns) { return {static_cast<double>(ns)}; }

Value error_name(int number) { return number == 0 ? Value(None{}) : Value(Error("", "", number).name()); }

// The control lane has slots, no credits.
Value credits(const kxfer_info_lane& lane, uint32_t number) {
    return lane.max_credits == 0 ? Value(None{}) : Value(uint64_t{number});
}

Record lane_row(const kxfer_info_lane& lane) {
    return Record()
        .add("id", lane.id, Show::json_only)
        .add("lane", lane.index == 0 ? Value(std::string("control")) : Value(std::to_string(lane.index)))
        .add("credits", credits(lane, lane.credits))
        .add("max_credits", credits(lane, lane.max_credits), Show::everywhere, "of")
        .add("queued", lane.nr_queued)
        .add("posted", lane.nr_posted)
        .add("max_send_sge", lane.max_send_sge, Show::everywhere, "SGEs")
        .add("max_inline", lane.max_inline, Show::everywhere, "inline")
        .add("work_requests", lane.nr_wr)
        .add("completions", lane.nr_completions);
}

Record details_of(const kxfer_info_link& link) {
    return Record()
        .add("id", link.id)
        .add("state", state_name(link.state))
        .add("role", role(link))
        .add("error", error_name(link.error))
        .add("local", to_string(link.local))
        .add("remote", to_string(link.remote))
        .add("device", text_of(link.device))
        .add("context", context_name(link.context))
        .add("tos", link.tos)
        .add("key", text_of(link.key))
        .add("gid_type", gid_type(link.gid_type))
        .add("sessions", link.nr_sessions)
        .add("targets", link.nr_grants)
        .add("jobs", link.nr_jobs)
        .add("rtt_ns", if_known(link.rtt_ns), Show::everywhere, "rtt")
        .add("age", duration(link.age_ns))
        .add("idle", duration(link.idle_ns))
        .add("read", Bytes{link.bytes_read})
        .add("written", Bytes{link.bytes_written});
}

} // namespace

Record link_row(const kxfer_info_link& link) {
    return Record()
        .add("id", link.id)
        .add("state", state_name(link.state))
        .add("role", role(link))
        .add("local", to_string(link.local))
        .add("remote", to_string(link.remote))
        .add("device", text_of(link.device))
        .add("key", text_of(link.key), Show::json_only)
        .add("lanes", link.nr_lanes, Show::json_only)
        .add("sessions", link.nr_sessions)
        .add("targets", link.nr_grants)
        .add("jobs", link.nr_jobs)
        .add("rtt_ns", if_known(link.rtt_ns), Show::everywhere, "rtt")
        .add("idle", duration(link.idle_ns))
        .add("read", Bytes{link.bytes_read})
        .add("written", Bytes{link.bytes_written});
}

tl::expected<Record, Failure> link_record(const Session& session, uint64_t id) {
    const auto links = session.list<kxfer_info_link>(KXFER_INFO_LINKS);
    if (!links) return failed(links.error());
    const auto lanes = session.list<kxfer_info_lane>(KXFER_INFO_LANES);
    if (!lanes) return failed(lanes.error());
    const auto link =
        std::find_if(links->begin(), links->end(), [id](const auto& one) { return one.id == id; });
    if (link == links->end())
        return failed(Error("cannot show link", std::to_string(id), ENOENT, "see: kxfer link list",
                            "there is no such link, or it belongs to another user (root sees all)"));
    Record record = details_of(*link);
    Table rows;
    for (const kxfer_info_lane& lane : *lanes)
        if (lane.link == id) rows.push_back(lane_row(lane));
    record.add("lanes", Value(rows));
    return record;
}

} // namespace kxfer::cli

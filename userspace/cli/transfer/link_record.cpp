// SPDX-License-Identifier: MIT
#include "cli/transfer/link_record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>

#include "base/try.hpp"
#include "bench/engines/kernel_path.hpp"
#include "cli/node/latency.hpp"
#include "cli/node/privilege.hpp"

namespace kxfer::cli {

namespace {

const char* context_name(uint32_t context) {
    static constexpr std::array names = {"polled", "workqueue", "softirq", "unbound", "direct"};
    return context < names.size() ? names.at(context) : "unknown";
}

// type: ~0 on iWARP, which has no GID types.
Value gid_type(uint32_t type) {
    const std::string name = bench::gid_type_name(type);
    return name.empty() ? Value(None{}) : Value(name);
}

Value if_known(uint64_t ns) { return ns == 0 ? Value(None{}) : Value(Nanoseconds{static_cast<double>(ns)}); }

Nanoseconds duration(uint64_t ns) { return {static_cast<double>(ns)}; }

Record& add_traffic(Record& record, const kxfer_info_link& link, Show idle = Show::everywhere) {
    const bool all = shows_all(link);
    const auto or_none = [all](const Value& value) { return all ? value : Value(None{}); };
    return record.add("idle_ns", or_none(duration(link.idle_ns)), idle, "idle")
        .add("read_bytes", or_none(Bytes{link.bytes_read}), Show::everywhere, "read")
        .add("written_bytes", or_none(Bytes{link.bytes_written}), Show::everywhere, "written");
}

// The link's key, if the module reports it.
Value key_of(const kxfer_info_link& link) {
    return shows_all(link) ? Value(text_of(link.key)) : Value(None{});
}

// The control lane has slots, no credits.
Value credits(const kxfer_info_lane& lane, uint32_t number) {
    return lane.max_credits == 0 ? Value(None{}) : Value(uint64_t{number});
}

Value mtu_bytes(uint32_t bytes) { return bytes ? Value(uint64_t{bytes}) : Value(None{}); }

Record lane_row(const kxfer_info_lane& lane) {
    return Record()
        .add("id", lane.id, Show::json_only)
        .add("lane", lane.index == 0 ? Value(std::string("control")) : Value(std::to_string(lane.index)))
        .add("credits", credits(lane, lane.credits))
        .add("max_credits", credits(lane, lane.max_credits), Show::everywhere, "of")
        .add("queued", lane.nr_queued)
        .add("posted", lane.nr_posted)
        .add("max_send_sge", lane.max_send_sge, Show::wide, "SGEs")
        .add("max_inline", lane.max_inline, Show::wide, "inline")
        .add("path_mtu", mtu_bytes(lane.path_mtu), Show::wide_text, "MTU")
        .add("path_mtu_bytes", mtu_bytes(lane.path_mtu), Show::json_only)
        .add("work_requests", lane.nr_wr)
        .add("completions", lane.nr_completions);
}

Value time_or_none(const std::optional<double>& ns) { return ns ? Value(Nanoseconds{*ns}) : Value(None{}); }

Record latency_row(uint32_t op, const Latency& latency) {
    return Record()
        .add("op", op_name(op))
        .add("jobs", latency.jobs())
        .add("failed", latency.failed)
        .add("mean", time_or_none(latency.mean_ns()))
        .add("p50", time_or_none(latency.quantile_ns(50)))
        .add("p99", time_or_none(latency.quantile_ns(99)))
        .add("p99_9", time_or_none(latency.quantile_ns(99.9)), Show::everywhere, "p99.9");
}

// The ops of which jobs have ended on a link.
Table latency_rows(const std::vector<kxfer_info_latency>& latencies, uint64_t link) {
    Table rows;
    for (const uint32_t op : counted_ops()) {
        const Latency latency = latency_of(latencies, link, op);
        if (latency.jobs() || latency.failed) rows.push_back(latency_row(op, latency));
    }
    return rows;
}

// "4096", or "1024 (port: 4096)" if they differ.
Value mtu_text(const LinkMtu& mtu) {
    if (mtu.path == 0) return None{};
    if (mtu.port == 0 || mtu.port == mtu.path) return uint64_t{mtu.path};
    return fmt::format("{} (port: {})", mtu.path, mtu.port);
}

Record& add_mtu(Record& record, const LinkMtu& mtu, Show text = Show::text_only) {
    return record.add("path_mtu", mtu_text(mtu), text, "path MTU")
        .add("path_mtu_bytes", mtu_bytes(mtu.path), Show::json_only)
        .add("port_mtu_bytes", mtu_bytes(mtu.port), Show::json_only);
}

// Zeros: the link has no GID, or the module is older.
Value gid(const __u8 (&bytes)[KXFER_GID_SIZE]) {
    verbs::Gid gid;
    std::copy(std::begin(bytes), std::end(bytes), gid.bytes.begin());
    return gid.bytes == verbs::Gid().bytes ? Value(None{}) : Value(verbs::gid_text(gid));
}

bool is_of_link(const PortFacts& port, const DeviceFacts& device, const kxfer_info_link& link) {
    if (!port.verbs || device.core.name != text_of(link.device)) return false;
    return device.ports.size() == 1 ||
           std::any_of(port.verbs->gids.begin(), port.verbs->gids.end(), [&](const auto& gid) {
               return std::equal(gid.bytes.begin(), gid.bytes.end(), std::begin(link.sgid));
           });
}

// On InfiniBand the subnet manager chooses the path MTU.
bool is_infiniband(const kxfer_info_link& link) { return link.gid_type == 0; }

// A dedicated link has none; of a link that is being made it is not known.
Value messages(const kxfer_info_link& link) {
    if (link.flags & KXFER_LINK_DEDICATED || link.state == KXFER_LINK_CONNECTING) return None{};
    return std::string(link.flags & KXFER_LINK_EAGER ? "eager" : "answered");
}

// iWARP has neither ack timeouts nor retries; of a link that is being made they are not known.
Record& add_patience(Record& record, const kxfer_info_link& link) {
    const auto or_none = [](uint32_t number, const Value& value) { return number ? value : Value(None{}); };
    return record
        .add("silence_ns", duration(link.silence_ms * uint64_t{1000000}), Show::everywhere, "silence")
        .add("ack_timeout", or_none(link.ack_timeout, uint64_t{link.ack_timeout}), Show::json_only)
        .add("ack_timeout_ns", or_none(link.ack_timeout, duration(uint64_t{4096} << link.ack_timeout)),
             Show::everywhere, "ack timeout")
        .add("retries", or_none(link.retry_count, uint64_t{link.retry_count}))
        .add("in_flight_bytes", or_none(link.in_flight_kib, Bytes{uint64_t{link.in_flight_kib} * 1024}),
             Show::everywhere, "in flight");
}

Record details_of(const kxfer_info_link& link, const LinkMtu& mtu) {
    Record record;
    record.add("id", link.id)
        .add("state", link_state(link))
        .add("role", link_role(link))
        .add("error", link.error == 0 ? Value(None{}) : Value(link_error(link)))
        .add("local", to_string(link.local))
        .add("remote", to_string(link.remote))
        .add("device", text_of(link.device))
        .add("context", context_name(link.context))
        .add("tos", link.tos)
        .add("key", key_of(link))
        .add("messages", messages(link))
        .add("gid_type", gid_type(link.gid_type))
        .add("sgid", gid(link.sgid), Show::everywhere, "own GID")
        .add("dgid", gid(link.dgid), Show::everywhere, "peer's GID");
    add_patience(record, link);
    const std::string warning = mtu_warning(link, mtu);
    add_mtu(record, mtu)
        .add("warning", warning.empty() ? Value(None{}) : Value(warning),
             warning.empty() ? Show::json_only : Show::everywhere);
    record.add("sessions", link.nr_sessions)
        .add("targets", link.nr_grants)
        .add("jobs", link.nr_jobs)
        .add("rtt_ns", if_known(link.rtt_ns), Show::everywhere, "rtt")
        .add("age", duration(link.age_ns));
    return add_traffic(record, link);
}

std::string reason(int error) { return Error("", "", error < 0 ? -error : error).name(); }

std::string times(uint32_t nr) { return nr == 1 ? "once" : fmt::format("{} times", nr); }

std::string count(uint32_t nr, const char* one) {
    return fmt::format("{} {}{}", nr, one, nr == 1 ? "" : "s");
}

Record event_row(const kxfer_info_line& line, const kxfer_line_event& event) {
    return Record()
        .add("line", line.id)
        .add("session", line.session, Show::json_only)
        .add("remote", to_string(line.remote), Show::json_only)
        .add("age", duration(event.age_ns))
        .add("event", event_text(event))
        .add("type", event.type, Show::json_only)
        .add("link", event.link ? Value(uint64_t{event.link}) : Value(None{}), Show::json_only)
        .add("error", event.error ? Value(reason(event.error)) : Value(None{}), Show::json_only)
        .add("count", event.nr, Show::json_only);
}

} // namespace

const char* link_state(const kxfer_info_link& link) {
    static constexpr std::array names = {"-", "connecting", "live", "closing", "dead"};
    return link.state < names.size() ? names.at(link.state) : "unknown";
}

const char* link_role(const kxfer_info_link& link) {
    if (link.flags & KXFER_LINK_DEDICATED) return "dedicated";
    return link.flags & KXFER_LINK_INITIATOR ? "initiator" : "accepted";
}

bool shows_all(const kxfer_info_link& link) { return link.flags & KXFER_LINK_INITIATOR || sees_all(); }

std::string link_error(const kxfer_info_link& link) { return link.error == 0 ? "" : reason(link.error); }

std::string event_text(const kxfer_line_event& event) {
    switch (event.type) {
    case KXFER_LINE_OPENED:
        return fmt::format("opened on link {}", event.link);
    case KXFER_LINE_BROKE:
        return fmt::format("link {} broke: {}", event.link, reason(event.error));
    case KXFER_LINE_WAITED:
        return fmt::format("{} began to wait for another link", count(event.nr, "job"));
    case KXFER_LINE_TRIED:
        return fmt::format("no link: tried {}, at last {}", times(event.nr), reason(event.error));
    case KXFER_LINE_CONNECTED:
        return fmt::format("connected again by link {}", event.link);
    case KXFER_LINE_RENEWED:
        return fmt::format("{} granted again on link {}", count(event.nr, "target"), event.link);
    case KXFER_LINE_REVOKED:
        return fmt::format("{} ended, which the peer does not grant any more: {}", count(event.nr, "target"),
                           reason(event.error));
    case KXFER_LINE_RESTARTED:
        return "the peer's module was loaded again: it has other exports";
    case KXFER_LINE_RESUMED:
        return fmt::format("{} went on over link {}", count(event.nr, "job"), event.link);
    case KXFER_LINE_LOST:
        return fmt::format("no link for too long: {} ended", count(event.nr, "job"));
    default:
        return fmt::format("event {}, which this version does not know", event.type);
    }
}

tl::expected<Table, Failure> story_rows(const Session& session, uint64_t link) {
    TRY_SET(const auto lines, session.list<kxfer_info_line>(KXFER_INFO_LINES));
    Table rows;
    for (const kxfer_info_line& line : lines)
        for (uint32_t i = 0; (!link || line.link == link) && i < KXFER_LINE_EVENTS; i++)
            if (line.events[i].type) rows.push_back(event_row(line, line.events[i]));
    return rows;
}

LinkMtu mtu_of(const kxfer_info_link& link, const std::vector<kxfer_info_lane>& lanes,
               const std::vector<DeviceFacts>& devices) {
    LinkMtu mtu;
    for (const auto& lane : lanes)
        if (lane.link == link.id && lane.path_mtu)
            mtu.path = mtu.path ? std::min<uint32_t>(mtu.path, lane.path_mtu) : lane.path_mtu;
    for (const auto& device : devices)
        for (const auto& port : device.ports)
            if (mtu.path && is_of_link(port, device, link)) mtu.port = port.verbs->active_mtu;
    return mtu;
}

std::string mtu_warning(const kxfer_info_link& link, const LinkMtu& mtu) {
    if (!mtu.path || !mtu.port || mtu.path == mtu.port) return {};
    const std::string differ = fmt::format("path MTU {}, the port's is {} now", mtu.path, mtu.port);
    // The MTU of the peer's port or of the subnet limits the path MTU too.
    if (!(link.flags & KXFER_LINK_INITIATOR) || is_infiniband(link))
        return differ + ": a link keeps the MTU of the path that it was made on";
    return differ +
           ": a link keeps the MTU it was made with; open it again (it closes 30 s after its last user)";
}

Record link_row(const kxfer_info_link& link, const LinkMtu& mtu) {
    Record record;
    record.add("id", link.id)
        .add("state", link_state(link))
        .add("role", link_role(link))
        .add("local", to_string(link.local), Show::wide)
        .add("remote", to_string(link.remote))
        .add("device", text_of(link.device), Show::wide)
        .add("key", key_of(link), Show::json_only)
        .add("tos", link.tos, Show::json_only);
    add_mtu(record, mtu, Show::wide_text)
        .add("lanes", link.nr_lanes, Show::json_only)
        .add("sessions", link.nr_sessions, Show::wide)
        .add("targets", link.nr_grants, Show::wide)
        .add("jobs", link.nr_jobs)
        .add("rtt_ns", if_known(link.rtt_ns), Show::everywhere, "rtt");
    return add_traffic(record, link, Show::wide);
}

tl::expected<Table, Failure> link_rows(const Session& session, const std::vector<DeviceFacts>& devices,
                                       const std::string& device) {
    TRY_SET(const auto links, session.list<kxfer_info_link>(KXFER_INFO_LINKS));
    TRY_SET(const auto lanes, session.list<kxfer_info_lane>(KXFER_INFO_LANES));
    Table rows;
    for (const kxfer_info_link& link : links)
        if (device.empty() || text_of(link.device) == device)
            rows.push_back(link_row(link, mtu_of(link, lanes, devices)));
    return rows;
}

tl::expected<Record, Failure> link_record(const Session& session, const std::vector<DeviceFacts>& devices,
                                          uint64_t id) {
    TRY_SET(const auto links, session.list<kxfer_info_link>(KXFER_INFO_LINKS));
    TRY_SET(const auto lanes, session.list<kxfer_info_lane>(KXFER_INFO_LANES));
    const auto link =
        std::find_if(links.begin(), links.end(), [id](const auto& one) { return one.id == id; });
    if (link == links.end())
        return failed(Error("cannot show link", std::to_string(id), ENOENT, "see: kxfer link list",
                            "there is no such link, or it belongs to another user (root sees all)"));
    Record record = details_of(*link, mtu_of(*link, lanes, devices));
    Table rows;
    for (const kxfer_info_lane& lane : lanes)
        if (lane.link == id) rows.push_back(lane_row(lane));
    record.add("lanes", Value(rows));
    TRY_SET(const auto counted, latencies_of(session));
    const Table latencies = latency_rows(counted, id);
    record.add("latencies", Value(latencies), latencies.empty() ? Show::json_only : Show::everywhere);
    TRY_SET(const auto story, story_rows(session, id));
    record.add("story", Value(story), story.empty() ? Show::json_only : Show::everywhere);
    return record;
}

} // namespace kxfer::cli

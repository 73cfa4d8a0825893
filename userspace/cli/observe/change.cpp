// SPDX-License-Identifier: MIT
#include "cli/observe/change.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/node/privilege.hpp"
#include "cli/transfer/link_record.hpp"

namespace kxfer::cli {

namespace {

Change change(const char* kind, const std::string& text) {
    Change one{{}, text};
    one.record.add("event", kind);
    return one;
}

// Of a link that went between two looks: the error that the story of a line has for it.
std::optional<std::string> reason_in_stories(const View& now, uint64_t link) {
    for (const kxfer_info_line& line : now.lines)
        for (const kxfer_line_event& event : line.events)
            if (event.type == KXFER_LINE_BROKE && event.link == link && event.error)
                return Error("", "", -event.error).name();
    return std::nullopt;
}

Change link_change(const char* kind, const kxfer_info_link& link, const std::string& text) {
    Change one = change(kind, fmt::format("link {} {} {} ({}, {})", link.id, text, to_string(link.remote),
                                          link_role(link), text_of(link.device)));
    one.record.add("link", link.id)
        .add("remote", to_string(link.remote))
        .add("local", to_string(link.local))
        .add("device", text_of(link.device))
        .add("role", link_role(link));
    return one;
}

// reason: empty: it went between two looks; "closed": no error ended it.
Change link_down(const kxfer_info_link& link, bool was_up, const std::optional<std::string>& reason) {
    const char* kind = was_up ? "link-down" : "link-failed";
    Change one = link_change(kind, link, was_up ? "down to" : "not made to");
    one.text += reason ? ": " + *reason : ": gone before its reason was seen";
    one.record.add("reason", reason ? Value(*reason) : Value(None{}));
    return one;
}

bool is_over(const kxfer_info_link& link) { return link.state >= KXFER_LINK_CLOSING; }

std::string reason_of(const kxfer_info_link& link) {
    const std::string error = link_error(link);
    return error.empty() ? "closed" : error;
}

void add_links(std::vector<Change>& changes, const View& before, const View& now) {
    for (const kxfer_info_link& link : now.links) {
        const kxfer_info_link* was = find_by_id(before.links, link.id);
        const bool was_up = was && was->state == KXFER_LINK_LIVE;
        if (link.state == KXFER_LINK_LIVE && !was_up)
            changes.push_back(link_change("link-up", link, "up to"));
        if (is_over(link) && !(was && is_over(*was)))
            changes.push_back(link_down(link, was_up, reason_of(link)));
    }
    for (const kxfer_info_link& link : before.links)
        if (!is_over(link) && !find_by_id(now.links, link.id))
            changes.push_back(
                link_down(link, link.state == KXFER_LINK_LIVE, reason_in_stories(now, link.id)));
}

const char* line_kind(uint32_t type) {
    static constexpr std::array names = {"",          "peer-opened",  "peer-broke",     "jobs-waiting",
                                         "tried",     "moved",        "target-renewed", "target-revoked",
                                         "restarted", "jobs-resumed", "jobs-lost"};
    return type > 0 && type < names.size() ? names.at(type) : "line";
}

Change line_change(const kxfer_info_line& line, const kxfer_line_event& event) {
    Change one =
        change(line_kind(event.type), fmt::format("peer {} of session {}: {}", to_string(line.remote),
                                                  line.session, event_text(event)));
    one.record.add("line", line.id)
        .add("session", line.session)
        .add("remote", to_string(line.remote))
        .add("link", event.link ? Value(uint64_t{event.link}) : Value(None{}))
        .add("reason", event.error ? Value(Error("", "", -event.error).name()) : Value(None{}))
        .add("count", event.nr)
        .add("age", Nanoseconds{static_cast<double>(event.age_ns)});
    return one;
}

void add_lines(std::vector<Change>& changes, const View& before, const View& now) {
    for (const kxfer_info_line& line : now.lines) {
        const kxfer_info_line* was = find_by_id(before.lines, line.id);
        const uint32_t fresh = line.nr_events - (was ? was->nr_events : 0);
        const uint32_t kept = std::min<uint32_t>(line.nr_events, KXFER_LINE_EVENTS);
        if (fresh > kept) {
            Change one =
                change("missed", fmt::format("peer {} of session {}: {} earlier events were not seen",
                                             to_string(line.remote), line.session, fresh - kept));
            one.record.add("line", line.id).add("count", fresh - kept);
            changes.push_back(std::move(one));
        }
        for (uint32_t i = kept - std::min(fresh, kept); i < kept; i++)
            changes.push_back(line_change(line, line.events[i]));
    }
}

// Objects that came or went: CAME and WENT make the change.
template <typename Info, typename Came, typename Went>
void add_objects(std::vector<Change>& changes, const std::vector<Info>& before, const std::vector<Info>& now,
                 Came came, Went went) {
    for (const Info& one : now)
        if (!find_by_id(before, one.id)) changes.push_back(came(one));
    for (const Info& one : before)
        if (!find_by_id(now, one.id)) changes.push_back(went(one));
}

Change device_change(const char* kind, const kxfer_info_device& device, const char* text) {
    Change one = change(kind, fmt::format("device {} {}", text_of(device.name), text));
    one.record.add("device", text_of(device.name));
    return one;
}

Change listener_change(const char* kind, const kxfer_info_listener& listener, const std::string& text) {
    Change one = change(kind, fmt::format("{} {}", text, to_string(listener.addr)));
    one.record.add("address", to_string(listener.addr));
    return one;
}

Change export_change(const char* kind, const kxfer_info_export& one, const char* text) {
    const std::string name = text_of(one.name);
    Change result = change(kind, fmt::format("export {} {} (pid {}, uid {})", human_value(Value(name)), text,
                                             one.owner_pid, one.owner_uid));
    result.record.add("name", name).add("pid", one.owner_pid).add("uid", one.owner_uid);
    return result;
}

void add_refusals(std::vector<Change>& changes, const View& before, const View& now) {
    for (const kxfer_info_listener& listener : now.listeners) {
        const kxfer_info_listener* was = find_by_id(before.listeners, listener.id);
        const uint64_t refused = listener.nr_refused - (was ? was->nr_refused : 0);
        if (refused == 0) continue;
        Change one = listener_change(
            "refused", listener, fmt::format("{} connection{} refused on", refused, refused == 1 ? "" : "s"));
        one.record.add("count", refused);
        changes.push_back(std::move(one));
    }
    static constexpr std::array<std::pair<const char*, const char*>, 2> reasons = {
        {{"keys_refused", "did not prove the key"},
         {"links_forged", "came from another address than its path's"}}};
    for (const auto& [counter, text] : reasons) {
        const uint64_t nr = counter_of(now, counter) - counter_of(before, counter);
        if (nr == 0) continue;
        Change one = change("not-believed", fmt::format("{} peer{} {}", nr, nr == 1 ? "" : "s", text));
        one.record.add("reason", counter).add("count", nr);
        changes.push_back(std::move(one));
    }
}

} // namespace

std::vector<Change> changes_between(const View& before, const View& now) {
    std::vector<Change> changes;
    add_objects(
        changes, before.devices, now.devices,
        [](const auto& one) { return device_change("device-added", one, "is there"); },
        [](const auto& one) { return device_change("device-removed", one, "is gone"); });
    add_objects(
        changes, before.listeners, now.listeners,
        [](const auto& one) { return listener_change("listener-added", one, "listening on"); },
        [](const auto& one) { return listener_change("listener-removed", one, "no longer listening on"); });
    add_objects(
        changes, before.exports, now.exports,
        [](const auto& one) { return export_change("export-added", one, "is published"); },
        [](const auto& one) { return export_change("export-removed", one, "is withdrawn"); });
    add_links(changes, before, now);
    add_lines(changes, before, now);
    add_refusals(changes, before, now);
    return changes;
}

} // namespace kxfer::cli

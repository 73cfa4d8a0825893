// SPDX-License-Identifier: MIT
//
// kxfer top: links and sessions of this node with their rates, like top(1): a picture on a
// terminal, else lines, or a JSON object an interval.

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <kxfer/kxfer.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/observe/commands.hpp"
#include "cli/observe/rates.hpp"
#include "cli/observe/screen.hpp"
#include "cli/output/terminal.hpp"

namespace kxfer::cli {

namespace {

struct TopOptions {
    double interval_seconds = 1;
    uint64_t count = 0; // 0: until q or a signal
    Order order = Order::number;
};

struct OrderKey {
    char key;
    const char* name;
    Order order;
};

constexpr std::array<OrderKey, 8> order_keys = {{{'n', "number", Order::number},
                                                 {'r', "read", Order::read},
                                                 {'w', "written", Order::written},
                                                 {'o', "work-requests", Order::work_requests},
                                                 {'j', "jobs", Order::jobs},
                                                 {'l', "p99", Order::p99},
                                                 {'f', "failed", Order::failed},
                                                 {'t', "rtt", Order::rtt}}};

const char* name_of(Order order) {
    for (const OrderKey& one : order_keys)
        if (one.order == order) return one.name;
    return "";
}

std::string order_names() {
    std::string names;
    for (const OrderKey& one : order_keys) names += (names.empty() ? "" : ", ") + std::string(one.name);
    return names;
}

std::vector<LinkRate> sorted_links(const View& before, const View& now, Order order) {
    auto links = link_rates(before, now);
    sort_links(links, order);
    return links;
}

// The sessions with the most jobs in flight first.
std::vector<kxfer_info_session> sorted_sessions(const View& now) {
    auto sessions = now.sessions;
    std::stable_sort(sessions.begin(), sessions.end(),
                     [](const auto& one, const auto& other) { return one.nr_jobs > other.nr_jobs; });
    return sessions;
}

void append_table(std::vector<std::string>& lines, const Table& rows, const char* none, size_t width) {
    lines.emplace_back();
    if (rows.empty()) {
        lines.push_back(cut(none, width));
        return;
    }
    auto table = table_lines(rows, width);
    table.front() = "\033[7m" + table.front() + "\033[0m";
    lines.insert(lines.end(), table.begin(), table.end());
}

std::vector<std::string> picture_of(const View& before, const View& now, Order order, size_t width) {
    std::vector<std::string> lines;
    lines.push_back(cut(fmt::format("kxfer top  {}  by {}", utc_text(), name_of(order)), width));
    std::istringstream node(broken(node_line(before, now), "", width));
    for (std::string line; std::getline(node, line);) lines.push_back(cut(line, width));
    lines.push_back(
        cut("q quits; links by: n number, r read, w written, o WR, j jobs, l p99, f failed, t rtt", width));
    Table links, sessions;
    for (const LinkRate& rate : sorted_links(before, now, order)) links.push_back(link_rate_row(rate));
    for (const auto& session : sorted_sessions(now)) sessions.push_back(session_row(session));
    append_table(lines, links, "no links", width);
    append_table(lines, sessions, "no sessions", width);
    return lines;
}

void print_sample(const View& before, const View& now, Order order, Context& context) {
    const std::string time = utc_text();
    const size_t width = entry_width();
    std::string text = dated(time, node_line(before, now), width);
    Table links, sessions;
    for (const LinkRate& rate : sorted_links(before, now, order)) {
        links.push_back(link_rate_row(rate));
        text += '\n' + dated(time, link_line(rate), width);
    }
    for (const auto& session : sorted_sessions(now)) {
        sessions.push_back(session_row(session));
        text += '\n' + dated(time, session_line(session), width);
    }
    Record record;
    record.add("time", time.c_str());
    record.add("interval", Nanoseconds{static_cast<double>(now.at_ns - before.at_ns)})
        .add("node", counter_rates(before, now))
        .add("links", Value(links))
        .add("sessions", Value(sessions));
    context.out.sample(record, text);
}

std::chrono::nanoseconds interval_of(const TopOptions& options) {
    return std::chrono::nanoseconds(std::llround(options.interval_seconds * 1e9));
}

Result run_lines(const TopOptions& options, const Session& session, Context& context) {
    catch_interrupts();
    TRY_SET(View before, view_of(session));
    for (uint64_t nr = 0; options.count == 0 || nr < options.count; nr++) {
        wait_events(-1, 0, interval_of(options));
        if (interrupted()) return interrupt_status();
        TRY_SET(View now, view_of(session));
        print_sample(before, now, options.order, context);
        if (context.out.write_error() != 0) break;
        before = std::move(now);
    }
    return exit_ok;
}

// Handles keys until the interval is over. False: the user quits.
bool wait_for_keys(Screen& screen, const View& before, const View& now, Order& order,
                   std::chrono::nanoseconds interval, Context& context) {
    const uint64_t end_ns = kxfer_clock_ns() + static_cast<uint64_t>(interval.count());
    for (uint64_t ns; (ns = kxfer_clock_ns()) < end_ns;) {
        const auto key = screen.key(std::chrono::nanoseconds(end_ns - ns));
        if (key == 'q') return false;
        for (const OrderKey& one : order_keys)
            if (key == one.key) order = one.order;
        if (kxfer_clock_ns() >= end_ns) break;
        // Also after a signal, which may have changed the size, or stopped the program.
        context.out.answer(screen.picture(picture_of(before, now, order, screen.width())));
        if (context.out.write_error() != 0) return false;
    }
    return true;
}

Result run_screen(const TopOptions& options, const Session& session, Screen& screen, Context& context) {
    Order order = options.order;
    TRY_SET(View now, view_of(session));
    View before = now;
    for (uint64_t nr = 0;; nr++) {
        context.out.answer(screen.picture(picture_of(before, now, order, screen.width())));
        if (context.out.write_error() != 0 || (options.count != 0 && nr == options.count)) return exit_ok;
        if (!wait_for_keys(screen, before, now, order, interval_of(options), context)) return exit_ok;
        before = std::move(now);
        TRY_SET(now, view_of(session));
    }
}

Result run_top(const TopOptions& options, Context& context) {
    TRY_SET(auto session, open_session());
    const auto screen = context.out.draws() ? Screen::open() : nullptr;
    return screen ? run_screen(options, session, *screen, context) : run_lines(options, session, context);
}

} // namespace

void setup_top(CLI::App& app, Program& program) {
    const auto options = std::make_shared<TopOptions>();
    CLI::App& command =
        add_command(app, "top", "links and sessions with their rates, again and again", "kxfer top -i 2");
    command.add_option("-i,--interval", options->interval_seconds, "time between two pictures (default 1)")
        ->type_name("SECONDS")
        ->check(from_to(0.05, 3600.0));
    command.add_option("-c,--count", options->count, "end after so many intervals")
        ->type_name("N")
        ->check(from_to(1, 1000000000));
    command
        .add_option_function<std::string>(
            "--sort",
            [options](const std::string& name) {
                const auto* one = std::find_if(order_keys.begin(), order_keys.end(),
                                               [&](const auto& key) { return name == key.name; });
                if (one == order_keys.end())
                    throw CLI::ValidationError("--sort",
                                               fmt::format("'{}' is none of {}", name, order_names()));
                options->order = one->order;
            },
            "what links are sorted by: " + order_names() + " (default number)")
        ->type_name("KEY");
    on_run(command, program, options, run_top);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer ping PEER: READs of the built-in export @ping of a listening node, like
// ping(8). The link is opened once; each READ is timed as a round trip, and the
// bytes it brought are compared with the expected pattern.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/line/connect.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/ping_pattern.hpp"
#include "cli/transfer/quantile.hpp"

namespace kxfer::cli {

namespace {

struct PingOptions {
    Peer peer;
    uint64_t count = 0; // 0: until a signal
    double interval_seconds = 1;
    uint64_t size = 64;
    CommonOptions common;
};

struct Tally {
    uint64_t sent = 0;
    std::vector<double> times_ns; // of the READs that were answered
};

Record summary_of(const Remote& remote, const Tally& tally) {
    const uint64_t answered = tally.times_ns.size();
    const double lost = tally.sent == 0 ? 0
                                        : 100.0 * static_cast<double>(tally.sent - answered) /
                                              static_cast<double>(tally.sent);
    Record record;
    record.add("peer", remote.peer.text())
        .add("sent", tally.sent)
        .add("answered", answered)
        .add("lost_percent", Value(lost), Show::everywhere, "lost %");
    if (tally.times_ns.empty()) return record;
    std::vector<double> sorted = tally.times_ns;
    std::sort(sorted.begin(), sorted.end());
    const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
    record.add("min", Nanoseconds{sorted.front()})
        .add("avg", Nanoseconds{sum / static_cast<double>(answered)});
    add_quantile(record, "p50", quantile_ns(sorted, 50));
    add_quantile(record, "p99", quantile_ns(sorted, 99));
    return record.add("max", Nanoseconds{sorted.back()});
}

// One session, one target and a page or more to read into.
struct Pinger {
    const PingOptions& options;
    Context& context;
    Remote remote;
    Connection connection;
    Memory memory;
    Region region;
    Target target;
    Tally tally = {};

    std::span<std::byte> buffer() const { return memory.bytes().first(options.size); }

    // Opening the target again reconnects a broken link.
    void reopen() {
        target = Target();
        auto opened = connection.peer.open_target(remote.name, KXFER_RIGHT_READ, options.common.timeout());
        if (opened) target = std::move(*opened);
    }

    Expected<double> read_once() {
        if (!target) reopen();
        if (!target) return fail("no answer from", remote.peer.text(), ECONNRESET);
        std::fill(buffer().begin(), buffer().end(), std::byte{0});
        const uint64_t began = kxfer_clock_ns();
        const Job job = Job::read(region, 0, target, 0, options.size, tally.sent);
        const auto done = connection.session.run(job, options.common.timeout());
        const uint64_t took = kxfer_clock_ns() - began;
        if (!done) return tl::make_unexpected(done.error());
        if (!is_ping_pattern(buffer())) return fail("wrong bytes from", remote.text(), EBADMSG);
        return static_cast<double>(took);
    }

    void ping_once() {
        tally.sent++;
        Record record;
        record.add("seq", tally.sent).add("peer", remote.peer.text()).add("size", Bytes{options.size});
        const auto time = read_once();
        if (time) {
            tally.times_ns.push_back(*time);
            record.add("time", Nanoseconds{*time});
            context.out.event(record, fmt::format("{} from {}: seq={} time={}", human_bytes(options.size),
                                                  remote.peer.text(), tally.sent, human_nanoseconds(*time)));
            return;
        }
        if (time.error().number == ECONNRESET || time.error().number == EKEYREVOKED) target = Target();
        record.add("errno", time.error().name());
        context.out.event(record, fmt::format("no answer from {}: seq={} {} ({})", remote.peer.text(),
                                              tally.sent, time.error().reason(), time.error().name()));
    }

    void run() {
        const auto interval = std::chrono::nanoseconds(static_cast<int64_t>(options.interval_seconds * 1e9));
        for (;;) {
            ping_once();
            if (interrupted() || tally.sent == options.count || context.out.write_error() != 0) return;
            wait_events(-1, 0, interval);
            if (interrupted()) return;
        }
    }
};

tl::expected<Pinger, Failure> make_pinger(const PingOptions& options, Context& context) {
    Remote remote{options.peer, KXFER_PING_NAME};
    TRY_SET(auto connection, connect(options.peer, options.common));
    TRY_SET(auto target, open_target(connection, remote, KXFER_RIGHT_READ, options.common));
    TRY_SET(auto memory, Memory::allocate(KXFER_PING_SIZE));
    auto region = connection.session.add_region(memory.bytes(), KXFER_REGION_F_WRITE);
    if (!region) return failed(pin_error(region.error(), KXFER_PING_SIZE));
    return Pinger{options,           context,
                  std::move(remote), std::move(connection),
                  std::move(memory), std::move(*region),
                  std::move(target)};
}

Result run_ping(const PingOptions& options, Context& context) {
    catch_interrupts();
    TRY_SET(auto pinger, make_pinger(options, context));
    pinger.run();
    context.out.record(summary_of(pinger.remote, pinger.tally));
    return pinger.tally.times_ns.empty() ? exit_failed : exit_ok;
}

} // namespace

void setup_ping(CLI::App& app, Program& program) {
    const auto options = std::make_shared<PingOptions>();
    CLI::App& command = add_command(app, "ping", "is a peer there, and how far away? (READs of its @ping)",
                                    "kxfer ping -c 5 10.77.0.1");
    add_peer_option(command, "peer", options->peer, "HOST[:PORT]")->required();
    command.add_option("-c,--count", options->count, "how many (default: until Ctrl-C)")
        ->type_name("N")
        ->check(from_to(1, 1000000000));
    command.add_option("-i,--interval", options->interval_seconds, "pause between two (default 1)")
        ->type_name("SECONDS")
        ->check(from_to(0.0, 3600.0));
    CLI::Option* size =
        add_size_option(command, "-s,--size", options->size, "bytes to read, 1 to 64K (default 64)");
    size->check([](const std::string& text) {
        const auto bytes = parse_size(text);
        const bool fits = bytes && *bytes >= 1 && *bytes <= KXFER_PING_SIZE;
        return fits || !bytes ? std::string()
                              : fmt::format("'{}' is not within 1 to {}", text, KXFER_PING_SIZE);
    });
    add_via_option(command, options->common);
    add_common_options(command, options->common);
    on_run(command, program, options, run_ping);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/line/line.hpp"

#include <algorithm>
#include <cerrno>
#include <random>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/node/interrupt.hpp"

namespace kxfer::cli {

namespace {

using std::chrono::milliseconds;

// The module declares a silent link broken after --silence, 8 s by default, and up to the next
// keep-alive. A transfer that has stood still for --timeout waits for that, if it cannot be far away.
milliseconds silence_of(const CommonOptions& common) {
    const auto silence = common.patience.patience().silence;
    return silence.count() ? silence : milliseconds(8000);
}

milliseconds timeout_near_verdict(const CommonOptions& common) { return silence_of(common) * 5 / 8; }
milliseconds verdict(const CommonOptions& common) { return silence_of(common) * 3 / 4; }

// Jobs of a broken link end within this: the link's teardown ends them (kmod/link/lane.c).
constexpr milliseconds teardown(10000);

// An attempt that began before the network was back may wait for long: for its next message, or for
// an address that was not resolved. A new one does not.
constexpr milliseconds longest_attempt(2500);
constexpr milliseconds shortest_attempt(500);

constexpr milliseconds first_pause(100);
constexpr milliseconds longest_pause(2000);

// What connecting, or opening the export, may fail with while the peer comes back.
bool may_pass(int number) {
    switch (number) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRNOTAVAIL:
    case EADDRINUSE:
    case ENODEV:
    case ENOENT:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

// At random, so that many nodes do not come back to a peer at the same time.
milliseconds some_of(milliseconds pause) {
    static std::minstd_rand random(std::random_device{}());
    return milliseconds(std::uniform_int_distribution<int64_t>(pause.count() / 2, pause.count())(random));
}

std::string seconds_text(milliseconds time) {
    return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

} // namespace

Line::Line(Remote remote, CommonOptions common, Open open, Output& out, Owner owner, Connection connection,
           Target target)
    : remote_(std::move(remote)), common_(std::move(common)), open_(std::move(open)), out_(&out),
      owner_(owner), connection_(std::move(connection)), target_(std::move(target)) {
    // An attempt to connect again has less time than its jobs may wait afterwards.
    common_.loss = common_.timeout();
}

bool Line::is_break(int number) const {
    return number == ECONNRESET || number == ENODEV ||
           (number == EKEYREVOKED && owner_ == Owner::may_come_back);
}

tl::expected<Line, Failure> Line::open(const Remote& remote, const CommonOptions& common, Open open,
                                       Output& out, Owner owner) {
    // Of the addresses of a name each has its own --timeout, because one may be of no use.
    CommonOptions limited = common;
    if (!common.via.empty()) limited.until = Deadline(common.timeout());
    TRY_SET(auto connection, connect(remote.peer, limited));
    auto target = open(connection, limited);
    const bool broke =
        !target && (target.error().error.number == ECONNRESET || target.error().error.number == ENODEV);
    if (!target && !broke) return tl::make_unexpected(std::move(target.error()));
    Line line(remote, common, std::move(open), out, owner, std::move(connection),
              target ? std::move(*target) : Target());
    if (broke) {
        line.deadline_ = limited.until;
        TRY(line.connect_again(std::move(target.error())));
    } else {
        TRY(line.open_ways(limited.until));
    }
    return line;
}

const Target& Line::next_target() {
    turn_ = turn_ == ways_.size() ? 0 : turn_ + 1;
    return turn_ == 0 ? target_ : ways_[turn_ - 1].target;
}

// Each takes its share of the time at most: one that is silent leaves enough for the others. An address of
// --via may be that of another node.
tl::expected<void, Failure> Line::open_ways(const Deadline& deadline) {
    CommonOptions limited = common_;
    for (size_t first = 1; first <= common_.via.size(); first++) {
        const auto ways_left = static_cast<int64_t>(common_.via.size() - first + 1);
        limited.until = Deadline(time_until(deadline) / ways_left);
        TRY_SET(auto peer, connect_in(connection_.session, remote_.peer, limited, first));
        Connection connection{connection_.session, std::move(peer)};
        TRY_SET(auto target, open_(connection, limited));
        if (!target_.same_export(target))
            return failed(
                Error(common_.via[first - 1].text(), "does not lead to the same export as", 0,
                      "give only addresses of one node: --via",
                      fmt::format("it has another '{}' than {}", remote_.name, remote_.peer.text())));
        ways_.push_back({std::move(connection), std::move(target)});
    }
    return {};
}

tl::expected<void, Failure> Line::open_again(const Deadline& deadline) {
    CommonOptions limited = common_;
    limited.until = deadline;
    // In this order: a target is of its peer.
    ways_.clear();
    target_ = Target();
    connection_.peer = kxfer::Peer();
    TRY_SET(connection_.peer, connect_in(connection_.session, remote_.peer, limited));
    TRY_SET(target_, open_(connection_, limited));
    return open_ways(deadline);
}

tl::expected<void, Failure> Line::open_until(const Deadline& deadline) {
    const milliseconds timeout = common_.timeout();
    milliseconds pause = first_pause;
    for (;; pause = std::min(2 * pause, longest_pause)) {
        const milliseconds left = std::max(time_until(deadline), shortest_attempt);
        common_.timeout_seconds =
            std::chrono::duration<double>(std::min({timeout, left, longest_attempt})).count();
        auto opened = open_again(Deadline(left));
        common_.timeout_seconds = std::chrono::duration<double>(timeout).count();
        if (opened || !may_pass(opened.error().error.number)) return opened;
        if (time_until(deadline) < shortest_attempt) return opened;
        wait_events(-1, 0, some_of(pause));
        if (interrupted()) return opened;
    }
}

// Within --timeout of the break. Returns `broke` if that does not succeed.
tl::expected<void, Failure> Line::connect_again(Failure broke) {
    const uint64_t began = kxfer_clock_ns();
    breaks_++;
    if (deadline_.ns() == 0) deadline_ = Deadline(common_.timeout());
    out_->note(broke.error.number == EKEYREVOKED
                   ? fmt::format("{} ended: waiting for it to come back", remote_.text())
                   : fmt::format("the link to {} broke: connecting again", remote_.peer.text()));
    auto opened = open_until(deadline_);
    if (!opened) {
        if (!interrupted())
            broke.error.hint += fmt::format("\ntried to connect again in vain for {}: {}",
                                            seconds_text(milliseconds((kxfer_clock_ns() - began) / 1000000)),
                                            opened.error().error.reason());
        return tl::make_unexpected(std::move(broke));
    }
    out_->note(fmt::format("connected again after {}",
                           seconds_text(milliseconds((kxfer_clock_ns() - began) / 1000000))));
    return {};
}

// Of several paths one may be silent: only the verdict says so, and what went over it then waits for
// another one. If there is none, that ends after `loss`.
milliseconds Line::longest_standstill(bool broke) const {
    if (common_.via.empty()) return broke ? teardown : verdict(common_);
    return silence_of(common_) * 5 / 4 + teardown + common_.timeout();
}

tl::expected<void, Failure> Line::restore(Failure broke, Pipeline& pipeline) {
    const bool near_verdict = common_.timeout() >= timeout_near_verdict(common_) || !common_.via.empty();
    const bool stands_still = broke.error.number == ETIMEDOUT && near_verdict && !interrupted();
    if (!is_break(broke.error.number) && !stands_still) return tl::make_unexpected(std::move(broke));
    const auto drained = pipeline.drain(longest_standstill(!stands_still));
    if (!drained) return tl::make_unexpected(std::move(broke));
    // The jobs have ended well meanwhile.
    if (stands_still && !pipeline.has_failed()) return {};
    return connect_again(std::move(broke));
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// The latency of a READ is from its submission to its completion as the kernel took them, so it has
// the wait behind the READs before it.
#include "cli/measure/probe.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/try.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/transfer/ping_pattern.hpp"
#include "cli/transfer/quantile.hpp"

namespace kxfer::cli {

namespace {

constexpr uint64_t most_memory = 1 << 20;
constexpr uint64_t least_operations = 10;
constexpr size_t most_at_once = 64;

std::chrono::nanoseconds now() { return std::chrono::nanoseconds(kxfer_clock_ns()); }

} // namespace

tl::expected<Probe, Failure> Probe::open(const Peer& peer, const CommonOptions& common) {
    Remote remote{peer, KXFER_PING_NAME};
    TRY_SET(auto connection, connect(peer, common));
    TRY_SET(auto target, open_target(connection, remote, KXFER_RIGHT_READ, common));
    // A user may be allowed to pin only a little.
    for (uint64_t length = most_memory;; length /= 2) {
        auto memory = Memory::allocate(length);
        if (!memory) return failed(std::move(memory.error()));
        auto region = connection.session.add_region(memory->bytes(), KXFER_REGION_F_WRITE);
        if (region)
            return Probe(std::move(remote), common, std::move(connection), std::move(*memory),
                         std::move(*region), std::move(target));
        if (region.error().number != ENOMEM || length == KXFER_PING_SIZE)
            return failed(pin_error(std::move(region.error()), length));
    }
}

Job Probe::job(uint64_t size, uint64_t slot) const {
    return Job::read(region_, slot * size, target_, 0, size, slot);
}

tl::expected<Load, Failure> Probe::read(uint64_t size, unsigned depth, std::chrono::nanoseconds time) {
    auto& session = connection_.session;
    depth = static_cast<unsigned>(std::min<uint64_t>(depth, memory_.bytes().size() / size));
    const auto room = memory_.bytes().first(depth * size);
    std::array<Completion, most_at_once> ended;
    std::vector<double> times;
    std::vector<Job> next;
    unsigned in_flight = 0;

    std::fill(room.begin(), room.end(), std::byte{0});
    for (unsigned slot = 0; slot < depth; slot++) next.push_back(job(size, slot));
    const auto begun = now();
    for (;;) {
        for (std::span<const Job> left = next; !left.empty();) {
            const auto accepted = session.submit(left);
            if (!accepted) return tl::make_unexpected(failure(accepted.error()));
            left = left.subspan(*accepted);
            in_flight += *accepted;
        }
        next.clear();
        if (in_flight == 0) break;
        const auto some = session.reap(ended, 1, Deadline(common_.timeout()));
        if (!some) return tl::make_unexpected(failure(some.error()));
        const bool over = now() - begun >= time && times.size() + in_flight >= least_operations;
        for (const Completion& one : *some) {
            in_flight--;
            if (!one.ok()) return tl::make_unexpected(failure(Error("a READ failed of", "", -one.status)));
            times.push_back(static_cast<double>(one.took().count()));
            if (!over && !interrupted()) next.push_back(job(size, one.user_data));
        }
    }
    Load load{size, depth, times.size(), static_cast<double>((now() - begun).count())};
    if (interrupted()) return tl::make_unexpected(interrupt_failure("cannot measure", remote_.text()));
    for (unsigned slot = 0; slot < depth; slot++)
        if (!is_ping_pattern(room.subspan(slot * size, size)))
            return failed(Error("wrong bytes from", remote_.text(), EBADMSG));
    std::sort(times.begin(), times.end());
    load.p50_ns = quantile_ns(times, 50);
    load.longest_ns = times.back();
    return load;
}

tl::expected<kxfer_info_link, Failure> Probe::link() const {
    TRY_SET(const auto links, connection_.session.list<kxfer_info_link>(KXFER_INFO_LINKS));
    for (const auto& link : links)
        if (link.id == connection_.peer.link()) return link;
    return failed(Error("the link is gone", remote_.peer.text(), ECONNRESET));
}

} // namespace kxfer::cli

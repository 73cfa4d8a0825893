// SPDX-License-Identifier: MIT
#include "bench/engines/kernel_path.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point begun) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begun).count();
}

template <typename Record, typename Wanted>
const Record* find(const std::vector<Record>& records, Wanted wanted) {
    const auto found = std::find_if(records.begin(), records.end(), wanted);
    return found == records.end() ? nullptr : &*found;
}

} // namespace

tl::expected<Peer, Error> open_peer(Session& session, const PathOptions& options) {
    PeerOptions how;
    how.local = options.local;
    how.device = options.device;
    how.key = options.key;
    how.tos = options.tos;
    // Only a dedicated connection can be direct; the link itself is polled as usual.
    how.context = options.context == KXFER_CONTEXT_DIRECT ? uint32_t{KXFER_CONTEXT_POLLED} : options.context;
    how.timeout = options.timeout;
    how.patience = options.patience;
    how.in_flight_kib = options.in_flight_kib;
    return session.connect(options.peer, how);
}

tl::expected<Target, Error> open_beside(Peer& peer, const PathOptions& options, const std::string& name,
                                        uint32_t rights) {
    auto target = peer.open_target(name, rights, options.timeout);
    if (!target) target.error().on = to_string(options.peer) + '/' + name;
    return target;
}

tl::expected<kxfer_info_link, Error> link_of(Session& session, const Peer& peer, const PathOptions& options) {
    TRY_SET(const auto links, session.list<kxfer_info_link>(KXFER_INFO_LINKS));
    const auto* link = find(links, [&](const auto& one) { return one.id == peer.link(); });
    if (!link) return tl::unexpected(Error("the link is gone", to_string(options.peer), ECONNRESET));
    return *link;
}

tl::expected<Connection, Error> connection_of(const Session& session, uint64_t link) {
    TRY_SET(const auto links, session.list<kxfer_info_link>(KXFER_INFO_LINKS));
    TRY_SET(const auto lanes, session.list<kxfer_info_lane>(KXFER_INFO_LANES));
    const auto* info = find(links, [&](const auto& one) { return one.id == link; });
    if (!info) return Connection();
    Connection connection{0, info->tos, gid_type_name(info->gid_type)};
    for (const auto& lane : lanes)
        if (lane.link == link && lane.index && lane.path_mtu)
            connection.path_mtu =
                connection.path_mtu ? std::min<uint32_t>(connection.path_mtu, lane.path_mtu) : lane.path_mtu;
    return connection;
}

std::string gid_type_name(uint32_t type) {
    static constexpr std::array names = {"IB", "RoCE v1", "RoCE v2"};
    return type < names.size() ? names.at(type) : "";
}

KernelPath::KernelPath(const PathOptions& options, const Memory& memory, Session session)
    : options_(options), local_bytes_(memory.length()), peer_(to_string(options_.peer)),
      session_(std::move(session)) {}

tl::expected<KernelPath, Error> KernelPath::open(const PathOptions& options, const Memory& memory) {
    TRY_SET(auto session, Session::open());
    KernelPath path(options, memory, std::move(session));
    TRY(path.connect(memory));
    TRY(path.find_limits());
    return path;
}

tl::expected<void, Error> KernelPath::connect(const Memory& memory) {
    TRY(session_.set_wait(options_.wait_flags));
    const auto begun = Clock::now();
    auto region = session_.add_region(memory.bytes(), KXFER_REGION_F_WRITE);
    registration_ = {memory.length(), nanoseconds_since(begun), {}};
    if (!region) {
        region.error().hint = "raise the limit of locked memory: ulimit -l unlimited";
        return tl::unexpected(region.error());
    }
    region_ = std::move(*region);

    TRY_SET(peer_handle_, open_peer(session_, options_));

    TRY(open_target());
    if (target_.length() < memory.length())
        return tl::unexpected(
            Error("the export is too short", peer_ + '/' + options_.export_name, ERANGE,
                  "a longer one, or a smaller --size or --depth",
                  fmt::format("it has {} bytes, the workload needs {}", target_.length(), memory.length())));
    return {};
}

tl::expected<Target, Error> KernelPath::open_timed(uint32_t rights) {
    const auto begun = Clock::now();
    auto target = open_another(options_.export_name, rights);
    registration_.grant_ns = nanoseconds_since(begun);
    return target;
}

tl::expected<void, Error> KernelPath::open_target() {
    const uint32_t rights = KXFER_RIGHT_READ | (options_.writable ? KXFER_RIGHT_WRITE : 0);
    auto target = open_timed(rights | (options_.atomic ? KXFER_RIGHT_ATOMIC : 0));
    // Atomics are not granted, or the device has none.
    if (!target && options_.atomic &&
        (target.error().number == EACCES || target.error().number == EOPNOTSUPP))
        target = open_timed(rights);
    if (!target) return tl::unexpected(target.error());
    target_ = std::move(*target);
    return {};
}

tl::expected<void, Error> KernelPath::find_limits() {
    TRY_SET(const auto query, session_.query());
    TRY_SET(const auto link, link_of(session_, peer_handle_, options_));
    TRY_SET(const auto lanes, session_.list<kxfer_info_lane>(KXFER_INFO_LANES));
    TRY_SET(const auto devices, session_.list<kxfer_info_device>(KXFER_INFO_DEVICES));

    device_ = text_of(link.device);
    TRY_SET(connection_, connection_of(session_, link.id));
    const auto* device = find(devices, [&](const auto& d) { return text_of(d.name) == device_; });
    if (!device) return tl::unexpected(Error("the device is gone", device_, ENODEV));

    features_ = query.features;
    max_jobs_ = query.max_jobs;
    max_submit_ = query.max_jobs_per_submit;
    iwarp_ = (device->flags & KXFER_DEVICE_IWARP) != 0;
    eager_ = (link.flags & KXFER_LINK_EAGER) != 0;
    atomics_ = (device->flags & KXFER_DEVICE_ATOMIC) != 0;
    // Two pages less than the device's limit, as in the module: memory may begin within a page.
    max_registration_ = std::max(device->max_fast_reg_pages, 2U) - 2;
    max_registration_ *= page_bytes;
    for (const auto& lane : lanes) {
        if (lane.link != link.id || lane.index == 0) continue;
        credits_ = std::max(credits_, lane.max_credits);
        write_sges_ = std::max(1U, lane.max_send_sge);
        max_inline_ = std::max(max_inline_, lane.max_inline);
    }
    read_sges_ = iwarp_ ? 1 : std::clamp(device->max_sge_rd, 1U, write_sges_);
    return {};
}

unsigned KernelPath::count_requests(const Workload& workload, const Requests& how) const {
    // Pages are scattered: each needs an SGE of its own.
    const auto pages = static_cast<unsigned>(workload.stride() / page_bytes);
    const unsigned sges = max_sges(workload.operation);

    if (!workload.moves()) return how.extra;
    if (!how.registered) return (pages + sges - 1) / sges + how.extra;
    // A long operation is cut where the peer's registrations end, which are as long as ours.
    const uint64_t cuts = 16 * workload.stride() / std::max(max_registration_, page_bytes);
    return 1 + static_cast<unsigned>(cuts) + how.extra;
}

std::string KernelPath::no_atomics() const {
    if (iwarp_) return fmt::format("{}: iWARP has no atomic operations", device_);
    if (!atomics_) return fmt::format("{}: the device has no atomic operations", device_);
    if (!(target_.rights() & KXFER_RIGHT_ATOMIC))
        return fmt::format(
            "{} grants no atomic operations: kxfer serve --atomic does, on a device that has them", on());
    return "";
}

Parameters KernelPath::parameters(const Workload& workload, const Requests& how) const {
    const bool one_each = !how.registered && max_sges(workload.operation) == 1;
    Parameters parameters;

    parameters.local_bytes = local_bytes_;
    parameters.local_layout = Memory::layout();
    // On iWARP a READ needs an STag for its sink.
    parameters.local_registration = iwarp_ && workload.operation == Operation::read ? local_each_request
                                    : is_inline(workload)                           ? local_in_request
                                                                                    : local_lkey;
    parameters.remote_bytes = target_.length();
    parameters.remote_registration = options_.writable ? standing_writable : standing_readable;
    // At most one operation in sixteen lies across two of the peer's registrations and needs one
    // more request; an operation with a request for each page is cut there anyway.
    const unsigned credits = one_each || !workload.moves() ? credits_ : credits_ * 15 / 16;
    parameters.max_depth = std::min(max_jobs_, credits / count_requests(workload, how));
    parameters.signal_every = options_.signal_every(workload);
    parameters.write_success = iwarp_ ? write_handed_to_tcp : write_acknowledged;
    parameters.device = device_;
    parameters.connection = connection_;
    return parameters;
}

} // namespace kxfer::bench

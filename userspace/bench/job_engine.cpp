// SPDX-License-Identifier: MIT
#include "bench/job_engine.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace kxfer::bench {

namespace {

// As many as one SUBMIT hands back; more wait for the next.
constexpr unsigned max_completions = 4096;

template <typename Record, typename Wanted>
const Record* find(const std::vector<Record>& records, Wanted wanted) {
    const auto found = std::find_if(records.begin(), records.end(), wanted);
    return found == records.end() ? nullptr : &*found;
}

} // namespace

JobEngine::JobEngine(JobOptions options, const Memory& memory, Session session)
    : options_(std::move(options)), local_bytes_(memory.length()), peer_(to_string(options_.peer)),
      session_(std::move(session)), completions_(max_completions) {}

tl::expected<std::unique_ptr<JobEngine>, Error> JobEngine::connect(const JobOptions& options,
                                                                   const Memory& memory) {
    auto session = Session::open();
    if (!session) return tl::unexpected(session.error());
    std::unique_ptr<JobEngine> engine(new JobEngine(options, memory, std::move(*session)));
    if (auto opened = engine->open(memory); !opened) return tl::unexpected(opened.error());
    if (auto found = engine->find_limits(); !found) return tl::unexpected(found.error());
    return engine;
}

tl::expected<void, Error> JobEngine::open(const Memory& memory) {
    if (auto set = session_.set_wait(options_.wait_flags); !set) return tl::unexpected(set.error());
    if (options_.ring)
        if (auto opened = session_.open_ring(max_completions); !opened) return tl::unexpected(opened.error());
    auto region = session_.add_region(memory.bytes(), KXFER_REGION_F_WRITE);
    if (!region) {
        region.error().hint = "raise the limit of locked memory: ulimit -l unlimited";
        return tl::unexpected(region.error());
    }
    region_ = std::move(*region);

    PeerOptions how;
    how.local = options_.local;
    how.device = options_.device;
    how.context = options_.context;
    how.timeout = options_.timeout;
    auto peer = session_.connect(options_.peer, how);
    if (!peer) return tl::unexpected(peer.error());
    peer_handle_ = std::move(*peer);

    const uint32_t rights = KXFER_RIGHT_READ | (options_.writable ? KXFER_RIGHT_WRITE : 0);
    auto target = peer_handle_.open_target(options_.export_name, rights, options_.timeout);
    if (!target) {
        target.error().on = peer_ + '/' + options_.export_name;
        return tl::unexpected(target.error());
    }
    target_ = std::move(*target);
    if (target_.length() < memory.length())
        return tl::unexpected(
            Error("the export is too short", peer_ + '/' + options_.export_name, ERANGE,
                  "a longer one, or a smaller --size or --depth",
                  fmt::format("it has {} bytes, the workload needs {}", target_.length(), memory.length())));
    return {};
}

// What the link's device and lanes let through at once.
tl::expected<void, Error> JobEngine::find_limits() {
    const auto query = session_.query();
    if (!query) return tl::unexpected(query.error());
    const auto links = session_.list<kxfer_info_link>(KXFER_INFO_LINKS);
    if (!links) return tl::unexpected(links.error());
    const auto lanes = session_.list<kxfer_info_lane>(KXFER_INFO_LANES);
    if (!lanes) return tl::unexpected(lanes.error());
    const auto devices = session_.list<kxfer_info_device>(KXFER_INFO_DEVICES);
    if (!devices) return tl::unexpected(devices.error());

    const auto* link = find(*links, [&](const auto& l) { return l.id == peer_handle_.link(); });
    if (!link) return tl::unexpected(Error("the link is gone", peer_, ECONNRESET));
    device_ = text_of(link->device);
    const auto* device = find(*devices, [&](const auto& d) { return text_of(d.name) == device_; });
    if (!device) return tl::unexpected(Error("the device is gone", device_, ENODEV));

    max_jobs_ = query->max_jobs;
    iwarp_ = (device->flags & KXFER_DEVICE_IWARP) != 0;
    for (const auto& lane : *lanes) {
        if (lane.link != link->id || lane.index == 0) continue;
        credits_ = std::max(credits_, lane.max_credits);
        write_sges_ = std::max(1U, lane.max_send_sge);
    }
    read_sges_ = iwarp_ ? 1 : std::clamp(device->max_sge_rd, 1U, write_sges_);
    return {};
}

Parameters JobEngine::parameters(const Workload& workload) const {
    Parameters parameters;
    // Scattered pages: each is an SGE of its own.
    const auto pages = static_cast<unsigned>(workload.stride() / page_bytes);
    const unsigned sges = workload.operation == Operation::read ? read_sges_ : write_sges_;
    const unsigned requests = (pages + sges - 1) / sges;

    parameters.local_bytes = local_bytes_;
    parameters.local_layout = Memory::layout();
    parameters.remote_bytes = target_.length();
    parameters.remote_registration = options_.writable ? standing_writable : standing_readable;
    parameters.max_depth = std::min(max_jobs_, credits_ / requests);
    parameters.signal_every = 1; // each job has a completion
    parameters.write_success = iwarp_ ? write_handed_to_tcp : write_acknowledged;
    parameters.device = device_;
    return parameters;
}

tl::expected<unsigned, Error> JobEngine::step(std::span<const Transfer> transfers, unsigned wait) {
    unsigned reaped = 0;
    if (!transfers.empty()) {
        auto submitted = submit(transfers, wait);
        if (!submitted) return submitted;
        reaped = *submitted;
    }
    while (reaped < wait) {
        auto more = reap(wait - reaped);
        if (!more) return more;
        reaped += *more;
    }
    return reaped;
}

tl::expected<unsigned, Error> JobEngine::submit(std::span<const Transfer> transfers, unsigned wait) {
    kxfer_submit args = {};

    jobs_.clear();
    for (const Transfer& transfer : transfers) {
        const uint64_t at = transfer.offset;
        jobs_.push_back(transfer.operation == Operation::read
                            ? Job::read(region_, at, target_, at, transfer.length, at)
                            : Job::write(region_, at, target_, at, transfer.length, at));
        if (iwarp_ && transfer.operation == Operation::write) jobs_.back().flags = KXFER_JOB_F_LOCAL_ONLY;
    }
    args.jobs = reinterpret_cast<uintptr_t>(jobs_.data());
    args.nr_jobs = static_cast<uint32_t>(jobs_.size());
    in_flight_ += args.nr_jobs;
    if (!options_.ring) {
        args.completions = reinterpret_cast<uintptr_t>(completions_.data());
        // No more room than can be filled: the kernel looks at all of it.
        args.nr_completions = std::min(in_flight_, max_completions);
    }
    args.wait = wait;
    args.deadline_ns = wait ? Deadline(options_.timeout).ns() : 0;
    const int ret = kxfer_job_submit_wait(session_.get(), &args);
    if (ret < 0) return tl::unexpected(Error("cannot submit jobs to", peer_, -ret));
    if (args.error != 0)
        return tl::unexpected(
            Error(fmt::format("only {} of {} jobs were accepted for", args.accepted, jobs_.size()), peer_,
                  static_cast<int>(args.error)));
    const auto taken =
        options_.ring ? static_cast<unsigned>(session_.take(completions_).size()) : args.reaped;
    if (auto fine = check(taken); !fine) return tl::unexpected(fine.error());
    in_flight_ -= taken;
    return taken;
}

// What a REAP gives, or what is in the ring after one that waited.
tl::expected<std::span<const Completion>, Error> JobEngine::take(unsigned wait) {
    if (!options_.ring) return session_.reap(completions_, wait, options_.timeout);
    if (auto waited = session_.wait(wait, options_.timeout); !waited) return tl::unexpected(waited.error());
    return session_.take(completions_);
}

tl::expected<unsigned, Error> JobEngine::reap(unsigned wait) {
    const auto reaped = take(wait);

    if (!reaped && reaped.error().number == EINTR) return 0;
    if (!reaped)
        return tl::unexpected(Error("no completion from", peer_, reaped.error().number,
                                    "is it still there? try: kxfer link list, or a longer --timeout"));
    if (reaped->empty()) return tl::unexpected(Error("completions are missing from", peer_, EPROTO));
    const auto count = static_cast<unsigned>(reaped->size());
    if (auto fine = check(count); !fine) return tl::unexpected(fine.error());
    in_flight_ -= count;
    return count;
}

tl::expected<void, Error> JobEngine::check(unsigned count) const {
    for (unsigned i = 0; i < count; i++)
        if (completions_[i].status != 0)
            return tl::unexpected(Error("a job failed on", peer_ + '/' + options_.export_name,
                                        -completions_[i].status, "see: kxfer link list, dmesg"));
    return {};
}

} // namespace kxfer::bench

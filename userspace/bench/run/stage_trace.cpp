// SPDX-License-Identifier: MIT
//
// Each tracepoint and CPU has its own ring, so a record needs only a header and a time.
// With the filter the kernel does not record the jobs of other processes.

#include "bench/run/stage_trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

constexpr uint64_t traced_operations = 512;

constexpr std::array mounts = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

// The error of perf_event_open(2) or of the calls after it.
Error trace_error(const std::string& on, int number) {
    Error error(StageTrace::cannot_trace, on, number);

    switch (number) {
    case EACCES:
    case EPERM:
        error.why = "the kernel lets only privileged processes record trace points";
        error.hint = "run it as root, or give kxfer CAP_PERFMON";
        break;
    case ENOSYS:
        error.why = "this kernel has no perf events";
        error.hint = "use a kernel with CONFIG_PERF_EVENTS";
        break;
    case EMFILE:
        error.hint = "raise the limit of open files: ulimit -n 4096";
        break;
    default:
        error.hint = "see perf_event_open(2)";
        break;
    }
    return error;
}

std::string id_file(const char* mount, const char* point) {
    return fmt::format("{}/events/kxfer/{}/id", mount, point);
}

// The reason why the module's trace point cannot be found.
Error unseen_error(const char* name) {
    bool hidden = false, mounted = false;

    for (const char* mount : mounts) {
        hidden = hidden || (access(id_file(mount, name).c_str(), R_OK) != 0 && errno == EACCES);
        mounted = mounted || access(fmt::format("{}/events", mount).c_str(), F_OK) == 0;
    }
    if (hidden)
        return Error(StageTrace::cannot_trace, name, EACCES, "run it as root",
                     "this process may not read the trace points in /sys/kernel/tracing");
    if (!mounted)
        return Error(StageTrace::cannot_trace, name, ENOENT,
                     "as root: mount -t tracefs nodev /sys/kernel/tracing", "tracefs is not mounted");
    return Error(StageTrace::cannot_trace, name, ENOENT,
                 "use a kernel with CONFIG_PERF_EVENTS, and kxfer.ko built for it",
                 "the kernel has no trace points of kxfer");
}

// 0: there is no such tracepoint.
uint64_t event_id(const char* name) {
    uint64_t id = 0;

    for (const char* mount : mounts) {
        std::ifstream file(id_file(mount, name));
        if (file >> id) break;
    }
    return id;
}

perf_event_attr attributes_of(uint64_t id) {
    perf_event_attr attributes{};

    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof(attributes);
    attributes.config = id;
    attributes.sample_period = 1;
    attributes.sample_type = PERF_SAMPLE_TIME;
    attributes.disabled = 1;
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;
    return attributes;
}

uint64_t nanoseconds(Observer::Clock::time_point time) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

class Spans : public Observer {
  public:
    void completed(Clock::time_point, Clock::time_point handed_in, Clock::time_point seen) override {
        spans.push_back({nanoseconds(handed_in), nanoseconds(seen)});
    }

    std::vector<JobSpan> spans;
};

} // namespace

class StageTrace::Ring {
  public:
    struct Record {
        perf_event_header header;
        uint64_t time;
    };
    static constexpr size_t bytes = max_events * sizeof(Record);

    // Takes ownership of the file descriptor.
    explicit Ring(int fd) : fd_(fd) {
        void* at = mmap(nullptr, page() + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) at_ = static_cast<std::byte*>(at);
    }
    Ring(Ring&& other) noexcept : fd_(std::exchange(other.fd_, -1)), at_(std::exchange(other.at_, nullptr)) {}
    Ring& operator=(Ring&&) = delete;
    ~Ring() {
        if (at_) munmap(at_, page() + bytes);
        if (fd_ >= 0) close(fd_);
    }

    bool is_mapped() const { return at_ != nullptr; }
    int fd() const { return fd_; }

    // The ring is never emptied, so what it holds begins at its first byte and does not wrap.
    void add_to(std::vector<uint64_t>& times) const {
        const auto* control = reinterpret_cast<const perf_event_mmap_page*>(at_);
        const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
        for (uint64_t at = 0; at + sizeof(perf_event_header) <= std::min<uint64_t>(head, bytes);) {
            const auto* record = reinterpret_cast<const Record*>(at_ + page() + at);
            if (record->header.size < sizeof(perf_event_header)) break;
            if (record->header.type == PERF_RECORD_SAMPLE) times.push_back(record->time);
            at += record->header.size;
        }
    }

  private:
    static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

    int fd_;
    std::byte* at_ = nullptr;
};

StageTrace::StageTrace() = default;
StageTrace::StageTrace(StageTrace&&) noexcept = default;
StageTrace::~StageTrace() = default;

tl::expected<void, Error> StageTrace::add(size_t point) {
    const char* name = stage_points[point];
    const auto filter = fmt::format("pid == {}", getpid());
    auto attributes = attributes_of(event_id(name));

    if (attributes.config == 0) return tl::unexpected(unseen_error(name));
    for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        const int fd = static_cast<int>(
            syscall(SYS_perf_event_open, &attributes, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC));
        if (fd < 0 && errno == ENODEV) continue; // not online
        if (fd < 0) return tl::unexpected(trace_error(name, errno));
        Ring ring(fd);
        if (!ring.is_mapped() || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0)
            return tl::unexpected(trace_error(name, errno));
        rings_[point].push_back(std::move(ring));
    }
    return {};
}

tl::expected<StageTrace, Error> StageTrace::open() {
    StageTrace trace;

    for (size_t point = 0; point < stage_points.size(); point++) TRY(trace.add(point));
    return trace;
}

void StageTrace::start() {
    for (const auto& cpus : rings_)
        for (const auto& ring : cpus) ioctl(ring.fd(), PERF_EVENT_IOC_ENABLE, 0);
}

StageEvents StageTrace::stop() {
    StageEvents events;

    for (const auto& cpus : rings_)
        for (const auto& ring : cpus) ioctl(ring.fd(), PERF_EVENT_IOC_DISABLE, 0);
    for (size_t point = 0; point < events.size(); point++) {
        for (const auto& ring : rings_[point]) ring.add_to(events[point]);
        std::sort(events[point].begin(), events[point].end());
    }
    return events;
}

tl::expected<Stages, Error> trace_stages(Engine& engine, const Workload& workload, uint64_t* operations) {
    Spans spans;
    Limits limits{traced_operations, std::chrono::seconds(10)};

    limits.observer = &spans;
    TRY_SET(auto trace, StageTrace::open());
    trace.start();
    auto block = engine.run_block(workload, Mode::single, limits);
    const auto events = trace.stop();
    if (!block) return tl::unexpected(block.error());
    *operations = block->operations;
    auto stages = find_stages(spans.spans, events);
    if (stages.total.count() == 0)
        return tl::unexpected(Error(StageTrace::cannot_trace, "", 0, "", "no job was seen in all of them"));
    return stages;
}

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
#include "cli/observe/openmetrics.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/node/file.hpp"
#include "cli/node/latency.hpp"
#include "cli/transfer/link_record.hpp"

namespace kxfer::cli {

namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '\n') {
            result += "\\n";
            continue;
        }
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

std::string labels_text(const Labels& labels) {
    std::string text;
    for (const auto& [name, value] : labels)
        text += fmt::format("{}{}=\"{}\"", text.empty() ? '{' : ',', name, escaped(value));
    return text.empty() ? text : text + '}';
}

// All samples of a family stand together, after its TYPE and HELP.
class Writer {
  public:
    explicit Writer(MetricsFormat format) : format_(format) {}

    // name: without _total.
    void counter(const std::string& name, const std::string& help) {
        begin(name, "counter", help, name + "_total");
    }
    void gauge(const std::string& name, const std::string& help) { begin(name, "gauge", help, name); }

    void histogram(const std::string& name, const std::string& help) { begin(name, "histogram", help, name); }

    template <typename Number> void sample(Number value, const Labels& labels = {}) {
        text_ += fmt::format("{}{} {}\n", sample_, labels_text(labels), value);
    }

    // end: what begin() named, and what a sample of a histogram adds to it.
    template <typename Number> void sample_of(const char* end, Number value, const Labels& labels) {
        text_ += fmt::format("{}{}{} {}\n", sample_, end, labels_text(labels), value);
    }

    std::string finish() { return format_ == MetricsFormat::openmetrics ? text_ + "# EOF\n" : text_; }

  private:
    void begin(const std::string& name, const char* type, const std::string& help,
               const std::string& sample) {
        const std::string& family = format_ == MetricsFormat::openmetrics ? name : sample;
        text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, help, family, type);
        sample_ = sample;
    }

    MetricsFormat format_;
    std::string sample_;
    std::string text_;
};

std::string in_words(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

void add_counters(Writer& out, const View& view) {
    for (const kxfer_info_counter& counter : view.counters) {
        const std::string name = text_of(counter.name);
        const std::string help = fmt::format("Counter {} of the module: {}.", name, in_words(name));
        if (is_gauge(name))
            out.gauge("kxfer_" + name, help);
        else
            out.counter("kxfer_" + name, help);
        out.sample(counter.value);
    }
}

Labels labels_of(const kxfer_info_link& link) {
    return {{"link", std::to_string(link.id)},
            {"remote", to_string(link.remote)},
            {"device", text_of(link.device)},
            {"role", link_role(link)}};
}

void add_links(Writer& out, const View& view) {
    std::vector<const kxfer_info_link*> seen; // whose bytes this user may see
    for (const kxfer_info_link& link : view.links)
        if (shows_all(link)) seen.push_back(&link);
    if (view.links.empty()) return;
    out.counter("kxfer_link_bytes_read", "Payload that READs brought here by this link.");
    for (const auto* link : seen) out.sample(link->bytes_read, labels_of(*link));
    out.counter("kxfer_link_bytes_written", "Payload that WRITEs took to the peer by this link.");
    for (const auto* link : seen) out.sample(link->bytes_written, labels_of(*link));
    out.counter("kxfer_link_work_requests", "Work requests posted on the data lanes of this link.");
    for (const auto* link : seen) out.sample(work_requests_of(view, link->id), labels_of(*link));
    out.gauge("kxfer_link_jobs", "Jobs queued or posted on this link.");
    for (const auto* link : seen) out.sample(link->nr_jobs, labels_of(*link));
    out.gauge("kxfer_link_live", "1 if jobs flow on this link, 0 while it is made or closed.");
    for (const auto& link : view.links) out.sample(link.state == KXFER_LINK_LIVE ? 1 : 0, labels_of(link));
    out.gauge("kxfer_link_rtt_seconds", "Round-trip time of the last keep-alive of this link.");
    for (const auto& link : view.links)
        if (link.rtt_ns) out.sample(static_cast<double>(link.rtt_ns) / 1e9, labels_of(link));
}

Labels with(Labels labels, const char* name, const std::string& value) {
    labels.emplace_back(name, value);
    return labels;
}

// The buckets of the module are four an octave; here each octave is one.
void add_histogram(Writer& out, const Latency& latency, const Labels& labels) {
    uint64_t jobs = 0;
    for (size_t i = 0; i < latency.buckets.size(); i++) {
        jobs += latency.buckets.at(i);
        if (i % 4 != 3) continue;
        const uint64_t end = bucket_end_ns(i);
        const std::string text = end ? fmt::format("{}", static_cast<double>(end) / 1e9) : "+Inf";
        out.sample_of("_bucket", jobs, with(labels, "le", text));
    }
    out.sample_of("_sum", static_cast<double>(latency.sum_ns) / 1e9, labels);
    out.sample_of("_count", jobs, labels);
}

// A link without jobs has no series.
void add_latencies(Writer& out, const View& view) {
    const auto for_each = [&view](auto&& use) {
        for (const kxfer_info_link& link : view.links)
            for (const uint32_t op : counted_ops()) {
                const Latency latency = latency_of(view.latencies, link.id, op);
                if (latency.jobs() || latency.failed) use(latency, with(labels_of(link), "op", op_name(op)));
            }
    };
    if (view.latencies.empty()) return;
    out.histogram("kxfer_link_job_seconds", "Time of the jobs of this link that succeeded, by op.");
    for_each([&](const Latency& latency, const Labels& labels) { add_histogram(out, latency, labels); });
    out.counter("kxfer_link_jobs_failed", "Jobs of this link that ended with an error, by op.");
    for_each([&](const Latency& latency, const Labels& labels) { out.sample(latency.failed, labels); });
}

void add_sessions(Writer& out, const View& view) {
    const auto labels_of = [](const kxfer_info_session& session) {
        return Labels{{"session", std::to_string(session.id)},
                      {"pid", std::to_string(session.pid)},
                      {"uid", std::to_string(session.uid)}};
    };
    if (view.sessions.empty()) return;
    out.gauge("kxfer_session_jobs", "Jobs of this session in flight.");
    for (const auto& session : view.sessions) out.sample(session.nr_jobs, labels_of(session));
    out.gauge("kxfer_session_unread_completions", "Completions that this session has not read yet.");
    for (const auto& session : view.sessions) out.sample(session.nr_done, labels_of(session));
    out.gauge("kxfer_session_pinned_bytes", "Memory that this session has pinned.");
    for (const auto& session : view.sessions) out.sample(session.pinned_bytes, labels_of(session));
}

void add_listeners(Writer& out, const View& view) {
    const auto labels_of = [](const kxfer_info_listener& listener) {
        return Labels{{"listener", std::to_string(listener.id)}, {"address", to_string(listener.addr)}};
    };
    if (view.listeners.empty()) return;
    out.counter("kxfer_listener_accepted", "Links that this listener accepted.");
    for (const auto& listener : view.listeners) out.sample(listener.nr_accepted, labels_of(listener));
    out.counter("kxfer_listener_refused", "Connections that this listener refused.");
    for (const auto& listener : view.listeners) out.sample(listener.nr_refused, labels_of(listener));
}

void add_devices(Writer& out, const View& view) {
    if (view.devices.empty()) return;
    out.gauge("kxfer_device_links", "Links on this RDMA device.");
    for (const auto& device : view.devices) out.sample(device.nr_links, {{"device", text_of(device.name)}});
    out.gauge("kxfer_device_mappings", "Regions mapped for this RDMA device.");
    for (const auto& device : view.devices)
        out.sample(device.nr_mappings, {{"device", text_of(device.name)}});
}

// A name that no pattern such as *.prom matches. The mode is that of a file made by open().
Expected<Descriptor> open_beside(const std::string& file, std::string& name) {
    const auto path = std::filesystem::path(file);
    name = (path.parent_path() / fmt::format(".{}.XXXXXX", path.filename().string())).string();
    Descriptor fd(mkostemp(name.data(), O_CLOEXEC));
    if (fd.get() < 0) return fail("cannot write beside", file, errno);
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(fd.get(), 0666 & ~mask) < 0) {
        const int number = errno;
        unlink(name.c_str());
        return fail("cannot write beside", file, number);
    }
    return fd;
}

} // namespace

std::string metrics_text(const View& view, MetricsFormat format) {
    Writer out(format);
    add_counters(out, view);
    add_links(out, view);
    add_latencies(out, view);
    add_sessions(out, view);
    add_listeners(out, view);
    add_devices(out, view);
    return out.finish();
}

Expected<void> replace_file(const std::string& file, const std::string& text) {
    struct stat status = {};
    if (lstat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        return fail("cannot replace", file, S_ISDIR(status.st_mode) ? EISDIR : EEXIST);
    std::string temporary;
    TRY_SET(const auto fd, open_beside(file, temporary));
    auto written = write_full(fd.get(), std::as_bytes(std::span(text)), temporary);
    if (written && rename(temporary.c_str(), file.c_str()) < 0) written = fail("cannot replace", file, errno);
    if (!written) unlink(temporary.c_str());
    return written;
}

} // namespace kxfer::cli

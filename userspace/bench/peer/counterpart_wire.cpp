// SPDX-License-Identifier: MIT
#include "bench/peer/counterpart_wire.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include <endian.h>
#include <fmt/format.h>
#include <linux/kxfer.h>

namespace kxfer::bench {

namespace {

constexpr uint64_t ask_magic = 0x4b584645'52415331; // "KXFERAS1"
constexpr uint32_t flag_ring = 1, flag_signal_batch = 2, flag_key = 4, flag_tos = 8, flag_by_runs = 16;
constexpr unsigned work_shift = 8, tos_shift = 16;
constexpr double milli = 1000;
constexpr uint32_t max_errno = 4095;

template <size_t N> void set_words(char (&to)[N], const std::string& from) {
    const size_t length = std::min(from.size(), N - 1);
    memcpy(to, from.data(), length);
    memset(to + length, 0, N - length);
}

// Text from a peer, which may lack the zero and may contain control characters for a terminal.
template <size_t N> std::string words_of(const char (&from)[N]) {
    std::string words(from, strnlen(from, N));
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return words;
}

// errno from a peer; a number that is no errno of Linux means that the peer is no counterpart.
int errno_of(uint32_t number) { return number <= max_errno ? static_cast<int>(number) : EPROTO; }

tl::unexpected<Error> refuse(int number, const std::string& why) {
    return tl::unexpected(Error("the counterpart refuses the workload", "", number, "", why));
}

// Each end has memory for outgoing and for incoming data.
tl::expected<void, Error> check_round_trips(const Ask& ask) {
    const auto& workload = ask.workload;

    if (!workload.is_round_trip() || workload.size == 0 || workload.depth != 1 || ask.port == 0)
        return refuse(EINVAL, "it makes no sense");
    if (workload.size > max_reverse_bytes / 2 || 2 * workload.bytes() > max_reverse_bytes)
        return refuse(ERANGE, fmt::format("a round trip has at most {} MiB", max_reverse_bytes >> 21));
    return {};
}

} // namespace

std::string ask_name(const std::string& export_name) { return export_name + ".bench"; }
std::string answer_name(const std::string& export_name) { return export_name + ".answer"; }
std::string reverse_name(uint64_t request) { return fmt::format("kxfer-reverse-{:016x}", request); }
std::string round_trip_name(uint64_t request) { return fmt::format("kxfer-pong-{:016x}", request); }

WireAsk encode(const Ask& ask) {
    const auto& workload = ask.workload;
    const uint32_t flags = (ask.ring ? flag_ring : 0) | (ask.signal_batch ? flag_signal_batch : 0) |
                           (ask.key ? flag_key : 0) | (ask.by_runs ? flag_by_runs : 0) |
                           (ask.tos ? flag_tos | uint32_t{*ask.tos} << tos_shift : 0) |
                           static_cast<uint32_t>(workload.work) << work_shift;
    return {htobe64(ask_magic),
            htobe64(ask.request),
            htobe64(workload.size),
            htobe64(ask.count),
            htobe64(static_cast<uint64_t>(ask.duration.count())),
            htobe64(ask.warm_up),
            htobe64(static_cast<uint64_t>(std::llround(ask.rate * milli))),
            htobe32(static_cast<uint32_t>(ask.verb)),
            htobe32(static_cast<uint32_t>(workload.operation)),
            htobe32(workload.depth),
            htobe32(workload.batch),
            htobe32(ask.context),
            htobe32(ask.wait_flags),
            htobe32(ask.port),
            htobe32(flags)};
}

std::optional<Ask> decode_ask(std::span<const std::byte> message) {
    WireAsk wire;
    Ask ask;

    if (message.size() != sizeof(wire)) return std::nullopt;
    memcpy(&wire, message.data(), sizeof(wire));
    const uint32_t verb = be32toh(wire.verb), operation = be32toh(wire.operation);
    const uint32_t flags = be32toh(wire.flags), port = be32toh(wire.port);
    const uint32_t tos_bits = flags & flag_tos ? UINT8_MAX << tos_shift : 0;
    if (be64toh(wire.magic) != ask_magic || wire.request == 0 || operation >= all_operations.size() ||
        verb < static_cast<uint32_t>(Verb::usage) || verb > static_cast<uint32_t>(Verb::answer) ||
        flags & ~(flag_ring | flag_signal_batch | flag_key | flag_tos | flag_by_runs |
                  UINT8_MAX << work_shift | tos_bits) ||
        (flags >> work_shift & UINT8_MAX) > static_cast<uint32_t>(last_work) || port > UINT16_MAX ||
        be64toh(wire.duration_ns) > INT64_MAX)
        return std::nullopt;
    ask.request = be64toh(wire.request);
    ask.verb = static_cast<Verb>(verb);
    ask.workload.operation = static_cast<Operation>(operation);
    ask.workload.work = static_cast<Work>(flags >> work_shift & UINT8_MAX);
    ask.workload.size = be64toh(wire.size);
    ask.workload.depth = be32toh(wire.depth);
    ask.workload.batch = be32toh(wire.batch);
    ask.count = be64toh(wire.count);
    ask.duration = std::chrono::nanoseconds(be64toh(wire.duration_ns));
    ask.warm_up = be64toh(wire.warm_up);
    ask.rate = static_cast<double>(be64toh(wire.rate_milli)) / milli;
    ask.context = be32toh(wire.context);
    ask.wait_flags = be32toh(wire.wait_flags);
    ask.port = static_cast<uint16_t>(port);
    if (flags & flag_tos) ask.tos = static_cast<uint8_t>(flags >> tos_shift);
    ask.ring = flags & flag_ring;
    ask.signal_batch = flags & flag_signal_batch;
    ask.key = flags & flag_key;
    ask.by_runs = flags & flag_by_runs;
    return ask;
}

// The order matters, because the stride is the size rounded up.
tl::expected<void, Error> check_ask(const Ask& ask) {
    const auto& workload = ask.workload;
    if (ask.by_runs && ask.workload.work != Work::write_ping_pong) return refuse(EINVAL, "it makes no sense");

    if (ask.verb == Verb::answer) return check_round_trips(ask);
    if (workload.work != Work::transfer) return refuse(EINVAL, "it makes no sense");
    if (is_message(workload.operation)) return refuse(EOPNOTSUPP, "it sends no messages back");
    if (is_beyond_kernel(workload.operation))
        return refuse(EOPNOTSUPP, why_beyond_kernel(workload.operation));
    if (is_atomic(workload.operation) && workload.size != atomic_bytes)
        return refuse(EINVAL, "an atomic operation has 8 bytes");
    if (workload.size == 0 || workload.depth == 0 || workload.batch == 0 || workload.batch > workload.depth ||
        ask.port == 0 || !(ask.rate >= 0 && ask.rate <= 1e9))
        return refuse(EINVAL, "it makes no sense");
    if (workload.depth > max_reverse_depth || workload.size > max_reverse_bytes ||
        workload.bytes() > max_reverse_bytes)
        return refuse(ERANGE, fmt::format("size times depth may be {} MiB, and the depth {}",
                                          max_reverse_bytes >> 20, max_reverse_depth));
    if (ask.count == 0 && (ask.duration.count() <= 0 || ask.duration > max_reverse_time))
        return refuse(ERANGE, fmt::format("a run lasts at most {} s", max_reverse_time.count()));
    return {};
}

void publish(const Answer& answer, std::span<std::byte> memory) {
    auto& wire = *reinterpret_cast<WireAnswer*>(memory.data());
    const std::atomic_ref<uint32_t> progress(wire.progress);

    progress.store(htobe32(static_cast<uint32_t>(Progress::nothing)), std::memory_order_release);
    wire.request = htobe64(answer.request);
    wire.refused = htobe64(answer.refused);
    wire.operations = htobe64(answer.result.operations);
    wire.elapsed_ns = htobe64(answer.result.elapsed_ns);
    wire.cpu_ns = htobe64(static_cast<uint64_t>(answer.usage.cpu_ns));
    wire.switches = htobe64(answer.usage.switches);
    wire.usage_request = htobe64(answer.usage_request);
    wire.total_cpu_ns = htobe64(static_cast<uint64_t>(answer.total.cpu_ns));
    wire.total_switches = htobe64(answer.total.switches);
    wire.verified = htobe32(answer.result.verified ? 1 : 0);
    wire.number = htobe32(static_cast<uint32_t>(answer.error.number));
    set_words(wire.what, answer.error.what);
    set_words(wire.on, answer.error.on);
    set_words(wire.why, answer.error.why);
    set_words(wire.kernel, answer.node.kernel);
    set_words(wire.cpu, answer.node.cpu);
    set_words(wire.module, answer.node.module);
    set_words(wire.srcversion, answer.node.srcversion);
    auto words = answer.result.latencies.words();
    for (auto& word : words) word = htobe64(word);
    memcpy(memory.data() + sizeof(wire), words.data(), words.size() * sizeof(words[0]));
    progress.store(htobe32(static_cast<uint32_t>(answer.progress)), std::memory_order_release);
}

Answer decode_answer(std::span<const std::byte> memory) {
    std::vector<uint64_t> words(Histogram::nr_words());
    WireAnswer wire;
    Answer answer;

    memcpy(&wire, memory.data(), sizeof(wire));
    memcpy(words.data(), memory.data() + sizeof(wire), words.size() * sizeof(words[0]));
    for (auto& word : words) word = be64toh(word);
    answer.request = be64toh(wire.request);
    answer.refused = be64toh(wire.refused);
    const uint32_t progress = be32toh(wire.progress);
    answer.progress = progress <= static_cast<uint32_t>(Progress::failed) ? static_cast<Progress>(progress)
                                                                          : Progress::nothing;
    answer.error =
        Error(words_of(wire.what), words_of(wire.on), errno_of(be32toh(wire.number)), "", words_of(wire.why));
    answer.usage = {static_cast<double>(be64toh(wire.cpu_ns)), be64toh(wire.switches)};
    answer.usage_request = be64toh(wire.usage_request);
    answer.total = {static_cast<double>(be64toh(wire.total_cpu_ns)), be64toh(wire.total_switches)};
    answer.node = {words_of(wire.kernel), words_of(wire.cpu), words_of(wire.module),
                   words_of(wire.srcversion)};
    answer.result = {be64toh(wire.operations), be64toh(wire.elapsed_ns), wire.verified != 0,
                     Histogram::from_words(words)};
    return answer;
}

} // namespace kxfer::bench

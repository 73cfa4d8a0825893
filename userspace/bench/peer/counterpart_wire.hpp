// SPDX-License-Identifier: MIT
//
// Requests of `kxfer bench` to the process at the other end, and the answers. For the export NAME
// there are the mailbox NAME.bench, which takes requests, and the export NAME.answer, which the
// requester READs. Big endian.
//
// A counterpart reports its node and the CPU time of its process. It can also do a workload in the
// reverse direction: on an export that the requester makes for this alone, named after the number of
// the request, at the address that the message came from. Or it answers round trips (ping_pong.hpp),
// in memory of its own that it exports for this alone. So a request can make it move only data of its
// own making, in memory made for that, and the limits are here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/run/footprint.hpp"
#include "engine/histogram.hpp"
#include "engine/workload.hpp"

namespace kxfer::bench {

// Limits of a workload done for another node.
constexpr uint64_t max_reverse_bytes = 64ULL << 20;
constexpr unsigned max_reverse_depth = 4096;
constexpr std::chrono::seconds max_reverse_time{600};

std::string ask_name(const std::string& export_name);
std::string answer_name(const std::string& export_name);
// Name of the requester's export for the workload of that request.
std::string reverse_name(uint64_t request);
// Name of the counterpart's export for the round trips of that request.
std::string round_trip_name(uint64_t request);

enum class Verb : uint32_t {
    usage = 1, // report the CPU time of the process
    prepare,   // connect and warm up, then wait for go
    go,        // measure
    end,       // the requester has measured too: verify; or: stop answering round trips
    taken,     // the answer was READ
    answer,    // answer round trips until end
};

struct Ask {
    uint64_t request = 0; // unique number, not 0
    Verb verb = Verb::usage;
    // For prepare and answer, as in RunPlan and PathOptions; neither a mix nor messages.
    Workload workload = {};
    uint64_t count = 0;
    std::chrono::nanoseconds duration{};
    uint64_t warm_up = 0;
    double rate = 0;
    uint32_t context = 0;
    uint32_t wait_flags = 0;
    uint16_t port = 0; // of the requester's listener
    bool ring = false;
    bool signal_batch = false;
    bool key = false;     // the requester's listener wants a key
    bool by_runs = false; // answer write_ping_pong by runs of the kernel
    std::optional<uint8_t> tos = {};
};

struct WireAsk {
    uint64_t magic;
    uint64_t request;
    uint64_t size;
    uint64_t count;
    uint64_t duration_ns;
    uint64_t warm_up;
    uint64_t rate_milli; // thousandths of an operation a second
    uint32_t verb;
    uint32_t operation;
    uint32_t depth;
    uint32_t batch;
    uint32_t context;
    uint32_t wait_flags;
    uint32_t port;
    // 1: ring, 2: a batch has one completion, 4: a key, 8: a type of service, 16: by runs; 8 bits
    // from bit 8 on: Work; 8 bits from bit 16 on: the type of service
    uint32_t flags;
};

WireAsk encode(const Ask& ask);
// Empty: the message is no request, or not of this version.
std::optional<Ask> decode_ask(std::span<const std::byte> message);
// EINVAL, EOPNOTSUPP, ERANGE: the request is beyond what a counterpart does.
tl::expected<void, Error> check_ask(const Ask& ask);

// With round trips, done means that they are answered from now on.
enum class Progress : uint32_t { nothing, ready, measuring, measured, done, failed };

// The result of a workload in the reverse direction.
struct ReverseResult {
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    bool verified = false;
    Histogram latencies;

    double operations_per_second() const {
        return elapsed_ns ? static_cast<double>(operations) * 1e9 / static_cast<double>(elapsed_ns) : 0;
    }
};

// The node that a counterpart runs on, as it reports it.
struct PeerNode {
    std::string kernel, cpu, module, srcversion;
};

struct Answer {
    uint64_t request = 0; // the prepare or answer request that this answers
    uint64_t refused = 0; // the last request refused because another was carried out
    Progress progress = Progress::nothing;
    Error error = Error("", "", 0); // if failed
    ProcessUsage usage;             // if done: usage during the measurement
    ReverseResult result;           // if done
    // Independent of the above: the last request for usage, and the usage since the process
    // began.
    uint64_t usage_request = 0;
    ProcessUsage total;
    PeerNode node; // set from the beginning
};

// The head of the answer; the words of the histogram follow. The progress is stored last.
struct WireAnswer {
    uint64_t request;
    uint64_t refused;
    uint64_t operations;
    uint64_t elapsed_ns;
    uint64_t cpu_ns;
    uint64_t switches;
    uint64_t usage_request;
    uint64_t total_cpu_ns;
    uint64_t total_switches;
    uint32_t verified;
    uint32_t number;
    char what[128];
    char on[128];
    char why[256];
    char kernel[96];
    char cpu[96];
    char module[64];
    char srcversion[32];
    uint32_t reserved;
    uint32_t progress;
};

inline size_t answer_bytes() { return sizeof(WireAnswer) + Histogram::nr_words() * sizeof(uint64_t); }
// memory: answer_bytes() at least, aligned to 8.
void publish(const Answer& answer, std::span<std::byte> memory);
// Complete only if the READ was begun after the progress had been seen; else only the head is valid.
Answer decode_answer(std::span<const std::byte> memory);

} // namespace kxfer::bench

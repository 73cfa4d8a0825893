// SPDX-License-Identifier: MIT
//
// What `kxfer bench` asks of the process at the other end, and what that answers. Beside the
// export NAME stand the mailbox NAME.bench, where it is asked, and the export NAME.answer, which
// who asks READs. Big endian.
//
// A counterpart tells what node it runs on and the CPU time of its process, or does a workload the other way
// round: on an export that who asks makes for this alone, named after the number of the request, at the
// address that the message came from; or it answers round trips (ping_pong.hpp), in memory of its own
// that it exports for this alone. So it can be made to move data of its own making in
// memory that was made for it, and reaches nothing else; and what it is asked is bounded here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <kxfer/error.hpp>
#include <tl/expected.hpp>

#include "bench/footprint.hpp"
#include "bench/histogram.hpp"
#include "bench/workload.hpp"

namespace kxfer::bench {

// Of a workload done for another node.
constexpr uint64_t max_reverse_bytes = 64ULL << 20;
constexpr unsigned max_reverse_depth = 4096;
constexpr std::chrono::seconds max_reverse_time{600};

std::string ask_name(const std::string& export_name);
std::string answer_name(const std::string& export_name);
// Of the memory for the workload of that request.
std::string reverse_name(uint64_t request);
// Of the memory at the counterpart for the round trips of that request.
std::string round_trip_name(uint64_t request);

enum class Verb : uint32_t {
    usage = 1, // tell the CPU time of the process
    prepare,   // connect and warm up, then wait for the other verb
    go,        // measure
    end,       // who asked has measured too: verify; or wants no more answers
    taken,     // the answer was READ
    answer,    // answer round trips until the end
};

struct Ask {
    uint64_t request = 0; // not 0; no other's
    Verb verb = Verb::usage;
    // Of prepare and answer, as RunPlan and PathOptions have them; no mix, no message.
    Workload workload = {};
    uint64_t count = 0;
    std::chrono::nanoseconds duration{};
    uint64_t warm_up = 0;
    double rate = 0;
    uint32_t context = 0;
    uint32_t wait_flags = 0;
    uint16_t port = 0; // of the listener there
    bool ring = false;
    bool signal_batch = false;
    bool key = false; // the listener there wants one
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
    // 1: ring, 2: a batch has one completion, 4: a key, 8: a type of service; 8 bits from bit 8
    // on: Work; 8 from bit 16 on: that type
    uint32_t flags;
};

WireAsk encode(const Ask& ask);
// Empty: it is none, or not of this version.
std::optional<Ask> decode_ask(std::span<const std::byte> message);
// EINVAL, EOPNOTSUPP, ERANGE: what is more than a counterpart does.
tl::expected<void, Error> check_ask(const Ask& ask);

// Of round trips: done is that they are answered from now on.
enum class Progress : uint32_t { nothing, ready, measuring, measured, done, failed };

// What is known of a workload that was done the other way round.
struct ReverseResult {
    uint64_t operations = 0;
    uint64_t elapsed_ns = 0;
    bool verified = false;
    Histogram latencies;

    double operations_per_second() const {
        return elapsed_ns ? static_cast<double>(operations) * 1e9 / static_cast<double>(elapsed_ns) : 0;
    }
};

// Of the node that a counterpart runs on, by its own word.
struct PeerNode {
    std::string kernel, cpu, module, srcversion;
};

struct Answer {
    uint64_t request = 0; // of prepare, that it is of
    uint64_t refused = 0; // the last one that came while another was done
    Progress progress = Progress::nothing;
    Error error = Error("", "", 0); // of failed
    ProcessUsage usage;             // of done: meanwhile
    ReverseResult result;           // of done
    // Beside that, whatever else is done: the last one that asked for usage, and that since the
    // process began.
    uint64_t usage_request = 0;
    ProcessUsage total;
    PeerNode node; // from the beginning
};

// The head of the answer; behind it the words of the histogram. The progress is stored last.
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
// Room for answer_bytes(), aligned to 8.
void publish(const Answer& answer, std::span<std::byte> memory);
// Of a READ that was begun when the progress had been seen, else only the head is good.
Answer decode_answer(std::span<const std::byte> memory);

} // namespace kxfer::bench

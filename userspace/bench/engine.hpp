// SPDX-License-Identifier: MIT
//
// What drives a workload. An engine is connected with the peer and has local
// and remote memory registered before it is measured; it is used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tl/expected.hpp>

#include "bench/histogram.hpp"
#include "bench/workload.hpp"
#include <kxfer/error.hpp>

namespace kxfer::bench {

// `single`: one operation at a time, each timed from the end of the one before.
// `deep`: `depth` operations in flight, topped up by batches.
enum class Mode { single, deep };

// Is told of each operation that the runner saw complete, while the block goes on.
class Observer {
  public:
    using Clock = std::chrono::steady_clock;

    virtual ~Observer() = default;
    // due: when it should have been handed in, which without a rate is handed_in: before
    // the call that did so; seen: when the call that brought the completion returned.
    virtual void completed(Clock::time_point due, Clock::time_point handed_in, Clock::time_point seen) = 0;
};

struct Limits {
    uint64_t count = 1000;
    std::chrono::nanoseconds budget = std::chrono::milliseconds(25);
    int (*stopped)() = nullptr; // not 0: the block ends with EINTR, operations may be in flight; but see keep
    // Of others: operations of a deep block are timed too, where the engine can.
    bool timed = false;
    // Of engines that the runner drives, see SteppedEngine:
    Observer* observer = nullptr;
    double rate = 0; // not 0: operations are begun so many a second, whether others have ended or not
    // Of others, at a rate: for how long the first operation has been due; less than 0: it will be.
    std::chrono::nanoseconds late{};
    bool bare = false; // begin_block() and end_block() are the caller's
    bool rest = false; // of others: blocks before used each slot, so the count may be less than the depth
    // A block that is stopped ends as if its time were over, and what it did is returned. Of an
    // engine that is not driven: unless the stop broke the block off.
    bool keep = false;
};

struct Block {
    uint64_t operations = 0;
    std::optional<double> median_ns; // single, exact; empty: not each latency was kept
    uint64_t elapsed_ns = 0;
    uint64_t nr_overdue = 0;    // at a rate: due when the time was over, and not handed in
    unsigned work_requests = 0; // of the longest operation; 0: the engine does not know
    Histogram latencies;        // single, and deep if that is wanted (Limits::timed)
    Histogram uncorrected;      // of an engine that is not driven, at a rate: from the post
};

// Messages since make_ready().
struct Losses {
    uint64_t sent = 0;
    uint64_t lost = 0;
};

class Engine {
  public:
    virtual ~Engine() = default;

    virtual std::string name() const = 0;
    // At this workload: how deep an engine can go depends on its size.
    virtual Parameters parameters(const Workload& workload) const = 0;
    virtual bool remote_writable() const = 0;
    // Before the first operation; empty: nothing was registered.
    virtual std::optional<Registration> registration() const { return std::nullopt; }
    // Slots that the operations of a block go to, in turn, from the first one on.
    virtual unsigned slots(const Workload& workload, Mode mode) const;

    // What it finds completed are the oldest of what is in flight.
    virtual bool completes_in_order() const { return true; }

    // It compares what each operation brought by itself.
    virtual bool verifies_itself() const { return false; }

    // EOPNOTSUPP and why it cannot do the operation; nothing is posted to find out.
    // READ and WRITE unless an engine says otherwise.
    virtual tl::expected<void, Error> supports(Operation operation) const;
    // To be called before the blocks of a workload. Behind it the peer's memory is
    // zero and no message has been sent, unless the operation is READ or WRITE.
    // EOPNOTSUPP, EINVAL: not with this operation, not with this workload.
    virtual tl::expected<void, Error> make_ready(const Workload& workload);
    // Around each block, and in no figure of it; what else is done meanwhile by who shares the
    // peer's memory or mailbox does not matter.
    virtual tl::expected<void, Error> begin_block(const Workload& workload);
    virtual tl::expected<void, Error> end_block(const Workload& workload);
    // Waits until the peer has all messages. EBADMSG: others than were sent.
    virtual tl::expected<void, Error> settle() { return {}; }
    // Else what an operation sends may be lost, and neither it nor settle() fails for that.
    virtual bool is_reliable() const { return true; }
    // Of an engine whose operations do not reach the program's memory by themselves: brings
    // them what is in it, and brings back what they left.
    virtual tl::expected<void, Error> load() { return {}; }
    virtual tl::expected<void, Error> store() { return {}; }
    // Between completions by the device's clock since the last call; empty: it has none.
    virtual std::optional<Histogram> take_device_gaps() { return std::nullopt; }
    // As settle() found it, of an engine that is not reliable; empty: nobody counts them.
    virtual std::optional<Losses> losses() const { return std::nullopt; }

    // A block ends at its count or its budget of time, whichever comes first. In deep it does
    // not before each slot was used once, but at a rate, or as the rest of others (Limits::rest).
    // After an error the engine is of no more use.
    virtual tl::expected<Block, Error> run_block(const Workload& workload, Mode mode,
                                                 const Limits& limits) = 0;
};

// One operation at `offset` of the local and of the remote memory. A SEND has no
// remote offset: message n goes from the workload's slot n to the peer's slot n,
// wherever `offset` is.
struct Transfer {
    Operation operation = Operation::read;
    uint64_t offset = 0;
    uint64_t length = 0;
};

// An engine whose operations the runner hands in.
class SteppedEngine : public Engine {
  public:
    // Hands in all transfers by one call and waits for `wait` completions of
    // these or earlier ones; returns how many came, at least `wait`. A failed
    // transfer or a wait of more than the engine's timeout is an error, after
    // which the engine is of no more use.
    virtual tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) = 0;

    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) final;
};

} // namespace kxfer::bench

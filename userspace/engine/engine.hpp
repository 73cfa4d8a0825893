// SPDX-License-Identifier: MIT
//
// An engine carries out a workload. It is connected with the peer and has local
// and remote memory registered before it is measured; one thread uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tl/expected.hpp>

#include "engine/histogram.hpp"
#include "engine/workload.hpp"
#include <kxfer/error.hpp>

namespace kxfer::bench {

// `single`: one operation at a time, each timed from the end of the one before.
// `deep`: `depth` operations in flight, topped up by batches.
enum class Mode { single, deep };

// Gets each operation that the runner saw complete, while the block goes on.
class Observer {
  public:
    using Clock = std::chrono::steady_clock;

    virtual ~Observer() = default;
    // due: when the operation should have been handed in; without a rate the same as handed_in.
    // handed_in: before the call that handed it in. seen: when the call that brought the
    // completion returned.
    virtual void completed(Clock::time_point due, Clock::time_point handed_in, Clock::time_point seen) = 0;
};

struct Limits {
    uint64_t count = 1000;
    std::chrono::nanoseconds budget = std::chrono::milliseconds(25);
    int (*stopped)() = nullptr; // not 0: the block ends with EINTR, operations may be in flight; but see keep
    // For engines that the runner does not drive: time the operations of a deep block too, if possible.
    bool timed = false;
    // For engines that the runner drives, see SteppedEngine:
    Observer* observer = nullptr;
    double rate = 0; // not 0: begin so many operations a second, whether others have ended or not
    // Not driven, at a rate: how long the first operation has been due; negative: it is not due yet.
    std::chrono::nanoseconds late{};
    bool bare = false; // the caller calls begin_block() and end_block()
    bool rest = false; // not driven: earlier blocks used each slot, so the count may be below the depth
    // A block that is stopped ends as if its time were over, and returns what it did. An engine
    // that is not driven still fails if the stop interrupted the block.
    bool keep = false;
};

struct Block {
    uint64_t operations = 0;
    std::optional<double> median_ns; // single, exact; empty: not every latency was kept
    uint64_t elapsed_ns = 0;
    uint64_t nr_overdue = 0;    // at a rate: operations due when the time was over, but not handed in
    unsigned work_requests = 0; // of the longest operation; 0: the engine does not know
    Histogram latencies;        // single blocks, and deep ones with Limits::timed
    Histogram uncorrected;      // engine not driven, at a rate: latencies from the post
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
    // Parameters for this workload: the possible depth depends on its size.
    virtual Parameters parameters(const Workload& workload) const = 0;
    virtual bool remote_writable() const = 0;
    // The registration before the first operation; empty: nothing was registered.
    virtual std::optional<Registration> registration() const { return std::nullopt; }
    // Number of slots that a block's operations use, in turn, from the first one on.
    virtual unsigned slots(const Workload& workload, Mode mode) const;

    // Completions found are always those of the oldest operations in flight.
    virtual bool completes_in_order() const { return true; }

    // The engine itself compares the data of each operation.
    virtual bool verifies_itself() const { return false; }

    // EOPNOTSUPP and the reason if the engine cannot do the operation; nothing is posted to find
    // out. The default is READ and WRITE.
    virtual tl::expected<void, Error> supports(Operation operation) const;
    // Must be called before the blocks of a workload. After it the peer's memory is
    // zero and no message has been sent, unless the operation is READ or WRITE.
    // EOPNOTSUPP, EINVAL: the engine cannot do this operation or this workload.
    virtual tl::expected<void, Error> make_ready(const Workload& workload);
    // Called around each block, outside of its figures. Between the two calls, other use of the
    // peer's memory or mailbox does not matter.
    virtual tl::expected<void, Error> begin_block(const Workload& workload);
    virtual tl::expected<void, Error> end_block(const Workload& workload);
    // Waits until the peer has all messages. EBADMSG: it got other messages than were sent.
    virtual tl::expected<void, Error> settle() { return {}; }
    // False: data that an operation sends may be lost, and neither it nor settle() fails for that.
    virtual bool is_reliable() const { return true; }
    // For an engine whose operations use other memory than the program's (device memory): load()
    // copies the program's memory there, store() copies it back.
    virtual tl::expected<void, Error> load() { return {}; }
    virtual tl::expected<void, Error> store() { return {}; }
    // Gaps between completions by the device's clock since the last call; empty: no such clock.
    virtual std::optional<Histogram> take_device_gaps() { return std::nullopt; }
    // Losses as of the last settle(), if the engine is not reliable; empty: they are not counted.
    virtual std::optional<Losses> losses() const { return std::nullopt; }

    // A block ends at its count or its time limit, whichever comes first. A deep block first uses
    // each slot once, except at a rate or with Limits::rest. After an error the engine must not be
    // used any more.
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
    // Hands in all transfers in one call and waits for `wait` completions of
    // these or earlier ones; returns how many came, at least `wait`. A failed
    // transfer or a wait of more than the engine's timeout is an error, after
    // which the engine must not be used any more.
    virtual tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) = 0;

    tl::expected<Block, Error> run_block(const Workload& workload, Mode mode, const Limits& limits) final;
};

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
//
// What drives a workload. An engine is connected with the peer and has local
// and remote memory registered before it is measured; it is used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <tl/expected.hpp>

#include "bench/workload.hpp"
#include <kxfer/error.hpp>

namespace kxfer::bench {

// One operation at `offset` of the local and of the remote memory.
struct Transfer {
    Operation operation = Operation::read;
    uint64_t offset = 0;
    uint64_t length = 0;
};

class Engine {
  public:
    virtual ~Engine() = default;

    virtual std::string name() const = 0;
    // At this workload: how deep an engine can go depends on its size.
    virtual Parameters parameters(const Workload& workload) const = 0;
    virtual bool remote_writable() const = 0;

    // Hands in all transfers by one call and waits for `wait` completions of
    // these or earlier ones; returns how many came, at least `wait`. A failed
    // transfer or a wait of more than the engine's timeout is an error, after
    // which the engine is of no more use.
    virtual tl::expected<unsigned, Error> step(std::span<const Transfer> transfers, unsigned wait) = 0;
};

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
//
// Memory on the device itself, in place of the local memory: work requests name it from
// zero, the program reaches it by copies alone.
#pragma once

#include <memory>
#include <string>

#include <infiniband/verbs.h>
#include <tl/expected.hpp>

#include "bench/workload.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

class DeviceMemory {
  public:
    // As much as the memory has, which has to outlive it. access: IBV_ACCESS_*.
    // EOPNOTSUPP, ENOMEM: the provider has none, or not so much; why says how much.
    static tl::expected<DeviceMemory, Error> create(ibv_pd* pd, const bench::Memory& memory, int access,
                                                    const std::string& on);

    uint32_t lkey() const { return mr_->lkey; }
    // Copies all of the program's memory there, and back.
    tl::expected<void, Error> load() const;
    tl::expected<void, Error> store() const;

  private:
    struct FreeDm {
        void operator()(ibv_dm* dm) const { ibv_free_dm(dm); }
    };
    struct Deregister {
        void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
    };

    explicit DeviceMemory(const bench::Memory& memory, const std::string& on) : memory_(&memory), on_(on) {}

    const bench::Memory* memory_;
    std::string on_; // for errors
    std::unique_ptr<ibv_dm, FreeDm> dm_;
    std::unique_ptr<ibv_mr, Deregister> mr_;
};

} // namespace kxfer::verbs

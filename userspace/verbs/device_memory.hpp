// SPDX-License-Identifier: MIT
//
// Memory on the device itself, used in place of the local memory. Its addresses in work requests
// begin at zero; the program reaches it by copies alone.
#pragma once

#include <memory>
#include <string>

#include <infiniband/verbs.h>
#include <tl/expected.hpp>

#include "engine/workload.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

class DeviceMemory {
  public:
    // As long as the memory, which has to outlive the object. access: IBV_ACCESS_*.
    // EOPNOTSUPP, ENOMEM: the provider has none, or not so much; Error::why has its maximum.
    static tl::expected<DeviceMemory, Error> create(ibv_pd* pd, const bench::Memory& memory, int access,
                                                    const std::string& on);

    uint32_t lkey() const { return mr_->lkey; }
    // Copy all of the program's memory to the device, and back.
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

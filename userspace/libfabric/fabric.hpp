// SPDX-License-Identifier: MIT
//
// The fabric: all nodes that kxfer reaches. It has nothing of its own but a count of what was opened
// from it, and the handles that an fi_info may have.
#pragma once

#include <atomic>

#include <rdma/fabric.h>

#include "libfabric/handles.hpp"

namespace kxfer::fi {

class Fabric : public fid_fabric {
  public:
    using Base = fid_fabric;

    // fi_provider.fabric
    static int open(fi_fabric_attr* attr, fid_fabric** fabric, void* context);

    std::atomic<unsigned> users{0};
    Handles handles;

  private:
    static int close(struct ::fid* handle);
};

} // namespace kxfer::fi

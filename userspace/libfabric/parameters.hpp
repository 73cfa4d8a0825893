// SPDX-License-Identifier: MIT
//
// What the environment says: FI_KXFER_NAME for each (fi_info -e lists them). Read once, when
// libfabric loads the provider.
#pragma once

#include <cstdint>
#include <string>

#include <rdma/providers/fi_prov.h>

namespace kxfer::fi {

struct Parameters {
    std::string address;            // the only own address to use; empty: any
    uint16_t port = 0;              // of the listeners of all nodes; 0: KXFER_PORT
    std::string key;                // that the listeners want; empty: none
    bool any_user = false;          // peers of other uids may reach endpoints and memory
    uint64_t connect_s = 60;        // seconds until a connection is made, or is not
    uint64_t read_from = 64 * 1024; // bytes from which on a message is READ by its receiver
};

const Parameters& parameters();

void read_parameters(fi_provider& provider);

} // namespace kxfer::fi

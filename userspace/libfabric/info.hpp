// SPDX-License-Identifier: MIT
//
// fi_getinfo(): what the provider can do here, and whether that is what the hints ask for. There is an
// answer for each address that kxfer listens on, of FI_EP_RDM and after it of FI_EP_MSG; a node that does not
// listen has none, because nobody could reach its endpoints. Nothing is reported that the files of this
// folder do not do.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "libfabric/address.hpp"
#include "libfabric/iov.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

inline constexpr char fabric_name[] = "kxfer";

extern fi_provider provider;

inline constexpr size_t message_bytes = KXFER_MESSAGE_EAGER_MAX; // of a message, with its header
inline constexpr size_t payload_bytes = message_bytes - header_bytes;
inline constexpr size_t queue_size = 256; // operations of an endpoint, by default
inline constexpr size_t queue_size_max = 1024;

// fi_provider.getinfo
int get_info(uint32_t version, const char* node, const char* service, uint64_t flags, const fi_info* hints,
             fi_info** info);

// Sets the two addresses. False: no memory.
bool set_ends(fi_info& info, const Address& own, const Address& peer);

// How memory is registered with this mode: FI_MR_BASIC stands for what it means.
int effective_mr_mode(int mode);

} // namespace kxfer::fi

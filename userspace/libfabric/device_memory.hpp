// SPDX-License-Identifier: MIT
//
// Memory of accelerators (FI_HMEM), which is registered by its dma-buf. libfabric has FI_MR_DMABUF from 1.20
// on; a provider that is built with older headers takes none, and does not report FI_HMEM.
//
// The CPU does not reach it, so of the operations only READs and WRITEs are there.
#pragma once

#include <cstdint>

#include <rdma/fi_domain.h>

#include "libfabric/registration.hpp"

namespace kxfer::fi {

#ifdef FI_MR_DMABUF
inline constexpr bool has_device_memory = true;
inline constexpr uint64_t dmabuf_flag = FI_MR_DMABUF;

// Of the dma-buf that the attributes name. Without an address of the process the first byte of the buffer
// has the address 0.
inline Source source_of_dmabuf(const fi_mr_attr& attr) {
    const fi_mr_dmabuf& buffer = *attr.dmabuf;
    auto at = reinterpret_cast<uintptr_t>(buffer.base_addr) + buffer.offset;
    return {reinterpret_cast<const char*>(at), buffer.len, buffer.fd, buffer.offset};
}
#else
inline constexpr bool has_device_memory = false;
inline constexpr uint64_t dmabuf_flag = 0;

inline Source source_of_dmabuf(const fi_mr_attr&) { return {}; }
#endif

} // namespace kxfer::fi

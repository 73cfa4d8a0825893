// SPDX-License-Identifier: MIT
//
// The memory of an Mr. An operation that may need it later has a share, and fi_close() refuses meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kxfer::fi {

// What is to be registered: memory of the process, or a dma-buf.
struct Source {
    const char* at = nullptr; // address of the first byte, for operations
    size_t length = 0;
    int dmabuf_fd = -1;         // -1: none
    uint64_t dmabuf_offset = 0; // bytes
};

struct Registration {
    const char* start = nullptr;
    size_t length = 0;
    bool writable = false;
    bool of_device = false; // the CPU does not reach it
    uint32_t region = 0;

    // Whether the range is in here, and may be written if that is wanted.
    bool holds(const void* at, size_t bytes, bool to_write) const {
        auto from = reinterpret_cast<uintptr_t>(at), first = reinterpret_cast<uintptr_t>(start);
        return from >= first && bytes <= length && from - first <= length - bytes && (writable || !to_write);
    }

    uint64_t offset_of(const void* at) const { return static_cast<const char*>(at) - start; }
};

} // namespace kxfer::fi

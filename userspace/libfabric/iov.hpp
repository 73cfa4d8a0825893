// SPDX-License-Identifier: MIT
//
// The memory of an operation: some ranges that are one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/uio.h>

namespace kxfer::fi {

inline constexpr size_t iov_limit = 4;

struct Memory {
    iovec ranges[iov_limit];
    size_t nr = 0;
    size_t length = 0;

    // False: too many ranges, or more bytes than there can be.
    bool set(const iovec* iov, size_t count) {
        if (count > iov_limit) return false;
        nr = count;
        length = 0;
        for (size_t i = 0; i < count; i++) {
            ranges[i] = iov[i];
            if (__builtin_add_overflow(length, iov[i].iov_len, &length)) return false;
        }
        return true;
    }

    // The only range.
    void set(const void* at, size_t bytes) {
        ranges[0] = {const_cast<void*>(at), bytes};
        nr = 1;
        length = bytes;
    }

    void copy_from(size_t place, uint8_t* to, size_t bytes) const {
        walk(place, bytes, [&](char* here, size_t n) {
            memcpy(to, here, n);
            to += n;
        });
    }

    void copy_to(size_t place, const uint8_t* from, size_t bytes) const {
        walk(place, bytes, [&](char* here, size_t n) {
            memcpy(here, from, n);
            from += n;
        });
    }

  private:
    // What is beyond the end is left out.
    template <typename Visit> void walk(size_t place, size_t bytes, Visit&& visit) const {
        for (size_t i = 0; i < nr && bytes > 0; i++) {
            if (place >= ranges[i].iov_len) {
                place -= ranges[i].iov_len;
                continue;
            }
            size_t n = std::min(bytes, ranges[i].iov_len - place);
            visit(static_cast<char*>(ranges[i].iov_base) + place, n);
            bytes -= n;
            place = 0;
        }
    }
};

} // namespace kxfer::fi

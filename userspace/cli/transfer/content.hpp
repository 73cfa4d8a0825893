// SPDX-License-Identifier: MIT
//
// What `put` and `get` have in common: a file's name in messages, and the report of a
// successful transfer.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command/peer.hpp"
#include "cli/node/sha256.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

struct Transferred {
    std::string file;
    Remote remote;
    uint64_t offset = 0;
    uint64_t length = 0;
    Digest sha256 = {};
    std::string verified; // how the data was verified; "no" if not
    uint64_t generation = 0;
    uint64_t took_ns = 0;
    uint64_t breaks = 0;  // of the link, that it went on over
    uint64_t resumed = 0; // bytes of `length` that an earlier command had moved
};

// For messages; "-" becomes standard_stream.
inline std::string file_name(const std::string& path, const char* standard_stream) {
    return path == "-" ? standard_stream : path;
}

Record record_of(const Transferred& transferred);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// What `put` and `get` have in common: a moment of an export, a file's name in
// messages, and what is reported of a transfer that ended well.
#pragma once

#include <cstdint>
#include <string>

#include "cli/peer.hpp"
#include "cli/record.hpp"
#include "cli/sha256.hpp"

namespace kxfer::cli {

struct Transferred {
    std::string file;
    Remote remote;
    uint64_t offset = 0;
    uint64_t length = 0;
    Digest sha256 = {};
    std::string verified; // how; "no" if not
    uint64_t generation = 0;
    uint64_t took_ns = 0;
};

// "-" as people call it.
inline std::string file_name(const std::string& path, const char* standard_stream) {
    return path == "-" ? standard_stream : path;
}

Record record_of(const Transferred& transferred);

} // namespace kxfer::cli

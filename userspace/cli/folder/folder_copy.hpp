// SPDX-License-Identifier: MIT
//
// What `kxfer get`, `put` and `ls` do with a path in a folder that a peer serves.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command/command.hpp"
#include "cli/command/peer.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

struct FolderCopy {
    RemotePath place;
    std::string local; // a file, a folder, or - (get)
    bool recursive = false;
    bool force = false;   // get: overwrite files of this node
    bool resume = false;  // go on with parts, and leave alone what looks the same
    std::string manifest; // file for the SHA-256 of each file; empty: none
    uint64_t limit = 0;   // bytes a second; 0: none
    CommonOptions common;
};

Result get_from_folder(const FolderCopy& copy, Context& context);
Result put_into_folder(const FolderCopy& copy, Context& context);
Result list_folder(const RemotePath& place, const CommonOptions& common, Context& context);

} // namespace kxfer::cli

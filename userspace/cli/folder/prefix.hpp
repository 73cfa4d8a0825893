// SPDX-License-Identifier: MIT
//
// How much of a file two nodes have alike: where a copy that stopped can go on.
#pragma once

#include <cstdint>
#include <string>

#include "cli/folder/folder_client.hpp"
#include "cli/node/sha256.hpp"

namespace kxfer::cli {

struct Prefix {
    uint64_t bytes = 0;
    Sha256 sha256; // of them
};

// Compares bytes of `fd` with those of a file of the folder, or of its part, window by window, from the
// beginning to the first window that differs, and `most` bytes at most. name: of fd, for messages.
tl::expected<Prefix, Failure> common_prefix(FolderClient& client, const std::string& path, bool of_part,
                                            int fd, uint64_t most, const std::string& name);

// Fills `into` from a file at an offset, unless the file ends before; returns the bytes.
Expected<size_t> read_at(int fd, std::span<std::byte> into, uint64_t offset, const std::string& name);

} // namespace kxfer::cli

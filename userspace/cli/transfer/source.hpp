// SPDX-License-Identifier: MIT
//
// SOURCE := [NAME=]FILE | NAME=mem:SIZE | NAME=heap:SIZE   what `serve` has to export
//         [NAME=]DIR                                       a folder
//
// heap: a dma-buf of the system heap. Without NAME the base name of FILE is used. The text before '=' is a
// name only if it can be one, so that ./a=b is a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace kxfer::cli {

struct Source {
    std::string name;
    std::string file;   // empty: memory
    uint64_t bytes = 0; // size, for memory
    bool heap = false;  // memory of a dma-buf
};

// The error says what is wrong and what is allowed.
tl::expected<Source, std::string> parse_source(std::string_view text);
// A folder: it is the `file`.
tl::expected<Source, std::string> parse_folder(std::string_view text);

} // namespace kxfer::cli

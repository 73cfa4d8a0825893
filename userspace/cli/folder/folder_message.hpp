// SPDX-License-Identifier: MIT
//
// What a client and the server of a folder say to each other, as JSON.
//
//   request   a message to the mailbox NAME, at most 4 KiB
//   reply     the content of the client's *desk*, an export NAME.<its id>, published with its
//             SHA-256: the first bytes of the desk, at most reply_bytes
//   bytes     go through the two windows of the desk, behind the reply: READ by the client, or
//             written by it before it asks to have them stored
//
// A client makes one request at a time; by its number it knows the reply. Requests may be carried out
// more than once, so a client repeats one when a link has broken or the server was started again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cli/folder/tree.hpp"

namespace kxfer::cli {

constexpr uint64_t reply_bytes = 64 * 1024;
constexpr uint32_t request_bytes = 4096;
constexpr uint64_t nr_windows = 2;

// open    makes the desk; its only reply is that the desk is there
// look_up what PATH is: an entry
// list    entries of a folder behind the name `after`
// read    fills a window with bytes of a file
// digest  the SHA-256 of bytes of a file, or of its part
// write   appends a window to the part of a file, cut to `offset` before
// keep    makes the part, of `size` bytes, the file
// make    makes a folder
// unknown what a newer client may say
enum class FolderOp : uint8_t { unknown, open, look_up, list, read, digest, write, keep, make };

struct FolderRequest {
    std::string desk;
    uint64_t number = 0;
    FolderOp op = FolderOp::open;
    std::string path;
    std::string after;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint64_t size = 0;
    uint32_t window = 0;
    uint32_t mode = 0;
    int64_t mtime_ns = 0;
    bool of_part = false;
    std::string sha256; // of the bytes in the window, in hex

    std::string text() const;
    // The error says what is wrong with it; bytes come from a peer.
    static tl::expected<FolderRequest, std::string> parse(std::span<const std::byte> bytes);
};

struct FolderReply {
    uint64_t number = 0; // of the request
    int error = 0;       // errno
    std::string why;     // in words, if there are some
    uint64_t length = 0; // bytes in the window, or of which sha256 is
    std::string sha256;
    TreeEntry entry; // of the file
    std::vector<TreeEntry> entries;

    std::string text() const;
    static tl::expected<FolderReply, std::string> parse(std::span<const std::byte> bytes);
};

// The most entries in a reply: names have 255 bytes at most, in JSON six times that.
constexpr size_t most_entries = 32;

std::string desk_name(const std::string& folder, const std::string& desk);
// Whether text is an id of a desk: 16 hexadecimal digits.
bool is_desk_id(const std::string& text);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/folder/prefix.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <unistd.h>

#include "base/try.hpp"

namespace kxfer::cli {

Expected<size_t> read_at(int fd, std::span<std::byte> into, uint64_t offset, const std::string& name) {
    if (lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) return fail("cannot read", name, errno);
    return read_full(fd, into, name);
}

tl::expected<Prefix, Failure> common_prefix(FolderClient& client, const std::string& path, bool of_part,
                                            int fd, uint64_t most, const std::string& name) {
    Prefix prefix;
    std::vector<std::byte> piece;
    while (prefix.bytes < most) {
        FolderRequest request;
        request.op = FolderOp::digest;
        request.path = path;
        request.of_part = of_part;
        request.offset = prefix.bytes;
        request.length = std::min(client.window_bytes(), most - prefix.bytes);
        TRY_SET(const auto reply, client.ask(request));
        if (reply.length == 0 || reply.length > request.length) break;
        piece.resize(reply.length);
        TRY_SET(const auto got, read_at(fd, piece, prefix.bytes, name));
        Sha256 here, all = prefix.sha256;
        here.update(std::span(piece).first(got));
        all.update(std::span(piece).first(got));
        if (got < piece.size() || hex(here.digest()) != reply.sha256) break;
        prefix = {prefix.bytes + got, all};
    }
    return prefix;
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Served: one export of `kxfer serve`, with its memory.
//
// The memory is anonymous memory of this process, or that of a dma-buf. A file is read into it once, so
// truncating or writing the file does not affect the peers' data. The export's content is
// published with the SHA-256 of that memory, computed here and not taken from the peer
// that wrote it. A peer may write at the same time: so a copy of each piece is hashed, and
// the same copy goes to the file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/node/file.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/output.hpp"
#include "cli/transfer/source.hpp"

namespace kxfer::cli {

class Served {
  public:
    // rights: KXFER_RIGHT_*. rules: the peers they are granted to; none: all peers. cookie: of the
    // export.
    static tl::expected<Served, Failure> make(Session& session, const Source& source, uint32_t rights,
                                              std::span<const kxfer_rule> rules, uint64_t cookie,
                                              const Output& out);

    uint32_t export_id() const { return export_.id(); }
    const Source& source() const { return source_; }
    uint64_t length() const { return length_; }
    std::span<std::byte> bytes() const { return memory_.bytes(); }
    const kxfer_content& content() const { return content_; }

    // Handles a peer's announcement that the first `length` bytes are content now: writes
    // them back to the file, if there is one, and publishes them.
    tl::expected<void, Failure> accept(uint64_t length, const Output& out);

    // Reads the file again, and publishes it if it has other content now. False: nothing changed.
    tl::expected<bool, Failure> reload(const Output& out);

  private:
    tl::expected<std::vector<std::byte>, Failure> content_of_file() const;
    tl::expected<void, Failure> read_file();
    tl::expected<void, Failure> allocate(uint64_t length);
    tl::expected<void, Failure> copy(int fd, off_t size);
    tl::expected<void, Failure> copy_to_end(int fd);
    tl::expected<void, Failure> lend(Session& session, uint32_t rights, std::span<const kxfer_rule> rules,
                                     uint64_t cookie);
    tl::expected<void, Failure> publish(uint64_t length, const Digest& sha256);
    tl::expected<Digest, Failure> hash(uint64_t length, int fd, const Output& out) const;
    tl::expected<Digest, Failure> write_back(uint64_t length, const Output& out) const;

    Source source_;
    uint64_t length_ = 0;
    kxfer_content content_ = {};
    Memory memory_; // outlives region and export
    Region region_;
    Export export_;
};

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Sink: where a get puts its bytes. A file gets them by way of its part, FILE.kxfer-part, which
// becomes FILE at the end; standard output and devices are written to directly.
//
// FILE.kxfer-state says which bytes of which content the part has, as JSON. `get --resume` goes on
// there. It is written when the get begins, after every 64 MiB, and when the get stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/node/file.hpp"
#include "cli/node/sha256.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/output.hpp"

namespace kxfer::cli {

// What the bytes of a part are of.
struct Origin {
    std::string remote; // for people; the same content may be found elsewhere
    kxfer_content content = {};
    uint64_t offset = 0;
    uint64_t length = 0;

    // Without a content record nothing says whether the bytes have changed.
    bool is_known() const { return content.generation != 0; }
};

class Sink {
  public:
    // file: "-" is standard output; a folder gets `name` in it.
    static tl::expected<Sink, Failure> open(const std::string& file, const std::string& name, bool force);

    bool is_file() const { return !path_.empty(); }
    int fd() const { return fd_.get(); }
    const std::string& name() const { return name_; }
    const std::string& part() const { return part_; }

    // Cuts the part to the bytes of `origin` that an earlier get has kept and that are still right.
    // Returns their number, and adds them to the hash; says why if there are none.
    tl::expected<uint64_t, Failure> resume(const Origin& origin, Sha256& sha256, Output& out);
    // Empties the part.
    tl::expected<void, Failure> restart(const Origin& origin);

    // Has the first `stored` bytes on disk, and says so in the state.
    Expected<void> checkpoint(const Origin& origin, uint64_t stored, const Digest& sha256) const;
    // Cuts the part to `stored` bytes, has them on disk, and reads them back. Returns whether they
    // are right.
    bool settle(const Origin& origin, uint64_t stored, const Digest& sha256) const;
    // What is left of a get that has failed: nothing to go on with.
    void forget() const;
    // Removes the part, and its state.
    bool discard() const;

    // Renames the part to the file, durably. force: also over a file.
    tl::expected<void, Failure> keep(bool force) const;

  private:
    static tl::expected<Sink, Failure> open_part(std::string path);
    void take_over_mode() const;
    int rename_part(bool force) const;

    std::string path_; // the final file; empty: a stream
    std::string part_;
    std::string state_;
    std::string name_; // for messages
    Descriptor fd_;
};

} // namespace kxfer::cli

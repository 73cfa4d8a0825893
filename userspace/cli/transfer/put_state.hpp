// SPDX-License-Identifier: MIT
//
// PutState: how much of a file the export of a peer has, for `put --resume`.
//
// It is a file $XDG_STATE_HOME/kxfer/put-*.json (default ~/.local/state), one for each file, export
// and range; see transfer_state.hpp. It is written after every 64 MiB that are placed and when a put
// stops, and removed when a put has succeeded.
//
// What it says is believed only if file and export are the same as before: the file by size and time
// of change, the export by its length, its content's number, and the owner's cookie, which
// `kxfer serve` chooses at random. The receiver's hash of all bytes has the last word.
#pragma once

#include <cstdint>
#include <string>

#include <sys/stat.h>
#include <tl/expected.hpp>

#include <kxfer/kxfer.hpp>

#include "cli/command/peer.hpp"

namespace kxfer::cli {

// By what an export is told from others, and from itself with other content.
struct ExportIdentity {
    uint64_t length = 0;
    uint64_t cookie = 0;
    uint64_t generation = 0;

    static ExportIdentity of(const Target& target) {
        return {target.length(), target.cookie(), target.content().generation};
    }
    bool operator==(const ExportIdentity&) const = default;
};

class PutState {
  public:
    // length: bytes to send, all of them from the file's beginning.
    PutState(const std::string& file, const struct stat& status, const Remote& remote, uint64_t offset,
             uint64_t length);

    // The bytes that the export has of the file, or why it has none.
    tl::expected<uint64_t, std::string> placed_at(const ExportIdentity& where) const;

    void save(const ExportIdentity& where, uint64_t placed);
    void forget();
    // Whether save() has ever worked.
    bool is_saved() const { return saved_; }

  private:
    std::string file_;
    std::string remote_;
    uint64_t size_;
    uint64_t changed_ns_;
    std::string path_; // empty: there is no place for it
    bool saved_ = false;
};

} // namespace kxfer::cli

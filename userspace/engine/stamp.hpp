// SPDX-License-Identifier: MIT
//
// Stamped data: bytes that show which operation they belong to and where they belong,
// so that a checker can tell what went wrong, on any provider and without atomics.
//
// An operation's bytes are cut into blocks of 64. Each carries seed, job, sequence
// and offset, every word mixed with a hash of all four: any 8 bytes of two stamps
// differ. The last block may be cut short. Words of verification:
//   corrupt    bits that were never sent
//   stale      an older sequence of that place (or another seed: an earlier run),
//              in the whole operation
//   misplaced  a stamp of another offset or job, also shifted by some bytes, or of a
//              later sequence
//   torn       new up to a cut and old after it, or the reverse, within an operation
//   short      the tail is what the memory was wiped with before
//
// Limits. Pieces under 8 bytes do not show their sequence: they count as corrupt, or
// as short if all of their bytes are wiped. Blocks cut short do not show their place or
// seed: misplaced data is recognised only in operations of 64 bytes and more. A sequence
// is recognised in pieces if it is at most `known_sequences` old, in whole blocks
// always. A short WRITE onto memory that was not wiped counts as torn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kxfer::bench {

constexpr size_t stamp_block_bytes = 64;
constexpr size_t telling_bytes = 8; // shorter pieces equal those of another stamp too often
constexpr uint64_t known_sequences = 64;

struct Stamp {
    uint64_t seed = 0;
    uint64_t job = 0;
    uint64_t sequence = 0;
    uint64_t offset = 0; // of the operation's first byte, or of a block

    bool operator==(const Stamp&) const = default;
};

enum class Damage { corrupt, stale, misplaced, torn, short_transfer };

const char* damage_name(Damage damage);

struct Finding {
    Damage damage = Damage::corrupt;
    size_t at = 0;                           // first wrong byte of the operation; torn: the cut
    Stamp expected;                          // stamp of the operation
    std::optional<Stamp> found;              // stamp of the bytes found, if recognised
    std::byte expected_byte{}, found_byte{}; // values of the first wrong byte

    std::string text() const;
};

// Fills the memory of one operation with its stamp.
void fill_stamped(std::span<std::byte> bytes, const Stamp& stamp);
// Checks an operation's bytes; empty if they are as filled in.
// `wiped`: the value that all bytes were set to before they were READ.
std::optional<Finding> check_stamped(std::span<const std::byte> bytes, const Stamp& expected,
                                     std::byte wiped);

} // namespace kxfer::bench

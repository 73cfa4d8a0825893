// SPDX-License-Identifier: MIT
//
// Stamped data: bytes that say which operation they are of and where they belong,
// so that a checker tells what went wrong, on any provider and without atomics.
//
// An operation's bytes are cut into blocks of 64. Each carries seed, job, sequence
// and offset, every word mixed with a hash of all four: any 8 bytes of two stamps
// differ. The last block may be cut short. Words of verification:
//   corrupt    bits that nobody sent
//   stale      an older sequence of that place (or another seed: an earlier run),
//              in the whole operation
//   misplaced  a stamp of another offset or job, also shifted by some bytes, or of a
//              later sequence
//   torn       new up to a cut and old behind it, or the reverse, within an operation
//   short      the tail is what the memory was wiped with before
//
// Limits. Pieces under 8 bytes do not tell their sequence: they are corrupt, or
// short if all of them are wiped. Blocks cut short do not tell their place or seed:
// what is misplaced is found so only in operations of 64 bytes and more. Sequences
// are recognised in pieces if they are at most `known_sequences` old, in whole blocks
// always. A short WRITE onto memory that was not wiped is torn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kxfer::bench {

constexpr size_t stamp_block_bytes = 64;
constexpr size_t telling_bytes = 8; // shorter pieces are like those of another stamp too often
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
    size_t at = 0;                           // byte of the operation: where it goes wrong; torn: the cut
    Stamp expected;                          // the operation's
    std::optional<Stamp> found;              // what the bytes there say, if they say it
    std::byte expected_byte{}, found_byte{}; // at the first wrong byte

    std::string text() const;
};

// Fills the memory of one operation, whose stamp this is.
void fill_stamped(std::span<std::byte> bytes, const Stamp& stamp);
// What is wrong with an operation's bytes; nothing if they are what was filled in.
// `wiped` is what all bytes were set to before they were read.
std::optional<Finding> check_stamped(std::span<const std::byte> bytes, const Stamp& expected,
                                     std::byte wiped);

} // namespace kxfer::bench

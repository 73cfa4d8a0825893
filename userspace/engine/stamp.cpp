// SPDX-License-Identifier: MIT
#include "engine/stamp.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace kxfer::bench {

namespace {

using Words = std::array<uint64_t, stamp_block_bytes / 8>;
using Bytes = std::span<const std::byte>;

constexpr uint64_t golden = 0x9e3779b97f4a7c15;

// The finish of splitmix64: reversible, each bit depends on all.
uint64_t mix(uint64_t word) {
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

// The key of all blocks of an operation; a block's own key adds its offset.
uint64_t operation_key(const Stamp& stamp) {
    return mix(mix(mix(stamp.seed + golden) + stamp.job + golden) + stamp.sequence + golden);
}

uint64_t block_key(uint64_t operation, uint64_t offset) { return mix(operation + offset + golden); }

// The key, then the stamp and padding, masked with the key.
Words block_words(uint64_t key, const Stamp& stamp) {
    Words words = {0, stamp.sequence, stamp.offset, stamp.job, stamp.seed, 0, 0, 0};
    for (size_t i = 0; i < words.size(); i++)
        words[i] ^= std::rotl(key, static_cast<int>(i) * 8) + i * golden;
    return words;
}

// The bytes of the block that begins `at` bytes into the operation.
Words words_at(uint64_t key, Stamp stamp, size_t at) {
    stamp.offset += at;
    return block_words(block_key(key, stamp.offset), stamp);
}

// The stamp in a whole block, if it is stamped.
std::optional<Stamp> read_block(Bytes bytes) {
    Words words;
    if (bytes.size() < sizeof(words)) return std::nullopt;
    memcpy(words.data(), bytes.data(), sizeof(words));
    Words fields = block_words(words[0], Stamp());
    for (size_t i = 0; i < words.size(); i++) fields[i] ^= words[i];
    const Stamp stamp{fields[4], fields[3], fields[1], fields[2]};
    if (words[0] != block_key(operation_key(stamp), stamp.offset)) return std::nullopt;
    return words == block_words(words[0], stamp) ? std::optional(stamp) : std::nullopt;
}

// Number of bytes from `at` on that match the stamp.
size_t length_like(Bytes bytes, const Stamp& stamp, size_t at) {
    const uint64_t key = operation_key(stamp);
    const size_t from = at;
    while (at < bytes.size()) {
        const size_t in_block = at % stamp_block_bytes;
        const Words words = words_at(key, stamp, at - in_block);
        const auto* wanted = reinterpret_cast<const std::byte*>(words.data()) + in_block;
        const size_t length = std::min(stamp_block_bytes - in_block, bytes.size() - at);
        const auto differs =
            std::mismatch(wanted, wanted + length, bytes.begin() + static_cast<ptrdiff_t>(at));
        at += static_cast<size_t>(differs.first - wanted);
        if (differs.first != wanted + length) break;
    }
    return at - from;
}

// Older stamps that these bytes may have: those found in whole blocks, then those of the
// latest sequences.
std::vector<Stamp> older_stamps(Bytes bytes, const Stamp& expected) {
    std::vector<Stamp> stamps;
    for (size_t at = 0; at + stamp_block_bytes <= bytes.size(); at += stamp_block_bytes) {
        auto stamp = read_block(bytes.subspan(at, stamp_block_bytes));
        if (!stamp || stamp->job != expected.job || stamp->offset != expected.offset + at) continue;
        stamp->offset = expected.offset;
        if (stamp->seed == expected.seed && stamp->sequence >= expected.sequence) continue;
        if (stamps.empty() || !(stamps.back() == *stamp)) stamps.push_back(*stamp);
    }
    Stamp earlier = expected;
    for (uint64_t i = 0; i < known_sequences && earlier.sequence > 0; i++) {
        earlier.sequence--;
        stamps.push_back(earlier);
    }
    return stamps;
}

// Whether all bytes are of an older sequence (stale), or a part up to or from a cut (torn).
bool find_older(Bytes bytes, Finding& finding) {
    for (const Stamp& stamp : older_stamps(bytes, finding.expected)) {
        const size_t length = length_like(bytes, stamp, finding.at), end = finding.at + length;
        if (length < telling_bytes) continue;
        finding.found = stamp;
        const bool from_start = length_like(bytes.first(finding.at), stamp, 0) == finding.at;
        if (from_start && end == bytes.size()) {
            finding.damage = Damage::stale;
            return true;
        }
        if (end != bytes.size() && length_like(bytes, finding.expected, end) != bytes.size() - end) continue;
        finding.damage = Damage::torn;
        if (from_start) finding.at = end;
        return true;
    }
    finding.found.reset();
    return false;
}

// Finds a stamp of another place; it need not begin at the start of a block.
bool find_misplaced(Bytes bytes, Finding& finding) {
    const size_t block = finding.at - finding.at % stamp_block_bytes;
    for (size_t at = block; at < block + stamp_block_bytes && at + stamp_block_bytes <= bytes.size(); at++) {
        const auto stamp = read_block(bytes.subspan(at, stamp_block_bytes));
        if (!stamp) continue;
        finding.found = stamp;
        finding.damage = Damage::misplaced;
        return true;
    }
    return false;
}

void classify(Bytes bytes, std::byte wiped, Finding& finding) {
    const auto tail = bytes.subspan(finding.at);
    if (std::all_of(tail.begin(), tail.end(), [&](std::byte byte) { return byte == wiped; }))
        finding.damage = Damage::short_transfer;
    else if (!find_older(bytes, finding) && !find_misplaced(bytes, finding))
        finding.damage = Damage::corrupt;
}

std::string stamp_text(const Stamp& stamp) {
    return fmt::format("sequence {} of job {} at offset {}, seed {}", stamp.sequence, stamp.job, stamp.offset,
                       stamp.seed);
}

} // namespace

const char* damage_name(Damage damage) {
    switch (damage) {
    case Damage::corrupt:
        return "corrupt";
    case Damage::stale:
        return "stale";
    case Damage::misplaced:
        return "misplaced";
    case Damage::torn:
        return "torn";
    case Damage::short_transfer:
        return "short";
    }
    return "?";
}

std::string Finding::text() const {
    return fmt::format("{} at byte {}: expected {}; found {} (first wrong byte 0x{:02x} instead of 0x{:02x})",
                       damage_name(damage), at, stamp_text(expected), found ? stamp_text(*found) : "no stamp",
                       std::to_integer<unsigned>(found_byte), std::to_integer<unsigned>(expected_byte));
}

void fill_stamped(std::span<std::byte> bytes, const Stamp& stamp) {
    const uint64_t key = operation_key(stamp);
    for (size_t at = 0; at < bytes.size(); at += stamp_block_bytes) {
        const Words words = words_at(key, stamp, at);
        memcpy(&bytes[at], words.data(), std::min(stamp_block_bytes, bytes.size() - at));
    }
}

std::optional<Finding> check_stamped(std::span<const std::byte> bytes, const Stamp& expected,
                                     std::byte wiped) {
    const uint64_t key = operation_key(expected);
    size_t at = 0;
    for (; at < bytes.size(); at += stamp_block_bytes) {
        const Words words = words_at(key, expected, at);
        if (memcmp(&bytes[at], words.data(), std::min(stamp_block_bytes, bytes.size() - at)) != 0) break;
    }
    if (at >= bytes.size()) return std::nullopt;

    Finding finding;
    finding.expected = expected;
    finding.at = at + length_like(bytes, expected, at);
    const Words words = words_at(key, expected, at);
    finding.expected_byte = reinterpret_cast<const std::byte*>(words.data())[finding.at - at];
    finding.found_byte = bytes[finding.at];
    classify(bytes, wiped, finding);
    return finding;
}

} // namespace kxfer::bench

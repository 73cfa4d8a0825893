// SPDX-License-Identifier: MIT
//
// Stamped data: each kind of damage is classified and located correctly, at every size and
// place; correct data is never reported as damage.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stamp.hpp"

using namespace kxfer::bench;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::byte wiped{0x5a};
constexpr Stamp sample{7, 3, 100, 4096};

Stamp with_sequence(uint64_t sequence) {
    Stamp stamp = sample;
    stamp.sequence = sequence;
    return stamp;
}

Bytes filled(size_t size, const Stamp& stamp) {
    Bytes bytes(size, wiped);
    fill_stamped(bytes, stamp);
    return bytes;
}

// `size` bytes: `first` up to the cut, `second` after it.
Bytes joined(size_t size, size_t cut, const Stamp& first, const Stamp& second) {
    Bytes bytes = filled(size, first);
    const Bytes tail = filled(size, second);
    std::copy(tail.begin() + static_cast<ptrdiff_t>(cut), tail.end(),
              bytes.begin() + static_cast<ptrdiff_t>(cut));
    return bytes;
}

std::string kind_of(const std::optional<Finding>& finding) {
    return finding ? damage_name(finding->damage) : "none";
}

// Two stamps have the same byte at a place in one of 256 cases, so a cut is found where the
// first byte differs.
void expect_near(size_t at, size_t wanted, const std::string& where) {
    EXPECT_GE(at, wanted) << where;
    EXPECT_LE(at, wanted + 3) << where;
}

} // namespace

TEST(Stamp, what_was_filled_in_is_right_at_every_size) {
    for (size_t size = 1; size <= 300; size++)
        EXPECT_FALSE(check_stamped(filled(size, sample), sample, wiped)) << size;
    EXPECT_FALSE(check_stamped({}, sample, wiped));
}

TEST(Stamp, nothing_is_written_behind_the_end) {
    for (size_t size : {1, 63, 64, 65, 127}) {
        Bytes bytes(size + 64, wiped);
        fill_stamped(std::span(bytes).first(size), sample);
        EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(size), bytes.end(),
                                [](std::byte byte) { return byte == wiped; }))
            << size;
    }
}

TEST(Stamp, any_word_of_two_stamps_differs) {
    std::set<Bytes> words;
    size_t number = 0;
    for (uint64_t change = 0; change < 40; change++)
        for (const Stamp& stamp : {Stamp{8 + change, 3, 100, 4096}, Stamp{7, 4 + change, 100, 4096},
                                   Stamp{7, 3, 101 + change, 4096}, Stamp{7, 3, 100, 8192 + change * 64}}) {
            const Bytes bytes = filled(64, stamp);
            for (auto at = bytes.begin(); at != bytes.end(); at += 8, number++) words.emplace(at, at + 8);
        }
    EXPECT_EQ(words.size(), number);
}

TEST(Stamp, every_flipped_bit_is_corrupt_where_it_is) {
    for (size_t size : {1, 8, 63, 64, 100, 256}) {
        Bytes bytes = filled(size, sample);
        for (size_t bit = 0; bit < size * 8; bit++) {
            const auto flip = std::byte{1} << (bit % 8);
            bytes[bit / 8] ^= flip;
            const auto finding = check_stamped(bytes, sample, wiped);
            ASSERT_TRUE(finding) << size << " " << bit;
            EXPECT_EQ(finding->at, bit / 8) << size;
            EXPECT_EQ(finding->expected_byte ^ finding->found_byte, flip);
            // The last byte may equal the wiped byte.
            if (bytes.back() != wiped) {
                EXPECT_EQ(kind_of(finding), "corrupt") << size << " " << bit;
            }
            bytes[bit / 8] ^= flip;
        }
    }
}

TEST(Stamp, an_older_sequence_is_stale_at_every_size_that_can_tell) {
    for (size_t size : {8, 9, 63, 64, 65, 128, 200})
        for (uint64_t age : {1, 2, 64}) {
            const auto finding = check_stamped(filled(size, with_sequence(100 - age)), sample, wiped);
            ASSERT_EQ(kind_of(finding), "stale") << size << " " << age;
            EXPECT_LE(finding->at, 3U);
            ASSERT_TRUE(finding->found);
            EXPECT_EQ(finding->found->sequence, 100 - age);
        }
    // Whole blocks reveal any age, and another run.
    EXPECT_EQ(kind_of(check_stamped(filled(100, with_sequence(2)), sample, wiped)), "stale");
    EXPECT_EQ(kind_of(check_stamped(filled(128, Stamp{6, 3, 900, 4096}), sample, wiped)), "stale");
    EXPECT_EQ(kind_of(check_stamped(filled(32, with_sequence(2)), sample, wiped)), "corrupt");
    EXPECT_EQ(kind_of(check_stamped(filled(4, with_sequence(99)), sample, wiped)), "corrupt");
}

TEST(Stamp, another_place_job_or_a_later_sequence_is_misplaced) {
    for (const Stamp& other : {Stamp{7, 3, 100, 8192}, Stamp{7, 4, 100, 4096}, Stamp{7, 3, 101, 4096},
                               Stamp{6, 3, 100, 8192}, Stamp{7, 2, 99, 64}})
        for (size_t size : {64, 65, 256}) {
            const auto finding = check_stamped(filled(size, other), sample, wiped);
            ASSERT_EQ(kind_of(finding), "misplaced") << size;
            ASSERT_TRUE(finding->found);
            EXPECT_EQ(*finding->found, other);
        }
}

TEST(Stamp, two_blocks_that_changed_places_are_misplaced) {
    Bytes bytes = filled(512, sample);
    std::swap_ranges(bytes.begin() + 128, bytes.begin() + 192, bytes.begin() + 320);
    const auto finding = check_stamped(bytes, sample, wiped);
    ASSERT_EQ(kind_of(finding), "misplaced");
    expect_near(finding->at, 128, "swapped");
    ASSERT_TRUE(finding->found);
    EXPECT_EQ(finding->found->offset, sample.offset + 320);
}

TEST(Stamp, bytes_that_slipped_are_misplaced) {
    for (ptrdiff_t by : {1, 8, 63}) {
        Bytes bytes(256, std::byte{0});
        const Bytes right = filled(256, sample);
        std::copy(right.begin(), right.end() - by, bytes.begin() + by);
        const auto finding = check_stamped(bytes, sample, wiped);
        ASSERT_EQ(kind_of(finding), "misplaced") << by;
        EXPECT_EQ(finding->found->offset, sample.offset) << by;
    }
}

TEST(Stamp, a_cut_between_two_sequences_is_torn_there) {
    for (size_t size : {16, 64, 100, 128, 256})
        for (size_t cut = 8; cut + 11 <= size; cut++) {
            const std::string where = std::to_string(size) + " cut " + std::to_string(cut);
            const auto begun = check_stamped(joined(size, cut, sample, with_sequence(99)), sample, wiped);
            ASSERT_EQ(kind_of(begun), "torn") << where;
            expect_near(begun->at, cut, where);
            EXPECT_EQ(begun->found->sequence, 99U);
            const auto ended = check_stamped(joined(size, cut + 3, with_sequence(98), sample), sample, wiped);
            ASSERT_EQ(kind_of(ended), "torn") << where;
            expect_near(ended->at, cut + 3, where);
            EXPECT_EQ(ended->found->sequence, 98U);
        }
}

TEST(Stamp, an_untouched_tail_is_short_where_it_begins) {
    for (size_t size : {1, 7, 64, 100, 4096})
        for (size_t moved : {size_t{0}, size / 2, size - 1}) {
            Bytes bytes = filled(size, sample);
            std::fill(bytes.begin() + static_cast<ptrdiff_t>(moved), bytes.end(), wiped);
            const auto finding = check_stamped(bytes, sample, wiped);
            // In one of 256 cases the last byte equals the wiped byte anyway.
            if (!finding && moved == size - 1) continue;
            ASSERT_EQ(kind_of(finding), "short") << size << " " << moved;
            expect_near(finding->at, moved, "short");
        }
}

TEST(Stamp, of_damage_tells_all_of_it) {
    const auto finding = check_stamped(filled(128, with_sequence(99)), sample, wiped);
    ASSERT_TRUE(finding);
    EXPECT_NE(finding->text().find("stale at byte 0"), std::string::npos) << finding->text();
    EXPECT_NE(finding->text().find("expected sequence 100 of job 3 at offset 4096, seed 7"),
              std::string::npos);
    EXPECT_NE(finding->text().find("found sequence 99 of job 3"), std::string::npos);
}

// For any stamp, size and place, the class is the damage that was done.
TEST(Stamp, property_the_class_is_what_was_done) {
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        std::mt19937_64 random(seed);
        const Stamp stamp{random(), random() % 1000, 2 + random() % 1000000, random() % 1000 * 64};
        Stamp older = stamp;
        older.sequence -= 1 + random() % std::min<uint64_t>(stamp.sequence, 60) / 2;
        const size_t size = 64 + random() % 1000, cut = 16 + random() % (size - 32);
        const std::string where = "seed " + std::to_string(seed);
        EXPECT_FALSE(check_stamped(filled(size, stamp), stamp, wiped)) << where;
        if (older.sequence == stamp.sequence) older.sequence--;

        EXPECT_EQ(kind_of(check_stamped(filled(size, older), stamp, wiped)), "stale") << where;
        EXPECT_EQ(kind_of(check_stamped(joined(size, cut, stamp, older), stamp, wiped)), "torn") << where;
        EXPECT_EQ(kind_of(check_stamped(joined(size, cut, older, stamp), stamp, wiped)), "torn") << where;
        Stamp elsewhere = stamp;
        elsewhere.offset += 64 * (1 + random() % 100);
        EXPECT_EQ(kind_of(check_stamped(filled(size, elsewhere), stamp, wiped)), "misplaced") << where;
        Bytes bytes = filled(size, stamp);
        bytes[cut] ^= std::byte{1};
        const auto corrupt = check_stamped(bytes, stamp, wiped);
        EXPECT_EQ(kind_of(corrupt), "corrupt") << where;
        EXPECT_EQ(corrupt->at, cut) << where;
        std::fill(bytes.begin() + static_cast<ptrdiff_t>(cut), bytes.end(), wiped);
        EXPECT_EQ(kind_of(check_stamped(bytes, stamp, wiped)), "short") << where;
    }
}

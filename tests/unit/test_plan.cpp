// SPDX-License-Identifier: MIT
//
// kmod/plan.c against oracles that know nothing of how it works.
//
// Small tables: every table, offset, length and limit up to a size, each byte
// looked up for itself. Large ones: the work requests are carried out on
// real memory, as a device would, and the result is compared with a flat copy.
// In both cases each work request has to keep the limits and be as long as they
// allow, with no two SGEs that could be one.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "../../kmod/plan.c"
}

namespace {

using Table = std::vector<kxfer_extent>;

constexpr u32 u32_max = std::numeric_limits<u32>::max();
constexpr u64 u64_max = std::numeric_limits<u64>::max();
constexpr kxfer_plan_limits no_limits{KXFER_PLAN_MAX_SGE, u64_max, 0};

struct Piece {
    u64 addr;
    u32 length;
    u32 key = 0;
};

Table make_table(const std::vector<Piece>& pieces) {
    Table table;
    u64 start = 0;

    for (const Piece& piece : pieces) {
        table.push_back({start, piece.addr, piece.length, piece.key});
        start += piece.length;
    }
    return table;
}

u64 length_of(const Table& table) {
    return std::accumulate(table.begin(), table.end(), u64{0},
                           [](u64 sum, const kxfer_extent& e) { return sum + e.length; });
}

int init(kxfer_plan& plan, const Table& local, u64 local_offset, const Table& remote, u64 remote_offset,
         u64 length, kxfer_plan_limits limits = no_limits) {
    return kxfer_plan_init(&plan, local.data(), local.size(), local_offset, remote.data(), remote.size(),
                           remote_offset, length, &limits);
}

std::vector<kxfer_wr_desc> plan_all(const Table& local, u64 local_offset, const Table& remote,
                                    u64 remote_offset, u64 length, kxfer_plan_limits limits = no_limits) {
    std::vector<kxfer_wr_desc> wrs;
    kxfer_wr_desc wr;
    kxfer_plan plan;

    EXPECT_EQ(init(plan, local, local_offset, remote, remote_offset, length, limits), 0);
    while (kxfer_plan_next(&plan, &wr)) wrs.push_back(wr);
    EXPECT_EQ(kxfer_plan_left(&plan), 0U);
    return wrs;
}

// Where one byte lies, found by walking the table from its beginning.
struct Place {
    u64 addr;
    u32 key;
    bool first;

    bool operator==(const Place&) const = default;
};

std::vector<Place> places_of(const Table& table) {
    std::vector<Place> places;

    for (const kxfer_extent& extent : table)
        for (u32 i = 0; i < extent.length; i++) places.push_back({extent.addr + i, extent.key, i == 0});
    return places;
}

struct Case {
    const Table& local;
    const std::vector<Place>& local_places;
    u64 local_offset;
    const Table& remote;
    const std::vector<Place>& remote_places;
    u64 remote_offset;
    u64 length;
    kxfer_plan_limits limits;
};

std::string show(const Table& table) {
    std::string text;

    for (const kxfer_extent& e : table) text += " " + std::to_string(e.length) + "@" + std::to_string(e.addr);
    return text;
}

std::string show(const Case& c) {
    return "local" + show(c.local) + " from " + std::to_string(c.local_offset) + ", remote" + show(c.remote) +
           " from " + std::to_string(c.remote_offset) + ", length " + std::to_string(c.length) +
           ", max_sge " + std::to_string(c.limits.max_sge) + ", max_wr_bytes " +
           std::to_string(c.limits.max_wr_bytes);
}

// What is wrong with one work request whose first byte is `done`; "" if nothing.
std::string wrong_with(const Case& c, const kxfer_wr_desc& wr, u64 done) {
    const Place* local = &c.local_places[c.local_offset + done];
    const Place* remote = &c.remote_places[c.remote_offset + done];
    u64 at = 0;

    if (!wr.length || wr.length > c.limits.max_wr_bytes || wr.length > c.length - done)
        return "length " + std::to_string(wr.length);
    if (!wr.nr_sge || wr.nr_sge > c.limits.max_sge) return "nr_sge " + std::to_string(wr.nr_sge);
    for (u32 s = 0; s < wr.nr_sge; s++) {
        if (!wr.sge[s].length) return "empty SGE";
        if (s && wr.sge[s - 1].addr + wr.sge[s - 1].length == wr.sge[s].addr) return "SGEs that abut";
        for (u32 i = 0; i < wr.sge[s].length; i++, at++) {
            if (at == wr.length) return "SGEs longer than the work request";
            if (wr.sge[s].addr + i != local[at].addr) return "wrong local byte";
            if (wr.remote_addr + at != remote[at].addr || wr.rkey != remote[at].key)
                return "wrong remote byte";
        }
    }
    if (at != wr.length) return "SGEs shorter than the work request";
    // It may end early for a remote extent or for want of SGEs only.
    if (at == c.limits.max_wr_bytes || at == c.length - done || remote[at].first) return "";
    if (wr.nr_sge < c.limits.max_sge || local[at].addr == local[at - 1].addr + 1) return "ends too early";
    return "";
}

// Byte by byte.
void check_bytes(const Case& c) {
    kxfer_wr_desc wr;
    kxfer_plan plan;
    u64 done = 0, nr = 0;
    int ret = kxfer_plan_init(&plan, c.local.data(), c.local.size(), c.local_offset, c.remote.data(),
                              c.remote.size(), c.remote_offset, c.length, &c.limits);

    if (ret) {
        ADD_FAILURE() << show(c) << ": init says " << ret;
        return;
    }
    while (kxfer_plan_next(&plan, &wr)) {
        std::string wrong = wrong_with(c, wr, done);

        done += wr.length;
        if (wrong.empty() && kxfer_plan_left(&plan) != c.length - done)
            wrong = "left is " + std::to_string(kxfer_plan_left(&plan));
        if (!wrong.empty()) {
            ADD_FAILURE() << show(c) << ": work request " << nr << ": " << wrong;
            return;
        }
        nr++;
    }
    EXPECT_EQ(done, c.length) << show(c);
}

// All ways to cut `total` bytes into extents; each border a gap in address or,
// if abutting is asked for, also none.
std::vector<Table> all_tables(u32 total, bool abutting) {
    const u32 choices = abutting ? 3 : 2;
    std::vector<Table> tables;
    u32 nr_codes = 1;

    for (u32 i = 1; i < total; i++) nr_codes *= choices;
    for (u32 code = 0; code < nr_codes; code++) {
        std::vector<Piece> pieces{{1000, 1, 7}};
        for (u32 i = 1, rest = code; i < total; i++, rest /= choices) {
            Piece& last = pieces.back();
            const u64 end = last.addr + last.length;

            switch (rest % choices) {
            case 0:
                last.length++;
                break;
            case 1:
                pieces.push_back({end + 10, 1, last.key + 1});
                break;
            case 2:
                pieces.push_back({end, 1, last.key + 1});
                break;
            }
        }
        tables.push_back(make_table(pieces));
    }
    return tables;
}

void check_all_ranges(const Table& local, const Table& remote, u32 total) {
    const auto local_places = places_of(local), remote_places = places_of(remote);

    for (u32 length = 1; length <= total; length++)
        for (u32 from = 0; from + length <= total; from++)
            for (u32 to = 0; to + length <= total; to++)
                for (u32 max_sge = 1; max_sge <= 3; max_sge++)
                    for (u64 max_bytes = 1; max_bytes <= length; max_bytes++)
                        check_bytes({local,
                                     local_places,
                                     from,
                                     remote,
                                     remote_places,
                                     to,
                                     length,
                                     {max_sge, max_bytes, 0}});
}

TEST(Plan, EveryCaseOfSixBytesMapsEachByteOnce) {
    for (const Table& local : all_tables(6, true))
        for (const Table& remote : all_tables(6, false)) {
            check_all_ranges(local, remote, 6);
            if (HasFailure()) return;
        }
}

TEST(Plan, RemoteExtentsThatAbutAreKeptApartByTheirKeys) {
    for (const Table& remote : all_tables(6, true)) {
        check_all_ranges(make_table({{50, 6}}), remote, 6);
        if (HasFailure()) return;
    }
}

TEST(Plan, OneByteIsOneWorkRequest) {
    const auto wrs = plan_all(make_table({{100, 1}}), 0, make_table({{200, 1, 5}}), 0, 1);

    ASSERT_EQ(wrs.size(), 1U);
    EXPECT_EQ(wrs[0].remote_addr, 200U);
    EXPECT_EQ(wrs[0].rkey, 5U);
    EXPECT_EQ(wrs[0].nr_sge, 1U);
    EXPECT_EQ(wrs[0].sge[0].addr, 100U);
    EXPECT_EQ(wrs[0].sge[0].length, 1U);
}

TEST(Plan, SinglePagesShareAWorkRequestUpToTheSgeLimit) {
    std::vector<Piece> pages;

    for (u64 i = 0; i < 100; i++) pages.push_back({i * 8192, 4096});
    const auto wrs =
        plan_all(make_table(pages), 0, make_table({{0, 409600, 1}}), 0, 409600, {30, u64_max, 0});
    ASSERT_EQ(wrs.size(), 4U);
    EXPECT_EQ(wrs[0].nr_sge, 30U);
    EXPECT_EQ(wrs[0].length, 30 * 4096U);
    EXPECT_EQ(wrs[3].nr_sge, 10U);
}

TEST(Plan, SgeLimitBeyondTheDescriptorIsBroughtDown) {
    std::vector<Piece> bytes;

    for (u32 i = 0; i < 2 * KXFER_PLAN_MAX_SGE; i++) bytes.push_back({u64{i} * 2, 1});
    const auto wrs = plan_all(make_table(bytes), 0, make_table({{0, 64, 1}}), 0, 64, {u32_max, u64_max, 0});
    ASSERT_EQ(wrs.size(), 2U);
    EXPECT_EQ(wrs[0].nr_sge, u32{KXFER_PLAN_MAX_SGE});
    EXPECT_EQ(wrs[1].nr_sge, u32{KXFER_PLAN_MAX_SGE});
}

TEST(Plan, MessageLimitCutsAndTheLastIsShort) {
    const auto wrs = plan_all(make_table({{0, 10}}), 0, make_table({{0, 10, 1}}), 0, 10, {4, 4, 0});

    ASSERT_EQ(wrs.size(), 3U);
    EXPECT_EQ(wrs[0].length, 4U);
    EXPECT_EQ(wrs[1].length, 4U);
    EXPECT_EQ(wrs[2].length, 2U);
}

// The work requests of one READ as "address+length" of the remote side.
std::string remote_cuts(u64 addr, u32 length, kxfer_plan_limits limits) {
    std::string text;

    for (const kxfer_wr_desc& wr :
         plan_all(make_table({{0, length}}), 0, make_table({{addr, length, 1}}), 0, length, limits))
        text += std::to_string(wr.remote_addr) + "+" + std::to_string(wr.length) + " ";
    return text;
}

TEST(Plan, ShortWorkRequestsDoNotCrossAPageOfThePeer) {
    constexpr kxfer_plan_limits limits{1, u64_max, 32};

    EXPECT_EQ(remote_cuts(4087, 16, limits), "4087+9 4096+7 ");
    EXPECT_EQ(remote_cuts(4095, 2, limits), "4095+1 4096+1 ");
    EXPECT_EQ(remote_cuts(4065, 32, limits), "4065+31 4096+1 ");
    // Not near a border, up to one, from one, and long enough to be cut nowhere.
    EXPECT_EQ(remote_cuts(4000, 32, limits), "4000+32 ");
    EXPECT_EQ(remote_cuts(4087, 9, limits), "4087+9 ");
    EXPECT_EQ(remote_cuts(4096, 16, limits), "4096+16 ");
    EXPECT_EQ(remote_cuts(4064, 33, limits), "4064+33 ");
    EXPECT_EQ(remote_cuts(4064, 20000, limits), "4064+20000 ");
    // A long one that begins near a border is cut there once.
    EXPECT_EQ(remote_cuts(4090, 20000, limits), "4090+6 4096+19994 ");
    EXPECT_EQ(remote_cuts(4087, 16, no_limits), "4087+16 ");
}

TEST(Plan, NoCutByAnotherLimitMakesAShortWorkRequestCross) {
    for (u64 max_bytes = 1; max_bytes < 70; max_bytes++)
        for (u64 addr = 4000; addr < 4200; addr++)
            for (const kxfer_wr_desc& wr :
                 plan_all(make_table({{0, 40}, {100, 7}, {200, 53}}), 0, make_table({{addr, 100, 1}}), 0, 100,
                          {1, max_bytes, 32})) {
                const u64 last = wr.remote_addr + wr.length - 1;
                if (wr.length > 32) continue;
                ASSERT_EQ(wr.remote_addr / 4096, last / 4096) << addr << " " << max_bytes;
            }
}

TEST(Plan, FinishedPlanStaysFinishedAndLeavesTheDescriptorAlone) {
    const Table table = make_table({{0, 1, 1}});
    kxfer_wr_desc wr;
    kxfer_plan plan;

    ASSERT_EQ(init(plan, table, 0, table, 0, 1), 0);
    ASSERT_TRUE(kxfer_plan_next(&plan, &wr));
    wr.length = 77;
    EXPECT_FALSE(kxfer_plan_next(&plan, &wr));
    EXPECT_FALSE(kxfer_plan_next(&plan, &wr));
    EXPECT_EQ(wr.length, 77U);
}

TEST(Plan, CopyGoesOnByItself) {
    const Table table = make_table({{0, 8, 1}});
    kxfer_wr_desc wr, again;
    kxfer_plan plan;

    ASSERT_EQ(init(plan, table, 0, table, 0, 8, {1, 3, 0}), 0);
    ASSERT_TRUE(kxfer_plan_next(&plan, &wr));
    kxfer_plan copy = plan;
    ASSERT_TRUE(kxfer_plan_next(&plan, &wr));
    EXPECT_EQ(kxfer_plan_left(&copy), 5U);
    ASSERT_TRUE(kxfer_plan_next(&copy, &again));
    EXPECT_EQ(again.remote_addr, wr.remote_addr);
    EXPECT_EQ(again.length, wr.length);
}

TEST(Plan, LongestExtentIsOneWorkRequest) {
    const auto wrs =
        plan_all(make_table({{1, u32_max}}), 0, make_table({{u64_max - u32_max, u32_max, 9}}), 0, u32_max);

    ASSERT_EQ(wrs.size(), 1U);
    EXPECT_EQ(wrs[0].length, u32_max);
    EXPECT_EQ(wrs[0].sge[0].length, u32_max);
    EXPECT_EQ(wrs[0].remote_addr, u64_max - u32_max);
}

TEST(Plan, MergedSgesNeverOutgrowThirtyTwoBits) {
    // 16 GiB in extents that abut on both sides, out of step by one byte.
    const Table local = make_table({{4096, u32_max},
                                    {4096ULL + u32_max, u32_max},
                                    {4096ULL + 2ULL * u32_max, u32_max},
                                    {4096ULL + 3ULL * u32_max, u32_max}});
    const Table remote = make_table(
        {{0, 1, 1}, {1, u32_max, 2}, {1ULL + u32_max, u32_max, 3}, {1ULL + 2ULL * u32_max, u32_max, 4}});
    const u64 length = length_of(remote);
    u64 at = 0;

    for (const kxfer_wr_desc& wr : plan_all(local, 5, remote, 0, length)) {
        EXPECT_EQ(wr.nr_sge, 1U);
        EXPECT_EQ(wr.sge[0].length, wr.length);
        EXPECT_EQ(wr.sge[0].addr, 4096 + 5 + at);
        EXPECT_EQ(wr.remote_addr, at);
        at += wr.length;
    }
    EXPECT_EQ(at, length);
}

TEST(Plan, OffsetsBeyondFourGiBFindTheirExtent) {
    std::vector<Piece> pieces;

    for (u32 i = 0; i < 5000; i++) pieces.push_back({(u64{i} + 1) << 40, 1U << 30, i});
    const Table table = make_table(pieces);
    for (u64 index : {0U, 1U, 2U, 2499U, 2500U, 4998U, 4999U}) {
        const auto wrs = plan_all(table, (index << 30) + 3, table, (index << 30) + 7, 16);
        ASSERT_EQ(wrs.size(), 1U);
        EXPECT_EQ(wrs[0].sge[0].addr, ((index + 1) << 40) + 3);
        EXPECT_EQ(wrs[0].remote_addr, ((index + 1) << 40) + 7);
        EXPECT_EQ(wrs[0].rkey, index);
    }
}

TEST(Plan, OffsetAtABorderBelongsToTheLaterExtent) {
    const Table table = make_table({{100, 4, 1}, {200, 4, 2}, {300, 4, 3}});

    EXPECT_EQ(plan_all(table, 3, table, 3, 1)[0].rkey, 1U);
    EXPECT_EQ(plan_all(table, 4, table, 4, 1)[0].rkey, 2U);
    EXPECT_EQ(plan_all(table, 7, table, 8, 1)[0].rkey, 3U);
    EXPECT_EQ(plan_all(table, 7, table, 8, 1)[0].sge[0].addr, 203U);
}

TEST(PlanInit, ZeroLengthIsInvalid) {
    const Table table = make_table({{0, 8, 1}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, table, 0, table, 0, 0), -EINVAL);
    EXPECT_EQ(init(plan, table, 8, table, 8, 0), -EINVAL);
}

TEST(PlanInit, LimitsOfZeroAreInvalid) {
    const Table table = make_table({{0, 8, 1}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, table, 0, table, 0, 8, {0, 8, 0}), -EINVAL);
    EXPECT_EQ(init(plan, table, 0, table, 0, 8, {1, 0, 0}), -EINVAL);
}

TEST(PlanInit, LocalEndThatWrapsOverflows) {
    const Table table = make_table({{0, 8, 1}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, table, u64_max, table, 0, 1), -EOVERFLOW);
    EXPECT_EQ(init(plan, table, 8, table, 0, u64_max - 7), -EOVERFLOW);
    EXPECT_EQ(init(plan, table, u64_max, table, 0, u64_max), -EOVERFLOW);
}

TEST(PlanInit, RemoteEndThatWrapsOverflows) {
    const Table table = make_table({{0, 8, 1}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, table, 0, table, u64_max, 1), -EOVERFLOW);
    EXPECT_EQ(init(plan, table, 0, table, 1, u64_max), -EOVERFLOW);
}

TEST(PlanInit, LargestEndThatDoesNotWrapIsOutOfRange) {
    const Table table = make_table({{0, 8, 1}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, table, u64_max - 1, table, 0, 1), -ERANGE);
    EXPECT_EQ(init(plan, table, 0, table, u64_max - 1, 1), -ERANGE);
    EXPECT_EQ(init(plan, table, 0, table, 0, u64_max), -ERANGE);
}

TEST(PlanInit, OneByteTooFarIsOutOfRangeOnEitherSide) {
    const Table eight = make_table({{0, 3, 1}, {10, 5, 2}});
    const Table nine = make_table({{0, 4, 1}, {10, 5, 2}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, eight, 0, nine, 0, 9), -ERANGE);
    EXPECT_EQ(init(plan, nine, 0, eight, 0, 9), -ERANGE);
    EXPECT_EQ(init(plan, nine, 0, nine, 0, 9), 0);
    EXPECT_EQ(init(plan, eight, 8, nine, 0, 1), -ERANGE);
    EXPECT_EQ(init(plan, eight, 7, nine, 8, 1), 0);
}

TEST(PlanInit, EmptyTablesAreOutOfRange) {
    const Table none, one = make_table({{0, 1, 1}});
    kxfer_plan plan;

    EXPECT_EQ(init(plan, none, 0, one, 0, 1), -ERANGE);
    EXPECT_EQ(init(plan, one, 0, none, 0, 1), -ERANGE);
}

// A table over `total` bytes of memory in pieces that lie there in any order.
Table shuffled_table(std::mt19937_64& random, u64 total, u32 nr, const unsigned char* base) {
    std::vector<u64> cuts{0, total};
    std::vector<Piece> pieces;

    for (u32 i = 1; i < nr; i++) cuts.push_back(random() % total);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); i++)
        pieces.push_back({reinterpret_cast<u64>(base) + cuts[i], static_cast<u32>(cuts[i + 1] - cuts[i]),
                          static_cast<u32>(random())});
    // Half of the tables keep runs of pieces that abut.
    if (random() % 2)
        std::shuffle(pieces.begin(), pieces.end(), random);
    else
        std::rotate(pieces.begin(), pieces.begin() + random() % pieces.size(), pieces.end());
    return make_table(pieces);
}

std::vector<unsigned char> flatten(const Table& table) {
    std::vector<unsigned char> bytes;

    for (const kxfer_extent& e : table) {
        const auto* from = reinterpret_cast<const unsigned char*>(e.addr);
        bytes.insert(bytes.end(), from, from + e.length);
    }
    return bytes;
}

// The peer's side of a work request: the key must cover the whole of it.
bool key_covers(const Table& remote, const kxfer_wr_desc& wr) {
    return std::any_of(remote.begin(), remote.end(), [&](const kxfer_extent& e) {
        return e.key == wr.rkey && e.addr <= wr.remote_addr &&
               wr.length <= e.addr + e.length - wr.remote_addr;
    });
}

// A READ: what a device would do with the work request.
void carry_out(const kxfer_wr_desc& wr) {
    const auto* from = reinterpret_cast<const unsigned char*>(wr.remote_addr);

    for (u32 i = 0; i < wr.nr_sge; i++) {
        std::copy_n(from, wr.sge[i].length, reinterpret_cast<unsigned char*>(wr.sge[i].addr));
        from += wr.sge[i].length;
    }
}

void fill_with_noise(std::mt19937_64& random, std::vector<unsigned char>& bytes) {
    std::size_t i = 0;

    for (; i + 8 <= bytes.size(); i += 8) {
        const u64 word = random();
        std::copy_n(reinterpret_cast<const unsigned char*>(&word), 8, &bytes[i]);
    }
    for (; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(random());
}

void check_random_transfer(u64 seed, u64 max_bytes, u32 max_extents) {
    std::mt19937_64 random(seed);
    const u64 total = 1 + random() % max_bytes;
    const u64 length = random() % 4 ? 1 + random() % total : total;
    const u64 from = random() % (total - length + 1), to = random() % (total - length + 1);
    const kxfer_plan_limits limits{static_cast<u32>(1 + random() % 32), 1 + random() % (2 * total),
                                   random() % 2 ? static_cast<u32>(random() % 64) : 0};
    std::vector<unsigned char> here(total), there(total);

    SCOPED_TRACE("seed " + std::to_string(seed));
    fill_with_noise(random, here);
    fill_with_noise(random, there);
    const Table local = shuffled_table(random, total, 1 + random() % max_extents, here.data());
    const Table remote = shuffled_table(random, total, 1 + random() % max_extents, there.data());
    std::vector<unsigned char> expected = flatten(local);
    const std::vector<unsigned char> source = flatten(remote);
    std::copy_n(&source[to], length, &expected[from]);

    u64 moved = 0;
    for (const kxfer_wr_desc& wr : plan_all(local, from, remote, to, length, limits)) {
        ASSERT_LE(wr.nr_sge, limits.max_sge);
        ASSERT_LE(wr.length, limits.max_wr_bytes);
        ASSERT_TRUE(key_covers(remote, wr));
        carry_out(wr);
        moved += wr.length;
    }
    EXPECT_EQ(moved, length);
    EXPECT_TRUE(flatten(local) == expected);
    EXPECT_TRUE(flatten(remote) == source);
}

TEST(PlanRandom, ThousandTransfersUpToFourKiB) {
    for (u64 seed = 1; seed <= 1000 && !HasFatalFailure() && !HasNonfatalFailure(); seed++)
        check_random_transfer(seed, 4096, 200);
}

TEST(PlanRandom, FiftyTransfersUpToOneMiB) {
    for (u64 seed = 1; seed <= 50 && !HasFatalFailure() && !HasNonfatalFailure(); seed++)
        check_random_transfer(seed, 1 << 20, 2000);
}

TEST(PlanRandom, ThreeTransfersUpToSixtyFourMiB) {
    for (u64 seed = 1; seed <= 3 && !HasFatalFailure() && !HasNonfatalFailure(); seed++)
        check_random_transfer(seed, 64 << 20, 500);
}

TEST(PlanRandom, SixtyFourMiBInSinglePages) {
    constexpr u32 nr = 16384;
    std::mt19937_64 random(64);
    std::vector<u64> frames(nr);
    std::vector<Piece> pages;
    u64 at = 0;

    std::iota(frames.begin(), frames.end(), 1);
    std::shuffle(frames.begin(), frames.end(), random);
    pages.reserve(nr);
    for (u64 frame : frames) pages.push_back({frame << 12, 4096});
    std::vector<Piece> registrations;
    registrations.reserve(32);
    for (u32 i = 0; i < 32; i++) registrations.push_back({0x7000000000 + (u64{i} << 21), 2 << 20, i + 1});
    const Table local = make_table(pages);

    for (const kxfer_wr_desc& wr :
         plan_all(local, 0, make_table(registrations), 0, u64{nr} << 12, {6, 1 << 20, 0})) {
        EXPECT_EQ(wr.remote_addr, 0x7000000000 + at);
        EXPECT_EQ(wr.rkey, (at >> 21) + 1);
        for (u32 i = 0; i < wr.nr_sge; i++) {
            u64 inside = 0;
            while (inside < wr.sge[i].length) {
                ASSERT_EQ(wr.sge[i].addr + inside, frames[at >> 12] << 12);
                inside += 4096;
                at += 4096;
            }
            ASSERT_EQ(inside, wr.sge[i].length);
        }
    }
    EXPECT_EQ(at, u64{nr} << 12);
}

int check(const Table& table, u64 length) { return kxfer_extents_check(table.data(), table.size(), length); }

TEST(ExtentsCheck, GoodTablesPass) {
    EXPECT_EQ(check(make_table({{0, 1, 1}}), 1), 0);
    EXPECT_EQ(check(make_table({{500, 7, 1}, {0, 9, 0}, {400, 1, 3}}), 17), 0);
    EXPECT_EQ(check(make_table({{0, u32_max, 1}, {0, u32_max, 1}}), 2ULL * u32_max), 0);
}

TEST(ExtentsCheck, EmptyTableIsRefused) {
    EXPECT_EQ(check({}, 0), -EINVAL);
    EXPECT_EQ(check({}, 1), -EINVAL);
}

TEST(ExtentsCheck, EmptyExtentIsRefused) {
    EXPECT_EQ(check({{0, 0, 0, 1}}, 0), -EINVAL);
    EXPECT_EQ(check({{0, 0, 4, 1}, {4, 8, 0, 1}}, 4), -EINVAL);
    EXPECT_EQ(check({{0, 0, 4, 1}, {4, 8, 0, 1}, {4, 8, 4, 1}}, 8), -EINVAL);
}

TEST(ExtentsCheck, FirstExtentNotAtZeroIsRefused) {
    EXPECT_EQ(check({{1, 0, 4, 1}}, 4), -EINVAL);
    EXPECT_EQ(check({{u64_max, 0, 4, 1}}, 3), -EINVAL);
}

TEST(ExtentsCheck, GapIsRefused) {
    EXPECT_EQ(check({{0, 0, 4, 1}, {5, 8, 4, 1}}, 9), -EINVAL);
    EXPECT_EQ(check({{0, 0, 4, 1}, {5, 8, 4, 1}}, 8), -EINVAL);
}

TEST(ExtentsCheck, OverlapIsRefused) {
    EXPECT_EQ(check({{0, 0, 4, 1}, {3, 8, 4, 1}}, 7), -EINVAL);
    EXPECT_EQ(check({{0, 0, 4, 1}, {0, 8, 4, 1}}, 4), -EINVAL);
}

TEST(ExtentsCheck, UnsortedTableIsRefused) {
    EXPECT_EQ(check({{4, 0, 4, 1}, {0, 8, 4, 1}}, 8), -EINVAL);
    EXPECT_EQ(check({{0, 0, 4, 1}, {8, 8, 4, 1}, {4, 8, 4, 1}}, 12), -EINVAL);
}

TEST(ExtentsCheck, StartThatEqualsTheSumOnlyInThirtyTwoBitsIsRefused) {
    EXPECT_EQ(check({{0, 0, 4, 1}, {(1ULL << 32) + 4, 8, 4, 1}}, 8), -EINVAL);
}

TEST(ExtentsCheck, WrongSumIsRefused) {
    const Table table = make_table({{0, 4, 1}, {8, 4, 2}});

    EXPECT_EQ(check(table, 8), 0);
    EXPECT_EQ(check(table, 7), -EINVAL);
    EXPECT_EQ(check(table, 9), -EINVAL);
    EXPECT_EQ(check(table, 0), -EINVAL);
    EXPECT_EQ(check(table, (1ULL << 32) + 8), -EINVAL);
}

TEST(ExtentsCheck, AddressThatWrapsIsRefused) {
    EXPECT_EQ(check({{0, u64_max, 1, 1}}, 1), -EOVERFLOW);
    EXPECT_EQ(check({{0, u64_max - 2, 4, 1}}, 4), -EOVERFLOW);
    EXPECT_EQ(check({{0, 0, 4, 1}, {4, u64_max - u32_max + 1, u32_max, 1}}, 4ULL + u32_max), -EOVERFLOW);
}

TEST(ExtentsCheck, HighestAddressThatDoesNotWrapPasses) {
    EXPECT_EQ(check({{0, u64_max - 4, 4, 1}}, 4), 0);
    EXPECT_EQ(check({{0, u64_max - u32_max, u32_max, 1}}, u32_max), 0);
}

TEST(ExtentsCheck, RandomDamageToATableIsAlwaysFound) {
    std::mt19937_64 random(7);

    for (int round = 0; round < 20000; round++) {
        std::vector<Piece> pieces(1 + random() % 20);
        for (Piece& piece : pieces) piece = {random() >> 1, static_cast<u32>(1 + random() % 4096), 1};
        Table table = make_table(pieces);
        const u64 length = length_of(table);
        ASSERT_EQ(check(table, length), 0);

        kxfer_extent& victim = table[random() % table.size()];
        if (random() % 2)
            victim.start ^= 1ULL << (random() % 64);
        else
            victim.length ^= 1U << (random() % 32);
        ASSERT_NE(check(table, length), 0) << "round " << round;
    }
}

} // namespace

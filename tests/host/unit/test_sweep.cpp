// SPDX-License-Identifier: MIT
//
// The grid of a sweep, what is kept of it, and how that survives a writer that was
// killed.
#include "bench/stats/grid.hpp"
#include "bench/stats/sweep_result.hpp"
#include "bench/stats/sweep_text.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace kxfer::bench;

namespace {

Grid small_grid() {
    return {{"verbs", "kverbs", "job"}, {"read", "write"}, {64, 4096}, {1, 32},
            {"polled", "softirq"},      {"lkey", "mr"},    {"each"},   {"adaptive"}};
}

const Way kverbs{"kverbs", "polled", "lkey", ""};
const Way job{"job", "polled", "", "adaptive"};

SweepRow row_with(const Task& work) {
    SweepRow row;
    Histogram histogram;
    for (uint64_t i = 0; i < 1000; i++) histogram.add(20000 + i);
    row.work = work;
    row.seconds = 0.5;
    row.cells = {{kverbs,
                  true,
                  1000,
                  {10, 11, 12, 13},
                  0.01,
                  latencies_of(histogram),
                  "by an MR, once",
                  "standing, \"rw\"",
                  "acknowledged"},
                 {job, true, 900, {20, 22, 24, 26}, std::nullopt, {}, "", "", "", 21.5, 0.25}};
    row.refusals = {{{"verbs", "", "", ""}, "it said \"no\", twice"}};
    return row;
}

std::string sweep_of(const Grid& grid, size_t rows) {
    std::string text = head_line(R"({"kernel":"6.1","mtu_bytes":4096})", grid, SweepPlan());
    const auto works = works_of(grid);
    for (size_t i = 0; i < rows; i++) text += row_line(row_with(works[i]));
    return text;
}

// Fields of a line of CSV without line breaks within quotes.
std::vector<std::string> csv_fields(const std::string& line) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            fields.emplace_back();
        else
            fields.back() += c;
    }
    return fields;
}

} // namespace

TEST(Grid, ways_have_only_axes_that_their_engine_has) {
    Grid grid = small_grid();
    grid.polls = {"adaptive", "never"};
    std::vector<std::string> names;
    for (const auto& way : ways_of(grid)) names.push_back(way.name());
    EXPECT_EQ(names, (std::vector<std::string>{"verbs", "kverbs polled lkey", "kverbs polled mr",
                                               "kverbs softirq lkey", "kverbs softirq mr",
                                               "job polled adaptive", "job polled never", "job softirq"}));
    EXPECT_EQ(usual_way(grid, "job"), job);
    grid.contexts = {"direct", "polled"};
    names.clear();
    for (const auto& way : ways_of(grid)) names.push_back(way.name());
    EXPECT_EQ(names, (std::vector<std::string>{"verbs", "kverbs direct lkey", "kverbs direct mr",
                                               "kverbs polled lkey", "kverbs polled mr",
                                               "job polled adaptive", "job polled never"}));
    EXPECT_EQ(usual_way(grid, "verbs").name(), "verbs");
}

TEST(Grid, no_work_is_done_twice) {
    Grid grid = small_grid();
    grid.signals = {"each", "batch"};
    grid.operations = {"read", "fetch-add", "write"};
    const auto works = works_of(grid);
    // One at a time there is one way of signalling; atomics have one size.
    EXPECT_EQ(works.size(), 2U * (2 + 2 * 2) + (1 + 2));
    std::set<std::string> names;
    for (const auto& work : works) names.insert(std::to_string(work.size) + work.kind());
    EXPECT_EQ(names.size(), works.size());
    EXPECT_TRUE(names.contains("8FETCH-ADD, 32 deep, a completion a batch"));
    // Works that need another connection come last.
    EXPECT_TRUE(std::is_sorted(works.begin(), works.end(),
                               [](const auto& a, const auto& b) { return a.signal > b.signal; }));
}

TEST(Grid, a_work_has_as_much_time_as_its_ways_take) {
    const SweepPlan sweep{5, 1000, std::chrono::milliseconds(20)};
    const Plan plan = sweep.plan_of(Mode::deep);
    EXPECT_EQ(plan.modes, std::vector<Mode>{Mode::deep});
    EXPECT_EQ(plan.block, std::chrono::milliseconds(20));
    EXPECT_GT(sweep.seconds_of(3), 0.6);
    EXPECT_DOUBLE_EQ(sweep.seconds_of(6), 2 * sweep.seconds_of(3));
}

TEST(SweepResult, ratios_are_of_rounds) {
    const auto row = row_with({});
    const auto ratio = time_ratio(row.cells[1], row.cells[0]);
    ASSERT_TRUE(ratio);
    EXPECT_NEAR(ratio->value, 2, 1e-9);
    EXPECT_TRUE(ratio->significant());
    SweepCell shorter = row.cells[0];
    shorter.blocks_ns.pop_back();
    EXPECT_FALSE(time_ratio(row.cells[1], shorter));
}

TEST(SweepResult, latencies_keep_their_count_in_coarser_buckets) {
    const auto latencies = row_with({}).cells[0].latencies;
    EXPECT_EQ(latencies.count, 1000U);
    EXPECT_TRUE(latencies.p99_ns);
    EXPECT_FALSE(latencies.p99_9_ns);
    EXPECT_FALSE(latencies.p99_99_ns);
    Histogram many;
    for (uint64_t i = 0; i < 100000; i++) many.add(20000 + i);
    EXPECT_NEAR(latencies_of(many).p99_99_ns.value_or(0), 119990, 500);
    uint64_t sum = 0;
    for (const auto& [first, count] : latencies.buckets) sum += count;
    EXPECT_EQ(sum, 1000U);
    EXPECT_LT(latencies.buckets.size(), 4U);
    EXPECT_TRUE(std::is_sorted(latencies.buckets.begin(), latencies.buckets.end()));
}

TEST(SweepText, what_was_written_is_read) {
    const auto parsed = parse_sweep(sweep_of(small_grid(), 2));
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ(parsed->result.grid, small_grid());
    EXPECT_EQ(parsed->result.facts[1], (std::pair<std::string, std::string>("mtu_bytes", "4096")));
    ASSERT_EQ(parsed->result.rows.size(), 2U);
    const auto& row = parsed->result.rows[1];
    EXPECT_EQ(row.work, works_of(small_grid())[1]);
    ASSERT_NE(row.find(job), nullptr);
    EXPECT_EQ(row.find(job)->blocks_ns, (std::vector<double>{20, 22, 24, 26}));
    EXPECT_FALSE(row.find(job)->syscalls);
    EXPECT_EQ(row.find(job)->cpu_ns, 21.5);
    EXPECT_EQ(row.find(job)->switches, 0.25);
    EXPECT_FALSE(row.find(kverbs)->cpu_ns);
    EXPECT_EQ(row.find(kverbs)->latencies.buckets, row_with({}).cells[0].latencies.buckets);
    EXPECT_EQ(row.find(kverbs)->local_registration, "by an MR, once");
    EXPECT_EQ(row.find(kverbs)->remote_registration, "standing, \"rw\"");
    EXPECT_EQ(row.find(kverbs)->write_success, "acknowledged");
    EXPECT_EQ(row.refusals[0].reason, "it said \"no\", twice");
    EXPECT_EQ(parsed->result.missing().size(), works_of(small_grid()).size() - 2);
}

TEST(SweepText, p99_99_is_kept_and_older_files_without_it_are_read) {
    SweepRow row = row_with(works_of(small_grid())[0]);
    row.cells[0].latencies.p99_99_ns = 20999;
    const std::string head = head_line("{}", small_grid(), SweepPlan());
    const auto now = parse_sweep(head + row_line(row));
    ASSERT_TRUE(now) << now.error();
    EXPECT_EQ(now->result.rows[0].find(kverbs)->latencies.p99_99_ns, 20999);
    std::string old = row_line(row);
    for (const std::string key : {"latency_p99_99_ns", "local_registration", "write_success"}) {
        const size_t at = old.find('"' + key + '"');
        ASSERT_NE(at, std::string::npos) << key;
        old.replace(at + 1, 7, "unknown");
    }
    const auto before = parse_sweep(head + old);
    ASSERT_TRUE(before) << before.error();
    EXPECT_FALSE(before->result.rows[0].find(kverbs)->latencies.p99_99_ns);
    EXPECT_EQ(before->result.rows[0].find(kverbs)->local_registration, "");
}

TEST(SweepText, a_torn_last_line_is_dropped_wherever_it_was_torn) {
    const std::string whole = sweep_of(small_grid(), 2), one = sweep_of(small_grid(), 1);
    for (size_t length = one.size(); length < whole.size(); length += 7) {
        const auto parsed = parse_sweep(whole.substr(0, length));
        ASSERT_TRUE(parsed) << parsed.error();
        EXPECT_EQ(parsed->result.rows.size(), 1U) << length;
        EXPECT_EQ(parsed->length, one.size()) << length;
    }
    // A file system may leave zeros, and another writer a line break after them.
    const auto zeros = parse_sweep(one + std::string(10, '\0') + '\n');
    ASSERT_TRUE(zeros) << zeros.error();
    EXPECT_EQ(zeros->length, one.size());
    EXPECT_EQ(parse_sweep(whole)->length, whole.size());
}

TEST(SweepText, what_is_wrong_before_the_end_is_an_error_with_its_line) {
    const std::string whole = sweep_of(small_grid(), 2);
    const size_t first = whole.find('\n') + 1;
    const std::string damaged = whole.substr(0, first) + "{\"oper\n" + whole.substr(first);
    ASSERT_FALSE(parse_sweep(damaged));
    EXPECT_TRUE(parse_sweep(damaged).error().starts_with("line 2: ")) << parse_sweep(damaged).error();
    for (const std::string text : {"", "no line", "{}\n", "[1]\n", "{\"result\":\"kxfer bench\"}\n"})
        EXPECT_FALSE(parse_sweep(text)) << text;
    std::string other = whole;
    other.replace(other.find("\"format\":1"), 10, "\"format\":9");
    EXPECT_NE(parse_sweep(other).error().find("its format is 9"), std::string::npos);
    std::string empty = whole;
    empty.replace(empty.find("[\"adaptive\"]"), 12, "[]");
    EXPECT_FALSE(parse_sweep(empty));
}

TEST(SweepText, another_grid_or_place_is_told) {
    const auto file = parse_sweep(sweep_of(small_grid(), 1))->result;
    EXPECT_TRUE(find_differences(file, file).empty());
    auto now = file;
    now.facts[0].second = "6.12";
    now.grid.sizes = {64};
    now.plan.rounds = 7;
    EXPECT_EQ(find_differences(file, now),
              (std::vector<std::string>{"grid rounds: 5 in the file, 7 now",
                                        "grid size_bytes: [64,4096] in the file, [64] now",
                                        "kernel: 6.1 in the file, 6.12 now"}));
}

TEST(SweepText, a_file_from_before_there_was_CPU_time_is_read) {
    std::string text = sweep_of(small_grid(), 1);
    for (const std::string key : {"\"cpu_per_operation_ns\":21.5,", "\"switches_per_operation\":0.25,",
                                  "\"cpu_per_operation_ns\":null,", "\"switches_per_operation\":null,"}) {
        ASSERT_NE(text.find(key), text.npos) << key;
        text.erase(text.find(key), key.size());
    }
    const auto parsed = parse_sweep(text);
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_FALSE(parsed->result.rows[0].find(job)->cpu_ns);
}

TEST(SweepText, csv_has_the_same_fields_in_each_line) {
    const auto result = parse_sweep(sweep_of(small_grid(), 2))->result;
    std::istringstream lines(csv_text(result));
    std::vector<std::vector<std::string>> all;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(line.ends_with('\r'));
        line.pop_back();
        all.push_back(csv_fields(line));
    }
    ASSERT_EQ(all.size(), 1U + 2 * 3);
    for (const auto& fields : all) EXPECT_EQ(fields.size(), all[0].size());
    EXPECT_EQ(all[1][5], "kverbs");
    for (const auto& [name, text] :
         {std::pair("cpu_per_operation_ns", "21.5"), {"switches_per_operation", "0.25"}}) {
        const auto column = std::ranges::find(all[0], name) - all[0].begin();
        ASSERT_LT(static_cast<size_t>(column), all[0].size()) << name;
        EXPECT_EQ(all[2][static_cast<size_t>(column)], text);
        EXPECT_EQ(all[1][static_cast<size_t>(column)], "");
    }
    EXPECT_EQ(all[3].back(), "it said no, twice"); // quotes are gone with the quoting
    EXPECT_EQ(csv_field("it said \"no\", twice"), "\"it said \"\"no\"\", twice\"");
    EXPECT_EQ(csv_field("plain"), "plain");
    EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

// SPDX-License-Identifier: MIT
//
// The file of a sweep, which grows cell by cell, the sentences computed from its figures, and
// its report.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/measure/plot.hpp"
#include "cli/measure/svg.hpp"
#include "cli/measure/sweep_file.hpp"
#include "cli/measure/sweep_report.hpp"
#include "cli/measure/sweep_summary.hpp"

using namespace kxfer;
using namespace kxfer::cli;
using bench::SweepCell;
using bench::SweepRow;
using bench::Way;

namespace {

namespace fs = std::filesystem;

// A folder that is removed with the test.
class Folder {
  public:
    Folder() {
        std::string name = fs::temp_directory_path() / "sweep.XXXXXX";
        path_ = mkdtemp(name.data());
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { fs::remove_all(path_); }

    std::string file(const std::string& name) const { return path_ / name; }

  private:
    fs::path path_;
};

std::string text_of(const std::string& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
}

bench::Grid grid() {
    return {{"verbs", "kverbs", "job"}, {"read"},       {64, 4096, 65536}, {1},
            {"polled", "softirq"},      {"lkey", "mr"}, {"each"},          {"adaptive"}};
}

std::string head(const bench::Grid& axes = grid(), const char* kernel = "6.1") {
    return bench::head_line(std::string(R"({"kernel":")") + kernel + R"(","driver":"rxe","software":true})",
                            axes, {});
}

// Five rounds around a median, with noise of the given share.
SweepCell cell_of(const Way& way, double ns, double noise = 0.001) {
    SweepCell cell{way, true, 1000, {}, 1.0, {}};
    bench::Histogram histogram;
    for (int i = 0; i < 1000; i++) histogram.add(static_cast<uint64_t>(ns) + static_cast<uint64_t>(i));
    for (int round = 0; round < 5; round++)
        for (int half = 0; half < 2; half++) cell.blocks_ns.push_back(ns * (1 + noise * (round - 2)));
    cell.latencies = bench::latencies_of(histogram);
    return cell;
}

SweepRow row_of(uint64_t size, const std::function<double(const Way&)>& ns) {
    SweepRow row;
    row.work = {bench::Operation::read, size, 1, "each"};
    row.seconds = 1;
    for (const auto& way : bench::ways_of(grid())) row.cells.push_back(cell_of(way, ns(way)));
    return row;
}

// kverbs is fastest except at 64 KiB, where all are equal; softirq takes a tenth longer.
bench::SweepResult result() {
    const auto ns = [](const Way& way) {
        return (way.engine == "verbs" ? 20000
                : way.engine == "job" ? 15000
                                      : 10000) *
               (way.context == "softirq" ? 1.1 : 1.0);
    };
    auto all = bench::parse_sweep(head())->result;
    all.rows = {row_of(64, ns), row_of(4096, ns), row_of(65536, [](const Way&) { return 180000.0; })};
    return all;
}

std::string sentences_of(const bench::SweepResult& all, const std::string& title) {
    for (const auto& answers : summary_of(all)) {
        if (answers.title != title) continue;
        std::string text;
        for (const auto& answer : answers.answers)
            for (const auto& sentence : answer.sentences) text += sentence + "|";
        return text;
    }
    return "no such question";
}

// Checks that each tag is closed by its own; also runs xmllint, if it is installed.
void expect_well_formed(const std::string& page) {
    const Folder folder;
    std::ofstream(folder.file("page.html")) << page;
    if (std::system("command -v xmllint >/dev/null") != 0) GTEST_SKIP() << "no xmllint";
    const std::string command = "xmllint --noout --nonet " + folder.file("page.html") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
}

} // namespace

TEST(SweepFile, rows_are_there_when_it_is_opened_again) {
    const Folder folder;
    const std::string path = folder.file("out");
    {
        auto file = SweepFile::open(path, head());
        ASSERT_TRUE(file) << file.error().error.text();
        EXPECT_TRUE(file->append(result().rows[0]));
    }
    std::ofstream(path, std::ios::app) << R"({"operation":"read","size_by)"; // its writer was killed
    auto file = SweepFile::open(path, head());
    ASSERT_TRUE(file) << file.error().error.text();
    ASSERT_EQ(file->result().missing().size(), 2U);
    EXPECT_EQ(file->result().missing()[0].size, 4096U);
    EXPECT_TRUE(file->append(result().rows[1]));
    const auto read = read_sweep(path);
    ASSERT_TRUE(read) << read.error().error.text();
    EXPECT_EQ(read->rows.size(), 2U);
    EXPECT_EQ(bench::csv_text(*read), bench::csv_text(file->result()));
}

TEST(SweepFile, whose_head_was_torn_begins_anew) {
    const Folder folder;
    const std::string path = folder.file("out");
    for (const size_t length : {size_t{0}, size_t{1}, head().size() / 2, head().size() - 1}) {
        std::ofstream(path, std::ios::trunc) << head().substr(0, length);
        auto file = SweepFile::open(path, head());
        ASSERT_TRUE(file) << length;
        ASSERT_TRUE(file->append(row_of(64, [](const Way&) { return 1000.0; })));
        const auto read = read_sweep(path);
        ASSERT_TRUE(read) << length;
        EXPECT_EQ(read->rows.size(), 1U);
    }
}

TEST(SweepFile, of_another_grid_or_kernel_is_refused_and_left_alone) {
    const Folder folder;
    const std::string path = folder.file("out");
    ASSERT_TRUE(SweepFile::open(path, head()));
    const std::string before = text_of(path);
    bench::Grid other = grid();
    other.sizes = {64};
    for (const auto& [line, why] :
         {std::pair{head(other), "grid size_bytes: [64,4096,65536] in the file, [64] now"},
          {head(grid(), "6.12"), "kernel: 6.1 in the file, 6.12 now"}}) {
        const auto file = SweepFile::open(path, line);
        ASSERT_FALSE(file);
        EXPECT_EQ(file.error().error.reason(), why);
    }
    EXPECT_EQ(text_of(path), before);
}

TEST(SweepFile, of_something_else_is_refused_and_left_alone) {
    const Folder folder;
    for (const std::string text : {"notes\n", "{}\n", "no line"}) {
        std::ofstream(folder.file("other")) << text;
        EXPECT_FALSE(SweepFile::open(folder.file("other"), head()));
        EXPECT_EQ(text_of(folder.file("other")), text);
        EXPECT_FALSE(read_sweep(folder.file("other")));
    }
    EXPECT_FALSE(read_sweep(folder.file("nowhere")));
}

TEST(SweepFile, is_written_by_one_at_a_time) {
    const Folder folder;
    const auto first = SweepFile::open(folder.file("out"), head());
    ASSERT_TRUE(first);
    const auto second = SweepFile::open(folder.file("out"), head());
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().error.text().find("another kxfer sweep"), std::string::npos);
}

TEST(SweepSummary, sizes_with_the_same_winner_are_told_together) {
    EXPECT_EQ(sentences_of(result(), "Engines"),
              "kverbs is fastest at 64 B to 4 KiB (times as long: verbs 2.00, job 1.50)|"
              "no significant difference at 64 KiB|");
    EXPECT_EQ(sentences_of(result(), "Completion context of kverbs, memory lkey"),
              "polled is fastest at 64 B to 4 KiB (times as long: softirq 1.10)|"
              "no significant difference at 64 KiB|");
    EXPECT_EQ(sentences_of(result(), "Registration of local memory by kverbs, context polled"),
              "no significant difference at 64 B to 64 KiB|");
}

TEST(SweepSummary, noise_makes_a_difference_insignificant) {
    auto all = result();
    for (auto& row : all.rows)
        for (auto& cell : row.cells)
            if (cell.way.engine == "job") cell = cell_of(cell.way, 15000, 0.4);
    all.rows.resize(2);
    EXPECT_EQ(
        sentences_of(all, "Engines"),
        "no significant difference between kverbs and job at 64 B to 4 KiB (times as long: verbs 2.00)|");
}

TEST(SweepSummary, what_the_machine_spoiled_is_in_no_sentence) {
    auto all = result();
    all.rows[1].obstacle = "the host took 20 % of a CPU's time";
    EXPECT_EQ(sentences_of(all, "Engines"), "kverbs is fastest at 64 B (times as long: verbs 2.00, job 1.50)|"
                                            "no significant difference at 64 KiB|");
    const auto notes = notes_of(all);
    EXPECT_TRUE(std::ranges::any_of(notes, [](const auto& note) { return note.starts_with("1 works"); }));
    // On a software device this note accompanies any figure.
    EXPECT_TRUE(
        std::ranges::any_of(notes, [](const auto& n) { return n.find("nothing about hardware") != n.npos; }));
}

TEST(SweepSummary, what_was_refused_is_not_compared) {
    auto all = result();
    for (auto& row : all.rows)
        std::erase_if(row.cells, [](const auto& cell) { return cell.way.engine == "verbs"; });
    EXPECT_TRUE(sentences_of(all, "Engines")
                    .starts_with("kverbs is fastest at 64 B to 4 KiB (times as long: job 1.50)|"));
    for (auto& row : all.rows) row.cells.clear();
    EXPECT_TRUE(summary_of(all).empty());
}

TEST(SweepSummary, times_have_three_digits) {
    EXPECT_EQ(short_time(345), "345 ns");
    EXPECT_EQ(short_time(1234), "1.23 us");
    EXPECT_EQ(short_time(38420), "38.4 us");
    EXPECT_EQ(short_time(1170000), "1.17 ms");
    EXPECT_EQ(short_time(2.5e9), "2.50 s");
}

TEST(Plot, ticks_enclose_the_values) {
    EXPECT_EQ(ticks_between(12, 180), (std::vector<double>{10, 20, 50, 100, 200}));
    EXPECT_EQ(ticks_between(20, 20), (std::vector<double>{20, 50}));
    for (const auto& [low, high] : {std::pair{0.03, 7.1}, {999.0, 1001.0}, {1.0, 1e9}}) {
        const auto ticks = ticks_between(low, high);
        EXPECT_LE(ticks.front(), low);
        EXPECT_GE(ticks.back(), high);
    }
}

TEST(Plot, values_that_no_logarithm_has_are_left_out) {
    const auto text = [](double value) { return std::to_string(value); };
    const Line line{"line", 1, {{0, 5, {}}, {64, 0, {}}, {64, 10, 0.0}, {4096, 20, 30.0}}};
    const LinePlot plot{"title", {line}, text, text};
    const LinePlot rest{"title", {{"line", 1, {{64, 10, {}}, {4096, 20, 30.0}}}}, text, text};
    EXPECT_EQ(svg_of(plot), svg_of(rest));
    const LinePlot nothing{"title", {{"line", 1, {{0, 0, 0.0}}}}, text, text};
    EXPECT_EQ(svg_of(nothing).find("nan"), std::string::npos);
}

TEST(SweepReport, is_well_formed_and_needs_nothing_else) {
    const std::string page = html_of(result());
    expect_well_formed(page);
    for (const std::string wanted :
         {"Latency by size", "Completion context and registration", "kverbs is fastest"})
        EXPECT_NE(page.find(wanted), page.npos) << wanted;
    for (const std::string unwanted : {"<script", "<link", "src=", "url(", "@import"})
        EXPECT_EQ(page.find(unwanted), page.npos) << unwanted;
}

// Neither in the tables nor in the map of contexts and registrations.
TEST(SweepReport, what_the_machine_spoiled_is_not_called_fastest) {
    const auto count = [](const std::string& page, const std::string& word) {
        size_t nr = 0;
        for (size_t at = page.find(word); at != page.npos; at = page.find(word, at + 1)) nr++;
        return nr;
    };
    auto all = result();
    all.rows.resize(1);
    const std::string judged = html_of(all);
    all.rows[0].obstacle = "the host took 20 % of a CPU's time";
    const std::string spoiled = html_of(all);

    expect_well_formed(spoiled);
    // in two tables and the map; one frame
    EXPECT_EQ(count(judged, ">fastest<"), 3U);
    EXPECT_EQ(count(judged, "class=\"best\""), 2U); // lkey and mr do not differ
    EXPECT_EQ(count(judged, ">not judged<"), 0U);
    EXPECT_EQ(count(spoiled, ">fastest<"), 0U);
    EXPECT_EQ(count(spoiled, "class=\"best\""), 0U);
    // Each way in the second table, the usual ways in the first, those of kverbs in the map.
    EXPECT_EQ(count(spoiled, ">not judged<"), all.rows[0].cells.size() + 3 + 4);
}

TEST(SweepReport, names_from_outside_are_no_markup) {
    auto all = result();
    all.facts.emplace_back("peer", "<b>&\"x\"");
    all.rows[0].refusals = {{{"job", "<i>", "", ""}, "</li><script>alert(1)</script>\x01"}};
    const std::string page = html_of(all);
    expect_well_formed(page);
    EXPECT_EQ(page.find("<script"), page.npos);
    EXPECT_EQ(page.find("<b>"), page.npos);
}

TEST(SweepReport, of_nothing_or_of_one_cell_is_well_formed) {
    auto all = result();
    all.rows.resize(1);
    all.rows[0].cells.resize(1);
    expect_well_formed(html_of(all));
    all.rows[0].cells.clear();
    expect_well_formed(html_of(all));
    all.rows.clear();
    expect_well_formed(html_of(all));
}

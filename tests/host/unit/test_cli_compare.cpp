// SPDX-License-Identifier: MIT
//
// What `kxfer compare` makes of its figures: when it says that they differ, and when it
// does not judge.
#include "cli/measure/compare_report.hpp"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/output/output.hpp"
#include "on_terminal.hpp"

using namespace kxfer;
using namespace kxfer::cli;
using Json = nlohmann::json;

namespace {

// The engine job takes a tenth of the time of verbs.
CompareReport report_of() {
    bench::EngineResult verbs, job;
    verbs.engine = "verbs";
    job.engine = "job";
    verbs.single.last_to_this = verbs.deep.last_to_this = bench::Ratio{0.1, 0.09, 0.11};
    for (auto* engine : {&verbs, &job}) {
        engine->single.blocks = engine->deep.blocks = {1000, 1000};
        engine->single.operations = engine->deep.operations = 100;
        engine->verified = true;
    }
    bench::Cell cell;
    cell.engines = {verbs, job};
    CompareReport report;
    report.cells = {cell};
    report.conditions.steal = 0.01;
    return report;
}

std::string printed(const CompareReport& report, bool json) {
    testing::internal::CaptureStdout();
    const auto output = json ? make_json_output({}) : make_text_output({});
    output->record(report_record(report));
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
}

Json json_of(const CompareReport& report) { return Json::parse(printed(report, true)); }

bool says(const CompareReport& report, const std::string& words) {
    return printed(report, false).find(words) != std::string::npos;
}

} // namespace

TEST(CompareReport, tables_fit_a_terminal_of_80_columns) {
    CompareReport report = report_of();
    bench::EngineResult kverbs = report.cells[0].engines[0];
    kverbs.engine = "kverbs";
    report.cells[0].engines.insert(report.cells[0].engines.begin() + 1, kverbs);
    const std::string text = on_terminal(STDOUT_FILENO, 80, [&] {
        const auto out = make_text_output({false, false, false});
        out->offer_wide(false);
        out->record(report_record(report));
    });
    const std::string tables = text.substr(text.find("one at a time"));
    EXPECT_LE(longest_line(tables.substr(0, tables.find("calls: system calls"))), 80U) << text;
    EXPECT_NE(tables.find("job/verbs  verdict"), std::string::npos) << text;
    EXPECT_NE(tables.find("0.100      faster"), std::string::npos) << text;
    EXPECT_NE(tables.find("(--wide tells more)"), std::string::npos) << text;
    EXPECT_EQ(printed(report, false).find("--wide"), std::string::npos);
}

TEST(CompareReport, says_what_it_is) {
    const Json json = json_of(report_of());
    EXPECT_EQ(json["result"], "kxfer compare");
    EXPECT_EQ(json["format"], 1);
}

TEST(CompareReport, tells_a_difference_that_is_significant) {
    const CompareReport report = report_of();
    const Json json = json_of(report);
    EXPECT_EQ(json["obstacle"], "");
    for (const char* ratio : {"time_ratio_job_to_verbs_one_at_a_time", "time_ratio_job_to_verbs_deep"})
        EXPECT_EQ(json["cells"][0][ratio]["significant"], true) << ratio;
    EXPECT_TRUE(says(report, "0.100 [0.090, 0.110] faster"));
    EXPECT_FALSE(says(report, "not judged"));
}

TEST(CompareReport, says_that_it_was_interrupted) {
    CompareReport report = report_of();
    EXPECT_EQ(json_of(report)["interrupted"], false);
    report.nr_wanted = 3;
    EXPECT_EQ(json_of(report)["interrupted"], true);
    EXPECT_TRUE(says(report, "1 of 3 cells were measured"));
}

TEST(CompareReport, does_not_judge_what_the_machine_spoiled) {
    CompareReport report = report_of();
    report.conditions.steal = 0.2;
    const Json json = json_of(report);
    EXPECT_TRUE(json["obstacle"].get<std::string>().starts_with("the host took 20.0 %")) << json["obstacle"];
    for (const char* ratio : {"time_ratio_job_to_verbs_one_at_a_time", "time_ratio_job_to_verbs_deep"}) {
        EXPECT_TRUE(json["cells"][0][ratio]["significant"].is_null()) << ratio;
        EXPECT_EQ(json["cells"][0][ratio]["value"], 0.1) << ratio;
    }
    EXPECT_TRUE(says(report, "0.100 [0.090, 0.110] not judged"));
    EXPECT_TRUE(says(report, "not judged: the host took 20.0 %"));
    EXPECT_FALSE(says(report, "faster"));
}

TEST(CompareReport, judges_anyway_if_that_is_wanted) {
    CompareReport report = report_of();
    report.conditions.min_khz = 1000000;
    report.conditions.max_khz = 3000000;
    EXPECT_TRUE(says(report, "not judged: the CPU's frequency"));
    report.judge_anyway = true;
    const Json json = json_of(report);
    EXPECT_EQ(json["obstacle"], "");
    EXPECT_EQ(json["cells"][0]["time_ratio_job_to_verbs_deep"]["significant"], true);
    EXPECT_TRUE(says(report, "faster"));
    EXPECT_FALSE(says(report, "not judged"));
}

// The printed interval does not contain 1 if the verdict says so.
TEST(CompareReport, does_not_judge_connections_that_differ) {
    CompareReport report = report_of();
    report.cells[0].engines[0].connection = {4096, 0, "RoCE v2"};
    report.cells[0].engines[1].connection = {1024, 0, "RoCE v2"};
    const std::string warning = "the engines' connections differ in path MTU: verbs 4096, job 1024";

    Json json = json_of(report);
    EXPECT_EQ(json["warning"], warning);
    EXPECT_EQ(json["obstacle"], warning);
    EXPECT_EQ(json["cells"][0]["engines"][1]["path_mtu_bytes"], 1024);
    EXPECT_TRUE(json["cells"][0]["time_ratio_job_to_verbs_deep"]["significant"].is_null());
    EXPECT_FALSE(says(report, "faster"));
    EXPECT_TRUE(says(report, "WARNING"));

    report.judge_anyway = true;
    json = json_of(report);
    EXPECT_EQ(json["warning"], warning);
    EXPECT_EQ(json["obstacle"], "");
    EXPECT_TRUE(says(report, "faster"));
}

TEST(CompareReport, an_interval_without_1_is_printed_without_1) {
    EXPECT_EQ(ratio_text(bench::Ratio{0.993, 0.987, 0.99996}, true, true),
              "0.99300 [0.98700, 0.99996] slower");
    EXPECT_EQ(ratio_text(bench::Ratio{1.01, 1.0004, 1.02}, true, true), "1.0100 [1.0004, 1.0200] faster");
    EXPECT_EQ(ratio_text(bench::Ratio{0.5, 0.4, 0.6}, true, true), "0.500 [0.400, 0.600] slower");
    EXPECT_EQ(ratio_text(bench::Ratio{1, 0.9996, 1.1}, true, true),
              "1.000 [1.000, 1.100] no significant difference");
}

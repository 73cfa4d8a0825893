// SPDX-License-Identifier: MIT
//
// Assertions, baselines, their verdicts and the files of them.
#include "bench/run/conditions.hpp"
#include "bench/run/environment.hpp"
#include "bench/stats/assertion.hpp"
#include "bench/stats/baseline.hpp"
#include "bench/stats/verdict.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace kxfer::bench;
using Outcome = Verdict::Outcome;

namespace {

Baseline result_of(const std::string& parameters, const std::string& total) {
    const auto parsed = parse_baseline(fmt::format(
        R"({{"result":"kxfer bench","format":1,"parameters":{},"total":{}}})", parameters, total));
    EXPECT_TRUE(parsed) << parsed.error();
    return parsed.value_or(Baseline());
}

const std::string usual =
    R"({"rate_per_s":1000,"bandwidth_bytes_per_s":64000,"latency_p50_ns":100,"latency_p99_ns":200})";

} // namespace

TEST(Assertion, units_are_turned_into_ns_bytes_and_operations_a_second) {
    const auto parsed = parse_assertions("p99<80us,bw>500MiB/s, rate >= 10k/s ,p50<=20ns,max<2s,mean<1ms,"
                                         "p99.99<1us,bw>1GB/s,bw>8Gbit/s,rate>1M/s,syscalls<=1,switches<0.5,"
                                         "peer_cpu<1us");
    ASSERT_TRUE(parsed) << parsed.error().message;
    const std::vector<double> limits = {80e3, 500.0 * 1048576, 10e3, 20, 2e9, 1e6, 1e3, 1e9, 1e9, 1e6, 1, 0.5,
                                        1e3};
    ASSERT_EQ(parsed->size(), limits.size());
    for (size_t i = 0; i < limits.size(); i++) EXPECT_DOUBLE_EQ((*parsed)[i].limit, limits[i]) << i;
    EXPECT_EQ((*parsed)[2].text, "rate >= 10k/s");
    EXPECT_EQ((*parsed)[2].relation, Relation::at_least);
    EXPECT_EQ((*parsed)[6].figure, "p99.99");
}

TEST(Assertion, what_is_wrong_is_named_with_its_place) {
    struct Bad {
        const char* text;
        size_t position;
        const char* words;
    };
    const std::vector<Bad> all = {
        {"", 1, "a figure is one of"},
        {"p98<1us", 1, "'p98' is no figure"},
        {"p99<80us,", 10, "a figure is one of"},
        {"p99<80us,,bw>1B/s", 10, "a figure is one of"},
        {"p99=80us", 4, "one of <, <=, >, >="},
        {"p99", 4, "one of <, <=, >, >="},
        {"p99<us", 5, "a number"},
        {"p99<-1us", 5, "a number"},
        {"p99<inf", 5, "a number"},
        {"p99<1e999us", 5, "a number"},
        {"p99<80", 7, "p99 needs a unit: ns, us, ms, s"},
        {"p99<80MiB/s", 7, "p99 needs a unit"},
        {"bw>5us", 5, "bw needs a unit: B/s"},
        {"rate>5", 7, "rate needs a unit: /s, k/s, M/s"},
        {"syscalls<1us", 11, "syscalls has no unit"},
        {"p99<80us bw>1B/s", 10, "by commas"},
    };
    for (const auto& bad : all) {
        const auto parsed = parse_assertions(bad.text);
        ASSERT_FALSE(parsed) << bad.text;
        EXPECT_EQ(parsed.error().position, bad.position) << bad.text;
        EXPECT_NE(parsed.error().message.find(bad.words), std::string::npos) << parsed.error().message;
    }
}

TEST(Assertion, a_rate_alone) {
    EXPECT_DOUBLE_EQ(parse_rate("10k/s").value(), 10e3);
    EXPECT_DOUBLE_EQ(parse_rate("0.5/s").value(), 0.5);
    for (const char* text : {"", "10", "10k", "-1/s", "10/s,", "1us", "/s"})
        EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Assertion, relations_at_their_limit) {
    const auto parsed = parse_assertions("p50<10ns,p50<=10ns,p50>10ns,p50>=10ns");
    ASSERT_TRUE(parsed);
    const std::vector<Figure> figures = {{"p50", Kind::time, 10, {}}};
    const auto verdicts = judge(*parsed, figures, "");
    ASSERT_EQ(verdicts.size(), 4U);
    EXPECT_EQ(verdicts[0].outcome, Outcome::failed);
    EXPECT_EQ(verdicts[1].outcome, Outcome::passed);
    EXPECT_EQ(verdicts[2].outcome, Outcome::failed);
    EXPECT_EQ(verdicts[3].outcome, Outcome::passed);
    EXPECT_EQ(verdicts[0].detail, "p50 is 10 ns");
}

TEST(Assertion, a_figure_that_is_not_known_fails_with_the_reason) {
    const auto parsed = parse_assertions("p99.99<1s");
    const auto verdicts = judge(*parsed, {{"p99.99", Kind::time, {}, "too few"}}, "");
    EXPECT_EQ(verdicts.at(0).outcome, Outcome::failed);
    EXPECT_NE(verdicts[0].detail.find("too few"), std::string::npos);
}

TEST(Assertion, nothing_is_judged_when_the_machine_spoiled_the_run) {
    const auto parsed = parse_assertions("p50<1s");
    const auto verdicts = judge(*parsed, {{"p50", Kind::time, 10, {}}}, "the host took 9 %");
    EXPECT_EQ(verdicts.at(0).outcome, Outcome::not_judged);
    EXPECT_FALSE(verdicts[0].fine());
    EXPECT_NE(verdicts[0].detail.find("the host took"), std::string::npos);
}

TEST(Figures, a_percentile_that_the_count_cannot_tell_has_no_value_but_a_reason) {
    RunResult result;
    result.operations = 1000;
    result.elapsed_ns = 1000000000;
    for (uint64_t value = 1; value <= 1000; value++) result.latencies.add(value);
    for (const auto& figure : figures_of(result)) {
        if (figure.name == "p99") {
            EXPECT_TRUE(figure.value);
        }
        if (figure.name == "p99.9" || figure.name == "p99.99") {
            EXPECT_FALSE(figure.value);
            EXPECT_NE(figure.missing.find("there were 1000"), std::string::npos) << figure.missing;
        }
        EXPECT_EQ(kind_of(figure.name), figure.kind);
    }
}

TEST(Figures, text_has_the_unit_that_fits) {
    EXPECT_EQ(figure_text(Kind::time, 1500), "1.5 us");
    EXPECT_EQ(figure_text(Kind::bandwidth, 2097152), "2 MiB/s");
    EXPECT_EQ(figure_text(Kind::rate, 12345), "12345/s");
    EXPECT_EQ(figure_text(Kind::number, 0.25), "0.25");
}

TEST(Baseline, what_is_no_result_is_refused_in_words) {
    for (const char* text : {"", "[]", "{", "{}", "7", R"({"result":7})",
                             R"({"result":"kxfer bench","parameters":{},"total":3,"format":1})"})
        EXPECT_FALSE(parse_baseline(text)) << text;
    const auto newer = parse_baseline(R"({"result":"kxfer bench","parameters":{},"total":{},"format":2})");
    ASSERT_FALSE(newer);
    EXPECT_NE(newer.error().find("format is 2"), std::string::npos);
}

TEST(Baseline, parameters_that_differ_are_all_listed) {
    const auto before = result_of(R"({"depth":1,"engine":"job","count":5})", usual);
    const auto now = result_of(R"({"depth":16,"engine":"job","duration_ns":3})", usual);
    EXPECT_TRUE(find_differences(before, before).empty());
    const auto differences = find_differences(before, now);
    ASSERT_EQ(differences.size(), 3U);
    EXPECT_EQ(differences[0], "count: 5 in the baseline, nothing now");
    EXPECT_EQ(differences[1], "depth: 1 in the baseline, 16 now");
}

TEST(Baseline, worse_by_more_than_the_tolerance_fails_better_never_does) {
    const auto before = result_of("{}", usual);
    for (const auto& verdict : judge(before, before, 0, "")) EXPECT_EQ(verdict.outcome, Outcome::passed);
    const auto now = result_of("{}", R"({"rate_per_s":960,"bandwidth_bytes_per_s":1e9,)"
                                     R"("latency_p50_ns":106,"latency_p99_ns":20})");
    const auto verdicts = judge(before, now, 0.05, "");
    ASSERT_EQ(verdicts.size(), 4U);
    EXPECT_EQ(verdicts[0].outcome, Outcome::passed);
    EXPECT_EQ(verdicts[1].outcome, Outcome::passed);
    EXPECT_EQ(verdicts[2].outcome, Outcome::failed);
    EXPECT_EQ(verdicts[2].detail, "p50 is 106 ns, was 100 ns (+6.0 %)");
    EXPECT_EQ(verdicts[3].outcome, Outcome::passed);
    for (const auto& verdict : judge(before, now, 0.05, "steal"))
        EXPECT_EQ(verdict.outcome, Outcome::not_judged);
}

TEST(Baseline, a_figure_that_the_baseline_lacks_is_skipped_one_that_is_lost_fails) {
    const auto full = result_of("{}", usual);
    const auto poor = result_of("{}", R"({"rate_per_s":1000,"latency_p99_ns":null})");
    EXPECT_EQ(judge(poor, full, 0.05, "").at(3).outcome, Outcome::skipped);
    EXPECT_EQ(judge(full, poor, 0.05, "").at(3).outcome, Outcome::failed);
}

TEST(Baseline, tolerances) {
    EXPECT_DOUBLE_EQ(parse_tolerance("5%").value(), 0.05);
    EXPECT_DOUBLE_EQ(parse_tolerance("2.5").value(), 0.025);
    EXPECT_DOUBLE_EQ(parse_tolerance("0%").value(), 0);
    for (const char* text : {"", "%", "-5%", "5 %", "x", "nan", "1001%", "5%%"})
        EXPECT_FALSE(parse_tolerance(text)) << text;
}

TEST(VerdictFile, xml_is_escaped) {
    EXPECT_EQ(xml_escaped("p99<80us & \"x\">\n\x01"), "p99&lt;80us &amp; &quot;x&quot;&gt;&#10;?");
}

TEST(VerdictFile, junit_counts_and_names_each_kind) {
    const std::vector<Verdict> verdicts = {{"p50<1us", Outcome::passed, "p50 is 3 ns"},
                                           {"bw>1B/s", Outcome::failed, "bw is 0"},
                                           {"rate", Outcome::not_judged, "steal"},
                                           {"p99", Outcome::skipped, "none"}};
    const auto text = report_text(ReportForm::junit, "a<b", verdicts);
    EXPECT_NE(text.find(R"(<testsuite name="a&lt;b" tests="4" failures="1" errors="1" skipped="1">)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(R"(name="p50&lt;1us")"), std::string::npos);
    EXPECT_NE(text.find(R"(<failure message="bw is 0"/>)"), std::string::npos);
    EXPECT_NE(text.find(R"(<error message="steal"/>)"), std::string::npos);
    EXPECT_NE(text.find(R"(<skipped message="none"/>)"), std::string::npos);
}

TEST(VerdictFile, tap_has_a_line_for_each) {
    const std::vector<Verdict> verdicts = {{"a#1\nb", Outcome::passed, "x"},
                                           {"b", Outcome::not_judged, "steal"},
                                           {"c", Outcome::skipped, "none"}};
    EXPECT_EQ(report_text(ReportForm::tap, "s", verdicts), "TAP version 13\n1..3\n# s\n"
                                                           "ok 1 - a\\#1 b\n# passed: x\n"
                                                           "not ok 2 - b\n# not judged: steal\n"
                                                           "ok 3 - c # SKIP none\n");
}

TEST(VerdictFile, the_extension_says_the_form) {
    EXPECT_EQ(report_form("a/b.xml"), ReportForm::junit);
    EXPECT_EQ(report_form("b.tap"), ReportForm::tap);
    EXPECT_FALSE(report_form("xml"));
    EXPECT_FALSE(report_form("a.json"));
}

TEST(Conditions, steal_is_the_eighth_number_of_a_CPUs_line) {
    const auto steal = parse_steal("cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
                                   "cpu12 0 0 0 0 0 0 0 42\ncpu3 1 2\nintr 5 6\n");
    ASSERT_EQ(steal.size(), 2U);
    EXPECT_EQ(steal.at(0), 8U);
    EXPECT_EQ(steal.at(12), 42U);
}

TEST(Conditions, too_much_steal_or_change_of_frequency_is_an_obstacle) {
    Conditions conditions;
    EXPECT_EQ(conditions.obstacle(), "");
    conditions.steal = 0.05;
    conditions.min_khz = 900000;
    conditions.max_khz = 1000000;
    EXPECT_EQ(conditions.obstacle(), "");
    conditions.min_khz = 899000;
    EXPECT_NE(conditions.obstacle().find("899 to 1000 MHz"), std::string::npos);
    conditions.steal = 0.06;
    EXPECT_NE(conditions.obstacle().find("6.0 %"), std::string::npos);
}

TEST(Conditions, steal_is_known_where_somebody_tells_the_kernel) {
    const std::map<unsigned, uint64_t> none = {{0, 0}, {1, 0}}, some = {{0, 0}, {1, 7}};
    const Hypervisor tcg{"TCGTCGTCGTCG", false}, kvm{"KVMKVMKVM", true}, old_kvm{"KVMKVMKVM", false};
    EXPECT_EQ(why_no_steal({}, "", none), "");
    EXPECT_EQ(why_no_steal(kvm, "QEMU", none), "");
    EXPECT_EQ(why_no_steal(Hypervisor{"XenVMMXenVMM"}, "Xen", none), "");
    EXPECT_NE(why_no_steal(tcg, "QEMU", none).find("TCGTCGTCGTCG"), std::string::npos);
    EXPECT_NE(why_no_steal(old_kvm, "QEMU", none), "");
    EXPECT_NE(why_no_steal(Hypervisor{}, "unknown", none).find("unknown"), std::string::npos);
    EXPECT_NE(why_no_steal({}, "User-mode Linux", none), "");
    EXPECT_NE(why_no_steal(kvm, "", {}), "");
    // A count that was nonzero before proves that the host reports it.
    EXPECT_EQ(why_no_steal(tcg, "QEMU", some), "");
}

TEST(Environment, lists_of_CPUs) {
    EXPECT_EQ(cpu_list({}), "");
    EXPECT_EQ(cpu_list({3}), "3");
    EXPECT_EQ(cpu_list({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
    EXPECT_FALSE(allowed_cpus().empty());
}

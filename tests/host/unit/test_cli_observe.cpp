// SPDX-License-Identifier: MIT
//
// Rates between two views of a node, events, and the texts for monitoring.
#include "cli/observe/change.hpp"
#include "cli/observe/openmetrics.hpp"
#include "cli/observe/rates.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/output.hpp"
#include "cli/output/terminal.hpp"

using namespace kxfer;
using namespace kxfer::cli;

namespace {

template <size_t N> void set_text(uint8_t (&bytes)[N], const std::string& text) {
    memcpy(bytes, text.c_str(), std::min(text.size() + 1, N));
}

kxfer_info_link some_link(uint64_t id, uint32_t state, uint64_t read, uint64_t written) {
    kxfer_info_link link = {};
    link.id = id;
    link.flags = KXFER_LINK_INITIATOR;
    link.state = state;
    link.bytes_read = read;
    link.bytes_written = written;
    link.remote.family = AF_INET;
    link.remote.addr[0] = 10;
    link.remote.addr[3] = static_cast<uint8_t>(id);
    link.remote.port = KXFER_PORT;
    set_text(link.device, "rxe0");
    return link;
}

kxfer_info_lane some_lane(uint64_t id, uint64_t link, uint32_t index, uint64_t work_requests) {
    kxfer_info_lane lane = {};
    lane.id = id;
    lane.link = link;
    lane.index = index;
    lane.nr_wr = work_requests;
    return lane;
}

// Jobs of one bucket.
kxfer_info_latency some_latency(uint64_t link, uint32_t op, size_t bucket, uint64_t jobs) {
    kxfer_info_latency latency = {};
    latency.link = link;
    latency.op = op;
    latency.buckets[bucket] = jobs;
    return latency;
}

kxfer_info_counter some_counter(uint64_t id, const std::string& name, uint64_t value) {
    kxfer_info_counter counter = {};
    counter.id = id;
    set_text(counter.name, name);
    counter.value = value;
    return counter;
}

kxfer_info_export some_export(uint64_t id, const std::string& name) {
    kxfer_info_export one = {};
    one.id = id;
    set_text(one.name, name);
    one.owner_pid = 42;
    return one;
}

kxfer_info_listener some_listener(uint64_t id, uint64_t refused) {
    kxfer_info_listener listener = {};
    listener.id = id;
    listener.addr.family = AF_INET;
    listener.addr.port = KXFER_PORT;
    listener.nr_refused = refused;
    return listener;
}

// Two seconds later than `before`, if that is given.
View some_view(const View* before = nullptr) {
    View view;
    view.at_ns = before ? before->at_ns + 2'000'000'000 : 1'000'000'000;
    return view;
}

Value value_of(const Record& record, const std::string& key) {
    for (const Field& field : record.fields())
        if (field.key == key) return field.value;
    return std::string("no such field");
}

std::vector<std::string> kinds_of(const std::vector<Change>& changes) {
    std::vector<std::string> kinds;
    for (const Change& change : changes) kinds.push_back(human_value(value_of(change.record, "event")));
    return kinds;
}

std::vector<std::string> texts_of(const std::vector<Change>& changes) {
    std::vector<std::string> texts;
    for (const Change& change : changes) texts.push_back(change.text);
    return texts;
}

using Strings = std::vector<std::string>;

} // namespace

TEST(Rates, are_by_the_second) {
    View before = some_view();
    before.links = {some_link(3, KXFER_LINK_LIVE, 1000, 50)};
    before.lanes = {some_lane(1, 3, 0, 7), some_lane(2, 3, 1, 10), some_lane(3, 3, 2, 20)};
    View now = some_view(&before);
    now.links = {some_link(3, KXFER_LINK_LIVE, 5000, 50)};
    // The control lane's work requests are not those of jobs.
    now.lanes = {some_lane(1, 3, 0, 99), some_lane(2, 3, 1, 14), some_lane(3, 3, 2, 24)};

    const auto rates = link_rates(before, now);

    ASSERT_EQ(rates.size(), 1U);
    EXPECT_DOUBLE_EQ(rates[0].bytes_read.value(), 2000);
    EXPECT_DOUBLE_EQ(rates[0].bytes_written.value(), 0);
    EXPECT_DOUBLE_EQ(rates[0].work_requests.value(), 4);
}

TEST(Rates, of_a_new_link_count_from_its_beginning) {
    const View before = some_view();
    View now = some_view(&before);
    now.links = {some_link(3, KXFER_LINK_LIVE, 5000, 0)};

    EXPECT_DOUBLE_EQ(link_rates(before, now).at(0).bytes_read.value(), 2500);
}

TEST(Rates, of_the_node_leave_gauges_as_they_are) {
    View before = some_view();
    before.counters = {some_counter(1, "live_jobs", 5), some_counter(2, "bytes_read", 100),
                       some_counter(3, "jobs_completed", 10)};
    View now = some_view(&before);
    now.counters = {some_counter(1, "live_jobs", 3), some_counter(2, "bytes_read", 300),
                    some_counter(3, "jobs_completed", 20)};

    const Record record = counter_rates(before, now);

    EXPECT_EQ(json_text(record),
              "{\"live_jobs\":3,\"read_bytes_per_s\":100.0,\"jobs_completed_per_s\":5.0}\n");
}

TEST(Rates, of_jobs_are_of_those_that_ended_since) {
    View before = some_view();
    before.links = {some_link(3, KXFER_LINK_LIVE, 0, 0)};
    before.latencies = {some_latency(3, KXFER_OP_READ, 70, 1000)};
    View now = some_view(&before);
    now.links = before.links;
    now.latencies = {some_latency(3, KXFER_OP_READ, 70, 1000), some_latency(3, KXFER_OP_WRITE, 4, 6),
                     some_latency(9, KXFER_OP_WRITE, 4, 6)};
    now.latencies[1].nr_failed = 2;

    const auto rate = link_rates(before, now).at(0);

    EXPECT_DOUBLE_EQ(rate.jobs.value(), 4);
    EXPECT_DOUBLE_EQ(rate.failed.value(), 1);
    EXPECT_DOUBLE_EQ(rate.latency.quantile_ns(99).value(), 2560);
    EXPECT_FALSE(link_rates(now, now).at(0).latency.quantile_ns(50));
}

TEST(Latencies, have_quantiles_that_are_ends_of_buckets) {
    Latency latency;

    EXPECT_FALSE(latency.quantile_ns(50));
    EXPECT_FALSE(latency.mean_ns());
    latency.buckets[0] = 98;
    latency.buckets[5] = 1;
    latency.buckets[79] = 1;
    latency.sum_ns = 100'000;
    EXPECT_DOUBLE_EQ(latency.quantile_ns(50).value(), 1280);
    EXPECT_DOUBLE_EQ(latency.quantile_ns(98).value(), 1280);
    EXPECT_DOUBLE_EQ(latency.quantile_ns(99).value(), 3072);
    // The last bucket has no end.
    EXPECT_DOUBLE_EQ(latency.quantile_ns(99.9).value(), 939'524'096);
    EXPECT_DOUBLE_EQ(latency.mean_ns().value(), 1000);
}

TEST(Latencies, have_buckets_without_gaps) {
    for (size_t i = 1; i + 1 < KXFER_LATENCY_BUCKETS; i++) {
        EXPECT_GT(bucket_end_ns(i), bucket_end_ns(i - 1)) << i;
        EXPECT_LE(bucket_end_ns(i), bucket_end_ns(i - 1) * 5 / 4) << i;
    }
    EXPECT_EQ(bucket_end_ns(KXFER_LATENCY_BUCKETS - 1), 0U);
}

TEST(Top, sorts_links_by_each_of_its_keys) {
    View before = some_view();
    View now = some_view(&before);
    now.links = {some_link(1, KXFER_LINK_LIVE, 10, 300), some_link(2, KXFER_LINK_LIVE, 30, 100),
                 some_link(3, KXFER_LINK_LIVE, 20, 200)};
    now.links[0].nr_jobs = 2;
    now.links[2].nr_jobs = 9;
    now.links[1].rtt_ns = 5;
    now.lanes = {some_lane(1, 1, 1, 5), some_lane(2, 3, 1, 6)};
    now.latencies = {some_latency(1, KXFER_OP_READ, 9, 1), some_latency(3, KXFER_OP_WRITE, 70, 1),
                     some_latency(2, KXFER_OP_SEND, 3, 1)};
    now.latencies[2].nr_failed = 1;
    const auto sorted = [&](Order order) {
        auto rates = link_rates(before, now);
        sort_links(rates, order);
        std::string ids;
        for (const auto& rate : rates) ids += std::to_string(rate.link.id);
        return ids;
    };

    EXPECT_EQ(sorted(Order::number), "123");
    EXPECT_EQ(sorted(Order::read), "231");
    EXPECT_EQ(sorted(Order::written), "132");
    EXPECT_EQ(sorted(Order::work_requests), "312");
    EXPECT_EQ(sorted(Order::jobs), "312");
    EXPECT_EQ(sorted(Order::p99), "312");
    EXPECT_EQ(sorted(Order::failed), "213");
    EXPECT_EQ(sorted(Order::rtt), "213");
}

TEST(Top, has_tables_that_fit_80_columns) {
    LinkRate rate;
    rate.link = some_link(1234, KXFER_LINK_LIVE, 0, 0);
    rate.link.nr_jobs = 1000;
    rate.link.rtt_ns = 1'234'567;
    rate.bytes_read = rate.bytes_written = 123.4 * (1 << 20);
    rate.work_requests = 123456;
    rate.jobs = rate.failed = 123456;
    rate.latency.buckets[40] = rate.latency.buckets[60] = 1;
    const Table rows = {link_rate_row(rate)};

    for (const std::string& line : table_lines(rows, 80)) EXPECT_LE(width_of(line), 80U) << line;
    EXPECT_NE(table_lines(rows, 80).at(1).find("live"), std::string::npos) << table_lines(rows, 80).at(1);
    EXPECT_NE(table_lines(rows, 200).at(0).find("device"), std::string::npos);
    EXPECT_EQ(width_of(table_lines(rows, 20).at(1)), 20U);
    EXPECT_TRUE(table_lines({}, 80).empty());
}

TEST(Top, has_entries_that_fit_80_columns) {
    LinkRate rate;
    rate.link = some_link(18446744073709551615U, KXFER_LINK_LIVE, 0, 0);
    rate.link.rtt_ns = 1'234'567;
    rate.bytes_read = rate.bytes_written = 123.4 * (1 << 20);
    rate.work_requests = rate.jobs = rate.failed = 123456;
    const std::string time = "2026-11-29T13:30:00.123Z";
    const auto lines_of = [&](size_t width) {
        std::istringstream text(dated(time, link_line(rate), width));
        std::vector<std::string> lines;
        for (std::string line; std::getline(text, line);) lines.push_back(line);
        return lines;
    };

    ASSERT_GT(width_of(time + "  " + link_line(rate)), 80U);
    for (const std::string& line : lines_of(80)) EXPECT_LE(width_of(line), 80U) << line;
    EXPECT_TRUE(lines_of(80).at(0).starts_with(time + "  link 18446744073709551615 ")) << lines_of(80).at(0);
    EXPECT_TRUE(lines_of(80).at(1).starts_with(std::string(time.size() + 2, ' '))) << lines_of(80).at(1);
    EXPECT_EQ(lines_of(1000).size(), 1U);
    // On a narrow one they are legible, if not in place.
    EXPECT_LT(lines_of(20).size(), 12U);
}

namespace {

// What a sample of a histogram adds to the name of its family.
std::string end_of(const std::string& sample, const std::string& type) {
    if (type == "histogram")
        for (const std::string end : {"_bucket", "_sum", "_count"})
            if (sample.ends_with(end)) return end;
    return "";
}

// What a strict reader of OpenMetrics 1.0 would refuse; empty: nothing.
std::string fault_of(const std::string& text, bool openmetrics) {
    static const std::regex sample(
        R"re(([a-z_:][a-z0-9_:]*)(\{(([a-z_]+="([^"\\\n]|\\[\\"n])*",?)*)\})? (-?[0-9.e+-]+))re");
    std::istringstream lines(text);
    std::map<std::string, std::string> types;
    std::set<std::string> helped, samples;
    std::string family;
    bool ended = false;
    for (std::string line; std::getline(lines, line);) {
        if (ended) return "after the end: " + line;
        std::smatch match;
        if (line == "# EOF") {
            ended = true;
        } else if (line.starts_with("# HELP ")) {
            family = line.substr(7, line.find(' ', 7) - 7);
            if (!helped.insert(family).second) return "two families: " + line;
        } else if (line.starts_with("# TYPE ")) {
            const std::string name = line.substr(7, line.find(' ', 7) - 7);
            if (name != family) return "not of the family: " + line;
            types[name] = line.substr(line.rfind(' ') + 1);
        } else if (std::regex_match(line, match, sample)) {
            const bool counter = types[family] == "counter";
            const std::string end = end_of(match[1], types[family]);
            const std::string name = (counter && openmetrics ? family + "_total" : family) + end;
            if (match[1] != name) return "not of the family: " + line;
            if (counter && !name.ends_with("_total")) return "a counter without _total: " + line;
            if (!samples.insert(match[1].str() + match[2].str()).second) return "twice: " + line;
        } else {
            return "what is that: " + line;
        }
    }
    if (ended != openmetrics) return "its end";
    return "";
}

View view_for_metrics() {
    View view = some_view();
    view.counters = {some_counter(1, "live_jobs", 3), some_counter(2, "jobs_completed", 12),
                     some_counter(3, "bytes_read", 1ULL << 60)};
    view.links = {some_link(3, KXFER_LINK_LIVE, 1ULL << 60, 7), some_link(4, KXFER_LINK_CLOSING, 0, 0)};
    view.links[0].rtt_ns = 30500;
    set_text(view.links[1].device, "a\"b\\c\nd");
    view.lanes = {some_lane(1, 3, 0, 7), some_lane(2, 3, 1, 10)};
    view.latencies = {some_latency(3, KXFER_OP_READ, 0, 5), some_latency(3, KXFER_OP_READ, 79, 1),
                      some_latency(3, KXFER_OP_SEND, 8, 2)};
    view.latencies[2].nr_failed = 4;
    view.latencies[0].sum_ns = 2'500'000'000;
    kxfer_info_session session = {};
    session.id = 9;
    session.pid = 77;
    session.nr_jobs = 2;
    session.pinned_bytes = 4096;
    view.sessions = {session};
    view.listeners = {some_listener(1, 5)};
    kxfer_info_device device = {};
    set_text(device.name, "rxe0");
    view.devices = {device};
    return view;
}

bool has_line(const std::string& text, const std::string& line) {
    return ('\n' + text).find('\n' + line + '\n') != std::string::npos;
}

} // namespace

TEST(Metrics, are_what_openmetrics_allows) {
    const std::string text = metrics_text(view_for_metrics(), MetricsFormat::openmetrics);

    EXPECT_EQ(fault_of(text, true), "") << text;
    EXPECT_TRUE(has_line(text, "# TYPE kxfer_jobs_completed counter")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_jobs_completed_total 12")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_live_jobs 3")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_bytes_read_total 1152921504606846976")) << text;
    EXPECT_TRUE(has_line(text,
                         "kxfer_link_bytes_read_total{link=\"3\",remote=\"10.0.0.3:7625\",device=\"rxe0\","
                         "role=\"initiator\"} 1152921504606846976"))
        << text;
    EXPECT_TRUE(has_line(text, "kxfer_link_work_requests_total{link=\"3\",remote=\"10.0.0.3:7625\","
                               "device=\"rxe0\",role=\"initiator\"} 10"))
        << text;
    EXPECT_TRUE(has_line(text,
                         "kxfer_link_live{link=\"4\",remote=\"10.0.0.4:7625\",device=\"a\\\"b\\\\c\\nd\","
                         "role=\"initiator\"} 0"))
        << text;
    const std::string of_read =
        "{link=\"3\",remote=\"10.0.0.3:7625\",device=\"rxe0\",role=\"initiator\",op=\"READ\"";
    EXPECT_TRUE(has_line(text, "kxfer_link_job_seconds_bucket" + of_read + ",le=\"2.048e-06\"} 5")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_link_job_seconds_bucket" + of_read + ",le=\"+Inf\"} 6")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_link_job_seconds_sum" + of_read + "} 2.5")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_link_job_seconds_count" + of_read + "} 6")) << text;
    EXPECT_TRUE(has_line(text, "kxfer_link_jobs_failed_total{link=\"3\",remote=\"10.0.0.3:7625\","
                               "device=\"rxe0\",role=\"initiator\",op=\"SEND\"} 4"))
        << text;
    EXPECT_EQ(text.find("op=\"WRITE\""), std::string::npos) << text;
    // A link without a keep-alive has no time, and not a time of 0.
    EXPECT_EQ(text.find("kxfer_link_rtt_seconds{link=\"4\""), std::string::npos) << text;
    EXPECT_TRUE(has_line(text, "kxfer_session_jobs{session=\"9\",pid=\"77\",uid=\"0\"} 2")) << text;
}

TEST(Metrics, of_a_node_without_anything_are_allowed_too) {
    EXPECT_EQ(fault_of(metrics_text(some_view(), MetricsFormat::openmetrics), true), "");
    EXPECT_EQ(metrics_text(some_view(), MetricsFormat::prometheus), "");
}

TEST(Metrics, in_the_text_format_of_prometheus_have_the_names_of_samples) {
    const std::string text = metrics_text(view_for_metrics(), MetricsFormat::prometheus);

    EXPECT_EQ(fault_of(text, false), "") << text;
    EXPECT_TRUE(has_line(text, "# TYPE kxfer_jobs_completed_total counter")) << text;
}

TEST(Metrics, please_promtool) {
    if (std::system("promtool --version >/dev/null 2>&1") != 0)
        GTEST_SKIP() << "promtool is not installed (package prometheus)";
    const auto file = std::filesystem::temp_directory_path() / ("kxfer-metrics." + std::to_string(getpid()));
    std::ofstream(file) << metrics_text(view_for_metrics(), MetricsFormat::prometheus);
    const int status = std::system(("promtool check metrics <" + file.string()).c_str());
    std::filesystem::remove(file);
    EXPECT_EQ(status, 0);
}

TEST(Metrics, replace_a_file_as_a_whole) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("kxfer-metrics-d." + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const std::string file = folder / "kxfer.prom";

    ASSERT_TRUE(replace_file(file, "first\n"));
    const std::ifstream old(file); // has the old text as long as it is open
    ASSERT_TRUE(replace_file(file, "second\n"));

    std::stringstream before, after;
    before << old.rdbuf();
    after << std::ifstream(file).rdbuf();
    EXPECT_EQ(before.str(), "first\n");
    EXPECT_EQ(after.str(), "second\n");
    struct stat status = {};
    ASSERT_EQ(stat(file.c_str(), &status), 0);
    EXPECT_NE(status.st_mode & S_IRGRP, 0U) << "another user's collector cannot read it";
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a part is left";

    std::filesystem::create_symlink("kxfer.prom", folder / "link");
    EXPECT_EQ(replace_file(folder / "link", "third\n").error().number, EEXIST);
    EXPECT_EQ(replace_file(folder, "third\n").error().number, EISDIR);
    EXPECT_EQ(replace_file(folder / "none" / "x", "third\n").error().number, ENOENT);
    std::filesystem::remove_all(folder);
}

TEST(Events, are_none_if_nothing_changes) {
    View view = view_for_metrics();
    view.exports = {some_export(1, "inbox")};
    EXPECT_EQ(texts_of(changes_between(view, view)), Strings());
}

TEST(Events, have_links_that_come_and_go_with_the_reason) {
    View before = some_view();
    before.links = {some_link(1, KXFER_LINK_CONNECTING, 0, 0), some_link(2, KXFER_LINK_LIVE, 0, 0),
                    some_link(3, KXFER_LINK_LIVE, 0, 0), some_link(4, KXFER_LINK_CONNECTING, 0, 0),
                    some_link(5, KXFER_LINK_CLOSING, 0, 0)};
    View now = some_view(&before);
    now.links = {some_link(1, KXFER_LINK_LIVE, 0, 0), some_link(2, KXFER_LINK_CLOSING, 0, 0),
                 some_link(3, KXFER_LINK_DEAD, 0, 0), some_link(4, KXFER_LINK_DEAD, 0, 0)};
    now.links[1].error = -ETIMEDOUT;
    now.links[3].error = -ECONNREFUSED;

    EXPECT_EQ(texts_of(changes_between(before, now)),
              (Strings{"link 1 up to 10.0.0.1:7625 (initiator, rxe0)",
                       "link 2 down to 10.0.0.2:7625 (initiator, rxe0): ETIMEDOUT",
                       "link 3 down to 10.0.0.3:7625 (initiator, rxe0): closed",
                       "link 4 not made to 10.0.0.4:7625 (initiator, rxe0): ECONNREFUSED"}));
}

TEST(Events, say_of_a_link_that_went_between_two_looks_what_its_story_has) {
    View before = some_view();
    before.links = {some_link(2, KXFER_LINK_LIVE, 0, 0), some_link(3, KXFER_LINK_LIVE, 0, 0)};
    View now = some_view(&before);
    kxfer_info_line line = {};
    line.id = 1;
    line.link = 3;
    line.nr_events = 1;
    line.events[0].type = KXFER_LINE_BROKE;
    line.events[0].link = 3;
    line.events[0].error = -ETIMEDOUT;
    before.lines = now.lines = {line};

    EXPECT_EQ(texts_of(changes_between(before, now)),
              (Strings{"link 2 down to 10.0.0.2:7625 (initiator, rxe0): gone before its reason was seen",
                       "link 3 down to 10.0.0.3:7625 (initiator, rxe0): ETIMEDOUT"}));
}

TEST(Events, have_each_event_of_a_line_once) {
    View before = some_view();
    kxfer_info_line line = {};
    line.id = 1;
    line.session = 8;
    line.nr_events = 1;
    line.events[0].type = KXFER_LINE_OPENED;
    before.lines = {line};
    View now = some_view(&before);
    line.nr_events = 3;
    line.events[1].type = KXFER_LINE_BROKE;
    line.events[1].error = -ETIMEDOUT;
    line.events[2].type = KXFER_LINE_CONNECTED;
    line.events[2].link = 5;
    now.lines = {line};

    EXPECT_EQ(kinds_of(changes_between(before, now)), (Strings{"peer-broke", "moved"}));
    EXPECT_EQ(kinds_of(changes_between(some_view(), now)), (Strings{"peer-opened", "peer-broke", "moved"}));
}

// A line keeps its last events only.
TEST(Events, say_how_many_of_a_line_were_missed) {
    View before = some_view();
    kxfer_info_line line = {};
    line.id = 1;
    line.nr_events = 2;
    before.lines = {line};
    View now = some_view(&before);
    line.nr_events = 30;
    for (auto& event : line.events) event.type = KXFER_LINE_TRIED;
    now.lines = {line};

    const auto kinds = kinds_of(changes_between(before, now));

    ASSERT_EQ(kinds.size(), 1U + KXFER_LINE_EVENTS);
    EXPECT_EQ(kinds[0], "missed");
    EXPECT_NE(changes_between(before, now)[0].text.find("12 earlier events"), std::string::npos);
}

TEST(Events, have_exports_listeners_and_refusals) {
    View before = some_view();
    before.exports = {some_export(1, "old")};
    before.listeners = {some_listener(1, 3)};
    before.counters = {some_counter(1, "keys_refused", 1)};
    View now = some_view(&before);
    now.exports = {some_export(2, "new\033[2J")};
    now.listeners = {some_listener(1, 4), some_listener(2, 0)};
    now.counters = {some_counter(1, "keys_refused", 2)};

    EXPECT_EQ(texts_of(changes_between(before, now)),
              (Strings{"listening on 0.0.0.0:7625", "export new?[2J is published (pid 42, uid 0)",
                       "export old is withdrawn (pid 42, uid 0)", "1 connection refused on 0.0.0.0:7625",
                       "1 peer did not prove the key"}));
}

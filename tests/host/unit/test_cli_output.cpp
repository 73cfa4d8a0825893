// SPDX-License-Identifier: MIT
//
// One record, two renderings; errors; SHA-256.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/node/sha256.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/record.hpp"
#include "cli/output/terminal.hpp"
#include "on_terminal.hpp"

using namespace kxfer;
using namespace kxfer::cli;

namespace {

struct Printed {
    std::string out;
    std::string err;
};

// The output of the function on the standard streams.
template <typename Function> Printed printed_by(Function function) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    function();
    std::fflush(stdout);
    return {testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

Record sample() {
    return Record()
        .add("name", "inbox")
        .add("length", Bytes{16ULL << 20})
        .add("rtt", Nanoseconds{1500})
        .add("rate", BytesPerSecond{1536})
        .add("open", true)
        .add("peer", Value(None{}))
        .add("rights", Words{"read", "write"})
        .add("hidden", uint64_t{7}, Show::json_only);
}

} // namespace

TEST(HumanValues, have_units_that_people_read) {
    EXPECT_EQ(human_bytes(0), "0 bytes");
    EXPECT_EQ(human_bytes(1), "1 byte");
    EXPECT_EQ(human_bytes(1023), "1023 bytes");
    EXPECT_EQ(human_bytes(1024), "1 KiB");
    EXPECT_EQ(human_bytes(1536), "1.5 KiB");
    EXPECT_EQ(human_bytes(3ULL << 40), "3 TiB");
    EXPECT_EQ(exact_bytes(1024), "1 KiB (1024)");
    EXPECT_EQ(exact_bytes(10), "10 bytes");
    EXPECT_EQ(human_nanoseconds(999), "999 ns");
    EXPECT_EQ(human_nanoseconds(1500), "1.5 us");
    EXPECT_EQ(human_nanoseconds(2e6), "2 ms");
    EXPECT_EQ(human_nanoseconds(3.25e9), "3.2 s");
    EXPECT_EQ(human_value(BytesPerSecond{1024 * 1024}), "1 MiB/s");
    EXPECT_EQ(human_value(None{}), "-");
}

TEST(TextOutput, aligns_the_values_of_a_record) {
    const Printed printed = printed_by([] { make_text_output({})->record(sample()); });
    EXPECT_EQ(printed.out, "name    inbox\n"
                           "length  16 MiB\n"
                           "rtt     1.5 us\n"
                           "rate    1.5 KiB/s\n"
                           "open    yes\n"
                           "peer    -\n"
                           "rights  read, write\n");
    EXPECT_EQ(printed.err, "");
}

TEST(TextOutput, breaks_sentences_between_words_and_keeps_them_apart) {
    std::string words = "word";
    for (int i = 0; i < 19; i++) words += " word";
    const Record record = Record().add("one", Lines{{words}}).add("two", Lines{{words, "bad\033\nend"}});
    const Printed printed = printed_by([&] { make_text_output({})->record(record); });
    const std::string fifteen = words.substr(0, 5 * 15 - 1), five = words.substr(0, 5 * 5 - 1);
    EXPECT_EQ(printed.out, "one  " + fifteen + "\n     " + five + "\ntwo  - " + fifteen + "\n       " + five +
                               "\n     - bad??end\n");
}

TEST(TextOutput, breaks_sentences_to_fit_the_terminal) {
    std::string words = "word";
    for (int i = 0; i < 39; i++) words += " word";
    const Record record = Record().add("a long label", Lines{{words}}).add("two", Lines{{words, words}});
    for (const unsigned short columns : {80, 60, 200}) {
        const std::string text =
            on_terminal(STDOUT_FILENO, columns, [&] { make_text_output({})->record(record); });
        EXPECT_LE(longest_line(text), columns) << text;
    }
}

TEST(TextOutput, breaks_long_values_and_failures_to_fit_the_terminal) {
    std::string words = "word";
    for (int i = 0; i < 39; i++) words += " word";
    const Record record = Record().add("a long label", words).add("two", uint64_t{2});
    const Error error("cannot do", "this", EIO, words + "\n" + words, words);
    for (const unsigned short columns : {80, 60}) {
        const std::string text =
            on_terminal(STDOUT_FILENO, columns, [&] { make_text_output({})->record(record); });
        EXPECT_LE(longest_line(text), columns) << text;
        EXPECT_NE(text.find("\n              word"), std::string::npos) << text;
        const std::string failure =
            on_terminal(STDERR_FILENO, columns, [&] { make_text_output({.color = false})->failure(error); });
        EXPECT_LE(longest_line(failure.substr(failure.find("kxfer"))), columns) << failure;
        EXPECT_NE(failure.find("\n    word"), std::string::npos) << failure;
    }
    EXPECT_EQ(printed_by([&] { make_text_output({})->record(record); }).out,
              "a long label  " + words + "\ntwo           2\n");
}

TEST(TextOutput, aligns_columns_numbers_to_the_right) {
    const Table rows = {Record().add("name", "a").add("jobs", uint64_t{5}),
                        Record().add("name", "longer").add("jobs", uint64_t{12345})};
    const Printed printed = printed_by([&] { make_text_output({})->table(rows, "none"); });
    EXPECT_EQ(printed.out, "name     jobs\n"
                           "a           5\n"
                           "longer  12345\n");
}

TEST(TextOutput, counts_characters_not_bytes) {
    const Table rows = {Record().add("name", "\xc3\xa4").add("x", "1"),
                        Record().add("name", "bb").add("x", "2")};
    const Printed printed = printed_by([&] { make_text_output({})->table(rows, ""); });
    EXPECT_EQ(printed.out, "name  x\n\xc3\xa4     1\nbb    2\n");
}

TEST(TextOutput, shows_no_control_character_of_a_name) {
    const Table rows = {Record()
                            .add("name", "a\033[2J\r\n\x7f"
                                         "b\xc2\x9b\xc2\xa0")
                            .add("words", Words{"\033c"})};
    const Printed printed = printed_by([&] { make_text_output({})->table(rows, ""); });
    EXPECT_EQ(printed.out, "name          words\na?[2J???b??\xc2\xa0  ?c\n");
}

TEST(TextOutput, says_beside_the_result_that_a_list_is_empty) {
    const Printed printed = printed_by([] { make_text_output({})->table({}, "no links"); });
    EXPECT_EQ(printed.out, "");
    EXPECT_EQ(printed.err, "no links\n");
}

TEST(TextOutput, shows_nested_tables_under_their_label) {
    Record record;
    record.add("id", uint64_t{1}).add("lanes", Value(Table{Record().add("lane", "control")}));
    const Printed printed = printed_by([&] { make_text_output({})->record(record); });
    EXPECT_EQ(printed.out, "id  1\nlanes\n  lane\n  control\n");
}

TEST(TextOutput, tells_a_failure_with_reason_errno_and_hint) {
    const Failure failure(Error("cannot open", "/dev/kxfer", ENOENT, "try: modprobe kxfer", "no module"), 3);
    const Printed printed = printed_by([&] { make_text_output({})->failure(failure); });
    EXPECT_EQ(printed.out, "");
    EXPECT_EQ(printed.err, "kxfer: cannot open /dev/kxfer: no module (ENOENT)\n  try: modprobe kxfer\n");
}

TEST(TextOutput, indents_every_line_of_a_hint) {
    const Printed printed = printed_by([] { make_text_output({})->failure(Error("a", "", 0, "one\ntwo")); });
    EXPECT_EQ(printed.err, "kxfer: a\n  one\n  two\n");
}

TEST(TextOutput, keeps_events_and_notes_back_when_quiet) {
    OutputOptions options;
    options.quiet = true;
    const Printed printed = printed_by([&] {
        const auto out = make_text_output(options);
        out->event(sample(), "something happened");
        out->note("a remark");
        out->record(Record().add("result", "x"));
    });
    EXPECT_EQ(printed.out, "result  x\n");
    EXPECT_EQ(printed.err, "");
}

TEST(JsonOutput, has_units_in_the_keys_and_exact_numbers) {
    const Printed printed = printed_by([] { make_json_output({.json = true})->record(sample()); });
    EXPECT_EQ(printed.out, "{\"name\":\"inbox\",\"length_bytes\":16777216,\"rtt_ns\":1500.0,"
                           "\"rate_bytes_per_s\":1536.0,\"open\":true,\"peer\":null,"
                           "\"rights\":[\"read\",\"write\"],\"hidden\":7}\n");
}

TEST(JsonOutput, leaves_a_unit_that_is_there) {
    EXPECT_EQ(json_key({"bytes", Bytes{1}}), "bytes_bytes");
    EXPECT_EQ(json_key({"read_bytes", Bytes{1}}), "read_bytes");
    EXPECT_EQ(json_key({"name", std::string("x")}), "name");
}

TEST(JsonOutput, prints_lists_as_arrays_even_when_empty) {
    const Printed empty = printed_by([] { make_json_output({.json = true})->table({}, "none"); });
    EXPECT_EQ(empty.out, "[]\n");
    EXPECT_EQ(empty.err, "");
}

TEST(TextOutput, no_word_of_a_failure_reaches_the_terminal_as_a_command) {
    const Error error("failed: \033[2J", "there\nkxfer: all is well", EIO, "see \033]0;title\a",
                      "\xc2\x9b"
                      "1m");
    const Printed printed = printed_by([&] { make_text_output({})->failure(error); });
    EXPECT_EQ(printed.err, "kxfer: failed: ?[2J there?kxfer: all is well: ??1m (EIO)\n  see ?]0;title?\n");
}

TEST(JsonOutput, tells_a_failure_as_one_object_on_stderr) {
    Failure failure(Error("cannot put f into", "p/inbox", EFBIG, "serve a larger one"), 4);
    failure.details.add("placed", Bytes{5});
    const Printed printed = printed_by([&] { make_json_output({.json = true})->failure(failure); });
    EXPECT_EQ(printed.out, "");
    const auto json = nlohmann::json::parse(printed.err);
    EXPECT_EQ(json["what"], "cannot put f into");
    EXPECT_EQ(json["on"], "p/inbox");
    EXPECT_EQ(json["errno"], "EFBIG");
    EXPECT_EQ(json["hint"], "serve a larger one");
    EXPECT_EQ(json["exit_status"], 4);
    EXPECT_EQ(json["placed_bytes"], 5);
    EXPECT_EQ(json["why"], "File too large");
}

TEST(JsonOutput, survives_names_that_are_no_UTF8) {
    const Printed printed =
        printed_by([] { make_json_output({.json = true})->record(Record().add("file", "\xff")); });
    EXPECT_TRUE(nlohmann::json::accept(printed.out)) << printed.out;
}

TEST(JsonOutput, writes_null_for_numbers_that_JSON_has_not) {
    const Printed printed = printed_by(
        [] { make_json_output({.json = true})->record(Record().add("t", Nanoseconds{0.0 / 0.0})); });
    EXPECT_EQ(printed.out, "{\"t_ns\":null}\n");
}

TEST(Output, moves_results_to_stderr_when_stdout_carries_data) {
    const Printed printed = printed_by([] {
        const auto out = make_text_output({});
        out->keep_stdout_free();
        out->record(Record().add("sha256", "x"));
    });
    EXPECT_EQ(printed.out, "");
    EXPECT_EQ(printed.err, "sha256  x\n");
}

TEST(ErrorText, leaves_out_what_is_not_there) {
    EXPECT_EQ(Error("it failed").text(), "it failed");
    EXPECT_EQ(Error("it failed on", "this").text(), "it failed on this");
    EXPECT_EQ(Error("it failed on", "this", -EACCES).text(), "it failed on this: Permission denied (EACCES)");
    EXPECT_EQ(Error("a", "b", 99999).name(), "99999");
}

TEST(Sha256, knows_the_digests_of_FIPS_180) {
    const auto digest_of_text = [](const std::string& text) {
        Sha256 sha256;
        sha256.update(std::as_bytes(std::span(text)));
        return hex(sha256.digest());
    };
    EXPECT_EQ(digest_of_text(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest_of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest_of_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(digest_of_text(std::string(1000000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, goes_on_after_a_digest_was_taken) {
    Sha256 sha256;
    const std::string a = "a";
    const std::string bc = "bc";
    sha256.update(std::as_bytes(std::span(a)));
    EXPECT_EQ(sha256.digest(), sha256.digest());
    sha256.update(std::as_bytes(std::span(bc)));
    EXPECT_EQ(hex(sha256.digest()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

namespace {

std::string table_on_terminal(unsigned short columns, const Table& rows) {
    return on_terminal(STDOUT_FILENO, columns, [&] {
        make_text_output({false, false, false})->table(rows, "");
    });
}

Table wide_rows() {
    Table rows;
    for (const char* name : {"one", "two"}) {
        Record row;
        row.add("name", name);
        for (int i = 0; i < 8; i++) row.add("a_column_" + std::to_string(i), 1000000 + i);
        rows.push_back(row);
    }
    return rows;
}

} // namespace

TEST(TextOutput, a_table_that_fits_the_terminal_is_as_it_is_in_a_pipe) {
    const Printed printed = printed_by([] { make_text_output({})->table(wide_rows(), ""); });
    EXPECT_EQ(table_on_terminal(200, wide_rows()), printed.out);
    EXPECT_GT(longest_line(printed.out), 80U);
}

TEST(TextOutput, a_table_that_is_too_wide_for_the_terminal_has_a_block_for_each_row) {
    const std::string text = table_on_terminal(60, wide_rows());
    EXPECT_LE(longest_line(text), 60U) << text;
    for (int i = 0; i < 8; i++)
        EXPECT_NE(text.find(fmt::format("a column {}  {}\n", i, 1000000 + i)), std::string::npos) << text;
    EXPECT_NE(text.find("\n\nname        two\n"), std::string::npos) << text;
}

TEST(TextOutput, the_last_column_is_broken_where_a_table_is_too_wide_for_that_alone) {
    Table rows;
    rows.push_back(
        Record().add("check", "one").add("finding", "words that go on and on for longer than a line"));
    EXPECT_EQ(table_on_terminal(40, rows), "check  finding\n"
                                           "one    words that go on and on for\n"
                                           "       longer than a line\n");
}

namespace {

Table some_rows() {
    const Record row = Record()
                           .add("op", "read")
                           .add("p50", 12345)
                           .add("p99", Value(uint64_t{67890}), Show::wide)
                           .add("time", Value(std::string("0.993 [0.987, 0.999] faster")), Show::wide)
                           .add("ratio", Value(std::string("0.993")), Show::narrow)
                           .add("verdict", Value(std::string("faster")), Show::narrow);
    return {row};
}

} // namespace

TEST(TextOutput, columns_that_can_be_left_out_go_where_a_terminal_is_too_narrow) {
    EXPECT_EQ(table_on_terminal(30, some_rows()), "op      p50  ratio  verdict\n"
                                                  "read  12345  0.993  faster\n"
                                                  "(--json tells more)\n");
    const std::string offered = on_terminal(STDOUT_FILENO, 30, [] {
        const auto out = make_text_output({false, false, false});
        out->offer_wide(false);
        out->table(some_rows(), "");
    });
    EXPECT_NE(offered.find("(--wide tells more)"), std::string::npos) << offered;
    const std::string all = "op      p50    p99  time\n"
                            "read  12345  67890  0.993 [0.987, 0.999] faster\n";
    EXPECT_EQ(table_on_terminal(47, some_rows()), all);
    EXPECT_EQ(printed_by([] { make_text_output({})->table(some_rows(), ""); }).out, all);
}

TEST(TextOutput, that_is_to_be_wide_tells_all_on_a_narrow_terminal) {
    const std::string text = on_terminal(STDOUT_FILENO, 30, [] {
        const auto out = make_text_output({false, false, false});
        out->offer_wide(true);
        out->table(some_rows(), "");
    });
    EXPECT_NE(text.find("67890"), std::string::npos) << text;
    EXPECT_NE(text.find("0.987"), std::string::npos) << text;
    EXPECT_EQ(text.find("verdict"), std::string::npos) << text;
}

TEST(TextOutput, events_and_notes_are_broken_on_a_terminal_and_nowhere_else) {
    const std::string text = "listening on 10.77.0.1:7625 until this ends; and more words";
    const auto event = [&] { make_text_output({false, false, false})->event(Record(), text); };
    const auto note = [&] { make_text_output({false, false, false})->note(text); };
    const std::string lines = "listening on 10.77.0.1:7625 until this\n  ends; and more words\n";
    EXPECT_EQ(on_terminal(STDOUT_FILENO, 40, event), lines);
    EXPECT_EQ(on_terminal(STDERR_FILENO, 40, note), lines);
    EXPECT_EQ(printed_by(event).out, text + '\n');
}

TEST(JsonOutput, has_what_is_wide_and_not_what_is_narrow) {
    const Printed printed = printed_by([] { make_json_output({.json = true})->table(some_rows(), ""); });
    const auto json = nlohmann::json::parse(printed.out)[0];
    EXPECT_TRUE(json.contains("p99") && json.contains("time"));
    EXPECT_FALSE(json.contains("ratio") || json.contains("verdict"));
}

TEST(ProgressLine, is_never_longer_than_a_line_of_the_terminal) {
    const auto out = make_text_output({});
    const std::string text = on_terminal(STDERR_FILENO, 20, [&] {
        ProgressLine line(*out, "a label of many words");
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        line.show(0.5, "and more of them");
    });
    ASSERT_NE(text.find("a label of many wo~\033[K"), std::string::npos) << text;
    EXPECT_EQ(cut("\u00e4\u00f6\u00fc", 2), "\u00e4~");
    EXPECT_EQ(cut("abc", 3), "abc");
    EXPECT_EQ(cut("abc", 0), "");
}

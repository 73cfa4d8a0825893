// SPDX-License-Identifier: MIT
//
// --help of every command fits a terminal of 80 columns.
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/command/command.hpp"
#include "cli/config/commands.hpp"
#include "cli/doctor/commands.hpp"
#include "cli/explain/commands.hpp"
#include "cli/main/usage.hpp"
#include "cli/measure/commands.hpp"
#include "cli/observe/commands.hpp"
#include "cli/transfer/commands.hpp"
#include "on_terminal.hpp"

using namespace kxfer::cli;

namespace {

constexpr auto commands = {setup_bench, setup_compare, setup_sweep,  setup_tune,  setup_doctor, setup_device,
                           setup_key,   setup_listen,  setup_config, setup_serve, setup_export, setup_ls,
                           setup_put,   setup_get,     setup_ping,   setup_nop,   setup_link,   setup_stat,
                           setup_top,   setup_events,  setup_explain};

std::string help_of(const CLI::App& command) {
    return on_terminal(STDOUT_FILENO, 80, [&] { std::fputs(command.help().c_str(), stdout); });
}

} // namespace

TEST(Help, fits_a_terminal_of_80_columns) {
    CLI::App app("", "kxfer");
    Program program;
    for (const auto setup : commands) setup(app, program);
    finish_help(app);
    EXPECT_LE(longest_line(help_of(app)), 80U) << help_of(app);
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        EXPECT_LE(longest_line(help_of(*command)), 80U) << help_of(*command);
}

TEST(Help, has_the_words_of_the_man_page_and_none_of_CLI11) {
    CLI::App app("", "kxfer");
    Program program;
    for (const auto setup : commands) setup(app, program);
    finish_help(app);
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        for (const char* word :
             {":FLOAT", ":INT", ":UINT", "TEXT", "REQUIRED", "Needs:", "Excludes:", "Print this"})
            EXPECT_EQ(command->help().find(word), std::string::npos) << word << '\n' << command->help();
    const std::string get = app.get_subcommand("get")->help();
    EXPECT_NE(get.find("Usage: get [options] REMOTE[/PATH] [FILE|-]\n"), std::string::npos) << get;
    EXPECT_NE(get.find("--timeout SECONDS (0.001-60)"), std::string::npos) << get;
    const std::string explain = app.get_subcommand("explain")->help();
    EXPECT_NE(explain.find("[WORD]..."), std::string::npos) << explain;
    EXPECT_NE(explain.find("--kind KIND {wc,reject,"), std::string::npos) << explain;
}

TEST(Help, has_each_command_under_a_subject) {
    CLI::App app("", "kxfer");
    Program program;
    for (const auto setup : commands) setup(app, program);
    finish_help(app);
    const std::string help = app.help();
    for (const char* subject :
         {"\nThis node:\n", "\nTransfer:\n", "\nMeasure:\n", "\nWatch:\n", "\nMeanings:\n"})
        EXPECT_NE(help.find(subject), std::string::npos) << subject << help;
    EXPECT_EQ(help.find("\nOther:\n"), std::string::npos) << help;
}

namespace {

// What the tool says to these words.
std::string complaint_about(const std::string& word) {
    CLI::App app("", "kxfer");
    Program program;
    app.require_subcommand(1);
    for (const auto setup : commands) setup(app, program);
    finish_help(app);
    try {
        app.parse(std::vector<std::string>{word});
    } catch (const CLI::ParseError& error) {
        return usage_failure(app, error).error.hint;
    }
    return "nothing";
}

} // namespace

TEST(Usage, suggests_a_name_that_is_near) {
    for (const auto& [wrong, right] :
         {std::pair("gte", "get"), std::pair("serv", "serve"), std::pair("topp", "top"),
          std::pair("explian", "explain"), std::pair("benhc", "bench")})
        EXPECT_TRUE(complaint_about(wrong).starts_with(fmt::format("did you mean {}?\n", right)))
            << complaint_about(wrong);
    for (const auto& wrong : {"something", "xyz", "q", ""})
        EXPECT_EQ(complaint_about(wrong).find("did you mean"), std::string::npos) << wrong;
    EXPECT_EQ(complaint_about(std::string(100000, 'x')).find("did you mean"), std::string::npos);
}

TEST(Help, goes_into_a_pipe_as_it_is) {
    CLI::App app("", "kxfer");
    Program program;
    setup_compare(app, program);
    finish_help(app);
    testing::internal::CaptureStdout();
    const std::string help = app.get_subcommand("compare")->help();
    testing::internal::GetCapturedStdout();
    EXPECT_NE(help.find("one for each operation (default), one for each batch, or (kverbs) one for N"),
              std::string::npos);
    EXPECT_GT(longest_line(help), 120U);
}

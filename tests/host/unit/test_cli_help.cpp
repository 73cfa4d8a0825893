// SPDX-License-Identifier: MIT
//
// --help of every command fits a terminal of 80 columns.
#include <string>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "cli/command/command.hpp"
#include "cli/doctor/commands.hpp"
#include "cli/explain/commands.hpp"
#include "cli/main/usage.hpp"
#include "cli/measure/commands.hpp"
#include "cli/observe/commands.hpp"
#include "cli/transfer/commands.hpp"
#include "on_terminal.hpp"

using namespace kxfer::cli;

namespace {

constexpr auto commands = {setup_bench,  setup_compare, setup_sweep,  setup_tune,   setup_doctor,
                           setup_device, setup_key,     setup_listen, setup_serve,  setup_export,
                           setup_ls,     setup_put,     setup_get,    setup_ping,   setup_nop,
                           setup_link,   setup_stat,    setup_top,    setup_events, setup_explain};

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

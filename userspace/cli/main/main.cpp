// SPDX-License-Identifier: MIT
//
// kxfer, the tool: the table of commands, the options that all share, and the
// program's end. A command's code is in cmd_COMMAND.cpp.

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command/command.hpp"
#include "cli/config/commands.hpp"
#include "cli/doctor/commands.hpp"
#include "cli/explain/commands.hpp"
#include "cli/main/completion.hpp"
#include "cli/main/lookup.hpp"
#include "cli/main/usage.hpp"
#include "cli/measure/commands.hpp"
#include "cli/observe/commands.hpp"
#include "cli/output/streams.hpp"
#include "cli/transfer/commands.hpp"

namespace kxfer::cli {

namespace {

// In the order in which --help lists them.
constexpr void (*commands[])(CLI::App&, Program&) = {
    setup_doctor, setup_device, setup_key,  setup_listen, setup_config, setup_serve,  setup_export,
    setup_ls,     setup_put,    setup_get,  setup_ping,   setup_nop,    setup_bench,  setup_compare,
    setup_sweep,  setup_tune,   setup_link, setup_stat,   setup_top,    setup_events, setup_explain,
};

void setup_app(CLI::App& app, Program& program, OutputOptions& options) {
    app.description("RDMA transfers by kernel verbs, for any process, through /dev/kxfer");
    app.set_version_flag("-V,--version", std::string("kxfer ") + KXFER_VERSION, "the version");
    app.add_flag("--json", options.json, "results and failures as JSON, units in the key names");
    app.add_flag("--quiet", options.quiet, "only results and errors; put and get: one line");
    app.add_flag_callback("--gbits", show_gbits, "bandwidths in Gbit/s (not in JSON)");
    app.add_flag_callback(
        "--no-color", [&options] { options.color = false; }, "no colours on a terminal");
    app.require_subcommand(1);
    app.fallthrough();
    app.footer("Example:\n  kxfer put results.tar 10.77.0.1/inbox\n\n"
               "`kxfer help COMMAND` tells more of a command.");
    for (const auto setup : commands) setup(app, program);
    finish_help(app);
}

std::unique_ptr<Output> make_output(const OutputOptions& options) {
    return options.json ? make_json_output(options) : make_text_output(options);
}

int report(Output& out, const Result& result) {
    if (!result) {
        out.failure(result.error());
        return result.error().status;
    }
    // `| head` has seen enough: end as quietly as with SIGPIPE.
    if (out.write_error() == EPIPE) return 128 + SIGPIPE;
    if (out.write_error() != 0) {
        out.failure(Error("cannot write the result to", "standard output", out.write_error()));
        return exit_failed;
    }
    return *result;
}

// `kxfer help COMMAND...` is `kxfer COMMAND... --help`, and `kxfer version` is `kxfer --version`.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (words.empty()) return words;
    if (words.front() == "help") {
        words.erase(words.begin());
        // Without --help a word that is no command is complained of.
        const auto is_named = [&](const CLI::App* command) { return command->get_name() == words.front(); };
        if (words.empty() || !app.get_subcommands(is_named).empty()) words.emplace_back("--help");
    } else if (words.front() == "version") {
        words.front() = "--version";
    }
    return words;
}

// No command of the tree: the words that follow are those of another command line.
constexpr std::string_view complete_word = "__complete";

int run(int argc, char** argv) {
    CLI::App app("", "kxfer");
    Program program;
    OutputOptions options;
    setup_app(app, program, options);
    if (argc > 1 && argv[1] == complete_word) {
        const auto out = make_output(options);
        out->answer(completion_text(complete(app, {argv + 2, argv + argc}, NodeLookup())));
        return report(*out, exit_ok);
    }
    const auto words = words_of(app, argc, argv);
    if (words.empty()) {
        complain(app.help());
        return exit_usage;
    }
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend())); // CLI11 takes the last first
    } catch (const CLI::Success& asked) {                                  // --help, --version
        std::ostringstream text;
        const int status = app.exit(asked, text, text);
        const auto out = make_output(options);
        out->answer(text.str());
        return report(*out, status);
    } catch (const CLI::ParseError& error) {
        // --json may stand anywhere on a line that could not be parsed.
        for (const auto& word : words) options.json = options.json || word == "--json";
        const auto out = make_output(options);
        return report(*out, tl::make_unexpected(usage_failure(app, error)));
    }
    const auto out = make_output(options);
    Context context{*out};
    return report(*out, program.run(context));
}

} // namespace

} // namespace kxfer::cli

int main(int argc, char** argv) {
    kxfer::cli::occupy_standard_streams();
    setlocale(LC_CTYPE, "");
    // Writing to a pipe without a reader must be an error to report; it must not kill the process.
    signal(SIGPIPE, SIG_IGN);
    return kxfer::cli::run(argc, argv);
}

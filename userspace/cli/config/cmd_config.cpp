// SPDX-License-Identifier: MIT
//
// kxfer config check|apply|undo: the keys and listeners that this node has after each boot, from
// /etc/kxfer/*.conf. kxfer.service runs it.
//
// apply writes first what undo has to take back to a file in /run, which is gone after the next
// boot, as keys and listeners are. So a listener that is no longer configured goes with the next
// apply, and one that an administrator has added stays.

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/config/commands.hpp"
#include "cli/config/config_line.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* default_place = "/etc/kxfer";
constexpr const char* state_folder = "/run/kxfer";
constexpr const char* state_file = "/run/kxfer/applied";

struct ConfigOptions {
    std::string place = default_place;
};

struct Step {
    ConfigLine line;
    Program program;
};

// All lines, if all can be used; else each that cannot is reported.
tl::expected<std::vector<Step>, Failure> read_steps(const std::string& place, Output& out) {
    Config config = read_config(place);
    std::vector<Step> steps;
    for (ConfigLine& line : config.lines) {
        auto program = program_of(line, "add");
        if (program)
            steps.push_back({std::move(line), std::move(*program)});
        else
            config.failures.push_back(program.error());
    }
    if (config.failures.empty()) return steps;
    const Failure last = config.failures.back();
    config.failures.pop_back();
    for (const Failure& failure : config.failures) out.failure(failure);
    return tl::make_unexpected(last);
}

Result run_check(const ConfigOptions& options, Context& context) {
    TRY_SET(const auto steps, read_steps(options.place, context.out));
    uint64_t keys = 0;
    for (const Step& step : steps) keys += step.line.is_key() ? 1 : 0;
    context.out.record(Record().add("keys", keys).add("listeners", uint64_t{steps.size()} - keys));
    return exit_ok;
}

tl::expected<void, Failure> write_state(const std::vector<Step>& steps) {
    if (mkdir(state_folder, 0755) < 0 && errno != EEXIST)
        return failed(Error("cannot make", state_folder, errno, "run it as root"));
    std::ofstream state(state_file);
    for (const Step& step : steps) state << step.line.words[0] << " '" << step.line.words[1] << "'\n";
    state.close();
    if (!state) return failed(Error("cannot write", state_file, errno, "run it as root"));
    return {};
}

// Something that is gone already is taken back; without the module no listener is there.
bool is_gone(const Failure& failure) {
    return failure.error.number == ENOENT || failure.error.number == ENOKEY ||
           failure.status == exit_no_device;
}

// Listeners first, as they were added last.
Result take_back(Context& context) {
    if (access(state_file, F_OK) != 0) return exit_ok;
    const Config applied = read_config(state_file);
    int status = exit_ok;
    for (auto line = applied.lines.rbegin(); line != applied.lines.rend(); ++line) {
        TRY_SET(const auto program, program_of(*line, "del"));
        const auto done = program.run(context);
        if (done || is_gone(done.error())) continue;
        context.out.failure(done.error());
        status = exit_failed;
    }
    if (status == exit_ok) unlink(state_file);
    return status;
}

// A line that fails does not keep the others back: a node with two networks may lack one.
Result run_apply(const ConfigOptions& options, Context& context) {
    TRY_SET(const auto steps, read_steps(options.place, context.out));
    TRY_SET(const int taken_back, take_back(context));
    if (taken_back != exit_ok) return taken_back;
    TRY(write_state(steps));
    if (steps.empty()) context.out.note(fmt::format("nothing is configured in {}", options.place));
    int status = exit_ok;
    for (const Step& step : steps) {
        const auto done = step.program.run(context);
        if (done) continue;
        Failure failure = done.error();
        failure.error.what = step.line.place + ": " + failure.error.what;
        context.out.failure(failure);
        status = failure.status;
    }
    return status;
}

Result run_undo(const ConfigOptions&, Context& context) { return take_back(context); }

void add_place(CLI::App& command, const std::shared_ptr<ConfigOptions>& options) {
    command.add_option("place", options->place, "a file, or a folder with files *.conf (/etc/kxfer)")
        ->type_name("FILE");
}

} // namespace

void setup_config(CLI::App& app, Program& program) {
    const auto options = std::make_shared<ConfigOptions>();
    CLI::App& config = add_command(app, "config", "the keys and listeners that this node has after each boot",
                                   "kxfer config check");
    config.require_subcommand(1);

    CLI::App& check =
        add_command(config, "check", "whether the files can be used; changes nothing", "kxfer config check");
    add_place(check, options);
    on_run(check, program, options, run_check);

    CLI::App& apply = add_command(config, "apply",
                                  "add the keys and listeners of the files, and delete those of the "
                                  "last time that are in them no more",
                                  "kxfer config apply");
    add_place(apply, options);
    on_run(apply, program, options, run_apply);

    CLI::App& undo = add_command(config, "undo", "delete what `apply` has added", "kxfer config undo");
    on_run(undo, program, options, run_undo);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer config check|apply|undo|run: the keys and listeners that this node has after each boot, from
// /etc/kxfer/*.conf. kxfer.service runs `run`.
//
// apply notes each setting that it has added in a file in /run (applied.hpp). So a listener that is no
// longer configured goes with the next apply, one that is as before is not touched, and one that an
// administrator has added stays.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/peer.hpp"
#include "cli/config/applied.hpp"
#include "cli/config/commands.hpp"
#include "cli/config/config_line.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/node/keys.hpp"
#include "cli/node/notify.hpp"
#include "cli/transfer/listening.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* default_place = "/etc/kxfer";
constexpr const char* state_folder = "/run/kxfer";
// Until a line that failed is tried again.
constexpr std::chrono::seconds retry_time(10);

struct ConfigOptions {
    std::string place = default_place;
};

// A line, and what became of it.
struct Step {
    ConfigLine line;
    Setting setting;
    bool done = false;
    std::string trouble = ""; // what was reported of it
};

// All lines, if all can be used; else each that cannot is reported.
tl::expected<std::vector<Step>, Failure> read_steps(const std::string& place, Output& out) {
    Config config = read_config(place);
    for (const ConfigLine& line : config.lines)
        if (const auto program = program_of(line, "add"); !program)
            config.failures.push_back(program.error());
    if (!config.failures.empty()) {
        const Failure last = config.failures.back();
        config.failures.pop_back();
        for (const Failure& failure : config.failures) out.failure(failure);
        return tl::make_unexpected(last);
    }
    std::vector<Setting> settings = settings_of(config.lines);
    std::vector<Step> steps;
    for (size_t i = 0; i < settings.size(); i++)
        steps.push_back({std::move(config.lines[i]), std::move(settings[i])});
    return steps;
}

Result run_check(const ConfigOptions& options, Context& context) {
    TRY_SET(const auto steps, read_steps(options.place, context.out));
    uint64_t keys = 0;
    for (const Step& step : steps) keys += step.line.is_key() ? 1 : 0;
    context.out.record(Record().add("keys", keys).add("listeners", uint64_t{steps.size()} - keys));
    return exit_ok;
}

// The address that the line of a listener names now, as the tool takes and prints it.
tl::expected<std::string, Failure> address_of(const ConfigLine& line) {
    const auto peer = parse_peer(line.words[1]);
    if (!peer) return failed(Error("cannot listen on", line.words[1], EINVAL, "", peer.error()));
    TRY_SET(const auto addresses, resolve(*peer));
    return to_string(addresses.front());
}

// Whether the node still has what was applied. A listener with another number of keys is another one.
bool is_there(const Setting& setting) {
    if (setting.is_key()) return has_key(setting.name());
    const auto peer = parse_peer(setting.address);
    const auto session = open_session();
    if (!peer || !session) return false;
    const auto addresses = resolve(*peer);
    if (!addresses) return false;
    const auto found = find_listener(*session, addresses->front());
    return found && *found && ((*found)->flags & KXFER_LISTEN_F_KEEP) != 0 &&
           (*found)->nr_keys == keys_of(setting.words).size();
}

// Something that is gone already is taken back; without the module no listener is there.
bool is_gone(const Failure& failure) {
    return failure.error.number == ENOENT || failure.error.number == ENOKEY ||
           failure.status == exit_no_device;
}

Result take_back(const std::vector<Setting>& settings, Applied& applied, Context& context) {
    int status = exit_ok;
    for (const Setting& setting : settings) {
        TRY_SET(const auto program, program_of({"", {setting.words[0], setting.name()}}, "del"));
        const auto done = program.run(context);
        if (done || is_gone(done.error())) {
            TRY(applied.remove(setting));
        } else {
            context.out.failure(done.error());
            status = exit_failed;
        }
    }
    return status;
}

tl::expected<void, Failure> add(Step& step, Applied& applied, Context& context) {
    ConfigLine line = step.line;
    if (!line.is_key()) {
        TRY_SET(step.setting.address, address_of(line));
        line.words[1] = step.setting.address;
    }
    TRY_SET(const auto program, program_of(line, "add"));
    TRY(program.run(context));
    return applied.add(step.setting);
}

// A trouble that lasts is reported once.
void report(Step& step, Failure failure, Output& out) {
    failure.error.what = step.line.place + ": " + failure.error.what;
    if (const std::string text = failure.error.text(); text != step.trouble) {
        out.failure(failure);
        step.trouble = text;
    }
}

// Adds what is missing of the lines that are not done. A line that fails does not keep the others
// back: a node with two networks may lack one. Returns the status of the last that failed.
int add_missing(std::vector<Step>& steps, Applied& applied, Context& context) {
    int status = exit_ok;
    for (Step& step : steps) {
        if (step.done || interrupted()) continue;
        const Setting* const before = applied.find(step.setting);
        if (before && is_there(*before)) {
            step.done = true;
            continue;
        }
        const auto added = add(step, applied, context);
        step.done = added.has_value();
        if (added) continue;
        report(step, added.error(), context.out);
        status = added.error().status;
    }
    return status;
}

Result apply(std::vector<Step>& steps, Context& context) {
    TRY_SET(auto applied, Applied::open(state_folder));
    std::vector<Setting> configured;
    for (const Step& step : steps) configured.push_back(step.setting);
    TRY_SET(const int taken_back, take_back(outdated(applied.settings(), configured), applied, context));
    const int status = add_missing(steps, applied, context);
    return status == exit_ok ? taken_back : status;
}

Result run_apply(const ConfigOptions& options, Context& context) {
    TRY_SET(auto steps, read_steps(options.place, context.out));
    if (steps.empty()) context.out.note(fmt::format("nothing is configured in {}", options.place));
    return apply(steps, context);
}

Result undo(Context& context) {
    TRY_SET(auto applied, Applied::open(state_folder));
    return take_back(outdated(applied.settings(), {}), applied, context);
}

Result run_undo(const ConfigOptions&, Context& context) { return undo(context); }

// For `systemctl status`.
std::string status_of(const std::vector<Step>& steps) {
    size_t done = 0;
    std::string waits;
    for (const Step& step : steps) {
        done += step.done ? 1 : 0;
        if (!step.done) waits += (waits.empty() ? "; waiting: " : "; ") + step.trouble;
    }
    return fmt::format("{} of {} keys and listeners are there{}", done, steps.size(), waits);
}

bool all_done(const std::vector<Step>& steps) {
    return std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.done; });
}

// Files that cannot be used change nothing.
void reload(const ConfigOptions& options, std::vector<Step>& steps, Context& context) {
    auto read = read_steps(options.place, context.out);
    if (!read) return context.out.failure(read.error());
    steps = std::move(*read);
    if (const auto applied = apply(steps, context); !applied) context.out.failure(applied.error());
}

// A process that keeps the state from this one for long does not end the service.
void retry(std::vector<Step>& steps, Context& context) {
    auto applied = Applied::open(state_folder);
    if (!applied) return context.out.failure(applied.error());
    add_missing(steps, *applied, context);
}

Result run_run(const ConfigOptions& options, Context& context) {
    catch_interrupts();
    if (is_service()) catch_reloads();
    TRY_SET(auto steps, read_steps(options.place, context.out));
    TRY(apply(steps, context));
    notify_ready(status_of(steps));
    while (!interrupted()) {
        wait_events(-1, 0, all_done(steps) ? std::chrono::hours(1) : retry_time);
        if (take_reload()) {
            notify_reloading();
            reload(options, steps, context);
        } else if (!interrupted() && !all_done(steps)) {
            retry(steps, context);
        }
        notify_ready(status_of(steps));
    }
    notify_stopping();
    return undo(context);
}

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
                                  "last time that have changed or are in them no more",
                                  "kxfer config apply");
    add_place(apply, options);
    on_run(apply, program, options, run_apply);

    CLI::App& undo = add_command(config, "undo", "delete what `apply` has added", "kxfer config undo");
    on_run(undo, program, options, run_undo);

    CLI::App& run =
        add_command(config, "run", "`apply`, and try lines that failed again every 10 s; `undo` at the end",
                    "kxfer config run");
    add_place(run, options);
    on_run(run, program, options, run_run);
}

} // namespace kxfer::cli

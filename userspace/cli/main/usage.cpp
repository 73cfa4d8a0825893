// SPDX-License-Identifier: MIT
#include "cli/main/usage.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/output/terminal.hpp"

namespace kxfer::cli {

namespace {

// The innermost command that was recognised.
const CLI::App* innermost(const CLI::App& app) {
    const CLI::App* at = &app;
    for (auto chosen = at->get_subcommands(); !chosen.empty(); chosen = at->get_subcommands())
        at = chosen.back();
    return at;
}

std::string full_name(const CLI::App* command) {
    if (!command->get_parent()) return "kxfer";
    return full_name(command->get_parent()) + ' ' + command->get_name();
}

void add_options(std::vector<std::string>& names, const CLI::App* command) {
    for (const CLI::Option* option : command->get_options())
        if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames().front());
}

// Options of the command and of the commands around it.
std::vector<std::string> allowed_options(const CLI::App* command) {
    std::vector<std::string> names;
    for (; command; command = command->get_parent()) add_options(names, command);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::vector<std::string> allowed_commands(const CLI::App* command) {
    std::vector<std::string> names;
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(sub->get_name());
    return names;
}

// Edits (a character more, less, or another one, or two swapped) from one word to the other.
size_t distance(const std::string& one, const std::string& other) {
    std::vector<std::vector<size_t>> edits(one.size() + 1, std::vector<size_t>(other.size() + 1));
    for (size_t i = 0; i <= one.size(); i++)
        for (size_t j = 0; j <= other.size(); j++) {
            if (i == 0 || j == 0) {
                edits[i][j] = i + j;
                continue;
            }
            edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1,
                                    edits[i - 1][j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
        }
    return edits[one.size()][other.size()];
}

// "did you mean ...?\n", if some name is near enough.
std::string suggestion(const std::vector<std::string>& names, const std::string& wrong) {
    constexpr size_t most_characters = 64;
    if (wrong.size() > most_characters) return "";
    const std::string* nearest = nullptr;
    size_t least = wrong.size() < 4 ? 1 : 2; // edits
    for (const std::string& name : names)
        if (const size_t edits = distance(wrong, name); edits < least || (edits == least && !nearest)) {
            nearest = &name;
            least = edits;
        }
    return nearest ? fmt::format("did you mean {}?\n", *nearest) : "";
}

std::string allowed(const CLI::App* command, const std::string& wrong) {
    const auto names = allowed_commands(command);
    if (!wrong.starts_with('-') && !names.empty())
        return suggestion(names, wrong) +
               fmt::format("commands of {} are: {}", full_name(command), fmt::join(names, ", "));
    const auto options = allowed_options(command);
    return suggestion(options, wrong) +
           fmt::format("options of {} are: {}", full_name(command), fmt::join(options, ", "));
}

// The argument that CLI11 could not place: preferably an option, because an unknown
// option shifts the arguments after it to wrong places.
std::string leftover(const CLI::App* command) {
    const auto rest = command->remaining(true);
    const auto option =
        std::find_if(rest.begin(), rest.end(), [](const auto& one) { return one.starts_with("--"); });
    if (option != rest.end()) return *option;
    return rest.empty() ? std::string() : rest.front();
}

// The first argument that the command line lacks.
const CLI::Option* missing_argument(const CLI::App* command) {
    for (const CLI::Option* option : command->get_options())
        if (option->get_positional() && option->get_required() && option->count() == 0) return option;
    return nullptr;
}

// Width of the column of names; their meanings are in the column next to it.
constexpr size_t name_width = 34;
constexpr size_t least_meaning_width = 24;

// Breaks the descriptions of options and commands to fit the terminal; elsewhere they stay as they are.
class HelpFormatter : public CLI::Formatter {
  public:
    // REMOTE [FILE], as the man page has them, and not the names by which CLI11 keeps them.
    std::string make_option_usage(const CLI::Option* option) const override {
        const std::string word = option->get_type_name(); // of a list too
        const bool many = option->get_expected_max() > 1;
        return (option->get_required() ? word : '[' + word + ']') + (many ? "..." : "");
    }

    std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
        return is_positional ? "" : Formatter::make_option_name(option, is_positional);
    }

    // What is allowed stands after the option's word: SECONDS (0.001-60), KIND {wc,gid}.
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = Formatter::make_option_opts(option);
        // A list of values needs no word in front.
        const std::string no_word = " TEXT:{";
        if (text.starts_with(no_word)) text.erase(0, no_word.size() - 2).front() = ' ';
        for (const char* limits : {":(", ":{"})
            if (const size_t at = text.find(limits); at != std::string::npos) text[at] = ' ';
        // What is required stands in the usage; what goes together is said in words.
        for (const std::string& label :
             {get_label("REQUIRED"), get_label("Needs") + ':', get_label("Excludes") + ':'})
            if (const size_t at = text.find(' ' + label); at != std::string::npos) text.erase(at);
        return text;
    }

    std::string make_option(const CLI::Option* option, bool is_positional) const override {
        std::ostringstream out;
        CLI::detail::format_help(
            out, fitting_name(make_option_name(option, is_positional) + make_option_opts(option)),
            fitting(make_option_desc(option)), name_width);
        return out.str();
    }

    std::string make_subcommand(const CLI::App* command) const override {
        std::ostringstream out;
        CLI::detail::format_help(out, command->get_display_name(true), fitting(command->get_description()),
                                 name_width);
        return out.str();
    }

  private:
    // A list of values has no spaces to break at, so add some.
    static std::string fitting_name(std::string name) {
        name.erase(0, name.find_first_not_of(' '));
        const std::string indent(6, ' ');
        const auto width = terminal_width(STDOUT_FILENO);
        if (!width || width_of(name) + 2 <= *width) return name;
        for (size_t at = 0; (at = name.find(',', at)) != std::string::npos; at++) name.insert(at + 1, " ");
        return broken(name, indent, std::max(*width, indent.size() + least_meaning_width) - indent.size());
    }

    static std::string fitting(const std::string& text) {
        const auto width = terminal_width(STDOUT_FILENO);
        if (!width) return text;
        const size_t room = *width > name_width ? *width - name_width : 0;
        return broken(text, "", std::max(room, least_meaning_width));
    }
};

void set_formatter(CLI::App& app, const std::shared_ptr<CLI::FormatterBase>& formatter) {
    app.formatter(formatter);
    app.set_help_flag("-h,--help", "this text");
    for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        set_formatter(*command, formatter);
}

// What --help lists commands under; one that is not here stays under "Other".
const char* subject_of(const std::string& command) {
    static constexpr std::array<std::pair<const char*, std::string_view>, 5> subjects = {
        {{"This node", " doctor device key listen config export "},
         {"Transfer", " serve ls put get ping "},
         {"Measure", " nop bench compare sweep tune "},
         {"Watch", " link stat top events "},
         {"Meanings", " explain "}}};
    for (const auto& [subject, names] : subjects)
        if (names.find(' ' + command + ' ') != std::string_view::npos) return subject;
    return "Other";
}

} // namespace

void finish_help(CLI::App& app) {
    const auto formatter = std::make_shared<HelpFormatter>();
    formatter->column_width(name_width);
    formatter->label("SUBCOMMAND", "COMMAND");
    formatter->label("Subcommands", "Commands");
    formatter->label("OPTIONS", "options");
    for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        command->group(subject_of(command->get_name()));
    set_formatter(app, formatter);
}

Failure usage_failure(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App* command = innermost(app);
    const std::string name = full_name(command);
    const std::string see = fmt::format("see: {} --help", name);
    const bool has_commands = !allowed_commands(command).empty();
    std::string wrong = leftover(command);
    if (wrong.empty()) wrong = leftover(&app);
    if (!wrong.empty() &&
        (dynamic_cast<const CLI::ExtrasError*>(&error) || has_commands || wrong.starts_with("--"))) {
        if (const auto names = allowed_options(command);
            std::find(names.begin(), names.end(), wrong) != names.end())
            return {Error(fmt::format("{} goes after the command", wrong), "", 0,
                          fmt::format("such as: {} {} ...\n{}", name, wrong, see)),
                    exit_usage};
        const char* kind = wrong.starts_with('-') ? "an option" : has_commands ? "a command" : "an argument";
        return {Error(fmt::format("'{}' is not {} of {}", wrong, kind, name), "", 0,
                      allowed(command, wrong) + "\n" + see),
                exit_usage};
    }
    if (has_commands && dynamic_cast<const CLI::RequiredError*>(&error))
        return {Error(name + " needs a command", "", 0, allowed(command, "") + "\n" + see), exit_usage};
    if (const CLI::Option* missing = missing_argument(command);
        missing && dynamic_cast<const CLI::RequiredError*>(&error))
        return {Error(fmt::format("{} needs {}", name, missing->get_type_name()), "", 0,
                      missing->get_description() + "\n" + see),
                exit_usage};
    // The tool's name is in front of the message.
    const std::string where = command == &app ? "" : name.substr(app.get_name().size() + 1) + ": ";
    return {Error(where + error.what(), "", 0, see), exit_usage};
}

} // namespace kxfer::cli

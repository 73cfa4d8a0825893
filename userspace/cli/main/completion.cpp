// SPDX-License-Identifier: MIT
#include "cli/main/completion.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace kxfer::cli {

namespace {

// Where a line has come to, before the word that is being written.
struct Position {
    const CLI::App* command = nullptr;
    const CLI::Option* waiting = nullptr; // the option whose value comes next
    size_t arguments = 0;
    bool only_arguments = false; // behind --
    std::string key;             // the value of --key
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Options of a command stand behind it, those of the tool anywhere.
const CLI::Option* find_option(const CLI::App* command, const std::string& name) {
    for (; command; command = command->get_parent())
        if (const CLI::Option* option = command->get_option_no_throw(name)) return option;
    return nullptr;
}

const CLI::App* find_command(const CLI::App& command, const std::string& name) {
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
        if (sub->get_name() == name) return sub;
    return nullptr;
}

void pass_option(Position& at, const std::string& word) {
    const auto equals = word.find('=');
    const CLI::Option* option = find_option(at.command, word.substr(0, equals));
    if (!option || !takes_value(*option)) return;
    if (equals == std::string::npos)
        at.waiting = option;
    else if (option->check_lname("key"))
        at.key = word.substr(equals + 1);
}

void pass(Position& at, const std::string& word) {
    if (at.waiting) {
        if (at.waiting->check_lname("key")) at.key = word;
        at.waiting = nullptr;
    } else if (!at.only_arguments && word == "--") {
        at.only_arguments = true;
    } else if (!at.only_arguments && word.size() > 1 && word.front() == '-') {
        pass_option(at, word);
    } else if (const CLI::App* sub = at.arguments == 0 ? find_command(*at.command, word) : nullptr) {
        at.command = sub;
    } else {
        at.arguments++;
    }
}

// The argument at that place; the last one may take all that follow.
const CLI::Option* argument_at(const CLI::App& command, size_t number) {
    const CLI::Option* last = nullptr;
    for (const CLI::Option* option : command.get_options()) {
        if (!option->get_positional()) continue;
        last = option;
        if (number-- == 0) return option;
    }
    return last && last->get_items_expected_max() > 1 ? last : nullptr;
}

// The first sentence, or what stands before the first bracket.
std::string short_text(const std::string& text) { return text.substr(0, text.find_first_of(";:(\n")); }

// The words of a list of values, which CLI11 has in the name of the type: TEXT:{rdma-cm,tcp}.
std::vector<Candidate> listed(const std::string& type) {
    std::vector<Candidate> words;
    const auto begin = type.find('{');
    const auto end = type.find('}');
    if (begin == std::string::npos || end == std::string::npos) return words;
    std::string_view rest(type.data() + begin + 1, end - begin - 1);
    while (!rest.empty()) {
        const auto comma = std::min(rest.find(','), rest.size());
        words.push_back({std::string(rest.substr(0, comma)), ""});
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return words;
}

std::vector<Candidate> remotes(const Position& at, const std::string& written, const Lookup& lookup) {
    const auto slash = written.find('/');
    const std::string peer = written.substr(0, slash);
    std::vector<Candidate> words = slash == std::string::npos ? lookup.peers() : lookup.exports(peer, at.key);
    for (Candidate& one : words)
        one.word = slash == std::string::npos ? one.word + '/' : peer + '/' + one.word;
    return words;
}

bool is_file(const std::string& kind) {
    return kind.starts_with("FILE") || kind == "SOURCE" || kind.ends_with("DIR");
}

void append(std::vector<Candidate>& words, std::vector<Candidate> more) {
    words.insert(words.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Completion values_of(const CLI::Option& option, const Position& at, const std::string& written,
                     const Lookup& lookup) {
    const std::string type = option.get_type_name();
    const std::string kind = type.substr(0, type.find(':'));
    Completion values;
    values.candidates = listed(type);
    if (kind.starts_with("DEV") || option.get_name() == "DEV") append(values.candidates, lookup.devices());
    if (kind == "ID" || kind.ends_with("LINK")) append(values.candidates, lookup.links());
    if (kind.starts_with("PEER")) append(values.candidates, lookup.peers());
    if (kind.starts_with("REMOTE")) append(values.candidates, remotes(at, written, lookup));
    if (option.check_lname("key") ||
        (kind == "NAME" && at.command->get_parent() && at.command->get_parent()->get_name() == "key"))
        append(values.candidates, lookup.keys());
    values.files = is_file(kind);
    return values;
}

// The long names, or the short one of an option that has no other.
Completion options_of(const CLI::App* command) {
    Completion names;
    for (; command; command = command->get_parent())
        for (const CLI::Option* option : command->get_options())
            if (!option->get_lnames().empty())
                names.candidates.push_back(
                    {"--" + option->get_lnames().front(), short_text(option->get_description())});
            else if (!option->get_snames().empty())
                names.candidates.push_back(
                    {"-" + option->get_snames().front(), short_text(option->get_description())});
    return names;
}

Completion what_may_follow(const Position& at, const std::string& written, const Lookup& lookup) {
    if (at.waiting) return values_of(*at.waiting, at, written, lookup);
    if (!at.only_arguments && written.starts_with('-')) return options_of(at.command);
    Completion words;
    if (at.arguments == 0)
        for (const CLI::App* sub : at.command->get_subcommands([](const CLI::App*) { return true; }))
            words.candidates.push_back({sub->get_name(), short_text(sub->get_description())});
    const CLI::Option* argument = argument_at(*at.command, at.arguments);
    return argument && words.candidates.empty() ? values_of(*argument, at, written, lookup) : words;
}

} // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Lookup& lookup) {
    if (words.empty()) return {};
    Position at;
    at.command = &app;
    for (auto word = words.begin(); word != std::prev(words.end()); ++word) pass(at, *word);

    // --option=VALUE
    std::string written = words.back();
    std::string before;
    const auto equals = written.find('=');
    if (!at.waiting && written.starts_with("--") && equals != std::string::npos) {
        before = written.substr(0, equals + 1);
        pass(at, written.substr(0, equals));
        written.erase(0, equals + 1);
        if (!at.waiting) return {};
    }
    Completion completion = what_may_follow(at, written, lookup);
    auto& all = completion.candidates;
    std::erase_if(all, [&](const Candidate& one) { return !one.word.starts_with(written); });
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.word < b.word; });
    all.erase(
        std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.word == b.word; }),
        all.end());
    for (Candidate& one : all) one.word.insert(0, before);
    return completion;
}

std::string completion_text(const Completion& completion) {
    std::string text;
    for (const Candidate& one : completion.candidates)
        text += one.word + (one.meaning.empty() ? "" : '\t' + one.meaning) + '\n';
    if (completion.files) text += ":files\n";
    return text;
}

} // namespace kxfer::cli

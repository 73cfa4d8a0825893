// SPDX-License-Identifier: MIT
//
// kxfer explain: what a status, reason, event, errno, GID or P_Key means, and
// what to look at. A number of several enumerations is explained for each.

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/explain/commands.hpp"
#include "cli/explain/meaning.hpp"

namespace kxfer::cli {

namespace {

struct ExplainOptions {
    std::vector<std::string> words;
    std::string kind;
    bool list = false;
};

struct Explained {
    std::string word;
    Meaning meaning;
};

std::string headline(const Meaning& meaning) {
    if (meaning.number) return fmt::format("{} {}: {}", meaning.title, *meaning.number, meaning.name);
    return fmt::format("{}: {}", meaning.title, meaning.name);
}

Value text_or_none(const std::string& text) { return text.empty() ? Value(None{}) : Value(text); }

// For people: without empty fields.
Record text_record(const Meaning& meaning) {
    Record record;
    for (const auto& [key, value] : meaning.facts) record.add(key, Value(value));
    record.add("means", Lines{{meaning.means}});
    if (!meaning.completion.empty())
        record.add("completion", Lines{{meaning.completion}}, Show::everywhere, "of a job");
    if (!meaning.look.empty()) record.add("look_at", Lines{meaning.look});
    return record;
}

// For scripts: with the fields of all kinds.
Record json_record(const Explained& one) {
    const Meaning& meaning = one.meaning;
    Record facts;
    for (const auto& [key, value] : meaning.facts) facts.add(key, Value(value));
    return Record()
        .add("word", Value(one.word))
        .add("kind", Value(meaning.kind))
        .add("title", Value(meaning.title))
        .add("number", meaning.number ? Value(int64_t{*meaning.number}) : Value(None{}))
        .add("name", Value(meaning.name))
        .add("facts", std::move(facts))
        .add("means", Value(meaning.means))
        .add("completion", text_or_none(meaning.completion))
        .add("look_at", Value(Words(meaning.look)));
}

Failure unknown(const std::string& word, const std::string& kind) {
    const std::string what = kind.empty() ? "nothing is known of" : "no " + kind + " is known as";
    return Error(what, fmt::format("'{}'", word), 0, meaning_forms);
}

// All words together may be one known text; if not, each is explained on its own.
tl::expected<std::vector<Explained>, Failure> explain(const ExplainOptions& options) {
    std::vector<Explained> all;
    const std::string text = fmt::format("{}", fmt::join(options.words, " "));
    for (Meaning& meaning : meanings_of(text, options.kind)) all.push_back({text, std::move(meaning)});
    if (!all.empty()) return all;
    for (const std::string& word : options.words) {
        auto meanings = meanings_of(word, options.kind);
        if (meanings.empty()) return tl::make_unexpected(unknown(word, options.kind));
        for (Meaning& meaning : meanings) all.push_back({word, std::move(meaning)});
    }
    return all;
}

void list_all(const std::string& kind, Context& context) {
    Table rows;
    for (const Numbering& numbering : numberings()) {
        if (!kind.empty() && kind != numbering.kind) continue;
        for (const Entry& entry : numbering.entries)
            rows.push_back(
                Record()
                    .add("kind", numbering.kind)
                    .add("number", entry.number)
                    .add("name", Value(fmt::format("{}{}", numbering.prefixes.front(), entry.name)))
                    .add("text", *entry.text ? entry.text : entry.kernel)
                    .add("title", Value(std::string(numbering.title)), Show::json_only));
    }
    context.out.table(rows, "any " + kind + " is explained by its bits; there is no list of them");
}

// `--list wc` means the same as `--list --kind wc`.
Result run_list(const ExplainOptions& options, Context& context) {
    const auto kinds = meaning_kinds();
    std::string kind = options.kind;
    if (kind.empty() && options.words.size() == 1) kind = options.words.front();
    if (options.words.size() > (options.kind.empty() ? 1 : 0) ||
        (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()))
        return failed(Error("--list takes one kind, or none for all", "", 0,
                            fmt::format("kinds are: {}", fmt::join(kinds, ", "))),
                      exit_usage);
    list_all(kind, context);
    return exit_ok;
}

Result run_explain(const ExplainOptions& options, Context& context) {
    if (options.list || options.words.empty()) return run_list(options, context);
    TRY_SET(const auto all, explain(options));
    Record report;
    Table for_scripts;
    for (const Explained& one : all) {
        const std::string gap = for_scripts.empty() ? "" : "\n";
        report.add("meaning", Value(std::make_shared<Record>(text_record(one.meaning))), Show::text_only,
                   gap + headline(one.meaning));
        for_scripts.push_back(json_record(one));
    }
    report.add("meanings", Value(for_scripts), Show::json_only);
    context.out.record(report);
    return exit_ok;
}

} // namespace

void setup_explain(CLI::App& app, Program& program) {
    const auto options = std::make_shared<ExplainOptions>();
    CLI::App& command = add_command(app, "explain", "what a status, reason, errno, event, GID or P_Key means",
                                    "kxfer explain RETRY_EXC_ERR");
    command.add_option("word", options->words, "number, name, text, GID or P_Key; without it as --list")
        ->type_name("WORD");
    command.add_option("--kind", options->kind, "only this reading of it")
        ->type_name("KIND")
        ->check(CLI::IsMember(meaning_kinds()));
    command.add_flag("--list", options->list, "all that is known, or all of a kind");
    on_run(command, program, options, run_explain);
}

} // namespace kxfer::cli

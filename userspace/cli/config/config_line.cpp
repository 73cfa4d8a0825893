// SPDX-License-Identifier: MIT
#include "cli/config/config_line.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/transfer/commands.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* line_form = "a line is: key NAME FILE, or: listen ADDR[:PORT] [--key NAME]...";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

Failure line_failure(const std::string& place, const std::string& why, const std::string& hint) {
    return {Error(place, "", 0, hint, why)};
}

Failure read_failure(const std::string& path, int number) {
    std::string hint;
    if (number == ENOENT)
        hint = fmt::format("make a file there, or a folder with files *.conf; {}", line_form);
    else if (number == EACCES)
        hint = "run it as root";
    return {Error("cannot read", path, number, hint)};
}

// The first line that is wrong must not hide those after it.
void read_file(const std::string& path, Config& config) {
    std::ifstream in(path);
    std::string text;
    for (size_t number = 1; std::getline(in, text); number++) {
        const std::string place = fmt::format("{}:{}", path, number);
        auto words = split_line(text);
        if (!words)
            config.failures.push_back(line_failure(place, words.error(), ""));
        else if (!words->empty())
            config.lines.push_back({place, std::move(*words)});
    }
    if (!in.eof()) config.failures.push_back(read_failure(path, errno));
}

void read_folder(const std::string& path, Config& config) {
    std::error_code error;
    std::vector<std::string> files;
    for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
        if (at->path().extension() == ".conf") files.push_back(at->path());
    if (error) config.failures.push_back(read_failure(path, error.value()));
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) read_file(file, config);
}

// What `kxfer key add` takes from anywhere a boot has to find again.
std::string wrong_key_file(const ConfigLine& line) {
    if (!line.is_key() || line.words.size() < 3) return {};
    const std::string& file = line.words[2];
    if (!file.starts_with('/')) return fmt::format("'{}' is no whole path of the key's file", file);
    if (access(file.c_str(), R_OK) != 0)
        return fmt::format("cannot read {}: {}", file, strerrordesc_np(errno));
    return {};
}

} // namespace

tl::expected<std::vector<std::string>, std::string> split_line(const std::string& line) {
    std::vector<std::string> words;
    for (auto at = line.begin(); at != line.end();) {
        if (is_blank(*at)) {
            ++at;
            continue;
        }
        if (*at == '#') break;
        std::string word;
        while (at != line.end() && !is_blank(*at)) {
            if (*at != '"' && *at != '\'') {
                word += *at++;
                continue;
            }
            const auto closing = std::find(std::next(at), line.end(), *at);
            if (closing == line.end())
                return tl::make_unexpected(fmt::format("a {} that is not closed", *at));
            word.append(std::next(at), closing);
            at = std::next(closing);
        }
        words.push_back(std::move(word));
    }
    return words;
}

Config read_config(const std::string& path) {
    Config config;
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        read_folder(path, config);
    else
        read_file(path, config);
    return config;
}

tl::expected<Program, Failure> program_of(const ConfigLine& line, const std::string& action) {
    const std::string& kind = line.words.front();
    if (kind != "key" && kind != "listen")
        return tl::make_unexpected(
            line_failure(line.place, fmt::format("'{}' is neither key nor listen", kind), line_form));
    // So that `del` of it is known without what the options mean.
    if (line.words.size() > 1 && line.words[1].starts_with('-'))
        return tl::make_unexpected(line_failure(
            line.place, fmt::format("{} comes first, then options", kind == "key" ? "NAME" : "ADDR"), ""));
    if (const std::string wrong = wrong_key_file(line); action == "add" && !wrong.empty())
        return tl::make_unexpected(line_failure(line.place, wrong, ""));
    CLI::App app("", "kxfer");
    Program program;
    setup_key(app, program);
    setup_listen(app, program);
    // CLI11 takes the words from the end.
    std::vector<std::string> words(line.words.rbegin(), std::prev(line.words.rend()));
    words.push_back(action);
    words.push_back(kind);
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        // --help is an error here too, and has no text.
        const std::string why =
            dynamic_cast<const CLI::Success*>(&error) ? "no option of a line" : error.what();
        return tl::make_unexpected(
            line_failure(line.place, why, fmt::format("see: kxfer {} {} --help", kind, action)));
    }
    return program;
}

} // namespace kxfer::cli

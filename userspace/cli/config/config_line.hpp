// SPDX-License-Identifier: MIT
//
// Files of this node's configuration. A line is `key` or `listen` with what `kxfer key add` or
// `kxfer listen add` takes, as a shell would have it:
//
//   key cluster /etc/kxfer/cluster.key     # a comment
//   listen 10.77.0.1 --key cluster
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cli/command/command.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

struct ConfigLine {
    std::string place; // FILE:NUMBER
    std::vector<std::string> words;

    bool is_key() const { return words.front() == "key"; }
};

// The words of a line: divided by blanks, "..." and '...' keep them together, # begins a comment.
// The error says what is wrong.
tl::expected<std::vector<std::string>, std::string> split_line(const std::string& line);

struct Config {
    std::vector<ConfigLine> lines;
    std::vector<Failure> failures; // of lines and files that cannot be used
};

// Reads a file, or the files *.conf of a folder in the order of their names.
Config read_config(const std::string& path);

// What the line says, for `add` or `del`; run() of it does so.
tl::expected<Program, Failure> program_of(const ConfigLine& line, const std::string& action);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Words that may stand next on a command line, from the tree of commands itself. The shells ask by
// `kxfer __complete WORD...`; completion/ has what each of them has to know.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kxfer::cli {

struct Candidate {
    std::string word;
    std::string meaning; // may be empty
};

// What is there at this moment. Each ends soon, and has no words if that cannot be known.
class Lookup {
  public:
    virtual ~Lookup() = default;
    virtual std::vector<Candidate> devices() const = 0;
    virtual std::vector<Candidate> peers() const = 0; // that this node has links with
    virtual std::vector<Candidate> links() const = 0;
    virtual std::vector<Candidate> keys() const = 0;
    // key: that both have to prove; empty: none
    virtual std::vector<Candidate> exports(const std::string& peer, const std::string& key) const = 0;
};

struct Completion {
    std::vector<Candidate> candidates; // those that begin as the last word does
    bool files = false;                // names of files may stand there too
};

// words: those behind `kxfer`; the last one is being written, and may be empty.
Completion complete(const CLI::App& app, const std::vector<std::string>& words, const Lookup& lookup);

// For the shells: a line for each candidate, WORD or WORD, tab, MEANING; and ":files".
std::string completion_text(const Completion& completion);

} // namespace kxfer::cli

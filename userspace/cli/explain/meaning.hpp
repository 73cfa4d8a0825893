// SPDX-License-Identifier: MIT
//
// The meaning of numbers and names that users of RDMA find in logs, completions and
// tables, and what to look at. Needs neither module nor device.
//
//   numbering  one enumeration: its numbers, names and texts (meaning_*.cpp)
//   kind       what --kind takes; most are one numbering, `gid` and `pkey` none
//   meaning    one reading of a word; a bare number has several
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kxfer::cli {

struct Entry {
    int number;
    const char* name;        // without the prefix of its numbering
    const char* text = "";   // as user space prints it
    const char* kernel = ""; // as in the kernel's log, if that differs
    const char* means = "";
    const char* look = ""; // what to look at, one thing a line
    // For an errno: its meaning as the status of a job's completion.
    const char* completion = "";
};

struct Numbering {
    const char* kind;
    const char* title;
    std::vector<const char*> prefixes; // of names; the first makes the full name
    std::span<const Entry> entries;
    bool negative = false; // -N means N
};

struct Meaning {
    std::string kind;
    std::string title; // "completion status"
    std::optional<int> number;
    std::string name;
    // Other facts, key and value: the text, the address in a GID.
    std::vector<std::pair<std::string, std::string>> facts;
    std::string means;
    std::string completion;
    std::vector<std::string> look;
};

// All numberings, in the order in which the readings of a number are shown.
std::span<const Numbering> numberings();
// What --kind takes.
std::vector<std::string> meaning_kinds();
// Every reading of a word, a number or a whole text, limited to `kind` unless that is
// empty. No readings: the word is unknown.
std::vector<Meaning> meanings_of(const std::string& word, const std::string& kind);
// A description of the known forms, for people.
extern const char meaning_forms[];

// The numberings themselves.
std::span<const Entry> wc_statuses();
std::span<const Entry> wc_opcodes();
std::span<const Entry> wr_opcodes();
std::span<const Entry> kernel_wc_opcodes();
std::span<const Entry> kernel_wr_opcodes();
std::span<const Entry> async_events();
std::span<const Entry> qp_states();
std::span<const Entry> reject_reasons();
std::span<const Entry> sidr_statuses();
std::span<const Entry> iwarp_rejects();
std::span<const Entry> refusals();
std::span<const Entry> cm_events();
std::span<const Entry> errnos();
std::span<const Entry> errnos_of_tool();
std::span<const Entry> errnos_of_verbs();

// Addresses have no numbering: their bits have the meaning.
std::optional<Meaning> gid_meaning(const std::string& word);
Meaning pkey_meaning(unsigned pkey);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/explain/meaning.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <sstream>

#include <fmt/format.h>

namespace kxfer::cli {

const char meaning_forms[] =
    "known are: numbers (12, 0x0c, -111), names (RETRY_EXC_ERR, IB_CM_REJ_STALE_CONN, EKEYREVOKED),\n"
    "the texts that logs have for them, GIDs (::ffff:10.77.0.1) and P_Keys (0xffff, ffff)\n"
    "see: kxfer explain --list";

namespace {

// Names and texts match in upper and lower case.
std::string folded(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

struct Number {
    uint32_t value = 0;
    bool negative = false;
    bool hex = false;
    size_t digits = 0;
};

std::optional<Number> number_of(std::string word) {
    Number number;
    number.negative = word.starts_with('-');
    if (number.negative) word.erase(0, 1);
    number.hex = word.starts_with("0x") || word.starts_with("0X");
    if (number.hex) word.erase(0, 2);
    number.digits = word.size();
    const auto is_digit = [&](unsigned char c) { return number.hex ? std::isxdigit(c) : std::isdigit(c); };
    if (word.empty() || word.size() > 8 || !std::all_of(word.begin(), word.end(), is_digit))
        return std::nullopt;
    number.value = static_cast<uint32_t>(std::stoul(word, nullptr, number.hex ? 16 : 10));
    return number;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

Meaning meaning_of(const Numbering& numbering, const Entry& entry) {
    Meaning meaning;
    meaning.kind = numbering.kind;
    meaning.title = numbering.title;
    meaning.number = entry.number;
    meaning.name = fmt::format("{}{}", numbering.prefixes.front(), entry.name);
    if (*entry.text) meaning.facts.emplace_back("text", entry.text);
    if (*entry.kernel) meaning.facts.emplace_back("kernel_text", entry.kernel);
    meaning.means = entry.means;
    meaning.completion = entry.completion;
    meaning.look = lines_of(entry.look);
    return meaning;
}

bool is_named(const Numbering& numbering, const Entry& entry, const std::string& word) {
    const std::string name = folded(entry.name);
    const auto is_full_name = [&](const char* prefix) { return word == folded(prefix) + name; };
    return word == name || word == folded(entry.text) || word == folded(entry.kernel) ||
           std::any_of(numbering.prefixes.begin(), numbering.prefixes.end(), is_full_name);
}

bool is_numbered(const Numbering& numbering, const Entry& entry, const Number& number) {
    return number.value == static_cast<uint32_t>(entry.number) && (!number.negative || numbering.negative);
}

// Four hexadecimal digits are how P_Keys are written.
bool is_pkey(const Number& number, const std::string& kind) {
    return !number.negative && number.value <= 0xffff &&
           (kind == "pkey" || (kind.empty() && number.hex && number.digits == 4));
}

// A P_Key as tools print it, without 0x: ffff, 7fff. With decimal digits alone it would be a number.
std::optional<unsigned> bare_pkey(const std::string& word) {
    const auto is_hex = [](unsigned char c) { return std::isxdigit(c) != 0; };
    if (word.size() != 4 || !std::all_of(word.begin(), word.end(), is_hex)) return std::nullopt;
    return static_cast<unsigned>(std::stoul(word, nullptr, 16));
}

} // namespace

std::span<const Numbering> numberings() {
    static const std::vector<Numbering> all = {
        {"wc", "completion status", {"IBV_WC_", "IB_WC_"}, wc_statuses()},
        {"reject", "reject reason of the IB CM", {"IB_CM_REJ_"}, reject_reasons()},
        {"reject", "SIDR status of the IB CM, for UD", {"IB_SIDR_"}, sidr_statuses()},
        {"reject", "reject status on iWARP", {""}, iwarp_rejects(), true},
        {"reject", "refusal of a kxfer peer", {"KXFER_REFUSAL_"}, refusals()},
        {"errno", "errno of kxfer", {""}, errnos(), true},
        {"errno", "errno of the tool", {""}, errnos_of_tool(), true},
        {"verbs", "errno of verbs and rdma_cm", {""}, errnos_of_verbs(), true},
        {"event", "rdma_cm event", {"RDMA_CM_EVENT_"}, cm_events()},
        {"async", "asynchronous event", {"IBV_EVENT_", "IB_EVENT_"}, async_events()},
        {"state", "QP state", {"IBV_QPS_", "IB_QPS_"}, qp_states()},
        {"opcode", "opcode of a completion", {"IBV_WC_", "IB_WC_"}, wc_opcodes()},
        {"opcode", "opcode of a work request", {"IBV_WR_", "IB_WR_"}, wr_opcodes()},
        {"opcode", "opcode of a completion in the kernel alone", {"IB_WC_"}, kernel_wc_opcodes()},
        {"opcode", "opcode of a work request in the kernel alone", {"IB_WR_"}, kernel_wr_opcodes()},
    };
    return all;
}

std::vector<std::string> meaning_kinds() {
    std::vector<std::string> kinds;
    for (const Numbering& numbering : numberings())
        if (kinds.empty() || kinds.back() != numbering.kind) kinds.emplace_back(numbering.kind);
    kinds.insert(kinds.end(), {"gid", "pkey"});
    return kinds;
}

std::vector<Meaning> meanings_of(const std::string& word, const std::string& kind) {
    std::vector<Meaning> found;
    const std::string text = folded(word);
    const auto number = number_of(word);
    if (word.empty()) return found;
    for (const Numbering& numbering : numberings()) {
        if (!kind.empty() && kind != numbering.kind) continue;
        for (const Entry& entry : numbering.entries)
            if (number ? is_numbered(numbering, entry, *number) : is_named(numbering, entry, text))
                found.push_back(meaning_of(numbering, entry));
    }
    if (number && is_pkey(*number, kind)) found.push_back(pkey_meaning(number->value));
    if (const auto pkey = bare_pkey(word);
        pkey && !number && (kind == "pkey" || (kind.empty() && found.empty())))
        found.push_back(pkey_meaning(*pkey));
    if (kind.empty() || kind == "gid")
        if (auto gid = gid_meaning(word)) found.push_back(std::move(*gid));
    return found;
}

} // namespace kxfer::cli

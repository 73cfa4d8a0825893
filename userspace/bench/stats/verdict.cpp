// SPDX-License-Identifier: MIT
#include "bench/stats/verdict.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kxfer::bench {

namespace {

using Outcome = Verdict::Outcome;

auto count(std::span<const Verdict> verdicts, Outcome outcome) {
    return std::count_if(verdicts.begin(), verdicts.end(),
                         [outcome](const Verdict& verdict) { return verdict.outcome == outcome; });
}

// The element in a JUnit test case; a verdict that was not judged is an error there.
const char* junit_element(Outcome outcome) {
    return outcome == Outcome::failed ? "failure" : outcome == Outcome::skipped ? "skipped" : "error";
}

std::string junit_text(const std::string& suite, std::span<const Verdict> verdicts) {
    std::string text =
        fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
                    xml_escaped(suite), verdicts.size(), count(verdicts, Outcome::failed),
                    count(verdicts, Outcome::not_judged), count(verdicts, Outcome::skipped));
    for (const auto& verdict : verdicts) {
        text += fmt::format("  <testcase classname=\"kxfer.bench\" name=\"{}\"", xml_escaped(verdict.name));
        if (verdict.outcome == Outcome::passed)
            text += fmt::format(">\n    <system-out>{}</system-out>\n", xml_escaped(verdict.detail));
        else
            text += fmt::format(">\n    <{} message=\"{}\"/>\n", junit_element(verdict.outcome),
                                xml_escaped(verdict.detail));
        text += "  </testcase>\n";
    }
    return text + "</testsuite>\n";
}

// Escapes '#', which begins a directive, and line ends, which begin a new test.
std::string tap_escaped(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
    for (size_t at = 0; (at = text.find_first_of("#\\", at)) != std::string::npos; at += 2)
        text.insert(at, 1, '\\');
    return text;
}

std::string tap_text(const std::string& suite, std::span<const Verdict> verdicts) {
    std::string text = fmt::format("TAP version 13\n1..{}\n# {}\n", verdicts.size(), tap_escaped(suite));
    size_t number = 0;

    for (const auto& verdict : verdicts) {
        text +=
            fmt::format("{} {} - {}", verdict.fine() ? "ok" : "not ok", ++number, tap_escaped(verdict.name));
        if (verdict.outcome == Outcome::skipped)
            text += fmt::format(" # SKIP {}\n", tap_escaped(verdict.detail));
        else
            text += fmt::format("\n# {}: {}\n", verdict.word(), tap_escaped(verdict.detail));
    }
    return text;
}

} // namespace

const char* Verdict::word() const {
    switch (outcome) {
    case Outcome::passed:
        return "passed";
    case Outcome::failed:
        return "FAILED";
    case Outcome::not_judged:
        return "not judged";
    default:
        return "skipped";
    }
}

std::optional<ReportForm> report_form(const std::string& file) {
    if (file.ends_with(".xml")) return ReportForm::junit;
    if (file.ends_with(".tap")) return ReportForm::tap;
    return std::nullopt;
}

std::string report_text(ReportForm form, const std::string& suite, std::span<const Verdict> verdicts) {
    return form == ReportForm::junit ? junit_text(suite, verdicts) : tap_text(suite, verdicts);
}

std::string xml_escaped(const std::string& text) {
    std::string escaped;

    for (const char c : text) {
        switch (c) {
        case '<':
            escaped += "&lt;";
            break;
        case '>':
            escaped += "&gt;";
            break;
        case '&':
            escaped += "&amp;";
            break;
        case '"':
            escaped += "&quot;";
            break;
        case '\t':
        case '\n':
        case '\r': // an attribute would lose them
            escaped += fmt::format("&#{};", static_cast<int>(c));
            break;
        default:
            escaped += static_cast<unsigned char>(c) < ' ' ? '?' : c;
        }
    }
    return escaped;
}

} // namespace kxfer::bench

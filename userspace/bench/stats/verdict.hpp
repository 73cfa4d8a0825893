// SPDX-License-Identifier: MIT
//
// Outcomes of assertions and of comparisons with a baseline, and files of them for tools
// that collect test results: JUnit XML or TAP.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kxfer::bench {

struct Verdict {
    // skipped: there was nothing to compare. not_judged: the machine spoiled the run; this is not
    // a success.
    enum class Outcome { passed, failed, not_judged, skipped };

    std::string name;
    Outcome outcome = Outcome::passed;
    std::string detail; // includes the measured value

    bool fine() const { return outcome == Outcome::passed || outcome == Outcome::skipped; }
    const char* word() const; // "passed", "FAILED", "not judged", "skipped"
};

enum class ReportForm { junit, tap };

// The form by the file's extension, .xml or .tap.
std::optional<ReportForm> report_form(const std::string& file);

// suite: description of what was measured.
std::string report_text(ReportForm form, const std::string& suite, std::span<const Verdict> verdicts);

// Escapes an attribute's text; characters that XML 1.0 cannot hold become '?'.
std::string xml_escaped(const std::string& text);

} // namespace kxfer::bench

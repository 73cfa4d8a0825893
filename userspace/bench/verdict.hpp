// SPDX-License-Identifier: MIT
//
// What became of an assertion or of a comparison with a baseline, and a file of them
// for who collects such: JUnit XML or TAP.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kxfer::bench {

struct Verdict {
    // skipped: there was nothing to compare; not_judged: the machine spoiled the run, which
    // is no success.
    enum class Outcome { passed, failed, not_judged, skipped };

    std::string name;
    Outcome outcome = Outcome::passed;
    std::string detail; // with what was measured

    bool fine() const { return outcome == Outcome::passed || outcome == Outcome::skipped; }
    const char* word() const; // "passed", "FAILED", "not judged", "skipped"
};

enum class ReportForm { junit, tap };

// By the file's extension, .xml or .tap.
std::optional<ReportForm> report_form(const std::string& file);

// suite: what was measured, in words.
std::string report_text(ReportForm form, const std::string& suite, std::span<const Verdict> verdicts);

// Of an attribute; what XML 1.0 cannot hold becomes '?'.
std::string xml_escaped(const std::string& text);

} // namespace kxfer::bench

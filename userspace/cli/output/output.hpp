// SPDX-License-Identifier: MIT
//
// Output: the only way to the user. Commands hand over records; this file decides how
// they look, as text (aligned, for people) or as JSON (one object or array a line,
// units in the key names).
//
//   results    stdout: record(), table(), event(), sample()
//   the rest   stderr: note(), failure(), progress
//
// With --json stderr carries only a failure, as one object. With
// --quiet there are no notes, events or progress.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/output/failure.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

struct OutputOptions {
    bool json = false;
    bool quiet = false;
    bool color = true; // if the stream is a terminal and NO_COLOR is not set
};

class Output {
  public:
    explicit Output(const OutputOptions& options) : options_(options) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    virtual ~Output() = default;

    // The result of a command: one object.
    virtual void record(const Record& record) = 0;
    // The result of a command: many records of a kind. `empty`: printed if there is none.
    virtual void table(const Table& rows, const std::string& empty) = 0;
    // An event while the command goes on; `text` describes it for people.
    virtual void event(const Record& record, const std::string& text) = 0;
    virtual void failure(const Failure& failure) = 0;
    // A result of each interval, while the command goes on; also with --quiet.
    virtual void sample(const Record& record, const std::string& text) = 0;

    // Prints the answer to --help or --version unchanged.
    void answer(const std::string& text) { write(text); }

    // The result of a transfer: as record(), or with --quiet as sha256sum prints it.
    void transferred(const Record& result, const std::string& sha256, const std::string& name) {
        if (options_.quiet && !options_.json)
            write(sha256 + "  " + name + '\n');
        else
            record(result);
    }

    // Prints a remark for people; not with --json or --quiet.
    void note(const std::string& text);
    // From now on results go to stderr, because stdout carries data.
    void keep_stdout_free() { results_ = stderr; }
    // From now on events and failures tell their time: as JSON always, as text where that goes neither
    // to a terminal nor to the journal, which have it.
    void stamp_events() { stamped_ = true; }
    // The command has an option --wide; with it tables have all their columns on any terminal.
    void offer_wide(bool wanted) {
        offers_wide_ = true;
        wide_ = wanted;
    }
    // Why results could not be written (ENOSPC: a full disk, EPIPE: no reader); 0 if all were.
    int write_error() const { return write_error_; }

    bool quiet() const { return options_.quiet; }
    // Whether what is drawn for people may take the place of results.
    bool draws() const { return !options_.json; }
    // Whether to show progress at all: not with --quiet or --json.
    bool progress_wanted() const { return !options_.quiet && !options_.json; }

  protected:
    void write(const std::string& text);
    const OutputOptions& options() const { return options_; }
    std::FILE* results() const { return results_; }
    bool wide() const { return wide_; }
    // Where the columns are that a terminal has no room for.
    const char* more() const { return offers_wide_ ? "(--wide tells more)" : "(--json tells more)"; }
    bool stamped() const { return stamped_; }
    // The text of a line, broken to fit if the stream is a terminal.
    static std::string fitting(const std::string& text, std::FILE* stream);
    // The time before a line of the stream, if that needs one; else nothing.
    std::string stamp_for(std::FILE* stream) const;

  private:
    OutputOptions options_;
    std::FILE* results_ = stdout;
    int write_error_ = 0;
    bool wide_ = false;
    bool offers_wide_ = false;
    bool stamped_ = false;
};

// The time now, of this machine's zone, as ISO 8601 with milliseconds.
std::string time_text();

std::unique_ptr<Output> make_text_output(const OutputOptions& options);
std::unique_ptr<Output> make_json_output(const OutputOptions& options);
// The lines of a table, its header first, for a screen that is drawn anew: with the narrow columns
// if all do not fit (Show), and each cut to the width.
std::vector<std::string> table_lines(const Table& rows, size_t width);
// The record as a line of JSON output.
std::string json_text(const Record& record);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/output/progress.hpp"
#include "cli/output/streams.hpp"

#include <cmath>

#include <fmt/format.h>
#include <unistd.h>

#include <kxfer/kxfer.h>

#include "cli/output/terminal.hpp"

namespace kxfer::cli {

namespace {

constexpr uint64_t bar_interval_ns = 100'000'000;
constexpr uint64_t line_interval_ns = 10'000'000'000;
constexpr size_t bar_width = 24;

// "45 s", "3:05 min", "2:03:05 h"
std::string clock_text(double seconds) {
    const auto all = std::llround(seconds);
    if (all < 60) return fmt::format("{} s", all);
    if (all < 3600) return fmt::format("{}:{:02} min", all / 60, all % 60);
    return fmt::format("{}:{:02}:{:02} h", all / 3600, all / 60 % 60, all % 60);
}

std::string bar(double part) {
    const auto filled = static_cast<size_t>(part * bar_width);
    return '[' + std::string(filled, '=') + std::string(bar_width - filled, ' ') + ']';
}

} // namespace

ProgressLine::ProgressLine(const Output& out, std::string label)
    : label_(std::move(label)), shown_ns_(kxfer_clock_ns()), wanted_(out.progress_wanted()),
      terminal_(isatty(STDERR_FILENO) != 0) {}

bool ProgressLine::due() const {
    return wanted_ && kxfer_clock_ns() - shown_ns_ >= (terminal_ ? bar_interval_ns : line_interval_ns);
}

void ProgressLine::show(std::optional<double> part, const std::string& words) {
    if (!due()) return;
    std::string text = label_ + ' ';
    if (part && terminal_) text += bar(*part) + ' ';
    if (part) text += fmt::format("{:.0f} %, ", *part * 100);
    text += words;
    // Text that does not fit would wrap to the next line, which \r does not remove. A
    // terminal may scroll when its last column is written.
    if (const auto width = terminal_width(STDERR_FILENO)) text = cut(text, *width - 1);
    shown_ns_ = kxfer_clock_ns();
    drawn_ = terminal_;
    if (terminal_)
        complain(fmt::format("\r{}\033[K", text));
    else
        complain(text + '\n');
}

void ProgressLine::finish() {
    if (drawn_) complain("\r\033[K");
    drawn_ = false;
}

Progress::Progress(const Output& out, std::string label, std::optional<uint64_t> total, uint64_t before)
    : line_(out, std::move(label)), total_(total), before_(before), began_ns_(kxfer_clock_ns()) {}

void Progress::update(uint64_t done) {
    if (!line_.due()) return;
    const double seconds = static_cast<double>(kxfer_clock_ns() - began_ns_ + 1) / 1e9;
    const double rate = static_cast<double>(done - before_) / seconds;
    std::string words = human_bytes(done) + ", " + human_value(BytesPerSecond{rate});
    std::optional<double> part;
    if (total_ && *total_ != 0) part = static_cast<double>(done) / static_cast<double>(*total_);
    if (part && rate > 0 && *part < 1)
        words += fmt::format(", {} left", clock_text(static_cast<double>(*total_ - done) / rate));
    line_.show(part, words);
}

} // namespace kxfer::cli

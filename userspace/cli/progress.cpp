// SPDX-License-Identifier: MIT
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <kxfer/kxfer.h>

namespace kxfer::cli {

namespace {

constexpr uint64_t bar_interval_ns = 100'000'000;
constexpr uint64_t line_interval_ns = 10'000'000'000;
constexpr size_t bar_width = 24;

std::string bar(double part) {
    const auto filled = static_cast<size_t>(part * bar_width);
    return '[' + std::string(filled, '=') + std::string(bar_width - filled, ' ') + ']';
}

} // namespace

Progress::Progress(const Output& out, std::string label, std::optional<uint64_t> total)
    : label_(std::move(label)), total_(total), began_ns_(kxfer_clock_ns()), shown_ns_(began_ns_),
      wanted_(out.progress_wanted()), terminal_(isatty(STDERR_FILENO) != 0) {}

std::string Progress::line(uint64_t done, uint64_t now) const {
    const double seconds = static_cast<double>(now - began_ns_ + 1) / 1e9;
    const double rate = static_cast<double>(done) / seconds;
    std::string text = label_ + ' ';
    if (total_ && *total_ != 0) {
        const double part = static_cast<double>(done) / static_cast<double>(*total_);
        if (terminal_) text += bar(part) + ' ';
        text += fmt::format("{:.0f} %, ", part * 100);
    }
    return text + human_bytes(done) + ", " + human_value(BytesPerSecond{rate});
}

void Progress::update(uint64_t done) {
    const uint64_t now = kxfer_clock_ns();
    if (!wanted_ || now - shown_ns_ < (terminal_ ? bar_interval_ns : line_interval_ns)) return;
    shown_ns_ = now;
    drawn_ = terminal_;
    if (terminal_)
        fmt::print(stderr, "\r{}\033[K", line(done, now));
    else
        fmt::print(stderr, "{}\n", line(done, now));
}

void Progress::finish() {
    if (drawn_) fmt::print(stderr, "\r\033[K");
    drawn_ = false;
}

} // namespace kxfer::cli

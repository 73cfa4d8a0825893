// SPDX-License-Identifier: MIT
#include "cli/measure/tuning.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <linux/kxfer.h>

namespace kxfer::cli {

namespace {

// More in flight, or longer pieces, have to bring this much.
constexpr double worth = 0.95;

constexpr double ms = 1e6, second = 1e9;
// Of InfiniBand's transport: the ack timeout is 4.096 us times a power of two, and the retries have
// three bits. A device may wait up to four times the timeout.
constexpr double ack_unit_ns = 4096;
constexpr unsigned least_ack_exponent = 14, most_ack_exponent = KXFER_ACK_TIMEOUT_MAX;
constexpr unsigned retries = 7;
constexpr double ack_margin = 4;
// Of the module (kmod/base/patience.c, kmod/job/line.c).
constexpr double most_keepalive_ns = 2 * second, longest_back_off_ns = 10 * second;
constexpr double keepalives_in_silence = 4;
// Of the tool.
constexpr double most_timeout_ns = 60 * second;

std::string short_size(uint64_t bytes) {
    return bytes < 1024 ? fmt::format("{} B", bytes) : human_bytes(bytes);
}

std::string time_text(double ns) { return human_nanoseconds(ns); }

double round_up(double ns, double step) { return std::ceil(ns / step) * step; }

// The first whose figure is worth as much as the greatest.
template <typename Figure> const Load& first_worth(const std::vector<Load>& loads, Figure figure) {
    double best = 0;
    for (const Load& load : loads) best = std::max(best, figure(load));
    for (const Load& load : loads)
        if (figure(load) >= worth * best) return load;
    return loads.back();
}

double rate(const Load& load) { return load.per_second(); }
double bandwidth(const Load& load) { return load.bytes_per_second(); }

template <typename Figure> const Load& greatest(const std::vector<Load>& loads, Figure figure) {
    return *std::max_element(loads.begin(), loads.end(),
                             [&](const Load& a, const Load& b) { return figure(a) < figure(b); });
}

double round_trip(const LinkFigures& figures) {
    const Load& alone = figures.small.front();
    return std::isnan(alone.p50_ns) ? alone.longest_ns : alone.p50_ns;
}

double longest(const LinkFigures& figures) {
    double most = 0;
    for (const auto* loads : {&figures.small, &figures.pieces, &figures.bulk})
        for (const Load& load : *loads) most = std::max(most, load.longest_ns);
    return most;
}

Choice choose_depth(const LinkFigures& figures) {
    const Load &chosen = first_worth(figures.small, rate), &best = greatest(figures.small, rate);
    return {"depth", "jobs in flight, short", uint64_t{chosen.depth}, "the program's choice",
            fmt::format("READ {}: {:.0f}/s one at a time, {:.0f}/s with {} in flight; the most was {:.0f}/s "
                        "with {}",
                        short_size(chosen.size), figures.small.front().per_second(), chosen.per_second(),
                        chosen.depth, best.per_second(), best.depth)};
}

Choice choose_piece(const LinkFigures& figures) {
    const Load& chosen = first_worth(figures.pieces, bandwidth);
    std::string all;
    for (const Load& load : figures.pieces)
        all += fmt::format("{}{} {}", all.empty() ? "" : ", ", short_size(load.size),
                           human_value(BytesPerSecond{load.bytes_per_second()}));
    const bool last = &chosen == &figures.pieces.back();
    return {"piece", "piece size, at least", Bytes{chosen.size}, "512 KiB (put, get)",
            fmt::format("READs of the same bytes in flight: {}; the shortest within 5 % of the best{}", all,
                        last ? ". Longer ones could not be READ: @ping ends there" : "")};
}

Choice choose_bulk(const LinkFigures& figures, const LinkSettings& now) {
    const Load& chosen = first_worth(figures.bulk, bandwidth);
    const double product = chosen.bytes_per_second() * round_trip(figures) / second;
    return {"bytes_in_flight", "bytes in flight, at least", Bytes{chosen.size * chosen.depth},
            fmt::format("8 pieces (put, get); {} of a link (--in-flight)", human_bytes(now.in_flight)),
            fmt::format("READ {}: {} with {} in flight, {} with one. Bandwidth times round trip is {}: less "
                        "in flight leaves the wire idle",
                        short_size(chosen.size), human_value(BytesPerSecond{chosen.bytes_per_second()}),
                        chosen.depth, human_value(BytesPerSecond{figures.bulk.front().bytes_per_second()}),
                        short_size(static_cast<uint64_t>(product)))};
}

double ack_timeout(unsigned exponent) { return ack_unit_ns * std::exp2(exponent); }

unsigned choose_ack_exponent(const LinkFigures& figures) {
    unsigned exponent = least_ack_exponent;
    while (exponent < most_ack_exponent && ack_timeout(exponent) < ack_margin * longest(figures)) exponent++;
    return exponent;
}

// How long the transport tries before it ends the link by itself; 0: TCP does as it likes.
double transport_time(const LinkFigures& figures) {
    return figures.iwarp ? 0 : (retries + 1) * ack_timeout(choose_ack_exponent(figures));
}

std::string now_ack(const LinkSettings& now) {
    if (now.ack_exponent == 0) return "not known";
    return fmt::format("{}, {} retries", time_text(ack_timeout(now.ack_exponent)), now.retries);
}

Choice choose_ack(const LinkFigures& figures, const LinkSettings& now) {
    const unsigned exponent = choose_ack_exponent(figures);
    const double chosen = ack_timeout(exponent);
    const std::string bound = exponent == least_ack_exponent ? "; no less, for a peer whose CPU is busy" : "";
    return {"ack_timeout", "--ack-timeout", Nanoseconds{chosen}, now_ack(now),
            fmt::format("4.096 us x 2^{}: {:.0f} times the longest READ, {}{}. {} tries are {}", exponent,
                        chosen / longest(figures), time_text(longest(figures)), bound, retries + 1,
                        time_text(transport_time(figures)))};
}

double silence(const LinkFigures& figures) {
    const double least = std::max(10 * longest(figures), transport_time(figures));
    return std::clamp(round_up(least, 100 * ms), KXFER_SILENCE_MIN_MS * ms, KXFER_SILENCE_MAX_MS * ms);
}

// As the module does (kxfer_patience_keepalive_ms()).
double keepalive(double silence_ns) {
    return std::min(silence_ns / keepalives_in_silence, most_keepalive_ns);
}

Choice choose_keepalive(const LinkFigures& figures, const LinkSettings& now) {
    return {
        "keepalive", "keep-alive every", Nanoseconds{keepalive(silence(figures))},
        time_text(keepalive(now.silence_ns)),
        fmt::format("follows from the silence: a quarter of it, {} at most", time_text(most_keepalive_ns))};
}

Choice choose_silence(const LinkFigures& figures, const LinkSettings& now) {
    const std::string transport =
        figures.iwarp ? ""
                      : fmt::format(", and the transport's tries ({})", time_text(transport_time(figures)));
    return {"silence", "--silence", Nanoseconds{silence(figures)}, time_text(now.silence_ns),
            fmt::format("10 times the longest READ ({}){}; but 1 to 30 s", time_text(longest(figures)),
                        transport)};
}

double connect_time(const LinkFigures& figures) {
    return std::isnan(figures.connect_ns) ? 0 : figures.connect_ns;
}

Choice choose_timeout(const LinkFigures& figures, const LinkSettings& now) {
    const double least = std::max({second, 20 * connect_time(figures), silence(figures)});
    const std::string connect = std::isnan(figures.connect_ns)
                                    ? "the time to connect is not known"
                                    : fmt::format("20 times a connect ({})", time_text(figures.connect_ns));
    return {"timeout", "--timeout", Nanoseconds{std::min(round_up(least, second), most_timeout_ns)},
            time_text(now.timeout_ns),
            fmt::format("{}; not less than it takes to give up a silent peer ({})", connect,
                        time_text(silence(figures)))};
}

Choice choose_loss(const LinkFigures& figures) {
    const double chosen = round_up(silence(figures) + longest_back_off_ns + connect_time(figures), second);
    return {"loss", "loss_ms of PEER_OPEN", Nanoseconds{chosen}, "0: jobs end with their link",
            fmt::format("a break is noticed after {}, the longest pause between two tries is {}, and then it "
                        "connects",
                        time_text(silence(figures)), time_text(longest_back_off_ns))};
}

} // namespace

std::vector<Choice> choose(const LinkFigures& figures, const LinkSettings& now) {
    std::vector<Choice> all = {choose_depth(figures), choose_piece(figures), choose_bulk(figures, now)};
    if (!figures.iwarp) all.push_back(choose_ack(figures, now));
    for (auto choice : {choose_keepalive(figures, now), choose_silence(figures, now),
                        choose_timeout(figures, now), choose_loss(figures)})
        all.push_back(std::move(choice));
    return all;
}

} // namespace kxfer::cli

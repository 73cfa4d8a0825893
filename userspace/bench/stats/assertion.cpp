// SPDX-License-Identifier: MIT
#include "bench/stats/assertion.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

struct UnitOf {
    Kind kind;
    std::string_view name;
    double scale;
};

constexpr std::array<UnitOf, 14> units = {{
    {Kind::time, "ns", 1},
    {Kind::time, "us", 1e3},
    {Kind::time, "ms", 1e6},
    {Kind::time, "s", 1e9},
    {Kind::bandwidth, "B/s", 1},
    {Kind::bandwidth, "KiB/s", 1024},
    {Kind::bandwidth, "MiB/s", 1024.0 * 1024},
    {Kind::bandwidth, "GiB/s", 1024.0 * 1024 * 1024},
    {Kind::bandwidth, "MB/s", 1e6},
    {Kind::bandwidth, "GB/s", 1e9},
    {Kind::bandwidth, "Gbit/s", 1e9 / 8},
    {Kind::rate, "/s", 1},
    {Kind::rate, "k/s", 1e3},
    {Kind::rate, "M/s", 1e6},
}};

std::string unit_names(Kind kind) {
    std::string names;

    for (const auto& unit : units)
        if (unit.kind == kind) names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
    return names;
}

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads from the front of the text; errors are reported at its current place.
class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    size_t at() const { return at_; }
    std::string_view since(size_t begin) const { return text_.substr(begin, at_ - begin); }
    bool over() const { return at_ == text_.size(); }
    char front() const { return over() ? '\0' : text_[at_]; }
    void skip_spaces() {
        while (is_space(front())) at_++;
    }
    bool take(std::string_view wanted) {
        if (!text_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }
    template <typename Belongs> std::string_view take_while(Belongs belongs) {
        const size_t begin = at_;
        while (!over() && belongs(front())) at_++;
        return since(begin);
    }
    // Takes no sign and no words such as inf.
    std::optional<double> take_number() {
        double number = 0;
        if (!is_digit(front())) return std::nullopt;
        const char* begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
        if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
        at_ += static_cast<size_t>(end - begin);
        return number;
    }

  private:
    std::string_view text_;
    size_t at_ = 0;
};

tl::unexpected<ParseError> wrong(size_t at, std::string message) {
    return tl::unexpected(ParseError{at + 1, std::move(message)});
}

std::optional<Relation> take_relation(Reader& reader) {
    if (reader.take("<=")) return Relation::at_most;
    if (reader.take(">=")) return Relation::at_least;
    if (reader.take("<")) return Relation::less;
    if (reader.take(">")) return Relation::more;
    return std::nullopt;
}

tl::expected<double, ParseError> take_limit(Reader& reader, const std::string& figure, Kind kind) {
    size_t at = reader.at();
    const auto number = reader.take_number();
    if (!number) return wrong(at, "a number is needed here, such as 80 or 0.5");
    reader.skip_spaces();
    at = reader.at();
    const auto name = reader.take_while([](char c) { return c != ',' && !is_space(c); });
    if (kind == Kind::number) {
        if (name.empty()) return *number;
        return wrong(at, fmt::format("{} has no unit", figure));
    }
    for (const auto& unit : units)
        if (unit.kind == kind && unit.name == name) return *number * unit.scale;
    return wrong(at, fmt::format("{} needs a unit: {}", figure, unit_names(kind)));
}

tl::expected<Assertion, ParseError> take_assertion(Reader& reader) {
    Assertion assertion;

    reader.skip_spaces();
    const size_t begin = reader.at();
    assertion.figure = reader.take_while([](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '_';
    });
    const auto kind = kind_of(assertion.figure);
    if (!kind)
        return wrong(
            begin,
            fmt::format("{}a figure is one of {}",
                        assertion.figure.empty() ? "" : fmt::format("'{}' is no figure; ", assertion.figure),
                        figure_names()));
    assertion.kind = *kind;
    reader.skip_spaces();
    const auto relation = take_relation(reader);
    if (!relation) return wrong(reader.at(), "one of <, <=, >, >= is needed here");
    assertion.relation = *relation;
    reader.skip_spaces();
    TRY_SET(assertion.limit, take_limit(reader, assertion.figure, *kind));
    assertion.text = reader.since(begin);
    reader.skip_spaces();
    return assertion;
}

Verdict judge_one(const Assertion& assertion, const std::vector<Figure>& figures) {
    const auto figure = std::find_if(figures.begin(), figures.end(),
                                     [&](const Figure& one) { return one.name == assertion.figure; });
    if (figure == figures.end() || !figure->value)
        return {assertion.text, Verdict::Outcome::failed,
                fmt::format("{} is not known: {}", assertion.figure,
                            figure == figures.end() ? "not measured" : figure->missing)};
    return {assertion.text,
            assertion.holds(*figure->value) ? Verdict::Outcome::passed : Verdict::Outcome::failed,
            fmt::format("{} is {}", assertion.figure, figure_text(assertion.kind, *figure->value))};
}

} // namespace

bool Assertion::holds(double value) const {
    switch (relation) {
    case Relation::less:
        return value < limit;
    case Relation::at_most:
        return value <= limit;
    case Relation::more:
        return value > limit;
    default:
        return value >= limit;
    }
}

tl::expected<std::vector<Assertion>, ParseError> parse_assertions(std::string_view text) {
    std::vector<Assertion> assertions;
    Reader reader(text);

    do {
        TRY_SET(auto assertion, take_assertion(reader));
        assertions.push_back(std::move(assertion));
        if (!reader.over() && reader.front() != ',')
            return wrong(reader.at(), "assertions stand apart by commas");
    } while (reader.take(","));
    return assertions;
}

tl::expected<double, ParseError> parse_rate(std::string_view text) {
    Reader reader(text);

    auto rate = take_limit(reader, "a rate", Kind::rate);
    if (rate && !reader.over()) return wrong(reader.at(), "nothing may stand behind a rate");
    return rate;
}

std::vector<Verdict> judge(const std::vector<Assertion>& assertions, const std::vector<Figure>& figures,
                           const std::string& obstacle) {
    std::vector<Verdict> verdicts;

    for (const auto& assertion : assertions) {
        verdicts.push_back(judge_one(assertion, figures));
        if (obstacle.empty()) continue;
        verdicts.back().outcome = Verdict::Outcome::not_judged;
        verdicts.back().detail += "; " + obstacle;
    }
    return verdicts;
}

} // namespace kxfer::bench

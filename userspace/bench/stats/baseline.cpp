// SPDX-License-Identifier: MIT
#include "bench/stats/baseline.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kxfer::bench {

namespace {

using Json = nlohmann::json;

struct Compared {
    const char* name;
    const char* key; // in "total"
    Kind kind;
    bool great_is_good;
};

constexpr std::array<Compared, 4> compared = {{
    {"rate", "rate_per_s", Kind::rate, true},
    {"bw", "bandwidth_bytes_per_s", Kind::bandwidth, true},
    {"p50", "latency_p50_ns", Kind::time, false},
    {"p99", "latency_p99_ns", Kind::time, false},
}};

const std::string& value_in(const std::map<std::string, std::string>& values, const std::string& key) {
    static const std::string none = "nothing";
    const auto at = values.find(key);
    return at == values.end() ? none : at->second;
}

std::optional<double> figure_in(const Baseline& baseline, const char* name) {
    const auto at = baseline.figures.find(name);
    return at == baseline.figures.end() ? std::nullopt : at->second;
}

Verdict judge_one(const Compared& what, const std::optional<double>& before, const std::optional<double>& now,
                  double tolerance) {
    Verdict verdict{fmt::format("{} within {:g} % of the baseline", what.name, tolerance * 100), {}, {}};

    if (!before) {
        verdict.outcome = Verdict::Outcome::skipped;
        verdict.detail = fmt::format("the baseline has no {}", what.name);
    } else if (!now) {
        verdict.outcome = Verdict::Outcome::failed;
        verdict.detail = fmt::format("{} is not known now", what.name);
    } else {
        const bool fine =
            what.great_is_good ? *now >= *before * (1 - tolerance) : *now <= *before * (1 + tolerance);
        verdict.outcome = fine ? Verdict::Outcome::passed : Verdict::Outcome::failed;
        verdict.detail = fmt::format("{} is {}, was {}", what.name, figure_text(what.kind, *now),
                                     figure_text(what.kind, *before));
        if (*before > 0) verdict.detail += fmt::format(" ({:+.1f} %)", (*now / *before - 1) * 100);
    }
    return verdict;
}

} // namespace

tl::expected<Baseline, std::string> parse_baseline(const std::string& json) {
    const Json object = Json::parse(json, nullptr, false);
    Baseline baseline;

    if (!object.is_object()) return tl::unexpected(std::string("it is no JSON object"));
    if (object.value("result", Json()) != Baseline::result ||
        !object.value("parameters", Json()).is_object() || !object.value("total", Json()).is_object())
        return tl::unexpected(fmt::format("it is no result of {}", Baseline::result));
    if (object.value("format", Json()) != Baseline::format)
        return tl::unexpected(fmt::format("its format is {}, this is {}",
                                          object.value("format", Json()).dump(), Baseline::format));
    baseline.interrupted = object.value("interrupted", Json()) == true;
    for (const auto& [key, value] : object["parameters"].items()) baseline.parameters[key] = value.dump();
    for (const auto& what : compared) {
        const Json value = object["total"].value(what.key, Json());
        if (value.is_number()) baseline.figures[what.name] = value.get<double>();
    }
    return baseline;
}

std::vector<std::string> find_differences(const Baseline& baseline, const Baseline& now) {
    std::map<std::string, std::string> all = baseline.parameters;
    std::vector<std::string> differences;

    all.insert(now.parameters.begin(), now.parameters.end());
    for (const auto& entry : all) {
        const auto& before = value_in(baseline.parameters, entry.first);
        const auto& after = value_in(now.parameters, entry.first);
        if (before != after)
            differences.push_back(fmt::format("{}: {} in the baseline, {} now", entry.first, before, after));
    }
    return differences;
}

std::vector<Verdict> judge(const Baseline& baseline, const Baseline& now, double tolerance,
                           const std::string& obstacle) {
    std::vector<Verdict> verdicts;

    for (const auto& what : compared) {
        auto verdict = judge_one(what, figure_in(baseline, what.name), figure_in(now, what.name), tolerance);
        if (!obstacle.empty() && verdict.outcome != Verdict::Outcome::skipped) {
            verdict.outcome = Verdict::Outcome::not_judged;
            verdict.detail += "; " + obstacle;
        }
        verdicts.push_back(std::move(verdict));
    }
    return verdicts;
}

std::optional<double> parse_tolerance(const std::string& text) {
    const std::string digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
    double percent = 0;

    if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    if (error != std::errc() || end != digits.data() + digits.size() || percent > 1000) return std::nullopt;
    return percent / 100;
}

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
#include "engine/mix.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

constexpr unsigned whole = 100;
constexpr std::array mixed = {Operation::read, Operation::write, Operation::send};

std::optional<unsigned> percent_from(const std::string& text) {
    unsigned percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);

    if (error != std::errc() || end != text.data() + text.size() || percent < 1 || percent > whole)
        return std::nullopt;
    return percent;
}

tl::expected<Share, std::string> parse_share(const std::string& part) {
    const size_t equals = part.find('=');
    const auto operation = operation_from(part.substr(0, equals));

    if (!operation || std::find(mixed.begin(), mixed.end(), *operation) == mixed.end())
        return tl::unexpected(fmt::format("'{}': a mix is of read, write and send", part));
    const auto percent = equals == std::string::npos ? std::nullopt : percent_from(part.substr(equals + 1));
    if (!percent) return tl::unexpected(fmt::format("'{}': a share is 1 to 100 percent", part));
    return Share{*operation, *percent};
}

} // namespace

tl::expected<Mix, std::string> parse_mix(const std::string& text) {
    std::istringstream parts(text);
    unsigned sum = 0;
    Mix mix;

    for (std::string part; std::getline(parts, part, ',');) {
        TRY_SET(auto share, parse_share(part));
        for (const auto& other : mix)
            if (other.operation == share.operation)
                return tl::unexpected(fmt::format("'{}' is there twice", operation_name(other.operation)));
        sum += share.percent;
        mix.push_back(share);
    }
    if (sum != whole) return tl::unexpected(fmt::format("the shares are {} percent together, not 100", sum));
    return mix;
}

std::string mix_text(const Mix& mix) {
    std::string text;

    for (const auto& share : mix)
        text +=
            fmt::format("{}{}={}", text.empty() ? "" : ",", operation_name(share.operation), share.percent);
    return text;
}

bool has_messages(const Workload& workload) {
    const auto& turns = workload.turns;
    return workload.is_mix() ? std::any_of(turns.begin(), turns.end(), is_message)
                             : is_message(workload.operation);
}

// Every turn each operation gains its share; the one with the most takes the turn and pays.
std::vector<Operation> turns_of(const Mix& mix) {
    std::vector<int> credits(mix.size());
    std::vector<Operation> turns;

    for (unsigned turn = 0; turn < whole && !mix.empty(); turn++) {
        for (size_t i = 0; i < mix.size(); i++) credits[i] += static_cast<int>(mix[i].percent);
        const auto most = std::max_element(credits.begin(), credits.end());
        *most -= static_cast<int>(whole);
        turns.push_back(mix[static_cast<size_t>(most - credits.begin())].operation);
    }
    return turns;
}

} // namespace kxfer::bench

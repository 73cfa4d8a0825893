// SPDX-License-Identifier: MIT
//
// Values for people and keys for scripts.

#include "cli/output/record.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kxfer::cli {

Record& Record::add(std::string key, Value value, Show show, std::string label) {
    fields_.push_back({std::move(key), std::move(value), show, std::move(label)});
    return *this;
}

Record& Record::add(std::string key, Record nested) {
    return add(std::move(key), Value(std::make_shared<Record>(std::move(nested))));
}

Record numbered(const Words& sentences) {
    Record lines;
    for (size_t i = 0; i < sentences.size(); i++)
        lines.add(fmt::format("note_{}", i + 1), Value(Lines{{sentences[i]}}), Show::everywhere,
                  fmt::format("{}.", i + 1));
    return lines;
}

namespace {

// At most one digit after the point, and not ".0".
std::string short_number(double number) {
    std::string text = fmt::format("{:.1f}", number);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
}

std::string scale_binary(double number, const char* unit) {
    static constexpr std::array<const char*, 5> prefixes = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t i = 0;
    while (number >= 1024 && i + 1 < prefixes.size()) {
        number /= 1024;
        i++;
    }
    return fmt::format("{} {}{}", short_number(number), prefixes[i], unit);
}

bool gbits = false;

std::string bandwidth_text(double bytes_per_second) {
    if (gbits) return fmt::format("{:.3f} Gbit/s", bytes_per_second * 8 / 1e9);
    return scale_binary(bytes_per_second, "B/s");
}

// Names may come from peers. Their characters must not move the cursor, change the
// colour or begin a line: control characters become question marks, also those above
// ASCII, U+0080 to U+009F, which are C2 80 to C2 9F in UTF-8.
std::string printable(std::string text) {
    for (size_t i = 0; i < text.size(); i++) {
        const auto c = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        if (c < ' ' || c == 0x7f)
            text[i] = '?';
        else if (c == 0xc2 && next >= 0x80 && next < 0xa0)
            text[i] = text[i + 1] = '?';
    }
    return text;
}

struct Human {
    std::string operator()(None) const { return "-"; }
    std::string operator()(bool yes) const { return yes ? "yes" : "no"; }
    std::string operator()(int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(uint64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{:.2f}", number); }
    std::string operator()(const std::string& text) const { return text.empty() ? "-" : printable(text); }
    std::string operator()(const Words& words) const {
        return words.empty() ? "-" : printable(fmt::format("{}", fmt::join(words, ", ")));
    }
    std::string operator()(const Lines& all) const {
        return all.lines.empty() ? "-" : printable(fmt::format("{}", fmt::join(all.lines, "; ")));
    }
    std::string operator()(Bytes bytes) const { return human_bytes(bytes.count); }
    std::string operator()(Nanoseconds ns) const { return human_nanoseconds(ns.count); }
    std::string operator()(BytesPerSecond rate) const { return bandwidth_text(rate.count); }
    std::string operator()(PerSecond rate) const { return fmt::format("{:.0f}/s", rate.count); }
    std::string operator()(const std::shared_ptr<Record>& record) const {
        std::vector<std::string> parts;
        for (const Field& field : record->fields())
            if (field.show != Show::json_only && field.show != Show::narrow)
                parts.push_back(field.key + ' ' + human_value(field.value));
        return fmt::format("{}", fmt::join(parts, ", "));
    }
    std::string operator()(const Table& rows) const { return fmt::format("{}", rows.size()); }
};

struct Unit {
    const char* operator()(Bytes) const { return "_bytes"; }
    const char* operator()(Nanoseconds) const { return "_ns"; }
    const char* operator()(BytesPerSecond) const { return "_bytes_per_s"; }
    const char* operator()(PerSecond) const { return "_per_s"; }
    template <typename T> const char* operator()(const T&) const { return ""; }
};

} // namespace

std::string human_bytes(uint64_t bytes) {
    if (bytes == 1) return "1 byte";
    return bytes < 1024 ? fmt::format("{} bytes", bytes) : scale_binary(static_cast<double>(bytes), "B");
}

std::string exact_bytes(uint64_t bytes) {
    return bytes < 1024 ? human_bytes(bytes) : fmt::format("{} ({})", human_bytes(bytes), bytes);
}

std::string human_nanoseconds(double ns) {
    if (ns < 1e3) return fmt::format("{} ns", short_number(ns));
    if (ns < 1e6) return fmt::format("{} us", short_number(ns / 1e3));
    if (ns < 1e9) return fmt::format("{} ms", short_number(ns / 1e6));
    return fmt::format("{} s", short_number(ns / 1e9));
}

void show_gbits() { gbits = true; }

std::string human_value(const Value& value) { return std::visit(Human{}, value); }

std::string json_key(const Field& field) {
    const std::string unit = std::visit(Unit{}, field.value);
    return field.key.ends_with(unit) ? field.key : field.key + unit;
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Record: the output of a command, in one form for people and scripts. A list
// of fields in order; each has a key (snake_case, for JSON), a value, and a
// label (for text: the key with spaces unless another is given).
//
// Quantities have types of their own, so that the JSON key gets its unit
// automatically (`length` of Bytes becomes "length_bytes") and text shows them in
// readable units (16 MiB). Numbers in JSON are never rounded.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kxfer::cli {

class Record;
using Table = std::vector<Record>;

struct None {}; // text "-", JSON null
struct Bytes {
    uint64_t count;
};
struct Nanoseconds {
    double count;
};
struct BytesPerSecond {
    double count;
};
struct PerSecond {
    double count;
};
using Words = std::vector<std::string>; // text "a, b", JSON ["a","b"]
// Sentences: text has one below the other, broken to fit the screen.
struct Lines {
    std::vector<std::string> lines;
};

using Value = std::variant<None, bool, int64_t, uint64_t, double, std::string, Words, Lines, Bytes,
                           Nanoseconds, BytesPerSecond, PerSecond, std::shared_ptr<Record>, Table>;

// Where a field is shown. If a terminal is too narrow for all columns of a table, the columns that
// are `narrow` replace those that are `wide`; `wide_text` is a `wide` one that JSON does not have.
enum class Show : uint8_t { everywhere, json_only, text_only, wide, wide_text, narrow };

struct Field {
    std::string key;
    Value value;
    Show show = Show::everywhere;
    std::string label = {};
};

class Record {
  public:
    Record& add(std::string key, Value value, Show show = Show::everywhere, std::string label = {});
    Record& add(std::string key, const char* text) { return add(std::move(key), Value(std::string(text))); }
    // Integers of any width; the kernel's __u64 is not uint64_t.
    template <std::integral Number>
    requires(!std::same_as<Number, bool>) Record& add(std::string key, Number number,
                                                      Show show = Show::everywhere, std::string label = {}) {
        using Wide = std::conditional_t<std::is_signed_v<Number>, int64_t, uint64_t>;
        return add(std::move(key), Value(static_cast<Wide>(number)), show, std::move(label));
    }
    Record& add(std::string key, Record nested);

    const std::vector<Field>& fields() const { return fields_; }

  private:
    std::vector<Field> fields_;
};

// Sentences below each other, each with its number, for a section of its own.
Record numbered(const Words& sentences);

// Values as people read them: "16 MiB", "1.5 us", "358.4 MiB/s".
std::string human_bytes(uint64_t bytes);
// "16 MiB (16777216)": for cases where "16 MiB" might hide a difference.
std::string exact_bytes(uint64_t bytes);
std::string human_nanoseconds(double ns);
std::string human_value(const Value& value);
// From now on people read bandwidths in Gbit/s (powers of 1000); JSON is not changed.
void show_gbits();
// The field's key in JSON, with the unit.
std::string json_key(const Field& field);

} // namespace kxfer::cli

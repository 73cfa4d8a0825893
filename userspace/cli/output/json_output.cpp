// SPDX-License-Identifier: MIT
//
// Records as JSON: one object or array a line, keys in the order of the fields.

#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/output/output.hpp"
#include "cli/output/streams.hpp"

namespace kxfer::cli {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Record& record);

// JSON knows neither infinities nor NaN.
Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

struct ToJson {
    Json operator()(None) const { return nullptr; }
    Json operator()(const Lines& all) const { return all.lines; }
    Json operator()(Bytes bytes) const { return bytes.count; }
    Json operator()(double number) const { return finite(number); }
    Json operator()(Nanoseconds ns) const { return finite(ns.count); }
    Json operator()(BytesPerSecond rate) const { return finite(rate.count); }
    Json operator()(PerSecond rate) const { return finite(rate.count); }
    Json operator()(const std::shared_ptr<Record>& record) const { return to_json(*record); }
    Json operator()(const Table& rows) const {
        Json array = Json::array();
        for (const Record& row : rows) array.push_back(to_json(row));
        return array;
    }
    template <typename T> Json operator()(const T& value) const { return value; }
};

Json to_json(const Record& record) {
    Json object = Json::object();
    for (const Field& field : record.fields())
        if (field.show != Show::text_only && field.show != Show::wide_text && field.show != Show::narrow)
            object[json_key(field)] = std::visit(ToJson{}, field.value);
    return object;
}

// Names of files may not be UTF-8; output must not fail because of that.
std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

class JsonOutput : public Output {
  public:
    using Output::Output;

    void record(const Record& record) override { write(line_of(to_json(record))); }

    void table(const Table& rows, const std::string&) override { write(line_of(ToJson{}(rows))); }

    void event(const Record& record, const std::string&) override {
        if (quiet()) return;
        Json object = to_json(record);
        if (stamped()) object["time"] = time_text();
        write(line_of(object));
    }

    void sample(const Record& record, const std::string&) override { write(line_of(to_json(record))); }

    void failure(const Failure& failure) override {
        const Error& error = failure.error;
        Json object = {{"error", error.text()},        {"what", error.what}, {"on", error.on},
                       {"why", error.reason()},        {"errno", nullptr},   {"hint", error.hint},
                       {"exit_status", failure.status}};
        if (error.number != 0) object["errno"] = error.name();
        object.update(to_json(failure.details));
        if (stamped()) object["time"] = time_text();
        complain(line_of(object));
    }
};

} // namespace

std::string json_text(const Record& record) { return line_of(to_json(record)); }

std::unique_ptr<Output> make_json_output(const OutputOptions& options) {
    return std::make_unique<JsonOutput>(options);
}

} // namespace kxfer::cli

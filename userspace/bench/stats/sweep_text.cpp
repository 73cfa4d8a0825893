// SPDX-License-Identifier: MIT
#include "bench/stats/sweep_text.hpp"

#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kxfer::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr char result_name[] = "kxfer sweep";
constexpr unsigned format = 1;

template <typename T> Json or_null(const std::optional<T>& value) { return value ? Json(*value) : Json(); }

std::optional<double> number_in(const Json& object, const char* key) {
    const Json& value = object.at(key);
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

// A number that older files do not have.
std::optional<double> newer_number_in(const Json& object, const char* key) {
    return object.contains(key) ? number_in(object, key) : std::nullopt;
}

Json json_of(const Grid& grid) {
    return {{"engine", grid.engines},   {"operation", grid.operations},
            {"size_bytes", grid.sizes}, {"depth", grid.depths},
            {"context", grid.contexts}, {"memory", grid.memories},
            {"signal", grid.signals},   {"poll", grid.polls}};
}

Grid grid_of(const Json& json) {
    Grid grid;
    json.at("engine").get_to(grid.engines);
    json.at("operation").get_to(grid.operations);
    json.at("size_bytes").get_to(grid.sizes);
    json.at("depth").get_to(grid.depths);
    json.at("context").get_to(grid.contexts);
    json.at("memory").get_to(grid.memories);
    json.at("signal").get_to(grid.signals);
    json.at("poll").get_to(grid.polls);
    return grid;
}

Json json_of(const SweepPlan& plan) {
    return {{"rounds", plan.rounds},
            {"operations_per_block", plan.count},
            {"block_ns", std::chrono::nanoseconds(plan.block).count()}};
}

SweepPlan plan_of(const Json& json) {
    const std::chrono::nanoseconds block(json.at("block_ns").get<int64_t>());
    return {json.at("rounds").get<unsigned>(), json.at("operations_per_block").get<uint64_t>(),
            std::chrono::duration_cast<std::chrono::milliseconds>(block)};
}

Json json_of(const Way& way) {
    return {{"engine", way.engine}, {"context", way.context}, {"memory", way.memory}, {"poll", way.poll}};
}

Way way_of(const Json& json) {
    return {json.at("engine").get<std::string>(), json.at("context").get<std::string>(),
            json.at("memory").get<std::string>(), json.at("poll").get<std::string>()};
}

void add_latencies(Json& cell, const Latencies& latencies) {
    if (latencies.count == 0) return;
    cell["latency_samples"] = latencies.count;
    cell["latency_min_ns"] = latencies.min_ns;
    cell["latency_mean_ns"] = latencies.mean_ns;
    cell["latency_p50_ns"] = or_null(latencies.p50_ns);
    cell["latency_p90_ns"] = or_null(latencies.p90_ns);
    cell["latency_p99_ns"] = or_null(latencies.p99_ns);
    cell["latency_p99_9_ns"] = or_null(latencies.p99_9_ns);
    cell["latency_p99_99_ns"] = or_null(latencies.p99_99_ns);
    cell["latency_max_ns"] = latencies.max_ns;
    cell["histogram_ns"] = latencies.buckets;
}

Latencies latencies_of(const Json& cell) {
    Latencies latencies;
    if (!cell.contains("latency_samples")) return latencies;
    cell.at("latency_samples").get_to(latencies.count);
    cell.at("latency_min_ns").get_to(latencies.min_ns);
    cell.at("latency_mean_ns").get_to(latencies.mean_ns);
    cell.at("latency_max_ns").get_to(latencies.max_ns);
    latencies.p50_ns = number_in(cell, "latency_p50_ns");
    latencies.p90_ns = number_in(cell, "latency_p90_ns");
    latencies.p99_ns = number_in(cell, "latency_p99_ns");
    latencies.p99_9_ns = number_in(cell, "latency_p99_9_ns");
    latencies.p99_99_ns = newer_number_in(cell, "latency_p99_99_ns");
    cell.at("histogram_ns").get_to(latencies.buckets);
    return latencies;
}

Json json_of(const SweepCell& cell, uint64_t size) {
    Json json = json_of(cell.way);
    json["verified"] = cell.verified;
    json["operations"] = cell.operations;
    json["median_ns"] = cell.ns_per_operation();
    json["rate_per_s"] = cell.operations_per_second();
    json["bandwidth_bytes_per_s"] = cell.operations_per_second() * static_cast<double>(size);
    json["syscalls_per_operation"] = or_null(cell.syscalls);
    json["cpu_per_operation_ns"] = or_null(cell.cpu_ns);
    json["switches_per_operation"] = or_null(cell.switches);
    json["local_registration"] = cell.local_registration;
    json["remote_registration"] = cell.remote_registration;
    json["write_success"] = cell.write_success;
    add_latencies(json, cell.latencies);
    json["blocks_ns"] = cell.blocks_ns;
    return json;
}

SweepCell cell_of(const Json& json) {
    return {way_of(json),
            json.at("verified").get<bool>(),
            json.at("operations").get<uint64_t>(),
            json.at("blocks_ns").get<std::vector<double>>(),
            number_in(json, "syscalls_per_operation"),
            latencies_of(json),
            json.value("local_registration", ""),
            json.value("remote_registration", ""),
            json.value("write_success", ""),
            newer_number_in(json, "cpu_per_operation_ns"),
            newer_number_in(json, "switches_per_operation")};
}

SweepRow row_of(const Json& json) {
    const auto name = json.at("operation").get<std::string>();
    const auto operation = operation_from(name);
    if (!operation) throw std::domain_error(fmt::format("'{}' is no operation", name));
    SweepRow row;
    row.work = {*operation, json.at("size_bytes").get<uint64_t>(), json.at("depth").get<unsigned>(),
                json.at("signal").get<std::string>()};
    row.batch = json.at("batch").get<unsigned>();
    row.seconds = json.at("elapsed_ns").get<double>() / 1e9;
    row.obstacle = json.at("obstacle").get<std::string>();
    row.uncounted = json.at("uncounted").get<std::string>();
    for (const auto& cell : json.at("cells")) row.cells.push_back(cell_of(cell));
    for (const auto& refused : json.at("refused"))
        row.refusals.push_back({way_of(refused), refused.at("reason").get<std::string>()});
    return row;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Later code relies on values in each axis.
void check(const Grid& grid) {
    for (const auto* axis :
         {&grid.engines, &grid.operations, &grid.contexts, &grid.memories, &grid.signals, &grid.polls})
        if (axis->empty()) throw std::domain_error("an axis has no values");
    if (grid.sizes.empty() || grid.depths.empty()) throw std::domain_error("an axis has no values");
    for (const auto& name : grid.operations)
        if (!operation_from(name)) throw std::domain_error(fmt::format("'{}' is no operation", name));
}

SweepResult head_of(const Json& json) {
    SweepResult result;
    if (json.value("result", Json()) != result_name)
        throw std::domain_error(fmt::format("it is no result of {}", result_name));
    if (json.value("format", Json()) != format)
        throw std::domain_error(
            fmt::format("its format is {}, this is {}", json.value("format", Json()).dump(), format));
    for (const auto& [key, value] : json.at("facts").items()) result.facts.emplace_back(key, text_of(value));
    result.grid = grid_of(json.at("grid"));
    result.plan = plan_of(json.at("plan"));
    check(result.grid);
    return result;
}

// Names of files may not be UTF-8; writing a result must not fail because of that.
std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

// The conditions to compare: each fact, each axis, and the plan.
std::map<std::string, std::string> conditions_of(const SweepResult& result) {
    std::map<std::string, std::string> all(result.facts.begin(), result.facts.end());
    for (const auto& json : {json_of(result.grid), json_of(result.plan)})
        for (const auto& [key, value] : json.items()) all["grid " + key] = value.dump();
    return all;
}

std::string csv_number(const std::optional<double>& number) {
    return number ? fmt::format("{:.10g}", *number) : "";
}

std::string csv_head(const SweepRow& row, const Way& way) {
    return fmt::format("{},{},{},{},{},{},{},{},{}", operation_name(row.work.operation), row.work.size,
                       row.work.depth, row.batch, csv_field(row.work.signal), csv_field(way.engine),
                       csv_field(way.context), csv_field(way.memory), csv_field(way.poll));
}

std::string csv_line(const SweepRow& row, const SweepCell& cell) {
    const auto& latencies = cell.latencies;
    const double rate = cell.operations_per_second();
    const bool timed = latencies.count != 0;
    const std::vector<std::string> figures = {
        csv_number(cell.ns_per_operation()),
        csv_number(rate),
        csv_number(rate * static_cast<double>(row.work.size)),
        timed ? csv_number(latencies.min_ns) : "",
        timed ? csv_number(latencies.mean_ns) : "",
        csv_number(latencies.p50_ns),
        csv_number(latencies.p90_ns),
        csv_number(latencies.p99_ns),
        csv_number(latencies.p99_9_ns),
        csv_number(latencies.p99_99_ns),
        timed ? csv_number(latencies.max_ns) : "",
        csv_number(cell.syscalls),
        csv_number(cell.cpu_ns),
        csv_number(cell.switches),
        csv_field(cell.local_registration),
        csv_field(cell.remote_registration),
        csv_field(cell.write_success),
    };
    return fmt::format("{},{},{},{},{},\r\n", csv_head(row, cell.way), cell.verified ? "yes" : "no",
                       cell.operations, fmt::join(figures, ","), csv_field(row.obstacle));
}

} // namespace

std::string head_line(const std::string& facts, const Grid& grid, const SweepPlan& plan) {
    return line_of({{"result", result_name},
                    {"format", format},
                    {"facts", Json::parse(facts)},
                    {"grid", json_of(grid)},
                    {"plan", json_of(plan)}});
}

std::string row_line(const SweepRow& row) {
    Json cells = Json::array(), refused = Json::array();
    for (const auto& cell : row.cells) cells.push_back(json_of(cell, row.work.size));
    for (const auto& refusal : row.refusals) {
        Json json = json_of(refusal.way);
        json["reason"] = refusal.reason;
        refused.push_back(std::move(json));
    }
    return line_of({{"operation", operation_name(row.work.operation)},
                    {"size_bytes", row.work.size},
                    {"depth", row.work.depth},
                    {"batch", row.batch},
                    {"signal", row.work.signal},
                    {"elapsed_ns", row.seconds * 1e9},
                    {"obstacle", row.obstacle},
                    {"uncounted", row.uncounted},
                    {"cells", cells},
                    {"refused", refused}});
}

tl::expected<ParsedSweep, std::string> parse_sweep(const std::string& text) {
    ParsedSweep parsed;
    unsigned number = 0;

    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        const Json json = Json::parse(text.begin() + static_cast<ptrdiff_t>(at),
                                      text.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
        number++;
        if (json.is_discarded() && number > 1 && end + 1 == text.size()) break;
        try {
            if (!json.is_object()) throw std::domain_error("it is no JSON object");
            if (number == 1)
                parsed.result = head_of(json);
            else if (auto row = row_of(json); !parsed.result.find(row.work))
                parsed.result.rows.push_back(std::move(row));
        } catch (const std::exception& error) {
            return tl::unexpected(fmt::format("line {}: {}", number, error.what()));
        }
        parsed.length = end + 1;
    }
    if (number == 0) return tl::unexpected(std::string("it has no whole line"));
    return parsed;
}

std::vector<std::string> find_differences(const SweepResult& file, const SweepResult& now) {
    const auto before = conditions_of(file), after = conditions_of(now);
    std::vector<std::string> differences;
    std::set<std::string> keys;

    for (const auto* all : {&before, &after})
        for (const auto& entry : *all) keys.insert(entry.first);
    for (const auto& key : keys) {
        const std::string was = before.contains(key) ? before.at(key) : "nothing";
        const std::string is = after.contains(key) ? after.at(key) : "nothing";
        if (was != is) differences.push_back(fmt::format("{}: {} in the file, {} now", key, was, is));
    }
    return differences;
}

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

std::string csv_text(const SweepResult& result) {
    std::string text =
        "operation,size_bytes,depth,batch,signal,engine,context,memory,poll,verified,operations,median_ns,"
        "rate_per_s,bandwidth_bytes_per_s,latency_min_ns,latency_mean_ns,latency_p50_ns,latency_p90_ns,"
        "latency_p99_ns,latency_p99_9_ns,latency_p99_99_ns,latency_max_ns,syscalls_per_operation,"
        "cpu_per_operation_ns,switches_per_operation,local_registration,remote_registration,write_success,"
        "obstacle,refused\r\n";
    constexpr char nothing[] = ",,,,,,,,,,,,,,,,,,,,,";

    for (const auto& row : result.rows) {
        for (const auto& cell : row.cells) text += csv_line(row, cell);
        for (const auto& refusal : row.refusals)
            text += csv_head(row, refusal.way) + nothing + csv_field(refusal.reason) + "\r\n";
    }
    return text;
}

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
#include "cli/measure/sweep_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/measure/plot.hpp"
#include "cli/measure/svg.hpp"
#include "cli/measure/sweep_summary.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

namespace {

using bench::SweepCell;
using bench::SweepResult;
using bench::SweepRow;

// Okabe and Ito's colours, which most eyes can tell apart; dashes and markers help the others.
constexpr char style[] = R"css(
:root { color-scheme: light dark; --page: #fcfcfb; --ink: #1b1b1a; --soft: #5c5b57; --grid: #e2e1dc;
  --heat: #1f6fb5; --s0: #0072b2; --s1: #c44e00; --s2: #00795a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #191918; --ink: #f2f1ed; --soft: #b3b1a9; --grid: #383733;
    --heat: #3f8fd8; --s0: #5db5ee; --s1: #f0963c; --s2: #35c79c; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 76rem; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; } p { max-width: 60rem; margin: .4rem 0; }
.soft, caption { color: var(--soft); } ul { margin: .2rem 0; padding-left: 1.3rem; } li { max-width: 62rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr)); gap: .1rem 1.5rem; margin: .6rem 0; }
dl div { display: flex; gap: .6rem; } dt { color: var(--soft); flex: 0 0 9.5rem; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0; break-inside: avoid; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem 1.6rem; align-items: flex-start; }
svg { max-width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .tick { fill: var(--soft); } svg .title { font-size: 13px; font-weight: 600; }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); } .whisker { stroke-width: 1.2; fill: none; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .mark { stroke: var(--page); stroke-width: 1; }
.line.s0, .whisker.s0 { stroke: var(--s0); } .mark.s0 { fill: var(--s0); }
.line.s1, .whisker.s1 { stroke: var(--s1); } .mark.s1 { fill: var(--s1); }
.line.s2, .whisker.s2 { stroke: var(--s2); } .mark.s2 { fill: var(--s2); }
.line.s1 { stroke-dasharray: 7 4; } .line.s2 { stroke-dasharray: 2 3; }
.heat { fill: var(--heat); stroke: var(--grid); } .best { fill: none; stroke: var(--ink); stroke-width: 1.8; }
.strong { font-weight: 700; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .7rem 0; font-size: .86rem; }
caption { text-align: left; padding: .2rem 0; } th { font-weight: 600; text-align: left; }
th, td { padding: .14rem .7rem .14rem 0; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td.why { white-space: normal; }
@media print {
  :root { color-scheme: light; --page: #fff; --ink: #000; --soft: #444; --grid: #ccc;
    --heat: #1f6fb5; --s0: #0072b2; --s1: #c44e00; --s2: #00795a; }
  @page { margin: 14mm; }
  body { margin: 0; padding: 0; max-width: none; font-size: 9.5pt; } .plots { gap: 4mm; }
  .plots figure { width: 48%; } figure.heat-map { width: 48%; } h2, h3, h2 + p { break-after: avoid; }
  rect { print-color-adjust: exact; } .wide { overflow: visible; } table { font-size: 7.5pt; }
  th, td { padding-right: 2mm; } thead { display: table-header-group; } tr { break-inside: avoid; } }
)css";

std::string element(const std::string& name, const std::string& text) {
    return fmt::format("<{0}>{1}</{0}>\n", name, escaped(text));
}

std::string figure(const std::string& svg, const char* kind = "plot") {
    return fmt::format("<figure class=\"{}\">\n{}</figure>\n", kind, svg);
}

// A table of cells that are escaped already; columns from `numbers_from` on are right-aligned.
class HtmlTable {
  public:
    HtmlTable(const std::string& caption, const std::vector<std::string>& heads, size_t numbers_from)
        : numbers_from_(numbers_from) {
        text_ =
            fmt::format("<div class=\"wide\"><table>\n<caption>{}</caption>\n<thead><tr>", escaped(caption));
        for (size_t i = 0; i < heads.size(); i++) text_ += cell("th", i, heads[i]);
        text_ += "</tr></thead>\n<tbody>\n";
    }

    void row(const std::vector<std::string>& cells) {
        text_ += "<tr>";
        for (size_t i = 0; i < cells.size(); i++) text_ += cell("td", i, cells[i]);
        text_ += "</tr>\n";
        nr_rows_++;
    }

    std::string finish() && {
        return nr_rows_ ? std::move(text_) + "</tbody></table></div>\n" : std::string();
    }

  private:
    std::string cell(const char* name, size_t column, const std::string& text) const {
        return fmt::format("<{0}{1}>{2}</{0}>", name, column >= numbers_from_ ? " class=\"n\"" : "",
                           escaped(text));
    }

    size_t numbers_from_;
    size_t nr_rows_ = 0;
    std::string text_;
};

unsigned style_of(const std::string& engine) { return engine == "verbs" ? 0 : engine == "kverbs" ? 1 : 2; }

std::string time_text(const std::optional<double>& ns) { return ns ? short_time(*ns) : "-"; }

std::string rate_text(const SweepCell& cell) { return fmt::format("{:.0f}", cell.operations_per_second()); }

double mib_per_second(const SweepRow& row, const SweepCell& cell) {
    return cell.operations_per_second() * static_cast<double>(row.work.size) / (1 << 20);
}

std::string calls_text(const SweepCell& cell) {
    return cell.syscalls ? fmt::format("{:.3g}", *cell.syscalls) : "-";
}

// "1.34 [1.30, 1.38]", with a note if it is not significant; or why there is no ratio.
std::string ratio_text(const Standing& standing) {
    if (!standing.judged) return "not judged";
    if (standing.is_best) return "fastest";
    if (!standing.to_best) return "-";
    const auto& ratio = *standing.to_best;
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]{}", ratio.value, ratio.low, ratio.high,
                       ratio.significant() ? "" : " not significant");
}

std::string label_of(std::string key) {
    if (key.ends_with("_bytes")) key.resize(key.size() - 6);
    std::ranges::replace(key, '_', ' ');
    return key;
}

std::string value_of(const std::string& key, const std::string& value) {
    if (value.empty() || value == "null") return "-";
    return key.ends_with("_bytes") ? value + " bytes" : value;
}

std::string list_of(const SweepResult& result) {
    const auto& grid = result.grid;
    std::string text = "<dl>\n";
    const auto add = [&](const std::string& name, const std::string& value) {
        text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
    };
    for (const auto& [key, value] : result.facts) add(label_of(key), value_of(key, value));
    add("rounds", fmt::format("{} of A B C C B A", result.plan.rounds));
    add("a block",
        fmt::format("at most {} ms and {} operations", result.plan.block.count(), result.plan.count));
    add("works", fmt::format("{} of {}", result.rows.size(), bench::works_of(grid).size()));
    add("contexts", fmt::format("{}", fmt::join(grid.contexts, ", ")));
    add("registrations", fmt::format("{}", fmt::join(grid.memories, ", ")));
    return text + "</dl>\n";
}

std::string words_of(const SweepResult& result) {
    std::string text = "<h2>What came out</h2>\n";
    for (const auto& [title, answers] : summary_of(result)) {
        text += element("h3", title) + "<ul>\n";
        for (const auto& [kind, sentences] : answers)
            text += element("li", fmt::format("{}: {}.", kind, fmt::join(sentences, "; ")));
        text += "</ul>\n";
    }
    for (const auto& note : notes_of(result))
        text += fmt::format("<p class=\"soft\">{}</p>\n", escaped(note));
    return text;
}

std::vector<bench::Way> usual_ways(const SweepResult& result) {
    std::vector<bench::Way> ways;
    for (const auto& engine : result.grid.engines) ways.push_back(bench::usual_way(result.grid, engine));
    return ways;
}

// One line for each engine, with a point by `value` for each cell.
LinePlot engines_plot(const SweepResult& result, const std::string& kind, const std::string& title,
                      const std::function<LinePoint(const SweepRow&, const SweepCell&)>& value) {
    LinePlot plot{title, {}, [](double size) { return short_bytes(static_cast<uint64_t>(size)); }, {}};
    for (const auto& way : usual_ways(result)) {
        Line line{way.engine, style_of(way.engine), {}};
        for (const auto* row : rows_of(result, kind))
            if (const auto* cell = row->find(way); cell && cell->ns_per_operation() > 0)
                line.points.push_back(value(*row, *cell));
        plot.lines.push_back(std::move(line));
    }
    return plot;
}

bool is_single(const SweepResult& result, const std::string& kind) {
    return rows_of(result, kind).front()->work.depth == 1;
}

std::string latency_plot(const SweepResult& result, const std::string& kind) {
    auto plot = engines_plot(result, kind, kind + ": time an operation",
                             [](const SweepRow& row, const SweepCell& cell) {
                                 return LinePoint{static_cast<double>(row.work.size), cell.ns_per_operation(),
                                                  cell.latencies.p99_ns};
                             });
    plot.y_text = human_nanoseconds;
    return svg_of(plot);
}

std::string bandwidth_plot(const SweepResult& result, const std::string& kind) {
    auto plot =
        engines_plot(result, kind, kind + ": bandwidth", [](const SweepRow& row, const SweepCell& cell) {
            return LinePoint{static_cast<double>(row.work.size), mib_per_second(row, cell), {}};
        });
    plot.y_text = [](double rate) { return fmt::format("{:g} MiB/s", rate); };
    return svg_of(plot);
}

std::string engines_table(const SweepResult& result, const std::string& kind) {
    const bool single = is_single(result, kind);
    std::vector<std::string> heads = {"size", "engine", "median"};
    if (single) heads.insert(heads.end(), {"p50", "p90", "p99", "p99.9"});
    heads.insert(heads.end(), {"operations/s", "MiB/s", "calls", "times the fastest's time [95 %]"});
    HtmlTable table(kind + ": the engines", heads, 2);
    const auto ways = usual_ways(result);
    for (const auto* row : rows_of(result, kind))
        for (const auto& standing : standings_of(*row, ways)) {
            if (!standing.cell) continue;
            const auto& cell = *standing.cell;
            std::vector<std::string> texts = {short_bytes(row->work.size), cell.way.name(),
                                              short_time(cell.ns_per_operation())};
            if (single)
                for (const auto& ns : {cell.latencies.p50_ns, cell.latencies.p90_ns, cell.latencies.p99_ns,
                                       cell.latencies.p99_9_ns})
                    texts.push_back(time_text(ns));
            texts.insert(texts.end(), {rate_text(cell), fmt::format("{:.1f}", mib_per_second(*row, cell)),
                                       calls_text(cell), ratio_text(standing)});
            table.row(texts);
        }
    return std::move(table).finish();
}

std::string engines_section(const SweepResult& result, bool single) {
    std::string plots, tables;
    for (const auto& kind : kinds_of(result)) {
        if (is_single(result, kind) != single) continue;
        plots += figure(single ? latency_plot(result, kind) : bandwidth_plot(result, kind));
        tables += engines_table(result, kind);
    }
    if (plots.empty()) return "";
    return fmt::format(
        "<h2>{}</h2>\n<p class=\"soft\">{}</p>\n<div class=\"plots\">\n{}</div>\n{}",
        single ? "Latency by size" : "Bandwidth by size",
        single ? "Median over the blocks; a whisker goes up to p99, where there are enough operations "
                 "to tell it. Contexts and registration are the first of the grid."
               : "Many operations in flight. Contexts and registration are the first of the grid.",
        plots, tables);
}

HeatMap heat_map(const SweepResult& result, const SweepRow& row) {
    const auto& grid = result.grid;
    HeatMap map{short_bytes(row.work.size), grid.memories, grid.contexts, {}};
    std::vector<bench::Way> ways;
    for (const auto& memory : grid.memories)
        for (const auto& context : grid.contexts)
            ways.push_back(bench::way_of("kverbs", context, memory, ""));
    const auto standings = standings_of(row, ways);
    for (size_t r = 0; r < grid.memories.size(); r++) {
        std::vector<HeatCell> cells;
        for (size_t c = 0; c < grid.contexts.size(); c++) {
            const auto& standing = standings[r * grid.contexts.size() + c];
            if (!standing.cell) {
                cells.push_back({"", 1, "refused", false});
                continue;
            }
            const double ratio = standing.to_best ? standing.to_best->value : 1;
            cells.push_back({short_time(standing.cell->ns_per_operation()), ratio,
                             !standing.judged   ? "not judged"
                             : standing.is_best ? "fastest"
                                                : fmt::format("{:.2f} times", ratio),
                             standing.ties()});
        }
        map.cells.push_back(std::move(cells));
    }
    return map;
}

std::string heat_section(const SweepResult& result) {
    const auto& grid = result.grid;
    if (std::ranges::find(grid.engines, "kverbs") == grid.engines.end()) return "";
    std::string text =
        "<h2>Completion context and registration</h2>\n<p class=\"soft\">Engine kverbs: median time an "
        "operation "
        "by completion context (across) and registration of local memory (down: lkey, the PD's "
        "local_dma_lkey; mr, registered once; mr-each, registered for each operation; rw, by rdma_rw); below "
        "it the ratio to "
        "the fastest, over the rounds. The stronger the colour, the slower, up to four times the fastest. "
        "Framed: the fastest, and what does not differ from it significantly. What the machine spoiled is "
        "not judged, and has neither colour nor frame.</p>\n";
    for (const auto& kind : kinds_of(result)) {
        text += element("h3", kind) + "<div class=\"plots\">\n";
        for (const auto* row : rows_of(result, kind))
            text += figure(svg_of(heat_map(result, *row)), "heat-map");
        text += "</div>\n";
    }
    return text;
}

std::string distribution_section(const SweepResult& result) {
    std::string plots;
    for (const auto& kind : kinds_of(result)) {
        if (!is_single(result, kind)) continue;
        for (const auto* row : rows_of(result, kind)) {
            DistributionPlot plot{
                fmt::format("{} of {}: share of the operations", kind, short_bytes(row->work.size)), {}};
            for (const auto& way : usual_ways(result))
                if (const auto* cell = row->find(way); cell && cell->latencies.count)
                    plot.distributions.push_back(
                        {way.engine, style_of(way.engine), cell->latencies.count, cell->latencies.buckets});
            if (!plot.distributions.empty()) plots += figure(svg_of(plot));
        }
    }
    if (plots.empty()) return "";
    return "<h2>Distribution of latencies</h2>\n<p class=\"soft\">Of operations one at a time; steps are a "
           "sixteenth of a doubling wide, axes leave out the fastest and the slowest hundredth. A marker is "
           "at "
           "each engine's peak.</p>\n<div class=\"plots\">\n" +
           plots + "</div>\n";
}

std::string cells_section(const SweepResult& result) {
    std::string text = "<h2>All cells</h2>\n";
    const auto ways = bench::ways_of(result.grid);
    for (const auto& kind : kinds_of(result)) {
        HtmlTable table(kind,
                        {"size", "way", "median", "p99", "operations/s", "MiB/s", "calls", "operations",
                         "verified", "times the fastest's time [95 %]"},
                        2);
        for (const auto* row : rows_of(result, kind))
            for (const auto& standing : standings_of(*row, ways)) {
                if (!standing.cell) continue;
                const auto& cell = *standing.cell;
                table.row({short_bytes(row->work.size), cell.way.name(), short_time(cell.ns_per_operation()),
                           time_text(cell.latencies.p99_ns), rate_text(cell),
                           fmt::format("{:.1f}", mib_per_second(*row, cell)), calls_text(cell),
                           fmt::format("{}", cell.operations), cell.verified ? "yes" : "no",
                           ratio_text(standing)});
            }
        text += std::move(table).finish();
    }
    return text;
}

// Each reason once, with the works it applies to.
std::string refusals_section(const SweepResult& result) {
    std::map<std::string, std::vector<std::string>> works;
    for (const auto& row : result.rows)
        for (const auto& [way, reason] : row.refusals)
            works[way.name() + ": " + reason].push_back(
                fmt::format("{} of {}", row.work.kind(), short_bytes(row.work.size)));
    for (const auto& row : result.rows)
        if (!row.obstacle.empty())
            works["not judged: " + row.obstacle].push_back(
                fmt::format("{} of {}", row.work.kind(), short_bytes(row.work.size)));
    if (works.empty()) return "";
    std::string text = "<h2>Refused, or not judged</h2>\n<ul>\n";
    for (const auto& [reason, names] : works)
        text += element("li", fmt::format("{} ({})", reason, fmt::join(names, "; ")));
    return text + "</ul>\n";
}

std::string fact(const SweepResult& result, const std::string& key) {
    for (const auto& [name, value] : result.facts)
        if (name == key) return value;
    return "?";
}

} // namespace

std::string html_of(const SweepResult& result) {
    const std::string title =
        fmt::format("kxfer sweep: {} on Linux {}", fact(result, "driver"), fact(result, "kernel"));
    return fmt::format("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
                       "<meta charset=\"utf-8\"/>\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                       "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
                       escaped(title), style) +
           list_of(result) + words_of(result) + engines_section(result, true) +
           engines_section(result, false) + heat_section(result) + distribution_section(result) +
           cells_section(result) + refusals_section(result) + "</body>\n</html>\n";
}

} // namespace kxfer::cli

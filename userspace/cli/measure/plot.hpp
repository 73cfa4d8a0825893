// SPDX-License-Identifier: MIT
//
// The plots of a report, as drawings. Both axes of line plots are logarithmic.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kxfer::cli {

struct LinePoint {
    double x = 0, y = 0;
    std::optional<double> high; // upper end of a whisker
};

struct Line {
    std::string name;
    unsigned style = 0; // colour, dashes and marker
    std::vector<LinePoint> points;
};

struct LinePlot {
    std::string title;
    std::vector<Line> lines; // values above 0; others are left out
    std::function<std::string(double)> x_text, y_text;
};

struct HeatCell {
    std::string text;     // the figure; empty: there is none
    double ratio = 1;     // to the best; 4 and more has the strongest colour
    std::string remark;   // text below the figure
    bool is_best = false; // the best, or not significantly worse
};

struct HeatMap {
    std::string title;
    std::vector<std::string> rows, columns;
    std::vector<std::vector<HeatCell>> cells;
};

struct Distribution {
    std::string name;
    unsigned style = 0;
    uint64_t count = 0;
    std::vector<std::pair<uint64_t, uint64_t>> buckets; // see bench::Latencies
};

struct DistributionPlot {
    std::string title;
    std::vector<Distribution> distributions;
};

std::string svg_of(const LinePlot& plot);
std::string svg_of(const HeatMap& map);
// Share of the operations in each sixteenth of a doubling of time, in the range that has 99 % of
// each distribution.
std::string svg_of(const DistributionPlot& plot);

// 1, 2 and 5 times powers of ten from the one below low to the one above high.
std::vector<double> ticks_between(double low, double high);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/measure/plot.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "cli/measure/svg.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

namespace {

constexpr double width = 560, height = 330;
constexpr double left = 78, right = 84, top = 30, bottom = 34; // around the plot
constexpr double label_height = 15;

// The place of a value on a logarithmic axis.
class Scale {
  public:
    Scale(double low, double high, double at_low, double at_high)
        : low_(std::log(low)), span_(std::log(high) - low_), at_low_(at_low), at_high_(at_high) {}
    double operator()(double value) const {
        const double part = span_ > 0 ? (std::log(value) - low_) / span_ : 0.5;
        return at_low_ + part * (at_high_ - at_low_);
    }

  private:
    double low_, span_, at_low_, at_high_;
};

Scale across(double low, double high) { return {low, high, left, width - right}; }
Scale upwards(double low, double high) { return {low, high, height - bottom, top}; }

void frame(Svg& svg, const std::string& title) {
    svg.text({left, 16}, Anchor::start, "title", title);
    svg.line({left, height - bottom}, {width - right, height - bottom}, "axis");
}

void y_axis(Svg& svg, const Scale& y, const std::vector<double>& ticks,
            const std::function<std::string(double)>& text) {
    for (const double tick : ticks) {
        svg.line({left, y(tick)}, {width - right, y(tick)}, "grid");
        svg.text({left - 8, y(tick) + 4}, Anchor::end, "tick", text(tick));
    }
}

struct Label {
    double y = 0;
    unsigned style = 0;
    std::string name;
};

// Names at the right ends of lines, moved apart where they would overlap.
void draw_labels(Svg& svg, std::vector<Label> labels) {
    std::ranges::sort(labels, {}, &Label::y);
    for (size_t i = 1; i < labels.size(); i++)
        labels[i].y = std::max(labels[i].y, labels[i - 1].y + label_height);
    const double excess = labels.empty() ? 0 : labels.back().y - (height - bottom);
    for (auto& label : labels) {
        label.y -= std::max(excess, 0.0);
        svg.marker(label.style, {width - right + 18, label.y}, fmt::format("mark s{}", label.style));
        svg.text({width - right + 28, label.y + 4}, Anchor::start, "name", label.name);
    }
}

void draw_line(Svg& svg, const Line& line, const Scale& x, const Scale& y) {
    const std::string style = fmt::format("s{}", line.style);
    // Whiskers of several series are drawn side by side.
    const double aside = (static_cast<double>(line.style) - 1) * 3;
    std::vector<Point> points;
    for (const auto& point : line.points) {
        points.push_back({x(point.x), y(point.y)});
        if (!point.high) continue;
        const double at = x(point.x) + aside, end = y(*point.high);
        svg.line({at, y(point.y)}, {at, end}, "whisker " + style);
        svg.line({at - 3, end}, {at + 3, end}, "whisker " + style);
    }
    svg.polyline(points, "line " + style);
    for (const auto& point : points) svg.marker(line.style, point, "mark " + style);
}

// The range of buckets without the hundredth of the values at either end.
std::pair<double, double> middle_of(const Distribution& distribution) {
    const double tail = static_cast<double>(distribution.count) / 100;
    double low = 0, high = 0, seen = 0;
    for (const auto& [first, count] : distribution.buckets) {
        seen += static_cast<double>(count);
        if (low == 0 && seen > tail) low = static_cast<double>(first);
        if (high == 0 && seen >= static_cast<double>(distribution.count) - tail)
            high = static_cast<double>(first);
    }
    return {std::max(low, 1.0), std::max(high, 1.0)};
}

double bucket_end(uint64_t first) {
    const int width = std::bit_width(first);
    return static_cast<double>(first + (width > 5 ? uint64_t{1} << (width - 5) : 1));
}

double share_of(const Distribution& distribution, uint64_t count) {
    return 100 * static_cast<double>(count) / static_cast<double>(distribution.count);
}

// The outline of the distribution's columns, down to zero where a bucket is empty.
std::vector<Point> outline(const Distribution& distribution, const Scale& x, double low, double high,
                           const std::function<double(double)>& y) {
    std::vector<Point> points = {{x(low), y(0)}};
    double end = low;
    for (const auto& [first, count] : distribution.buckets) {
        const auto begin = static_cast<double>(first);
        if (begin < low || begin >= high) continue;
        if (begin > end) points.insert(points.end(), {{x(end), y(0)}, {x(begin), y(0)}});
        end = std::min(bucket_end(first), high);
        const double share = y(share_of(distribution, count));
        points.insert(points.end(), {{x(begin), share}, {x(end), share}});
    }
    points.insert(points.end(), {{x(end), y(0)}, {x(high), y(0)}});
    return points;
}

} // namespace

std::vector<double> ticks_between(double low, double high) {
    std::vector<double> ticks;
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high * 10; decade *= 10)
        for (const double step : {1, 2, 5}) ticks.push_back(decade * step);
    while (ticks.size() > 2 && ticks[1] <= low) ticks.erase(ticks.begin());
    while (ticks.size() > 2 && ticks[ticks.size() - 2] >= high) ticks.pop_back();
    return ticks;
}

// A file may have values that are not above zero.
static LinePlot above_zero(LinePlot plot) {
    for (auto& line : plot.lines) {
        std::erase_if(line.points, [](const LinePoint& point) { return !(point.x > 0) || !(point.y > 0); });
        for (auto& point : line.points)
            if (point.high && !(*point.high > 0)) point.high.reset();
    }
    return plot;
}

std::string svg_of(const LinePlot& all) {
    const LinePlot plot = above_zero(all);
    std::vector<double> xs, ys;
    for (const auto& line : plot.lines)
        for (const auto& point : line.points) {
            xs.push_back(point.x);
            ys.insert(ys.end(), {point.y, point.high.value_or(point.y)});
        }
    Svg svg(width, height, plot.title);
    frame(svg, plot.title);
    if (xs.empty()) return std::move(svg).finish();
    std::ranges::sort(xs);
    xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
    auto ticks = ticks_between(std::ranges::min(ys), std::ranges::max(ys));
    const Scale x = across(xs.front(), xs.back()), y = upwards(ticks.front(), ticks.back());
    if (ticks.size() > 9)
        std::erase_if(ticks, [](double t) { return std::fmod(std::log10(t) + 1e-9, 1) > 1e-6; });
    y_axis(svg, y, ticks, plot.y_text);
    for (const double size : xs)
        svg.text({x(size), height - bottom + 17}, Anchor::middle, "tick", plot.x_text(size));
    std::vector<Label> labels;
    for (const auto& line : plot.lines) {
        if (line.points.empty()) continue;
        draw_line(svg, line, x, y);
        labels.push_back({y(line.points.back().y), line.style, line.name});
    }
    draw_labels(svg, labels);
    return std::move(svg).finish();
}

std::string svg_of(const HeatMap& map) {
    constexpr double cell_width = 92, cell_height = 40, head = 78, above = 46;
    const auto nr_columns = static_cast<double>(map.columns.size());
    const auto nr_rows = static_cast<double>(map.rows.size());
    Svg svg(head + nr_columns * cell_width + 4, above + nr_rows * cell_height + 4, map.title);
    svg.text({2, 16}, Anchor::start, "title", map.title);
    for (size_t i = 0; i < map.columns.size(); i++)
        svg.text({head + (static_cast<double>(i) + 0.5) * cell_width, above - 8}, Anchor::middle, "tick",
                 map.columns[i]);
    for (size_t r = 0; r < map.rows.size(); r++) {
        const double y = above + static_cast<double>(r) * cell_height;
        svg.text({head - 8, y + cell_height / 2 + 4}, Anchor::end, "tick", map.rows[r]);
        for (size_t c = 0; c < map.columns.size(); c++) {
            const auto& cell = map.cells[r][c];
            const double x = head + static_cast<double>(c) * cell_width;
            const double dark = std::clamp(std::log2(std::max(cell.ratio, 1.0)) / 2, 0.0, 1.0);
            svg.rectangle({x + 1, y + 1}, cell_width - 2, cell_height - 2,
                          cell.text.empty() ? "heat none" : "heat",
                          cell.text.empty() ? 0 : 0.04 + 0.6 * dark);
            if (cell.is_best) svg.rectangle({x + 2.5, y + 2.5}, cell_width - 5, cell_height - 5, "best", 0);
            svg.text({x + cell_width / 2, y + 17}, Anchor::middle, cell.is_best ? "figure strong" : "figure",
                     cell.text.empty() ? "-" : cell.text);
            svg.text({x + cell_width / 2, y + 32}, Anchor::middle, "tick", cell.remark);
        }
    }
    return std::move(svg).finish();
}

std::string svg_of(const DistributionPlot& plot) {
    Svg svg(width, height, plot.title);
    frame(svg, plot.title);
    double low = INFINITY, high = 0, most = 0;
    for (const auto& distribution : plot.distributions) {
        if (distribution.buckets.empty()) continue;
        const auto [begin, end] = middle_of(distribution);
        low = std::min(low, begin);
        high = std::max(high, bucket_end(static_cast<uint64_t>(end)));
        for (const auto& bucket : distribution.buckets)
            most = std::max(most, share_of(distribution, bucket.second));
    }
    if (high == 0) return std::move(svg).finish();
    low *= 0.95;
    high *= 1.05;
    const double step = most > 50 ? 20 : most > 20 ? 10 : most > 8 ? 5 : 2;
    const double full = std::ceil(most / step) * step;
    const auto y = [&](double share) { return height - bottom - share / full * (height - bottom - top); };
    const Scale x = across(low, high);
    for (double share = 0; share <= full + 0.1; share += step) {
        svg.line({left, y(share)}, {width - right, y(share)}, "grid");
        svg.text({left - 8, y(share) + 4}, Anchor::end, "tick", fmt::format("{:g} %", share));
    }
    for (const double tick : ticks_between(low, high))
        if (tick >= low && tick <= high) {
            svg.line({x(tick), height - bottom}, {x(tick), height - bottom + 4}, "axis");
            svg.text({x(tick), height - bottom + 17}, Anchor::middle, "tick", human_nanoseconds(tick));
        }
    std::vector<Label> labels;
    for (const auto& distribution : plot.distributions) {
        if (distribution.buckets.empty()) continue;
        svg.polyline(outline(distribution, x, low, high, y), fmt::format("line s{}", distribution.style));
        const auto peak =
            std::ranges::max_element(distribution.buckets, {}, [](const auto& b) { return b.second; });
        const Point at{x(static_cast<double>(peak->first)), y(share_of(distribution, peak->second))};
        svg.marker(distribution.style, at, fmt::format("mark s{}", distribution.style));
        labels.push_back({at.y, distribution.style, distribution.name});
    }
    draw_labels(svg, labels);
    return std::move(svg).finish();
}

} // namespace kxfer::cli

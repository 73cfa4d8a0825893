// SPDX-License-Identifier: MIT
#include "cli/measure/svg.hpp"

#include <fmt/format.h>

#include "bench/stats/verdict.hpp"

namespace kxfer::cli {

namespace {

std::string list_of(const std::vector<Point>& points) {
    std::string text;
    for (const auto& point : points)
        text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", point.x, point.y);
    return text;
}

const char* anchor_name(Anchor anchor) {
    return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

} // namespace

Svg::Svg(double width, double height, const std::string& title)
    : text_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {0:g} {1:g}\" "
                        "width=\"{0:g}\" height=\"{1:g}\">\n<title>{2}</title>\n",
                        width, height, escaped(title))) {}

void Svg::line(Point from, Point to, const std::string& style) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n",
                         from.x, from.y, to.x, to.y, style);
}

void Svg::polyline(const std::vector<Point>& points, const std::string& style) {
    text_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", list_of(points), style);
}

void Svg::rectangle(Point corner, double width, double height, const std::string& style, double opacity) {
    text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\" "
                         "fill-opacity=\"{:.2f}\"/>\n",
                         corner.x, corner.y, width, height, style, opacity);
}

void Svg::marker(unsigned shape, Point at, const std::string& style) {
    constexpr double r = 4.5;
    const auto [x, y] = at;
    switch (shape % 3) {
    case 0:
        text_ +=
            fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" class=\"{}\"/>\n", x, y, r, style);
        break;
    case 1:
        rectangle({x - r + 0.5, y - r + 0.5}, 2 * r - 1, 2 * r - 1, style);
        break;
    default:
        text_ +=
            fmt::format("<polygon points=\"{}\" class=\"{}\"/>\n",
                        list_of({{x, y - r - 1}, {x + r + 0.5, y + r - 1}, {x - r - 0.5, y + r - 1}}), style);
    }
}

void Svg::text(Point at, Anchor anchor, const std::string& style, const std::string& words) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", at.x,
                         at.y, anchor_name(anchor), style, escaped(words));
}

std::string Svg::finish() && { return std::move(text_) + "</svg>\n"; }

std::string escaped(const std::string& text) { return bench::xml_escaped(text); }

} // namespace kxfer::cli

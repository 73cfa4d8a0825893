// SPDX-License-Identifier: MIT
//
// A drawing for a page of HTML. It has no colours: classes name the parts, and the
// page's style defines their look on a light or dark screen and on paper.
#pragma once

#include <string>
#include <vector>

namespace kxfer::cli {

struct Point {
    double x = 0, y = 0;
};

enum class Anchor { start, middle, end };

class Svg {
  public:
    // title: for screen readers.
    Svg(double width, double height, const std::string& title);

    void line(Point from, Point to, const std::string& style);
    void polyline(const std::vector<Point>& points, const std::string& style);
    // opacity: of the fill.
    void rectangle(Point corner, double width, double height, const std::string& style, double opacity = 1);
    // Series have different markers, so that they can be told apart without colours.
    void marker(unsigned shape, Point at, const std::string& style);
    void text(Point at, Anchor anchor, const std::string& style, const std::string& words);
    std::string finish() &&;

  private:
    std::string text_;
};

// Escapes text for HTML and XML.
std::string escaped(const std::string& text);

} // namespace kxfer::cli

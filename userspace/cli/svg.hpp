// SPDX-License-Identifier: MIT
//
// A drawing for a page of HTML. It has no colours: classes name what a part is, and the
// page's style says how that looks on a screen, in the dark and on paper.
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
    // title: for who cannot see it.
    Svg(double width, double height, const std::string& title);

    void line(Point from, Point to, const std::string& style);
    void polyline(const std::vector<Point>& points, const std::string& style);
    // opacity: of the filling.
    void rectangle(Point corner, double width, double height, const std::string& style, double opacity = 1);
    // Series have different ones, so that they can be told without colours.
    void marker(unsigned shape, Point at, const std::string& style);
    void text(Point at, Anchor anchor, const std::string& style, const std::string& words);
    std::string finish() &&;

  private:
    std::string text_;
};

// Of HTML and XML.
std::string escaped(const std::string& text);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Records as text: "label  value" lines, and tables with aligned columns whose numbers are
// right-aligned. If a table is too wide for the terminal, it leaves out columns (Show), or its
// last column is broken if that is text; otherwise each row becomes a block of lines. In a pipe
// or file the table keeps its width: see `| less -S`.

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output/output.hpp"
#include "cli/output/streams.hpp"
#include "cli/output/terminal.hpp"

namespace kxfer::cli {

namespace {

std::string label_of(const Field& field) {
    if (!field.label.empty()) return field.label;
    std::string label = field.key;
    std::replace(label.begin(), label.end(), '_', ' ');
    return label;
}

bool in_text(const Field& field, bool narrow = false) {
    if (narrow && field.show == Show::wide_text) return false;
    return field.show != Show::json_only && field.show != (narrow ? Show::wide : Show::narrow);
}

bool is_number(const Value& value) {
    return !std::holds_alternative<std::string>(value) && !std::holds_alternative<Words>(value) &&
           !std::holds_alternative<Lines>(value) && !std::holds_alternative<bool>(value) &&
           !std::holds_alternative<None>(value);
}

std::string pad(const std::string& text, size_t width, bool right) {
    const size_t have = width_of(text);
    const std::string space(width > have ? width - have : 0, ' ');
    return right ? space + text : text + space;
}

// The text of a failure may contain words of a peer.
std::string harmless(const std::string& text) { return text.empty() ? text : human_value(Value(text)); }

// Sentences are broken before this many characters, or earlier where the terminal is narrow.
constexpr size_t sentence_width = 76;
constexpr size_t least_sentence_width = 24;

// Room for words from this column on.
size_t room_after(size_t column, size_t width) {
    return std::max(width, column + least_sentence_width) - column;
}

// A value printed from this column on; each of several sentences begins with a dash. width: that of the
// terminal.
std::string hanging(const Value& value, size_t column, std::optional<size_t> width) {
    const auto* all = std::get_if<Lines>(&value);
    const std::string indent(column, ' ');
    if (!all || all->lines.empty()) {
        const std::string text = human_value(value);
        const bool fits = !width || column + width_of(text) <= *width;
        return fits ? text : broken(text, indent, room_after(column, *width));
    }
    const bool several = all->lines.size() > 1;
    const size_t before = column + (several ? 2 : 0);
    const size_t room = width ? room_after(before, *width) : sentence_width;
    std::string text;
    for (const std::string& line : all->lines) {
        if (!text.empty()) text += '\n' + indent;
        text += several ? "- " : "";
        text += broken(human_value(Lines{{line}}), several ? indent + "  " : indent,
                       std::min(room, sentence_width));
    }
    return text;
}

struct Column {
    std::string title;
    std::vector<std::string> cells;
    bool right = false;
    size_t width = 0;
};

// The first row determines the columns; all rows of a table have the same kind.
std::vector<Column> columns_of(const Table& rows, bool narrow = false) {
    std::vector<Column> columns;
    for (const Field& field : rows.front().fields()) {
        if (!in_text(field, narrow)) continue;
        columns.push_back({label_of(field), {}, is_number(field.value), width_of(label_of(field))});
    }
    for (const Record& row : rows) {
        size_t i = 0;
        for (const Field& field : row.fields()) {
            if (!in_text(field, narrow) || i == columns.size()) continue;
            Column& column = columns[i++];
            column.cells.push_back(human_value(field.value));
            column.width = std::max(column.width, width_of(column.cells.back()));
            column.right = column.right || is_number(field.value);
        }
    }
    return columns;
}

size_t line_width(const std::vector<Column>& columns, const std::string& indent) {
    size_t width = indent.size();
    for (const Column& column : columns) width += column.width + (&column != &columns.front() ? 2 : 0);
    return width;
}

// row: 0 is the header. last: maximum width of the last column; empty: unlimited.
std::string aligned_line(const std::vector<Column>& columns, size_t row, const std::string& indent,
                         std::optional<size_t> last) {
    std::string line = indent;
    for (const Column& column : columns) {
        const std::string& cell = row == 0 ? column.title : column.cells.at(row - 1);
        if (&column != &columns.front()) line += "  ";
        line += last && &column == &columns.back() ? broken(cell, std::string(width_of(line), ' '), *last)
                                                   : pad(cell, column.width, column.right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

bool can_be_narrow(const Table& rows) {
    const auto& fields = rows.front().fields();
    return std::any_of(fields.begin(), fields.end(),
                       [](const Field& field) { return !in_text(field, true) && in_text(field); });
}

class TextOutput : public Output {
  public:
    using Output::Output;

    void record(const Record& record) override { write((after_events_ ? "\n" : "") + lines_of(record)); }

    void table(const Table& rows, const std::string& empty) override {
        if (!rows.empty())
            write(table_text(rows, ""));
        else if (!empty.empty())
            note(empty);
    }

    void event(const Record&, const std::string& text) override {
        if (quiet()) return;
        write(stamp_for(results()) + fitting(text, results()) + '\n');
        after_events_ = true;
    }

    void sample(const Record&, const std::string& text) override { write(text + '\n'); }

    void failure(const Failure& failure) override {
        const std::string name = "kxfer: ", words = harmless(failure.error.text());
        // First remove a line that progress left on the terminal.
        complain(fmt::format("{}{}{}\n", isatty(STDERR_FILENO) ? "\r\033[K" : stamp_for(stderr), name,
                             paint(after(name.size(), words), "31", stderr)));
        std::istringstream hint(failure.error.hint);
        for (std::string line; std::getline(hint, line);)
            complain(fmt::format("  {}\n", after(2, harmless(line))));
    }

  private:
    std::string paint(const std::string& text, const char* color, std::FILE* stream) const {
        if (!options().color || !isatty(fileno(stream)) || std::getenv("NO_COLOR")) return text;
        return fmt::format("\033[{}m{}\033[0m", color, text);
    }

    // Words that begin in this column of stderr, as they fit a terminal.
    static std::string after(size_t column, const std::string& words) {
        const auto width = terminal_width(STDERR_FILENO);
        if (!width || column + width_of(words) <= *width) return words;
        return broken(words, "    ", room_after(std::max<size_t>(column, 4), *width));
    }

    // Minimum width of a broken last column.
    static constexpr size_t least_last_width = 24;

    std::string table_text(const Table& rows, const std::string& indent) const {
        const std::vector<Column> columns = columns_of(rows);
        const auto width = terminal_width(fileno(results()));
        const size_t all = line_width(columns, indent);
        if (!width || columns.empty() || all <= *width) return aligned(columns, rows.size(), indent, {});
        if (!wide() && can_be_narrow(rows)) {
            const std::vector<Column> some = columns_of(rows, true);
            if (line_width(some, indent) <= *width)
                return aligned(some, rows.size(), indent, {}) + indent + more() + '\n';
        }
        const size_t others = all - columns.back().width;
        if (!columns.back().right && others + least_last_width <= *width)
            return aligned(columns, rows.size(), indent, *width - others);
        return row_by_row(columns, rows.size(), indent);
    }

    // A block of lines for each row, its cells one below the other.
    std::string row_by_row(const std::vector<Column>& columns, size_t nr, const std::string& indent) const {
        size_t width = 0;
        for (const Column& column : columns) width = std::max(width, width_of(column.title));
        std::string text;
        for (size_t row = 0; row < nr; row++) {
            if (row > 0) text += '\n';
            for (const Column& column : columns) {
                const std::string& cell = column.cells.at(row);
                if (cell.empty() || cell == "-") continue;
                text += indent + paint(pad(column.title, width, false), "1", results()) + "  " + cell + '\n';
            }
        }
        return text;
    }

    std::string aligned(const std::vector<Column>& columns, size_t nr, const std::string& indent,
                        std::optional<size_t> last) const {
        std::string text;
        for (size_t row = 0; row <= nr; row++) {
            const std::string line = aligned_line(columns, row, indent, last);
            text += (row == 0 ? paint(line, "1", results()) : line) + '\n';
        }
        return text;
    }

    // Simple fields aligned, then each nested table or record under its label.
    std::string lines_of(const Record& record, const std::string& indent = "") const {
        const auto terminal = terminal_width(fileno(results()));
        size_t width = 0;
        for (const Field& field : record.fields())
            if (in_text(field) && !is_nested(field)) width = std::max(width, width_of(label_of(field)));
        std::string text;
        for (const Field& field : record.fields())
            if (in_text(field) && !is_nested(field))
                text += fmt::format("{}{}  {}\n", indent, pad(label_of(field), width, false),
                                    hanging(field.value, indent.size() + width + 2, terminal));
        for (const Field& field : record.fields())
            if (in_text(field) && is_nested(field)) text += nested_text(field, indent);
        return text;
    }

    static bool is_nested(const Field& field) {
        return std::holds_alternative<Table>(field.value) ||
               std::holds_alternative<std::shared_ptr<Record>>(field.value);
    }

    std::string nested_text(const Field& field, const std::string& indent) const {
        const std::string head = indent + paint(label_of(field), "1", results());
        if (const auto* rows = std::get_if<Table>(&field.value))
            return rows->empty() ? head + ": none\n" : head + '\n' + table_text(*rows, indent + "  ");
        return head + '\n' + lines_of(*std::get<std::shared_ptr<Record>>(field.value), indent + "  ");
    }

    bool after_events_ = false; // separate the summary from events before it
};

} // namespace

std::vector<std::string> table_lines(const Table& rows, size_t width) {
    if (rows.empty()) return {};
    auto columns = columns_of(rows);
    if (line_width(columns, "") > width && can_be_narrow(rows)) columns = columns_of(rows, true);
    std::vector<std::string> lines;
    for (size_t row = 0; row <= rows.size(); row++)
        lines.push_back(cut(aligned_line(columns, row, "", {}), width));
    return lines;
}

std::unique_ptr<Output> make_text_output(const OutputOptions& options) {
    return std::make_unique<TextOutput>(options);
}

} // namespace kxfer::cli

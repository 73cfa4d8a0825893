// SPDX-License-Identifier: MIT
//
// kxfer ls of a place in a folder.

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/folder/folder_client.hpp"
#include "cli/folder/folder_copy.hpp"

namespace kxfer::cli {

namespace {

constexpr int64_t nanoseconds_a_second = 1000000000;

std::string time_text(int64_t ns) {
    const time_t seconds = ns / nanoseconds_a_second;
    tm parts = {};
    return localtime_r(&seconds, &parts) ? fmt::format("{:%Y-%m-%d %H:%M}", parts) : "-";
}

// Names may have bytes in them that do something to a terminal.
std::string printable(const std::string& name) {
    std::string text;
    for (const char one : name) {
        const auto byte = static_cast<unsigned char>(one);
        text += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, one);
    }
    return text;
}

Record row_of(const TreeEntry& entry) {
    const bool is_file = entry.type == TreeEntry::Type::file;
    return Record()
        .add("name", entry.name, Show::json_only)
        .add("printed_name", printable(entry.name), Show::text_only, "name")
        .add("type", type_text(entry.type))
        // The unit is in the key here, because None adds no unit.
        .add("size_bytes", is_file ? Value(Bytes{entry.size}) : Value(None{}), Show::everywhere, "size")
        .add("mode", fmt::format("{:03o}", entry.mode))
        .add("mtime_ns", entry.mtime_ns, Show::json_only)
        .add("changed", time_text(entry.mtime_ns), Show::text_only);
}

} // namespace

Result list_folder(const RemotePath& place, const CommonOptions& common, Context& context) {
    TRY_SET(const auto client, FolderClient::open(place.remote, 0, common, context.out));
    FolderRequest request;
    request.op = FolderOp::look_up;
    request.path = place.path;
    TRY_SET(auto reply, client->ask(request));
    Table rows;
    if (reply.entry.type != TreeEntry::Type::folder) {
        rows.push_back(row_of(reply.entry));
        context.out.table(rows, "");
        return exit_ok;
    }
    request.op = FolderOp::list;
    do {
        TRY_SET(reply, client->ask(request));
        for (const TreeEntry& entry : reply.entries) rows.push_back(row_of(entry));
        if (!reply.entries.empty()) request.after = reply.entries.back().name;
    } while (!reply.entries.empty());
    context.out.table(rows, "the folder is empty");
    return exit_ok;
}

} // namespace kxfer::cli

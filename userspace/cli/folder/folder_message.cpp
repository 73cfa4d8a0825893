// SPDX-License-Identifier: MIT
#include "cli/folder/folder_message.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/try.hpp"

namespace kxfer::cli {

// The library looks for this in the namespace of the type.
NLOHMANN_JSON_SERIALIZE_ENUM(FolderOp, {{FolderOp::unknown, "unknown"},
                                        {FolderOp::open, "open"},
                                        {FolderOp::look_up, "look_up"},
                                        {FolderOp::list, "list"},
                                        {FolderOp::read, "read"},
                                        {FolderOp::digest, "digest"},
                                        {FolderOp::write, "write"},
                                        {FolderOp::keep, "keep"},
                                        {FolderOp::make, "make"}})

namespace {

using nlohmann::json;

// A number that the type holds; `otherwise` if it is missing. Throws for anything else.
template <typename Number> Number number_in(const json& object, const char* key, Number otherwise) {
    const auto found = object.find(key);
    if (found == object.end()) return otherwise;
    if (found->is_number_unsigned() && std::in_range<Number>(found->template get<uint64_t>()))
        return static_cast<Number>(found->template get<uint64_t>());
    if (found->is_number_integer() && !found->is_number_unsigned() &&
        std::in_range<Number>(found->template get<int64_t>()))
        return static_cast<Number>(found->template get<int64_t>());
    throw std::out_of_range(std::string(key) + " is no such number");
}

// A text; empty if it is missing. Throws for anything else.
std::string text_in(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? std::string() : found->get<std::string>();
}

json json_of(const TreeEntry& entry) {
    return {{"name", entry.name},
            {"type", type_text(entry.type)},
            {"size", entry.size},
            {"mode", entry.mode},
            {"mtime_ns", entry.mtime_ns}};
}

TreeEntry entry_of(const json& object) {
    TreeEntry entry;
    entry.name = text_in(object, "name");
    const std::string type = text_in(object, "type");
    if (type == "file") entry.type = TreeEntry::Type::file;
    if (type == "folder") entry.type = TreeEntry::Type::folder;
    entry.size = number_in(object, "size", uint64_t{0});
    entry.mode = number_in(object, "mode", uint32_t{0});
    entry.mtime_ns = number_in(object, "mtime_ns", int64_t{0});
    return entry;
}

// Numbers of another type, members that are missing and texts that are no JSON all throw.
template <typename Value>
tl::expected<Value, std::string> parsed(std::span<const std::byte> bytes, Value (*from)(const json&)) {
    const auto* const begin = reinterpret_cast<const char*>(bytes.data());
    try {
        return from(json::parse(begin, begin + bytes.size()));
    } catch (const json::exception& error) {
        return tl::make_unexpected(std::string(error.what()));
    } catch (const std::out_of_range& error) {
        return tl::make_unexpected(std::string(error.what()));
    }
}

FolderRequest request_of(const json& object) {
    FolderRequest request;
    request.desk = text_in(object, "desk");
    request.number = number_in(object, "number", uint64_t{0});
    request.op = object.at("op").get<FolderOp>();
    request.path = text_in(object, "path");
    request.after = text_in(object, "after");
    request.offset = number_in(object, "offset", uint64_t{0});
    request.length = number_in(object, "length", uint64_t{0});
    request.size = number_in(object, "size", uint64_t{0});
    request.window = number_in(object, "window", uint32_t{0});
    request.mode = number_in(object, "mode", uint32_t{0});
    request.mtime_ns = number_in(object, "mtime_ns", int64_t{0});
    request.of_part = object.contains("of_part") && object.at("of_part").get<bool>();
    request.sha256 = text_in(object, "sha256");
    return request;
}

FolderReply reply_of(const json& object) {
    FolderReply reply;
    reply.number = number_in(object, "number", uint64_t{0});
    reply.error = number_in(object, "error", 0);
    reply.why = text_in(object, "why");
    reply.length = number_in(object, "length", uint64_t{0});
    reply.sha256 = text_in(object, "sha256");
    if (object.contains("entry")) reply.entry = entry_of(object.at("entry"));
    if (object.contains("entries"))
        for (const json& one : object.at("entries")) reply.entries.push_back(entry_of(one));
    return reply;
}

} // namespace

std::string FolderRequest::text() const {
    return json{
        {"desk", desk},         {"number", number},   {"op", op},        {"path", path},     {"after", after},
        {"offset", offset},     {"length", length},   {"size", size},    {"window", window}, {"mode", mode},
        {"mtime_ns", mtime_ns}, {"of_part", of_part}, {"sha256", sha256}}
        .dump();
}

tl::expected<FolderRequest, std::string> FolderRequest::parse(std::span<const std::byte> bytes) {
    TRY_SET(auto request, parsed(bytes, request_of));
    if (!is_desk_id(request.desk)) return tl::make_unexpected("it has no desk");
    if (!is_tree_path(request.path)) return tl::make_unexpected("it names no path");
    return request;
}

std::string FolderReply::text() const {
    json all = {{"number", number}, {"error", error},   {"why", why},
                {"length", length}, {"sha256", sha256}, {"entry", json_of(entry)}};
    json list = json::array();
    for (const TreeEntry& one : entries) list.push_back(json_of(one));
    all["entries"] = std::move(list);
    // A reason may have a path in it that is not UTF-8.
    return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

tl::expected<FolderReply, std::string> FolderReply::parse(std::span<const std::byte> bytes) {
    TRY_SET(auto reply, parsed(bytes, reply_of));
    for (const TreeEntry& one : reply.entries)
        if (one.name.empty() || !is_tree_path(one.name) || one.name.find('/') != std::string::npos)
            return tl::make_unexpected("it lists a name that is none: " + one.name);
    return reply;
}

std::string desk_name(const std::string& folder, const std::string& desk) { return folder + '.' + desk; }

bool is_desk_id(const std::string& text) {
    return text.size() == 16 && std::all_of(text.begin(), text.end(), [](char one) {
               return std::string_view("0123456789abcdef").find(one) != std::string_view::npos;
           });
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Kernel records as the tool prints them. For every content, JSON is valid, on one line, and
// has the same numbers. Text has no character that moves the cursor, and no line that the tool
// did not begin.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/output/output.hpp"
#include "cli/transfer/link_record.hpp"

using namespace kxfer;
using namespace kxfer::cli;

namespace {

// Captures stdout in memory.
std::string written(Output& output, const Record& record, const Table& rows) {
    std::string text(1 << 16, '\0');
    rewind(stdout);
    if (ftruncate(STDOUT_FILENO, 0) != 0) abort();
    output.record(record);
    output.table(rows, "none");
    fflush(stdout);
    const ssize_t length = pread(STDOUT_FILENO, text.data(), text.size(), 0);
    if (length < 0) abort();
    text.resize(static_cast<size_t>(length));
    return text;
}

void check_json(const std::string& text, const kxfer_info_link& link) {
    const size_t end = text.find('\n');
    if (end == std::string::npos || text.find('\n', end + 1) != text.size() - 1) __builtin_trap();
    const auto record = nlohmann::json::parse(text.substr(0, end));
    const auto table = nlohmann::json::parse(text.substr(end + 1));
    if (record.at("id") != link.id || table.size() != 2 || table[1] != record) __builtin_trap();
    if (record.at("read_bytes") != link.bytes_read) __builtin_trap();
}

// A table has a line of titles and two lines of the same record.
void check_text(const std::string& text) {
    for (size_t i = 0; i < text.size(); i++) {
        const auto c = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        if ((c < ' ' && c != '\n') || c == 0x7f) __builtin_trap();
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) __builtin_trap();
    }
    const size_t last = text.rfind('\n', text.size() - 2);
    const size_t before = text.rfind('\n', last - 1);
    if (text.compare(before, last - before, text, last, last - before) != 0) __builtin_trap();
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const int memory = memfd_create("stdout", 0);
    if (memory < 0 || dup2(memory, STDOUT_FILENO) < 0) abort();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    kxfer_info_link link = {};
    memcpy(&link, data, std::min(size, sizeof(link)));

    const Record record = link_row(link, {1024, 4096});
    const auto json = make_json_output({.json = true});
    check_json(written(*json, record, {record, record}), link);
    const auto text = make_text_output({});
    check_text(written(*text, record, {record, record}));
    return 0;
}

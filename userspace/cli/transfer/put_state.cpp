// SPDX-License-Identifier: MIT
#include "cli/transfer/put_state.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/node/file.hpp"
#include "cli/node/sha256.hpp"
#include "cli/transfer/transfer_state.hpp"

namespace kxfer::cli {

namespace {

// Empty if the user has no place for state.
std::string state_folder() {
    const char* state = std::getenv("XDG_STATE_HOME");
    if (state && state[0] == '/') return fmt::format("{}/kxfer", state);
    const char* home = std::getenv("HOME");
    if (home && home[0] == '/') return fmt::format("{}/.local/state/kxfer", home);
    return {};
}

std::string name_of(const std::string& text) {
    Sha256 sha256;
    sha256.update(std::as_bytes(std::span(text)));
    return fmt::format("put-{}.json", hex(sha256.digest()).substr(0, 32));
}

uint64_t nanoseconds(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

} // namespace

PutState::PutState(const std::string& file, const struct stat& status, const Remote& remote, uint64_t offset,
                   uint64_t length)
    : file_(real_path(file)), remote_(remote.text()), size_(static_cast<uint64_t>(status.st_size)),
      changed_ns_(nanoseconds(status.st_mtim)) {
    const std::string folder = state_folder();
    if (!folder.empty())
        path_ = fmt::format("{}/{}", folder,
                            name_of(fmt::format("{}\n{}\n{}\n{}", file_, remote_, offset, length)));
}

tl::expected<uint64_t, std::string> PutState::placed_at(const ExportIdentity& where) const {
    const auto state = TransferState::read(path_);
    if (!state || state->text("file") != file_ || state->text("remote") != remote_)
        return tl::make_unexpected("no put of this file to this export has stopped");
    if (state->number("size") != size_ || state->number("changed_ns") != changed_ns_)
        return tl::make_unexpected("the file was changed since");
    if (state->number("export_length") != where.length || state->number("cookie") != where.cookie ||
        state->number("generation") != where.generation)
        return tl::make_unexpected("the export is another one, or has other content");
    return state->number("placed").value_or(0);
}

void PutState::save(const ExportIdentity& where, uint64_t placed) {
    if (path_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    if (error) return;
    TransferState state;
    state.add("file", file_)
        .add("size", size_)
        .add("changed_ns", changed_ns_)
        .add("remote", remote_)
        .add("export_length", where.length)
        .add("cookie", where.cookie)
        .add("generation", where.generation)
        .add("placed", placed);
    saved_ = state.write(path_).has_value();
}

void PutState::forget() {
    if (!path_.empty()) unlink(path_.c_str());
}

} // namespace kxfer::cli

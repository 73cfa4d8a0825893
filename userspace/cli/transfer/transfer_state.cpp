// SPDX-License-Identifier: MIT
#include "cli/transfer/transfer_state.hpp"

#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/node/file.hpp"

namespace kxfer::cli {

namespace {

constexpr size_t longest = 65536; // bytes of such a file

} // namespace

bool is_own_file(int fd) {
    struct stat status = {};
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_nlink == 1;
}

std::optional<TransferState> TransferState::read(const std::string& path) {
    const Descriptor fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd.get() < 0 || !is_own_file(fd.get())) return std::nullopt;
    std::string text(longest, '\0');
    const auto got = read_full(fd.get(), std::as_writable_bytes(std::span(text)), path);
    if (!got) return std::nullopt;
    text.resize(*got);
    TransferState state;
    state.fields_ = nlohmann::json::parse(text, nullptr, false);
    return state.fields_.is_object() ? std::optional(std::move(state)) : std::nullopt;
}

Expected<void> TransferState::write(const std::string& path) const {
    const std::string next = path + ".new";
    const std::string text = fields_.dump() + '\n';
    unlink(next.c_str());
    const Descriptor fd(open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd.get() < 0) return fail("cannot create", next, errno);
    TRY(write_full(fd.get(), std::as_bytes(std::span(text)), next));
    if (fdatasync(fd.get()) < 0 || rename(next.c_str(), path.c_str()) < 0)
        return fail("cannot write", path, errno);
    return {};
}

std::string TransferState::text(const char* key) const {
    const auto field = fields_.find(key);
    return field != fields_.end() && field->is_string() ? field->get<std::string>() : std::string();
}

std::optional<uint64_t> TransferState::number(const char* key) const {
    const auto field = fields_.find(key);
    if (field == fields_.end() || !field->is_number_unsigned()) return std::nullopt;
    return field->get<uint64_t>();
}

} // namespace kxfer::cli

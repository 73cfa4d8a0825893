// SPDX-License-Identifier: MIT
#include "cli/transfer/sink.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/try.hpp"
#include "cli/command/size.hpp"
#include "cli/transfer/transfer_state.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* part_suffix = ".kxfer-part";
constexpr const char* state_suffix = ".kxfer-state";

bool is_at(const std::string& path, int fd) {
    struct stat named = {}, opened = {};
    return lstat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

tl::expected<Descriptor, Failure> create_or_take(const std::string& part) {
    constexpr int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    // Try twice, because an existing part may be renamed before it is opened.
    for (int tries = 2;; tries--) {
        Descriptor fd(open(part.c_str(), flags | O_CREAT | O_EXCL, 0600));
        if (fd.get() >= 0) return fd;
        if (errno != EEXIST) return failed(Error("cannot create", part, errno));
        fd = Descriptor(open(part.c_str(), flags));
        if (fd.get() >= 0 && is_own_file(fd.get())) return fd;
        if (fd.get() < 0 && errno == ENOENT && tries > 1) continue;
        return failed(Error("will not overwrite", part, EEXIST, "remove it, or choose another name",
                            "it is no part that a kxfer get of this user has left"));
    }
}

Error will_not_overwrite(const std::string& path, const char* why = "") {
    return Error("will not overwrite", path, EEXIST, "--force does, or choose another name", why);
}

// FILE, or FILE/NAME if FILE is a folder.
std::string destination(const std::string& file, const std::string& name) {
    struct stat status = {};
    if (stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
        return file + (file.ends_with('/') ? "" : "/") + name;
    return file;
}

// The hash of the first `length` bytes, read back from the file.
std::optional<Sha256> hash_of_file(int fd, uint64_t length) {
    std::array<std::byte, 65536> piece = {};
    Sha256 sha256;
    for (uint64_t done = 0; done < length;) {
        const ssize_t n = pread(fd, piece.data(), std::min<uint64_t>(piece.size(), length - done),
                                static_cast<off_t>(done));
        if (n <= 0) return std::nullopt;
        sha256.update(std::span(piece).first(static_cast<size_t>(n)));
        done += static_cast<uint64_t>(n);
    }
    return sha256;
}

TransferState state_of(const Origin& origin, uint64_t stored, const Digest& sha256) {
    TransferState state;
    state.add("remote", origin.remote)
        .add("content_sha256", hex(origin.content.sha256))
        .add("content_length", origin.content.length)
        .add("offset", origin.offset)
        .add("length", origin.length)
        .add("stored", stored)
        .add("stored_sha256", hex(sha256));
    return state;
}

// Why a part with that state is not the beginning of `origin`; empty: it is.
std::string difference(const TransferState& state, const Origin& origin) {
    if (!origin.is_known()) return "nothing says what the export holds";
    if (state.text("content_sha256") != hex(origin.content.sha256) ||
        state.number("content_length") != origin.content.length)
        return fmt::format("it is of other content, of {}", state.text("remote"));
    if (state.number("offset") != origin.offset || state.number("length") != origin.length)
        return "it is of another range";
    return {};
}

} // namespace

// Two gets to the same file would mix their bytes, so the first holds a lock. When it has
// finished, its part has become FILE: a second get that opened it under the old name must not
// empty it.
tl::expected<Sink, Failure> Sink::open_part(std::string path) {
    Sink sink;
    sink.part_ = path + part_suffix;
    sink.state_ = path + state_suffix;
    sink.name_ = path;
    sink.path_ = std::move(path);
    do {
        TRY_SET(sink.fd_, create_or_take(sink.part_));
        if (flock(sink.fd(), LOCK_EX | LOCK_NB) < 0)
            return failed(Error("cannot write", sink.part_, errno, "wait for it, or choose another name",
                                "another kxfer get is writing it"));
    } while (!is_at(sink.part_, sink.fd()));
    return sink;
}

tl::expected<Sink, Failure> Sink::open(const std::string& file, const std::string& name, bool force) {
    Sink stream;
    if (file == "-") {
        stream.name_ = "standard output";
        stream.fd_ = Descriptor(STDOUT_FILENO, false);
        return stream;
    }
    std::string path = destination(file, name);
    struct stat status = {};
    if (stat(path.c_str(), &status) < 0) {
        const bool dangles = errno == ENOENT && lstat(path.c_str(), &status) == 0;
        if (dangles) return failed(will_not_overwrite(path, "it is a symbolic link that leads nowhere"));
        return open_part(std::move(path));
    }
    if (!S_ISREG(status.st_mode)) {
        stream.name_ = path;
        stream.fd_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (stream.fd() < 0) return failed(Error("cannot open", path, errno));
        return stream;
    }
    if (!force) return failed(will_not_overwrite(path));
    return open_part(real_path(path));
}

tl::expected<uint64_t, Failure> Sink::resume(const Origin& origin, Sha256& sha256, Output& out) {
    const auto state = TransferState::read(state_);
    std::string why = state ? difference(*state, origin) : "no get has left one that it says more of";
    const uint64_t stored = state ? state->number("stored").value_or(0) : 0;
    if (why.empty() && stored == 0) why = "it is empty";
    if (why.empty()) {
        const auto found = hash_of_file(fd(), stored);
        if (found && hex(found->digest()) == state->text("stored_sha256"))
            sha256 = *found;
        else
            why = "its bytes are not those that were stored";
    }
    const auto end = static_cast<off_t>(stored);
    if (why.empty() && ftruncate(fd(), end) == 0 && lseek(fd(), end, SEEK_SET) == end) {
        out.note(fmt::format("going on with {}, which has {} that are right", part_, human_bytes(stored)));
        return stored;
    }
    out.note(fmt::format("beginning anew: {} cannot be gone on with: {}", part_, why));
    TRY(restart(origin));
    return 0;
}

tl::expected<void, Failure> Sink::restart(const Origin& origin) {
    if (!is_file()) return {};
    if (ftruncate(fd(), 0) < 0) return failed(Error("cannot empty", part_, errno));
    TRY(state_of(origin, 0, Sha256().digest()).write(state_));
    return {};
}

Expected<void> Sink::checkpoint(const Origin& origin, uint64_t stored, const Digest& sha256) const {
    if (!is_file()) return {};
    if (fdatasync(fd()) < 0) return fail("cannot write", part_, errno);
    return state_of(origin, stored, sha256).write(state_);
}

bool Sink::settle(const Origin& origin, uint64_t stored, const Digest& sha256) const {
    if (ftruncate(fd(), static_cast<off_t>(stored)) < 0 || fsync(fd()) < 0) return false;
    const auto found = hash_of_file(fd(), stored);
    if (!found || found->digest() != sha256) return false;
    return state_of(origin, stored, sha256).write(state_).has_value();
}

void Sink::forget() const { unlink(state_.c_str()); }

bool Sink::discard() const {
    forget();
    return unlink(part_.c_str()) == 0;
}

// An existing FILE keeps its owner and mode; a new one gets the mode that umask leaves.
void Sink::take_over_mode() const {
    struct stat status = {};
    if (stat(path_.c_str(), &status) < 0) {
        const mode_t mask = umask(0);
        umask(mask);
        fchmod(fd(), 0666 & ~mask);
        return;
    }
    // Without permission to chown the file keeps this uid: then drop the set-id bits.
    const bool given = fchown(fd(), status.st_uid, status.st_gid) == 0;
    fchmod(fd(), status.st_mode & (given ? 07777 : 0777));
}

// Without `force`, never overwrites a file that was created in the meantime.
int Sink::rename_part(bool force) const {
    if (force) return rename(part_.c_str(), path_.c_str());
    const int ret = renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
    if (ret == 0 || errno != EINVAL) return ret;
    // The file system lacks RENAME_NOREPLACE: a hard link does not overwrite a file either.
    if (link(part_.c_str(), path_.c_str()) < 0) return -1;
    return unlink(part_.c_str());
}

tl::expected<void, Failure> Sink::keep(bool force) const {
    if (!is_file()) return {};
    take_over_mode();
    if (fsync(fd()) < 0) return failed(Error("cannot write", part_, errno));
    if (rename_part(force) < 0) {
        Error error = errno == EEXIST ? will_not_overwrite(path_, "it was made while this was read")
                                      : Error("cannot rename " + part_ + " to", path_, errno);
        error.hint += fmt::format("{}kept {}, which is right", error.hint.empty() ? "" : "\n", part_);
        return failed(std::move(error), exit_failed, Record().add("part", part_));
    }
    forget();
    sync_directory(path_);
    return {};
}

} // namespace kxfer::cli

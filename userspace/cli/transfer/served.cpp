// SPDX-License-Identifier: MIT
#include "cli/transfer/served.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include <climits>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/try.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/node/sha256.hpp"
#include "cli/output/progress.hpp"

namespace kxfer::cli {

namespace {

constexpr size_t hash_piece = 1 << 20;

// Limit for a file that reports a size of 0, as those of /proc do.
constexpr size_t most_of_unknown_size = 64 << 20;

// Reads to the end of a file of unknown size.
tl::expected<std::vector<std::byte>, Failure> read_to_end(int fd, const std::string& name) {
    std::vector<std::byte> all;
    for (size_t got = 0;; got = all.size()) {
        if (got > most_of_unknown_size)
            return failed(Error("cannot serve", name, EFBIG, "copy it to a file of its own, and serve that",
                                fmt::format("its size is told as 0 and it has more than {}",
                                            human_bytes(most_of_unknown_size))));
        all.resize(got + hash_piece);
        TRY_SET(const auto more, read_full(fd, std::span(all).subspan(got), name));
        all.resize(got + more);
        if (more < hash_piece) return all;
    }
}

Failure export_failure(Error error) {
    switch (error.number) {
    case EEXIST:
        error.why = "an export of that name exists on this node";
        error.hint = "see: kxfer export list; or give another name: NAME=FILE";
        break;
    case EDQUOT:
        error.hint = "a limit of the module is reached; see: kxfer stat";
        break;
    default:
        break;
    }
    return {std::move(error)};
}

} // namespace

tl::expected<Served, Failure> Served::make(Session& session, const Source& source, uint32_t rights,
                                           std::span<const kxfer_rule> rules, uint64_t cookie,
                                           const Output& out) {
    Served served;
    served.source_ = source;
    served.length_ = source.bytes;
    if (source.file.empty()) {
        auto memory = source.heap ? Memory::from_heap(source.bytes) : Memory::allocate(source.bytes);
        if (!memory) return failed(std::move(memory.error()));
        served.memory_ = std::move(*memory);
    } else if (auto read = served.read_file(); !read) {
        return tl::make_unexpected(read.error());
    }
    // Memory has no content until a peer has put something there.
    std::optional<Digest> sha256;
    if (!source.file.empty()) {
        TRY_SET(sha256, served.hash(served.length_, -1, out));
    }
    TRY(served.lend(session, rights, rules, cookie));
    if (!sha256) return served;
    TRY(served.publish(served.length_, *sha256));
    return served;
}

tl::expected<void, Failure> Served::read_file() {
    source_.file = real_path(source_.file);
    const Descriptor fd(open(source_.file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status = {};
    if (fd.get() < 0 || fstat(fd.get(), &status) < 0)
        return failed(Error("cannot open", source_.file, errno));
    if (!S_ISREG(status.st_mode))
        return failed(Error("cannot serve", source_.file, EINVAL, "give a file, or memory: NAME=mem:SIZE",
                            "it is no regular file"));
    const auto read = status.st_size == 0 ? copy_to_end(fd.get()) : copy(fd.get(), status.st_size);
    if (!read && interrupted())
        return tl::make_unexpected(interrupt_failure("stopped reading", source_.file));
    return read;
}

tl::expected<void, Failure> Served::allocate(uint64_t length) {
    length_ = length;
    // An export has at least one byte; an empty file has no content in it.
    auto memory = Memory::allocate(std::max<uint64_t>(length_, 1));
    if (!memory) return failed(std::move(memory.error()));
    memory_ = std::move(*memory);
    return {};
}

tl::expected<void, Failure> Served::copy(int fd, off_t size) {
    TRY(allocate(static_cast<uint64_t>(size)));
    TRY_SET(const auto got, read_full(fd, memory_.bytes().first(length_), source_.file));
    if (got != length_)
        return failed(
            Error(source_.file, "became shorter while it was read", 0, "serve it when nothing changes it"));
    return {};
}

tl::expected<void, Failure> Served::copy_to_end(int fd) {
    TRY_SET(const auto all, read_to_end(fd, source_.file));
    TRY(allocate(all.size()));
    std::copy(all.begin(), all.end(), memory_.bytes().begin());
    return {};
}

tl::expected<void, Failure> Served::lend(Session& session, uint32_t rights, std::span<const kxfer_rule> rules,
                                         uint64_t cookie) {
    const std::span<std::byte> lent = memory_.bytes().first(std::max<uint64_t>(length_, 1));
    const bool changed = (rights & (KXFER_RIGHT_WRITE | KXFER_RIGHT_ATOMIC)) != 0;
    const uint32_t flags = changed ? KXFER_REGION_F_WRITE : 0;
    auto region = memory_.dmabuf() < 0 ? session.add_region(lent, flags)
                                       : session.import_region(memory_.dmabuf(), 0, lent.size(), flags);
    if (!region) return failed(pin_error(std::move(region.error()), lent.size()));
    region_ = std::move(*region);
    auto made = session.add_export(region_, source_.name, lent.size(), rights, rules, cookie);
    if (!made) return tl::make_unexpected(export_failure(std::move(made.error())));
    export_ = std::move(*made);
    return {};
}

tl::expected<void, Failure> Served::publish(uint64_t length, const Digest& sha256) {
    TRY_SET(content_.generation, export_.publish(length, sha256));
    content_.length = length;
    std::copy(sha256.begin(), sha256.end(), content_.sha256);
    return {};
}

// Hashes in pieces, so that a signal is handled soon; writes the hashed copy to fd, unless that is -1.
tl::expected<Digest, Failure> Served::hash(uint64_t length, int fd, const Output& out) const {
    const CpuReads reads(memory_);
    Progress progress(out, "hashing " + source_.name, length);
    std::vector<std::byte> piece;
    Sha256 sha256;
    for (uint64_t done = 0; done < length; done += piece.size()) {
        const auto held = memory_.bytes().first(length).subspan(done);
        piece.assign(held.begin(), held.begin() + static_cast<ptrdiff_t>(std::min(hash_piece, held.size())));
        sha256.update(piece);
        if (fd >= 0) TRY(write_full(fd, piece, source_.file));
        progress.update(done + piece.size());
        if (interrupted()) return tl::make_unexpected(interrupt_failure("stopped hashing", source_.name));
    }
    return sha256.digest();
}

tl::expected<void, Failure> Served::accept(uint64_t length, const Output& out) {
    if (length > memory_.bytes().size())
        return failed(
            Error("cannot accept what was put into", source_.name, ERANGE, "",
                  fmt::format("{} of content were announced and it has room for {}", length, length_)));
    // Write the file before publishing, so that published content is on disk.
    TRY_SET(const auto sha256, source_.file.empty() ? hash(length, -1, out) : write_back(length, out));
    return publish(length, sha256);
}

// The file as it is now, which has to fit into the export: that cannot grow.
tl::expected<std::vector<std::byte>, Failure> Served::content_of_file() const {
    const Descriptor fd(open(source_.file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status = {};
    if (fd.get() < 0 || fstat(fd.get(), &status) < 0)
        return failed(Error("cannot read again", source_.file, errno));
    if (!S_ISREG(status.st_mode))
        return failed(Error("cannot read again", source_.file, EINVAL, "", "it is no regular file now"));
    std::vector<std::byte> all(static_cast<size_t>(status.st_size) <= length_ ? status.st_size : 0);
    if (status.st_size == 0) {
        TRY_SET(all, read_to_end(fd.get(), source_.file));
    } else if (!all.empty()) {
        TRY_SET(const auto got, read_full(fd.get(), all, source_.file));
        all.resize(got);
    }
    const auto size = std::max(static_cast<uint64_t>(status.st_size), uint64_t{all.size()});
    if (size > length_)
        return failed(Error(
            "cannot take the new content of", source_.file, EFBIG, "end this process and start it again",
            fmt::format("it has {} now, and its export {}", human_bytes(size), human_bytes(length_))));
    return all;
}

tl::expected<bool, Failure> Served::reload(const Output& out) {
    if (source_.file.empty()) return false;
    TRY_SET(const auto now, content_of_file());
    const auto held = memory_.bytes().first(length_);
    if (now.size() == content_.length && std::equal(now.begin(), now.end(), held.begin())) return false;
    std::copy(now.begin(), now.end(), held.begin());
    TRY_SET(const auto sha256, hash(now.size(), -1, out));
    TRY(publish(now.size(), sha256));
    return true;
}

// Writes a temporary file next to the file, syncs and renames it; returns its SHA-256.
tl::expected<Digest, Failure> Served::write_back(uint64_t length, const Output& out) const {
    const std::string& file = source_.file;
    std::string temporary = file + ".XXXXXX";
    const Descriptor fd(mkostemp(temporary.data(), O_CLOEXEC));
    if (fd.get() < 0) return failed(Error("cannot create a file beside", file, errno));
    struct stat status = {};
    if (stat(file.c_str(), &status) == 0) {
        // Without permission to chown the file keeps this uid: then drop the set-id bits, so that
        // no other user can run it as this one.
        const bool given = fchown(fd.get(), status.st_uid, status.st_gid) == 0;
        fchmod(fd.get(), status.st_mode & (given ? 07777 : 0777));
    }
    auto written = hash(length, fd.get(), out);
    if (written && fsync(fd.get()) < 0) written = failed(Error("cannot write", file, errno));
    if (written && rename(temporary.c_str(), file.c_str()) < 0)
        written = failed(Error("cannot replace", file, errno));
    if (written)
        sync_directory(file);
    else
        unlink(temporary.c_str());
    return written;
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/served.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <climits>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "cli/device_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/sha256.hpp"

namespace kxfer::cli {

namespace {

constexpr size_t hash_piece = 1 << 20;

// The file that a name leads to, so that writing back replaces that and not a
// symbolic link to it.
std::string real_path(const std::string& path) {
    char* resolved = realpath(path.c_str(), nullptr);
    if (!resolved) return path;
    std::string result = resolved;
    free(resolved); // NOLINT(cppcoreguidelines-no-malloc): realpath's
    return result;
}

// In pieces, so that a signal is never late.
tl::expected<Digest, Failure> hash(std::span<const std::byte> bytes, const std::string& name,
                                   const Output& out) {
    Progress progress(out, "hashing " + name, bytes.size());
    Sha256 sha256;
    for (size_t done = 0; done < bytes.size();) {
        const size_t piece = std::min(hash_piece, bytes.size() - done);
        sha256.update(bytes.subspan(done, piece));
        done += piece;
        progress.update(done);
        if (interrupted()) return tl::make_unexpected(interrupt_failure("stopped hashing", name));
    }
    return sha256.digest();
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
                                           std::span<const kxfer_rule> rules, const Output& out) {
    Served served;
    served.source_ = source;
    served.length_ = source.bytes;
    if (source.file.empty()) {
        auto memory = Memory::allocate(source.bytes);
        if (!memory) return failed(std::move(memory.error()));
        served.memory_ = std::move(*memory);
    } else if (auto read = served.read_file(); !read) {
        return tl::make_unexpected(read.error());
    }
    if (auto lent = served.lend(session, rights, rules); !lent) return tl::make_unexpected(lent.error());
    // Memory says nothing until somebody has put something there.
    if (source.file.empty()) return served;
    if (auto published = served.publish(served.length_, out); !published)
        return tl::make_unexpected(published.error());
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
    length_ = static_cast<uint64_t>(status.st_size);
    // An export has at least one byte; an empty file has no content in it.
    auto memory = Memory::allocate(std::max<uint64_t>(length_, 1));
    if (!memory) return failed(std::move(memory.error()));
    memory_ = std::move(*memory);
    const auto got = read_full(fd.get(), memory_.bytes().first(length_), source_.file);
    if (!got) {
        if (interrupted()) return tl::make_unexpected(interrupt_failure("stopped reading", source_.file));
        return failed(got.error());
    }
    if (*got != length_)
        return failed(
            Error(source_.file, "became shorter while it was read", 0, "serve it when nothing changes it"));
    return {};
}

tl::expected<void, Failure> Served::lend(Session& session, uint32_t rights,
                                         std::span<const kxfer_rule> rules) {
    const std::span<std::byte> lent = memory_.bytes().first(std::max<uint64_t>(length_, 1));
    const bool changed = (rights & (KXFER_RIGHT_WRITE | KXFER_RIGHT_ATOMIC)) != 0;
    auto region = session.add_region(lent, changed ? KXFER_REGION_F_WRITE : 0);
    if (!region) return failed(pin_error(std::move(region.error()), lent.size()));
    region_ = std::move(*region);
    auto made = session.add_export(region_, source_.name, lent.size(), rights, rules);
    if (!made) return tl::make_unexpected(export_failure(std::move(made.error())));
    export_ = std::move(*made);
    return {};
}

tl::expected<void, Failure> Served::publish(uint64_t length, const Output& out) {
    const auto sha256 = hash(memory_.bytes().first(length), source_.name, out);
    if (!sha256) return tl::make_unexpected(sha256.error());
    const auto generation = export_.publish(length, *sha256);
    if (!generation) return failed(generation.error());
    content_.generation = *generation;
    content_.length = length;
    std::copy(sha256->begin(), sha256->end(), content_.sha256);
    return {};
}

tl::expected<void, Failure> Served::accept(uint64_t length, const Output& out) {
    if (length > memory_.bytes().size())
        return failed(
            Error("cannot accept what was put into", source_.name, ERANGE, "",
                  fmt::format("{} of content were announced and it has room for {}", length, length_)));
    // First the file, then the word: who was told has it on disk.
    if (!source_.file.empty())
        if (auto written = write_back(length); !written) return written;
    return publish(length, out);
}

// A temporary file beside it, on disk before it takes the name.
tl::expected<void, Failure> Served::write_back(uint64_t length) const {
    const std::string& file = source_.file;
    std::string temporary = file + ".XXXXXX";
    const Descriptor fd(mkostemp(temporary.data(), O_CLOEXEC));
    if (fd.get() < 0) return failed(Error("cannot create a file beside", file, errno));
    struct stat status = {};
    if (stat(file.c_str(), &status) == 0) {
        // Who may not give a file away keeps it; its mode is set in any case.
        if (fchown(fd.get(), status.st_uid, status.st_gid) < 0) errno = 0;
        fchmod(fd.get(), status.st_mode & 07777);
    }
    auto written = write_full(fd.get(), memory_.bytes().first(length), file);
    if (written && fsync(fd.get()) < 0) written = fail("cannot write", file, errno);
    if (written && rename(temporary.c_str(), file.c_str()) < 0) written = fail("cannot replace", file, errno);
    if (!written) {
        unlink(temporary.c_str());
        return failed(std::move(written.error()));
    }
    sync_directory(file);
    return {};
}

} // namespace kxfer::cli

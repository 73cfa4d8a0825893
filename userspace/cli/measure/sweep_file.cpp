// SPDX-License-Identifier: MIT
#include "cli/measure/sweep_file.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/try.hpp"

namespace kxfer::cli {

namespace {

tl::expected<std::string, Failure> text_of(const std::string& path) {
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream || stream.bad()) return failed(Error("cannot read", path, errno ? errno : EIO));
    return text;
}

// The text is empty, or the part of the head written before a power failure or on a full disk.
bool is_torn_head(const std::string& text, const std::string& head) {
    return text.size() < head.size() && head.starts_with(text);
}

tl::unexpected<Failure> no_sweep(const std::string& path, const std::string& why) {
    return failed(Error("cannot use the sweep", path, EINVAL, "choose another file", why));
}

} // namespace

tl::expected<SweepFile, Failure> SweepFile::open(const std::string& path, const std::string& head) {
    if (path.empty()) {
        SweepFile file(path, {});
        file.result_ = bench::parse_sweep(head)->result;
        return file;
    }
    SweepFile file(path, Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)));
    if (file.fd_.get() < 0) return failed(Error("cannot open", path, errno));
    // Two sweeps would disturb each other, and mix their rows.
    if (flock(file.fd_.get(), LOCK_EX | LOCK_NB) < 0)
        return failed(Error("cannot write", path, errno, "wait for it, or choose another file",
                            "another kxfer sweep is writing it"));
    TRY_SET(const auto text, text_of(path));
    TRY(is_torn_head(text, head) ? file.begin(head) : file.resume(text, head));
    return file;
}

tl::expected<void, Failure> SweepFile::begin(const std::string& head) {
    result_ = bench::parse_sweep(head)->result;
    if (ftruncate(fd_.get(), 0) < 0 && errno != EINVAL)
        return failed(Error("cannot cut the torn line off", path_, errno));
    TRY(write_full(fd_.get(), std::as_bytes(std::span(head)), path_));
    return {};
}

tl::expected<void, Failure> SweepFile::resume(const std::string& text, const std::string& head) {
    auto parsed = bench::parse_sweep(text);
    if (!parsed) return no_sweep(path_, parsed.error());
    const auto differences = bench::find_differences(parsed->result, bench::parse_sweep(head)->result);
    if (!differences.empty())
        return failed(Error("the sweep measured something else:", path_, EINVAL,
                            "choose another file, or what it was measured with",
                            fmt::format("{}", fmt::join(differences, "; "))));
    if (parsed->length < text.size() && ftruncate(fd_.get(), static_cast<off_t>(parsed->length)) < 0)
        return failed(Error("cannot cut the torn line off", path_, errno));
    result_ = std::move(parsed->result);
    return {};
}

tl::expected<void, Failure> SweepFile::append(bench::SweepRow row) {
    const std::string line = bench::row_line(row);
    result_.rows.push_back(std::move(row));
    if (path_.empty()) return {};
    TRY(write_full(fd_.get(), std::as_bytes(std::span(line)), path_));
    if (fdatasync(fd_.get()) < 0 && errno != EINVAL) return failed(Error("cannot write", path_, errno));
    return {};
}

tl::expected<bench::SweepResult, Failure> read_sweep(const std::string& path) {
    TRY_SET(const auto text, text_of(path));
    auto parsed = bench::parse_sweep(text);
    if (!parsed) return no_sweep(path, parsed.error());
    return std::move(parsed->result);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/folder/copy_report.hpp"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/node/file.hpp"

namespace kxfer::cli {

// A backslash before the line says that the name in it is escaped, as sha256sum has it.
std::string manifest_line(const Digest& sha256, const std::string& path) {
    std::string name;
    for (const char one : path) {
        if (one == '\\')
            name += "\\\\";
        else if (one == '\n')
            name += "\\n";
        else if (one == '\r')
            name += "\\r";
        else
            name += one;
    }
    return fmt::format("{}{}  {}\n", name == path ? "" : "\\", hex(sha256), name);
}

tl::unexpected<Failure> stopped_copy(Failure failure, const char* kept) {
    if (!failure.error.hint.empty()) failure.error.hint += '\n';
    failure.error.hint += fmt::format("{}; --resume goes on there", kept);
    if (failure.status == exit_failed) failure.status = exit_stopped;
    return tl::make_unexpected(std::move(failure));
}

void CopyReport::moved(const std::string& path, uint64_t bytes, uint64_t resumed, const Digest& sha256) {
    files_++;
    bytes_ += bytes;
    resumed_ += resumed;
    sha256_ = hex(sha256);
    manifest_ += manifest_line(sha256, path);
}

void CopyReport::left_out(const std::string& path) {
    if (left_out_++ == 0) first_left_out_ = path;
}

tl::expected<void, Failure> CopyReport::write_manifest(const std::string& file) const {
    if (file.empty()) return {};
    const Descriptor fd(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd.get() < 0)
        return failed(Error("the files are copied, but the manifest cannot be written:", file, errno));
    TRY(write_full(fd.get(), std::as_bytes(std::span(manifest_)), file));
    return {};
}

std::string CopyReport::remark() const {
    if (left_out_ == 0) return {};
    return fmt::format("{} left out, because only files and folders are copied: {}{}", left_out_,
                       first_left_out_, left_out_ == 1 ? "" : ", ...");
}

Record CopyReport::record(const std::string& from, const std::string& to, uint64_t breaks,
                          uint64_t took_ns) const {
    const double seconds = static_cast<double>(took_ns + 1) / 1e9;
    const bool one = files_ == 1 && folders_ == 0;
    return Record()
        .add("from", from)
        .add("to", to)
        .add("files", files_)
        .add("folders", folders_, folders_ == 0 ? Show::json_only : Show::everywhere)
        .add("unchanged", unchanged_, unchanged_ == 0 ? Show::json_only : Show::everywhere)
        .add("left_out", left_out_, left_out_ == 0 ? Show::json_only : Show::everywhere)
        .add("length", Bytes{bytes_})
        .add("sha256", one ? Value(sha256_) : Value(None{}), one ? Show::everywhere : Show::json_only)
        .add("verified", "each file by its SHA-256, window by window")
        .add("resumed", Bytes{resumed_}, resumed_ == 0 ? Show::json_only : Show::everywhere)
        .add("breaks", breaks, breaks == 0 ? Show::json_only : Show::everywhere)
        .add("time", Nanoseconds{static_cast<double>(took_ns)})
        .add("rate", BytesPerSecond{static_cast<double>(bytes_ - resumed_) / seconds});
}

} // namespace kxfer::cli

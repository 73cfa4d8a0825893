// SPDX-License-Identifier: MIT
#include "cli/measure/result_file.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

// 0, or the errno why the file cannot be written.
int obstacle(const std::string& file) {
    struct stat status = {};

    if (stat(file.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return EISDIR;
        return access(file.c_str(), W_OK) == 0 ? 0 : errno;
    }
    if (errno != ENOENT) return errno;
    const auto folder = std::filesystem::path(file).parent_path();
    return access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

} // namespace

tl::expected<void, Failure> check_result_file(const std::string& file) {
    const int number = file.empty() ? 0 : obstacle(file);
    if (number == 0) return {};
    return failed(Error("cannot write", file, number));
}

tl::expected<void, Failure> write_result_file(const std::string& file, const std::string& text) {
    if (file.empty()) return {};
    errno = 0;
    std::ofstream stream(file, std::ios::trunc | std::ios::binary);
    stream << text;
    stream.close();
    if (stream) return {};
    return failed(Error("cannot write", file, errno ? errno : EIO));
}

} // namespace kxfer::cli

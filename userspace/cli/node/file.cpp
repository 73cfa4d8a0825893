// SPDX-License-Identifier: MIT
#include "cli/node/file.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>

#include "cli/node/interrupt.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

Expected<Memory> Memory::allocate(size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return fail("cannot allocate", human_bytes(bytes), errno);
    // Large pages need fewer segments and registrations; optional.
    madvise(at, bytes, MADV_HUGEPAGE);
    return Memory({static_cast<std::byte*>(at), bytes});
}

Memory::~Memory() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

// Whether to retry a call that a signal has cut short.
static bool to_go_on(const std::stop_token& stop) {
    return errno == EINTR && !interrupted() && !stop.stop_requested();
}

Expected<size_t> read_full(int fd, std::span<std::byte> into, const std::string& name,
                           const std::stop_token& stop) {
    size_t done = 0;
    while (done < into.size()) {
        const ssize_t n = read(fd, into.data() + done, into.size() - done);
        if (n == 0) break;
        if (n < 0 && to_go_on(stop)) continue;
        if (n < 0) return fail("cannot read", name, errno);
        done += static_cast<size_t>(n);
    }
    return done;
}

Expected<void> write_full(int fd, std::span<const std::byte> from, const std::string& name,
                          const std::stop_token& stop) {
    size_t done = 0;
    while (done < from.size()) {
        const ssize_t n = write(fd, from.data() + done, from.size() - done);
        if (n < 0 && to_go_on(stop)) continue;
        if (n < 0) return fail("cannot write", name, errno);
        done += static_cast<size_t>(n);
    }
    return {};
}

std::string directory_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string real_path(const std::string& path) {
    char* resolved = realpath(path.c_str(), nullptr);
    if (!resolved) return path;
    std::string result = resolved;
    free(resolved); // NOLINT(cppcoreguidelines-no-malloc): from realpath()
    return result;
}

void sync_directory(const std::string& path) {
    const Descriptor directory(open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() >= 0) fsync(directory.get());
}

} // namespace kxfer::cli

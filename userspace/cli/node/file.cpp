// SPDX-License-Identifier: MIT
#include "cli/node/file.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <sys/ioctl.h>
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

Expected<Memory> Memory::from_heap(size_t bytes) {
    static constexpr const char* heap = "/dev/dma_heap/system";
    const Descriptor fd(open(heap, O_RDWR | O_CLOEXEC));
    if (fd.get() < 0) {
        Error error("cannot open", heap, errno);
        error.hint = error.number == ENOENT
                         ? "the kernel needs CONFIG_DMABUF_HEAPS_SYSTEM; without it use NAME=mem:SIZE"
                         : "be root, or have rights on it";
        return tl::make_unexpected(std::move(error));
    }
    dma_heap_allocation_data data = {};
    data.len = bytes;
    data.fd_flags = O_RDWR | O_CLOEXEC;
    if (ioctl(fd.get(), DMA_HEAP_IOCTL_ALLOC, &data) < 0)
        return fail("the system heap cannot give", human_bytes(bytes), errno);
    Descriptor dmabuf(static_cast<int>(data.fd));
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf.get(), 0);
    if (at == MAP_FAILED) return fail("cannot map a dma-buf of", human_bytes(bytes), errno);
    Memory memory({static_cast<std::byte*>(at), bytes});
    memory.dmabuf_ = std::move(dmabuf);
    return memory;
}

static void sync(int dmabuf, uint64_t flags) {
    dma_buf_sync sync = {.flags = flags | DMA_BUF_SYNC_READ};
    if (dmabuf >= 0) ioctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync);
}

CpuReads::CpuReads(const Memory& memory) : dmabuf_(memory.dmabuf()) { sync(dmabuf_, DMA_BUF_SYNC_START); }

CpuReads::~CpuReads() { sync(dmabuf_, DMA_BUF_SYNC_END); }

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

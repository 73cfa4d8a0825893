// SPDX-License-Identifier: MIT
//
// Descriptors and memory that clean up after themselves, and reading and
// writing in full with errors that say what failed.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include <unistd.h>

#include <kxfer/kxfer.hpp>

namespace kxfer::cli {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd, bool owned = true) : fd_(fd), owned_(owned) {}
    Descriptor(Descriptor&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), owned_(std::exchange(other.owned_, false)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(owned_, other.owned_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd_ >= 0 && owned_) close(fd_);
    }

    int get() const { return fd_; }

  private:
    int fd_ = -1;
    bool owned_ = false;
};

// Zeroed pages: anonymous ones of the process, the only ones that are safe to export, or those of a
// dma-buf of the system heap.
class Memory {
  public:
    static Expected<Memory> allocate(size_t bytes);
    // Needs /dev/dma_heap/system.
    static Expected<Memory> from_heap(size_t bytes);
    Memory() = default;
    Memory(Memory&& other) noexcept
        : bytes_(std::exchange(other.bytes_, {})), dmabuf_(std::move(other.dmabuf_)) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(dmabuf_, other.dmabuf_);
        return *this;
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    std::span<std::byte> bytes() const { return bytes_; }
    // -1: there is none.
    int dmabuf() const { return dmabuf_.get(); }

  private:
    explicit Memory(std::span<std::byte> bytes) : bytes_(bytes) {}
    std::span<std::byte> bytes_;
    Descriptor dmabuf_;
};

// While it exists, the CPU reads what devices have written to the memory.
class CpuReads {
  public:
    explicit CpuReads(const Memory& memory);
    CpuReads(const CpuReads&) = delete;
    CpuReads& operator=(const CpuReads&) = delete;
    ~CpuReads();

  private:
    int dmabuf_;
};

// Fills `into` unless the file ends before; returns the bytes read. A signal
// caught by interrupt.hpp ends it with EINTR; after a stop request any signal does.
Expected<size_t> read_full(int fd, std::span<std::byte> into, const std::string& name,
                           const std::stop_token& stop = {});

// Writes all, unless a signal ends it as in read_full().
Expected<void> write_full(int fd, std::span<const std::byte> from, const std::string& name,
                          const std::stop_token& stop = {});

// The folder that holds the file, "." if none is named.
std::string directory_of(const std::string& path);

// Resolves symbolic links, so that a rename replaces the file and not a link to it;
// the name itself if it leads nowhere.
std::string real_path(const std::string& path);

// Makes a rename durable. It is no failure if the file system cannot.
void sync_directory(const std::string& path);

} // namespace kxfer::cli

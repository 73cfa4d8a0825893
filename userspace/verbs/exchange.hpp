// SPDX-License-Identifier: MIT
//
// The TCP connection over which two ends of an explicit connection exchange the
// attributes of their QPs. It stays open as long as the QPs are in use; when it closes, they
// end. Every wait here has a deadline.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <tl/expected.hpp>

#include "verbs/connection.hpp"
#include "verbs/endpoint.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

// Owns the descriptor.
class Socket {
  public:
    explicit Socket(int fd = -1) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

    int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

    // Both transfer all bytes. ETIMEDOUT, or ECONNRESET if the peer ended before.
    tl::expected<void, Error> send(std::span<const std::byte> bytes, Clock::time_point deadline,
                                   const std::string& on) const;
    tl::expected<void, Error> receive(std::span<std::byte> bytes, Clock::time_point deadline,
                                      const std::string& on) const;
    tl::expected<sockaddr_storage, Error> own_address() const;

  private:
    int fd_;
};

tl::expected<Socket, Error> connect_tcp(const sockaddr_storage& peer, Clock::time_point deadline,
                                        const std::string& on);

// The responder's listener. The number of callers is limited, and so is the time until a call is
// complete. Callers with a complete call wait for their turn, in order of arrival. If there is no
// room, a new caller replaces the oldest one with an incomplete call, or stays in the backlog.
class Callers {
  public:
    static constexpr size_t max_waiting = 16;
    static constexpr std::chrono::seconds patience{3};

    // A complete call, and the connection to answer over.
    struct Caller {
        Socket socket;
        WireCall call;
    };

    static tl::expected<Callers, Error> listen(const sockaddr_storage& address);
    uint16_t port() const;

    // Adds what to poll for; handle() takes the same entries after the poll.
    void add_to(std::vector<pollfd>& waiting) const;
    void handle(std::span<const pollfd> polled);
    // Whether a caller with a complete call waits, and the first one, which next() removes.
    bool has_next() const;
    std::optional<Caller> next();

  private:
    struct Waiting {
        Socket socket;
        WireCall call{};
        size_t got = 0;
        Clock::time_point deadline;
    };
    static size_t wanted(const Waiting& one);
    static bool is_whole(const Waiting& one) { return one.got == wanted(one); }
    std::vector<Waiting>::iterator first_that(bool whole);
    // False: the caller has gone.
    static bool read_more(Waiting& one);
    void accept_one();

    Socket listener_;
    std::vector<Waiting> waiting_;
};

} // namespace kxfer::verbs

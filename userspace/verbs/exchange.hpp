// SPDX-License-Identifier: MIT
//
// The TCP connection over which two ends of an explicit connection tell each other
// of their QPs. It stays as long as the QPs do: its end is theirs. Nothing here waits
// without a deadline.
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

    // All of it. ETIMEDOUT, or ECONNRESET if the peer ended before.
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

// The responder's listener. Callers are bounded in number, and in time until they have said
// all they have to; a new one takes the place of the oldest that has not. Who has waits for
// its turn, in the order in which they came, and others stay in the backlog if all have.
class Callers {
  public:
    static constexpr size_t max_waiting = 16;
    static constexpr std::chrono::seconds patience{3};

    // Who has said all: what, and the connection to answer over.
    struct Caller {
        Socket socket;
        WireCall call;
    };

    static tl::expected<Callers, Error> listen(const sockaddr_storage& address);
    uint16_t port() const;

    // What to poll for; handle() takes the same entries behind a poll.
    void add_to(std::vector<pollfd>& waiting) const;
    void handle(std::span<const pollfd> polled);
    // Whether somebody waits for its turn, and who: no longer one of these then.
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
    // False: it has gone.
    static bool read_more(Waiting& one);
    void accept_one();

    Socket listener_;
    std::vector<Waiting> waiting_;
};

} // namespace kxfer::verbs

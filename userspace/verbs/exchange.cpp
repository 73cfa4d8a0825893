// SPDX-License-Identifier: MIT
#include "verbs/exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kxfer::verbs {

namespace {

constexpr int backlog = 16;
// TCP notices within a minute that a peer has died without notice.
constexpr int keep_idle_s = 30, keep_interval_s = 10, keep_tries = 3;

// False: the deadline has passed, or a signal was caught, which ends the program.
bool wait_for(int fd, short events, Clock::time_point deadline) {
    using std::chrono::milliseconds;

    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        pollfd waiting{fd, events, 0};

        if (left.count() <= 0) return false;
        const int found = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
        if (found != 0) return found > 0;
    }
}

void keep_alive(int fd) {
    const int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keep_idle_s, sizeof(keep_idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &keep_interval_s, sizeof(keep_interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &keep_tries, sizeof(keep_tries));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

socklen_t length_of(const sockaddr_storage& address) {
    return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

tl::unexpected<Error> too_late(const std::string& on) {
    return tl::unexpected(Error("the other end does not say what its QP is", on, ETIMEDOUT,
                                "is it a responder of kxfer? try a longer --timeout"));
}

} // namespace

Socket::~Socket() {
    if (fd_ >= 0) close(fd_);
}

tl::expected<void, Error> Socket::send(std::span<const std::byte> bytes, Clock::time_point deadline,
                                       const std::string& on) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);

        if (sent > 0)
            bytes = bytes.subspan(static_cast<size_t>(sent));
        else if (errno != EAGAIN && errno != EINTR)
            return tl::unexpected(Error("cannot tell the other end of the QP", on, errno));
        else if (!wait_for(fd_, POLLOUT, deadline))
            return too_late(on);
    }
    return {};
}

tl::expected<void, Error> Socket::receive(std::span<std::byte> bytes, Clock::time_point deadline,
                                          const std::string& on) const {
    while (!bytes.empty()) {
        const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);

        if (got > 0)
            bytes = bytes.subspan(static_cast<size_t>(got));
        else if (got == 0)
            return tl::unexpected(Error("the other end hung up before it told its QP", on, ECONNRESET));
        else if (errno != EAGAIN && errno != EINTR)
            return tl::unexpected(Error("cannot learn of the other end's QP", on, errno));
        else if (!wait_for(fd_, POLLIN, deadline))
            return too_late(on);
    }
    return {};
}

tl::expected<sockaddr_storage, Error> Socket::own_address() const {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);

    if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length))
        return tl::unexpected(Error("cannot ask for the own address", "a TCP connection", errno));
    // The peer of an IPv6 listener may be an IPv4 one.
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address);
    if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        sockaddr_in in{};

        in.sin_family = AF_INET;
        in.sin_port = in6->sin6_port;
        memcpy(&in.sin_addr, &in6->sin6_addr.s6_addr[12], sizeof(in.sin_addr));
        address = {};
        memcpy(&address, &in, sizeof(in));
    }
    return address;
}

tl::expected<Socket, Error> connect_tcp(const sockaddr_storage& peer, Clock::time_point deadline,
                                        const std::string& on) {
    const auto failed = [&on](int error) {
        return tl::unexpected(Error("nothing at the peer tells of QPs by TCP", on, error,
                                    "start a responder there: kxfer serve SOURCE --verbs"));
    };
    Socket socket(::socket(peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int error = 0;
    socklen_t length = sizeof(error);

    if (!socket) return failed(errno);
    keep_alive(socket.fd());
    if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&peer), length_of(peer)) == 0) return socket;
    if (errno != EINPROGRESS) return failed(errno);
    if (!wait_for(socket.fd(), POLLOUT, deadline)) return failed(ETIMEDOUT);
    if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length)) return failed(errno);
    if (error) return failed(error);
    return socket;
}

tl::expected<Callers, Error> Callers::listen(const sockaddr_storage& address) {
    const auto on = address_text(reinterpret_cast<const sockaddr*>(&address));
    Callers callers;
    const int yes = 1;

    callers.listener_ = Socket(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int fd = callers.listener_.fd();
    if (fd < 0) return tl::unexpected(Error("cannot answer user verbs by TCP", on, errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    // A wildcard of IPv6 would take IPv4's port too.
    if (address.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length_of(address)) || ::listen(fd, backlog))
        return tl::unexpected(
            Error("cannot answer user verbs by TCP", on, errno, "is the port in use? see: ss -tln"));
    return callers;
}

uint16_t Callers::port() const {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);

    if (getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &length)) return 0;
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                               : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void Callers::add_to(std::vector<pollfd>& waiting) const {
    const auto wanted_of = [](const Waiting& one) -> short {
        return is_whole(one) ? POLLRDHUP : POLLIN | POLLRDHUP;
    };
    const bool full = waiting_.size() >= max_waiting && std::ranges::all_of(waiting_, is_whole);

    waiting.push_back({full ? -1 : listener_.fd(), POLLIN, 0});
    for (const auto& one : waiting_) waiting.push_back({one.socket.fd(), wanted_of(one), 0});
}

std::vector<Callers::Waiting>::iterator Callers::first_that(bool whole) {
    return std::ranges::find_if(waiting_, [whole](const Waiting& one) { return is_whole(one) == whole; });
}

bool Callers::has_next() const { return std::ranges::any_of(waiting_, is_whole); }

std::optional<Callers::Caller> Callers::next() {
    const auto first = first_that(true);

    if (first == waiting_.end()) return std::nullopt;
    Caller caller{std::move(first->socket), first->call};
    waiting_.erase(first);
    return caller;
}

// The head of a call determines the call's length.
size_t Callers::wanted(const Waiting& one) {
    return one.got < wire_head ? wire_head : wire_length(one.call.from);
}

bool Callers::read_more(Waiting& one) {
    auto* bytes = reinterpret_cast<std::byte*>(&one.call);
    const ssize_t got = recv(one.socket.fd(), bytes + one.got, wanted(one) - one.got, 0);

    if (got < 0) return errno == EAGAIN || errno == EINTR;
    one.got += static_cast<size_t>(got);
    return got > 0;
}

void Callers::accept_one() {
    const bool full = waiting_.size() >= max_waiting;
    const auto oldest = first_that(false);
    Waiting one;

    if (full && oldest == waiting_.end()) return;
    one.socket = Socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!one.socket) {
        // The caller has gone; or descriptors have run out, and it stays in the backlog.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return;
    }
    keep_alive(one.socket.fd());
    one.deadline = Clock::now() + patience;
    if (full) waiting_.erase(oldest);
    waiting_.push_back(std::move(one));
}

// Drops callers that have hung up: they want no answer.
void Callers::handle(std::span<const pollfd> polled) {
    const auto now = Clock::now();

    for (size_t i = 0; i < waiting_.size(); i++) {
        Waiting& one = waiting_[i];
        const short events = polled[i + 1].revents;
        const bool alive = !events || (events == POLLIN && read_more(one));

        if (!alive || (!is_whole(one) && now > one.deadline)) one.socket = Socket();
    }
    std::erase_if(waiting_, [](const Waiting& one) { return !one.socket; });
    if (polled[0].revents) accept_one();
}

} // namespace kxfer::verbs

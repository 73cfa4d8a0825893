// SPDX-License-Identifier: MIT
//
// Each client has a pair of sockets. On it the client reports that it has come to a meeting,
// and at last its result or error. A byte from the other side lets it go on; end-of-file means
// that the first client no longer waits.

#include "bench/run/clients.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <type_traits>

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

constexpr int look_ms = 100; // between two checks of stopped()
constexpr int end_timeout_ms = 20000;

enum class Word : char { here = 'h', done = 'd', failed = 'f' };

using Text = std::array<char, 256>;

struct WireError {
    int number = 0;
    Text what = {}, on = {}, why = {}, hint = {};
};

// A RunResult without what only the first client reports. Histograms follow, then that of the
// gaps by the device's clock if there are any, and the shares of a mix, each with its histogram.
struct WireResult {
    uint64_t operations = 0, elapsed_ns = 0, nr_overdue = 0;
    Usage usage = {};
    double syscalls = 0;
    bool counted = false, verified = false, has_steal = false, has_losses = false, has_gaps = false;
    double steal = 0;
    uint64_t min_khz = 0, max_khz = 0;
    Losses losses = {};
    Text untimed = {}, uncounted = {};
    uint32_t nr_shares = 0;
};
struct WireShare {
    Operation operation = Operation::read;
    uint64_t operations = 0;
};
static_assert(std::is_trivially_copyable_v<WireError> && std::is_trivially_copyable_v<WireShare> &&
              std::is_trivially_copyable_v<WireResult>);

Text text_of(const std::string& from) {
    Text text = {};
    memcpy(text.data(), from.data(), std::min(from.size(), text.size() - 1));
    return text;
}

bool write_all(int fd, const void* data, size_t length) {
    const auto* at = static_cast<const char*>(data);

    while (length > 0) {
        const ssize_t written = send(fd, at, length, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += written;
        length -= static_cast<size_t>(written);
    }
    return true;
}

bool read_all(int fd, void* data, size_t length) {
    auto* at = static_cast<char*>(data);

    while (length > 0) {
        const ssize_t got = read(fd, at, length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        length -= static_cast<size_t>(got);
    }
    return true;
}

bool write_histogram(int fd, const Histogram& histogram) {
    const auto words = histogram.words();
    return write_all(fd, words.data(), words.size() * sizeof(words[0]));
}

bool read_histogram(int fd, Histogram& histogram) {
    std::vector<uint64_t> words(Histogram::nr_words());
    if (!read_all(fd, words.data(), words.size() * sizeof(words[0]))) return false;
    histogram = Histogram::from_words(words);
    return true;
}

bool send_shares(int fd, const std::vector<ShareFigures>& shares) {
    return std::all_of(shares.begin(), shares.end(), [fd](const ShareFigures& share) {
        const WireShare wire{share.operation, share.operations};
        return write_all(fd, &wire, sizeof(wire)) && write_histogram(fd, share.latencies);
    });
}

bool read_shares(int fd, uint32_t nr, std::vector<ShareFigures>& shares) {
    for (WireShare wire; nr > 0; nr--) {
        Histogram latencies;
        if (!read_all(fd, &wire, sizeof(wire)) || !read_histogram(fd, latencies)) return false;
        shares.push_back({wire.operation, wire.operations, std::move(latencies)});
    }
    return true;
}

bool send_result(int fd, const RunResult& result) {
    const Word word = Word::done;
    const auto& conditions = result.conditions;
    const auto& gaps = result.device_gaps;
    const WireResult wire{result.operations,
                          result.elapsed_ns,
                          result.nr_overdue,
                          result.usage,
                          result.syscalls.value_or(0),
                          result.syscalls.has_value(),
                          result.verified,
                          conditions.steal.has_value(),
                          result.losses.has_value(),
                          gaps.has_value(),
                          conditions.steal.value_or(0),
                          conditions.min_khz,
                          conditions.max_khz,
                          result.losses.value_or(Losses()),
                          text_of(result.untimed),
                          text_of(result.uncounted),
                          static_cast<uint32_t>(result.shares.size())};
    return write_all(fd, &word, sizeof(word)) && write_all(fd, &wire, sizeof(wire)) &&
           write_histogram(fd, result.latencies) && write_histogram(fd, result.uncorrected) &&
           (!gaps || write_histogram(fd, *gaps)) && send_shares(fd, result.shares);
}

void send_error(int fd, const Error& error) {
    const Word word = Word::failed;
    const WireError wire{error.number, text_of(error.what), text_of(error.on), text_of(error.why),
                         text_of(error.hint)};
    if (write_all(fd, &word, sizeof(word))) write_all(fd, &wire, sizeof(wire));
}

Error gone_error() {
    return Error("a client ended early", "", ECHILD, "use fewer --clients; see: dmesg | tail",
                 "its process was killed or crashed");
}

Error read_error(int fd) {
    WireError wire;
    if (!read_all(fd, &wire, sizeof(wire))) return gone_error();
    return Error(wire.what.data(), wire.on.data(), wire.number, wire.hint.data(), wire.why.data());
}

bool says_something(int fd) {
    pollfd waiting = {fd, POLLIN, 0};
    return poll(&waiting, 1, look_ms) > 0;
}

// The next word of a client that did not fail.
tl::expected<Word, Error> read_word(int fd, int (*stopped)()) {
    Word word{};

    while (!says_something(fd))
        if (stopped && stopped()) return tl::unexpected(Error("stopped measuring", "", EINTR));
    if (!read_all(fd, &word, sizeof(word))) return tl::unexpected(gone_error());
    if (word == Word::failed) return tl::unexpected(read_error(fd));
    return word;
}

tl::expected<RunResult, Error> read_result(int fd) {
    WireResult wire;
    RunResult result;

    if (!read_all(fd, &wire, sizeof(wire)) || !read_histogram(fd, result.latencies) ||
        !read_histogram(fd, result.uncorrected) ||
        (wire.has_gaps && !read_histogram(fd, result.device_gaps.emplace())) ||
        !read_shares(fd, wire.nr_shares, result.shares))
        return tl::unexpected(gone_error());
    result.operations = wire.operations;
    result.elapsed_ns = wire.elapsed_ns;
    result.nr_overdue = wire.nr_overdue;
    result.usage = wire.usage;
    if (wire.counted) result.syscalls = wire.syscalls;
    result.verified = wire.verified;
    if (wire.has_steal) result.conditions.steal = wire.steal;
    result.conditions.min_khz = wire.min_khz;
    result.conditions.max_khz = wire.max_khz;
    if (wire.has_losses) result.losses = wire.losses;
    result.untimed = wire.untimed.data();
    result.uncounted = wire.uncounted.data();
    return result;
}

// In a client: reports that it has come to a meeting, and waits for the others.
tl::expected<void, Error> say_here(int fd) {
    const Word word = Word::here;
    char byte = 0;

    if (!write_all(fd, &word, sizeof(word)) || !read_all(fd, &byte, sizeof(byte)))
        return tl::unexpected(Error("the other clients have given up", "", ECANCELED));
    return {};
}

[[noreturn]] void run_client(int fd, unsigned index, const Clients::Work& work) {
    const auto result = work(index, [fd] { return say_here(fd); });
    if (result)
        send_result(fd, *result);
    else
        send_error(fd, result.error());
    _exit(0);
}

void add_share(std::vector<ShareFigures>& shares, const ShareFigures& one) {
    const auto same = std::find_if(shares.begin(), shares.end(),
                                   [&](const auto& share) { return share.operation == one.operation; });
    if (same == shares.end()) {
        shares.push_back(one);
        return;
    }
    same->operations += one.operations;
    same->latencies.add(one.latencies);
}

// Takes the greater steal, and the frequencies of the CPU with the greatest change.
void add_conditions(Conditions& worst, const Conditions& one) {
    if (one.steal) worst.steal = std::max(worst.steal.value_or(0), *one.steal);
    if (one.frequency_change() <= worst.frequency_change() && worst.max_khz) return;
    worst.min_khz = one.min_khz;
    worst.max_khz = one.max_khz;
}

void add_losses(std::optional<Losses>& sum, const std::optional<Losses>& one) {
    if (!one) return;
    const Losses before = sum.value_or(Losses());
    sum = Losses{before.sent + one->sent, before.lost + one->lost};
}

void add_up(RunResult& sum, const RunResult& one) {
    const auto whole = static_cast<double>(std::max<uint64_t>(sum.operations + one.operations, 1));
    if (sum.syscalls && one.syscalls)
        sum.syscalls = (*sum.syscalls * static_cast<double>(sum.operations) +
                        *one.syscalls * static_cast<double>(one.operations)) /
                       whole;
    else
        sum.syscalls.reset();
    if (sum.uncounted.empty()) sum.uncounted = one.uncounted;
    if (sum.untimed.empty()) sum.untimed = one.untimed;
    sum.operations += one.operations;
    sum.elapsed_ns = std::max(sum.elapsed_ns, one.elapsed_ns);
    sum.nr_overdue += one.nr_overdue;
    sum.latencies.add(one.latencies);
    sum.uncorrected.add(one.uncorrected);
    sum.usage = sum.usage + one.usage;
    for (const auto& share : one.shares) add_share(sum.shares, share);
    add_conditions(sum.conditions, one.conditions);
    add_losses(sum.losses, one.losses);
    if (one.device_gaps && sum.device_gaps) sum.device_gaps->add(*one.device_gaps);
    sum.verified = sum.verified && one.verified;
}

} // namespace

tl::expected<std::unique_ptr<Clients>, Error> Clients::start(unsigned nr, const Work& work) {
    std::unique_ptr<Clients> clients(new Clients);

    for (unsigned index = 1; index < nr; index++) TRY(clients->add(index, work));
    return clients;
}

tl::expected<void, Error> Clients::add(unsigned index, const Work& work) {
    const pid_t parent = getpid();
    std::array<int, 2> pair{};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) < 0)
        return tl::unexpected(Error("cannot start a client on", "this node", errno));
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(1);
        // Inherited sockets would keep the other clients from seeing end-of-file.
        for (const auto& other : clients_) close(other.socket);
        close(pair[0]);
        run_client(pair[1], index, work);
    }
    const int number = errno;
    close(pair[1]);
    if (child < 0) {
        close(pair[0]);
        return tl::unexpected(Error("cannot start a client on", "this node", number));
    }
    clients_.push_back({child, pair[0]});
    return {};
}

tl::expected<void, Error> Clients::gather(int (*stopped)()) {
    for (const auto& client : clients_) TRY(read_word(client.socket, stopped));
    return {};
}

tl::expected<void, Error> Clients::meet(int (*stopped)()) {
    TRY(gather(stopped));
    return release();
}

// Each step of a client takes a limited time, so this wait is limited too.
tl::expected<void, Error> Clients::finish(int (*stopped)()) {
    bool told = false;

    for (const auto& client : clients_) {
        while (!says_something(client.socket))
            if (!told && stopped && stopped()) {
                for (const auto& one : clients_) kill(one.process, SIGINT);
                told = true;
            }
        TRY(read_word(client.socket, nullptr));
    }
    return release();
}

tl::expected<void, Error> Clients::release() {
    const char byte = 0;

    for (const auto& client : clients_)
        if (!write_all(client.socket, &byte, sizeof(byte))) return tl::unexpected(gone_error());
    return {};
}

tl::expected<std::vector<RunResult>, Error> Clients::collect(int (*stopped)()) {
    std::vector<RunResult> results;

    for (const auto& client : clients_) {
        TRY(read_word(client.socket, stopped));
        TRY_SET(auto result, read_result(client.socket));
        results.push_back(std::move(result));
    }
    return results;
}

Clients::~Clients() {
    for (const auto& client : clients_) {
        close(client.socket);
        kill(client.process, SIGTERM);
    }
    int waited = 0;
    for (const auto& client : clients_) {
        for (; waitpid(client.process, nullptr, WNOHANG) == 0; waited += 10) {
            if (waited >= end_timeout_ms) kill(client.process, SIGKILL);
            usleep(10000);
        }
    }
}

RunResult join_clients(RunResult first, const std::vector<RunResult>& others) {
    const auto figures_of_one = [](const RunResult& one) {
        const auto told = [&](double percent) {
            return one.latencies.supports(percent) ? std::optional(one.latencies.percentile(percent))
                                                   : std::nullopt;
        };
        return ClientFigures{one.operations, one.elapsed_ns, told(50), told(99), one.verified};
    };

    first.clients = {figures_of_one(first)};
    for (const auto& one : others) {
        first.clients.push_back(figures_of_one(one));
        add_up(first, one);
    }
    return first;
}

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
//
// Two pipes: by `ready` the child says once which ports it has, or what failed;
// `lifeline` tells it by end-of-file that the parent is done or dead.

#include "bench/local_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <kxfer/kxfer.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/socket_address.hpp"
#include "bench/workload.hpp"
#include "verbs/responder.hpp"

namespace kxfer::bench {

namespace {

constexpr int ready_timeout_ms = 10000;
constexpr int end_timeout_ms = 20000;

// Fits into a pipe, so that writing it never waits.
struct Report {
    int number = 0;
    uint16_t listener_port = 0;
    uint16_t responder_port = 0;
    uint16_t exchange_port = 0;
    bool failed = false;
    char what[128] = "";
    char on[128] = "";
    char why[256] = "";
    char hint[256] = "";
};

template <size_t N> void copy_text(char (&to)[N], const std::string& from) {
    const size_t length = std::min(from.size(), N - 1);
    memcpy(to, from.data(), length);
    to[length] = 0;
}

Report failure_report(const Error& error) {
    Report report;
    report.failed = true;
    report.number = error.number;
    copy_text(report.what, error.what);
    copy_text(report.on, error.on);
    copy_text(report.why, error.why);
    copy_text(report.hint, error.hint);
    return report;
}

bool is_wildcard(const kxfer_addr& address) {
    return std::all_of(std::begin(address.addr), std::end(address.addr),
                       [](uint8_t byte) { return byte == 0; });
}

// What the child holds; destroyed from the last to the first.
struct Served {
    std::unique_ptr<Memory> memory;
    std::unique_ptr<Session> session;
    Listener listener;
    Region region;
    Export exported;
    std::unique_ptr<verbs::VerbsResponder> responder;
    std::unique_ptr<Partner> partner;
    uint16_t listener_port = 0;
};

// A listener that already admits peers at this address is as good as an own one.
tl::expected<void, Error> listen(const ServerOptions& options, Served& served) {
    const auto listeners = served.session->list<kxfer_info_listener>(KXFER_INFO_LISTENERS);
    if (!listeners) return tl::unexpected(listeners.error());
    for (const auto& listener : *listeners) {
        const bool same = memcmp(listener.addr.addr, options.address.addr, sizeof(listener.addr.addr)) == 0;
        if (!listener.active || listener.addr.family != options.address.family) continue;
        if (!same && !is_wildcard(listener.addr)) continue;
        served.listener_port = listener.addr.port;
        return {};
    }
    auto listener = served.session->add_listener(options.address, 0);
    if (!listener) {
        if (listener.error().number == EPERM)
            listener.error().hint = "run as root, or let an administrator do: kxfer listen add ADDR";
        return tl::unexpected(listener.error());
    }
    served.listener = std::move(*listener);
    served.listener_port = options.address.port ? options.address.port : KXFER_PORT;
    return {};
}

tl::expected<void, Error> offer_export(const ServerOptions& options, Served& served) {
    auto session = Session::open();
    if (!session) return tl::unexpected(session.error());
    served.session = std::make_unique<Session>(std::move(*session));
    if (auto listening = listen(options, served); !listening) return listening;

    auto memory = Memory::create(options.length);
    if (!memory) return tl::unexpected(memory.error());
    served.memory = std::make_unique<Memory>(std::move(*memory));
    auto region = served.session->add_region(served.memory->bytes(), KXFER_REGION_F_WRITE);
    if (!region) {
        region.error().hint = "raise the limit of locked memory: ulimit -l unlimited";
        return tl::unexpected(region.error());
    }
    served.region = std::move(*region);
    auto exported = served.session->add_export(served.region, options.export_name, served.memory->length(),
                                               KXFER_RIGHT_ALL);
    if (!exported) return tl::unexpected(exported.error());
    served.exported = std::move(*exported);
    return {};
}

tl::expected<void, Error> answer_verbs(const ServerOptions& options, Served& served) {
    kxfer_addr address = options.address;
    address.port = 0; // any: the parent is told which
    auto responder = verbs::VerbsResponder::start(socket_address(address));
    if (!responder) return tl::unexpected(responder.error());
    served.responder = std::move(*responder);
    return {};
}

Report serve(const ServerOptions& options, Served& served) {
    if (options.job)
        if (auto offered = offer_export(options, served); !offered) return failure_report(offered.error());
    if (options.verbs)
        if (auto answers = answer_verbs(options, served); !answers) return failure_report(answers.error());
    if (options.partner) {
        PartnerOptions partner = *options.partner;
        partner.path.peer.port = served.listener_port;
        served.partner = std::make_unique<Partner>(partner, *served.session, *served.memory);
    }
    Report report;
    report.listener_port = served.listener_port;
    report.responder_port = served.responder ? served.responder->port() : 0;
    report.exchange_port = served.responder ? served.responder->exchange_port() : 0;
    return report;
}

[[noreturn]] void run_child(const ServerOptions& options, int ready, int lifeline) {
    char byte = 0;
    // Ctrl-C goes to the whole group; the parent decides when this ends.
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    {
        Served served;
        const Report report = serve(options, served);
        const bool told = write(ready, &report, sizeof(report)) == sizeof(report);
        while (told && !report.failed && read(lifeline, &byte, 1) < 0 && errno == EINTR) continue;
    }
    _exit(0);
}

} // namespace

tl::expected<std::unique_ptr<LocalServer>, Error> LocalServer::start(const ServerOptions& options) {
    std::array<int, 2> ready{}, lifeline{};
    const auto failed = [] {
        return tl::unexpected(Error("cannot start the server on", "this node", errno));
    };

    if (pipe2(ready.data(), O_CLOEXEC) < 0) return failed();
    if (pipe2(lifeline.data(), O_CLOEXEC) < 0) {
        close(ready[0]);
        close(ready[1]);
        return failed();
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        close(lifeline[1]);
        run_child(options, ready[1], lifeline[0]);
    }
    close(ready[1]);
    close(lifeline[0]);
    std::unique_ptr<LocalServer> server;
    tl::expected<void, Error> is_ready = failed();
    if (child > 0) {
        server.reset(new LocalServer(child, lifeline[1]));
        is_ready = server->wait_until_ready(ready[0]);
    } else {
        close(lifeline[1]);
    }
    close(ready[0]);
    if (!is_ready) return tl::unexpected(is_ready.error());
    return server;
}

tl::expected<void, Error> LocalServer::wait_until_ready(int from) {
    pollfd waiting = {from, POLLIN, 0};
    Report report;

    if (poll(&waiting, 1, ready_timeout_ms) <= 0)
        return tl::unexpected(Error("the server did not get ready on", "this node", ETIMEDOUT));
    if (read(from, &report, sizeof(report)) != sizeof(report))
        return tl::unexpected(Error("the server died on", "this node", ECHILD));
    if (report.failed)
        return tl::unexpected(Error(report.what, report.on, report.number, report.hint, report.why));
    listener_port_ = report.listener_port;
    responder_port_ = report.responder_port;
    exchange_port_ = report.exchange_port;
    return {};
}

// Bounded: a child that does not end in time is killed, and the kernel cleans up.
LocalServer::~LocalServer() {
    close(lifeline_);
    for (int waited = 0; waited < end_timeout_ms; waited += 10) {
        if (waitpid(child_, nullptr, WNOHANG) == child_) return;
        usleep(10000);
    }
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
}

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
//
// Two pipes: on `ready` the child reports once which ports it has, or what failed;
// end-of-file on `lifeline` shows the child that the parent is done or dead.

#include "bench/peer/local_server.hpp"

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

#include "base/try.hpp"
#include "bench/peer/counterpart.hpp"
#include "bench/peer/inbox.hpp"
#include "bench/peer/listening.hpp"
#include "bench/peer/socket_address.hpp"
#include "engine/workload.hpp"
#include "verbs/responder.hpp"

namespace kxfer::bench {

namespace {

constexpr int ready_timeout_ms = 10000;
constexpr int end_timeout_ms = 20000;

// Fits into a pipe, so that a write never waits.
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

// The export of a client after the first.
struct Offer {
    Memory memory;
    Region region;
    Export exported;
    std::unique_ptr<Inbox> inbox;
};

// The objects of the child; destroyed from the last to the first.
struct Served {
    std::unique_ptr<Memory> memory;
    std::unique_ptr<Session> session;
    Listening listening;
    Region region;
    Export exported;
    std::vector<Offer> more;
    std::unique_ptr<Inbox> inbox;
    std::unique_ptr<verbs::VerbsResponder> responder;
    std::unique_ptr<Partner> partner;
    std::unique_ptr<Counterpart> counterpart;
};

tl::expected<void, Error> offer_export(const ServerOptions& options, Served& served) {
    TRY_SET(auto session, Session::open());
    served.session = std::make_unique<Session>(std::move(session));
    TRY_SET(served.listening, listen_at(*served.session, options.address, options.key));

    TRY_SET(auto memory, Memory::create(options.length));
    served.memory = std::make_unique<Memory>(std::move(memory));
    auto region = served.session->add_region(served.memory->bytes(), KXFER_REGION_F_WRITE);
    if (!region) {
        region.error().hint = "raise the limit of locked memory: ulimit -l unlimited";
        return tl::unexpected(region.error());
    }
    served.region = std::move(*region);
    TRY_SET(served.exported, served.session->add_export(served.region, options.export_name,
                                                        served.memory->length(), KXFER_RIGHT_ALL));
    if (options.counterpart) {
        TRY_SET(served.counterpart, Counterpart::start(options.export_name));
    }
    if (!options.messages) return {};
    TRY_SET(served.inbox, Inbox::start(options.export_name, served.memory->bytes()));
    return {};
}

tl::expected<void, Error> offer_more(const ServerOptions& options, Served& served) {
    for (unsigned client = 1; client < options.nr_exports; client++) {
        TRY_SET(auto memory, Memory::create(options.length));
        TRY_SET(auto region, served.session->add_region(memory.bytes(), KXFER_REGION_F_WRITE));
        TRY_SET(auto exported, served.session->add_export(region, client_export(options.export_name, client),
                                                          memory.length(), KXFER_RIGHT_ALL));
        served.more.push_back({std::move(memory), std::move(region), std::move(exported), nullptr});
        if (!options.messages) continue;
        TRY_SET(auto inbox,
                Inbox::start(client_export(options.export_name, client), served.more.back().memory.bytes()));
        served.more.back().inbox = std::move(inbox);
    }
    return {};
}

tl::expected<void, Error> answer_verbs(const ServerOptions& options, Served& served) {
    kxfer_addr address = options.address;
    address.port = 0; // any; the parent learns which
    TRY_SET(served.responder, verbs::VerbsResponder::start(socket_address(address)));
    return {};
}

Report serve(const ServerOptions& options, Served& served) {
    if (options.job)
        if (auto offered = offer_export(options, served); !offered) return failure_report(offered.error());
    if (options.job)
        if (auto offered = offer_more(options, served); !offered) return failure_report(offered.error());
    if (options.verbs)
        if (auto answers = answer_verbs(options, served); !answers) return failure_report(answers.error());
    if (options.partner) {
        PartnerOptions partner = *options.partner;
        partner.path.peer.port = served.listening.port;
        served.partner = std::make_unique<Partner>(partner, *served.session, *served.memory);
    }
    Report report;
    report.listener_port = served.listening.port;
    report.responder_port = served.responder ? served.responder->port() : 0;
    report.exchange_port = served.responder ? served.responder->exchange_port() : 0;
    return report;
}

[[noreturn]] void run_child(const ServerOptions& options, int ready, int lifeline) {
    char byte = 0;
    // Ctrl-C goes to the whole process group; the parent decides when the child ends.
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

std::string client_export(const std::string& name, unsigned client) {
    return client == 0 ? name : fmt::format("{}-{}", name, client + 1);
}

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
        return tl::unexpected(Error("the measuring server ended early", "", ECHILD,
                                    "see: dmesg | tail (out of memory?)",
                                    "its process was killed or crashed"));
    if (report.failed)
        return tl::unexpected(Error(report.what, report.on, report.number, report.hint, report.why));
    listener_port_ = report.listener_port;
    responder_port_ = report.responder_port;
    exchange_port_ = report.exchange_port;
    return {};
}

// Takes a limited time: a child that does not end is killed, and the kernel cleans up.
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

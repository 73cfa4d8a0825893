// SPDX-License-Identifier: MIT
//
// The other side of a comparison if no peer was named: a child process on
// this node that offers an export to the job engine and a responder to the
// verbs engine, sleeps, and ends with the object or with its parent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <kxfer/error.hpp>
#include <linux/kxfer.h>

#include "bench/engines/ping_pong.hpp"
#include <sys/types.h>
#include <tl/expected.hpp>

namespace kxfer::bench {

struct ServerOptions {
    kxfer_addr address = {}; // of this node; with the port to listen on, if there is no listener yet
    std::string key;         // the key that peers have to prove to a new listener, or empty
    std::string export_name;
    uint64_t length = 0;
    unsigned nr_exports = 1; // all of that length; the names after the first end in -2, -3 and so on
    bool job = true;
    bool verbs = true;
    bool messages = false;                 // job: with a mailbox for each export
    bool counterpart = false;              // job: does workloads in the reverse direction
    std::optional<PartnerOptions> partner; // for round trips; its path gets the listener's port
};

// Name of the export of the client with that number, from 0 on.
std::string client_export(const std::string& name, unsigned client);

class LocalServer {
  public:
    // Forks: must be called while the process has one thread and no session.
    static tl::expected<std::unique_ptr<LocalServer>, Error> start(const ServerOptions& options);
    ~LocalServer();

    pid_t process() const { return child_; }
    uint16_t listener_port() const { return listener_port_; }
    uint16_t responder_port() const { return responder_port_; }
    uint16_t exchange_port() const { return exchange_port_; } // of the responder, TCP

  private:
    LocalServer(pid_t child, int lifeline) : child_(child), lifeline_(lifeline) {}
    tl::expected<void, Error> wait_until_ready(int from);

    pid_t child_;
    int lifeline_; // the child ends when this closes
    uint16_t listener_port_ = 0;
    uint16_t responder_port_ = 0;
    uint16_t exchange_port_ = 0;
};

} // namespace kxfer::bench

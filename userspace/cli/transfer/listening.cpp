// SPDX-License-Identifier: MIT
#include "cli/transfer/listening.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/try.hpp"

namespace kxfer::cli {

namespace {

bool same(const kxfer_addr& a, const kxfer_addr& b) {
    return a.family == b.family && a.port == b.port && a.scope_id == b.scope_id &&
           memcmp(a.addr, b.addr, sizeof(a.addr)) == 0;
}

bool has_device(const Session& session) {
    const auto query = session.query();
    return query && query->nr_devices != 0;
}

} // namespace

Expected<std::optional<kxfer_info_listener>> find_listener(const Session& session,
                                                           const kxfer_addr& address) {
    TRY_SET(const auto listeners, session.list<kxfer_info_listener>(KXFER_INFO_LISTENERS));
    const auto found = std::find_if(listeners.begin(), listeners.end(),
                                    [&](const auto& one) { return same(one.addr, address); });
    if (found == listeners.end()) return std::nullopt;
    return *found;
}

Expected<std::optional<kxfer_info_listener>> find_serving_listener(const Session& session,
                                                                   const kxfer_addr& address) {
    auto found = find_listener(session, address);
    if (!found || *found) return found;
    kxfer_addr every = {};
    every.family = address.family;
    every.port = address.port;
    return find_listener(session, every);
}

Failure listen_failure(const Session& session, const kxfer_addr& address, int number) {
    Error error("cannot listen on", to_string(address), number);
    int status = exit_failed;
    switch (error.number) {
    case EPERM:
        error.why = "only an administrator may (CAP_NET_ADMIN)";
        error.hint = "try it as root: sudo kxfer listen ...";
        break;
    case EADDRINUSE:
        error.why = "something listens there, or on that port of every address, already";
        error.hint =
            "see: kxfer listen list; another program: rdma resource show cm_id; or give another port";
        break;
    case EADDRNOTAVAIL:
    case ENODEV:
    case EHOSTUNREACH:
        error.why = "no RDMA device of this node has that address";
        error.hint = "see: kxfer device list, ip addr";
        if (has_device(session)) break;
        error.why = "this node has no RDMA device";
        error.hint = "soft RoCE needs only a network interface: rdma link add rxe0 type rxe netdev eth0";
        status = exit_no_device;
        break;
    case ENOKEY:
        error.why = "this user has no such key in the kernel's keyrings";
        error.hint = "kxfer key add NAME FILE, as the user who listens; see: kxfer key list";
        break;
    case EKEYREJECTED:
        error.why = "the secret is shorter than 16 bytes";
        error.hint = "make another: (umask 077; head -c 32 /dev/urandom > FILE)";
        break;
    case EDQUOT:
        error.hint = "the node has as many listeners as it may; see: kxfer listen list";
        break;
    case EACCES:
        error.why = "outside the initial network namespace a listener needs a key";
        error.hint = "--key NAME; see: kxfer key add --help";
        break;
    case EOPNOTSUPP:
        error.why = "outside the initial network namespace no listener outlives its program, and siw, and "
                    "rxe before Linux 7.2, have none";
        error.hint = "kxfer serve --key NAME, or in the initial one: nsenter -t 1 -n kxfer ...";
        break;
    default:
        break;
    }
    return {std::move(error), status};
}

} // namespace kxfer::cli

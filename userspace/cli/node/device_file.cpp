// SPDX-License-Identifier: MIT
#include "cli/node/device_file.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/try.hpp"
#include "cli/output/record.hpp"

namespace kxfer::cli {

namespace {

Failure open_failure(Error error) {
    int status = exit_failed;
    switch (error.number) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
        error.why = "the module is not loaded";
        error.hint = "try: modprobe kxfer (or, from a build: insmod kxfer.ko); `kxfer doctor` tells more";
        status = exit_no_device;
        break;
    case EACCES:
    case EPERM:
        error.why = "this user may not use the device";
        error.hint = "the group that may is commonly rdma: usermod -aG rdma USER, and log in again; "
                     "see: ls -l " KXFER_DEVICE_PATH;
        break;
    case EPROTONOSUPPORT:
        error.why = "the module speaks another version than this tool";
        error.hint = "install module and tool of one version; see: kxfer --version, modinfo kxfer";
        break;
    case EMFILE:
        error.hint = "close some: fuser -v " KXFER_DEVICE_PATH
                     "; or raise /sys/module/kxfer/parameters/max_sessions_per_uid";
        break;
    case ENOTTY:
        error.why = "it is not the device of kxfer";
        break;
    default:
        break;
    }
    return {std::move(error), status};
}

} // namespace

tl::expected<Session, Failure> open_session() {
    auto session = Session::open();
    if (!session) return tl::make_unexpected(open_failure(std::move(session.error())));
    return std::move(*session);
}

tl::expected<Session, Failure> open_session_with_device() {
    auto session = open_session();
    if (!session) return session;
    TRY_SET(const auto query, session->query());
    if (query.nr_devices == 0)
        return failed(
            Error("no RDMA device", "", ENODEV,
                  "soft RoCE needs only a network interface: rdma link add rxe0 type rxe netdev eth0",
                  "the module has found none on this node"),
            exit_no_device);
    return session;
}

Error pin_error(Error error, uint64_t bytes) {
    rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (error.number == ENOMEM && limit.rlim_cur < bytes) {
        error.why = fmt::format("this user may lock {} of memory", human_bytes(limit.rlim_cur));
        error.hint =
            "raise it: ulimit -l KIB, or memlock in /etc/security/limits.d/, LimitMEMLOCK= for a service";
    } else if (error.number == ENOMEM) {
        error.hint = "free memory: see free -m";
    } else if (error.number == EDQUOT) {
        error.hint = "a limit of the module is reached; see: kxfer stat";
    }
    return error;
}

} // namespace kxfer::cli

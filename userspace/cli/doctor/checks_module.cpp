// SPDX-License-Identifier: MIT
#include "cli/doctor/checks.hpp"

#include <algorithm>
#include <cerrno>

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

std::string group_name(gid_t gid) {
    const group* entry = getgrgid(gid);
    return entry ? entry->gr_name : std::to_string(gid);
}

std::string user_name(uid_t uid) {
    const passwd* entry = getpwuid(uid);
    return entry ? entry->pw_name : std::to_string(uid);
}

std::vector<gid_t> own_groups() {
    std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
    groups.resize(
        static_cast<size_t>(std::max(getgroups(static_cast<int>(groups.size()), groups.data()), 0)));
    groups.push_back(getegid());
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
}

// Whether modprobe would find the module for the running kernel.
bool is_installed(const std::string& module) {
    utsname name = {};
    std::error_code error;
    if (uname(&name) != 0) return false;
    const std::filesystem::path root = std::string("/lib/modules/") + name.release;
    for (const char* place : {"updates", "updates/dkms", "extra", "kernel/drivers/infiniband/ulp/kxfer"})
        for (const char* suffix : {".ko", ".ko.xz", ".ko.zst"})
            if (std::filesystem::exists(root / place / (module + suffix), error)) return true;
    return false;
}

Check module_check(const Patient& patient) {
    const std::string tool = kxfer_library_version();
    if (!patient.module_loaded())
        return {"module", Health::mend, "kxfer.ko is not loaded",
                is_installed("kxfer") ? "modprobe kxfer"
                                      : "install it for this kernel (make install), then: modprobe kxfer"};
    if (!patient.query)
        return {"module", Health::hint, "loaded, but it cannot be asked: " + patient.session_failure.reason(),
                patient.session_failure.number == EPROTONOSUPPORT
                    ? "install module and tool of one version, then: rmmod kxfer; modprobe kxfer"
                    : "see the node below"};
    const std::string module = text_of(patient.query->version);
    if (patient.query->abi != KXFER_ABI || module != tool)
        return {"module", patient.query->abi != KXFER_ABI ? Health::mend : Health::hint,
                fmt::format("loaded, version {} (ABI {}); this tool is {} (ABI {})", module,
                            patient.query->abi, tool, KXFER_ABI),
                "install module and tool of one version, then: rmmod kxfer; modprobe kxfer"};
    return {"module", Health::ok, fmt::format("kxfer.ko {} is loaded, the tool's own version", module), ""};
}

// A node that only transfers needs no kxfer_bench.ko. Loading is not tried: a check changes nothing.
Check engine_check() {
    const std::string name = "engine kverbs";
    if (access("/sys/module/kxfer_bench", F_OK) == 0)
        return {name, Health::ok, "kxfer_bench.ko is loaded", ""};
    if (is_installed("kxfer_bench"))
        return {name, Health::ok, "kxfer_bench.ko is not loaded; the first measurement loads it", ""};
    return {name, Health::hint, "kxfer_bench.ko is not loaded: bench, compare and sweep have no kverbs",
            "install it for this kernel (make install), or from a build: insmod kxfer_bench.ko"};
}

Check node_check(const Patient& patient) {
    struct stat node = {};
    const std::string name = std::string("node ") + KXFER_DEVICE_PATH;
    if (stat(KXFER_DEVICE_PATH, &node) != 0)
        return {name, Health::mend, "it does not exist",
                patient.module_loaded()
                    ? "is udev (or devtmpfs) at work? see: ls -l /dev/kxfer /sys/class/misc"
                    : "load the module first"};
    const std::string who = fmt::format("mode {:04o}, {}:{}", node.st_mode & 07777, user_name(node.st_uid),
                                        group_name(node.st_gid));
    if (!S_ISCHR(node.st_mode))
        return {name, Health::mend, "it is not a device: " + who, "rm it, reload the module"};
    if (access(KXFER_DEVICE_PATH, R_OK | W_OK) == 0)
        return {name, Health::ok, who + "; this user may use it", ""};
    const bool by_group = (node.st_mode & 0060) == 0060;
    const std::string join = fmt::format("usermod -aG {} {}, then log in again",
                                         by_group ? group_name(node.st_gid) : "rdma", user_name(geteuid()));
    return {
        name, Health::mend, who + "; this user may not use it",
        by_group
            ? join
            : "install the udev rule (make install) or: chgrp rdma /dev/kxfer; chmod 660 /dev/kxfer; then " +
                  join};
}

Check user_check(const Patient&) {
    std::vector<std::string> names;
    for (const gid_t gid : own_groups()) names.push_back(group_name(gid));
    return {"user", Health::ok,
            fmt::format("{} (uid {}), groups {}", user_name(geteuid()), geteuid(), fmt::join(names, ", ")),
            ""};
}

} // namespace

bool Patient::module_loaded() const { return session.has_value() || access("/sys/module/kxfer", F_OK) == 0; }

Patient examine() {
    Patient patient;
    auto session = Session::open();
    if (session) {
        patient.session.emplace(std::move(*session));
        auto query = patient.session->query();
        if (query)
            patient.query = *query;
        else
            patient.session_failure = query.error();
    } else {
        patient.session_failure = session.error();
    }
    auto node = find_devices();
    if (node)
        patient.node = std::move(*node);
    else
        patient.node_failure = node.error();
    return patient;
}

std::vector<Check> module_checks(const Patient& patient) {
    std::vector<Check> checks = {module_check(patient)};
    if (patient.module_loaded()) checks.push_back(engine_check());
    checks.push_back(node_check(patient));
    checks.push_back(user_check(patient));
    return checks;
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/doctor/checks.hpp"

#include <array>
#include <cerrno>
#include <fstream>

#include <filesystem>
#include <fmt/format.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/node/privilege.hpp"
#include "cli/output/record.hpp"
#include "engine/syscall_counter.hpp"

namespace kxfer::cli {

namespace {

// A comparison with its default sizes needs that much.
constexpr uint64_t comfortable_memlock = 64ULL << 20;
constexpr uint64_t tight_memlock = 1ULL << 20;

std::string read_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

Check kernel_check() {
    utsname name = {};
    uname(&name);
    return {"kernel", Health::ok, fmt::format("{} {}", name.release, name.machine), ""};
}

Check memlock_check() {
    rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const std::string mend =
        "ulimit -l unlimited, or memlock in /etc/security/limits.d/, LimitMEMLOCK= of a service";
    if (has_capability(CAP_IPC_LOCK))
        return {"lockable memory", Health::ok, "no limit for this user (CAP_IPC_LOCK)", ""};
    if (limit.rlim_cur == RLIM_INFINITY) return {"lockable memory", Health::ok, "no limit", ""};
    const std::string finding =
        human_bytes(limit.rlim_cur) + " for this user: regions cannot be larger in sum";
    if (limit.rlim_cur < tight_memlock) return {"lockable memory", Health::mend, finding, mend};
    if (limit.rlim_cur < comfortable_memlock) return {"lockable memory", Health::hint, finding, mend};
    return {"lockable memory", Health::ok, finding, ""};
}

enum class Answer { yes, no, unknown };

// The variable's value follows four bytes of attributes.
Answer secure_boot() {
    std::ifstream file("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                       std::ios::binary);
    std::array<char, 5> bytes = {};
    std::error_code error;
    if (!std::filesystem::exists("/sys/firmware/efi", error)) return Answer::no;
    if (!file.read(bytes.data(), bytes.size())) return Answer::unknown;
    return bytes[4] ? Answer::yes : Answer::no;
}

// "none [integrity] confidentiality": the mode in brackets is in force.
std::string lockdown_mode() {
    const std::string line = read_line("/sys/kernel/security/lockdown");
    const size_t from = line.find('['), to = line.find(']');
    return from == std::string::npos || to == std::string::npos ? "" : line.substr(from + 1, to - from - 1);
}

// Unsigned modules are refused under Secure Boot's lockdown or sig_enforce.
Check signing_check(const Patient& patient) {
    const Answer boot = secure_boot();
    const std::string lockdown = lockdown_mode();
    const bool enforced = read_line("/sys/module/module/parameters/sig_enforce") == "Y";
    const bool locked = !lockdown.empty() && lockdown != "none";
    const std::string finding =
        fmt::format("Secure Boot {}, lockdown {}, signatures {}",
                    boot == Answer::yes  ? "on"
                    : boot == Answer::no ? "off"
                                         : "unknown",
                    lockdown.empty() ? "unknown or off" : lockdown, enforced ? "enforced" : "not enforced");

    if ((locked || enforced) && !patient.module_loaded())
        return {"module signing", Health::mend, finding + ": an unsigned kxfer.ko is refused",
                "sign kxfer.ko with a key that this machine trusts: mokutil --import KEY, reboot, "
                "scripts/sign-file of the kernel headers; or switch Secure Boot off"};
    return {"module signing", Health::ok, finding, ""};
}

// Both sides are links named by the namespace's number.
Answer in_initial_namespace() {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/ns/net", error);
    const auto initial = std::filesystem::read_symlink("/proc/1/ns/net", error);
    if (error) return Answer::unknown;
    return own == initial ? Answer::yes : Answer::no;
}

Check namespace_check() {
    const std::string name = "network namespace";
    switch (in_initial_namespace()) {
    case Answer::yes:
        return {name, Health::ok, "the initial one", ""};
    case Answer::no:
        return {name, Health::hint,
                "not the initial one: addresses, listeners and names are those of this one",
                "listeners here need --key and end with their program (kxfer serve); siw, and rxe before "
                "Linux 7.2, work in the initial one only: nsenter -t 1 -n kxfer ..."};
    case Answer::unknown:
        break;
    }
    return {name, Health::hint, "not known: /proc/1/ns/net needs root", "ask as root: kxfer doctor"};
}

Check node_file_check(const std::string& name, const std::string& path, const std::string& module) {
    if (access(path.c_str(), R_OK | W_OK) == 0)
        return {name, Health::ok, path + ": this user may use it", ""};
    if (errno == ENOENT)
        return {name, Health::hint, path + " does not exist: `compare` cannot", "modprobe " + module};
    return {name, Health::hint, path + ": this user may not use it: `compare` cannot", "see: ls -l " + path};
}

Check counting_check() {
    const auto counter = bench::SyscallCounter::open();
    if (counter) return {"counting system calls", Health::ok, "this user may", ""};
    return {"counting system calls", Health::hint, "this user may not: `compare` shows - for them",
            counter.error().hint};
}

} // namespace

std::vector<Check> system_checks(const Patient& patient) {
    return {kernel_check(),
            signing_check(patient),
            memlock_check(),
            namespace_check(),
            node_file_check("user-space rdma_cm", "/dev/infiniband/rdma_cm", "rdma_ucm"),
            counting_check()};
}

} // namespace kxfer::cli

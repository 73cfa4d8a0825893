// SPDX-License-Identifier: MIT
//
// The checks of `kxfer doctor`. A check always gives a finding; a problem comes
// with the command that fixes it. Checks only look: they change nothing
// and load nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/node/devices.hpp"

namespace kxfer::cli {

enum class Health {
    ok,
    hint, // works, but could be better
    mend, // something does not work
};

struct Check {
    std::string name;
    Health health = Health::ok;
    std::string finding;
    std::string mend; // a command or advice; empty if all is well
};

// One thing that a device can or cannot do for kxfer's users.
struct Capability {
    std::string device;
    std::string name;
    bool available = false;
    std::string remark; // a limit, or why it is missing
};

// Facts that are found once and used by several checks.
struct Patient {
    std::optional<Session> session;
    std::optional<kxfer_query> query;
    Error session_failure; // why there is no session
    NodeFacts node;
    Error node_failure; // why the node's devices cannot be listed

    bool module_loaded() const;
};

Patient examine();

// Checks of the module, its node in /dev and the caller's rights.
std::vector<Check> module_checks(const Patient& patient);
// Checks of the kernel, its limits and rights.
std::vector<Check> system_checks(const Patient& patient);
// Checks of devices, ports, addresses and listeners.
std::vector<Check> device_checks(const Patient& patient);
std::vector<Capability> capabilities(const Patient& patient);
// Of the capabilities: how long a message of jobs is, and by its length what it waits for.
std::string messages_remark(const Patient& patient, const DeviceFacts& device);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Where a result comes from, as fields of its record, the same for all commands
// that measure.
#pragma once

#include <optional>
#include <string>

#include "bench/conditions.hpp"
#include "bench/counterpart_wire.hpp"
#include "bench/environment.hpp"
#include "bench/workload.hpp"
#include "cli/devices.hpp"
#include "cli/record.hpp"

namespace kxfer::cli {

struct Provenance {
    bench::Environment environment;
    DeviceFacts device;
    std::string module_version; // empty: nothing went through the module
    std::string peer;
    // That was used; of a GID type that is not known those of the port are told.
    bench::Connection connection = {};
    std::optional<bench::PeerNode> peer_node = {}; // if another node tells
};

void add_provenance(Record& record, const Provenance& from);
// Steal and frequencies over the time of measuring.
void add_conditions(Record& record, const bench::Conditions& conditions);

// What it took to register memory, for JSON and for people.
void add_registration(Record& record, const bench::Registration& cost);
// "local 410.2 us, grant 520.9 us of 256 KiB"
std::string registration_text(const bench::Registration& cost);

// Active MTU of the first active port; 0: not known.
uint32_t mtu_of(const DeviceFacts& device);
std::string virtual_machine_text(const bench::Environment& environment);

} // namespace kxfer::cli

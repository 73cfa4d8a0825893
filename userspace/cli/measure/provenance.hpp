// SPDX-License-Identifier: MIT
//
// The origin of a result, as fields of its record, the same for all commands
// that measure.
#pragma once

#include <optional>
#include <string>

#include "bench/peer/counterpart_wire.hpp"
#include "bench/run/conditions.hpp"
#include "bench/run/environment.hpp"
#include "cli/node/devices.hpp"
#include "cli/output/record.hpp"
#include "engine/workload.hpp"

namespace kxfer::cli {

struct Provenance {
    bench::Environment environment;
    DeviceFacts device;
    std::string module_version; // empty: nothing went through the module
    std::string peer;
    // The connection used; if its GID type is unknown, the report has those of the port.
    bench::Connection connection = {};
    std::optional<bench::PeerNode> peer_node = {}; // if another node reports it
};

void add_provenance(Record& record, const Provenance& from);
// Steal and frequencies over the time of measuring.
void add_conditions(Record& record, const bench::Conditions& conditions);

// The cost of registering memory, for JSON and for people.
void add_registration(Record& record, const bench::Registration& cost);
// "local 410.2 us, grant 520.9 us of 256 KiB"
std::string registration_text(const bench::Registration& cost);

// Active MTU of the first active port; 0: unknown.
uint32_t mtu_of(const DeviceFacts& device);
std::string virtual_machine_text(const bench::Environment& environment);

} // namespace kxfer::cli

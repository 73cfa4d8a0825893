// SPDX-License-Identifier: MIT
//
// The setup before a measurement, the same for `compare` and `bench`: a peer or a
// server on this node, local memory, and engines that are connected to the former
// and have registered the latter.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "bench/peer/local_server.hpp"
#include "bench/peer/requester.hpp"
#include "bench/run/footprint.hpp"
#include "cli/command/command.hpp"
#include "cli/command/peer.hpp"
#include "cli/measure/verbs_options.hpp"
#include "cli/node/devices.hpp"
#include "engine/engine.hpp"

namespace kxfer::cli {

// Limit of the local memory, and of that at the peer.
constexpr uint64_t max_rig_memory = 256ULL << 20;

// Limit of operations per completion: as many as can be in flight.
constexpr unsigned max_signal = 256;

struct RigOptions {
    CommonOptions common;
    Peer peer;
    bool peer_given = false;
    std::vector<std::string> engines;
    bool engines_given = false; // false: an engine that cannot run is left out
    std::string context = "polled";
    std::string poll = "adaptive";
    std::string inlining = "auto"; // short WRITEs of verbs and kverbs: auto or never
    std::string export_name;
    bool export_given = false;
    std::string signal = "each";
    std::string memory = "lkey";
    std::string invalidate = "deferred";
    std::string cq; // CQ of kverbs' dedicated connection: own or pool; empty: --cq was not given
    bool ring = false;
    bool stored = false; // messages of jobs are done when they are in the mailbox, or received
    unsigned nr_clients = 1;
    unsigned client = 0;                       // number of the client that this process is
    std::vector<unsigned> cpus;                // CPUs that clients are pinned to in turn, or none
    bool writes = false;                       // some operation does more than read
    bool verify = false;                       // verify READs too, which overwrites a peer's export
    bool atomics = false;                      // some operation is an atomic
    bool messages = false;                     // some operation takes a receive of the peer's
    bool bidirectional = false;                // the peer does the same in the reverse direction
    std::optional<bench::Workload> round_trip; // round trips instead of operations
    VerbsOptions verbs;

    bool wants(const std::string& engine) const;
    bool wants_module() const { return wants("job") || wants("kverbs"); }
    bool signal_batch() const { return signal == "batch"; }
    // Operations per completion; 0: a batch.
    unsigned signal_number() const;
    // kverbs uses a dedicated connection for everything.
    bool own_connection() const { return nr_clients > 1 || !cq.empty() || context == "direct"; }
    bool inline_writes() const { return inlining == "auto"; }
};

// --context, --memory, --invalidate, --inline, --cq, --poll, --ring, --stored, --signal, --export, the
// options of verbs and the common options.
void add_rig_options(CLI::App& command, RigOptions& options);

// Fails if options exclude each other, and names them.
tl::expected<void, Failure> check_rig(const RigOptions& options);
// Fails for options that need an engine of the module, if there is none.
tl::expected<void, Failure> check_of_module(const RigOptions& options);
// If kverbs, the floor, cannot be measured and engines were not chosen, leaves it out
// and returns the reason; otherwise empty.
tl::expected<std::string, Failure> check_floor(RigOptions& options);
// Version of the module; empty if no engine needs it.
tl::expected<std::string, Failure> module_version(const RigOptions& options);

// Operations handed in at once. wanted 0: a quarter of the depth, at most 32.
unsigned batch_of(const RigOptions& options, unsigned depth, unsigned wanted);

struct Place {
    kxfer_addr listener = {};
    kxfer_addr responder = {};
    kxfer_addr exchange = {};                   // TCP address of the responder
    std::string export_name;                    // export of the first client
    std::unique_ptr<bench::LocalServer> server; // unless a peer was named
};

// Destroyed from the last to the first.
struct Rig {
    Place place;
    std::unique_ptr<bench::Memory> memory;
    std::unique_ptr<bench::Requester> answering;         // keeps a peer answering round trips
    std::vector<std::unique_ptr<bench::Engine>> engines; // in the order of the columns
    std::vector<verbs::Step> steps;                      // of the connection of verbs

    std::vector<bench::Engine*> pointers() const;
    std::string peer_text(const RigOptions& options) const;
};

// depth, batch: the maximum for the engines. Without a peer it forks: must be called
// while the process has one thread and no session. Raises the limit of locked memory
// if allowed.
tl::expected<Rig, Failure> set_up(const RigOptions& options, uint64_t bytes, unsigned depth, unsigned batch);
// The two halves of set_up(), for connecting engines in several ways. set_up_place(): a rig without
// engines, for all engines wanted. connect_engines(): adds the engines of these options to the rig.
tl::expected<Rig, Failure> set_up_place(const RigOptions& options, uint64_t bytes);
// A rig with engines for another client in its own process, which connects to the same place.
tl::expected<Rig, Failure> set_up_client(const RigOptions& options, const Place& place, uint64_t bytes,
                                         unsigned depth, unsigned batch);
tl::expected<void, Failure> connect_engines(const RigOptions& options, Rig& rig, unsigned depth,
                                            unsigned batch);

// How long a new link to the rig's listener takes, in ns; empty: links in all contexts are up already.
tl::expected<std::optional<double>, Failure> time_link(const RigOptions& options, const Rig& rig);

// A requester to the peer's counterpart for the first client's export.
tl::expected<std::unique_ptr<bench::Requester>, Error> ask_peer(const RigOptions& options, const Rig& rig);

// The peer's node, if a peer was named and its process reports that.
std::optional<bench::PeerNode> find_peer_node(const RigOptions& options, const Rig& rig);

tl::expected<DeviceFacts, Failure> facts_of(const std::string& device);
// What to observe while engines on this device measure.
bench::Surroundings surroundings_of(const Rig& rig, const DeviceFacts& device);

} // namespace kxfer::cli

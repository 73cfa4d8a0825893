// SPDX-License-Identifier: MIT
//
// What stands before anything is measured, the same for `compare` and `bench`: a
// peer or a server on this node, local memory, and engines that are connected with
// one and have registered the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "bench/engine.hpp"
#include "bench/footprint.hpp"
#include "bench/local_server.hpp"
#include "bench/requester.hpp"
#include "cli/command.hpp"
#include "cli/devices.hpp"
#include "cli/peer.hpp"
#include "cli/verbs_options.hpp"

namespace kxfer::cli {

// Most local memory, and as much at the peer.
constexpr uint64_t max_rig_memory = 256ULL << 20;

// Most operations that one completion stands for: as many as can be in flight.
constexpr unsigned max_signal = 256;

struct RigOptions {
    CommonOptions common;
    Peer peer;
    bool peer_given = false;
    std::vector<std::string> engines;
    bool engines_given = false; // else one that cannot run is left out
    std::string context = "polled";
    std::string poll = "adaptive";
    std::string inlining = "auto"; // of short WRITEs by verbs and kverbs: auto or never
    std::string export_name;
    bool export_given = false;
    std::string signal = "each";
    std::string memory = "lkey";
    std::string invalidate = "deferred";
    std::string cq; // own or pool, of a connection of kverbs' own; empty: it needs none for that
    bool ring = false;
    unsigned nr_clients = 1;
    unsigned client = 0;                       // which of them this process is
    std::vector<unsigned> cpus;                // that they are pinned to in turn, or none
    bool writes = false;                       // some operation does more than read
    bool verify = false;                       // READs too, which overwrites a peer's export
    bool atomics = false;                      // some is an atomic
    bool messages = false;                     // some takes a receive of the peer's
    bool bidirectional = false;                // the peer does the same the other way round
    std::optional<bench::Workload> round_trip; // instead of operations
    VerbsOptions verbs;

    bool wants(const std::string& engine) const;
    bool wants_module() const { return wants("job") || wants("kverbs"); }
    bool signal_batch() const { return signal == "batch"; }
    // Operations that one completion stands for; 0: those of a batch.
    unsigned signal_number() const;
    // kverbs does all on a connection of its own.
    bool own_connection() const { return nr_clients > 1 || !cq.empty() || context == "direct"; }
    bool inline_writes() const { return inlining == "auto"; }
};

// --context, --memory, --invalidate, --inline, --cq, --poll, --ring, --signal, --export, those of verbs
// and the common ones.
void add_rig_options(CLI::App& command, RigOptions& options);

// Names what is asked for that cannot be together.
tl::expected<void, Failure> check_rig(const RigOptions& options);
// Likewise, of what only engines that go through the module have.
tl::expected<void, Failure> check_of_module(const RigOptions& options);
// Unless engines were asked for, the floor (kverbs) is left out where it cannot be
// measured. Returns why, or nothing.
tl::expected<std::string, Failure> check_floor(RigOptions& options);
// Empty if no engine needs the module.
tl::expected<std::string, Failure> module_version(const RigOptions& options);

// Operations handed in at once: as wanted; 0: a quarter of the depth, at most 32.
unsigned batch_of(const RigOptions& options, unsigned depth, unsigned wanted);

// Where the engines connect to.
struct Place {
    kxfer_addr listener = {};
    kxfer_addr responder = {};
    kxfer_addr exchange = {};                   // of the responder, TCP
    std::string export_name;                    // of the first client
    std::unique_ptr<bench::LocalServer> server; // unless a peer was named
};

// Destroyed from the last to the first.
struct Rig {
    Place place;
    std::unique_ptr<bench::Memory> memory;
    std::unique_ptr<bench::Requester> answering; // of round trips: the peer that makes them with this node
    std::vector<std::unique_ptr<bench::Engine>> engines; // in the order of the columns
    std::vector<verbs::Step> steps;                      // of the connection of verbs

    std::vector<bench::Engine*> pointers() const;
    std::string peer_text(const RigOptions& options) const;
};

// depth, batch: the most that will be asked of the engines. Without a peer it forks:
// to be called while the process has one thread and no session. Raises the limit of
// locked memory if it may.
tl::expected<Rig, Failure> set_up(const RigOptions& options, uint64_t bytes, unsigned depth, unsigned batch);
// The two halves of it, for who connects engines in more than one way: a rig without engines,
// for all engines that are wanted; and engines of these options, added to the rig's.
tl::expected<Rig, Failure> set_up_place(const RigOptions& options, uint64_t bytes);
// A rig of another client in a process of its own, which goes to the same place; with engines.
tl::expected<Rig, Failure> set_up_client(const RigOptions& options, const Place& place, uint64_t bytes,
                                         unsigned depth, unsigned batch);
tl::expected<void, Failure> connect_engines(const RigOptions& options, Rig& rig, unsigned depth,
                                            unsigned batch);

// Who asks the peer's process beside the first client's export.
tl::expected<std::unique_ptr<bench::Requester>, Error> ask_peer(const RigOptions& options, const Rig& rig);

// What the peer's node is, if that is another one and its process says so.
std::optional<bench::PeerNode> find_peer_node(const RigOptions& options, const Rig& rig);

tl::expected<DeviceFacts, Failure> facts_of(const std::string& device);
// What is to be looked at while engines on this device measure.
bench::Surroundings surroundings_of(const Rig& rig, const DeviceFacts& device);

} // namespace kxfer::cli

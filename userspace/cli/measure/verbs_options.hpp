// SPDX-License-Identifier: MIT
//
// Options of the engine verbs, the same for `compare` and `bench`: how it connects and waits,
// and what is explained. UD and its Q_Key apply to kverbs, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.hpp"
#include "verbs/engine.hpp"

namespace kxfer::cli {

struct VerbsOptions {
    std::string connect; // empty: the transport decides
    std::string transport = "rc";
    std::optional<uint32_t> qkey;
    std::optional<uint32_t> gid_index;
    uint32_t mtu = 0; // bytes; 0: the port's
    bool explain = false;
    std::string wait = "poll";
    bool timestamps = false; // `bench` only
    std::string local_memory = "host";
    unsigned rnr_retry = 0;
    std::optional<unsigned> min_rnr_timer;

    bool reliable() const { return transport == "rc"; }
    bool by_tcp() const { return connect == "tcp" || !reliable(); }
    bool events() const { return wait == "events"; }
    bool device_memory() const { return local_memory == "dm"; }
};

// --transport, --qkey, --connect, --gid-index, --mtu, --explain, --wait, --local-memory,
// --rnr-retry, --min-rnr-timer.
void add_verbs_options(CLI::App& command, VerbsOptions& options);
// Fails if options exclude each other, and names them. verbs, kverbs: that engine is measured.
tl::expected<void, Failure> check_verbs_options(const VerbsOptions& options, bool verbs, bool kverbs);
void apply(const VerbsOptions& options, verbs::EngineOptions& to);
// If --explain was given, prints each attribute of each step, before anything is measured.
void explain(const VerbsOptions& options, const std::vector<verbs::Step>& steps, Output& out);

} // namespace kxfer::cli

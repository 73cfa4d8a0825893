// SPDX-License-Identifier: MIT
#include "cli/measure/verbs_options.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "cli/command/number.hpp"

namespace kxfer::cli {

namespace {

std::string text_of(const verbs::Step& step) {
    size_t names = 0, values = 0;
    for (const auto& one : step.attributes) {
        names = std::max(names, one.name.size());
        values = std::max(values, one.value.size());
    }
    std::string text = step.from.empty() ? step.of : fmt::format("{} {} -> {}", step.of, step.from, step.to);
    for (const auto& one : step.attributes)
        text += fmt::format("\n  {:<{}}  {:<{}}  {}", one.name, names, one.value, values, one.meaning);
    return text;
}

Record record_of(const verbs::Step& step) {
    Table rows;
    for (const auto& one : step.attributes)
        rows.push_back(Record()
                           .add("name", Value(one.name))
                           .add("value", Value(one.value))
                           .add("meaning", Value(one.meaning)));
    return Record()
        .add("event", "qp_step")
        .add("of", Value(step.of))
        .add("from", Value(step.from))
        .add("to", Value(step.to))
        .add("attributes", Value(rows));
}

} // namespace

void add_verbs_options(CLI::App& command, VerbsOptions& options) {
    command
        .add_option("--connect", options.connect,
                    "how verbs connects: rdma-cm (default), or tcp: QPN, PSN, GID and rkey are "
                    "exchanged over TCP and the QP is moved to RTS step by step")
        ->check(CLI::IsMember({"rdma-cm", "tcp"}));
    command
        .add_option("--transport", options.transport,
                    "of verbs: rc (default), or by TCP: uc (WRITE and messages), ud (messages of one "
                    "packet; engine kverbs can use it too, by rdma_cm), which lose without telling")
        ->check(CLI::IsMember({"rc", "uc", "ud"}));
    command
        .add_option("--qkey", options.qkey,
                    "Q_Key that messages of --transport ud carry (default: what the peer told)")
        ->type_name("N")
        ->check(from_to(0U, 0x7fffffffU));
    command
        .add_option("--gid-index", options.gid_index,
                    "entry of the GID table to send from, with --connect tcp (default: that of the "
                    "own address, RoCE v2)")
        ->type_name("N")
        ->check(from_to(0, 255));
    command.add_option("--mtu", options.mtu, "path MTU in bytes, with --connect tcp (default: the port's)")
        ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
    command.add_flag("--explain", options.explain,
                     "show each attribute that is set on the way to RTS, with --connect tcp");
    command
        .add_option("--wait", options.wait,
                    "how verbs waits for completions: poll (default), or events: it sleeps")
        ->check(CLI::IsMember({"poll", "events"}));
    command
        .add_option("--local-memory", options.local_memory,
                    "where verbs has local memory: host (default), or dm: on the device, if it has any")
        ->check(CLI::IsMember({"host", "dm"}));
    command
        .add_option("--rnr-retry", options.rnr_retry, "RNR retries of engine verbs (default 0; 7: unlimited)")
        ->type_name("N")
        ->check(from_to(0, 7));
    command
        .add_option("--min-rnr-timer", options.min_rnr_timer,
                    "IB code (0 to 31) of the delay that the peer asks for in an RNR NAK, with --connect tcp "
                    "(default 12: 0.64 ms)")
        ->type_name("N")
        ->check(from_to(0, 31));
}

tl::expected<void, Failure> check_verbs_options(const VerbsOptions& options, bool verbs, bool kverbs) {
    const bool of_ud = options.transport == "ud";
    const bool of_tcp = options.gid_index || options.mtu || options.explain || options.min_rnr_timer;
    const bool of_verbs = of_tcp || options.connect == "tcp" || options.transport == "uc" ||
                          options.events() || options.rnr_retry || options.timestamps ||
                          options.device_memory();
    const bool of_both = of_ud || options.qkey;
    if (!verbs && (of_verbs || (of_both && !kverbs)))
        return wrong_usage("there are options of a connection of user-space verbs, which are not measured",
                           "use --engine verbs");
    if (verbs && options.connect == "rdma-cm" && !options.reliable())
        return wrong_usage("rdma_cm connects RC alone here", "use --transport uc or ud with --connect tcp");
    if (options.qkey && !of_ud) return wrong_usage("only UD has a Q_Key", "use --qkey with --transport ud");
    if (of_tcp && !options.by_tcp())
        return wrong_usage("rdma_cm chooses GID, MTU and RNR timer and moves the QP by itself",
                           "use --gid-index, --mtu, --min-rnr-timer and --explain with --connect tcp");
    return {};
}

void apply(const VerbsOptions& options, verbs::EngineOptions& to) {
    to.connect = options.by_tcp() ? verbs::Connect::tcp : verbs::Connect::rdma_cm;
    to.transport = options.transport == "ud"   ? verbs::Transport::ud
                   : options.transport == "uc" ? verbs::Transport::uc
                                               : verbs::Transport::rc;
    to.qkey = options.qkey;
    to.gid_index = options.gid_index;
    to.events = options.events();
    to.timestamps = options.timestamps;
    to.device_memory = options.device_memory();
    to.patience.rnr_retry = static_cast<uint8_t>(options.rnr_retry);
    if (options.min_rnr_timer) to.min_rnr_timer = static_cast<uint8_t>(*options.min_rnr_timer);
    for (const auto mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
        if (options.mtu == 128U << mtu) to.mtu = mtu;
}

void explain(const VerbsOptions& options, const std::vector<verbs::Step>& steps, Output& out) {
    if (!options.explain) return;
    for (const auto& step : steps) out.event(record_of(step), text_of(step));
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer listen list|add|del: the addresses on which this node accepts links.
// A listener that `add` made belongs to the node until `del` or rmmod.

#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/peer.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/keys.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/listening.hpp"

namespace kxfer::cli {

namespace {

struct ListenOptions {
    Peer address;
    bool any_port = false;
    KeyChoice keys;
    PatienceOptions patience;
};

Words flag_words(uint32_t flags) {
    Words words;
    if (flags & KXFER_LISTEN_F_KEEP) words.emplace_back("kept");
    if (flags & KXFER_LISTEN_F_ANY_PORT) words.emplace_back("any-port");
    return words;
}

Record row_of(const kxfer_info_listener& listener) {
    return Record()
        .add("id", listener.id)
        .add("address", to_string(listener.addr))
        .add("device", text_of(listener.device))
        .add("active", listener.active != 0)
        .add("keys", listener.nr_keys)
        .add("flags", flag_words(listener.flags))
        .add("silence_ns", Nanoseconds{listener.silence_ms * 1e6}, Show::everywhere, "silence")
        .add("ack_timeout", listener.ack_timeout, Show::json_only)
        .add("accepted", listener.nr_accepted)
        .add("refused", listener.nr_refused);
}

Result run_list(const ListenOptions&, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto listeners, session.list<kxfer_info_listener>(KXFER_INFO_LISTENERS));
    Table rows;
    size_t keyless = 0;
    for (const kxfer_info_listener& listener : listeners) {
        rows.push_back(row_of(listener));
        keyless += listener.nr_keys == 0;
    }
    if (keyless) context.out.note(fmt::format("{} without a key: {}", keyless, believes_all));
    context.out.table(rows, "nothing listens on this node; try: kxfer listen add ADDRESS");
    return exit_ok;
}

Result run_add(const ListenOptions& options, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto addresses, resolve(options.address));
    const uint32_t flags = KXFER_LISTEN_F_KEEP | (options.any_port ? KXFER_LISTEN_F_ANY_PORT : 0U);
    TRY(check_key_choice(options.keys, addresses.front()));
    std::vector<kxfer_key_name> keys(options.keys.names.size());
    for (size_t i = 0; i < keys.size(); i++)
        memcpy(keys[i].name, options.keys.names[i].data(), options.keys.names[i].size());
    kxfer_listen_add args = {};
    args.flags = flags;
    args.addr = addresses.front();
    args.keys = keys.empty() ? 0 : reinterpret_cast<uintptr_t>(keys.data());
    args.nr_keys = static_cast<uint32_t>(keys.size());
    args.silence_ms = static_cast<uint32_t>(options.patience.patience().silence.count());
    args.ack_timeout = options.patience.ack_timeout;
    const int ret = kxfer_listener_add(session.get(), &args);
    if (ret < 0) return tl::make_unexpected(listen_failure(session, addresses.front(), ret));
    if (options.keys.names.empty()) context.out.note(std::string("without a key ") + believes_all);
    if (options.any_port)
        context.out.note("any program of any node that reaches this address may now pass for a kernel");
    context.out.record(Record().add("listening", to_string(addresses.front())).add("id", args.listener));
    return exit_ok;
}

Result run_del(const ListenOptions& options, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto addresses, resolve(options.address));
    TRY_SET(const auto found, find_listener(session, addresses.front()));
    if (!found)
        return failed(Error("cannot stop listening on", to_string(addresses.front()), ENOENT,
                            "see: kxfer listen list", "nothing listens there"));
    const int ret = kxfer_listener_destroy(session.get(), found->id);
    if (ret < 0) {
        Failure failure = listen_failure(session, addresses.front(), ret);
        failure.error.what = "cannot stop listening on";
        return tl::make_unexpected(failure);
    }
    context.out.record(Record().add("stopped", to_string(addresses.front())).add("id", found->id));
    return exit_ok;
}

} // namespace

void setup_listen(CLI::App& app, Program& program) {
    const auto options = std::make_shared<ListenOptions>();
    CLI::App& listen = add_command(app, "listen", "the addresses on which this node accepts links",
                                   "kxfer listen add 10.77.0.1");
    listen.require_subcommand(1);

    CLI::App& list = add_command(listen, "list", "all listeners of this node", "kxfer listen list");
    on_run(list, program, options, run_list);

    CLI::App& add = add_command(listen, "add", "listen until `del` or removal of the module",
                                "kxfer listen add 10.77.0.1");
    add_peer_option(add, "address", options->address, "own ADDR[:PORT] (default port 7625)")->required();
    add.add_flag("--any-port", options->any_port,
                 "accept links from any source port: any user who can open a QP may then pass for a kernel");
    add_key_choice(add, options->keys);
    add_patience_options(add, options->patience);
    on_run(add, program, options, run_add);

    CLI::App& del = add_command(listen, "del", "stop listening; links stay", "kxfer listen del 10.77.0.1");
    add_peer_option(del, "address", options->address, "ADDR[:PORT] as it was added")->required();
    on_run(del, program, options, run_del);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer serve SOURCE...: exports files and memory until a signal comes.
//
// The process sleeps while peers read and write: their transfers go through the
// kernel alone. It wakes when a peer announces new content, to hash, store and
// publish it (see served.hpp).

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/try.hpp"
#include "bench/engines/rules.hpp"
#include "bench/peer/counterpart.hpp"
#include "bench/peer/inbox.hpp"
#include "bench/peer/socket_address.hpp"
#include "cli/command/command.hpp"
#include "cli/folder/folder_server.hpp"
#include "cli/line/connect.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/node/keys.hpp"
#include "cli/node/notify.hpp"
#include "cli/node/sha256.hpp"
#include "cli/transfer/allow.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/listening.hpp"
#include "cli/transfer/served.hpp"
#include "verbs/responder.hpp"

namespace kxfer::cli {

namespace {

struct ServeOptions {
    std::vector<Source> sources;
    std::vector<Source> folders; // the file of each is a folder
    Peer listen;
    bool has_listen = false;
    KeyChoice keys;
    bool writable = false;
    bool atomic = false;
    bool verbs = false;
    bool mailbox = false;
    bool bench = false;
    std::optional<uint64_t> cookie;
    std::vector<kxfer_rule> rules;

    uint32_t rights() const {
        return KXFER_RIGHT_READ | (writable ? KXFER_RIGHT_WRITE : 0U) | (atomic ? KXFER_RIGHT_ATOMIC : 0U);
    }
    const char* rights_text() const {
        if (atomic) return writable ? "read, write and atomics" : "read and atomics";
        return writable ? "read and write" : "read only";
    }
};

// By the cookie `kxfer put` tells the exports of this process from earlier ones of the same name.
uint64_t random_cookie() {
    std::random_device random;
    return uint64_t(random()) << 32 | random();
}

tl::expected<std::vector<Served>, Failure> make_exports(Session& session, const ServeOptions& options,
                                                        const Output& out) {
    const std::vector<kxfer_rule> rules = bench::granting(options.rules, options.rights());
    const uint64_t cookie = options.cookie.value_or(random_cookie());
    std::vector<Served> exports;
    for (const Source& source : options.sources) {
        TRY_SET(auto served, Served::make(session, source, options.rights(), rules, cookie, out));
        exports.push_back(std::move(served));
    }
    return exports;
}

void report_export(const Served& served, const ServeOptions& options, Output& out) {
    const bool known = served.content().generation != 0;
    Record record;
    record.add("event", "export")
        .add("name", served.source().name)
        .add("length", Bytes{served.length()})
        .add("writable", options.writable)
        .add("atomic", options.atomic)
        .add("generation", served.content().generation)
        .add("sha256", known ? Value(hex(served.content().sha256)) : Value(None{}));
    std::string text = fmt::format("serving {}, {}, {}", served.source().name, human_bytes(served.length()),
                                   options.rights_text());
    if (known) text += ", sha256 " + hex(served.content().sha256);
    out.event(record, text);
}

// An existing listener keeps its keys: one without keys would admit peers that --key has to exclude.
tl::expected<void, Failure> check_present(const KeyChoice& keys, const kxfer_info_listener& present) {
    if (keys.names.empty() || present.nr_keys != 0) return {};
    return failed(Error("cannot use the listener on", to_string(present.addr), EEXIST,
                        fmt::format("kxfer listen del {}, or leave --key out", to_string(present.addr)),
                        "it takes links without a key"));
}

// The owner of a listener: this process; the node, until `listen del`; or another process, with
// which it ends.
enum class Owner { self, node, other };

Owner owner_of(const kxfer_info_listener& listener) {
    return listener.flags & KXFER_LISTEN_F_KEEP ? Owner::node : Owner::other;
}

void report_listener(const kxfer_addr& address, Owner owner, uint64_t keys, Output& out) {
    Record record;
    record.add("event", "listen")
        .add("address", to_string(address))
        .add("own", owner == Owner::self)
        .add("kept", owner == Owner::node)
        .add("keys", keys);
    const std::string where = to_string(address);
    std::string text = owner == Owner::self ? fmt::format("listening on {} until this ends", where)
                       : owner == Owner::node
                           ? fmt::format("listening on {} (a listener of this node)", where)
                           : fmt::format("listening on {} (another process's; this one "
                                         "listens itself when that ends)",
                                         where);
    if (keys == 0) text += fmt::format("; without a key {}", believes_all);
    out.event(record, text);
}

// A listener of another owner by which peers reach this process.
struct Borrowed {
    kxfer_addr address = {};
    Owner owner = Owner::node;
    bool has_keys = false;
    bool told = false; // its loss has been reported
};

// The listeners by which peers can reach this process.
struct Listening {
    std::vector<Listener> own;
    std::vector<Borrowed> borrowed;
    std::vector<kxfer_addr> addresses; // all of them
    std::vector<std::string> keys;     // keys of its own listeners

    void borrow(const kxfer_info_listener& listener, Output& out) {
        borrowed.push_back({listener.addr, owner_of(listener), listener.nr_keys != 0});
        addresses.push_back(listener.addr);
        report_listener(listener.addr, owner_of(listener), listener.nr_keys, out);
    }
    void add(Listener listener, const kxfer_addr& address, Output& out) {
        own.push_back(std::move(listener));
        addresses.push_back(address);
        report_listener(address, Owner::self, keys.size(), out);
    }
    // Replaces listeners that ended with their processes, and reports those that an
    // administrator deleted.
    void look(Session& session, Output& out);

  private:
    bool replace(Session& session, Borrowed& lost, Output& out);
};

// True: this process has its own listener there now.
bool Listening::replace(Session& session, Borrowed& lost, Output& out) {
    int number = ENOENT;
    // A listener that wanted a key must not be replaced by one without keys.
    if (lost.owner == Owner::other && lost.has_keys && keys.empty()) {
        number = ENOKEY;
    } else if (lost.owner == Owner::other) {
        auto listener = session.add_listener(lost.address, 0, keys);
        if (listener) {
            own.push_back(std::move(*listener));
            report_listener(lost.address, Owner::self, keys.size(), out);
            return true;
        }
        number = listener.error().number;
    }
    // Another server was faster: look() finds its listener the next time.
    if (number == EADDRINUSE || std::exchange(lost.told, true)) return false;
    Failure failure = listen_failure(session, lost.address, number);
    failure.error.what = "peers no longer reach this process on";
    if (lost.owner == Owner::node) failure.error.why = "its listener was deleted";
    failure.error.hint = "an administrator may: kxfer listen add " + to_string(lost.address);
    out.failure(failure);
    return false;
}

void Listening::look(Session& session, Output& out) {
    if (borrowed.empty()) return;
    for (auto one = borrowed.begin(); one != borrowed.end();) {
        const auto found = find_listener(session, one->address);
        if (!found) return;
        if (*found) {
            if (one->told || owner_of(**found) != one->owner)
                report_listener(one->address, owner_of(**found), (*found)->nr_keys, out);
            *one = {one->address, owner_of(**found), (*found)->nr_keys != 0};
            ++one;
        } else if (replace(session, *one, out)) {
            one = borrowed.erase(one);
        } else {
            ++one;
        }
    }
}

kxfer_addr any_address(uint16_t family) {
    kxfer_addr address = {};
    address.family = family;
    address.port = KXFER_PORT;
    return address;
}

// Listens on the given address, unless a listener is there already.
tl::expected<Listening, Failure> listen_as_told(Session& session, const Peer& wanted, const KeyChoice& keys,
                                                Output& out) {
    TRY_SET(const auto addresses, resolve(wanted));
    const kxfer_addr address = addresses.front();
    TRY_SET(const auto found, find_serving_listener(session, address));
    Listening listening;
    listening.keys = keys.names;
    if (found) {
        TRY(check_present(keys, *found));
        listening.borrow(*found, out);
        return listening;
    }
    TRY(check_key_choice(keys, address));
    auto listener = session.add_listener(address, 0, keys.names);
    if (!listener) return tl::make_unexpected(listen_failure(session, address, listener.error().number));
    listening.add(std::move(*listener), address, out);
    return listening;
}

// Without --listen: the node's listeners, or if there are none, every address. Without
// IPv6, IPv4 alone is enough.
tl::expected<Listening, Failure> listen_somewhere(Session& session, const KeyChoice& keys, Output& out) {
    TRY_SET(const auto present, session.list<kxfer_info_listener>(KXFER_INFO_LISTENERS));
    Listening listening;
    listening.keys = keys.names;
    for (const kxfer_info_listener& one : present) {
        TRY(check_present(keys, one));
        listening.borrow(one, out);
    }
    if (!listening.addresses.empty()) return listening;
    for (const uint16_t family : {AF_INET, AF_INET6}) {
        const kxfer_addr address = any_address(family);
        TRY(check_key_choice(keys, address));
        auto listener = session.add_listener(address, 0, keys.names);
        if (listener) {
            listening.add(std::move(*listener), address, out);
        } else if (family == AF_INET) {
            Failure failure = listen_failure(session, address, listener.error().number);
            if (failure.error.number != ENOKEY && failure.error.number != EKEYREJECTED)
                failure.error.hint =
                    "peers can reach nothing here until an administrator runs: kxfer listen add ADDRESS";
            return tl::make_unexpected(std::move(failure));
        }
    }
    return listening;
}

using Inboxes = std::vector<std::unique_ptr<bench::Inbox>>;

// One mailbox for each export, with the export's access rules.
tl::expected<Inboxes, Failure> offer_mailboxes(const std::vector<Served>& exports,
                                               const ServeOptions& options, Output& out) {
    Inboxes inboxes;
    for (const Served& served : exports) {
        TRY_SET(auto inbox, bench::Inbox::start(served.source().name, served.bytes(), options.rules));
        out.event(
            Record().add("event", "mailbox").add("name", inbox->name()),
            fmt::format("taking messages in {}, into the memory of {}", inbox->name(), served.source().name));
        inboxes.push_back(std::move(inbox));
    }
    return inboxes;
}

using Counterparts = std::vector<std::unique_ptr<bench::Counterpart>>;

// One counterpart for each export, with the export's access rules.
tl::expected<Counterparts, Failure> take_part(const std::vector<Served>& exports, const ServeOptions& options,
                                              Output& out) {
    Counterparts counterparts;
    for (const Served& served : exports) {
        TRY_SET(auto counterpart,
                bench::Counterpart::start(served.source().name, options.rules,
                                          options.keys.names.empty() ? "" : options.keys.names.front()));
        out.event(Record().add("event", "bench").add("name", counterpart->name()),
                  fmt::format("taking part in measurements that ask in {}", counterpart->name()));
        counterparts.push_back(std::move(counterpart));
    }
    return counterparts;
}

using Folders = std::vector<std::unique_ptr<FolderServer>>;

tl::expected<Folders, Failure> serve_folders(const ServeOptions& options, Output& out) {
    Folders folders;
    for (const Source& one : options.folders) {
        TRY_SET(auto server, FolderServer::start(one.name, one.file, options.writable, options.rules));
        out.event(Record()
                      .add("event", "folder")
                      .add("name", one.name)
                      .add("path", one.file)
                      .add("writable", options.writable),
                  fmt::format("serving the folder {} as {}/, {}", one.file, one.name,
                              options.writable ? "read and write" : "read only"));
        folders.push_back(std::move(server));
    }
    return folders;
}

// Reports the files that peers have put into the folders.
void report_stored(const Folders& folders, Output& out) {
    for (const auto& folder : folders)
        for (const FolderServer::Stored& one : folder->take_stored())
            out.event(Record()
                          .add("event", "stored")
                          .add("folder", folder->name())
                          .add("path", one.path)
                          .add("peer", to_string(one.sender.peer))
                          .add("uid", one.sender.uid),
                      fmt::format("{}/{} came from {} (uid {})", folder->name(), one.path,
                                  to_string(one.sender.peer), one.sender.uid));
}

using Responders = std::vector<std::unique_ptr<verbs::VerbsResponder>>;

// Reports each inbox, counterpart and responder that ended by itself, once.
class Watch {
  public:
    Watch(const Inboxes& inboxes, const Counterparts& counterparts, const Folders& folders,
          const Responders& responders)
        : inboxes_(inboxes), counterparts_(counterparts), folders_(folders), responders_(responders) {}

    void look(Output& out) {
        for (const auto& inbox : inboxes_) tell(*inbox, "no longer taking messages in", out);
        for (const auto& one : counterparts_) tell(*one, "no longer answering in", out);
        for (const auto& one : folders_) tell(*one, "no longer serving the folder", out);
        for (const auto& one : responders_) tell(*one, "no longer answering user-space verbs on", out);
        report_stored(folders_, out);
    }
    // How long it may take until look() is called again.
    std::chrono::seconds patience() const { return std::chrono::seconds(folders_.empty() ? 10 : 1); }

  private:
    template <typename Service> void tell(const Service& service, const char* what, Output& out) {
        const int number = service.ended();
        if (number == 0 || !told_.insert(service.name()).second) return;
        out.failure({Error(what, service.name(), number, "end this process and start it again")});
    }

    const Inboxes& inboxes_;
    const Counterparts& counterparts_;
    const Folders& folders_;
    const Responders& responders_;
    std::set<std::string> told_;
};

// On a node without IPv6 the kernel's listener may exist, but not a socket of user space.
bool lacks_ipv6(const kxfer_addr& address, int number) {
    return address.family == AF_INET6 && (number == EAFNOSUPPORT || number == EADDRNOTAVAIL);
}

// User-space verbs reach memory of the responder, never an export. Without IPv6, IPv4 alone is enough.
tl::expected<Responders, Failure> answer_verbs(const Listening& listening, Output& out) {
    Responders responders;
    std::vector<Failure> failures;
    for (const kxfer_addr& listener : listening.addresses) {
        const kxfer_addr address = bench::responder_address(listener);
        auto responder = verbs::VerbsResponder::start(bench::socket_address(address));
        if (!responder && !lacks_ipv6(address, responder.error().number)) return failed(responder.error());
        if (!responder) {
            failures.push_back({responder.error()});
            continue;
        }
        responders.push_back(std::move(*responder));
        out.event(Record().add("event", "verbs").add("address", to_string(address)),
                  fmt::format("answering user-space verbs on {}", to_string(address)));
    }
    if (responders.empty() && !failures.empty()) return tl::make_unexpected(failures.front());
    for (Failure& failure : failures) {
        failure.error.hint = "peers can use the addresses of IPv4 above; is IPv6 switched off on this node?";
        out.failure(failure);
    }
    return responders;
}

void report_content(const Served& served, const kxfer_event& event, Output& out) {
    const kxfer_content& content = served.content();
    Record record;
    record.add("event", "content")
        .add("name", served.source().name)
        .add("length", Bytes{content.length})
        .add("sha256", hex(content.sha256))
        .add("generation", content.generation)
        .add("peer", to_string(event.peer))
        .add("uid", event.uid)
        .add("gid", event.gid)
        .add("file", served.source().file.empty() ? Value(None{}) : Value(served.source().file));
    std::string text =
        fmt::format("{} holds {} from {} (uid {}), sha256 {}", served.source().name,
                    human_bytes(content.length), to_string(event.peer), event.uid, hex(content.sha256));
    if (!served.source().file.empty()) text += ", written to " + served.source().file;
    out.event(record, text);
}

// Handles a peer's announcement of new content.
void handle_event(std::vector<Served>& exports, const kxfer_event& event, Output& out) {
    const auto served = std::find_if(exports.begin(), exports.end(),
                                     [&](const Served& one) { return one.export_id() == event.export_id; });
    if (event.type != KXFER_EVENT_NOTIFY || served == exports.end()) return;
    const auto accepted = served->accept(event.cookie, out);
    if (accepted) {
        report_content(*served, event, out);
        return;
    }
    // The peer's wait ends in a timeout there; this process goes on with other events.
    if (interrupted()) return;
    Failure failure = accepted.error();
    failure.error.hint +=
        fmt::format("{}put by {} (uid {}); its content was not published",
                    failure.error.hint.empty() ? "" : "\n", to_string(event.peer), event.uid);
    out.failure(failure);
}

// Publishes the files that have other content now; each that cannot be read stays as it was.
void reload(std::vector<Served>& exports, Output& out) {
    for (Served& served : exports) {
        const auto changed = served.reload(out);
        if (changed && *changed)
            out.event(Record()
                          .add("event", "reload")
                          .add("name", served.source().name)
                          .add("length", Bytes{served.content().length})
                          .add("sha256", hex(served.content().sha256))
                          .add("generation", served.content().generation),
                      fmt::format("{} was read again: {}, sha256 {}", served.source().name,
                                  human_bytes(served.content().length), hex(served.content().sha256)));
        if (!changed && !interrupted()) out.failure(changed.error());
    }
}

std::string status_of(size_t exports, size_t folders, const Listening& listening) {
    std::vector<std::string> addresses;
    for (const kxfer_addr& address : listening.addresses) addresses.push_back(to_string(address));
    return fmt::format("serving {} export{} and {} folder{} on {}", exports, exports == 1 ? "" : "s", folders,
                       folders == 1 ? "" : "s", fmt::join(addresses, ", "));
}

Result serve_until_signal(Session& session, std::vector<Served>& exports, Listening& listening, Watch& watch,
                          const std::string& status, Output& out) {
    std::array<kxfer_event, 16> room = {};
    notify_ready(status);
    while (!interrupted()) {
        // Also checks after the timeout; more often with a listener of another owner, because peers
        // miss that as soon as it ends.
        wait_events(session.fd(), POLLPRI,
                    listening.borrowed.empty() ? watch.patience() : std::chrono::seconds(1));
        if (interrupted()) break;
        if (take_reload()) {
            notify_reloading();
            reload(exports, out);
            notify_ready(status);
        }
        watch.look(out);
        listening.look(session, out);
        const auto taken = session.take_events(room, false, Deadline::never());
        if (!taken) {
            if (taken.error().number == EINTR || taken.error().number == ETIMEDOUT) continue;
            return failed(taken.error());
        }
        for (const kxfer_event& event : *taken) {
            if (interrupted()) break;
            handle_event(exports, event, out);
        }
    }
    notify_stopping();
    return exit_ok;
}

Result run_serve(const ServeOptions& options, Context& context) {
    if (options.sources.empty() && options.folders.empty())
        return wrong_usage("nothing to serve", "give a SOURCE, or --dir DIR");
    catch_interrupts();
    // Of a process that a terminal started, SIGHUP is the end, as that of the terminal is.
    if (is_service()) catch_reloads();
    context.out.stamp_events();
    TRY_SET(auto session, open_session_with_device());
    TRY_SET(auto exports, make_exports(session, options, context.out));
    for (const Served& served : exports) report_export(served, options, context.out);
    tl::expected<Inboxes, Failure> inboxes = Inboxes();
    if (options.mailbox) inboxes = offer_mailboxes(exports, options, context.out);
    if (!inboxes) return tl::make_unexpected(inboxes.error());
    tl::expected<Counterparts, Failure> counterparts = Counterparts();
    if (options.bench) counterparts = take_part(exports, options, context.out);
    if (!counterparts) return tl::make_unexpected(counterparts.error());
    TRY_SET(const auto folders, serve_folders(options, context.out));
    TRY_SET(auto listening, options.has_listen
                                ? listen_as_told(session, options.listen, options.keys, context.out)
                                : listen_somewhere(session, options.keys, context.out));
    tl::expected<Responders, Failure> responders = Responders();
    if (options.verbs) responders = answer_verbs(listening, context.out);
    if (!responders) return tl::make_unexpected(responders.error());
    Watch watch(*inboxes, *counterparts, folders, *responders);
    return serve_until_signal(session, exports, listening, watch,
                              status_of(exports.size(), folders.size(), listening), context.out);
}

// CLI11 takes -1 for a great number, and cuts what is longer than 64 bits.
std::optional<uint64_t> parse_cookie(const std::string& text) {
    uint64_t cookie = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, cookie);
    return error == std::errc() && rest == end ? std::optional(cookie) : std::nullopt;
}

void setup_options(CLI::App& command, const std::shared_ptr<ServeOptions>& options) {
    command
        .add_option_function<std::vector<std::string>>(
            "source",
            [options](const std::vector<std::string>& texts) {
                for (const std::string& text : texts) {
                    auto source = parse_source(text);
                    if (!source) throw CLI::ValidationError("source", source.error());
                    options->sources.push_back(std::move(*source));
                }
            },
            "[NAME=]FILE, or NAME=mem:SIZE for memory, NAME=heap:SIZE for a dma-buf")
        ->type_name("SOURCE");
    command
        .add_option_function<std::vector<std::string>>(
            "--dir",
            [options](const std::vector<std::string>& texts) {
                for (const std::string& text : texts) {
                    auto source = parse_folder(text);
                    if (!source) throw CLI::ValidationError("--dir", source.error());
                    options->folders.push_back(std::move(*source));
                }
            },
            "a folder, for `kxfer ls`, `get` and `put` of PEER/NAME/PATH; with --writable peers may put "
            "files there; repeated: more folders")
        ->type_name("[NAME=]DIR")
        ->take_all()
        ->allow_extra_args(false);
    command
        .add_option_function<std::vector<std::string>>(
            "--allow",
            [options](const std::vector<std::string>& texts) {
                for (const std::string& text : texts) {
                    const auto rule = parse_allow(text);
                    if (!rule) throw CLI::ValidationError("--allow", rule.error());
                    options->rules.push_back(*rule);
                }
            },
            "peers that may: a network, uid=N, gid=N, or key=NAME: peers that proved that key; "
            "key=NAME,uid=N: "
            "and that uid of theirs; key=NAME,no-uids: and their uids are not believed; repeated: any of "
            "them "
            "(default: all)")
        ->type_name("CIDR|uid=N|gid=N|key=NAME")
        ->take_all()
        ->allow_extra_args(false);
    auto* writable = command.add_flag("--writable", options->writable,
                                      "peers may write; what they put into a FILE is written back to it");
    command.add_flag("--atomic", options->atomic, "peers may do COMPARE_SWAP and FETCH_ADD");
    command
        .add_option_function<std::string>(
            "--cookie",
            [options](const std::string& text) {
                const auto cookie = parse_cookie(text);
                if (!cookie) throw CLI::ValidationError("--cookie", "not a number of 64 bits: " + text);
                options->cookie = *cookie;
            },
            "number of 64 bits that programs get which open these exports (default: a random one)")
        ->type_name("N");
    command.add_flag("--verbs", options->verbs,
                     "also answer user-space verbs on PORT+1 and over TCP on PORT+2, for `kxfer compare`, "
                     "`bench` and `sweep`");
    command.add_flag(
        "--bench", options->bench,
        "also take part in `kxfer bench`: answer ping-pongs, report this process's CPU time, and "
        "run the reverse direction of --bidirectional, asked in NAME.bench");
    command
        .add_flag("--mailbox", options->mailbox,
                  "also take messages in NAME.mailbox, into the memory of NAME, for `kxfer compare`, "
                  "`bench` and `sweep`")
        ->needs(writable);
}

} // namespace

void setup_serve(CLI::App& app, Program& program) {
    const auto options = std::make_shared<ServeOptions>();
    CLI::App& command = add_command(app, "serve", "export files, folders and memory until Ctrl-C",
                                    "kxfer serve inbox=mem:16M --writable --allow 10.77.0.0/24");
    setup_options(command, options);
    add_key_choice(command, options->keys);
    CLI::Option* listen = add_peer_option(command, "--listen", options->listen,
                                          "own ADDR[:PORT] to be reached by, unless it is already");
    command.callback([&program, options, listen] {
        options->has_listen = listen->count() != 0;
        program.run = [options](Context& context) { return run_serve(*options, context); };
    });
}

} // namespace kxfer::cli

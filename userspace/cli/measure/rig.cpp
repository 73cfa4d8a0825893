// SPDX-License-Identifier: MIT
#include "cli/measure/rig.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/try.hpp"
#include "bench/engines/connect_time.hpp"
#include "bench/engines/echo.hpp"
#include "bench/engines/job_engine.hpp"
#include "bench/engines/kverbs_engine.hpp"
#include "bench/engines/ping_pong.hpp"
#include "bench/peer/socket_address.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "verbs/engine.hpp"

namespace kxfer::cli {

namespace {

constexpr unsigned default_batch = 32;

const std::map<std::string, uint32_t> contexts = {{"polled", KXFER_CONTEXT_POLLED},
                                                  {"workqueue", KXFER_CONTEXT_WORKQUEUE},
                                                  {"softirq", KXFER_CONTEXT_SOFTIRQ},
                                                  {"unbound", KXFER_CONTEXT_UNBOUND},
                                                  {"direct", KXFER_CONTEXT_DIRECT}};

const std::map<std::string, uint32_t> memories = {{"lkey", KXFER_BENCH_MEMORY_DEFAULT},
                                                  {"mr", KXFER_BENCH_MEMORY_MR},
                                                  {"mr-each", KXFER_BENCH_MEMORY_MR_EACH},
                                                  {"mr-pool", KXFER_BENCH_MEMORY_MR_EACH},
                                                  {"rw", KXFER_BENCH_MEMORY_RW}};

const std::map<std::string, uint32_t> invalidations = {{"deferred", KXFER_BENCH_INVALIDATE_DEFERRED},
                                                       {"local", KXFER_BENCH_INVALIDATE_LOCAL},
                                                       {"remote", KXFER_BENCH_INVALIDATE_REMOTE}};

const std::map<std::string, uint32_t> waits = {
    {"adaptive", 0}, {"always", KXFER_WAIT_F_POLL}, {"never", KXFER_WAIT_F_SLEEP}};

// Whether some operation of jobs may be a message.
bool wants_mailbox(const RigOptions& options) {
    return options.wants("job") && options.writes && !options.round_trip;
}

// Name of the export of the server on this node.
std::string own_export() { return fmt::format("bench-{}", getpid()); }

tl::expected<kxfer_addr, Failure> own_address(const RigOptions& options) {
    TRY_SET(const auto node, find_devices());
    for (const auto& device : node.devices) {
        if (!options.common.device.empty() && options.common.device != device.core.name) continue;
        for (const auto& port : device.ports) {
            kxfer_addr address = {};
            if (!port.active() || port.addresses.empty()) continue;
            const auto* first = reinterpret_cast<const sockaddr*>(&port.addresses.front());
            if (kxfer_addr_from_sockaddr(first, &address) == 0) return address;
        }
    }
    return failed(Error("no RDMA device with an address and an active port", options.common.device, ENODEV,
                        "see: kxfer doctor"),
                  exit_no_device);
}

// Options for the paths of both ends, without the destination.
bench::PathOptions common_path(const RigOptions& options) {
    bench::PathOptions path;
    path.device = options.common.device;
    path.key = options.common.key;
    path.tos = options.common.tos;
    path.context = contexts.at(options.context);
    path.wait_flags = waits.at(options.poll);
    path.timeout = options.common.timeout();
    path.patience = options.common.patience.patience();
    path.in_flight_kib = options.common.in_flight_kib();
    return path;
}

std::optional<bench::PartnerOptions> partner_of(const RigOptions& options, const kxfer_addr& address) {
    if (!options.round_trip) return std::nullopt;
    bench::PartnerOptions partner{common_path(options), *options.round_trip, own_export()};
    partner.path.peer = address;
    partner.path.export_name = bench::PingPongEngine::back_name(own_export());
    partner.by_runs = options.wants("kverbs");
    if (partner.by_runs)
        partner.path.in_flight_kib = bench::Echo::other_in_flight_kib(partner.path.in_flight_kib);
    return partner;
}

// Whether the other end has to answer user-space verbs, or connections of kverbs alone.
bool wants_responder(const RigOptions& options) {
    return options.wants("verbs") ||
           (options.wants("kverbs") && (options.messages || options.own_connection()));
}

tl::expected<Place, Failure> serve_here(const RigOptions& options, uint64_t bytes) {
    Place place;
    TRY_SET(const auto address, own_address(options));

    bench::ServerOptions server;
    server.address = address;
    server.address.port = KXFER_PORT;
    server.key = options.common.key;
    server.export_name = place.export_name = own_export();
    server.length = bytes;
    server.nr_exports = options.nr_clients;
    server.job = options.wants_module();
    server.verbs = wants_responder(options);
    server.messages = wants_mailbox(options);
    server.counterpart = options.bidirectional;
    server.partner = partner_of(options, address);
    TRY_SET(place.server, bench::LocalServer::start(server));
    place.listener = place.responder = place.exchange = address;
    place.listener.port = place.server->listener_port();
    place.responder.port = place.server->responder_port();
    place.exchange.port = place.server->exchange_port();
    return place;
}

tl::expected<Place, Failure> find_peer(const RigOptions& options) {
    Place place;
    place.export_name = options.export_name;
    TRY_SET(const auto addresses, resolve(options.peer));
    place.listener = addresses.front();
    if (place.listener.port == 0) place.listener.port = KXFER_PORT;
    place.responder = bench::responder_address(place.listener);
    place.exchange = bench::exchange_address(place.responder);
    return place;
}

// A SIZE for the command line; memory is a multiple of a page.
std::string size_text(uint64_t bytes) {
    constexpr uint64_t mib = 1ULL << 20;
    return bytes % mib ? fmt::format("{}K", bytes / 1024) : fmt::format("{}M", bytes / mib);
}

bench::PathOptions path_options(const RigOptions& options, const Rig& rig) {
    bench::PathOptions path = common_path(options);
    path.peer = rig.place.listener;
    path.ring = options.ring;
    path.stored = options.stored;
    path.inline_writes = options.inline_writes();
    path.memory = memories.at(options.memory);
    path.mr_pool = options.memory == "mr-pool";
    path.invalidate = invalidations.at(options.invalidate);
    path.dedicated = options.own_connection();
    path.cq_pool = options.cq == "pool";
    path.signal = options.signal_number();
    path.export_name = bench::client_export(rig.place.export_name, options.client);
    path.writable = options.writes || options.verify || !options.peer_given || options.round_trip;
    path.atomic = options.atomics;
    path.messages = wants_mailbox(options);
    path.ud = options.verbs.transport == "ud";
    path.qkey = options.verbs.qkey;
    return path;
}

std::string wanted_exports(const RigOptions& options, uint64_t bytes) {
    std::string text;
    for (unsigned client = 0; client < options.nr_clients; client++)
        text +=
            fmt::format(" {}=mem:{}", bench::client_export(options.export_name, client), size_text(bytes));
    return text;
}

// The command that the peer has to run for these options.
std::string wanted_server(const RigOptions& options, uint64_t bytes) {
    return fmt::format("kxfer serve{} --writable{}{}{}{}", wanted_exports(options, bytes),
                       wants_responder(options) ? " --verbs" : "", options.atomics ? " --atomic" : "",
                       options.messages && options.wants("job") ? " --mailbox" : "",
                       options.bidirectional ? " --bench" : "");
}

// The failure of a peer to answer round trips, with advice.
Failure round_trip_failure(const RigOptions& options, Error error) {
    if (options.peer_given && error.number == ENOENT) {
        error.why = "its process takes no part in measurements";
        error.hint = fmt::format("run there: kxfer serve {}=mem:4K --bench", options.export_name);
    } else if (options.peer_given && error.number == EACCES) {
        error.hint = "kxfer serve --allow there has to let this node and user in";
    } else if (options.peer_given && error.hint.empty()) {
        error.hint = fmt::format("does the peer answer? try: kxfer ping {}", options.peer.text());
    }
    return Failure{error};
}

Failure path_failure(const RigOptions& options, const Rig& rig, Error error) {
    if (options.peer_given && (error.number == ENOENT || error.number == EACCES || error.number == ERANGE))
        error.hint = "run there: " + wanted_server(options, rig.memory->length());
    if (options.peer_given && error.hint.empty())
        error.hint = fmt::format("does the peer answer? try: kxfer ping {}", options.peer.text());
    if (error.number == ENOMEM) error = pin_error(error, 2 * rig.memory->length());
    return Failure{error};
}

// The connection of verbs uses the device that the peer's address leads to, whatever --device says.
tl::expected<void, Failure> check_device(const RigOptions& options, const Rig& rig,
                                         const bench::Engine& engine) {
    const std::string used = engine.parameters({}).device, &wanted = options.common.device;
    if (wanted.empty() || used == wanted) return {};
    return failed(Error("cannot reach", rig.peer_text(options), EADDRNOTAVAIL,
                        fmt::format("leave --device {} out, or use --device {}", wanted, used),
                        fmt::format("device {} does not lead there, {} does", wanted, used)));
}

tl::expected<std::unique_ptr<bench::Engine>, Failure>
connect_verbs(const RigOptions& options, Rig& rig, uint64_t remote_bytes, unsigned depth, unsigned batch) {
    verbs::EngineOptions how;
    how.peer = bench::socket_address(rig.place.responder);
    how.exchange = bench::socket_address(rig.place.exchange);
    apply(options.verbs, how);
    if (options.common.tos) how.tos = static_cast<uint8_t>(*options.common.tos);
    how.depth = depth;
    how.batch = batch;
    how.signal_batch = options.signal_batch();
    how.inline_writes = options.inline_writes();
    how.remote_bytes = remote_bytes;
    how.writable = options.writes || options.verify || !options.peer_given;
    how.timeout = options.common.timeout();
    TRY_SET(auto engine, verbs::Engine::connect(how, *rig.memory));
    TRY(check_device(options, rig, *engine));
    rig.steps = engine->steps();
    return engine;
}

// Connects to a partner on this node, or to one that the peer's process creates.
tl::expected<void, Error> connect_round_trips(const RigOptions& options, Rig& rig, bench::PathOptions path) {
    if (options.peer_given) {
        TRY_SET(rig.answering, bench::Requester::open(path));
        TRY_SET(path.export_name,
                rig.answering->begin_round_trips(*options.round_trip, options.wants("kverbs"), interrupted));
    }
    const auto take = [&](auto engine) -> tl::expected<void, Error> {
        if (!engine)
            return tl::unexpected(rig.answering ? rig.answering->why_no_answer().value_or(engine.error())
                                                : engine.error());
        rig.engines.push_back(std::move(*engine));
        return {};
    };
    return options.wants("kverbs")
               ? take(bench::EchoEngine::connect(path, *rig.memory, *options.round_trip))
               : take(bench::PingPongEngine::connect(path, *rig.memory, *options.round_trip));
}

} // namespace

// In the order of the columns. verbs connects last: it asks for as much memory as the export has.
tl::expected<void, Failure> connect_engines(const RigOptions& options, Rig& rig, unsigned depth,
                                            unsigned batch) {
    const auto path = path_options(options, rig);
    uint64_t remote_bytes = 0;

    if (options.round_trip) {
        if (auto connected = connect_round_trips(options, rig, path); !connected)
            return tl::make_unexpected(round_trip_failure(options, connected.error()));
        return {};
    }
    if (options.wants("kverbs")) {
        auto engine = bench::KverbsEngine::connect(path, rig.place.responder, *rig.memory);
        if (!engine) return tl::make_unexpected(path_failure(options, rig, engine.error()));
        remote_bytes = (*engine)->remote_bytes();
        rig.engines.push_back(std::move(*engine));
    }
    if (options.wants("job")) {
        auto engine = bench::JobEngine::connect(path, *rig.memory);
        if (!engine) return tl::make_unexpected(path_failure(options, rig, engine.error()));
        remote_bytes = (*engine)->remote_bytes();
        rig.engines.push_back(std::move(*engine));
    }
    if (options.wants("verbs")) {
        TRY_SET(auto engine, connect_verbs(options, rig, remote_bytes, depth, batch));
        rig.engines.insert(rig.engines.begin(), std::move(engine));
    }
    return {};
}

namespace {

// Each engine pins the same memory, and siw applies the limit to privileged users too. If this
// fails, a failure to pin says what to do.
void raise_memlock() {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

} // namespace

unsigned RigOptions::signal_number() const {
    if (signal == "each") return 1;
    return signal_batch() ? 0 : static_cast<unsigned>(std::stoul(signal));
}

bool RigOptions::wants(const std::string& engine) const {
    return std::find(engines.begin(), engines.end(), engine) != engines.end();
}

namespace {

std::string check_signal(const std::string& text) {
    unsigned number = 0;
    if (text == "each" || text == "batch") return "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 1 && number <= max_signal
               ? ""
               : fmt::format("{} is not each, batch or a number of 1 to {}", text, max_signal);
}

} // namespace

void add_rig_options(CLI::App& command, RigOptions& options) {
    command
        .add_option("--signal", options.signal,
                    "completions of what is done many at once: one for each operation (default), one for "
                    "each batch, or (kverbs) one for N")
        ->type_name("each|batch|N")
        ->check(check_signal);
    command
        .add_option("--context", options.context,
                    "where the kernel handles completions: polled (default), workqueue, softirq, unbound, "
                    "or direct (kverbs: by its own loop only)")
        ->check(CLI::IsMember({"polled", "workqueue", "softirq", "unbound", "direct"}));
    command
        .add_option(
            "--memory", options.memory,
            "how kverbs names local memory: lkey (default: by the PD's local_dma_lkey), "
            "mr (registered once), mr-each (registered for each operation), mr-pool (likewise, by MRs "
            "of the QP's pool) or rw (by the kernel's rdma_rw, as storage targets do it)")
        ->check(CLI::IsMember({"lkey", "mr", "mr-each", "mr-pool", "rw"}));
    command
        .add_option("--invalidate", options.invalidate,
                    "how an MR of --memory mr-each or mr-pool becomes invalid: deferred (default: when it is "
                    "registered again), local (before its operation is done) or remote (send: by the "
                    "peer's answer)")
        ->check(CLI::IsMember({"deferred", "local", "remote"}));
    command
        .add_option("--inline", options.inlining,
                    "whether the work request of a short WRITE carries its payload: auto (default: if it "
                    "fits in what the device allows inline; 64 bytes are asked for), or never (verbs and "
                    "kverbs)")
        ->check(CLI::IsMember({"auto", "never"}));
    command
        .add_option("--cq", options.cq,
                    "use a dedicated connection for kverbs, and this CQ: own (its own) or pool (shared, "
                    "from ib_cq_pool_get(); not with --context polled)")
        ->check(CLI::IsMember({"own", "pool"}));
    command
        .add_option("--poll", options.poll,
                    "how a job's caller waits: adaptive (default), always or "
                    "never polling")
        ->check(CLI::IsMember({"adaptive", "always", "never"}));
    command.add_flag("--ring", options.ring,
                     "jobs and their completions are in rings shared with the kernel");
    command.add_flag(
        "--stored", options.stored,
        "a job's message is done when it is in the mailbox or, if it has more than 992 bytes, "
        "received (default: up to 4096 bytes may be done when it is at the peer's device, with a "
        "place in the mailbox)");
    command
        .add_option(
            "--export", options.export_name,
            fmt::format("export of the peer that is read, and but for READs without --verify overwritten "
                        "(default {})",
                        options.export_name))
        ->type_name("NAME")
        ->each([&options](const std::string&) { options.export_given = true; });
    command.add_flag("--verify", options.verify,
                     "verify the data of READs from a peer too, for which its export is overwritten");
    add_verbs_options(command, options.verbs);
    add_common_options(command, options.common);
}

// A responder of user-space verbs uses its own memory, no export, and asks for no key.
tl::expected<void, Failure> check_of_module(const RigOptions& options) {
    if (options.wants_module()) return {};
    if (options.export_given)
        return wrong_usage("user-space verbs reach memory of the responder, and no export",
                           "use --export with --engine job or kverbs");
    if (!options.common.key.empty())
        return wrong_usage("only links of the module are made by keys, no connections of user-space verbs",
                           "use --key with --engine job or kverbs");
    return {};
}

namespace {

// Fails for options that would have no effect.
tl::expected<void, Failure> check_heeded(const RigOptions& options) {
    if (options.context != "polled" && !options.wants_module())
        return wrong_usage("user-space verbs have no completion context",
                           "use --context with --engine job or kverbs");
    if (options.poll != "adaptive" && !options.wants("job"))
        return wrong_usage("only the caller of a job chooses how it waits", "use --poll with --engine job");
    if (options.ring && (!options.wants("job") || options.round_trip))
        return wrong_usage("only jobs complete in a ring, and round trips do without",
                           "use --ring with --engine job");
    if (options.stored && !options.wants("job"))
        return wrong_usage("only a job chooses when its message is done", "use --stored with --engine job");
    if (options.export_given && !options.peer_given)
        return wrong_usage("without a peer there is no export to choose", "use --export with PEER");
    return check_of_module(options);
}

} // namespace

tl::expected<void, Failure> check_rig(const RigOptions& options) {
    if (options.poll != "adaptive" && options.context != "polled")
        return wrong_usage("completions cannot be polled by the job in context " + options.context,
                           "use --poll with --context polled");
    if (options.memory != "lkey" && !options.wants("kverbs"))
        return wrong_usage("only engine kverbs chooses how local memory is named",
                           "use --memory with --engine kverbs");
    if (options.invalidate != "deferred" && memories.at(options.memory) != KXFER_BENCH_MEMORY_MR_EACH)
        return wrong_usage("only what is registered for each operation is invalidated",
                           "use --invalidate with --memory mr-each or mr-pool");
    if (!options.inline_writes() && options.wants("job"))
        return wrong_usage("short WRITEs of jobs are always inline",
                           "use --inline never with --engine verbs or kverbs");
    if (!options.cq.empty() && !options.wants("kverbs"))
        return wrong_usage("only engine kverbs chooses whose CQ it completes on",
                           "use --cq with --engine kverbs");
    if (options.context == "direct" && (options.wants("job") || !options.wants("kverbs")))
        return wrong_usage("only engine kverbs has its completions in context direct",
                           "use --context direct with --engine kverbs");
    if (options.cq == "pool" && (options.context == "polled" || options.context == "direct"))
        return wrong_usage("the kernel polls a CQ of the pool itself, not in context " + options.context,
                           "use --cq pool with --context workqueue, softirq or unbound");
    if (options.signal_number() > 1 && (options.wants("job") || options.wants("verbs")))
        return wrong_usage("only engine kverbs signals one of N operations",
                           "use --engine kverbs, or --signal batch with --batch");
    if (options.memory == "rw" && options.signal_number() != 1)
        return wrong_usage("rdma_rw asks for a completion of each operation",
                           "use --memory rw with --signal each");
    TRY(check_heeded(options));
    return check_verbs_options(options.verbs, options.wants("verbs"), options.wants("kverbs"));
}

tl::expected<std::string, Failure> check_floor(RigOptions& options) {
    if (!options.wants("kverbs")) return std::string();
    const auto obstacle = bench::KverbsEngine::obstacle();
    if (!obstacle) return std::string();
    if (options.engines_given) return failed(*obstacle);
    std::erase(options.engines, "kverbs");
    return obstacle->reason();
}

tl::expected<std::string, Failure> module_version(const RigOptions& options) {
    if (!options.wants_module()) return std::string();
    const auto session = open_session_with_device();
    if (!session) {
        Failure failure = session.error();
        if (failure.status == exit_no_device)
            failure.error.hint += "; --engine verbs measures user-space verbs alone";
        return tl::make_unexpected(failure);
    }
    TRY_SET(const auto query, session->query());
    return text_of(query.version);
}

unsigned batch_of(const RigOptions& options, unsigned depth, unsigned wanted) {
    unsigned batch = std::min(wanted ? wanted : std::max(depth / 4, 1U), depth);
    if (!wanted) batch = std::min(batch, default_batch);
    // Two batches must fit: while one is posted another completes.
    if (options.signal_batch()) return std::min(batch, (depth + 1) / 2);
    // A batch must fit next to the operations that wait for one completion.
    return wanted ? batch : std::clamp(depth + 1 - std::min(options.signal_number(), depth), 1U, batch);
}

std::vector<bench::Engine*> Rig::pointers() const {
    std::vector<bench::Engine*> all;
    for (const auto& engine : engines) all.push_back(engine.get());
    return all;
}

std::string Rig::peer_text(const RigOptions& options) const {
    return place.server ? fmt::format("this node, {}", to_string(place.listener)) : options.peer.text();
}

tl::expected<Rig, Failure> set_up_place(const RigOptions& options, uint64_t bytes) {
    Rig rig;

    raise_memlock();
    TRY_SET(rig.place, options.peer_given ? find_peer(options) : serve_here(options, bytes));
    TRY_SET(auto memory, bench::Memory::create(bytes));
    rig.memory = std::make_unique<bench::Memory>(std::move(memory));
    return rig;
}

tl::expected<Rig, Failure> set_up_client(const RigOptions& options, const Place& place, uint64_t bytes,
                                         unsigned depth, unsigned batch) {
    Rig rig;

    rig.place.listener = place.listener;
    rig.place.responder = place.responder;
    rig.place.exchange = place.exchange;
    rig.place.export_name = place.export_name;
    TRY_SET(auto memory, bench::Memory::create(bytes));
    rig.memory = std::make_unique<bench::Memory>(std::move(memory));
    TRY(connect_engines(options, rig, depth, batch));
    return rig;
}

tl::expected<Rig, Failure> set_up(const RigOptions& options, uint64_t bytes, unsigned depth, unsigned batch) {
    auto rig = set_up_place(options, bytes);
    if (!rig) return rig;
    TRY(connect_engines(options, *rig, depth, batch));
    return rig;
}

tl::expected<std::optional<double>, Failure> time_link(const RigOptions& options, const Rig& rig) {
    auto took = bench::time_connect(path_options(options, rig));
    if (!took) return tl::make_unexpected(path_failure(options, rig, took.error()));
    return *took;
}

tl::expected<std::unique_ptr<bench::Requester>, Error> ask_peer(const RigOptions& options, const Rig& rig) {
    return bench::Requester::open(path_options(options, rig));
}

std::optional<bench::PeerNode> find_peer_node(const RigOptions& options, const Rig& rig) {
    if (!options.peer_given || !options.wants_module()) return std::nullopt;
    const auto requester = ask_peer(options, rig);
    if (!requester) return std::nullopt;
    auto node = (*requester)->node();
    return node ? std::optional(std::move(*node)) : std::nullopt;
}

tl::expected<DeviceFacts, Failure> facts_of(const std::string& device) {
    TRY_SET(auto node, find_devices());
    for (auto& facts : node.devices)
        if (facts.core.name == device) return std::move(facts);
    return failed(Error("the device is gone:", device, ENODEV));
}

bench::Surroundings surroundings_of(const Rig& rig, const DeviceFacts& device) {
    bench::Surroundings where;

    where.device = device.core.name;
    where.device_index = device.core.index;
    for (const auto& port : device.ports)
        if (port.active() && where.port == 0) where.port = port.core.index;
    if (rig.place.server)
        where.peer = rig.place.server->process();
    else
        where.no_peer = "the CPU time of another node's process is told by kxfer serve --bench";
    return where;
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer compare: the same work through /dev/kxfer, by kernel verbs without jobs,
// and through user-space verbs, side by side. Without a peer it serves itself: a child process offers the
// memory on the first usable RDMA device of this node.

#include <algorithm>
#include <cerrno>
#include <map>

#include <fmt/format.h>
#include <kxfer/kxfer.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/comparison.hpp"
#include "bench/job_engine.hpp"
#include "bench/kverbs_engine.hpp"
#include "bench/local_server.hpp"
#include "bench/socket_address.hpp"
#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/compare_report.hpp"
#include "cli/device_file.hpp"
#include "cli/devices.hpp"
#include "cli/interrupt.hpp"
#include "cli/peer.hpp"
#include "cli/size.hpp"
#include "verbs/engine.hpp"

namespace kxfer::cli {

namespace {

constexpr unsigned default_depth = 128;
constexpr unsigned default_batch = 32;
// Without --depth large operations go less deep than this much memory.
constexpr uint64_t default_memory = 64ULL << 20;
constexpr uint64_t max_memory = 256ULL << 20;

struct CompareOptions {
    CommonOptions common;
    Peer peer;
    bool peer_given = false;
    std::vector<std::string> operations{"read", "write"};
    std::vector<uint64_t> sizes{64, 4096, 65536};
    std::vector<std::string> engines{"verbs", "kverbs", "job"};
    bool engines_given = false;
    std::string context = "polled";
    std::string poll = "adaptive";
    std::string export_name = "compare";
    std::string signal = "each";
    bool ring = false;
    unsigned depth = 0; // 0: as deep as sensible
    unsigned batch = 0; // 0: a quarter of the depth, at most default_batch
    unsigned rounds = 5;
    uint64_t count = 1000;
    double seconds = 1;

    bool wants(const std::string& engine) const {
        return std::find(engines.begin(), engines.end(), engine) != engines.end();
    }
    bool wants_module() const { return wants("job") || wants("kverbs"); }
    bool signal_batch() const { return signal == "batch"; }
    bool writes() const {
        return std::find(operations.begin(), operations.end(), "write") != operations.end();
    }
};

const std::map<std::string, uint32_t> contexts = {{"polled", KXFER_CONTEXT_POLLED},
                                                  {"workqueue", KXFER_CONTEXT_WORKQUEUE},
                                                  {"softirq", KXFER_CONTEXT_SOFTIRQ},
                                                  {"unbound", KXFER_CONTEXT_UNBOUND}};

const std::map<std::string, uint32_t> waits = {
    {"adaptive", 0}, {"always", KXFER_WAIT_F_POLL}, {"never", KXFER_WAIT_F_SLEEP}};

bench::Workload workload_of(const CompareOptions& options, const std::string& operation, uint64_t size) {
    bench::Workload workload{*bench::operation_from(operation), size, 1, 1};
    const uint64_t room = std::max<uint64_t>(default_memory / workload.stride(), 1);
    workload.depth =
        options.depth ? options.depth : static_cast<unsigned>(std::min<uint64_t>(default_depth, room));
    return workload;
}

void set_batch(const CompareOptions& options, bench::Workload& workload) {
    workload.batch =
        std::min(options.batch ? options.batch : std::max(workload.depth / 4, 1U), workload.depth);
    if (!options.batch) workload.batch = std::min(workload.batch, default_batch);
    // While one batch is posted another completes: there have to be two.
    if (options.signal_batch()) workload.batch = std::min(workload.batch, (workload.depth + 1) / 2);
}

std::vector<bench::Workload> workloads_of(const CompareOptions& options) {
    std::vector<bench::Workload> workloads;
    for (const auto& operation : options.operations)
        for (const uint64_t size : options.sizes) workloads.push_back(workload_of(options, operation, size));
    return workloads;
}

uint64_t memory_of(const std::vector<bench::Workload>& workloads) {
    uint64_t bytes = 0;
    for (const auto& workload : workloads) bytes = std::max(bytes, workload.bytes());
    return bytes;
}

// Where the engines connect to.
struct Place {
    kxfer_addr listener = {};
    kxfer_addr responder = {};
    std::unique_ptr<bench::LocalServer> server; // unless a peer was named
};

// What is at work during a comparison; destroyed from the last to the first.
struct Bench {
    Place place;
    std::unique_ptr<bench::Memory> memory;
    std::vector<std::unique_ptr<bench::Engine>> engines;
    std::string device;

    std::vector<bench::Engine*> pointers() const {
        std::vector<bench::Engine*> all;
        for (const auto& engine : engines) all.push_back(engine.get());
        return all;
    }
};

tl::expected<kxfer_addr, Failure> own_address(const CompareOptions& options) {
    const auto node = find_devices();
    if (!node) return failed(node.error());
    for (const auto& device : node->devices) {
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

tl::expected<Place, Failure> serve_here(const CompareOptions& options, uint64_t bytes) {
    Place place;
    const auto address = own_address(options);
    if (!address) return tl::make_unexpected(address.error());

    bench::ServerOptions server;
    server.address = *address;
    server.address.port = KXFER_PORT;
    server.export_name = fmt::format("compare-{}", getpid());
    server.length = bytes;
    server.job = options.wants_module();
    server.verbs = options.wants("verbs");
    auto started = bench::LocalServer::start(server);
    if (!started) return failed(started.error());
    place.server = std::move(*started);
    place.listener = place.responder = *address;
    place.listener.port = place.server->listener_port();
    place.responder.port = place.server->responder_port();
    return place;
}

tl::expected<Place, Failure> find_peer(const CompareOptions& options) {
    Place place;
    const auto addresses = resolve(options.peer);
    if (!addresses) return failed(addresses.error());
    place.listener = addresses->front();
    if (place.listener.port == 0) place.listener.port = KXFER_PORT;
    place.responder = bench::responder_address(place.listener);
    return place;
}

// A SIZE as the command line takes it; memory comes in pages.
std::string size_text(uint64_t bytes) {
    constexpr uint64_t mib = 1ULL << 20;
    return bytes % mib ? fmt::format("{}K", bytes / 1024) : fmt::format("{}M", bytes / mib);
}

bench::PathOptions path_options(const CompareOptions& options, const Bench& bench) {
    bench::PathOptions path;
    path.peer = bench.place.listener;
    path.device = options.common.device;
    path.context = contexts.at(options.context);
    path.wait_flags = waits.at(options.poll);
    path.ring = options.ring;
    path.signal_batch = options.signal_batch();
    path.timeout = options.common.timeout();
    path.export_name = options.peer_given ? options.export_name : fmt::format("compare-{}", getpid());
    path.writable = options.writes() || !options.peer_given;
    return path;
}

Failure path_failure(const CompareOptions& options, const Bench& bench, Error error) {
    if (options.peer_given && (error.number == ENOENT || error.number == EACCES || error.number == ERANGE))
        error.hint = fmt::format("run there: kxfer serve {}=mem:{} --writable --verbs", options.export_name,
                                 size_text(bench.memory->length()));
    if (options.peer_given && error.hint.empty())
        error.hint = fmt::format("does the peer answer? try: kxfer ping {}", options.peer.text());
    if (error.number == ENOMEM) error = pin_error(error, 2 * bench.memory->length());
    return Failure{error};
}

tl::expected<std::unique_ptr<bench::Engine>, Failure> connect_verbs(const CompareOptions& options,
                                                                    const Bench& bench, uint64_t remote_bytes,
                                                                    unsigned depth, unsigned batch) {
    verbs::EngineOptions how;
    how.peer = bench::socket_address(bench.place.responder);
    how.depth = depth;
    how.batch = batch;
    how.signal_batch = options.signal_batch();
    how.remote_bytes = remote_bytes;
    how.writable = options.writes() || !options.peer_given;
    how.timeout = options.common.timeout();
    auto engine = verbs::Engine::connect(how, *bench.memory);
    if (!engine) return failed(engine.error());
    return std::move(*engine);
}

// In the order of the columns; verbs last, for it asks for as much as the export has.
tl::expected<void, Failure> connect_engines(const CompareOptions& options, Bench& bench, unsigned depth,
                                            unsigned batch) {
    const auto path = path_options(options, bench);
    uint64_t remote_bytes = 0;

    if (options.wants("kverbs")) {
        auto engine = bench::KverbsEngine::connect(path, *bench.memory);
        if (!engine) return tl::make_unexpected(path_failure(options, bench, engine.error()));
        remote_bytes = (*engine)->remote_bytes();
        bench.engines.push_back(std::move(*engine));
    }
    if (options.wants("job")) {
        auto engine = bench::JobEngine::connect(path, *bench.memory);
        if (!engine) return tl::make_unexpected(path_failure(options, bench, engine.error()));
        remote_bytes = (*engine)->remote_bytes();
        bench.engines.push_back(std::move(*engine));
    }
    if (options.wants("verbs")) {
        auto engine = connect_verbs(options, bench, remote_bytes, depth, batch);
        if (!engine) return tl::make_unexpected(engine.error());
        bench.engines.insert(bench.engines.begin(), std::move(*engine));
    }
    return {};
}

// Brings each workload to what all engines can do, or says why that fails.
tl::expected<void, Failure> fit(const CompareOptions& options, const Bench& bench,
                                std::vector<bench::Workload>& workloads) {
    for (auto& workload : workloads) {
        if (!options.depth)
            for (const auto& engine : bench.engines)
                workload.depth = std::clamp(engine->parameters(workload).max_depth, 1U, workload.depth);
        set_batch(options, workload);
        const auto& a = *bench.engines.front();
        for (const auto& b : bench.engines)
            if (auto mismatch = bench::find_mismatch(a.name(), a.parameters(workload), b->name(),
                                                     b->parameters(workload), workload.depth))
                return failed(*mismatch);
    }
    return {};
}

tl::expected<Bench, Failure> set_up(const CompareOptions& options, std::vector<bench::Workload>& workloads) {
    Bench bench;
    const uint64_t bytes = memory_of(workloads);
    unsigned depth = 1, batch = 1;

    auto place = options.peer_given ? find_peer(options) : serve_here(options, bytes);
    if (!place) return tl::make_unexpected(place.error());
    bench.place = std::move(*place);
    auto memory = bench::Memory::create(bytes);
    if (!memory) return failed(memory.error());
    bench.memory = std::make_unique<bench::Memory>(std::move(*memory));
    for (auto workload : workloads) {
        set_batch(options, workload);
        depth = std::max(depth, workload.depth);
        batch = std::max(batch, workload.batch);
    }
    if (auto connected = connect_engines(options, bench, depth, batch); !connected)
        return tl::make_unexpected(connected.error());
    if (auto fitting = fit(options, bench, workloads); !fitting) return tl::make_unexpected(fitting.error());
    bench.device = bench.engines.front()->parameters(workloads.front()).device;
    return bench;
}

// The engines pin the same memory, and siw heeds the limit whoever asks. Who
// may raise it does; else a pin that fails says what to do.
void raise_memlock() {
    rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

// Names of what is asked for that cannot be.
tl::expected<void, Failure> check_options(const CompareOptions& options) {
    if (options.poll != "adaptive" && options.context != "polled")
        return failed(Error("completions cannot be polled by the job in context", options.context, EINVAL,
                            "use --poll with --context polled"),
                      exit_usage);
    if (options.depth && options.batch > options.depth)
        return failed(Error("a batch cannot be larger than the depth", "", EINVAL,
                            fmt::format("use --batch {} or less", options.depth)),
                      exit_usage);
    if (const uint64_t bytes = memory_of(workloads_of(options)); bytes > max_memory)
        return failed(Error("too much memory is asked for", human_bytes(bytes), EINVAL,
                            fmt::format("size times depth may be {}", human_bytes(max_memory))),
                      exit_usage);
    return {};
}

tl::expected<std::string, Failure> module_version(const CompareOptions& options) {
    if (!options.wants_module()) return std::string();
    const auto session = open_session_with_device();
    if (!session) {
        Failure failure = session.error();
        if (failure.status == exit_no_device)
            failure.error.hint += "; --engine verbs measures user-space verbs alone";
        return tl::make_unexpected(failure);
    }
    const auto query = session->query();
    if (!query) return failed(query.error());
    return text_of(query->version);
}

tl::expected<DeviceFacts, Failure> facts_of(const std::string& device) {
    auto node = find_devices();
    if (!node) return failed(node.error());
    for (auto& facts : node->devices)
        if (facts.core.name == device) return std::move(facts);
    return failed(Error("the device is gone:", device, ENODEV));
}

// Unless it was asked for, the floor is left out where it cannot be measured.
// Returns why, or nothing.
tl::expected<std::string, Failure> check_floor(CompareOptions& options) {
    if (!options.wants("kverbs")) return std::string();
    std::optional<Error> obstacle;
    if (options.context != "polled")
        obstacle = Error("the floor is measured in no context but polled", "", EOPNOTSUPP,
                         "it needs --context polled");
    else
        obstacle = bench::KverbsEngine::obstacle();
    if (!obstacle) return std::string();
    if (options.engines_given) return failed(*obstacle);
    std::erase(options.engines, "kverbs");
    return obstacle->hint.empty() ? obstacle->text() : obstacle->hint;
}

Result run_compare(const CompareOptions& given, Context& context) {
    CompareOptions options = given;
    CompareReport report;
    catch_interrupts();
    if (auto fine = check_options(options); !fine) return tl::make_unexpected(fine.error());
    const auto version = module_version(options);
    if (!version) return tl::make_unexpected(version.error());
    const auto no_floor = check_floor(options);
    if (!no_floor) return tl::make_unexpected(no_floor.error());

    raise_memlock();
    auto workloads = workloads_of(options);
    const auto bench = set_up(options, workloads);
    if (!bench) return tl::make_unexpected(bench.error());
    const auto device = facts_of(bench->device);
    if (!device) return tl::make_unexpected(device.error());

    report.environment = bench::find_environment();
    report.device = *device;
    report.module_version = *version;
    report.peer = bench->place.server ? fmt::format("this node, {}", to_string(bench->place.listener))
                                      : options.peer.text();
    report.context = options.wants("job") ? options.context : "";
    report.poll = options.poll;
    report.ring = options.ring;
    report.no_floor = *no_floor;
    report.plan = {options.rounds, options.count,
                   std::chrono::nanoseconds(static_cast<int64_t>(options.seconds * 1e9)), interrupted};
    report.parameters = bench->engines.front()->parameters(workloads.front());
    for (const auto& workload : workloads) {
        if (isatty(STDERR_FILENO))
            context.out.note(fmt::format("{} {} ...", bench::operation_name(workload.operation),
                                         human_bytes(workload.size)));
        auto cell = bench::run_cell(bench->pointers(), *bench->memory, workload, report.plan);
        if (interrupted()) return tl::make_unexpected(interrupt_failure("stopped measuring", ""));
        if (!cell) return failed(cell.error());
        report.cells.push_back(std::move(*cell));
    }
    context.out.record(report_record(report));
    return exit_ok;
}

void add_sizes(CLI::App& command, std::vector<uint64_t>& sizes) {
    command
        .add_option_function<std::vector<std::string>>(
            "--size",
            [&sizes](const std::vector<std::string>& texts) {
                sizes.clear();
                for (const auto& text : texts) {
                    const auto size = parse_size(text);
                    if (!size) throw CLI::ValidationError("--size", size.error());
                    if (*size == 0 || *size > max_memory)
                        throw CLI::ValidationError("--size",
                                                   "a size is 1 byte to " + human_bytes(max_memory));
                    sizes.push_back(*size);
                }
            },
            "sizes of an operation, by commas (default 64,4K,64K)")
        ->type_name("SIZE,...")
        ->delimiter(',');
}

void add_measuring(CLI::App& command, CompareOptions& options) {
    command
        .add_option("--depth", options.depth,
                    "operations in flight in the deep runs (default 128, or less "
                    "where an engine cannot)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    command
        .add_option("--batch", options.batch,
                    "operations handed in at once (default a quarter of the depth, "
                    "at most 32)")
        ->type_name("N")
        ->check(CLI::Range(1, 256));
    command
        .add_option("--signal", options.signal,
                    "completions of the deep runs: one for each operation (default) "
                    "or one for each batch")
        ->check(CLI::IsMember({"each", "batch"}));
    command.add_option("--rounds", options.rounds, "rounds of A B C C B A (default 5)")
        ->type_name("N")
        ->check(CLI::Range(2, 1000));
    command
        .add_option("--count", options.count,
                    "most operations of a block, two of each engine a round (default 1000)")
        ->type_name("N")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1000000000}));
    command.add_option("--seconds", options.seconds, "most time of an operation and size (default 1)")
        ->type_name("S")
        ->check(CLI::Range(0.01, 3600.0));
}

} // namespace

void setup_compare(CLI::App& app, Program& program) {
    const auto options = std::make_shared<CompareOptions>();
    CLI::App& command = add_command(app, "compare", "the kernel job path beside user-space verbs",
                                    "kxfer compare --op read --size 64,4K");
    add_peer_option(command, "PEER", options->peer, "the other node; none: this node serves itself")
        ->each([options](const std::string&) { options->peer_given = true; });
    command.add_option("--op", options->operations, "operations, by commas: read, write (default both)")
        ->type_name("OP,...")
        ->delimiter(',')
        ->check(CLI::IsMember({"read", "write"}));
    add_sizes(command, options->sizes);
    add_measuring(command, *options);
    command
        .add_option("--engine", options->engines,
                    "by commas: verbs, kverbs (a loop in the kernel: the floor), job "
                    "(default all)")
        ->type_name("ENGINE,...")
        ->delimiter(',')
        ->check(CLI::IsMember({"verbs", "kverbs", "job"}))
        ->each([options](const std::string&) { options->engines_given = true; });
    command
        .add_option("--context", options->context,
                    "where the kernel handles completions: polled (default), "
                    "workqueue, softirq or unbound")
        ->check(CLI::IsMember({"polled", "workqueue", "softirq", "unbound"}));
    command
        .add_option("--poll", options->poll,
                    "how a job's caller waits: adaptive (default), always or "
                    "never polling")
        ->check(CLI::IsMember({"adaptive", "always", "never"}));
    command.add_flag("--ring", options->ring, "a job's completions come into memory shared with the kernel");
    command
        .add_option("--export", options->export_name,
                    "export of the peer that is read and overwritten "
                    "(default compare)")
        ->type_name("NAME");
    add_common_options(command, options->common);
    on_run(command, program, options, run_compare);
}

} // namespace kxfer::cli

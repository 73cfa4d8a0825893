// SPDX-License-Identifier: MIT
#include "cli/measure/sweep_rig.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/try.hpp"
#include "bench/engines/kverbs_engine.hpp"
#include "bench/run/conditions.hpp"
#include "bench/stats/comparison.hpp"
#include "cli/node/interrupt.hpp"

namespace kxfer::cli {

namespace {

// An engine with the name of its way, because several ways have the same engine.
class WayEngine : public bench::Engine {
  public:
    WayEngine(std::string name, std::unique_ptr<bench::Engine> engine)
        : name_(std::move(name)), engine_(std::move(engine)) {}

    std::string name() const override { return name_; }
    bench::Parameters parameters(const bench::Workload& workload) const override {
        return engine_->parameters(workload);
    }
    bool remote_writable() const override { return engine_->remote_writable(); }
    unsigned slots(const bench::Workload& workload, bench::Mode mode) const override {
        return engine_->slots(workload, mode);
    }
    tl::expected<void, Error> supports(bench::Operation operation) const override {
        return engine_->supports(operation);
    }
    tl::expected<void, Error> make_ready(const bench::Workload& workload) override {
        return engine_->make_ready(workload);
    }
    tl::expected<void, Error> begin_block(const bench::Workload& workload) override {
        return engine_->begin_block(workload);
    }
    tl::expected<void, Error> end_block(const bench::Workload& workload) override {
        return engine_->end_block(workload);
    }
    tl::expected<void, Error> settle() override { return engine_->settle(); }
    tl::expected<bench::Block, Error> run_block(const bench::Workload& workload, bench::Mode mode,
                                                const bench::Limits& limits) override {
        return engine_->run_block(workload, mode, limits);
    }

  private:
    std::string name_;
    std::unique_ptr<bench::Engine> engine_;
};

bench::SweepCell cell_of(const bench::Way& way, const bench::EngineResult& result, bench::Mode mode,
                         const bench::Parameters& parameters) {
    const auto& figures = mode == bench::Mode::single ? result.single : result.deep;
    return {way,
            result.verified,
            figures.operations,
            figures.blocks,
            figures.syscalls,
            mode == bench::Mode::single ? bench::latencies_of(result.latencies) : bench::Latencies(),
            parameters.local_registration,
            parameters.remote_registration,
            parameters.write_success,
            figures.cpu_ns_per_operation(),
            figures.switches_per_operation()};
}

} // namespace

tl::expected<SweepRig, Failure> SweepRig::set_up(const RigOptions& options, const bench::Grid& grid,
                                                 const std::vector<bench::Task>& works) {
    SweepRig sweep(options, grid);
    uint64_t bytes = 0;

    for (const auto& work : works) {
        bytes = std::max(bytes, work.bytes());
        sweep.depth_ = std::max(sweep.depth_, work.depth);
    }
    if (options.wants("kverbs"))
        if (const auto obstacle = bench::KverbsEngine::obstacle()) {
            if (grid.engines.size() == 1) return failed(*obstacle);
            sweep.no_floor_ = obstacle->reason();
        }
    // A server on this node must answer dedicated connections of kverbs if some way has one.
    RigOptions place = options;
    if (std::ranges::find(grid.contexts, "direct") != grid.contexts.end()) place.context = "direct";
    TRY_SET(sweep.rig_, set_up_place(place, bytes));
    return sweep;
}

RigOptions SweepRig::options_of(const bench::Way& way) const {
    RigOptions options = options_;
    options.engines = {way.engine};
    if (!way.context.empty()) options.context = way.context;
    if (!way.memory.empty()) options.memory = way.memory;
    if (!way.poll.empty()) options.poll = way.poll;
    return options;
}

// Connects engines and takes them over as contestants.
tl::expected<void, Failure> SweepRig::add(const RigOptions& options) {
    const unsigned batch = batch_of(options, depth_, 0);
    TRY(connect_engines(options, rig_, depth_, batch));
    for (auto& engine : rig_.engines) {
        const auto way = bench::way_of(engine->name(), options.context, options.memory, options.poll);
        const std::string name = way.name();
        contestants_.push_back({way, std::make_unique<WayEngine>(name, std::move(engine))});
    }
    rig_.engines.clear();
    return {};
}

// Connects the usual ways of all engines first and together, because verbs asks for as much of
// the peer's memory as the others have.
tl::expected<void, Failure> SweepRig::connect(const std::string& signal) {
    const auto ways = bench::ways_of(grid_);

    if (signal == options_.signal && !contestants_.empty()) return {};
    contestants_.clear();
    options_.signal = signal;
    RigOptions usual = options_;
    usual.context = grid_.contexts.front();
    usual.memory = grid_.memories.front();
    usual.poll = grid_.polls.front();
    usual.engines = grid_.engines;
    if (!no_floor_.empty()) std::erase(usual.engines, "kverbs");
    std::erase_if(usual.engines, [&](const auto& engine) {
        return std::ranges::find(ways, bench::usual_way(grid_, engine)) == ways.end();
    });
    TRY(add(usual));
    for (const auto& way : ways) {
        const auto there = std::ranges::find(contestants_, way, &Contestant::way);
        if (there != contestants_.end() || (way.engine == "kverbs" && !no_floor_.empty())) continue;
        TRY(add(options_of(way)));
    }
    std::ranges::sort(contestants_, {}, [&](const Contestant& contestant) {
        return std::ranges::find(ways, contestant.way) - ways.begin();
    });
    return {};
}

tl::expected<std::vector<bench::Engine*>, Failure> SweepRig::able(const bench::Workload& workload,
                                                                  bench::SweepRow& row) const {
    std::vector<bench::Engine*> engines;
    for (const auto& [way, engine] : contestants_) {
        const auto parameters = engine->parameters(workload);
        if (auto supported = engine->supports(workload.operation); !supported)
            row.refusals.push_back({way, supported.error().reason()});
        else if (parameters.max_depth < workload.depth)
            row.refusals.push_back(
                {way, fmt::format("it keeps at most {} such operations in flight", parameters.max_depth)});
        else
            engines.push_back(engine.get());
    }
    for (const auto* engine : engines)
        if (const auto* first = engines.front();
            auto mismatch = bench::find_mismatch(first->name(), first->parameters(workload), engine->name(),
                                                 engine->parameters(workload), workload.depth))
            return failed(*mismatch);
    return engines;
}

tl::expected<bench::SweepRow, Failure> SweepRig::measure(const bench::Task& work,
                                                         const bench::SweepPlan& sweep) {
    const auto began = std::chrono::steady_clock::now();
    const auto contestant_of = [&](const std::string& name) -> const Contestant& {
        return *std::ranges::find(contestants_, name, [](const auto& c) { return c.way.name(); });
    };
    bench::SweepRow row;
    row.work = work;
    row.batch = batch_of(options_, work.depth, 0);
    const bench::Workload workload{work.operation, work.size, work.depth, row.batch};
    if (!no_floor_.empty())
        for (const auto& way : bench::ways_of(grid_))
            if (way.engine == "kverbs") row.refusals.push_back({way, no_floor_});
    TRY_SET(const auto engines, able(workload, row));

    bench::Plan plan = sweep.plan_of(work.mode());
    plan.stopped = interrupted;
    bench::ConditionsWatch watch;
    TRY_SET(const auto cell, bench::run_cell(engines, *rig_.memory, workload, plan));
    row.obstacle = watch.finish().obstacle();
    if (const auto difference = bench::find_difference(cell); row.obstacle.empty() && !difference.empty())
        row.obstacle = "the connections differ in " + difference;
    row.uncounted = cell.uncounted;
    for (const auto& result : cell.engines) {
        const auto& [way, engine] = contestant_of(result.engine);
        row.cells.push_back(cell_of(way, result, work.mode(), engine->parameters(workload)));
    }
    for (const auto& refusal : cell.refusals)
        row.refusals.push_back({contestant_of(refusal.engine).way, refusal.error.reason()});
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return row;
}

bench::Parameters SweepRig::parameters() const {
    return contestants_.empty() ? bench::Parameters() : contestants_.front().engine->parameters({});
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/measure/bidirectional.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/node/interrupt.hpp"

namespace kxfer::cli {

namespace {

// Extra time for a slower peer.
constexpr std::chrono::seconds grace{30};

std::optional<Error> wrong(const std::string& what, const std::string& hint) {
    return Error(what, "", 0, hint);
}

Failure refusal(const RigOptions& options, Error error) {
    if (options.peer_given && error.number == ENOENT) {
        error.why = "its process takes no part in measurements";
        error.hint =
            fmt::format("run there: kxfer serve {}=mem:SIZE --writable --bench", options.export_name);
    }
    return Failure{error};
}

} // namespace

std::optional<Error> find_one_way(const RigOptions& options, const bench::Workload& workload) {
    if (!options.bidirectional) return std::nullopt;
    if (!options.wants("job"))
        return wrong("only engine job goes both ways: a responder of user-space verbs begins nothing, and a "
                     "loop in the kernel needs CAP_NET_ADMIN at the peer",
                     "use --bidirectional with --engine job");
    if (workload.is_mix() || workload.work != bench::Work::transfer ||
        bench::is_message(workload.operation) || bench::is_beyond_kernel(workload.operation))
        return wrong(fmt::format("{} does not go both ways", workload.name()),
                     "use --bidirectional with read, write, compare-swap or fetch-add");
    if (options.nr_clients > 1)
        return wrong("one client goes both ways", "leave out --clients or --bidirectional");
    return std::nullopt;
}

tl::expected<std::unique_ptr<bench::Requester>, Failure> involve_peer(const RigOptions& options,
                                                                      const Rig& rig,
                                                                      const bench::Workload& workload,
                                                                      bench::RunPlan& plan) {
    if (!options.bidirectional && !(options.peer_given && options.wants_module())) return nullptr;
    auto requester = ask_peer(options, rig);
    if (!options.bidirectional) {
        if (!requester) return nullptr;
        plan.surroundings.ask_peer = [asked = requester->get()]() -> std::optional<bench::ProcessUsage> {
            const auto usage = asked->usage();
            return usage ? std::optional(*usage) : std::nullopt;
        };
        return std::move(*requester);
    }
    if (!requester) return tl::make_unexpected(refusal(options, requester.error()));
    TRY((*requester)->lend(workload, plan));
    auto* asked = requester->get();
    plan.together = {[asked, &plan] { return asked->prepare(plan.stopped); },
                     [asked] { return asked->go(); },
                     {},
                     [asked, &plan] { return asked->end(bench::max_reverse_time + grace, plan.stopped); }};
    return std::move(*requester);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Line: an export of a peer, over as many links as it takes. A link breaks when the peer, or the
// network to it, is silent for some seconds. put and get then open peer and export again in the
// same session, submit the jobs that failed once more, and go on.
//
// What they repeat puts the same bytes into the same place, so it does not matter which of it was
// done before the break.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kxfer/kxfer.hpp>

#include "cli/line/connect.hpp"
#include "cli/line/pipeline.hpp"
#include "cli/output/output.hpp"

namespace kxfer::cli {

class Line {
  public:
    // Opens the export with the rights that the command needs.
    using Open = std::function<tl::expected<Target, Failure>(Connection&, const CommonOptions&)>;

    // Whether the end of the export is a break, too: its owner may be started again.
    enum class Owner : uint8_t { stays, may_come_back };

    // Connects. A link that breaks while the export is opened was one that others use, and that was
    // dead already: the line then connects again, within --timeout. No peer at all is an error at once.
    static tl::expected<Line, Failure> open(const Remote& remote, const CommonOptions& common, Open open,
                                            Output& out, Owner owner = Owner::stays);

    Session& session() { return connection_.session; }
    Connection& connection() { return connection_; }
    Target& target() { return target_; }
    const Target& target() const { return target_; }
    // The same export, over each path in turn (--via). Between its jobs there is no order.
    const Target& next_target();
    uint64_t breaks() const { return breaks_; }

    // A job has ended well: the next break has the whole --timeout again.
    void moved() { deadline_ = Deadline::never(); }

    // Opens peer and export again after a break, within --timeout. `pipeline` has the jobs of the
    // line; none is in flight afterwards. Returns `broke` if that is no break, or if the line does
    // not come back. Whether the export is still the same is for the caller to find out.
    tl::expected<void, Failure> restore(Failure broke, Pipeline& pipeline);

  private:
    Line(Remote remote, CommonOptions common, Open open, Output& out, Owner owner, Connection connection,
         Target target);
    // One of the paths of --via, with the others standing by.
    struct Way {
        Connection connection;
        Target target; // destroyed before the connection
    };

    bool is_break(int number) const;
    std::chrono::milliseconds longest_standstill(bool broke) const;
    tl::expected<void, Failure> open_ways(const Deadline& deadline);
    tl::expected<void, Failure> connect_again(Failure broke);
    tl::expected<void, Failure> open_again(const Deadline& deadline);
    tl::expected<void, Failure> open_until(const Deadline& deadline);

    Remote remote_;
    CommonOptions common_;
    Open open_;
    Output* out_;
    Owner owner_;
    Connection connection_;
    Target target_;         // destroyed before the connection
    std::vector<Way> ways_; // beside the first; of the same session
    size_t turn_ = 0;       // of next_target()
    Deadline deadline_ = Deadline::never();
    uint64_t breaks_ = 0;
};

} // namespace kxfer::cli

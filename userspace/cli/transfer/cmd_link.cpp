// SPDX-License-Identifier: MIT
//
// kxfer link list|show|story: the connections of this node with peers, and what happened to them.

#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/privilege.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/link_record.hpp"

namespace kxfer::cli {

namespace {

struct LinkOptions {
    uint64_t id = 0;
};

Result run_list(const LinkOptions&, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto rows, link_rows(session, known_devices()));
    context.out.table(
        rows, sees_all() ? "this node has no links"
                         : "this user has no links; those of others are shown with CAP_NET_ADMIN only");
    return exit_ok;
}

Result run_show(const LinkOptions& options, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto record, link_record(session, known_devices(), options.id));
    context.out.record(record);
    return exit_ok;
}

Result run_story(const LinkOptions&, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto rows, story_rows(session, 0));
    context.out.table(
        rows, sees_all()
                  ? "no program has opened a peer whose jobs may outlive a link (loss_ms)"
                  : "no program of this user has opened a peer whose jobs may outlive a link (loss_ms)");
    return exit_ok;
}

} // namespace

void setup_link(CLI::App& app, Program& program) {
    const auto options = std::make_shared<LinkOptions>();
    CLI::App& command = add_command(app, "link", "connections of this node with peers", "kxfer link list");
    command.require_subcommand(1);
    CLI::App& list = add_command(command, "list", "links of this node, or of this user", "kxfer link list");
    on_run(list, program, options, run_list);
    CLI::App& show = add_command(command, "show", "one link, its lanes and its story", "kxfer link show 1");
    show.add_option("id", options->id, "number of the link, from `kxfer link list`")
        ->type_name("ID")
        ->check([](const std::string& text) {
            uint64_t id = 0;
            const char* end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, id);
            return error == std::errc() && rest == end
                       ? std::string()
                       : fmt::format("'{}' is not the number of a link", text);
        })
        ->required();
    on_run(show, program, options, run_show);
    CLI::App& story = add_command(command, "story", "what happened to peers whose jobs outlive their links",
                                  "kxfer link story");
    on_run(story, program, options, run_story);
}

} // namespace kxfer::cli

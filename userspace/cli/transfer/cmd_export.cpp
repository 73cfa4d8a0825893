// SPDX-License-Identifier: MIT
//
// kxfer export list: what processes of this node export. `kxfer serve` or another
// program creates an export, which ends with that process.

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/line/connect.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/privilege.hpp"
#include "cli/node/sha256.hpp"
#include "cli/transfer/commands.hpp"

namespace kxfer::cli {

namespace {

struct ExportOptions {};

Record row_of(const kxfer_info_export& one) {
    const bool known = one.content.generation != 0;
    return Record()
        .add("id", one.id, Show::json_only)
        .add("name", text_of(one.name))
        .add("length", Bytes{one.length})
        .add("rights", rights_words(one.rights))
        .add("cookie", one.cookie != 0 ? Value(one.cookie) : Value(None{}), Show::json_only)
        .add("rules", one.nr_rules)
        .add("owner_uid", one.owner_uid, Show::everywhere, "uid")
        .add("owner_pid", one.owner_pid, Show::everywhere, "pid")
        .add("links", one.nr_links)
        .add("targets", one.nr_grants)
        // The unit is in the key here, because None adds no unit.
        .add("content_length_bytes", known ? Value(Bytes{one.content.length}) : Value(None{}),
             Show::everywhere, "content")
        .add("generation", one.content.generation)
        .add("sha256", known ? Value(hex(one.content.sha256)) : Value(None{}), Show::json_only);
}

Result run_list(const ExportOptions&, Context& context) {
    TRY_SET(auto session, open_session());
    TRY_SET(const auto exports, session.list<kxfer_info_export>(KXFER_INFO_EXPORTS));
    Table rows;
    for (const kxfer_info_export& one : exports) rows.push_back(row_of(one));
    context.out.table(
        rows, sees_all() ? "this node exports nothing"
                         : "this user exports nothing; what others export is shown with CAP_NET_ADMIN only");
    return exit_ok;
}

} // namespace

void setup_export(CLI::App& app, Program& program) {
    const auto options = std::make_shared<ExportOptions>();
    CLI::App& command = add_command(app, "export", "what processes of this node export", "kxfer export list");
    command.require_subcommand(1);
    CLI::App& list = add_command(command, "list", "all exports of this node", "kxfer export list");
    on_run(list, program, options, run_list);
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer ls PEER: the exports of a peer that are open to this user.
// kxfer ls PEER/NAME/[PATH]: what is in a folder that is served there.

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/folder/folder_copy.hpp"
#include "cli/line/connect.hpp"
#include "cli/node/sha256.hpp"
#include "cli/transfer/commands.hpp"

namespace kxfer::cli {

namespace {

struct LsOptions {
    Peer peer;
    std::optional<RemotePath> place; // in a folder
    CommonOptions common;
};

Record row_of(const kxfer_peer_export& one) {
    const bool known = one.content.generation != 0;
    const std::string sha256 = known ? hex(one.content.sha256) : "";
    return Record()
        .add("name", text_of(one.name))
        .add("length", Bytes{one.length})
        .add("rights", rights_words(one.rights))
        // The unit is in the key here, because None adds no unit.
        .add("content_length_bytes", known ? Value(Bytes{one.content.length}) : Value(None{}),
             Show::everywhere, "content")
        .add("generation", uint64_t{one.content.generation})
        .add("sha256", known ? Value(sha256) : Value(None{}), Show::json_only)
        .add("sha256_start", sha256.substr(0, 12), Show::text_only, "sha256");
}

Result run_ls(const LsOptions& options, Context& context) {
    if (options.place && !options.common.via.empty())
        return wrong_usage("--via is for exports of memory, not for folders", "leave it out");
    if (options.place) return list_folder(*options.place, options.common, context);
    TRY_SET(auto connection, connect(options.peer, options.common));
    const auto exports = connection.peer.exports(options.common.timeout());
    if (!exports) {
        Remote remote{options.peer, ""};
        return tl::make_unexpected(target_failure(exports.error(), remote, options.common));
    }
    Table rows;
    for (const kxfer_peer_export& one : *exports) rows.push_back(row_of(one));
    context.out.table(rows, "the peer exports nothing to this user");
    return exit_ok;
}

} // namespace

void setup_ls(CLI::App& app, Program& program) {
    const auto options = std::make_shared<LsOptions>();
    CLI::App& command = add_command(app, "ls", "what a peer exports to this user", "kxfer ls 10.77.0.1");
    command
        .add_option_function<std::string>(
            "peer",
            [options](const std::string& text) {
                const bool is_place = text.find('/') != std::string::npos;
                const auto place =
                    is_place ? parse_remote_path(text) : tl::expected<RemotePath, std::string>();
                const auto peer = is_place ? tl::expected<Peer, std::string>() : parse_peer(text);
                if (!place) throw CLI::ValidationError("peer", place.error());
                if (!peer) throw CLI::ValidationError("peer", peer.error());
                options->peer = *peer;
                if (is_place) options->place = *place;
            },
            "HOST[:PORT], or HOST[:PORT]/NAME/[PATH]: what is in a folder that is served there")
        ->type_name("PEER")
        ->required();
    add_via_option(command, options->common);
    add_common_options(command, options->common);
    on_run(command, program, options, run_ls);
}

} // namespace kxfer::cli

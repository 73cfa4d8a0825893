// SPDX-License-Identifier: MIT
#include "cli/command/command.hpp"

#include "cli/command/size.hpp"
#include "cli/node/keys.hpp"

namespace kxfer::cli {

void add_common_options(CLI::App& command, CommonOptions& common) {
    command.add_option("--device", common.device, "RDMA device to use, as `rdma link` names it")
        ->type_name("DEV");
    command
        .add_option("--key", common.key,
                    "shared secret that this node and the peer have to prove to each other (kxfer key add)")
        ->type_name("NAME")
        ->check(check_key_name);
    command
        .add_option(
            "--tos", common.tos,
            "IP type of service of the connection's packets (default: default_roce_tos of the device)")
        ->type_name("0-255")
        ->check(CLI::Range(0U, 255U));
    command.add_option("--timeout", common.timeout_seconds, "longest wait for an answer (default 10)")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.001, 60.0))
        ->check(check_finite);
}

void add_via_option(CLI::App& command, CommonOptions& common) {
    add_peers_option(command, "--via", common.via,
                     "other addresses of the same peer: when a link breaks, what is under way goes on over "
                     "the next one; put and get of a file use all of them");
}

CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& summary,
                      const std::string& example) {
    CLI::App* command = parent.add_subcommand(name, summary);
    command->footer("Example:\n  " + example);
    return *command;
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "cli/command/command.hpp"

#include <fmt/format.h>

#include "cli/command/number.hpp"
#include "cli/command/size.hpp"
#include "cli/node/keys.hpp"

namespace kxfer::cli {

namespace {

std::string check_in_flight(const std::string& text) {
    const auto size = parse_size(text);
    if (!size) return size.error();
    if (*size >= KXFER_IN_FLIGHT_MIN_KIB * 1024ULL && *size <= KXFER_IN_FLIGHT_MAX_KIB * 1024ULL) return "";
    return fmt::format("'{}' is not from 1M to 256M", text);
}

} // namespace

std::chrono::milliseconds time_until(const Deadline& deadline) {
    using std::chrono::milliseconds;
    const uint64_t now = kxfer_clock_ns();
    if (deadline.ns() == 0) return milliseconds::max();
    return milliseconds(deadline.ns() > now ? (deadline.ns() - now) / 1000000 + 1 : 1);
}

void add_patience_options(CLI::App& command, PatienceOptions& patience) {
    command
        .add_option("--silence", patience.silence_seconds,
                    "give a link up when nothing was heard of the peer for so long (default 8)")
        ->type_name("SECONDS")
        ->check(from_to(KXFER_SILENCE_MIN_MS / 1000.0, KXFER_SILENCE_MAX_MS / 1000.0));
    command
        .add_option("--ack-timeout", patience.ack_timeout,
                    "the device sends a packet again after 4.096 us * 2^N without an acknowledgement "
                    "(RoCE, InfiniBand; default: all tries take half of --silence, 17 or 0.54 s for 8 s)")
        ->type_name("N")
        ->check(from_to(uint32_t{KXFER_ACK_TIMEOUT_MIN}, uint32_t{KXFER_ACK_TIMEOUT_MAX}));
}

void add_common_options(CLI::App& command, CommonOptions& common) {
    command.add_option("--device", common.device, "RDMA device to use, as `rdma link` names it")
        ->type_name("DEV");
    command
        .add_option("--key", common.key,
                    "shared secret that this node and the peer have to prove to each other (kxfer key add)")
        ->type_name("NAME")
        ->check(check_key_name)
        ->each(search_user_keyring);
    command
        .add_option(
            "--tos", common.tos,
            "IP type of service of the connection's packets (default: default_roce_tos of the device)")
        ->type_name("N")
        ->check(from_to(0U, 255U));
    command.add_option("--timeout", common.timeout_seconds, "longest wait for an answer (default 10)")
        ->type_name("SECONDS")
        ->check(from_to(0.001, 60.0));
    add_patience_options(command, common.patience);
    command
        .add_option("--retries", common.patience.retries,
                    "how often a device sends a packet again before the link ends (default 7)")
        ->type_name("N")
        ->check(from_to(1U, uint32_t{KXFER_RETRY_COUNT_MAX}));
    add_size_option(command, "--in-flight", common.in_flight,
                    "bytes of long jobs under way at a time, 1M to 256M (default 4M); a link needs its "
                    "bandwidth times its round trip")
        ->check(check_in_flight);
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

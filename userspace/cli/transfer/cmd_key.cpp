// SPDX-License-Identifier: MIT
//
// kxfer key add|list|del: shared secrets in the keyring of this user. The kernel's keys are
// of type logon: no process reads them back.

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/node/keys.hpp"
#include "cli/transfer/commands.hpp"

namespace kxfer::cli {

namespace {

constexpr int keyctl_unlink = 9; // of linux/keyctl.h
constexpr size_t secret_max = 1024;

struct KeyOptions {
    std::string name;
    std::string file;
};

Error key_error(std::string what, const std::string& name) {
    Error error(std::move(what), name, errno);
    if (error.number == EDQUOT) error.hint = "see: /proc/key-users, sysctl kernel.keys.maxkeys";
    return error;
}

tl::expected<std::vector<char>, Failure> read_secret(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::vector<char> secret(secret_max + 1);
    if (!in.is_open()) return failed(Error("cannot read the secret in", file, errno));
    in.read(secret.data(), static_cast<std::streamsize>(secret.size()));
    if (in.bad()) return failed(Error("cannot read the secret in", file, EIO));
    secret.resize(static_cast<size_t>(in.gcount()));
    if (secret.size() < KXFER_KEY_MIN || secret.size() > secret_max)
        return failed(
            Error("cannot take the secret in", file, EINVAL,
                  "make one: (umask 077; head -c 32 /dev/urandom > FILE), and copy it to both nodes",
                  fmt::format("a secret has {} to {} bytes, this file has {}", KXFER_KEY_MIN, secret_max,
                              secret.size() > secret_max ? "more" : std::to_string(secret.size()))));
    return secret;
}

Result run_add(const KeyOptions& options, Context& context) {
    TRY_SET(auto secret, read_secret(options.file));
    const std::string description = KXFER_KEY_PREFIX + options.name;
    const long key =
        syscall(SYS_add_key, KXFER_KEY_TYPE, description.c_str(), secret.data(), secret.size(), user_keyring);
    const Error error = key < 0 ? key_error("cannot add the key", options.name) : Error();
    explicit_bzero(secret.data(), secret.size());
    if (key < 0) return failed(error);
    context.out.record(Record().add("added", options.name).add("bytes", uint64_t{secret.size()}));
    return exit_ok;
}

Result run_list(const KeyOptions&, Context& context) {
    TRY_SET(const auto keys, known_keys());
    Table rows;
    for (const KnownKey& key : keys)
        rows.push_back(Record().add("name", key.name).add("uid", key.uid).add("expires", key.expires));
    context.out.table(rows, "no key of kxfer's that this user may see; try: kxfer key add NAME FILE");
    return exit_ok;
}

Result run_del(const KeyOptions& options, Context& context) {
    const long key = find_key(options.name);
    if (key < 0 || syscall(SYS_keyctl, keyctl_unlink, key, user_keyring, 0, 0) < 0) {
        Error error = key_error("cannot delete the key", options.name);
        if (error.number == ENOKEY) error.hint = "see: kxfer key list";
        return failed(error);
    }
    context.out.record(Record().add("deleted", options.name));
    return exit_ok;
}

} // namespace

void setup_key(CLI::App& app, Program& program) {
    const auto options = std::make_shared<KeyOptions>();
    CLI::App& key = add_command(app, "key", "shared secrets, by which nodes know each other",
                                "kxfer key add cluster /etc/kxfer/cluster.key");
    key.require_subcommand(1);

    CLI::App& add = add_command(key, "add", "put the bytes of a file into this user's keyring, until reboot",
                                "kxfer key add cluster /etc/kxfer/cluster.key");
    add.add_option("name", options->name, "what --key calls it")
        ->type_name("NAME")
        ->check(check_key_name)
        ->required();
    add.add_option("file", options->file, "16 to 1024 random bytes, the same on both nodes")
        ->type_name("FILE")
        ->required();
    on_run(add, program, options, run_add);

    CLI::App& list =
        add_command(key, "list", "keys that this user may see; not what is in them", "kxfer key list");
    on_run(list, program, options, run_list);

    CLI::App& del =
        add_command(key, "del", "take a key out of the keyring; listeners and links keep their copy",
                    "kxfer key del cluster");
    del.add_option("name", options->name, "as it was added")
        ->type_name("NAME")
        ->check(check_key_name)
        ->required();
    on_run(del, program, options, run_del);
}

} // namespace kxfer::cli

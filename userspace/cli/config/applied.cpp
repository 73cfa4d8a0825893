// SPDX-License-Identifier: MIT
#include "cli/config/applied.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <thread>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/node/keys.hpp"
#include "cli/node/sha256.hpp"

namespace kxfer::cli {

namespace {

constexpr const char* no_sum = "-";

std::string sum_of(std::span<const char> bytes) {
    Sha256 sha256;
    sha256.update(std::as_bytes(bytes));
    return hex(sha256.digest());
}

// A file that cannot be read has no sum; adding its key fails later.
std::string sum_of_file(const std::string& path) {
    constexpr size_t most = 4096; // a secret is shorter
    std::ifstream in(path, std::ios::binary);
    std::array<char, most> bytes = {};
    in.read(bytes.data(), bytes.size());
    const auto size = static_cast<size_t>(in.gcount());
    const std::string sum = in.is_open() ? sum_of(std::span(bytes).first(size)) : no_sum;
    explicit_bzero(bytes.data(), bytes.size());
    return sum;
}

Error state_error(const char* what, const std::string& on) {
    return Error(what, on, errno, errno == EACCES || errno == EPERM ? "run it as root" : "");
}

// A signal does not end the wait: `run` takes everything back after one.
tl::expected<void, Failure> lock_within(std::chrono::milliseconds limit, int fd, const std::string& folder) {
    constexpr std::chrono::milliseconds nap(50);
    const Deadline end(limit);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return failed(state_error("cannot lock", folder));
        if (end.passed())
            return failed(Error("cannot lock", folder, EBUSY, "lslocks shows which process has it",
                                fmt::format("another kxfer config has had it for {} s",
                                            std::chrono::ceil<std::chrono::seconds>(limit).count())));
        std::this_thread::sleep_for(nap);
    }
    return {};
}

} // namespace

std::vector<std::string> keys_of(const std::vector<std::string>& words) {
    CLI::App app;
    KeyChoice choice;
    add_key_choice(app, choice);
    app.allow_extras();
    // CLI11 takes the words from the end. The line as a whole has been parsed before.
    std::vector<std::string> options(words.rbegin(), std::prev(words.rend()));
    try {
        app.parse(options);
    } catch (const CLI::ParseError&) {
        return {};
    }
    return choice.names;
}

std::vector<Setting> settings_of(const std::vector<ConfigLine>& lines) {
    std::map<std::string, std::string> sums;
    std::vector<Setting> settings;
    for (const ConfigLine& line : lines) {
        Setting setting{line.words, no_sum};
        if (line.is_key()) {
            setting.sum = line.words.size() > 2 ? sum_of_file(line.words[2]) : no_sum;
            if (line.words.size() > 1) sums[line.words[1]] = setting.sum;
        } else {
            std::string all;
            for (const std::string& key : keys_of(line.words))
                if (const auto known = sums.find(key); known != sums.end()) all += known->second;
            if (!all.empty()) setting.sum = sum_of(all);
        }
        settings.push_back(std::move(setting));
    }
    return settings;
}

std::vector<Setting> outdated(const std::vector<Setting>& applied, const std::vector<Setting>& configured) {
    std::vector<Setting> left;
    std::copy_if(applied.rbegin(), applied.rend(), std::back_inserter(left), [&](const Setting& one) {
        return std::find(configured.begin(), configured.end(), one) == configured.end();
    });
    return left;
}

std::string quoted(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty()) line += ' ';
        line += '\'';
        for (const char c : word) {
            if (c == '\'')
                line += "'\"'\"'";
            else
                line += c;
        }
        line += '\'';
    }
    return line;
}

tl::expected<Applied, Failure> Applied::open(const std::string& folder, std::chrono::milliseconds limit) {
    if (mkdir(folder.c_str(), 0755) < 0 && errno != EEXIST) return failed(state_error("cannot make", folder));
    Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.get() < 0) return failed(state_error("cannot open", folder));
    TRY(lock_within(limit, lock.get(), folder));
    Applied applied(folder, std::move(lock));
    applied.read();
    return applied;
}

// Sum and address follow the words of the line.
void Applied::read() {
    if (access(file().c_str(), F_OK) != 0) return;
    for (ConfigLine& line : read_config(file()).lines) {
        if (line.words.size() < 4) continue;
        Setting setting;
        setting.address = std::move(line.words.back());
        line.words.pop_back();
        setting.sum = std::move(line.words.back());
        line.words.pop_back();
        setting.words = std::move(line.words);
        settings_.push_back(std::move(setting));
    }
}

// The file of before stays as long as this one is not complete. Sums are for root alone.
tl::expected<void, Failure> Applied::write() const {
    if (settings_.empty()) {
        if (unlink(file().c_str()) < 0 && errno != ENOENT)
            return failed(state_error("cannot remove", file()));
        return {};
    }
    const std::string made = file() + ".new";
    unlink(made.c_str());
    const Descriptor fd(::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.get() < 0) return failed(state_error("cannot write", made));
    std::string text;
    for (const Setting& one : settings_)
        text += quoted(one.words) + ' ' + quoted({one.sum, one.address}) + '\n';
    errno = ENOSPC; // of a write that is short
    if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        rename(made.c_str(), file().c_str()) < 0)
        return failed(state_error("cannot write", file()));
    return {};
}

const Setting* Applied::find(const Setting& setting) const {
    const auto found = std::find(settings_.begin(), settings_.end(), setting);
    return found == settings_.end() ? nullptr : &*found;
}

tl::expected<void, Failure> Applied::add(const Setting& setting) {
    std::erase(settings_, setting);
    settings_.push_back(setting);
    return write();
}

tl::expected<void, Failure> Applied::remove(const Setting& setting) {
    std::erase(settings_, setting);
    return write();
}

} // namespace kxfer::cli

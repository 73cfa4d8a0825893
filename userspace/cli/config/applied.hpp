// SPDX-License-Identifier: MIT
//
// Settings: the keys and listeners of this node that are in effect by `kxfer config`. Their file in
// /run is gone after the next boot, as keys and listeners are.
//
// Setting: a line of the configuration, and what else decides its effect. A setting that is both
// configured and applied is left alone; so links that come and go by a listener notice a change of
// that listener's line or secret only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "cli/config/config_line.hpp"
#include "cli/node/file.hpp"
#include "cli/output/failure.hpp"

namespace kxfer::cli {

struct Setting {
    std::vector<std::string> words; // of the line
    std::string sum;                // SHA-256 of its secrets; "-": it has none
    std::string address = "-";      // on which a listener was added: a name may have another one later

    // The address may be of the last time.
    bool operator==(const Setting& other) const { return words == other.words && sum == other.sum; }
    bool is_key() const { return words.front() == "key"; }
    // What `del` takes.
    const std::string& name() const { return is_key() ? words[1] : address; }
};

// Of all lines of a configuration, in their order. Listeners copy the secrets of their keys, so they
// have the sums of the lines `key` before them; a key that is in no line is taken for unchanged.
std::vector<Setting> settings_of(const std::vector<ConfigLine>& lines);

// The keys that the line of a listener names.
std::vector<std::string> keys_of(const std::vector<std::string>& words);

// What is applied and no longer configured, the last first.
std::vector<Setting> outdated(const std::vector<Setting>& applied, const std::vector<Setting>& configured);

// A line that split_line() divides into these words again.
std::string quoted(const std::vector<std::string>& words);

// The file of what is applied, and the right to change that: one process at a time has it.
class Applied {
  public:
    // Waits for a process that has it. Such a process may be resolving the names of many addresses.
    static tl::expected<Applied, Failure> open(const std::string& folder,
                                               std::chrono::milliseconds limit = std::chrono::seconds(30));

    const std::vector<Setting>& settings() const { return settings_; }
    // The setting that equals this one, or null.
    const Setting* find(const Setting& setting) const;
    tl::expected<void, Failure> add(const Setting& setting);
    tl::expected<void, Failure> remove(const Setting& setting);

  private:
    Applied(std::string folder, Descriptor lock) : folder_(std::move(folder)), lock_(std::move(lock)) {}
    std::string file() const { return folder_ + "/applied"; }
    void read();
    tl::expected<void, Failure> write() const;

    std::string folder_;
    Descriptor lock_;
    std::vector<Setting> settings_;
};

} // namespace kxfer::cli

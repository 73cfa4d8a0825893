// SPDX-License-Identifier: MIT
//
// TransferState: a small file that says how far a transfer has come, as one JSON object. It is
// replaced as a whole, so that a process that is killed leaves the old one or the new one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kxfer/kxfer.hpp>
#include <nlohmann/json.hpp>

namespace kxfer::cli {

class TransferState {
  public:
    template <typename Value> TransferState& add(const char* key, const Value& value) {
        fields_[key] = value;
        return *this;
    }

    // Nothing if it is not there as a regular file of this user, or is no such state.
    static std::optional<TransferState> read(const std::string& path);
    Expected<void> write(const std::string& path) const;

    // "", or nothing, if there is no such field.
    std::string text(const char* key) const;
    std::optional<uint64_t> number(const char* key) const;

  private:
    nlohmann::json fields_ = nlohmann::json::object();
};

// Whether an open file is regular, of this user, and has no other name.
bool is_own_file(int fd);

} // namespace kxfer::cli

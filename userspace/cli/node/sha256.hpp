// SPDX-License-Identifier: MIT
//
// Incremental SHA-256 (FIPS 180-4), computed by nettle.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <kxfer/kxfer.hpp>
#include <nettle/sha2.h>

namespace kxfer::cli {

class Sha256 {
  public:
    Sha256() { nettle_sha256_init(&state_); }

    void update(std::span<const std::byte> bytes) {
        nettle_sha256_update(&state_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
    }

    // Digest of all bytes so far; more may follow.
    Digest digest() const {
        sha256_ctx copy = state_;
        Digest digest = {};
        nettle_sha256_digest(&copy, digest.size(), digest.data());
        return digest;
    }

  private:
    sha256_ctx state_ = {};
};

inline std::string hex(std::span<const uint8_t> bytes) {
    static constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : bytes) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

inline Digest digest_of(const kxfer_content& content) { return std::to_array(content.sha256); }

} // namespace kxfer::cli

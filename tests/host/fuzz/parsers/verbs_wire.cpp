// SPDX-License-Identifier: MIT
// Private data of the verbs engine: accepted data encodes to the same bytes.

#include <cstdint>
#include <cstring>
#include <vector>

#include "verbs/wire.hpp"

using namespace kxfer::verbs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<uint8_t> bytes(data, data + size);

    const auto version = version_of(bytes.data(), size);
    if (const auto request = decode_request(bytes.data(), size)) {
        const WireRequest again = encode(*request);
        if (version != wire_version) __builtin_trap();
        // `writable` is any nonzero number; 18 and 19 are reserved.
        if (memcmp(&again, data, 6) != 0 || memcmp(&again.length, data + 8, 10) != 0) __builtin_trap();
        if (memcmp(&again.receives, data + 20, 12) != 0) __builtin_trap();
        if (request->writable != (data[6] || data[7])) __builtin_trap();
        const auto& receiving = request->receiving;
        if (receiving.slots && receiving.length() / receiving.slots != receiving.stride()) __builtin_trap();
        if (receiving.stride() < receiving.bytes) __builtin_trap();
    }
    if (const auto answer = decode_answer(bytes.data(), size)) {
        const WireAnswer again = encode(*answer, *version);
        if (memcmp(&again, data, 6) != 0 || memcmp(&again.error, data + 8, 24) != 0) __builtin_trap();
    }
    if (size >= sizeof(WireStatus)) {
        WireStatus status;
        memcpy(&status, data, sizeof(status));
        const WireStatus again = encode(decode(status));
        if (memcmp(&again, &status, sizeof(status)) != 0) __builtin_trap();
    }
    return 0;
}

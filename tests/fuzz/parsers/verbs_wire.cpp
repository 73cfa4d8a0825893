// SPDX-License-Identifier: MIT
//
// Private data of the verbs engine: what is understood encodes to the same bytes.

#include <cstdint>
#include <cstring>
#include <vector>

#include "verbs/wire.hpp"

using namespace kxfer::verbs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<uint8_t> bytes(data, data + size);

    if (const auto request = decode_request(bytes.data(), size)) {
        const WireRequest again = encode(*request);
        // `writable` is any number but 0.
        if (memcmp(&again, data, 6) != 0 || memcmp(&again.length, data + 8, 8) != 0) __builtin_trap();
        if (request->writable != (data[6] || data[7])) __builtin_trap();
    }
    if (const auto answer = decode_answer(bytes.data(), size)) {
        const WireAnswer again = encode(*answer);
        if (memcmp(&again, data, 6) != 0 || memcmp(&again.error, data + 8, 24) != 0) __builtin_trap();
    }
    return 0;
}

// SPDX-License-Identifier: MIT
#include "libfabric/arrival.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kxfer::fi {

bool Arrival::make_room(size_t needed) {
    if (needed <= room_) return true;
    size_t room = std::min<uint64_t>(header.length, std::max(needed, 2 * room_));
    auto* moved = static_cast<uint8_t*>(realloc(bytes_.get(), room));
    if (!moved) return false;
    static_cast<void>(bytes_.release());
    bytes_.reset(moved);
    room_ = room;
    return true;
}

void Arrival::add(const uint8_t* payload, size_t length) {
    if (receive) {
        receive->memory.copy_to(received, payload, length);
    } else if (length > 0 && !unkept_) {
        unkept_ = !make_room(received + length);
        if (!unkept_) memcpy(bytes_.get() + received, payload, length);
    }
    received += length;
}

int Arrival::hand_over() {
    if (unkept_) return -ENOMEM;
    if (received > 0) receive->memory.copy_to(0, bytes_.get(), received);
    bytes_.reset();
    room_ = 0;
    return 0;
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/pool.hpp"

#include <sys/mman.h>

#include "libfabric/domain.hpp"
#include "libfabric/info.hpp"

namespace kxfer::fi {

static constexpr size_t pieces = 64;
static constexpr size_t chunk_bytes = pieces * message_bytes;

Pool::~Pool() {
    for (const Chunk& chunk : chunks_) {
        domain_.remove_region(chunk.region);
        munmap(chunk.at, chunk_bytes);
    }
}

int Pool::grow() {
    Chunk chunk{};
    chunk.at = mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk.at == MAP_FAILED) return -FI_ENOMEM;
    int ret = domain_.add_region(chunk.at, chunk_bytes, true, &chunk.region);
    if (ret != 0) {
        munmap(chunk.at, chunk_bytes);
        return ret;
    }
    chunks_.push_back(chunk);
    for (size_t i = 0; i < pieces; i++)
        free_.push_back(
            {static_cast<uint8_t*>(chunk.at) + i * message_bytes, chunk.region, i * message_bytes});
    return 0;
}

int Pool::start() { return chunks_.empty() ? grow() : 0; }

bool Pool::take(Piece& piece) {
    if (free_.empty() && grow() != 0) return false;
    piece = free_.back();
    free_.pop_back();
    return true;
}

} // namespace kxfer::fi

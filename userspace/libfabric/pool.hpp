// SPDX-License-Identifier: MIT
//
// Registered memory in pieces of one message each, from which messages leave and in which small
// operations on a peer's memory have their bytes. It grows by chunks, up to what is in use at once.
#pragma once

#include <cstdint>
#include <vector>

namespace kxfer::fi {

class Domain;

struct Piece {
    uint8_t* at;
    uint32_t region;
    uint64_t offset;
};

class Pool {
  public:
    explicit Pool(Domain& domain) : domain_(domain) {}
    ~Pool();

    // Makes sure that there is a first chunk. Without one nothing would ever move. 0, or a negative errno.
    int start();

    // False: no memory, or none that may be pinned. Another piece may come back.
    bool take(Piece& piece);
    void give(const Piece& piece) { free_.push_back(piece); }

  private:
    struct Chunk {
        void* at;
        uint32_t region;
    };

    int grow();

    Domain& domain_;
    std::vector<Chunk> chunks_;
    std::vector<Piece> free_;
};

} // namespace kxfer::fi

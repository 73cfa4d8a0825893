// SPDX-License-Identifier: MIT
//
// One message to a mailbox with which nothing else has to do: it arrives, or it does not.
#pragma once

#include <cstdint>

#include "libfabric/pending.hpp"
#include "libfabric/pool.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Domain;

class Note final : public Pending {
  public:
    // Waits for the kernel of the peer. 0, or a negative errno. @in_flight: a count of what has not ended.
    static int send(Domain& domain, Pool& pool, unsigned& in_flight, const Address& to, const Header& header,
                    const void* payload);

    void ended(const kxfer_completion& completion) override;

  private:
    Note(Domain& domain, Pool& pool, unsigned& in_flight)
        : domain_(domain), pool_(pool), in_flight_(in_flight) {}
    int hand_in(const Address& to, const Header& header, const void* payload);

    Domain& domain_;
    Pool& pool_;
    unsigned& in_flight_;
    Piece piece_{};
    uint32_t target_ = 0;
};

} // namespace kxfer::fi

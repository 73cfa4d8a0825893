// SPDX-License-Identifier: MIT
#include "libfabric/note.hpp"

#include <cstring>
#include <memory>

#include "libfabric/domain.hpp"

namespace kxfer::fi {

int Note::hand_in(const Address& to, const Header& header, const void* payload) {
    kxfer_target_open opened;
    int ret = domain_.open_target(to, mailbox_name(to.port), KXFER_RIGHT_SEND, random_number(), &opened);
    if (ret != 0) return ret;
    target_ = opened.target;
    encode(header, piece_.at);
    if (header.length > 0) memcpy(piece_.at + header_bytes, payload, header.length);
    ret = domain_.submit(
        kxfer_job_make_send(piece_.region, piece_.offset, target_, header_bytes + header.length, 0), *this);
    if (ret != 0) kxfer_target_destroy(domain_.session, target_);
    return ret;
}

int Note::send(Domain& domain, Pool& pool, unsigned& in_flight, const Address& to, const Header& header,
               const void* payload) {
    std::unique_ptr<Note> note(new Note(domain, pool, in_flight));
    if (!pool.take(note->piece_)) return -FI_ENOMEM;
    int ret = note->hand_in(to, header, payload);
    if (ret != 0) {
        pool.give(note->piece_);
        return ret;
    }
    in_flight++;
    static_cast<void>(note.release()); // its completion takes it
    return 0;
}

void Note::ended(const kxfer_completion&) {
    kxfer_target_destroy(domain_.session, target_);
    pool_.give(piece_);
    in_flight_--;
    delete this;
}

} // namespace kxfer::fi

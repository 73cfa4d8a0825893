// SPDX-License-Identifier: MIT
#include "libfabric/outbox.hpp"

#include <algorithm>
#include <cerrno>

#include "libfabric/endpoint.hpp"
#include "libfabric/parameters.hpp"
#include "libfabric/peer.hpp"
#include "libfabric/rma.hpp"
#include "libfabric/send.hpp"

namespace kxfer::fi {

// Pieces that a peer has under way: enough to keep a link busy, and few enough that a peer that
// receives nothing does not use up the memory of the others.
static constexpr unsigned most_in_flight = 32;

Outbox::Outbox(Endpoint& endpoint)
    : pool(endpoint.domain), endpoint_(endpoint), size_(endpoint.info->tx_attr->size) {}

void Outbox::enqueue(Send& send) {
    Peer& peer = send.peer;
    peer.queue.push_back(&send);
    if (!peer.is_busy) busy_.push_back(&peer);
    peer.is_busy = true;
}

ssize_t Outbox::post(std::unique_ptr<Send> given, bool inject) {
    Send& send = *given.release();
    (send.counted ? nr_counted_ : nr_uncounted_)++;
    send.id = send.peer.next_id++;
    send.unanswered = (send.header_flags & header_answer) != 0;
    send.holders++;
    enqueue(send);
    advance(send.peer);
    if (inject && !send.all_sent() && send.status == 0) {
        if (!send.take_copy()) {
            std::erase(send.peer.queue, &send);
            send.peer.unanswered.erase(send.id);
            send.unanswered = false;
            send.status = -FI_ENOMEM;
        }
    }
    send.holders--;
    settle(send);
    return 0;
}

void Outbox::answer(Peer& peer, uint32_t id, uint64_t value) {
    auto send = std::make_unique<Send>(peer, Kind::answer);
    send->place = value;
    send->tag = id;
    post(std::move(send), false);
}

void Outbox::answered(Peer& peer, uint32_t id, uint64_t value) {
    auto found = peer.unanswered.find(id);
    if (found == peer.unanswered.end() || value > answer_failed) return;
    Send& send = *found->second;
    if (value == answer_wanted && send.kind != Kind::offer) return;
    withdraw(send);
    if (value == answer_wanted) {
        send.kind = Kind::more;
        enqueue(send);
        return;
    }
    peer.unanswered.erase(found);
    send.unanswered = false;
    if (value == answer_failed) {
        std::erase(peer.queue, &send);
        if (send.status == 0) send.status = -EIO;
    }
    settle(send);
}

void Outbox::lose(Send& send, int status) {
    if (send.status == 0) send.status = status;
    withdraw(send);
    send.unanswered = false;
    settle(send);
}

void Outbox::go_on() {
    for (size_t i = 0; i < busy_.size();) {
        Peer& peer = *busy_[i];
        advance(peer);
        if (peer.queue.empty()) {
            peer.is_busy = false;
            busy_[i] = busy_.back();
            busy_.pop_back();
        } else {
            i++;
        }
    }
}

void Outbox::advance(Peer& peer) {
    while (!peer.queue.empty() && peer.in_flight < most_in_flight) {
        Send& send = *peer.queue.front();
        int ret = peer.connect();
        if (ret == 0) ret = hand_in(peer, send);
        if (ret == -FI_EAGAIN) return;
        if (ret != 0) {
            peer.fail(ret);
            return;
        }
        if (send.all_sent()) peer.queue.pop_front();
    }
}

// One message of the module.
int Outbox::hand_in(Peer& peer, Send& send) {
    Piece piece;
    if (!pool.take(piece)) return -FI_EAGAIN;
    if (send.kind == Kind::offer && !send.offered) offer(send);
    size_t bytes = write(peer, send, piece.at);
    auto* job = new Job(*this, send, piece);
    kxfer_job wanted =
        kxfer_job_make_send_waiting(piece.region, piece.offset, peer.target, header_bytes + bytes, 0);
    wanted.flags |= peer.order_flags();
    int ret = endpoint_.domain.submit(wanted, *job);
    if (ret != 0) {
        pool.give(piece);
        delete job;
        return ret;
    }
    jobs_.insert(job);
    peer.begin_job();
    peer.next_sequence++;
    send.holders++;
    send.sent += bytes;
    send.begun = true;
    if (send.unanswered) peer.unanswered[send.id] = &send;
    return 0;
}

// Returns the bytes of payload.
size_t Outbox::write(Peer& peer, Send& send, uint8_t* to) {
    Header header{};
    size_t bytes = 0;
    header.kind = send.kind == Kind::data && send.sent > 0 ? Kind::more : send.kind;
    header.flags = send.header_flags;
    header.sequence = peer.next_sequence;
    header.id = send.kind == Kind::answer ? static_cast<uint32_t>(send.tag) : send.id;
    header.length = send.memory.length;
    header.tag = send.tag;
    header.data = send.data;
    header.place = header.kind == Kind::more ? send.sent : send.place;
    header.source = endpoint_.address;
    if (has_payload(header.kind)) bytes = std::min<size_t>(payload_bytes, send.memory.length - send.sent);
    encode(header, to);
    send.memory.copy_from(send.sent, to + header_bytes, bytes);
    return bytes;
}

void Outbox::sent(Job& job, int status) {
    Send& send = job.send;
    Peer& peer = send.peer;
    pool.give(job.piece);
    jobs_.erase(&job);
    delete &job;
    if (status != 0 && send.status == 0) send.status = status;
    // Jobs behind it fail too; what was posted after the first of them is for the next connection.
    if (status != 0 && peer.is_connected()) peer.fail(status);
    peer.end_job();
    send.holders--;
    settle(send);
}

// Ends a message that nothing needs any more. One that failed is not in the queue.
void Outbox::settle(Send& send) {
    if (send.holders > 0 || send.unanswered || (send.status == 0 && !send.all_sent())) return;
    (send.counted ? nr_counted_ : nr_uncounted_)--;
    if (send.counted)
        endpoint_.transmitted({send.context, send.flags, send.status, During::message, send.reported});
    if (send.rma) send.rma->announced(send.status);
    delete &send;
}

// Without an export the receiver asks for the bytes.
void Outbox::offer(Send& send) {
    Domain& domain = endpoint_.domain;
    void* at = send.memory.ranges[0].iov_base;
    uint64_t offset = 0;
    send.offered = true;
    if (send.registration && send.registration->holds(at, send.memory.length, false)) {
        send.region = send.registration->region;
        offset = send.registration->offset_of(at);
    } else if (domain.add_region(at, send.memory.length, false, &send.region) == 0) {
        send.own_region = true;
    } else {
        return;
    }
    uint64_t serial = ++domain.serial;
    if (domain.add_export(offer_name(domain.id, serial), send.region, offset, send.memory.length,
                          KXFER_RIGHT_READ, 0, &send.export_id) == 0)
        send.place = serial;
    else
        send.export_id = 0;
}

void Outbox::withdraw(Send& send) {
    if (send.export_id != 0) kxfer_export_destroy(endpoint_.domain.session, send.export_id);
    if (send.own_region) kxfer_region_destroy(endpoint_.domain.session, send.region);
    send.export_id = 0;
    send.own_region = false;
}

void Outbox::cancel() {
    for (Job* job : jobs_) kxfer_job_cancel(endpoint_.domain.session, job->user_data());
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/inbox.hpp"

#include <algorithm>
#include <cerrno>

#include "libfabric/endpoint.hpp"
#include "libfabric/fetch.hpp"
#include "libfabric/peer.hpp"

namespace kxfer::fi {

// Messages without an answer are 48 for each sender (Documentation/uapi.rst, "Messages"): 1024 places are
// for 17 senders, and some for others. RECVs take messages out as fast as they come while the program looks
// after its queues.
static constexpr Mailbox::Size size_for_all = {1024, 128};
static constexpr Mailbox::Size size_for_one = {128, 64};

Inbox::Inbox(Endpoint& endpoint)
    : endpoint_(endpoint),
      mailbox_(endpoint.domain, *this, endpoint.is_connected_type() ? size_for_one : size_for_all) {}

int Inbox::open(Address& address) {
    int ret = mailbox_.open(address);
    if (ret == 0) go_on();
    return ret;
}

void Inbox::close() {
    mailbox_.close();
    for (Fetch* one : waiting()) one->abandon();
}

std::vector<Fetch*> Inbox::waiting() const {
    std::vector<Fetch*> found;
    for (Fetch* one : fetches_)
        if (one->is_waiting()) found.push_back(one);
    return found;
}

void Inbox::go_on() {
    mailbox_.go_on();
    if (fetches_.empty()) return;
    for (Fetch* one : waiting()) one->go_on();
}

void Inbox::take(const uint8_t* bytes, size_t length, uint64_t word) {
    Header header;
    if (!decode(bytes, length, header)) {
        FI_WARN(&provider, FI_LOG_EP_DATA, "dropped a message of another protocol\n");
        return;
    }
    Peer* sender = endpoint_.sender_of(header, bytes + header_bytes, word);
    if (!sender) return;
    Peer& peer = *sender;
    int32_t ahead = static_cast<int32_t>(header.sequence - peer.expected_sequence);
    if (ahead < 0) return;
    if (ahead > 0) {
        peer.early.emplace(header.sequence, std::vector<uint8_t>(bytes, bytes + length));
        return;
    }
    peer.expected_sequence++;
    handle(peer, header, bytes + header_bytes, length - header_bytes);
    if (!peer.early.empty()) handle_early(peer);
}

void Inbox::handle_early(Peer& peer) {
    for (;;) {
        auto next = peer.early.find(peer.expected_sequence);
        if (next == peer.early.end()) return;
        std::vector<uint8_t> bytes = std::move(next->second);
        Header header;
        peer.early.erase(next);
        peer.expected_sequence++;
        decode(bytes.data(), bytes.size(), header);
        handle(peer, header, bytes.data() + header_bytes, bytes.size() - header_bytes);
    }
}

void Inbox::handle(Peer& peer, const Header& header, const uint8_t* payload, size_t length) {
    if (endpoint_.connection && endpoint_.connection->takes(header.kind)) return;
    switch (header.kind) {
    case Kind::data:
    case Kind::offer:
        begin(peer, header, payload, length);
        break;
    case Kind::more: {
        auto found = peer.arrivals.find(header.id);
        if (found != peer.arrivals.end()) add_bytes(*found->second, header.place, payload, length);
        break;
    }
    case Kind::answer:
        endpoint_.outbox.answered(peer, header.id, header.place);
        break;
    case Kind::written:
        endpoint_.written(peer, header.data, header.length);
        break;
    default: // of connections
        break;
    }
}

void Inbox::begin(Peer& peer, const Header& header, const uint8_t* payload, size_t length) {
    if (header.kind == Kind::data && length > header.length) return;
    if (peer.arrivals.contains(header.id)) return; // no sender has two messages of one number under way
    auto* arrival = new Arrival(peer, header);
    arrival->word = peer.word();
    auto receive = matching.take_receive(*arrival);
    peer.arrivals[header.id] = arrival;
    if (receive)
        arrival->receive = std::move(receive);
    else
        matching.add(arrival);
    if (!arrival->is_offer())
        add_bytes(*arrival, 0, payload, length);
    else if (arrival->receive)
        fetch(arrival);
}

void Inbox::add_bytes(Arrival& arrival, uint64_t place, const uint8_t* payload, size_t length) {
    if (!arrival.may_get(place, length)) return;
    arrival.add(payload, length);
    if (arrival.received < arrival.header.length) return;
    arrival.peer.arrivals.erase(arrival.header.id);
    arrival.header.kind = Kind::data;
    if (arrival.receive) deliver(&arrival, 0);
}

// A receive has found a message that was here before it.
void Inbox::attach(Arrival* arrival, std::unique_ptr<Receive> receive) {
    arrival->receive = std::move(receive);
    if (arrival->is_offer()) {
        fetch(arrival);
        return;
    }
    int status = arrival->hand_over();
    if (arrival->is_complete() || status != 0) deliver(arrival, status);
}

ssize_t Inbox::post(std::unique_ptr<Receive> receive) {
    bool several = receive->several != nullptr;
    while (Arrival* arrival = matching.take_arrival(*receive)) {
        if (!several) {
            attach(arrival, std::move(receive));
            return 0;
        }
        auto state = receive->several;
        attach(arrival, matching.part_of(*receive, arrival->header.length));
        if (state->retired) return 0;
    }
    matching.add(std::move(receive));
    return 0;
}

ssize_t Inbox::peek(const Receive& wanted, uint64_t flags) {
    Arrival* found = matching.find_arrival(wanted);
    if (!found) {
        Outcome outcome{wanted.context, FI_RECV | FI_TAGGED, -FI_ENOMSG, During::message, true};
        outcome.tag = wanted.tag;
        endpoint_.looked(outcome);
        return 0;
    }
    Outcome outcome{wanted.context, FI_RECV | FI_TAGGED, 0, During::message, true};
    outcome.length = found->header.length;
    outcome.tag = found->header.tag;
    outcome.data = found->header.data;
    outcome.source = endpoint_.number_of(found->peer);
    if (found->header.flags & header_data) outcome.flags |= FI_REMOTE_CQ_DATA;
    if (flags & FI_CLAIM) found->claimant = wanted.context;
    if (flags & FI_DISCARD) drop(matching.take_arrival(wanted, flags & FI_CLAIM ? wanted.context : nullptr));
    endpoint_.looked(outcome);
    return 0;
}

ssize_t Inbox::claim(std::unique_ptr<Receive> receive, uint64_t flags) {
    Arrival* found = matching.take_arrival(*receive, receive->context);
    if (!found) return -FI_ENOMSG;
    if (!(flags & FI_DISCARD)) {
        attach(found, std::move(receive));
        return 0;
    }
    Outcome outcome{receive->context, FI_RECV | FI_TAGGED, 0, During::message, true};
    outcome.tag = found->header.tag;
    drop(found);
    endpoint_.received(outcome);
    return 0;
}

// Bytes that are missing still come, and get into an empty buffer; those of an offer need not.
void Inbox::drop(Arrival* arrival) {
    auto nowhere = std::make_unique<Receive>();
    nowhere->discarded = true;
    if (!arrival->is_offer()) {
        attach(arrival, std::move(nowhere));
        return;
    }
    arrival->receive = std::move(nowhere);
    deliver(arrival, 0);
}

// A receive that no message gets. Its buffer is the program's again when no message is received into it.
void Inbox::end(const Receive& receive, int status) {
    Outcome outcome{receive.context, FI_RECV | (receive.tagged ? FI_TAGGED : FI_MSG), status, During::message,
                    true};
    if (receive.several) {
        receive.several->retired = true;
        if (receive.several->users == 0) outcome.flags |= FI_MULTI_RECV;
    }
    endpoint_.received(outcome);
}

bool Inbox::cancel(const void* context) {
    auto receive = matching.cancel(context);
    if (receive) end(*receive, -FI_ECANCELED);
    return receive != nullptr;
}

void Inbox::end_receives(int status) {
    for (auto& receive : matching.take_receives()) end(*receive, status);
}

void Inbox::lose(Peer& peer, int status) {
    for (Arrival* arrival : matching.take_incomplete_from(peer)) {
        peer.arrivals.erase(arrival->header.id);
        delete arrival;
    }
    std::vector<Arrival*> begun;
    for (auto& [id, arrival] : peer.arrivals)
        if (!arrival->fetching) begun.push_back(arrival);
    peer.arrivals.clear(); // their numbers may come again
    for (Arrival* arrival : begun) conclude(arrival, status);
    for (auto& receive : matching.take_receives_from(peer)) end(*receive, status);
}

// Only the process that has sent the message gets an answer, for another may have its place now. One whose
// message failed would wait for ever; if the connection is gone, it knows. The answer comes last: it may
// show that the peer is gone, which ends all arrivals of the peer.
void Inbox::deliver(Arrival* arrival, int status) {
    Peer& peer = arrival->peer;
    uint32_t id = arrival->header.id;
    bool answers =
        mailbox_.is_open() && arrival->header.flags & header_answer && arrival->word == peer.word();
    conclude(arrival, status);
    if (answers && (status == 0 || peer.is_connected()))
        endpoint_.outbox.answer(peer, id, status == 0 ? answer_done : answer_failed);
}

// Ends the arrival.
void Inbox::conclude(Arrival* arrival, int status) {
    std::unique_ptr<Arrival> owner(arrival);
    auto& arrivals = arrival->peer.arrivals;
    auto known = arrivals.find(arrival->header.id);
    if (known != arrivals.end() && known->second == arrival) arrivals.erase(known);
    if (!arrival->receive->discarded) report(*arrival, *arrival->receive, status);
}

void Inbox::report(const Arrival& arrival, const Receive& receive, int status) {
    const Header& header = arrival.header;
    Outcome outcome{receive.context, FI_RECV | (receive.tagged ? FI_TAGGED : FI_MSG), status, During::message,
                    receive.reported};
    outcome.length = std::min<uint64_t>(header.length, receive.memory.length);
    outcome.cut = header.length - outcome.length;
    if (outcome.cut > 0 && status == 0) outcome.status = -FI_ETRUNC;
    outcome.tag = header.tag;
    outcome.data = header.data;
    outcome.source = endpoint_.number_of(arrival.peer);
    if (header.flags & header_data) outcome.flags |= FI_REMOTE_CQ_DATA;
    if (receive.several) {
        outcome.buffer = receive.memory.ranges[0].iov_base;
        if (--receive.several->users == 0 && receive.several->retired) {
            outcome.flags |= FI_MULTI_RECV;
            outcome.reported = true;
        }
    }
    endpoint_.received(outcome);
}

void Inbox::fetch(Arrival* arrival) {
    auto* one = new Fetch(endpoint_, arrival);
    arrival->fetching = true;
    fetches_.insert(one);
    one->go_on();
}

void Inbox::forget(Fetch* fetch) {
    fetches_.erase(fetch);
    delete fetch;
}

void Inbox::ask_for_bytes(Arrival* arrival) {
    arrival->fetching = false;
    arrival->wanted = true;
    endpoint_.outbox.answer(arrival->peer, arrival->header.id, answer_wanted);
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
//
// The connection of an endpoint of FI_EP_MSG, from its making to its end. Both ends have a mailbox of their
// own, as endpoints of FI_EP_RDM have, and one Peer.
//
//   who asks                                  who answers
//   connect(), state connecting
//        connect ------------------------->   a passive endpoint: FI_CONNREQ
//                                             accept(), state accepting, or Passive::reject()
//        <------------- accept, from the mailbox of the new endpoint
//   state connected, FI_CONNECTED
//        ready --------------------------->   state connected, FI_CONNECTED
//        ... messages, in both directions ...
//        bye from either: state ended, FI_SHUTDOWN at both ends
//
// The answering end sends nothing between accept and ready, so what it sends cannot come before the accept.
//
// Words. The module brings with each message the word of its sender's target, which the sender alone has
// chosen. The request says by which word its sender will send; accept and reject say it back, so they are
// from somebody who got the request; and the word by which the accept came is that of the other end. From
// then on messages by another word, or from another address, are dropped.
//
// Ends. Peer asks a silent one each second whether its mailbox is there. A peer that is lost (lost()) may
// have sent messages before, and a bye: the connection ends, in go_on(), when none has come for half a
// second. Whatever ends it, the state is `ended` first, all operations end with errors, and there is one
// FI_SHUTDOWN; or, if it was not made yet, one error in the event queue, at the latest after
// FI_KXFER_CONNECT_S seconds. The mailbox goes in Endpoint::go_on() or with the endpoint: end() is called
// from deep inside the endpoint.
//
// All but the calls of libfabric are with the domain's lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <rdma/fi_cm.h>

#include "libfabric/address.hpp"
#include "libfabric/handles.hpp"
#include "libfabric/wire.hpp"

namespace kxfer::fi {

class Endpoint;
class Eq;
class Peer;

class Connection {
  public:
    explicit Connection(Endpoint& endpoint) : endpoint_(endpoint) {}

    // Takes over what fi_info.handle names: a request to answer, or the address of a passive endpoint.
    int inherit(fid_t handle);

    // Called without the domain's lock.
    int bind(Eq& eq);
    // The endpoint is closed. Called without the domain's lock.
    void unbind();
    bool is_bound() const { return eq_ != nullptr; }

    int connect(const Address& to, const void* data, size_t length);
    int accept(const void* data, size_t length);
    int shut_down();

    // Tells the other end that the endpoint goes.
    void say_bye();

    // 0: operations may begin.
    int usable() const;
    bool has_ended() const { return state_ == State::ended; }
    Peer* peer() const { return peer_; }

    // The address of the endpoint for fi_getname(): of one that has answered, the passive one's.
    const Address& name() const;
    // NULL: there was none yet.
    const Address* peer_name() const;

    // The peer, if the message is from it; NULL: it is dropped, or was an answer to the request.
    Peer* sender_of(const Header& header, const uint8_t* payload, uint64_t word);
    // Whether a message of the peer needs nothing else: it was for the connection, or is out of place.
    bool takes(Kind kind);

    // The connection with a peer has ended by itself (Peer::fail()).
    void lost(const Peer& peer, int status);
    // At the end of progress.
    void go_on();
    // Whether the peer is to be asked if it is there.
    bool expects(const Peer& peer) const { return peer_ == &peer && state_ != State::ended; }
    void look_after();

  private:
    enum class State { idle, connecting, accepting, connected, ended };

    void begin(State state, Peer& peer);
    void tell(Kind kind, uint64_t word, const void* data, size_t length);
    void take_answer(const Header& header, const uint8_t* payload, uint64_t word);
    void take_accept(const Header& header, const uint8_t* payload, uint64_t word);
    void report_connected(const void* data, size_t length);
    void end(int status, const void* data = nullptr, size_t length = 0);

    Endpoint& endpoint_;
    Eq* eq_ = nullptr;
    State state_ = State::idle;
    int lost_status_ = 0;            // why the peer was lost
    uint64_t lost_ns_ = 0;           // when it was, or was last heard since
    bool heard_ = false;             // the peer, since go_on()
    Peer* peer_ = nullptr;           // the other end; while connecting, the passive endpoint
    uint64_t end_ns_ = 0;            // of the making
    uint64_t word_ = 0;              // who asks: by which this end sends
    Address asked_{};                // who asks: the passive endpoint
    fid_t handle_ = nullptr;         // who answers
    std::optional<Request> request_; // who answers
};

// fi_getopt() of FI_OPT_CM_DATA_SIZE
int get_cm_data_size(int level, int name, void* value, size_t* length);

// The operations of an endpoint, for endpoints without connections too.
fi_ops_cm make_connection_ops();

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/connection.hpp"

#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "libfabric/endpoint.hpp"
#include "libfabric/eq.hpp"
#include "libfabric/fabric.hpp"
#include "libfabric/object.hpp"
#include "libfabric/parameters.hpp"
#include "libfabric/passive.hpp"
#include "libfabric/peer.hpp"
#include "libfabric/send.hpp"

namespace kxfer::fi {

static constexpr uint64_t linger_ns = 500000000; // what a lost peer has sent comes meanwhile

// ---- before there is one ----

int Connection::inherit(fid_t handle) {
    Handles& handles = endpoint_.domain.fabric().handles;
    request_ = handles.find(handle);
    if (request_) {
        handle_ = handle;
        endpoint_.address = request_->at;
        endpoint_.address.port = 0;
        return 0;
    }
    Passive* passive = handles.passive_of(handle);
    return passive ? passive->give_address(endpoint_.address) : -FI_EINVAL;
}

int Connection::bind(Eq& eq) {
    if (eq_) return -FI_EINVAL;
    int ret = eq.watch(endpoint_.domain);
    if (ret != 0) return ret;
    eq_ = &eq;
    eq.users++;
    return 0;
}

void Connection::unbind() {
    if (!eq_) return;
    eq_->unwatch(endpoint_.domain);
    eq_->forget(&endpoint_.fid);
    eq_->users--;
}

// ---- making it ----

void Connection::begin(State state, Peer& peer) {
    state_ = state;
    peer_ = &peer;
    end_ns_ = kxfer_clock_ns() + parameters().connect_s * 1000000000;
}

void Connection::tell(Kind kind, uint64_t word, const void* data, size_t length) {
    auto send = std::make_unique<Send>(*peer_, kind);
    send->data = word;
    send->memory.set(data, length);
    if (length > 0 && !send->take_copy()) {
        end(-FI_ENOMEM);
        return;
    }
    endpoint_.outbox.post(std::move(send), false);
}

int Connection::connect(const Address& to, const void* data, size_t length) {
    if (state_ != State::idle || request_) return -FI_EOPBADSTATE;
    int ret = endpoint_.enable();
    if (ret != 0) return ret;
    word_ = random_number();
    asked_ = to;
    begin(State::connecting, endpoint_.peer_at(to));
    tell(Kind::connect, word_, data, length);
    return 0;
}

// The request is answered then, and cannot be again.
int Connection::accept(const void* data, size_t length) {
    if (!request_) return -FI_EINVAL;
    if (state_ != State::idle) return -FI_EOPBADSTATE;
    int ret = endpoint_.enable();
    if (ret != 0) return ret;
    if (!endpoint_.domain.fabric().handles.take(handle_)) return -FI_EINVAL;
    Peer& peer = endpoint_.peer_at(request_->from);
    peer.pin(random_number(), request_->word);
    ret = peer.connect();
    if (ret != 0) {
        state_ = State::ended;
        return -error_of(ret, During::message);
    }
    begin(State::accepting, peer);
    tell(Kind::accept, request_->word, data, length);
    return 0;
}

void Connection::take_answer(const Header& header, const uint8_t* payload, uint64_t word) {
    if (header.data != word_ || header.sequence != 0) return;
    if (header.kind == Kind::reject && SameAddress()(header.source, asked_))
        end(-ECONNABORTED, payload, header.length);
    else if (header.kind == Kind::accept && same_node(header.source, asked_))
        take_accept(header, payload, word);
}

// The other end has a mailbox of its own: neither the passive endpoint's nor ours.
void Connection::take_accept(const Header& header, const uint8_t* payload, uint64_t word) {
    SameAddress is_same;
    if (is_same(header.source, asked_) || is_same(header.source, endpoint_.address)) return;
    Peer& asked = *peer_;
    peer_ = &endpoint_.peer_at(header.source);
    state_ = State::connected;
    lost_status_ = 0; // of the passive endpoint
    peer_->pin(word_, word);
    peer_->expected_sequence = 1;
    asked.fail(-ECANCELED);
    report_connected(payload, header.length);
    tell(Kind::ready, 0, nullptr, 0);
}

Peer* Connection::sender_of(const Header& header, const uint8_t* payload, uint64_t word) {
    if (state_ == State::connecting) {
        take_answer(header, payload, word);
        return nullptr;
    }
    if (state_ != State::accepting && state_ != State::connected) return nullptr;
    if (!SameAddress()(header.source, peer_->address) || !peer_->admit(word)) return nullptr;
    heard_ = true;
    return peer_;
}

bool Connection::takes(Kind kind) {
    if (state_ == State::accepting && kind == Kind::ready) {
        state_ = State::connected;
        report_connected(nullptr, 0);
        return true;
    }
    if (kind == Kind::bye) end(-ECANCELED);
    return state_ != State::connected || is_of_connection(kind);
}

void Connection::report_connected(const void* data, size_t length) {
    eq_->push_connection(FI_CONNECTED, &endpoint_.fid, nullptr, data, length);
}

// ---- using it ----

int Connection::usable() const {
    if (state_ == State::connected) return 0;
    return state_ == State::ended ? -FI_ENOTCONN : -FI_EOPBADSTATE;
}

const Address& Connection::name() const { return request_ ? request_->at : endpoint_.address; }

const Address* Connection::peer_name() const {
    if (request_) return &request_->from;
    return is_unspecified(asked_) ? nullptr : &asked_;
}

// ---- its end ----

void Connection::end(int status, const void* data, size_t length) {
    State was = std::exchange(state_, State::ended);
    if (was == State::ended) return;
    peer_->fail(status);
    endpoint_.inbox.lose(*peer_, status);
    endpoint_.inbox.end_receives(status);
    if (endpoint_.is_closing()) return;
    if (was == State::connected)
        eq_->push_connection(FI_SHUTDOWN, &endpoint_.fid, nullptr, nullptr, 0);
    else
        eq_->push_failure(&endpoint_.fid, status, data, length);
}

void Connection::lost(const Peer& peer, int status) {
    if (!expects(peer) || lost_status_ != 0) return;
    lost_status_ = status;
    lost_ns_ = kxfer_clock_ns();
}

// What is in the mailbox may be on its way into the ring yet.
void Connection::go_on() {
    if (lost_status_ == 0) return;
    uint64_t now = kxfer_clock_ns();
    if (std::exchange(heard_, false)) lost_ns_ = now;
    if (now - lost_ns_ > linger_ns) end(lost_status_);
}

void Connection::look_after() {
    bool is_made = state_ != State::connecting && state_ != State::accepting;
    if (!is_made && kxfer_clock_ns() > end_ns_) end(-ETIMEDOUT);
}

void Connection::say_bye() {
    if (state_ == State::accepting || state_ == State::connected) tell(Kind::bye, 0, nullptr, 0);
}

int Connection::shut_down() {
    if (state_ == State::idle) return -FI_EOPBADSTATE;
    say_bye();
    endpoint_.flush();
    end(-ECANCELED);
    endpoint_.end_jobs();
    return 0;
}

// ---- the calls ----

namespace {

int set_name(fid_t handle, void* address, size_t length) {
    return object_of<Endpoint>(handle).set_name(address, length);
}

int get_name(fid_t handle, void* address, size_t* length) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    std::lock_guard guard(endpoint.domain.lock);
    return copy_sockaddr(endpoint.connection ? endpoint.connection->name() : endpoint.address, address,
                         length);
}

int get_peer(fid_ep* handle, void* address, size_t* length) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    if (!endpoint.connection) return -FI_ENOSYS;
    std::lock_guard guard(endpoint.domain.lock);
    const Address* name = endpoint.connection->peer_name();
    return name ? copy_sockaddr(*name, address, length) : -FI_ENOTCONN;
}

int connect(fid_ep* handle, const void* address, const void* data, size_t length) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    Address to;
    if (!endpoint.connection) return -FI_ENOSYS;
    if (length > cm_data_bytes || (length > 0 && !data)) return -FI_EINVAL;
    if (!from_sockaddr(address, sockaddr_bytes(address), to) || to.port == 0) return -FI_EINVAL;
    return guarded([&] {
        std::lock_guard guard(endpoint.domain.lock);
        return endpoint.connection->connect(to, data, length);
    });
}

int accept(fid_ep* handle, const void* data, size_t length) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    if (!endpoint.connection) return -FI_ENOSYS;
    if (length > cm_data_bytes || (length > 0 && !data)) return -FI_EINVAL;
    return guarded([&] {
        std::lock_guard guard(endpoint.domain.lock);
        return endpoint.connection->accept(data, length);
    });
}

int shut_down(fid_ep* handle, uint64_t flags) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    if (!endpoint.connection) return -FI_ENOSYS;
    if (flags != 0) return -FI_EBADFLAGS;
    std::lock_guard guard(endpoint.domain.lock);
    return endpoint.connection->shut_down();
}

int no_listen(fid_pep*) { return -FI_ENOSYS; }
int no_reject(fid_pep*, fid_t, const void*, size_t) { return -FI_ENOSYS; }
int no_join(fid_ep*, const void*, uint64_t, fid_mc**, void*) { return -FI_ENOSYS; }

} // namespace

int get_cm_data_size(int level, int name, void* value, size_t* length) {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
    bool fits = *length >= sizeof(size_t);
    *length = sizeof(size_t);
    if (!fits) return -FI_ETOOSMALL;
    *static_cast<size_t*>(value) = cm_data_bytes;
    return 0;
}

fi_ops_cm make_connection_ops() {
    fi_ops_cm ops{};
    ops.size = sizeof(ops);
    ops.setname = set_name;
    ops.getname = get_name;
    ops.getpeer = get_peer;
    ops.connect = connect;
    ops.listen = no_listen;
    ops.accept = accept;
    ops.reject = no_reject;
    ops.shutdown = shut_down;
    ops.join = no_join;
    return ops;
}

} // namespace kxfer::fi

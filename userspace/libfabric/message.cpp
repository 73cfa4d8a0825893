// SPDX-License-Identifier: MIT
//
// The calls of fi_send() and fi_recv(), and of their tagged relatives: each becomes a Send or a
// Receive.
#include <cerrno>
#include <memory>
#include <mutex>

#include "libfabric/endpoint.hpp"
#include "libfabric/mr.hpp"
#include "libfabric/object.hpp"
#include "libfabric/parameters.hpp"
#include "libfabric/peer.hpp"
#include "libfabric/send.hpp"

namespace kxfer::fi {

namespace {

// What the call of a send says.
struct Call {
    const iovec* iov;
    size_t count;
    void** desc;
    fi_addr_t to;
    void* context;
    uint64_t flags;
    bool tagged;
    uint64_t tag;
    uint64_t data;
    bool reported;
};

std::shared_ptr<const Registration> registration_of(void** desc, size_t count) {
    return desc && count > 0 && desc[0] ? static_cast<Mr*>(desc[0])->registration() : nullptr;
}

std::unique_ptr<Send> make_send(Peer& peer, const Call& call) {
    auto send = std::make_unique<Send>(peer, Kind::data);
    if (!send->memory.set(call.iov, call.count)) return nullptr;
    bool inject = (call.flags & FI_INJECT) != 0;
    if (!inject && call.count == 1 && send->memory.length >= parameters().read_from &&
        send->memory.length > payload_bytes)
        send->kind = Kind::offer;
    bool to_receiver = (call.flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) != 0;
    if (send->kind == Kind::offer || to_receiver) send->header_flags |= header_answer;
    if (call.tagged) send->header_flags |= header_tagged;
    if (call.flags & FI_REMOTE_CQ_DATA) send->header_flags |= header_data;
    send->registration = registration_of(call.desc, call.count);
    send->tag = call.tag;
    send->data = call.data;
    send->context = call.context;
    send->flags = FI_SEND | (call.tagged ? FI_TAGGED : FI_MSG);
    send->counted = true;
    send->reported = call.reported;
    return send;
}

ssize_t transmit(fid_ep* handle, const Call& call) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    if (call.flags & refused_flags) return -FI_EBADFLAGS;
    return guarded([&]() -> int {
        std::lock_guard guard(endpoint.domain.lock);
        int ret = endpoint.usable();
        if (ret != 0) return ret;
        if (endpoint.domain.has_device_memory()) return -FI_EOPNOTSUPP;
        if (endpoint.outbox.is_full()) {
            endpoint.domain.progress();
            return -FI_EAGAIN;
        }
        Peer* peer = endpoint.peer_of(call.to);
        if (!peer) return -FI_EINVAL;
        auto send = make_send(*peer, call);
        bool inject = (call.flags & FI_INJECT) != 0;
        if (!send || (inject && send->memory.length > payload_bytes)) return -FI_EINVAL;
        if (send->memory.length > longest) return -FI_EMSGSIZE;
        return static_cast<int>(endpoint.outbox.post(std::move(send), inject));
    });
}

// The flags of calls that have none.
uint64_t default_flags(fid_ep* handle) { return object_of<Endpoint>(handle).tx_flags(); }

ssize_t send_buffer(fid_ep* handle, const void* buffer, size_t length, void* desc, fi_addr_t to,
                    void* context, uint64_t flags, bool tagged, uint64_t tag, uint64_t data) {
    iovec iov{const_cast<void*>(buffer), length};
    flags |= default_flags(handle);
    bool reported = object_of<Endpoint>(handle).reports_tx(flags);
    return transmit(handle, {&iov, 1, &desc, to, context, flags, tagged, tag, data, reported});
}

ssize_t inject_buffer(fid_ep* handle, const void* buffer, size_t length, fi_addr_t to, uint64_t flags,
                      bool tagged, uint64_t tag, uint64_t data) {
    iovec iov{const_cast<void*>(buffer), length};
    return transmit(handle, {&iov, 1, nullptr, to, nullptr, flags | FI_INJECT, tagged, tag, data, false});
}

ssize_t send(fid_ep* ep, const void* buffer, size_t length, void* desc, fi_addr_t to, void* context) {
    return send_buffer(ep, buffer, length, desc, to, context, 0, false, 0, 0);
}

ssize_t send_vector(fid_ep* ep, const iovec* iov, void** desc, size_t count, fi_addr_t to, void* context) {
    uint64_t flags = default_flags(ep);
    return transmit(
        ep, {iov, count, desc, to, context, flags, false, 0, 0, object_of<Endpoint>(ep).reports_tx(flags)});
}

ssize_t send_message(fid_ep* ep, const fi_msg* message, uint64_t flags) {
    bool reported = object_of<Endpoint>(ep).reports_tx(flags);
    return transmit(ep, {message->msg_iov, message->iov_count, message->desc, message->addr, message->context,
                         flags, false, 0, message->data, reported});
}

ssize_t inject(fid_ep* ep, const void* buffer, size_t length, fi_addr_t to) {
    return inject_buffer(ep, buffer, length, to, 0, false, 0, 0);
}

ssize_t send_data(fid_ep* ep, const void* buffer, size_t length, void* desc, uint64_t data, fi_addr_t to,
                  void* context) {
    return send_buffer(ep, buffer, length, desc, to, context, FI_REMOTE_CQ_DATA, false, 0, data);
}

ssize_t inject_data(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t to) {
    return inject_buffer(ep, buffer, length, to, FI_REMOTE_CQ_DATA, false, 0, data);
}

ssize_t tagged_send(fid_ep* ep, const void* buffer, size_t length, void* desc, fi_addr_t to, uint64_t tag,
                    void* context) {
    return send_buffer(ep, buffer, length, desc, to, context, 0, true, tag, 0);
}

ssize_t tagged_send_vector(fid_ep* ep, const iovec* iov, void** desc, size_t count, fi_addr_t to,
                           uint64_t tag, void* context) {
    uint64_t flags = default_flags(ep);
    return transmit(
        ep, {iov, count, desc, to, context, flags, true, tag, 0, object_of<Endpoint>(ep).reports_tx(flags)});
}

ssize_t tagged_send_message(fid_ep* ep, const fi_msg_tagged* message, uint64_t flags) {
    bool reported = object_of<Endpoint>(ep).reports_tx(flags);
    return transmit(ep, {message->msg_iov, message->iov_count, message->desc, message->addr, message->context,
                         flags, true, message->tag, message->data, reported});
}

ssize_t tagged_inject(fid_ep* ep, const void* buffer, size_t length, fi_addr_t to, uint64_t tag) {
    return inject_buffer(ep, buffer, length, to, 0, true, tag, 0);
}

ssize_t tagged_send_data(fid_ep* ep, const void* buffer, size_t length, void* desc, uint64_t data,
                         fi_addr_t to, uint64_t tag, void* context) {
    return send_buffer(ep, buffer, length, desc, to, context, FI_REMOTE_CQ_DATA, true, tag, data);
}

ssize_t tagged_inject_data(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t to,
                           uint64_t tag) {
    return inject_buffer(ep, buffer, length, to, FI_REMOTE_CQ_DATA, true, tag, data);
}

// ---- receives ----

// What the call of a receive says.
struct Wish {
    const iovec* iov;
    size_t count;
    void** desc;
    fi_addr_t from;
    void* context;
    uint64_t flags;
    bool tagged;
    uint64_t tag;
    uint64_t ignore;
};

std::unique_ptr<Receive> make_receive(Endpoint& endpoint, const Wish& wish) {
    auto receive = std::make_unique<Receive>();
    if (!receive->memory.set(wish.iov, wish.count)) return nullptr;
    receive->registration = registration_of(wish.desc, wish.count);
    receive->context = wish.context;
    receive->tagged = wish.tagged;
    receive->tag = wish.tag;
    receive->ignore = wish.ignore;
    receive->reported = endpoint.reports_rx(wish.flags);
    if (endpoint.is_directed() && wish.from != FI_ADDR_UNSPEC) {
        receive->source = endpoint.peer_of(wish.from);
        if (!receive->source) return nullptr;
    }
    if (wish.flags & FI_MULTI_RECV) {
        if (wish.count != 1 || wish.tagged) return nullptr;
        receive->several = std::make_shared<Several>();
    }
    return receive;
}

// Only tagged messages can be looked at, and what is to be discarded was looked at or is now.
bool flags_fit(const Wish& wish) {
    bool looks = (wish.flags & (FI_PEEK | FI_CLAIM)) != 0;
    if (wish.flags & FI_DISCARD && !looks) return false;
    return !(wish.flags & refused_flags) && (wish.tagged || !looks);
}

ssize_t receive(fid_ep* handle, const Wish& wish) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    if (!flags_fit(wish)) return -FI_EBADFLAGS;
    if (wish.flags & FI_CLAIM && !wish.context) return -FI_EINVAL;
    return guarded([&]() -> int {
        std::lock_guard guard(endpoint.domain.lock);
        if (!endpoint.is_enabled()) return -FI_EOPBADSTATE;
        if (endpoint.domain.has_device_memory()) return -FI_EOPNOTSUPP;
        auto made = make_receive(endpoint, wish);
        if (!made) return -FI_EINVAL;
        if (wish.flags & FI_PEEK) {
            endpoint.domain.progress();
            return static_cast<int>(endpoint.inbox.peek(*made, wish.flags));
        }
        if (wish.flags & FI_CLAIM) return static_cast<int>(endpoint.inbox.claim(std::move(made), wish.flags));
        endpoint.inbox.post(std::move(made));
        // What has come before the end is still received.
        if (endpoint.connection && endpoint.connection->has_ended()) endpoint.inbox.end_receives(-ENOTCONN);
        return 0;
    });
}

uint64_t receive_flags(fid_ep* ep) { return object_of<Endpoint>(ep).rx_flags(); }

ssize_t recv(fid_ep* ep, void* buffer, size_t length, void* desc, fi_addr_t from, void* context) {
    iovec iov{buffer, length};
    return receive(ep, {&iov, 1, &desc, from, context, receive_flags(ep), false, 0, 0});
}

ssize_t recv_vector(fid_ep* ep, const iovec* iov, void** desc, size_t count, fi_addr_t from, void* context) {
    return receive(ep, {iov, count, desc, from, context, receive_flags(ep), false, 0, 0});
}

ssize_t recv_message(fid_ep* ep, const fi_msg* message, uint64_t flags) {
    return receive(ep, {message->msg_iov, message->iov_count, message->desc, message->addr, message->context,
                        flags, false, 0, 0});
}

ssize_t tagged_recv(fid_ep* ep, void* buffer, size_t length, void* desc, fi_addr_t from, uint64_t tag,
                    uint64_t ignore, void* context) {
    iovec iov{buffer, length};
    uint64_t flags = receive_flags(ep) & ~FI_MULTI_RECV;
    return receive(ep, {&iov, 1, &desc, from, context, flags, true, tag, ignore});
}

ssize_t tagged_recv_vector(fid_ep* ep, const iovec* iov, void** desc, size_t count, fi_addr_t from,
                           uint64_t tag, uint64_t ignore, void* context) {
    uint64_t flags = receive_flags(ep) & ~FI_MULTI_RECV;
    return receive(ep, {iov, count, desc, from, context, flags, true, tag, ignore});
}

ssize_t tagged_recv_message(fid_ep* ep, const fi_msg_tagged* message, uint64_t flags) {
    return receive(ep, {message->msg_iov, message->iov_count, message->desc, message->addr, message->context,
                        flags, true, message->tag, message->ignore});
}

} // namespace

fi_ops_msg make_message_ops() {
    fi_ops_msg ops{};
    ops.size = sizeof(ops);
    ops.recv = recv;
    ops.recvv = recv_vector;
    ops.recvmsg = recv_message;
    ops.send = send;
    ops.sendv = send_vector;
    ops.sendmsg = send_message;
    ops.inject = inject;
    ops.senddata = send_data;
    ops.injectdata = inject_data;
    return ops;
}

fi_ops_tagged make_tagged_ops() {
    fi_ops_tagged ops{};
    ops.size = sizeof(ops);
    ops.recv = tagged_recv;
    ops.recvv = tagged_recv_vector;
    ops.recvmsg = tagged_recv_message;
    ops.send = tagged_send;
    ops.sendv = tagged_send_vector;
    ops.sendmsg = tagged_send_message;
    ops.inject = tagged_inject;
    ops.senddata = tagged_send_data;
    ops.injectdata = tagged_inject_data;
    return ops;
}

} // namespace kxfer::fi

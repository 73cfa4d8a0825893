// SPDX-License-Identifier: MIT
#include "libfabric/endpoint.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "libfabric/av.hpp"
#include "libfabric/counter.hpp"
#include "libfabric/cq.hpp"
#include "libfabric/eq.hpp"
#include "libfabric/object.hpp"
#include "libfabric/peer.hpp"

namespace kxfer::fi {

namespace {

constexpr uint64_t flush_ns = 2000000000; // how long a close waits for what peers are owed

int no_context(fid_ep*, int, fi_tx_attr*, fid_ep**, void*) { return -FI_ENOSYS; }
int no_context(fid_ep*, int, fi_rx_attr*, fid_ep**, void*) { return -FI_ENOSYS; }

} // namespace

Endpoint::Endpoint(Domain& of, fi_info* with) : Base{}, domain(of), info(with), outbox(*this), inbox(*this) {
    if (is_connected_type()) connection = std::make_unique<Connection>(*this);
}

Endpoint::~Endpoint() { fi_freeinfo(info); }

fi_ops_ep Endpoint::make_ep_ops() {
    fi_ops_ep ops{};
    ops.size = sizeof(ops);
    ops.cancel = cancel;
    ops.getopt = get_option;
    ops.setopt = set_option;
    ops.tx_ctx = no_context;
    ops.rx_ctx = no_context;
    ops.rx_size_left = room_rx;
    ops.tx_size_left = room_tx;
    return ops;
}

void Endpoint::set_ops() {
    static fi_ops own_ops = make_ops(close, bind, control);
    static fi_ops_ep ep_ops = make_ep_ops();
    static fi_ops_cm cm_ops = make_connection_ops();
    static fi_ops_msg message_ops = make_message_ops();
    static fi_ops_tagged tagged_ops = make_tagged_ops();
    static fi_ops_rma rma_ops = make_rma_ops();
    static fi_ops_atomic atomic_ops = make_atomic_ops();
    fid.ops = &own_ops;
    Base::ops = &ep_ops;
    cm = &cm_ops;
    msg = &message_ops;
    tagged = &tagged_ops;
    rma = &rma_ops;
    atomic = &atomic_ops;
}

int Endpoint::open(fid_domain* handle, fi_info* info, fid_ep** endpoint, void* context) {
    Domain& domain = object_of<Domain>(handle);
    if (!info || !info->tx_attr || !info->rx_attr || !info->ep_attr) return -FI_EINVAL;
    if (info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_MSG) return -FI_EINVAL;
    return guarded([&] {
        fi_info* copy = fi_dupinfo(info);
        if (!copy) return -FI_ENOMEM;
        if (copy->tx_attr->size == 0) copy->tx_attr->size = queue_size;
        if (copy->rx_attr->size == 0) copy->rx_attr->size = queue_size;
        auto made = std::make_unique<Endpoint>(domain, copy);
        from_sockaddr(info->src_addr, info->src_addrlen, made->address);
        if (made->connection && info->handle) {
            int ret = made->connection->inherit(info->handle);
            if (ret != 0) return ret;
        }
        made->fid.fclass = FI_CLASS_EP;
        made->fid.context = context;
        made->set_ops();
        domain.users++;
        *endpoint = made.release();
        return 0;
    });
}

int Endpoint::bind_cq(Cq& cq, uint64_t flags) {
    if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) return -FI_EBADFLAGS;
    if ((flags & FI_TRANSMIT && tx_cq_) || (flags & FI_RECV && rx_cq_)) return -FI_EINVAL;
    bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
    if (flags & FI_TRANSMIT) {
        tx_cq_ = &cq;
        selective_tx_ = selective;
        cq.users++;
    }
    if (flags & FI_RECV) {
        rx_cq_ = &cq;
        selective_rx_ = selective;
        cq.users++;
    }
    return 0;
}

int Endpoint::bind_counter(Counter& counter, uint64_t flags) {
    constexpr uint64_t bits[nr_counts] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
    if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) return -FI_ENOSYS;
    for (int i = 0; i < nr_counts; i++) {
        if (!(flags & bits[i])) continue;
        if (counters_[i]) return -FI_EINVAL;
        counters_[i] = &counter;
        counter.users++;
    }
    return 0;
}

int Endpoint::bind_av(Av& av) {
    if (av_ || connection) return -FI_EINVAL;
    av_ = &av;
    av.users++;
    return 0;
}

int Endpoint::bind(struct ::fid* handle, struct ::fid* other, uint64_t flags) {
    Endpoint& self = object_of<Endpoint>(handle);
    switch (other->fclass) {
    case FI_CLASS_CQ:
        return self.bind_cq(object_of<Cq>(other), flags);
    case FI_CLASS_CNTR:
        return self.bind_counter(object_of<Counter>(other), flags);
    case FI_CLASS_AV:
        return self.bind_av(object_of<Av>(other));
    case FI_CLASS_EQ: // there are only events of connections
        return self.connection ? self.connection->bind(object_of<Eq>(other)) : 0;
    default:
        return -FI_EINVAL;
    }
}

int Endpoint::enable() {
    if (enabled_) return 0;
    if (connection && !connection->is_bound()) return -FI_ENOEQ;
    if (!connection && !av_) return -FI_ENOAV;
    if (is_unspecified(address)) return -FI_EADDRNOTAVAIL; // nobody could answer
    if (!tx_cq_ && !counters_[count_send] && !rx_cq_ && !counters_[count_recv]) return -FI_ENOCQ;
    int ret = outbox.pool.start();
    if (ret == 0) ret = inbox.open(address);
    if (ret != 0) {
        FI_WARN(&provider, FI_LOG_EP_CTRL, "cannot make a mailbox: %s\n", words_of(-ret));
        return ret;
    }
    domain.add(*this);
    enabled_ = true;
    return 0;
}

int Endpoint::control(struct ::fid* handle, int command, void* argument) {
    Endpoint& self = object_of<Endpoint>(handle);
    std::lock_guard guard(self.domain.lock);
    auto* flags = static_cast<uint64_t*>(argument);
    switch (command) {
    case FI_ENABLE:
        return guarded([&] { return self.enable(); });
    case FI_GETOPSFLAG:
        if (!flags || !(*flags & (FI_TRANSMIT | FI_RECV))) return -FI_EINVAL;
        *flags = *flags & FI_TRANSMIT ? self.tx_flags() : self.rx_flags();
        return 0;
    case FI_SETOPSFLAG:
        if (!flags || !(*flags & (FI_TRANSMIT | FI_RECV))) return -FI_EINVAL;
        (*flags & FI_TRANSMIT ? self.info->tx_attr->op_flags : self.info->rx_attr->op_flags) =
            *flags & ~(FI_TRANSMIT | FI_RECV);
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

bool Endpoint::has_jobs() const {
    bool to_peers =
        std::any_of(peers_.begin(), peers_.end(), [](auto& entry) { return entry.second->in_flight > 0; });
    return to_peers || inbox.in_flight() + memory_jobs > 0;
}

// Peers that sent a message which was received wait for an answer; they get it before the mailbox goes.
void Endpoint::flush() {
    uint64_t end = kxfer_clock_ns() + flush_ns;
    while (outbox.owes() && kxfer_clock_ns() < end) domain.doze();
}

// After this nothing is handed in: what waits for its turn is dropped, before the jobs of it end. Jobs that
// have not begun are cancelled, and the others end within the bounds of the module.
void Endpoint::end_jobs() {
    inbox.close();
    for (auto& [where, peer] : peers_) {
        peer->fail(-ECANCELED);
        inbox.lose(*peer, -ECANCELED);
    }
    outbox.cancel();
    while (has_jobs()) domain.doze();
}

int Endpoint::close(struct ::fid* handle) {
    Endpoint& self = object_of<Endpoint>(handle);
    Domain& domain = self.domain;
    {
        std::lock_guard guard(domain.lock);
        if (self.enabled_) {
            if (self.connection) self.connection->say_bye();
            self.flush();
            self.closing_ = true;
            self.end_jobs();
        }
        domain.remove(self);
    }
    if (self.connection) self.connection->unbind();
    std::lock_guard guard(domain.lock);
    if (self.av_) self.av_->users--;
    if (self.tx_cq_) self.tx_cq_->users--;
    if (self.rx_cq_) self.rx_cq_->users--;
    for (Counter* counter : self.counters_)
        if (counter) counter->users--;
    domain.users--;
    delete &self;
    return 0;
}

ssize_t Endpoint::cancel(fid_t handle, void* context) {
    Endpoint& self = object_of<Endpoint>(handle);
    std::lock_guard guard(self.domain.lock);
    return self.inbox.cancel(context) ? 0 : -FI_ENOENT;
}

int Endpoint::get_option(fid_t handle, int level, int name, void* value, size_t* length) {
    Endpoint& self = object_of<Endpoint>(handle);
    if (self.connection && name == FI_OPT_CM_DATA_SIZE) return get_cm_data_size(level, name, value, length);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    if (*length < sizeof(size_t)) return -FI_ETOOSMALL;
    *static_cast<size_t*>(value) = self.inbox.matching.min_multi_recv;
    *length = sizeof(size_t);
    return 0;
}

int Endpoint::set_option(fid_t handle, int level, int name, const void* value, size_t length) {
    Endpoint& self = object_of<Endpoint>(handle);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    if (length < sizeof(size_t)) return -FI_EINVAL;
    std::lock_guard guard(self.domain.lock);
    self.inbox.matching.min_multi_recv = *static_cast<const size_t*>(value);
    return 0;
}

int Endpoint::set_name(const void* name, size_t length) {
    Address wanted;
    if (enabled_) return -FI_EOPBADSTATE;
    if (!from_sockaddr(name, length, wanted)) return -FI_EINVAL;
    address = wanted;
    return 0;
}

ssize_t Endpoint::room_rx(fid_ep* handle) {
    return static_cast<ssize_t>(object_of<Endpoint>(handle).info->rx_attr->size);
}

ssize_t Endpoint::room_tx(fid_ep* handle) {
    Endpoint& self = object_of<Endpoint>(handle);
    std::lock_guard guard(self.domain.lock);
    return static_cast<ssize_t>(self.outbox.room());
}

void Endpoint::go_on() {
    if (closing_) return;
    if (connection) connection->go_on();
    if (connection && connection->has_ended()) inbox.close();
    inbox.go_on();
    outbox.go_on();
}

void Endpoint::look_after() {
    if (closing_) return;
    if (connection) connection->look_after();
    for (auto& [where, peer] : peers_) peer->look_after();
}

Peer& Endpoint::peer_at(const Address& where) {
    auto& peer = peers_[where];
    if (!peer) peer = std::make_unique<Peer>(*this, where);
    return *peer;
}

int Endpoint::usable() const {
    if (!enabled_) return -FI_EOPBADSTATE;
    return connection ? connection->usable() : 0;
}

Peer* Endpoint::peer_of(fi_addr_t number) {
    if (connection) return connection->peer();
    const Address* found = av_->find(number);
    return found ? &peer_at(*found) : nullptr;
}

Peer* Endpoint::sender_of(const Header& header, const uint8_t* payload, uint64_t word) {
    if (connection) return connection->sender_of(header, payload, word);
    if (is_of_connection(header.kind)) return nullptr;
    Peer& peer = peer_at(header.source);
    return peer.admit(word) ? &peer : nullptr;
}

fi_addr_t Endpoint::number_of(const Peer& peer) const {
    return info->caps & FI_SOURCE ? av_->number_of(peer.address) : FI_ADDR_NOTAVAIL;
}

int Endpoint::begin_memory(fi_addr_t number, Peer** peer) {
    int ret = usable();
    if (ret != 0) return ret;
    if (memory_jobs >= info->tx_attr->size || outbox.is_full()) {
        domain.progress();
        return -FI_EAGAIN;
    }
    *peer = peer_of(number);
    return *peer ? 0 : -FI_EINVAL;
}

int Endpoint::end_of_call(int status, void* context, uint64_t flags) {
    if (status == -FI_EAGAIN) {
        domain.progress();
        return status;
    }
    if (status != 0) transmitted({context, flags, status, During::memory, true});
    return 0;
}

void Endpoint::push(Cq* cq, const Outcome& outcome) {
    if (!cq || (outcome.status == 0 && !outcome.reported)) return;
    fi_cq_err_entry entry{};
    entry.op_context = outcome.context;
    entry.flags = outcome.flags;
    entry.len = outcome.length;
    entry.buf = outcome.buffer;
    entry.data = outcome.data;
    entry.tag = outcome.tag;
    entry.olen = outcome.cut;
    entry.err = outcome.status ? error_of(outcome.status, outcome.during) : 0;
    entry.prov_errno = -outcome.status;
    cq->push(entry, outcome.source);
}

void Endpoint::count(const Outcome& outcome) {
    int which = nr_counts;
    if (outcome.flags & FI_SEND)
        which = count_send;
    else if (outcome.flags & FI_RECV)
        which = count_recv;
    else if (outcome.flags & FI_READ)
        which = count_read;
    else if (outcome.flags & FI_WRITE)
        which = count_write;
    if (which != nr_counts && counters_[which]) counters_[which]->count(outcome.status != 0);
}

void Endpoint::transmitted(const Outcome& outcome) {
    if (closing_) return;
    count(outcome);
    push(tx_cq_, outcome);
}

void Endpoint::received(const Outcome& outcome) {
    if (closing_) return;
    count(outcome);
    push(rx_cq_, outcome);
}

void Endpoint::looked(const Outcome& outcome) {
    if (!closing_) push(rx_cq_, outcome);
}

void Endpoint::written(Peer& peer, uint64_t data, uint64_t length) {
    Outcome outcome{nullptr, FI_REMOTE_WRITE | FI_RMA | FI_REMOTE_CQ_DATA, 0, During::memory, true};
    outcome.data = data;
    outcome.length = length;
    outcome.source = number_of(peer);
    received(outcome);
}

} // namespace kxfer::fi

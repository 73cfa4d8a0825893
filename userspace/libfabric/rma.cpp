// SPDX-License-Identifier: MIT
#include "libfabric/rma.hpp"

#include <cerrno>
#include <memory>
#include <mutex>

#include "libfabric/endpoint.hpp"
#include "libfabric/mr.hpp"
#include "libfabric/object.hpp"
#include "libfabric/peer.hpp"
#include "libfabric/send.hpp"

namespace kxfer::fi {

int Rma::find_memory(Job& job, Mr* mr) {
    void* at = job.range.iov_base;
    size_t length = job.range.iov_len;
    if (mr && !injected && mr->registration()->holds(at, length, !is_write_)) {
        job.region = mr->registration()->region;
        job.offset = mr->registration()->offset_of(at);
        return 0;
    }
    if (mr && mr->registration()->of_device) return -FI_EINVAL; // the CPU cannot take its bytes elsewhere
    if (length <= message_bytes) {
        if (!endpoint_.outbox.pool.take(job.piece)) return -FI_EAGAIN;
        job.has_piece = true;
        job.region = job.piece.region;
        job.offset = job.piece.offset;
        if (is_write_) memcpy(job.piece.at, at, length);
        return 0;
    }
    job.own_region = endpoint_.domain.add_region(at, length, !is_write_, &job.region) == 0;
    return job.own_region ? 0 : -FI_ENOMEM;
}

void Rma::release(Job& job, bool came) {
    if (job.has_piece) {
        if (came && !is_write_) memcpy(job.range.iov_base, job.piece.at, job.range.iov_len);
        endpoint_.outbox.pool.give(job.piece);
    }
    if (job.own_region) kxfer_region_destroy(endpoint_.domain.session, job.region);
    delete &job;
}

int Rma::hand_in(size_t index, uint64_t remote_offset) {
    auto* job = new Job(*this);
    job->range = memory.ranges[index];
    int ret = find_memory(*job, static_cast<Mr*>(desc[index]));
    if (ret == 0) {
        auto make = is_write_ ? kxfer_job_make_write : kxfer_job_make_read;
        kxfer_job wanted =
            make(job->region, job->offset, remote_->target, remote_offset, job->range.iov_len, 0);
        if (is_write_) wanted.flags |= peer_.order_flags();
        ret = endpoint_.domain.submit(wanted, *job);
    }
    if (ret != 0) {
        release(*job, false);
        return ret;
    }
    holders_++;
    remote_->jobs++;
    endpoint_.memory_jobs++;
    return 0;
}

// Room for another job comes with the end of those before it, which cannot be taken back.
int Rma::hand_in_later(size_t index, uint64_t remote_offset) {
    Remote* remote = remote_;
    int ret = -FI_EAGAIN;
    remote->jobs++; // it stays, whatever ends meanwhile
    while (ret == -FI_EAGAIN && holders_ > 1) {
        endpoint_.domain.doze();
        ret = hand_in(index, remote_offset);
    }
    peer_.end_remote_job(remote);
    return ret;
}

// A target whose export was withdrawn is opened again: another may have its key now.
int Rma::start(uint64_t address, uint64_t key) {
    int ret = peer_.open_remote(key, &remote_);
    if (ret != 0) return ret;
    key_ = key;
    holders_ = 1;
    uint64_t offset = endpoint_.domain.is_virtual() ? address - remote_->start : address;
    for (size_t i = 0; i < memory.nr && ret == 0; i++) {
        if (memory.ranges[i].iov_len == 0) continue;
        ret = hand_in(i, offset);
        if ((ret == -EKEYREVOKED || ret == -ECONNRESET) && holders_ == 1) {
            peer_.forget_remote(key);
            ret = peer_.open_remote(key, &remote_);
            if (ret != 0) return ret;
            offset = endpoint_.domain.is_virtual() ? address - remote_->start : address;
            ret = hand_in(i, offset);
        }
        if (ret == -FI_EAGAIN && holders_ > 1) ret = hand_in_later(i, offset);
        offset += memory.ranges[i].iov_len;
    }
    if (ret != 0 && holders_ == 1) return ret; // nothing is under way
    if (ret == 0 && has_data) announce();
    let_go(ret);
    return 0;
}

void Rma::announce() {
    auto send = std::make_unique<Send>(peer_, Kind::written);
    send->data = data;
    send->memory.length = memory.length; // told, not sent
    send->rma = this;
    holders_++;
    endpoint_.outbox.post(std::move(send), false);
}

void Rma::announced(int status) { let_go(status); }

void Rma::job_ended(Job& job, int status) {
    endpoint_.memory_jobs--;
    release(job, status == 0);
    if (status == -EKEYREVOKED) peer_.forget_remote(key_);
    Remote* remote = remote_;
    Peer& peer = peer_;
    let_go(status);
    peer.end_remote_job(remote);
}

void Rma::let_go(int status) {
    if (status_ == 0) status_ = status;
    if (--holders_ > 0) return;
    Outcome outcome{context, FI_RMA | (is_write_ ? FI_WRITE : FI_READ), status_, During::memory, reported};
    endpoint_.transmitted(outcome);
    delete this;
}

namespace {

// What a call says.
struct Call {
    const iovec* iov;
    size_t count;
    void** desc;
    fi_addr_t to;
    uint64_t address;
    uint64_t key;
    void* context;
    uint64_t flags;
    uint64_t data;
    bool reported;
};

ssize_t run(fid_ep* handle, bool is_write, const Call& call) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    if (call.flags & refused_flags) return -FI_EBADFLAGS;
    return guarded([&]() -> int {
        std::lock_guard guard(endpoint.domain.lock);
        Peer* peer;
        int ret = endpoint.begin_memory(call.to, &peer);
        if (ret != 0) return ret;
        auto rma = std::make_unique<Rma>(endpoint, *peer, is_write);
        if (!rma->memory.set(call.iov, call.count)) return -FI_EINVAL;
        for (size_t i = 0; i < call.count && call.desc; i++) rma->desc[i] = call.desc[i];
        rma->context = call.context;
        rma->data = call.data;
        rma->has_data = (call.flags & FI_REMOTE_CQ_DATA) != 0;
        rma->reported = call.reported;
        rma->injected = is_write && (call.flags & FI_INJECT) != 0;
        if (rma->memory.length > longest) return -FI_EMSGSIZE;
        if (rma->injected && rma->memory.length > endpoint.info->tx_attr->inject_size) return -FI_EINVAL;
        ret = rma->start(call.address, call.key);
        if (ret == 0) static_cast<void>(rma.release()); // its completion takes it
        return endpoint.end_of_call(ret, call.context, FI_RMA | (is_write ? FI_WRITE : FI_READ));
    });
}

uint64_t default_flags(fid_ep* ep) { return object_of<Endpoint>(ep).tx_flags(); }

bool reports(fid_ep* ep, uint64_t flags) { return object_of<Endpoint>(ep).reports_tx(flags); }

ssize_t run_buffer(fid_ep* ep, bool is_write, const void* buffer, size_t length, void* desc, uint64_t data,
                   fi_addr_t to, uint64_t address, uint64_t key, void* context, uint64_t flags) {
    iovec iov{const_cast<void*>(buffer), length};
    flags |= default_flags(ep);
    return run(ep, is_write, {&iov, 1, &desc, to, address, key, context, flags, data, reports(ep, flags)});
}

ssize_t run_vector(fid_ep* ep, bool is_write, const iovec* iov, void** desc, size_t count, fi_addr_t to,
                   uint64_t address, uint64_t key, void* context) {
    uint64_t flags = default_flags(ep);
    return run(ep, is_write, {iov, count, desc, to, address, key, context, flags, 0, reports(ep, flags)});
}

ssize_t run_message(fid_ep* ep, bool is_write, const fi_msg_rma* message, uint64_t flags) {
    if (message->rma_iov_count != 1) return -FI_EINVAL;
    return run(ep, is_write,
               {message->msg_iov, message->iov_count, message->desc, message->addr, message->rma_iov[0].addr,
                message->rma_iov[0].key, message->context, flags, message->data, reports(ep, flags)});
}

ssize_t run_inject(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t to,
                   uint64_t address, uint64_t key, uint64_t flags) {
    iovec iov{const_cast<void*>(buffer), length};
    return run(ep, true, {&iov, 1, nullptr, to, address, key, nullptr, flags | FI_INJECT, data, false});
}

ssize_t read(fid_ep* ep, void* buffer, size_t length, void* desc, fi_addr_t from, uint64_t address,
             uint64_t key, void* context) {
    return run_buffer(ep, false, buffer, length, desc, 0, from, address, key, context, 0);
}

ssize_t read_vector(fid_ep* ep, const iovec* iov, void** desc, size_t count, fi_addr_t from, uint64_t address,
                    uint64_t key, void* context) {
    return run_vector(ep, false, iov, desc, count, from, address, key, context);
}

ssize_t read_message(fid_ep* ep, const fi_msg_rma* message, uint64_t flags) {
    return run_message(ep, false, message, flags & ~(FI_INJECT | FI_REMOTE_CQ_DATA));
}

ssize_t write(fid_ep* ep, const void* buffer, size_t length, void* desc, fi_addr_t to, uint64_t address,
              uint64_t key, void* context) {
    return run_buffer(ep, true, buffer, length, desc, 0, to, address, key, context, 0);
}

ssize_t write_vector(fid_ep* ep, const iovec* iov, void** desc, size_t count, fi_addr_t to, uint64_t address,
                     uint64_t key, void* context) {
    return run_vector(ep, true, iov, desc, count, to, address, key, context);
}

ssize_t write_message(fid_ep* ep, const fi_msg_rma* message, uint64_t flags) {
    return run_message(ep, true, message, flags);
}

ssize_t inject_write(fid_ep* ep, const void* buffer, size_t length, fi_addr_t to, uint64_t address,
                     uint64_t key) {
    return run_inject(ep, buffer, length, 0, to, address, key, 0);
}

ssize_t write_data(fid_ep* ep, const void* buffer, size_t length, void* desc, uint64_t data, fi_addr_t to,
                   uint64_t address, uint64_t key, void* context) {
    return run_buffer(ep, true, buffer, length, desc, data, to, address, key, context, FI_REMOTE_CQ_DATA);
}

ssize_t inject_write_data(fid_ep* ep, const void* buffer, size_t length, uint64_t data, fi_addr_t to,
                          uint64_t address, uint64_t key) {
    return run_inject(ep, buffer, length, data, to, address, key, FI_REMOTE_CQ_DATA);
}

} // namespace

fi_ops_rma make_rma_ops() {
    fi_ops_rma ops{};
    ops.size = sizeof(ops);
    ops.read = read;
    ops.readv = read_vector;
    ops.readmsg = read_message;
    ops.write = write;
    ops.writev = write_vector;
    ops.writemsg = write_message;
    ops.inject = inject_write;
    ops.writedata = write_data;
    ops.injectdata = inject_write_data;
    return ops;
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/atomic.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "libfabric/endpoint.hpp"
#include "libfabric/object.hpp"
#include "libfabric/peer.hpp"

namespace kxfer::fi {

int Atomic::hand_in(uint64_t address) {
    uint64_t offset = endpoint_.domain.is_virtual() ? address - remote_->start : address;
    if (!endpoint_.outbox.pool.take(piece_)) return -FI_EAGAIN;
    int ret = endpoint_.domain.submit(
        atomic_job(op, piece_.region, piece_.offset, remote_->target, offset, operand, compare), *this);
    if (ret != 0) {
        endpoint_.outbox.pool.give(piece_);
        return ret;
    }
    remote_->jobs++;
    peer_.atomics++;
    endpoint_.memory_jobs++;
    return 0;
}

// A target whose export was withdrawn is opened again: another may have its key now. Of the job that was
// refused nothing has happened.
int Atomic::start(uint64_t address, uint64_t key) {
    key_ = key;
    int ret = peer_.open_remote(key, &remote_);
    if (ret != 0) return ret;
    ret = hand_in(address);
    if (ret != -EKEYREVOKED && ret != -ECONNRESET) return ret;
    peer_.forget_remote(key);
    ret = peer_.open_remote(key, &remote_);
    return ret == 0 ? hand_in(address) : ret;
}

void Atomic::ended(const kxfer_completion& completion) {
    endpoint_.memory_jobs--;
    peer_.atomics--;
    if (completion.status == 0 && result) memcpy(result, piece_.at, word_bytes);
    endpoint_.outbox.pool.give(piece_);
    if (completion.status == -EKEYREVOKED) peer_.forget_remote(key_);
    endpoint_.transmitted({context, flags_of(form_), completion.status, During::memory, reported});
    peer_.end_remote_job(remote_);
    delete this;
}

namespace {

struct Words {
    const fi_ioc* ranges = nullptr;
    size_t count = 0;
};

// What a call says.
struct Call {
    Form form;
    fi_datatype type;
    fi_op op;
    Words operand;
    Words compare;
    Words result;
    fi_addr_t to;
    uint64_t address;
    uint64_t key;
    void* context;
    uint64_t flags;
    bool reported;
};

constexpr uint64_t refused_atomic_flags = refused_flags | FI_REMOTE_CQ_DATA | FI_TAGGED;

uint64_t word_at(const void* from) {
    uint64_t word;
    memcpy(&word, from, word_bytes);
    return word;
}

// Takes the words of the call. 0, or what is wrong with them.
int take_words(const Call& call, Atomic& atomic) {
    void* at;
    int ret = only_word(call.operand.ranges, call.operand.count, &at);
    if (ret != 0) return ret;
    atomic.operand = word_at(at);
    if (call.form == Form::base) return 0;
    ret = only_word(call.result.ranges, call.result.count, &atomic.result);
    if (ret != 0 || call.form == Form::fetch) return ret;
    ret = only_word(call.compare.ranges, call.compare.count, &at);
    if (ret == 0) atomic.compare = word_at(at);
    return ret;
}

ssize_t run(fid_ep* handle, const Call& call) {
    Endpoint& endpoint = object_of<Endpoint>(handle);
    uint32_t op = atomic_op(call.form, call.type, call.op);
    if (!endpoint.domain.has_atomics() || op == KXFER_OP_NOP) return -FI_EOPNOTSUPP;
    if (call.flags & refused_atomic_flags) return -FI_EBADFLAGS;
    // Where addresses are offsets, the kernel knows whether it is one of a word.
    if (endpoint.domain.is_virtual() && call.address % word_bytes != 0) return -FI_EINVAL;
    return guarded([&]() -> int {
        std::lock_guard guard(endpoint.domain.lock);
        Peer* peer;
        int ret = endpoint.begin_memory(call.to, &peer);
        if (ret != 0) return ret;
        auto atomic = std::make_unique<Atomic>(endpoint, *peer, call.form);
        ret = take_words(call, *atomic);
        if (ret != 0) return ret;
        atomic->op = op;
        atomic->context = call.context;
        atomic->reported = call.reported;
        ret = atomic->start(call.address, call.key);
        if (ret == 0) static_cast<void>(atomic.release()); // its completion takes it
        return endpoint.end_of_call(ret, call.context, Atomic::flags_of(call.form));
    });
}

ssize_t run_with_defaults(fid_ep* ep, Call call) {
    Endpoint& endpoint = object_of<Endpoint>(ep);
    call.flags = endpoint.tx_flags();
    call.reported = endpoint.reports_tx(call.flags);
    return run(ep, call);
}

ssize_t run_message(fid_ep* ep, Form form, const fi_msg_atomic* message, Words compare, Words result,
                    uint64_t flags) {
    if (message->rma_iov_count != 1 || message->rma_iov[0].count == 0) return -FI_EINVAL;
    if (message->rma_iov[0].count > 1) return -FI_EMSGSIZE;
    return run(ep, {form,
                    message->datatype,
                    message->op,
                    {message->msg_iov, message->iov_count},
                    compare,
                    result,
                    message->addr,
                    message->rma_iov[0].addr,
                    message->rma_iov[0].key,
                    message->context,
                    flags,
                    object_of<Endpoint>(ep).reports_tx(flags)});
}

fi_ioc range(const void* at, size_t count) { return {const_cast<void*>(at), count}; }

// ---- the calls ----

ssize_t add(fid_ep* ep, const void* buffer, size_t count, void*, fi_addr_t to, uint64_t address, uint64_t key,
            fi_datatype type, fi_op op, void* context) {
    fi_ioc operand = range(buffer, count);
    return run_with_defaults(
        ep, {Form::base, type, op, {&operand, 1}, {}, {}, to, address, key, context, 0, false});
}

ssize_t add_vector(fid_ep* ep, const fi_ioc* iov, void**, size_t count, fi_addr_t to, uint64_t address,
                   uint64_t key, fi_datatype type, fi_op op, void* context) {
    return run_with_defaults(
        ep, {Form::base, type, op, {iov, count}, {}, {}, to, address, key, context, 0, false});
}

ssize_t add_message(fid_ep* ep, const fi_msg_atomic* message, uint64_t flags) {
    return run_message(ep, Form::base, message, {}, {}, flags);
}

ssize_t inject_add(fid_ep* ep, const void* buffer, size_t count, fi_addr_t to, uint64_t address, uint64_t key,
                   fi_datatype type, fi_op op) {
    fi_ioc operand = range(buffer, count);
    return run(ep, {Form::base, type, op, {&operand, 1}, {}, {}, to, address, key, nullptr, 0, false});
}

ssize_t fetch(fid_ep* ep, const void* buffer, size_t count, void*, void* result, void*, fi_addr_t to,
              uint64_t address, uint64_t key, fi_datatype type, fi_op op, void* context) {
    fi_ioc operand = range(buffer, count), former = range(result, count);
    return run_with_defaults(
        ep, {Form::fetch, type, op, {&operand, 1}, {}, {&former, 1}, to, address, key, context, 0, false});
}

ssize_t fetch_vector(fid_ep* ep, const fi_ioc* iov, void**, size_t count, fi_ioc* results, void**,
                     size_t nr_results, fi_addr_t to, uint64_t address, uint64_t key, fi_datatype type,
                     fi_op op, void* context) {
    return run_with_defaults(ep, {Form::fetch,
                                  type,
                                  op,
                                  {iov, count},
                                  {},
                                  {results, nr_results},
                                  to,
                                  address,
                                  key,
                                  context,
                                  0,
                                  false});
}

ssize_t fetch_message(fid_ep* ep, const fi_msg_atomic* message, fi_ioc* results, void**, size_t nr_results,
                      uint64_t flags) {
    return run_message(ep, Form::fetch, message, {}, {results, nr_results}, flags);
}

ssize_t compare(fid_ep* ep, const void* buffer, size_t count, void*, const void* with, void*, void* result,
                void*, fi_addr_t to, uint64_t address, uint64_t key, fi_datatype type, fi_op op,
                void* context) {
    fi_ioc operand = range(buffer, count), expected = range(with, count), former = range(result, count);
    return run_with_defaults(ep, {Form::compare,
                                  type,
                                  op,
                                  {&operand, 1},
                                  {&expected, 1},
                                  {&former, 1},
                                  to,
                                  address,
                                  key,
                                  context,
                                  0,
                                  false});
}

ssize_t compare_vector(fid_ep* ep, const fi_ioc* iov, void**, size_t count, const fi_ioc* with, void**,
                       size_t nr_with, fi_ioc* results, void**, size_t nr_results, fi_addr_t to,
                       uint64_t address, uint64_t key, fi_datatype type, fi_op op, void* context) {
    return run_with_defaults(ep, {Form::compare,
                                  type,
                                  op,
                                  {iov, count},
                                  {with, nr_with},
                                  {results, nr_results},
                                  to,
                                  address,
                                  key,
                                  context,
                                  0,
                                  false});
}

ssize_t compare_message(fid_ep* ep, const fi_msg_atomic* message, const fi_ioc* with, void**, size_t nr_with,
                        fi_ioc* results, void**, size_t nr_results, uint64_t flags) {
    return run_message(ep, Form::compare, message, {with, nr_with}, {results, nr_results}, flags);
}

// ---- what there is ----

int is_there(fid_ep* ep, Form form, fi_datatype type, fi_op op, size_t* count) {
    if (!object_of<Endpoint>(ep).domain.has_atomics() || atomic_op(form, type, op) == KXFER_OP_NOP)
        return -FI_EOPNOTSUPP;
    *count = 1;
    return 0;
}

int add_is_there(fid_ep* ep, fi_datatype type, fi_op op, size_t* count) {
    return is_there(ep, Form::base, type, op, count);
}

int fetch_is_there(fid_ep* ep, fi_datatype type, fi_op op, size_t* count) {
    return is_there(ep, Form::fetch, type, op, count);
}

int compare_is_there(fid_ep* ep, fi_datatype type, fi_op op, size_t* count) {
    return is_there(ep, Form::compare, type, op, count);
}

} // namespace

int query_atomic(fid_domain* handle, fi_datatype type, fi_op op, fi_atomic_attr* attr, uint64_t flags) {
    Form form;
    if (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC) return -FI_EINVAL;
    if (!object_of<Domain>(handle).has_atomics() || !form_of(flags, form) ||
        atomic_op(form, type, op) == KXFER_OP_NOP)
        return -FI_EOPNOTSUPP;
    attr->count = 1;
    attr->size = word_bytes;
    return 0;
}

fi_ops_atomic make_atomic_ops() {
    fi_ops_atomic ops{};
    ops.size = sizeof(ops);
    ops.write = add;
    ops.writev = add_vector;
    ops.writemsg = add_message;
    ops.inject = inject_add;
    ops.readwrite = fetch;
    ops.readwritev = fetch_vector;
    ops.readwritemsg = fetch_message;
    ops.compwrite = compare;
    ops.compwritev = compare_vector;
    ops.compwritemsg = compare_message;
    ops.writevalid = add_is_there;
    ops.readwritevalid = fetch_is_there;
    ops.compwritevalid = compare_is_there;
    return ops;
}

} // namespace kxfer::fi

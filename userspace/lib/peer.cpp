// SPDX-License-Identifier: MIT
//
// Listeners, peers and targets: everything about other nodes except jobs.

#include <kxfer/kxfer.h>

#include "lib/call.hpp"

int kxfer_listener_create(kxfer_session* session, const kxfer_addr* address, uint32_t flags,
                          uint64_t* listener) {
    return kxfer_listener_create_with_keys(session, address, flags, nullptr, 0, listener);
}

int kxfer_listener_create_with_keys(kxfer_session* session, const kxfer_addr* address, uint32_t flags,
                                    const kxfer_key_name* keys, uint32_t nr_keys, uint64_t* listener) {
    kxfer_listen_add add = {};
    add.flags = flags;
    add.addr = *address;
    add.keys = nr_keys ? reinterpret_cast<uintptr_t>(keys) : 0;
    add.nr_keys = nr_keys;
    const int ret = kxfer_listener_add(session, &add);
    if (ret == 0 && listener) *listener = add.listener;
    return ret;
}

int kxfer_listener_add(kxfer_session* session, kxfer_listen_add* listen_args) {
    listen_args->size = sizeof(*listen_args);
    return kxfer::call(session, KXFER_LISTEN_ADD, listen_args);
}

int kxfer_listener_destroy(kxfer_session* session, uint64_t listener) {
    kxfer_listen_del del = {};
    del.size = sizeof(del);
    del.listener = listener;
    return kxfer::call(session, KXFER_LISTEN_DEL, &del);
}

int kxfer_peer_connect(kxfer_session* session, kxfer_peer_open* peer_args) {
    peer_args->size = sizeof(*peer_args);
    return kxfer::call(session, KXFER_PEER_OPEN, peer_args);
}

int kxfer_peer_disconnect(kxfer_session* session, uint32_t peer) {
    return kxfer::call_id(session, KXFER_PEER_CLOSE, peer);
}

int kxfer_peer_exports(kxfer_session* session, uint32_t peer, uint32_t timeout_ms, uint64_t* cursor,
                       kxfer_peer_export* exports, uint32_t nr) {
    kxfer_peer_list list = {};
    list.size = sizeof(list);
    list.peer = peer;
    list.timeout_ms = timeout_ms;
    list.cursor = *cursor;
    list.exports = reinterpret_cast<uintptr_t>(exports);
    list.nr = nr;
    const int ret = kxfer::call(session, KXFER_PEER_LIST, &list);
    if (ret < 0) return ret;
    *cursor = list.cursor;
    return static_cast<int>(list.nr);
}

// The two reject reasons of InfiniBand's communication manager that users can act on.
static const char* transport_text(uint32_t reason) {
    switch (reason) {
    case 8:
        return "nothing listens there";
    case 10:
        return "it still has a connection of before this node was started again";
    default:
        return "its RDMA transport; the kernel log has the reason";
    }
}

const char* kxfer_refusal_text(uint32_t refusal) {
    if (refusal & KXFER_REFUSAL_TRANSPORT) return transport_text(refusal & ~KXFER_REFUSAL_TRANSPORT);
    switch (refusal) {
    case KXFER_REFUSAL_NONE:
        return "not refused";
    case KXFER_REFUSAL_MAGIC:
        return "it is no kxfer listener or takes this node for none";
    case KXFER_REFUSAL_VERSION:
        return "no protocol version in common";
    case KXFER_REFUSAL_PORT:
        return "source port not below 1024";
    case KXFER_REFUSAL_COOKIE:
        return "data lane without the cookie of a live link";
    case KXFER_REFUSAL_LIMIT:
        return "too many links there";
    case KXFER_REFUSAL_RESOURCES:
        return "no memory or no room on the device there";
    case KXFER_REFUSAL_CLOSING:
        return "the node is shutting down";
    case KXFER_REFUSAL_ADDRESS:
        return "address is not that of the path";
    case KXFER_REFUSAL_KEY:
        return "a key is wanted by one end only, or is another one";
    default:
        return "a reason unknown to this version";
    }
}

int kxfer_target_create(kxfer_session* session, kxfer_target_open* target_args) {
    target_args->size = sizeof(*target_args);
    return kxfer::call(session, KXFER_TARGET_OPEN, target_args);
}

int kxfer_target_destroy(kxfer_session* session, uint32_t target) {
    return kxfer::call_id(session, KXFER_TARGET_CLOSE, target);
}

int kxfer_target_query(kxfer_session* session, kxfer_target_info* info) {
    info->size = sizeof(*info);
    return kxfer::call(session, KXFER_TARGET_INFO, info);
}

// SPDX-License-Identifier: MIT
//
// Regions, exports of them, and mailboxes.

#include <kxfer/kxfer.h>

#include "lib/call.hpp"

#include <cstring>

int kxfer_region_create(kxfer_session* session, void* address, size_t length, uint32_t flags,
                        uint32_t* region) {
    kxfer_region_add add = {};
    add.size = sizeof(add);
    add.flags = flags;
    add.addr = reinterpret_cast<uintptr_t>(address);
    add.length = length;
    const int ret = kxfer::call(session, KXFER_REGION_ADD, &add);
    if (ret == 0) *region = add.region;
    return ret;
}

int kxfer_region_import(kxfer_session* session, int dmabuf_fd, uint64_t offset, uint64_t length,
                        uint32_t flags, uint32_t* region) {
    kxfer_region_add add = {};
    add.size = sizeof(add);
    add.flags = flags | KXFER_REGION_F_DMABUF;
    add.addr = offset;
    add.length = length;
    add.dmabuf_fd = dmabuf_fd;
    const int ret = kxfer::call(session, KXFER_REGION_ADD, &add);
    if (ret == 0) *region = add.region;
    return ret;
}

int kxfer_region_destroy(kxfer_session* session, uint32_t region) {
    return kxfer::call_id(session, KXFER_REGION_DEL, region);
}

int kxfer_export_create(kxfer_session* session, kxfer_export_add* export_args) {
    export_args->size = sizeof(*export_args);
    export_args->rule_stride = export_args->nr_rules ? sizeof(kxfer_rule) : 0;
    return kxfer::call(session, KXFER_EXPORT_ADD, export_args);
}

int kxfer_export_destroy(kxfer_session* session, uint32_t export_id) {
    return kxfer::call_id(session, KXFER_EXPORT_DEL, export_id);
}

int kxfer_export_publish(kxfer_session* session, uint32_t export_id, uint64_t length,
                         const uint8_t sha256[KXFER_SHA256_SIZE], uint64_t* generation) {
    kxfer_export_set set = {};
    set.size = sizeof(set);
    set.export_id = export_id;
    set.content.length = length;
    memcpy(set.content.sha256, sha256, KXFER_SHA256_SIZE);
    const int ret = kxfer::call(session, KXFER_EXPORT_SET, &set);
    if (ret == 0 && generation) *generation = set.content.generation;
    return ret;
}

int kxfer_mailbox_create(kxfer_session* session, kxfer_mailbox_add* mailbox_args) {
    mailbox_args->size = sizeof(*mailbox_args);
    mailbox_args->rule_stride = mailbox_args->nr_rules ? sizeof(kxfer_rule) : 0;
    mailbox_args->message_size = sizeof(kxfer_message);
    return kxfer::call(session, KXFER_MAILBOX_ADD, mailbox_args);
}

int kxfer_mailbox_destroy(kxfer_session* session, uint32_t mailbox) {
    return kxfer::call_id(session, KXFER_EXPORT_DEL, mailbox);
}

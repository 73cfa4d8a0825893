/* SPDX-License-Identifier: MIT */
/*
 * Sends an endpoint what no endpoint of the provider sends: bytes, by libkxfer, with headers that claim to
 * be from anybody.
 */
#ifndef FORGER_H
#define FORGER_H

#include <stddef.h>
#include <stdint.h>

#include "connected.h"

/* userspace/libfabric/wire.hpp */
enum kind { kind_data = 1, kind_connect = 6, kind_accept, kind_reject, kind_ready, kind_bye };

struct forged {
    uint8_t version, kind, flags, zero;
    uint32_t sequence, id, zero1;
    uint64_t length, tag, data, place;
    uint16_t family, port;
    uint32_t scope_id;
    uint8_t addr[16];
    char payload[64];
};

#define FORGED_HEADER offsetof(struct forged, payload)

struct forger;

/* Of the mailbox that the address names. */
struct forger* forger_open(const struct name* to);
void forger_close(struct forger* f);

/* A message of this kind that is sound, from this address. */
struct forged forge(uint8_t kind, const struct name* from);

/* Puts so many bytes into the mailbox; they are there when it returns. */
void forger_send(struct forger* f, const struct forged* what, size_t bytes);

#endif

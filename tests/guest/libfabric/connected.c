// SPDX-License-Identifier: MIT
#include "connected.h"

#include <string.h>

void connected_open(struct side* s, int other) {
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD, .size = 64};

    memset(s, 0, sizeof(*s));
    s->other = other;
    s->info = side_find(FI_EP_MSG, 0);
    DO(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
    DO(fi_domain(s->fabric, s->info, &s->domain, NULL));
    DO(fi_eq_open(s->fabric, &eq, &s->eq, NULL));
}

void connected_close(struct side* s) {
    if (s->ep) {
        DO(fi_close(&s->ep->fid));
        side_close_queues(s);
    }
    if (s->pep) DO(fi_close(&s->pep->fid));
    DO(fi_close(&s->eq->fid));
    DO(fi_close(&s->domain->fid));
    DO(fi_close(&s->fabric->fid));
    fi_freeinfo(s->info);
}

void listen_for(struct side* s) {
    struct name name = {.length = sizeof(name.bytes)};

    DO(fi_passive_ep(s->fabric, s->info, &s->pep, NULL));
    DO(fi_pep_bind(s->pep, &s->eq->fid, 0));
    DO(fi_listen(s->pep));
    DO(fi_getname(&s->pep->fid, name.bytes, &name.length));
    give(s, &name, sizeof(name));
}

struct name take_name(struct side* s) {
    struct name name;

    take(s, &name, sizeof(name));
    return name;
}

void make_endpoint(struct side* s, struct fi_info* info) {
    DO(fi_endpoint(s->domain, info, &s->ep, &s->ep));
    DO(fi_ep_bind(s->ep, &s->eq->fid, 0));
    side_open_queues(s);
    DO(fi_enable(s->ep));
}

struct fi_info* await_event(struct side* s, uint32_t wanted, const struct fid* of, const void* data,
                            size_t length) {
    union {
        struct fi_eq_cm_entry entry;
        char room[sizeof(struct fi_eq_cm_entry) + 4096];
    } got;
    uint32_t event;
    ssize_t ret = fi_eq_sread(s->eq, &event, &got, sizeof(got), PATIENCE_S * 1000, 0);

    if (ret == -FI_EAVAIL) {
        struct fi_eq_err_entry error = {0};

        fi_eq_readerr(s->eq, &error, 0);
        fprintf(stderr, "error %d: %s\n", error.err, fi_eq_strerror(s->eq, error.prov_errno, NULL, NULL, 0));
    }
    CHECK(ret == (ssize_t)(sizeof(got.entry) + length));
    CHECK(event == wanted && (!of || got.entry.fid == of));
    CHECK(memcmp(got.entry.data, data, length) == 0);
    CHECK(!got.entry.info == (event != FI_CONNREQ));
    return got.entry.info;
}

struct fi_eq_err_entry await_failure(struct side* s, int seconds, const void* data, size_t length) {
    struct fi_eq_cm_entry entry;
    struct fi_eq_err_entry error = {0};
    uint32_t event;

    CHECK(fi_eq_sread(s->eq, &event, &entry, sizeof(entry), seconds * 1000, 0) == -FI_EAVAIL);
    CHECK(fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0) == -FI_EAVAIL);
    CHECK(fi_eq_readerr(s->eq, &error, 0) == sizeof(error));
    CHECK(error.fid == &s->ep->fid && error.context == &s->ep && error.err != 0);
    CHECK(error.err_data_size == length && memcmp(error.err_data, data, length) == 0);
    CHECK(strncmp(fi_eq_strerror(s->eq, error.prov_errno, NULL, NULL, 0), "kxfer: ", 7) == 0);
    CHECK(fi_eq_readerr(s->eq, &error, 0) == -FI_EAGAIN);
    return error;
}

void expect_no_event(struct side* s, int milliseconds) {
    struct fi_eq_cm_entry entry;
    uint32_t event;

    CHECK(fi_eq_sread(s->eq, &event, &entry, sizeof(entry), milliseconds, 0) == -FI_EAGAIN);
}

void connect_to(struct side* s, const struct name* server) {
    make_endpoint(s, s->info);
    DO(fi_connect(s->ep, server->bytes, NULL, 0));
    await_event(s, FI_CONNECTED, &s->ep->fid, "", 0);
}

void accept_one(struct side* s) {
    struct fi_info* info = await_event(s, FI_CONNREQ, &s->pep->fid, "", 0);

    make_endpoint(s, info);
    DO(fi_accept(s->ep, NULL, 0));
    fi_freeinfo(info);
    await_event(s, FI_CONNECTED, &s->ep->fid, "", 0);
}

// SPDX-License-Identifier: MIT
#include "forger.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <kxfer/kxfer.h>

#define TIMEOUT_MS 10000

struct forger {
    struct kxfer_session* session;
    uint32_t region, target;
    char bytes[sizeof(struct forged)];
};

/* The word of the target is one that nobody has agreed on. */
static void open_target(struct forger* f, const struct name* to) {
    const struct sockaddr_in* in = (const struct sockaddr_in*)to->bytes;
    struct kxfer_peer_open peer = {.timeout_ms = TIMEOUT_MS};
    struct kxfer_target_open target = {.timeout_ms = TIMEOUT_MS, .rights = KXFER_RIGHT_SEND, .word = 77};

    CHECK(kxfer_addr_from_sockaddr((const struct sockaddr*)to->bytes, &peer.remote) == 0);
    peer.remote.port = 0;
    CHECK(kxfer_peer_connect(f->session, &peer) == 0);
    target.peer = peer.peer;
    snprintf((char*)target.name, sizeof(target.name), "fi.p.%d", ntohs(in->sin_port));
    CHECK(kxfer_target_create(f->session, &target) == 0);
    f->target = target.target;
}

struct forger* forger_open(const struct name* to) {
    struct forger* f = calloc(1, sizeof(*f));

    CHECK(f && kxfer_session_open(NULL, &f->session) == 0);
    CHECK(kxfer_region_create(f->session, f->bytes, sizeof(f->bytes), 0, &f->region) == 0);
    open_target(f, to);
    return f;
}

void forger_close(struct forger* f) {
    kxfer_session_close(f->session);
    free(f);
}

struct forged forge(uint8_t kind, const struct name* from) {
    const struct sockaddr_in* in = (const struct sockaddr_in*)from->bytes;
    struct forged made = {.version = 2, .kind = kind, .family = AF_INET, .port = ntohs(in->sin_port)};

    memcpy(made.addr, &in->sin_addr, sizeof(in->sin_addr));
    return made;
}

void forger_send(struct forger* f, const struct forged* what, size_t bytes) {
    struct kxfer_job job = kxfer_job_make_send_stored(f->region, 0, f->target, bytes, 0);

    memcpy(f->bytes, what, sizeof(*what));
    CHECK(kxfer_job_run(f->session, &job, kxfer_clock_ns() + TIMEOUT_MS * 1000000ULL, NULL) == 0);
}

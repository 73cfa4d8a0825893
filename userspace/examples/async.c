// SPDX-License-Identifier: MIT
/*
 * Many jobs in flight: writes a pattern into an export of a peer, reads it back
 * and compares. On the peer, then here:
 *
 *     kxfer serve box=mem:16M --writable
 *     async 10.77.0.1 box
 *
 * The export is cut into pieces, and DEPTH of them are under way at a time, each
 * in a slot of its own: WRITE; when that has completed, READ; when that has
 * completed, compare, and take the next piece. Completions come in any order;
 * user_data says which slot one belongs to.
 *
 * cc async.c -o async $(pkg-config --cflags --libs kxfer)
 */
#include <kxfer/kxfer.h>

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 16
#define PIECE 65536
#define PATIENCE_NS 10000000000ULL

/* The region: what is sent, and what comes back, a pair for each slot. */
static struct buffers {
    unsigned char out[PIECE];
    unsigned char in[PIECE];
} buffers[DEPTH];

struct slot {
    uint64_t offset; /* of its piece in the export */
    uint64_t length;
};

struct transfer {
    struct kxfer_session* session;
    uint32_t region;
    uint32_t target;
    uint64_t length; /* of the export */
    uint64_t begun;  /* bytes of it that some slot has taken */
    uint64_t right;  /* bytes that came back as they were sent */
    struct slot slots[DEPTH];
};

static void complain(const char* what, int error) {
    fprintf(stderr, "async: %s: %s\n", what, strerror(-error));
}

static int submit(struct transfer* t, const struct kxfer_job* job) {
    int ret = kxfer_job_submit(t->session, job, 1, NULL);
    return ret < 0 ? ret : 0;
}

static int write_next_piece(struct transfer* t, unsigned int i) {
    struct slot* slot = &t->slots[i];
    struct kxfer_job job;
    uint64_t k;

    slot->offset = t->begun;
    slot->length = t->length - t->begun < PIECE ? t->length - t->begun : PIECE;
    if (slot->length == 0) return 0; /* the slot has nothing to do any more */
    t->begun += slot->length;
    for (k = 0; k < slot->length; k++) buffers[i].out[k] = (unsigned char)((slot->offset + k) * 167 >> 8);
    job = kxfer_job_make_write(t->region, i * sizeof(buffers[i]), t->target, slot->offset, slot->length, i);
    return submit(t, &job);
}

static int read_back(struct transfer* t, unsigned int i) {
    const struct slot* slot = &t->slots[i];
    struct kxfer_job job =
        kxfer_job_make_read(t->region, i * sizeof(buffers[i]) + offsetof(struct buffers, in), t->target,
                            slot->offset, slot->length, i);

    memset(buffers[i].in, 0, slot->length);
    return submit(t, &job);
}

/* One completion: the next step of its slot. From here on its bytes are ours again. */
static int step(struct transfer* t, const struct kxfer_completion* done) {
    unsigned int i = (unsigned int)done->user_data;

    if (done->status < 0) return done->status;
    if (done->op == KXFER_OP_WRITE) return read_back(t, i);
    if (memcmp(buffers[i].in, buffers[i].out, t->slots[i].length) != 0) {
        fprintf(stderr, "async: wrong bytes behind offset %llu\n", (unsigned long long)t->slots[i].offset);
        return -EBADMSG;
    }
    t->right += t->slots[i].length;
    return write_next_piece(t, i);
}

static int run(struct transfer* t) {
    struct kxfer_completion done[DEPTH];
    unsigned int i;
    int ret = 0, n;

    for (i = 0; i < DEPTH && ret == 0; i++) ret = write_next_piece(t, i);
    while (ret == 0 && t->right < t->length) {
        /* Waits for one, and takes what else is there. */
        n = kxfer_completion_reap(t->session, done, DEPTH, 1, kxfer_clock_ns() + PATIENCE_NS);
        if (n < 0) ret = n;
        for (i = 0; ret == 0 && (int)i < n; i++) ret = step(t, &done[i]);
    }
    if (ret < 0) complain("transfer", ret);
    return ret;
}

static int find(const char* host, struct kxfer_addr* address) {
    struct addrinfo* found;

    if (getaddrinfo(host, NULL, NULL, &found) != 0) return -EHOSTUNREACH;
    kxfer_addr_from_sockaddr(found->ai_addr, address);
    freeaddrinfo(found);
    return 0;
}

/* Peer and target. Their ids, as that of the region, go with the session. */
static int open_target(struct transfer* t, const char* host, const char* name) {
    struct kxfer_peer_open peer = {.timeout_ms = 10000};
    struct kxfer_target_open target = {.timeout_ms = 10000, .rights = KXFER_RIGHT_READ | KXFER_RIGHT_WRITE};
    int ret = find(host, &peer.remote);

    if (ret == 0) ret = kxfer_peer_connect(t->session, &peer);
    if (ret < 0) {
        complain(host, ret);
        return ret;
    }
    target.peer = peer.peer;
    strncpy((char*)target.name, name, KXFER_NAME_MAX);
    ret = kxfer_target_create(t->session, &target);
    if (ret < 0) complain(name, ret);
    t->target = target.target;
    t->length = target.length;
    return ret;
}

int main(int argc, char** argv) {
    struct transfer t = {0};
    int ret;

    if (argc != 3) {
        fprintf(stderr, "usage: async HOST NAME    NAME is overwritten\n");
        return 2;
    }
    ret = kxfer_session_open(NULL, &t.session);
    if (ret < 0) {
        complain(KXFER_DEVICE_PATH, ret);
        return 1;
    }
    ret = kxfer_region_create(t.session, buffers, sizeof(buffers), KXFER_REGION_F_WRITE, &t.region);
    if (ret < 0) complain("region", ret);
    if (ret == 0) ret = open_target(&t, argv[1], argv[2]);
    if (ret == 0) ret = run(&t);
    if (ret == 0) printf("%llu bytes, %d jobs in flight: right\n", (unsigned long long)t.right, DEPTH);
    /* Ends what an error has left in flight, too. */
    kxfer_session_close(t.session);
    return ret == 0 ? 0 : 1;
}

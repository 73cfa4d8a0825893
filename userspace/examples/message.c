// SPDX-License-Identifier: MIT
/*
 * Messages: a mailbox that receives them, and who sends some to it. On one node, then on
 * the other, or on the same:
 *
 *     kxfer listen add 10.77.0.1           (once, as root)
 *     message receive greetings 2
 *     message send 10.77.0.1 greetings hello world
 *
 * The receiver keeps SLOTS RECVs waiting, each with a place of its own in the region. A
 * message comes with a struct kxfer_message in front, which says who sent it; when it has
 * been printed its place goes into the next RECV. RECVs get messages in the order in which
 * they were handed in. The sender waits for each SEND, which is a stored one, so a message
 * that it says was sent is in the mailbox, or received.
 *
 * cc message.c -o message $(pkg-config --cflags --libs kxfer)
 */
#include <kxfer/kxfer.h>

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 8
#define LONGEST 4096
#define TIMEOUT_MS 10000

/* The region: what a RECV brings. The sender uses the payload of the first. */
static struct slot {
    struct kxfer_message message;
    char payload[LONGEST];
} slots[SLOTS];

static int complain(const char* what, int error) {
    fprintf(stderr, "message: %s: %s\n", what, strerror(-error));
    return error;
}

static int receive_into(struct kxfer_session* session, uint32_t region, uint32_t mailbox, unsigned int i) {
    struct kxfer_job job = kxfer_job_make_recv(region, i * sizeof(slots[0]), mailbox, sizeof(slots[0]), i);
    int ret = kxfer_job_submit(session, &job, 1, NULL);

    return ret < 0 ? ret : 0;
}

/* One completion of a RECV. From here on its place is ours. */
static int print_message(const struct kxfer_completion* done) {
    const struct slot* slot = &slots[done->user_data];

    if (done->status < 0) return complain("RECV", done->status);
    printf("uid %u: %.*s\n", slot->message.uid, (int)slot->message.bytes, slot->payload);
    fflush(stdout);
    return 0;
}

static int receive(struct kxfer_session* session, uint32_t region, const char* name, unsigned long count) {
    struct kxfer_mailbox_add mailbox = {.capacity = 64, .max_bytes = LONGEST};
    struct kxfer_completion done;
    unsigned int i;
    int ret;

    strncpy((char*)mailbox.name, name, KXFER_NAME_MAX);
    ret = kxfer_mailbox_create(session, &mailbox);
    if (ret < 0) return complain(name, ret);
    for (i = 0; i < SLOTS && ret == 0; i++) ret = receive_into(session, region, mailbox.export_id, i);
    while (ret == 0 && count > 0) {
        ret = kxfer_completion_reap(session, &done, 1, 1, 0); /* waits for as long as it takes */
        if (ret < 0) return complain("waiting for a message", ret);
        ret = print_message(&done);
        if (ret == 0 && --count > 0)
            ret = receive_into(session, region, mailbox.export_id, (unsigned int)done.user_data);
    }
    return ret;
}

/* The mailbox of a peer is a target, as an export is. */
static int open_mailbox(struct kxfer_session* session, const char* host, const char* name, uint32_t* id) {
    struct kxfer_peer_open peer = {.timeout_ms = TIMEOUT_MS};
    struct kxfer_target_open target = {.timeout_ms = TIMEOUT_MS, .rights = KXFER_RIGHT_SEND};
    struct addrinfo* found;
    int ret;

    if (getaddrinfo(host, NULL, NULL, &found) != 0) return complain(host, -EHOSTUNREACH);
    kxfer_addr_from_sockaddr(found->ai_addr, &peer.remote);
    freeaddrinfo(found);
    ret = kxfer_peer_connect(session, &peer);
    if (ret < 0) return complain(host, ret);
    target.peer = peer.peer;
    strncpy((char*)target.name, name, KXFER_NAME_MAX);
    ret = kxfer_target_create(session, &target);
    if (ret < 0) return complain(name, ret);
    *id = target.target;
    return 0;
}

static int send_text(struct kxfer_session* session, uint32_t region, uint32_t target, const char* text) {
    struct kxfer_job job =
        kxfer_job_make_send_stored(region, offsetof(struct slot, payload), target, strlen(text), 0);
    int ret;

    if (strlen(text) > LONGEST) return complain(text, -EMSGSIZE);
    memcpy(slots[0].payload, text, strlen(text));
    ret = kxfer_job_run(session, &job, kxfer_clock_ns() + TIMEOUT_MS * 1000000ULL, NULL);
    return ret < 0 ? complain("SEND", ret) : 0;
}

static int run(struct kxfer_session* session, uint32_t region, int argc, char** argv) {
    uint32_t target;
    int i, ret;

    if (strcmp(argv[1], "receive") == 0) return receive(session, region, argv[2], strtoul(argv[3], NULL, 10));
    ret = open_mailbox(session, argv[2], argv[3], &target);
    for (i = 4; i < argc && ret == 0; i++) ret = send_text(session, region, target, argv[i]);
    if (ret == 0) printf("%d sent\n", argc - 4);
    return ret;
}

int main(int argc, char** argv) {
    struct kxfer_session* session;
    uint32_t region;
    int ret;

    if (!(argc == 4 && strcmp(argv[1], "receive") == 0) && !(argc >= 5 && strcmp(argv[1], "send") == 0)) {
        fprintf(stderr, "usage: message receive NAME COUNT\n       message send HOST NAME TEXT...\n");
        return 2;
    }
    ret = kxfer_session_open(NULL, &session);
    if (ret < 0) {
        complain(KXFER_DEVICE_PATH, ret);
        return 1;
    }
    ret = kxfer_region_create(session, slots, sizeof(slots), KXFER_REGION_F_WRITE, &region);
    if (ret < 0)
        complain("region", ret);
    else
        ret = run(session, region, argc, argv);
    /* Ends the mailbox, and the RECVs that still wait. */
    kxfer_session_close(session);
    return ret == 0 ? 0 : 1;
}

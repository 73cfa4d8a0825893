/* SPDX-License-Identifier: MIT */
/*
 * Reads an export of a peer to standard output by io_uring: DEPTH jobs are kept in
 * flight, and no system call is made for kxfer but to get ready.
 *
 *     kxfer-uring 10.77.0.1 NAME >file
 *
 * What a job needs for io_uring: a ring with IORING_SETUP_SQE128, an SQE of
 * IORING_OP_URING_CMD whose cmd_op is KXFER_URING_CMD_JOB, and the job in its command
 * area. Its CQE tells how it ended; see struct kxfer_uring_job.
 *
 * cc uring.c -o kxfer-uring $(pkg-config --cflags --libs kxfer liburing)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kxfer/kxfer.h>

#define DEPTH 16
#define PIECE (64 * 1024)
#define TIMEOUT_MS 10000

struct reader {
    struct kxfer_session* session;
    struct io_uring ring;
    uint32_t target;
    uint32_t region;
    uint64_t length;  /* of the export */
    uint64_t asked;   /* how far jobs have been submitted */
    bool here[DEPTH]; /* the piece in this slot has arrived */
    char* memory;     /* DEPTH slots of PIECE bytes */
};

static int fail(const char* what, int error) {
    fprintf(stderr, "kxfer-uring: %s: %s\n", what, strerror(-error));
    return error;
}

static uint64_t piece_length(const struct reader* reader, uint64_t offset) {
    return reader->length - offset < PIECE ? reader->length - offset : PIECE;
}

/* Connects with the peer and opens its export. */
static int open_target(struct reader* reader, const char* address, const char* name) {
    struct sockaddr_in ip = {.sin_family = AF_INET};
    struct kxfer_peer_open peer = {.timeout_ms = TIMEOUT_MS};
    struct kxfer_target_open target = {.rights = KXFER_RIGHT_READ, .timeout_ms = TIMEOUT_MS};
    int error;

    if (inet_pton(AF_INET, address, &ip.sin_addr) != 1) return fail(address, -EINVAL);
    kxfer_addr_from_sockaddr((struct sockaddr*)&ip, &peer.remote);
    error = kxfer_peer_connect(reader->session, &peer);
    if (error) return fail(address, error);
    target.peer = peer.peer;
    snprintf((char*)target.name, sizeof(target.name), "%s", name);
    error = kxfer_target_create(reader->session, &target);
    if (error) return fail(name, error);
    reader->target = target.target;
    reader->length = target.length;
    return 0;
}

/* The memory that jobs read into, and the ring that they go through. */
static int make_room(struct reader* reader) {
    struct io_uring_params params = {.flags = IORING_SETUP_SQE128};
    int error;

    reader->memory = aligned_alloc(4096, DEPTH * PIECE);
    if (!reader->memory) return fail("memory", -ENOMEM);
    error = kxfer_region_create(reader->session, reader->memory, DEPTH * PIECE, KXFER_REGION_F_WRITE,
                                &reader->region);
    if (error) return fail("region", error);
    error = io_uring_queue_init_params(DEPTH, &reader->ring, &params);
    return error ? fail("io_uring", error) : 0;
}

/* Puts the next piece's job into the ring; io_uring_submit() hands it in. */
static int ask(struct reader* reader) {
    uint32_t slot = reader->asked / PIECE % DEPTH;
    struct io_uring_sqe* sqe = io_uring_get_sqe(&reader->ring);
    struct kxfer_uring_job command = {
        .job =
            {
                .op = KXFER_OP_READ,
                .region = reader->region,
                .region_offset = (uint64_t)slot * PIECE,
                .target = reader->target,
                .target_offset = reader->asked,
                .length = piece_length(reader, reader->asked),
            },
    };

    if (!sqe) return fail("io_uring", -EBUSY);
    memset(sqe, 0, 2 * sizeof(*sqe)); /* an SQE of 128 bytes */
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->fd = kxfer_session_fd(reader->session);
    sqe->cmd_op = KXFER_URING_CMD_JOB;
    sqe->user_data = slot;
    memcpy(sqe->cmd, &command, sizeof(command));
    reader->asked += command.job.length;
    return 0;
}

static int take(struct reader* reader) {
    struct io_uring_cqe* cqe;
    int error = io_uring_submit_and_wait(&reader->ring, 1);

    if (error < 0) return fail("io_uring", error);
    while (!io_uring_peek_cqe(&reader->ring, &cqe)) {
        if (cqe->res) return fail("a job", cqe->res);
        reader->here[cqe->user_data] = true;
        io_uring_cqe_seen(&reader->ring, cqe);
    }
    return 0;
}

/* Jobs may complete in any order; the output does not. */
static int copy(struct reader* reader) {
    uint64_t written = 0;
    int error = 0;

    while (!error && reader->asked < reader->length && reader->asked < DEPTH * PIECE) error = ask(reader);
    while (!error && written < reader->length) {
        uint32_t slot = written / PIECE % DEPTH;
        uint64_t length = piece_length(reader, written);

        if (!reader->here[slot]) {
            error = take(reader);
            continue;
        }
        reader->here[slot] = false;
        if (fwrite(reader->memory + (size_t)slot * PIECE, 1, length, stdout) != length)
            return fail("standard output", -EIO);
        written += length;
        if (reader->asked < reader->length) error = ask(reader);
    }
    if (error) return error;
    return fflush(stdout) ? fail("standard output", -EIO) : 0;
}

int main(int argc, char** argv) {
    struct reader reader = {};
    int error;

    if (argc != 3) {
        fprintf(stderr, "usage: kxfer-uring ADDRESS NAME\n");
        return 2;
    }
    error = kxfer_session_open(NULL, &reader.session);
    if (error) return fail(KXFER_DEVICE_PATH, error), 3;
    error = open_target(&reader, argv[1], argv[2]);
    if (!error) error = make_room(&reader);
    if (!error) error = copy(&reader);
    /* What is left of the ring and the session goes with the process. */
    return error ? 1 : 0;
}

// SPDX-License-Identifier: MIT
/*
 * Tests of the provider by two processes that the program starts, the two sides of each test.
 *
 * usage: kxfer-fi-test NAME
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side.h"

#define LONGEST (1024 * 1024 + 5)

static char* buffer;

/* ---- messages ---- */

/* Of one message of the module, of several, and such that are READ. */
static const size_t sizes[] = {0, 1, 8, 4023, 4024, 4025, 8048, 8049, 65535, 65536, 300000, LONGEST};
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void send_sizes(struct side* s) {
    for (unsigned i = 0; i < NR_SIZES; i++) {
        fill(buffer, sizes[i], i);
        POST(s, fi_send(s->ep, buffer, sizes[i], NULL, s->peer, (void*)&sizes[i]));
        CHECK(await(s->tx).op_context == &sizes[i]);
    }
}

static void receive_sizes(struct side* s) {
    for (unsigned i = 0; i < NR_SIZES; i++) {
        struct fi_cq_tagged_entry entry;
        fi_addr_t source;

        memset(buffer, 0xee, LONGEST);
        DO(fi_recv(s->ep, buffer, LONGEST, NULL, FI_ADDR_UNSPEC, buffer));
        entry = await_from(s->rx, &source);
        CHECK(entry.len == sizes[i] && entry.op_context == buffer && entry.flags == (FI_RECV | FI_MSG));
        CHECK(source == s->peer);
        CHECK(holds(buffer, sizes[i], i));
        CHECK(sizes[i] == LONGEST || (unsigned char)buffer[sizes[i]] == 0xee);
    }
}

static void messages_a(struct side* s) {
    send_sizes(s);
    receive_sizes(s);
    CHECK(fi_cntr_read(s->sends) == NR_SIZES && fi_cntr_read(s->recvs) == NR_SIZES);
}

static void messages_b(struct side* s) {
    receive_sizes(s);
    send_sizes(s);
}

/* Messages come before their receives, in order, of all sizes at once. */
static void unexpected_a(struct side* s) {
    char* copies[NR_SIZES];

    for (unsigned i = 0; i < NR_SIZES; i++) {
        copies[i] = malloc(sizes[i] + 1);
        fill(copies[i], sizes[i], i);
        POST(s, fi_send(s->ep, copies[i], sizes[i], NULL, s->peer, NULL));
    }
    meet(s);
    for (unsigned i = 0; i < NR_SIZES; i++) await(s->tx);
    for (unsigned i = 0; i < NR_SIZES; i++) free(copies[i]);
}

static void unexpected_b(struct side* s) {
    meet(s);
    receive_sizes(s);
}

/* Many more than a mailbox holds, to a side that looks away for a while. */
#define FLOOD 3000

static void flood_a(struct side* s) {
    for (unsigned i = 0; i < FLOOD; i++) POST(s, fi_inject(s->ep, &i, sizeof(i), s->peer));
    meet(s);
}

static void flood_b(struct side* s) {
    unsigned number;

    sleep(2);
    for (unsigned i = 0; i < FLOOD; i++) {
        DO(fi_recv(s->ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL));
        await(s->rx);
        CHECK(number == i);
    }
    meet(s);
}

static void gather_a(struct side* s) {
    struct iovec iov[] = {{buffer, 10}, {buffer + 10, 0}, {buffer + 10, 70000}, {buffer + 70010, 3}};

    fill(buffer, 70013, 3);
    POST(s, fi_sendv(s->ep, iov, NULL, 4, s->peer, NULL));
    await(s->tx);
    POST(s, fi_send(s->ep, buffer, 70013, NULL, s->peer, NULL));
    await(s->tx);
    /* One that does not fit. */
    POST(s, fi_send(s->ep, buffer, 200, NULL, s->peer, NULL));
    await(s->tx);
    POST(s, fi_senddata(s->ep, buffer, 5, NULL, 0x123456789abcdef0, s->peer, NULL));
    await(s->tx);
}

static void gather_b(struct side* s) {
    struct iovec iov[] = {{buffer, 4000}, {buffer + 4000, 1}, {buffer + 4001, 66012}};
    struct fi_cq_err_entry error;
    struct fi_cq_tagged_entry entry;

    for (int i = 0; i < 2; i++) {
        memset(buffer, 0, LONGEST);
        DO(fi_recvv(s->ep, iov, NULL, 3, FI_ADDR_UNSPEC, NULL));
        CHECK(await(s->rx).len == 70013);
        CHECK(holds(buffer, 70013, 3));
    }
    DO(fi_recv(s->ep, buffer, 150, NULL, FI_ADDR_UNSPEC, buffer));
    error = await_error(s->rx, 30);
    CHECK(error.err == FI_ETRUNC && error.len == 150 && error.olen == 50 && error.op_context == buffer);
    DO(fi_recv(s->ep, buffer, 150, NULL, FI_ADDR_UNSPEC, buffer));
    entry = await(s->rx);
    CHECK(entry.flags & FI_REMOTE_CQ_DATA && entry.data == 0x123456789abcdef0);
}

/* ---- matching ---- */

static void tags_a(struct side* s) {
    for (uint64_t tag = 1; tag <= 5; tag++) {
        fill(buffer, 100000, (unsigned)tag);
        POST(s, fi_tsend(s->ep, buffer, tag == 3 ? 100000 : 100, NULL, s->peer, tag, NULL));
        if (tag != 3)
            await(s->tx);
        else
            meet(s); /* it is READ before the buffer changes */
        if (tag == 3) await(s->tx);
    }
    meet(s);
}

static ssize_t peek(struct side* s, uint64_t tag, uint64_t flags, void* context) {
    struct fi_msg_tagged message = {.tag = tag, .addr = FI_ADDR_UNSPEC, .context = context};

    return fi_trecvmsg(s->ep, &message, flags);
}

static void tags_b(struct side* s) {
    struct fi_cq_tagged_entry entry;
    struct fi_context claimed;
    struct iovec iov = {buffer, LONGEST};
    struct fi_msg_tagged message = {
        .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &claimed};

    /* The third first. */
    DO(fi_trecv(s->ep, buffer, LONGEST, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
    entry = await(s->rx);
    CHECK(entry.tag == 3 && entry.len == 100000 && holds(buffer, 100000, 3));
    meet(s);
    meet(s);
    DO(peek(s, 77, FI_PEEK, NULL));
    CHECK(await_error(s->rx, 5).err == FI_ENOMSG);
    DO(peek(s, 4, FI_PEEK | FI_CLAIM, &claimed));
    entry = await(s->rx);
    CHECK(entry.tag == 4 && entry.len == 100);
    /* Whatever comes first, but not what was claimed. */
    DO(fi_trecv(s->ep, buffer, LONGEST, NULL, FI_ADDR_UNSPEC, 4, UINT64_MAX, NULL));
    entry = await(s->rx);
    CHECK(entry.tag == 1 && holds(buffer, 100, 1));
    message.tag = 4;
    DO(fi_trecvmsg(s->ep, &message, FI_CLAIM));
    CHECK(await(s->rx).op_context == &claimed && holds(buffer, 100, 4));
    DO(peek(s, 2, FI_PEEK | FI_DISCARD, NULL));
    CHECK(await(s->rx).tag == 2);
    DO(fi_trecv(s->ep, buffer, LONGEST, NULL, s->peer, 0, UINT64_MAX, NULL));
    CHECK(await(s->rx).tag == 5);
}

static void cancel_a(struct side* s) {
    meet(s);
    POST(s, fi_tinject(s->ep, "b", 1, s->peer, 9));
    meet(s);
}

static void cancel_b(struct side* s) {
    char first, second = 0;

    DO(fi_trecv(s->ep, &first, 1, NULL, FI_ADDR_UNSPEC, 9, 0, &first));
    DO(fi_trecv(s->ep, &second, 1, NULL, FI_ADDR_UNSPEC, 9, 0, &second));
    DO(fi_cancel(&s->ep->fid, &first));
    CHECK(await_error(s->rx, 5).err == FI_ECANCELED);
    CHECK(fi_cancel(&s->ep->fid, &first) == -FI_ENOENT);
    meet(s);
    CHECK(await(s->rx).op_context == &second && second == 'b');
    meet(s);
}

/* Buffers for several messages: 8 bytes are the least that is left in one. */
static void several_a(struct side* s) {
    for (unsigned i = 0; i < 40; i++) POST(s, fi_inject(s->ep, &i, sizeof(i), s->peer));
    fill(buffer, 200000, 1);
    POST(s, fi_send(s->ep, buffer, 200000, NULL, s->peer, NULL));
    await(s->tx);
    meet(s);
}

static void several_b(struct side* s) {
    size_t least = 8;
    unsigned number, got = 0, released = 0;
    struct fi_cq_tagged_entry entry;
    struct iovec iov = {buffer, 80};
    struct fi_msg message = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buffer};

    DO(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
    DO(fi_recvmsg(s->ep, &message, FI_MULTI_RECV));
    while (got < 40) {
        entry = await(s->rx);
        memcpy(&number, entry.buf, sizeof(number));
        CHECK(number == got++ && entry.op_context == buffer);
        if (!(entry.flags & FI_MULTI_RECV)) continue;
        released++;
        if (got == 38) iov.iov_len = 200008;
        DO(fi_recvmsg(s->ep, &message, FI_MULTI_RECV));
    }
    CHECK(released == 2);
    entry = await(s->rx);
    CHECK(entry.len == 200000 && entry.flags & FI_MULTI_RECV && holds(entry.buf, 200000, 1));
    meet(s);
}

/* ---- memory ---- */

struct key {
    uint64_t key, address;
};

static const uint64_t all_access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

static void memory_a(struct side* s) {
    struct key key;
    struct fid_mr* mr;
    struct fi_cq_err_entry error;
    char* copy = malloc(LONGEST);

    take(s, &key, sizeof(key));
    DO(fi_mr_reg(s->domain, buffer, LONGEST, all_access, 0, 0, 0, &mr, NULL));
    for (unsigned i = 1; i < NR_SIZES; i++) {
        void* desc = i % 2 ? fi_mr_desc(mr) : NULL;

        fill(buffer, sizes[i], i);
        memset(copy, 0, LONGEST);
        POST(s, fi_write(s->ep, buffer, sizes[i], desc, s->peer, key.address + 1, key.key, &key));
        CHECK(await(s->tx).op_context == &key);
        POST(s, fi_read(s->ep, copy, sizes[i], NULL, s->peer, key.address + 1, key.key, copy));
        CHECK(await(s->tx).flags == (FI_RMA | FI_READ));
        CHECK(holds(copy, sizes[i], i));
    }
    POST(s, fi_writedata(s->ep, buffer, 10, NULL, 0xfedcba9876543210, s->peer, key.address, key.key, NULL));
    await(s->tx);
    POST(s, fi_inject_write(s->ep, "last", 4, s->peer, key.address + 20, key.key));
    POST(s, fi_send(s->ep, NULL, 0, NULL, s->peer, NULL));
    await(s->tx);
    POST(s, fi_write(s->ep, buffer, 100, NULL, s->peer, key.address + LONGEST - 50, key.key, NULL));
    CHECK(await_error(s->tx, 10).err == FI_EINVAL);
    meet(s);
    meet(s); /* it is closed */
    POST(s, fi_write(s->ep, buffer, 10, NULL, s->peer, key.address, key.key, NULL));
    /* Known here already, or by the job. */
    error = await_error(s->tx, 10);
    CHECK(error.err == FI_ENOKEY || error.err == FI_EKEYREJECTED);
    DO(fi_close(&mr->fid));
    free(copy);
}

static void memory_b(struct side* s) {
    struct fid_mr* mr;
    struct fi_cq_tagged_entry entry;
    struct key key = {0, (uintptr_t)buffer};

    DO(fi_mr_reg(s->domain, buffer, LONGEST + 1, all_access, 0, 0, 0, &mr, NULL));
    key.key = fi_mr_key(mr);
    DO(fi_recv(s->ep, buffer + 100, 4, NULL, FI_ADDR_UNSPEC, NULL));
    give(s, &key, sizeof(key));
    entry = await(s->rx);
    CHECK(entry.flags == (FI_REMOTE_WRITE | FI_RMA | FI_REMOTE_CQ_DATA) && entry.data == 0xfedcba9876543210);
    CHECK(holds(buffer, 10, NR_SIZES - 1));
    await(s->rx);
    CHECK(memcmp(buffer + 20, "last", 4) == 0);
    meet(s);
    DO(fi_close(&mr->fid));
    meet(s);
}

/* ---- waiting ---- */

static void waiting_a(struct side* s) {
    meet(s);
    sleep(1);
    POST(s, fi_inject(s->ep, "w", 1, s->peer));
    meet(s);
}

/* A thread that sleeps on the descriptor is woken, and uses no CPU meanwhile. */
static void waiting_b(struct side* s) {
    struct fid* fids[] = {&s->rx->fid};
    struct fi_cq_tagged_entry entry;
    struct pollfd wanted = {.events = POLLIN};
    struct rusage before, after;
    double began = now();
    char got;

    DO(fi_control(&s->rx->fid, FI_GETWAIT, &wanted.fd));
    DO(fi_recv(s->ep, &got, 1, NULL, FI_ADDR_UNSPEC, NULL));
    meet(s);
    getrusage(RUSAGE_SELF, &before);
    while (fi_cq_read(s->rx, &entry, 1) == -FI_EAGAIN) {
        CHECK(now() < began + 30);
        if (fi_trywait(s->fabric, fids, 1) == 0) poll(&wanted, 1, 10000);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK(now() > began + 0.5);
    CHECK(after.ru_nvcsw - before.ru_nvcsw < 100);
    CHECK(fi_cntr_wait(s->recvs, 1, 1000) == 0);
    CHECK(fi_cntr_wait(s->recvs, 2, 200) == -FI_ETIMEDOUT);
    meet(s);
}

/* ---- a peer that ends ---- */

/* Its side dies while a long message waits to be READ. */
static void death_of_receiver_a(struct side* s) {
    double began;

    meet(s);
    POST(s, fi_send(s->ep, buffer, LONGEST, NULL, s->peer, buffer));
    began = now();
    CHECK(await_error(s->tx, 20).op_context == buffer);
    CHECK(now() - began < 15);
    /* and so does the next one, at once */
    POST(s, fi_send(s->ep, buffer, 10, NULL, s->peer, buffer + 1));
    CHECK(await_error(s->tx, 20).err == FI_ECONNREFUSED);
}

static void death_of_receiver_b(struct side* s) {
    meet(s);
    usleep(300000);
    kill(getpid(), SIGKILL);
}

/* Dies while the other side waits for what only it can send. */
static void death_of_sender_a(struct side* s) {
    char got;

    DO(fi_recv(s->ep, &got, 1, NULL, s->peer, &got));
    await(s->rx);
    DO(fi_recv(s->ep, &got, 1, NULL, s->peer, &s));
    CHECK(await_error(s->rx, 20).op_context == &s);
}

static void death_of_sender_b(struct side* s) {
    POST(s, fi_inject(s->ep, "d", 1, s->peer));
    usleep(300000);
    kill(getpid(), SIGKILL);
}

/* Dies in the middle of a stream: every send ends, once. */
static void death_in_a_stream_a(struct side* s) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    unsigned long posted = 0, ended = 0, failed = 0;
    double end = now() + 30;
    ssize_t ret;

    while (now() < end && (failed == 0 || ended < posted)) {
        if (failed == 0 && fi_send(s->ep, buffer, 20000, NULL, s->peer, NULL) == 0) posted++;
        while ((ret = fi_cq_read(s->tx, &entry, 1)) != -FI_EAGAIN) {
            ended++;
            if (ret != -FI_EAVAIL) continue;
            fi_cq_readerr(s->tx, &error, 0);
            failed++;
        }
    }
    printf("%lu sent, %lu of them failed\n", posted, failed);
    CHECK(failed > 0 && ended == posted);
}

static void death_in_a_stream_b(struct side* s) {
    for (int i = 0; i < 20; i++) {
        DO(fi_recv(s->ep, buffer, LONGEST, NULL, FI_ADDR_UNSPEC, NULL));
        await(s->rx);
    }
    kill(getpid(), SIGKILL);
}

/* Dies while its memory is read. */
static void death_of_memory_a(struct side* s) {
    struct key key;
    double end = now() + 30;
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    ssize_t ret = 0;

    take(s, &key, sizeof(key));
    while (ret != -FI_EAVAIL && now() < end) {
        (void)fi_read(s->ep, buffer, 60000, NULL, s->peer, key.address, key.key, NULL);
        ret = fi_cq_read(s->tx, &entry, 1);
    }
    CHECK(ret == -FI_EAVAIL);
    CHECK(fi_cq_readerr(s->tx, &error, 0) == 1);
    CHECK(error.flags == (FI_RMA | FI_READ) && error.err != 0);
}

static void death_of_memory_b(struct side* s) {
    struct fid_mr* mr;
    struct key key = {0, (uintptr_t)buffer};

    DO(fi_mr_reg(s->domain, buffer, LONGEST, FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
    key.key = fi_mr_key(mr);
    give(s, &key, sizeof(key));
    usleep(500000);
    kill(getpid(), SIGKILL);
}

/* ---- the two sides ---- */

static const struct test {
    const char* name;
    void (*a)(struct side* s);
    void (*b)(struct side* s);
    bool b_dies;
} tests[] = {
    {"messages", messages_a, messages_b, false},
    {"unexpected", unexpected_a, unexpected_b, false},
    {"flood", flood_a, flood_b, false},
    {"gather", gather_a, gather_b, false},
    {"tags", tags_a, tags_b, false},
    {"cancel", cancel_a, cancel_b, false},
    {"several", several_a, several_b, false},
    {"memory", memory_a, memory_b, false},
    {"waiting", waiting_a, waiting_b, false},
    {"death-of-receiver", death_of_receiver_a, death_of_receiver_b, true},
    {"death-of-sender", death_of_sender_a, death_of_sender_b, true},
    {"death-in-a-stream", death_in_a_stream_a, death_in_a_stream_b, true},
    {"death-of-memory", death_of_memory_a, death_of_memory_b, true},
};

static void run_side(const struct test* test, int socket, void (*run)(struct side* s)) {
    struct side s;

    buffer = malloc(LONGEST + 1);
    CHECK(buffer);
    memset(buffer, 0, LONGEST + 1);
    side_open(&s, socket);
    run(&s);
    if (!test->b_dies) meet(&s);
    side_close(&s);
    exit(0);
}

static int run_test(const struct test* test) {
    int sockets[2], status_a, status_b;
    pid_t a, b;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    a = fork();
    if (a == 0) run_side(test, sockets[0], test->a);
    b = fork();
    if (b == 0) run_side(test, sockets[1], test->b);
    CHECK(waitpid(a, &status_a, 0) == a);
    /* A side whose other one has failed waits in vain. */
    if (status_a != 0) kill(b, SIGKILL);
    CHECK(waitpid(b, &status_b, 0) == b);
    if (test->b_dies && WIFSIGNALED(status_b)) status_b = 0;
    return status_a == 0 && status_b == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
    for (size_t i = 0; argc == 2 && i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strcmp(tests[i].name, argv[1]) == 0) return run_test(&tests[i]);
    fprintf(stderr, "usage: kxfer-fi-test NAME; names:\n");
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) fprintf(stderr, "%s\n", tests[i].name);
    return 2;
}

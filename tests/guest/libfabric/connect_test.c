// SPDX-License-Identifier: MIT
/*
 * Tests of endpoints of FI_EP_MSG by two processes that the program starts: the first one connects, the
 * second one answers.
 *
 * usage: kxfer-fi-connect-test NAME
 */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "connected.h"
#include "forger.h"

#define LONGEST (300 * 1024 + 5)
#define MOST_DATA 1024

static char* buffer;

/* ---- data in both directions ---- */

static const char question[] = "may I?", answer[] = "you may";
static const size_t sizes[] = {0, 1, 4024, 4025, 65536, LONGEST};
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void send_sizes(struct side* s) {
    for (unsigned i = 0; i < NR_SIZES; i++) {
        fill(buffer, sizes[i], i);
        POST(s, fi_send(s->ep, buffer, sizes[i], NULL, 0, (void*)&sizes[i]));
        CHECK(await(s->tx).op_context == &sizes[i]);
    }
    POST(s, fi_tinject(s->ep, "tagged", 6, 0, 9));
}

static void receive_sizes(struct side* s) {
    for (unsigned i = 0; i < NR_SIZES; i++) {
        memset(buffer, 0xee, LONGEST);
        DO(fi_recv(s->ep, buffer, LONGEST, NULL, 0, buffer));
        CHECK(await(s->rx).len == sizes[i] && holds(buffer, sizes[i], i));
    }
    DO(fi_trecv(s->ep, buffer, LONGEST, NULL, 0, 9, 0, NULL));
    CHECK(await(s->rx).tag == 9 && memcmp(buffer, "tagged", 6) == 0);
}

static void check_names(struct side* s, const struct name* own, const struct name* peer) {
    struct name name = {.length = sizeof(name.bytes)};

    if (own) {
        DO(fi_getname(&s->ep->fid, name.bytes, &name.length));
        CHECK(name.length == own->length && memcmp(name.bytes, own->bytes, name.length) == 0);
    }
    name.length = sizeof(name.bytes);
    DO(fi_getpeer(s->ep, name.bytes, &name.length));
    CHECK(name.length == peer->length && memcmp(name.bytes, peer->bytes, name.length) == 0);
}

/* What an endpoint refuses that is not connected. */
static void try_before(struct side* s) {
    struct name name = {.length = sizeof(name.bytes)};
    size_t size = 0, length = sizeof(size);

    CHECK(fi_send(s->ep, buffer, 1, NULL, 0, NULL) == -FI_EOPBADSTATE);
    CHECK(fi_inject(s->ep, buffer, 1, 0) == -FI_EOPBADSTATE);
    CHECK(fi_write(s->ep, buffer, 1, NULL, 0, 0, 0, NULL) == -FI_EOPBADSTATE);
    CHECK(fi_getpeer(s->ep, name.bytes, &name.length) == -FI_ENOTCONN);
    CHECK(fi_accept(s->ep, NULL, 0) == -FI_EINVAL);
    CHECK(fi_shutdown(s->ep, 0) == -FI_EOPBADSTATE);
    DO(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &length));
    CHECK(size == MOST_DATA && length == sizeof(size));
}

static void data_a(struct side* s) {
    struct name server = take_name(s);
    struct name own = {.length = sizeof(own.bytes)};

    make_endpoint(s, s->info);
    try_before(s);
    CHECK(fi_connect(s->ep, server.bytes, buffer, MOST_DATA + 1) == -FI_EINVAL);
    DO(fi_connect(s->ep, server.bytes, question, sizeof(question)));
    CHECK(fi_connect(s->ep, server.bytes, NULL, 0) == -FI_EOPBADSTATE);
    await_event(s, FI_CONNECTED, &s->ep->fid, answer, sizeof(answer));
    check_names(s, NULL, &server);
    DO(fi_getname(&s->ep->fid, own.bytes, &own.length));
    give(s, &own, sizeof(own));
    send_sizes(s);
    receive_sizes(s);
}

static void data_b(struct side* s) {
    struct name listens = {.length = sizeof(listens.bytes)}, client;
    struct fi_info* info;

    listen_for(s);
    DO(fi_getname(&s->pep->fid, listens.bytes, &listens.length));
    info = await_event(s, FI_CONNREQ, &s->pep->fid, question, sizeof(question));
    make_endpoint(s, info);
    CHECK(fi_send(s->ep, buffer, 1, NULL, 0, NULL) == -FI_EOPBADSTATE);
    DO(fi_accept(s->ep, answer, sizeof(answer)));
    CHECK(fi_accept(s->ep, NULL, 0) == -FI_EOPBADSTATE);
    CHECK(fi_reject(s->pep, info->handle, NULL, 0) == -FI_EINVAL);
    await_event(s, FI_CONNECTED, &s->ep->fid, "", 0);
    client = take_name(s);
    check_names(s, &listens, &client);
    CHECK(info->dest_addrlen == client.length && memcmp(info->dest_addr, client.bytes, client.length) == 0);
    fi_freeinfo(info);
    receive_sizes(s);
    send_sizes(s);
}

/* ---- memory ---- */

struct key {
    uint64_t key, address;
};

static void memory_a(struct side* s) {
    struct name server = take_name(s);
    struct key key;

    connect_to(s, &server);
    take(s, &key, sizeof(key));
    fill(buffer, 100000, 1);
    POST(s, fi_write(s->ep, buffer, 100000, NULL, 0, key.address, key.key, NULL));
    await(s->tx);
    POST(s, fi_writedata(s->ep, buffer, 10, NULL, 0xfedcba9876543210, 0, key.address, key.key, NULL));
    await(s->tx);
    memset(buffer, 0, 100000);
    POST(s, fi_read(s->ep, buffer, 100000, NULL, 0, key.address, key.key, NULL));
    await(s->tx);
    CHECK(holds(buffer, 100000, 1));
    POST(s, fi_read(s->ep, buffer, 10, NULL, 0, key.address, key.key + 1, NULL));
    CHECK(await_error(s->tx, 10).err == FI_ENOKEY);
    meet(s);
}

static void memory_b(struct side* s) {
    struct key key = {0, (uintptr_t)buffer};
    struct fi_cq_tagged_entry entry;
    struct fid_mr* mr;

    listen_for(s);
    accept_one(s);
    DO(fi_mr_reg(s->domain, buffer, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
    key.key = fi_mr_key(mr);
    give(s, &key, sizeof(key));
    entry = await(s->rx);
    CHECK(entry.flags & FI_REMOTE_CQ_DATA && entry.data == 0xfedcba9876543210);
    meet(s);
    DO(fi_close(&mr->fid));
}

/* ---- the end ---- */

/* After it: no operation begins, what had come is received, and receives end. */
static void check_ended(struct side* s) {
    char got = 0;

    CHECK(fi_send(s->ep, buffer, 1, NULL, 0, NULL) == -FI_ENOTCONN);
    CHECK(fi_read(s->ep, buffer, 1, NULL, 0, 0, 0, NULL) == -FI_ENOTCONN);
    DO(fi_recv(s->ep, &got, 1, NULL, 0, &s));
    CHECK(await_error(s->rx, 10).op_context == &s);
    DO(fi_shutdown(s->ep, 0));
    expect_no_event(s, 300);
}

static void shutdown_a(struct side* s) {
    struct name server = take_name(s);
    char got[2];

    connect_to(s, &server);
    DO(fi_recv(s->ep, got, 1, NULL, 0, &got[0]));
    POST(s, fi_send(s->ep, "last", 4, NULL, 0, NULL));
    await(s->tx);
    DO(fi_shutdown(s->ep, 0));
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
    CHECK(await_error(s->rx, 1).err == FI_ECANCELED);
    check_ended(s);
    meet(s);
}

static void shutdown_b(struct side* s) {
    char got[4];

    listen_for(s);
    accept_one(s);
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
    /* It has come before the end. */
    DO(fi_recv(s->ep, got, sizeof(got), NULL, 0, NULL));
    CHECK(await(s->rx).len == 4 && memcmp(got, "last", 4) == 0);
    check_ended(s);
    meet(s);
}

/* Closes the endpoint: the other end is told so at once. */
static void close_a(struct side* s) {
    struct name server = take_name(s);

    connect_to(s, &server);
    DO(fi_close(&s->ep->fid));
    side_close_queues(s);
    s->ep = NULL;
    s->sends = NULL;
}

static void close_b(struct side* s) {
    char got;
    double began = now();

    listen_for(s);
    accept_one(s);
    DO(fi_recv(s->ep, &got, 1, NULL, 0, &got));
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
    CHECK(await_error(s->rx, 10).op_context == &got && now() - began < 15);
}

/* As many messages as go to a side that makes no progress: on RoCE more than it has RECVs, on iWARP as many.
 * The endpoint is closed then. All that had completed are received, though the other side learns of the end
 * before it takes them. */
#define LAST_WORDS 100
#define LAST_WORDS_LEAST 60

static void last_words_a(struct side* s) {
    struct name server = take_name(s);

    unsigned numbers[LAST_WORDS];
    uint64_t sent;

    connect_to(s, &server);
    meet(s);
    for (unsigned i = 0; i < LAST_WORDS; i++) {
        numbers[i] = i;
        POST(s, fi_send(s->ep, &numbers[i], sizeof(numbers[i]), NULL, 0, NULL));
    }
    (void)fi_cntr_wait(s->sends, LAST_WORDS, 3000);
    sent = fi_cntr_read(s->sends);
    DO(fi_close(&s->ep->fid));
    side_close_queues(s);
    s->ep = NULL;
    s->sends = NULL;
    give(s, &sent, sizeof(sent));
}

static void last_words_b(struct side* s) {
    uint64_t sent;
    unsigned number;

    listen_for(s);
    accept_one(s);
    meet(s);
    CHECK(read(s->other, &sent, sizeof(sent)) == sizeof(sent)); /* without progress */
    printf("%lu were sent\n", (unsigned long)sent);
    CHECK(sent >= LAST_WORDS_LEAST);
    DO(fi_inject(s->ep, "x", 1, 0));
    CHECK(await_error(s->tx, 10).flags & FI_SEND);
    for (unsigned i = 0; i < sent; i++) {
        DO(fi_recv(s->ep, &number, sizeof(number), NULL, 0, NULL));
        await(s->rx);
        CHECK(number == i);
    }
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
}

/* A process that is killed: the other end has an event, and no operation goes on waiting. */
static void survive(struct side* s) {
    double began = now();
    char got;

    DO(fi_recv(s->ep, &got, 1, NULL, 0, &got));
    POST(s, fi_send(s->ep, buffer, LONGEST, NULL, 0, buffer)); /* waits to be READ */
    meet(s);
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
    CHECK(await_error(s->rx, 10).op_context == &got);
    CHECK(await_error(s->tx, 10).op_context == buffer);
    CHECK(now() - began < 20);
    check_ended(s);
}

static void death_of_server_a(struct side* s) {
    struct name server = take_name(s);

    connect_to(s, &server);
    survive(s);
}

static void death_of_server_b(struct side* s) {
    listen_for(s);
    accept_one(s);
    meet(s);
    kill(getpid(), SIGKILL);
}

static void death_of_client_a(struct side* s) {
    listen_for(s);
    accept_one(s);
    survive(s);
}

static void death_of_client_b(struct side* s) {
    struct name server = take_name(s);

    connect_to(s, &server);
    meet(s);
    kill(getpid(), SIGKILL);
}

/* ---- no connection ---- */

/* Two that are rejected, with data and without, before one that is accepted. */
static void reject_a(struct side* s) {
    struct name server = take_name(s);
    char reason[MOST_DATA];

    fill(reason, sizeof(reason), 5);
    for (size_t length = 0; length <= MOST_DATA; length += MOST_DATA) {
        make_endpoint(s, s->info);
        DO(fi_connect(s->ep, server.bytes, reason, length));
        CHECK(await_failure(s, 30, reason, length).err == FI_ECONNREFUSED);
        CHECK(fi_send(s->ep, buffer, 1, NULL, 0, NULL) == -FI_ENOTCONN);
        DO(fi_close(&s->ep->fid));
        side_close_queues(s);
    }
    connect_to(s, &server);
}

static void reject_b(struct side* s) {
    char reason[MOST_DATA + 1];

    fill(reason, sizeof(reason), 5);
    listen_for(s);
    for (size_t length = 0; length <= MOST_DATA; length += MOST_DATA) {
        struct fi_info* info = await_event(s, FI_CONNREQ, &s->pep->fid, reason, length);

        CHECK(fi_reject(s->pep, info->handle, reason, MOST_DATA + 1) == -FI_EINVAL);
        DO(fi_reject(s->pep, info->handle, reason, length));
        CHECK(fi_reject(s->pep, info->handle, reason, length) == -FI_EINVAL);
        CHECK(fi_endpoint(s->domain, info, &s->ep, NULL) == -FI_EINVAL);
        fi_freeinfo(info);
    }
    accept_one(s);
}

/* A number without a mailbox, and one whose passive endpoint is closed while the request waits. */
static void closed_a(struct side* s) {
    struct name server = take_name(s);
    double began = now();
    struct fi_eq_err_entry error;

    make_endpoint(s, s->info);
    DO(fi_connect(s->ep, server.bytes, "x", 1));
    error = await_failure(s, 20, "", 0);
    CHECK(error.err == FI_ECONNREFUSED || error.err == FI_ECONNRESET);
    DO(fi_close(&s->ep->fid));
    side_close_queues(s);
    make_endpoint(s, s->info);
    DO(fi_connect(s->ep, server.bytes, "x", 1));
    CHECK(await_failure(s, 20, "", 0).err == FI_ECONNREFUSED);
    CHECK(now() - began < 30);
}

static void closed_b(struct side* s) {
    struct fi_info* info;

    listen_for(s);
    info = await_event(s, FI_CONNREQ, &s->pep->fid, "x", 1);
    CHECK(fi_close(&s->eq->fid) == -FI_EBUSY);
    DO(fi_close(&s->pep->fid));
    s->pep = NULL;
    CHECK(fi_endpoint(s->domain, info, &s->ep, NULL) == -FI_EINVAL);
    CHECK(!s->ep);
    fi_freeinfo(info);
}

/* FI_KXFER_CONNECT_S is 3: who has asked gives up, and an answer that is late finds nobody. */
static void silent_a(struct side* s) {
    struct name server = take_name(s);
    double began = now();

    make_endpoint(s, s->info);
    DO(fi_connect(s->ep, server.bytes, NULL, 0));
    CHECK(await_failure(s, 20, "", 0).err == FI_ETIMEDOUT);
    CHECK(now() - began > 2.5 && now() - began < 15);
    expect_no_event(s, 100);
    meet(s);
    meet(s);
}

static void silent_b(struct side* s) {
    struct fi_info* info;

    listen_for(s);
    info = await_event(s, FI_CONNREQ, &s->pep->fid, "", 0);
    meet(s);
    make_endpoint(s, info);
    CHECK(fi_accept(s->ep, NULL, 0) == -FI_ECONNREFUSED);
    fi_freeinfo(info);
    expect_no_event(s, 100);
    meet(s);
}

/* A server that is killed while the request waits. */
static void unanswered_a(struct side* s) {
    struct name server = take_name(s);

    make_endpoint(s, s->info);
    DO(fi_connect(s->ep, server.bytes, NULL, 0));
    meet(s);
    await_failure(s, 20, "", 0);
}

static void unanswered_b(struct side* s) {
    listen_for(s);
    fi_freeinfo(await_event(s, FI_CONNREQ, &s->pep->fid, "", 0));
    meet(s);
    kill(getpid(), SIGKILL);
}

/* ---- several ---- */

/* Both requests wait before one is answered, the second one first. */
static void two_a(struct side* s) {
    struct name server = take_name(s);
    struct side t = *s;
    char got[2];

    make_endpoint(s, s->info);
    make_endpoint(&t, t.info);
    DO(fi_connect(s->ep, server.bytes, "0", 1));
    meet(s);
    DO(fi_connect(t.ep, server.bytes, "1", 1));
    await_event(s, FI_CONNECTED, &t.ep->fid, "1", 1);
    await_event(s, FI_CONNECTED, &s->ep->fid, "0", 1);
    DO(fi_recv(t.ep, &got[1], 1, NULL, 0, NULL));
    DO(fi_recv(s->ep, &got[0], 1, NULL, 0, NULL));
    POST(s, fi_inject(s->ep, "0", 1, 0));
    POST(s, fi_inject(t.ep, "1", 1, 0));
    await(s->rx);
    await(t.rx);
    CHECK(got[0] == '0' && got[1] == '1');
    DO(fi_close(&t.ep->fid));
    side_close_queues(&t);
    meet(s);
}

static void two_b(struct side* s) {
    struct side t;
    struct fi_info* info[2];
    char got;

    listen_for(s);
    info[0] = await_event(s, FI_CONNREQ, &s->pep->fid, "0", 1);
    meet(s);
    info[1] = await_event(s, FI_CONNREQ, &s->pep->fid, "1", 1);
    t = *s;
    make_endpoint(s, info[0]);
    make_endpoint(&t, info[1]);
    DO(fi_accept(t.ep, "1", 1));
    await_event(s, FI_CONNECTED, &t.ep->fid, "", 0);
    DO(fi_accept(s->ep, "0", 1));
    await_event(s, FI_CONNECTED, &s->ep->fid, "", 0);
    for (int i = 0; i < 2; i++) {
        struct side* one = i == 0 ? s : &t;

        DO(fi_recv(one->ep, &got, 1, NULL, 0, NULL));
        await(one->rx);
        CHECK(got == '0' + i);
        POST(one, fi_inject(one->ep, &got, 1, 0));
        fi_freeinfo(info[i]);
    }
    await_event(s, FI_SHUTDOWN, &t.ep->fid, "", 0);
    DO(fi_close(&t.ep->fid));
    side_close_queues(&t);
    meet(s);
}

/* ---- waiting ---- */

static void waiting_a(struct side* s) {
    struct name server = take_name(s);

    meet(s);
    sleep(1);
    connect_to(s, &server);
    sleep(1);
}

/* A thread that sleeps on the queue's descriptor is woken, by each event, and uses no CPU meanwhile. */
static void sleep_until(struct side* s) {
    struct fid* fids[] = {&s->eq->fid};
    struct pollfd wanted = {.events = POLLIN};
    struct rusage before, after;
    double began = now();
    uint32_t event;

    DO(fi_control(&s->eq->fid, FI_GETWAIT, &wanted.fd));
    getrusage(RUSAGE_SELF, &before);
    while (fi_eq_read(s->eq, &event, NULL, 0, FI_PEEK) == -FI_EAGAIN) {
        CHECK(now() < began + 30);
        if (fi_trywait(s->fabric, fids, 1) == 0) poll(&wanted, 1, 10000);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK(now() > began + 0.5 && after.ru_nvcsw - before.ru_nvcsw < 100);
}

static void waiting_b(struct side* s) {
    listen_for(s);
    meet(s);
    sleep_until(s);
    accept_one(s);
    sleep_until(s);
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
}

/* ---- what no endpoint sends ---- */

/* Messages of all lengths and kinds, and requests that are wrong in one thing. */
static void send_nonsense(struct forger* f, const struct name* from) {
    struct forged wrong[] = {
        forge(kind_connect, from), forge(kind_connect, from), forge(kind_connect, from),
        forge(kind_connect, from), forge(kind_connect, from), forge(kind_connect, from),
        forge(kind_accept, from),  forge(kind_reject, from),  forge(kind_ready, from),
        forge(kind_bye, from),     forge(kind_data, from),
    };

    wrong[0].version = 1;
    wrong[1].flags = 1;
    wrong[2].length = 1; /* there is no byte */
    wrong[3].place = 1;
    wrong[4].sequence = 1;
    wrong[5].port = 0;
    for (size_t bytes = 1; bytes < FORGED_HEADER; bytes += 13) forger_send(f, &wrong[10], bytes);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) forger_send(f, &wrong[i], FORGED_HEADER);
    wrong[6].kind = kind_connect;
    forger_send(f, &wrong[6], FORGED_HEADER + 1); /* one byte too much */
}

/* To the passive endpoint: of the sound requests so many are reported as may wait, each once. */
static void garbage_a(struct side* s) {
    struct name server = take_name(s);
    struct forger* f = forger_open(&server);
    struct forged request = forge(kind_connect, &server);

    request.port = 9; /* nobody is there */
    request.length = 1;
    send_nonsense(f, &server);
    for (unsigned i = 0; i < 6; i++) {
        request.data = i;
        request.payload[0] = (char)('0' + i);
        forger_send(f, &request, FORGED_HEADER + 1);
        forger_send(f, &request, FORGED_HEADER + 1);
    }
    meet(s);
    meet(s); /* there is room again */
    connect_to(s, &server);
    forger_close(f);
}

static void garbage_b(struct side* s) {
    int most = 3;

    listen_for(s);
    CHECK(fi_control(&s->pep->fid, FI_BACKLOG, &most) == 0);
    meet(s);
    for (int i = 0; i < most; i++) {
        struct fi_info* info = await_event(s, FI_CONNREQ, &s->pep->fid, &"012"[i], 1);

        if (i == 0) {
            make_endpoint(s, info);
            CHECK(fi_accept(s->ep, NULL, 0) == -FI_ECONNREFUSED);
            DO(fi_close(&s->ep->fid));
            side_close_queues(s);
        } else {
            DO(fi_reject(s->pep, info->handle, "no", 2));
        }
        fi_freeinfo(info);
    }
    expect_no_event(s, 500);
    meet(s);
    accept_one(s);
}

/* To the mailbox of an endpoint that waits for its answer, and of one that is connected. What is from another
 * address, or by another word, or says not what was said back, does nothing. */
static void forge_all(struct forger* f, const struct name* from) {
    for (uint8_t kind = kind_connect; kind <= kind_bye; kind++) {
        struct forged one = forge(kind, from);

        if (kind != kind_ready && kind != kind_bye) one.data = 4711;
        forger_send(f, &one, FORGED_HEADER);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct forged data = forge(kind_data, from);

        data.sequence = i;
        data.length = 5;
        forger_send(f, &data, FORGED_HEADER + 5);
    }
}

static void forged_a(struct side* s) {
    struct name server = take_name(s), own = {.length = sizeof(own.bytes)}, other_end;
    struct forger* f;
    char got[8];

    make_endpoint(s, s->info);
    DO(fi_getname(&s->ep->fid, own.bytes, &own.length));
    DO(fi_recv(s->ep, got, sizeof(got), NULL, 0, NULL));
    DO(fi_connect(s->ep, server.bytes, NULL, 0));
    f = forger_open(&own);
    forge_all(f, &server);
    forge_all(f, &own);
    expect_no_event(s, 500);
    meet(s);
    await_event(s, FI_CONNECTED, &s->ep->fid, "", 0);
    other_end = take_name(s);
    forge_all(f, &server);
    forge_all(f, &other_end);
    expect_no_event(s, 500);
    meet(s);
    CHECK(await(s->rx).len == 4 && memcmp(got, "true", 4) == 0);
    forger_close(f);
    meet(s);
}

/* The mailbox of the new endpoint is neither the passive one's nor the client's. */
static struct name find_mailbox(const struct side* s) {
    struct name name = {.length = sizeof(name.bytes)}, peer = name;
    struct sockaddr_in *in = (struct sockaddr_in*)name.bytes, *other = (struct sockaddr_in*)peer.bytes;
    FILE* list = popen("kxfer export list | grep -o 'fi[.]p[.][0-9]*'", "r");
    unsigned short number, found = 0;
    char line[64];

    DO(fi_getname(&s->pep->fid, name.bytes, &name.length));
    DO(fi_getpeer(s->ep, peer.bytes, &peer.length));
    while (fgets(line, sizeof(line), list)) {
        CHECK(sscanf(line, "fi.p.%hu", &number) == 1);
        if (htons(number) != in->sin_port && htons(number) != other->sin_port) found = number;
    }
    CHECK(pclose(list) == 0 && found != 0);
    in->sin_port = htons(found);
    return name;
}

static void forged_b(struct side* s) {
    struct fi_info* info;
    struct name own;

    listen_for(s);
    info = await_event(s, FI_CONNREQ, &s->pep->fid, "", 0);
    meet(s);
    make_endpoint(s, info);
    DO(fi_accept(s->ep, NULL, 0));
    fi_freeinfo(info);
    await_event(s, FI_CONNECTED, &s->ep->fid, "", 0);
    own = find_mailbox(s);
    give(s, &own, sizeof(own));
    meet(s);
    POST(s, fi_inject(s->ep, "true", 4, 0));
    expect_no_event(s, 100);
    meet(s);
}

/* ---- what is open ---- */

static void order_a(struct side* s) {
    struct name server = take_name(s);

    connect_to(s, &server);
    CHECK(fi_close(&s->eq->fid) == -FI_EBUSY);
    CHECK(fi_close(&s->domain->fid) == -FI_EBUSY);
    CHECK(fi_close(&s->fabric->fid) == -FI_EBUSY);
    CHECK(fi_close(&s->tx->fid) == -FI_EBUSY);
    meet(s);
}

/* The passive endpoint goes before the connection. */
static void order_b(struct side* s) {
    struct fi_eq_cm_entry entry;
    uint32_t event;

    listen_for(s);
    CHECK(fi_listen(s->pep) == -FI_EOPBADSTATE);
    accept_one(s);
    DO(fi_close(&s->pep->fid));
    s->pep = NULL;
    CHECK(fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0) == -FI_EAGAIN);
    meet(s);
    await_event(s, FI_SHUTDOWN, &s->ep->fid, "", 0);
}

/* ---- the two sides ---- */

static const struct test {
    const char* name;
    void (*a)(struct side* s);
    void (*b)(struct side* s);
    bool b_dies;
} tests[] = {
    {"data", data_a, data_b, false},
    {"memory", memory_a, memory_b, false},
    {"shutdown", shutdown_a, shutdown_b, false},
    {"close", close_a, close_b, false},
    {"last-words", last_words_a, last_words_b, false},
    {"death-of-server", death_of_server_a, death_of_server_b, true},
    {"death-of-client", death_of_client_a, death_of_client_b, true},
    {"reject", reject_a, reject_b, false},
    {"closed", closed_a, closed_b, false},
    {"silent", silent_a, silent_b, false},
    {"unanswered", unanswered_a, unanswered_b, true},
    {"two", two_a, two_b, false},
    {"waiting", waiting_a, waiting_b, false},
    {"garbage", garbage_a, garbage_b, false},
    {"forged", forged_a, forged_b, false},
    {"order", order_a, order_b, false},
};

static void run_side(const void* what, int socket, bool is_second) {
    const struct test* test = what;
    struct side s;

    buffer = calloc(1, LONGEST);
    CHECK(buffer);
    connected_open(&s, socket);
    (is_second ? test->b : test->a)(&s);
    connected_close(&s);
}

int main(int argc, char** argv) {
    for (size_t i = 0; argc == 2 && i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strcmp(tests[i].name, argv[1]) == 0) return run_sides(run_side, &tests[i], tests[i].b_dies);
    fprintf(stderr, "usage: kxfer-fi-connect-test NAME; names:\n");
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) fprintf(stderr, "%s\n", tests[i].name);
    return 2;
}

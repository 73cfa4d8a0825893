// SPDX-License-Identifier: MIT
/*
 * Tests of the provider by two processes, the two sides of each test. The program starts both, or is
 * one of them, while the other one is on another node.
 *
 * usage: kxfer-fi-test NAME
 *        kxfer-fi-test NAME a|b ADDRESS-OF-A
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
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

/* ---- atomics ---- */

struct words {
    uint64_t key, address;
    uint64_t write_only_key;
};

/* The words of side B: one for each thing that is tried. */
enum { word_sum, word_swap, word_flow, word_race, word_last, nr_words };

/* What fi_*atomicvalid() and fi_query_atomic() say of each form, type and operation. */
static void check_what_is_there(struct side* s) {
    static const uint64_t flags[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
    struct fi_atomic_attr attr;
    size_t count[3];

    for (unsigned type = 0; type < FI_DATATYPE_LAST; type++) {
        for (unsigned op = 0; op < FI_ATOMIC_OP_LAST; op++) {
            bool is_long = type == FI_INT64 || type == FI_UINT64;
            int ret[3] = {fi_atomicvalid(s->ep, type, op, &count[0]),
                          fi_fetch_atomicvalid(s->ep, type, op, &count[1]),
                          fi_compare_atomicvalid(s->ep, type, op, &count[2])};

            for (int form = 0; form < 3; form++) {
                bool wanted = is_long && op == (form == 2 ? FI_CSWAP : FI_SUM);

                CHECK(ret[form] == (wanted ? 0 : -FI_EOPNOTSUPP));
                CHECK(!wanted || count[form] == 1);
                CHECK(fi_query_atomic(s->domain, type, op, &attr, flags[form]) == ret[form]);
                CHECK(!wanted || (attr.count == 1 && attr.size == 8));
            }
        }
    }
    CHECK(fi_query_atomic(s->domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ==
          -FI_EINVAL);
    CHECK(fi_query_atomic(s->domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED) == -FI_EOPNOTSUPP);
}

static uint64_t word_address(const struct words* of, unsigned word) { return of->address + 8 * word; }

/* A fetch-add of a number, which the call may not need any more when it returns. */
static uint64_t fetch_add(struct side* s, fi_addr_t to, const struct words* of, unsigned word,
                          int64_t number) {
    char result[9]; /* at no particular place */
    uint64_t former;
    struct fi_cq_tagged_entry entry;

    POST(s, fi_fetch_atomic(s->ep, &number, 1, NULL, result + 1, NULL, to, word_address(of, word), of->key,
                            FI_INT64, FI_SUM, result));
    number = -1;
    entry = await(s->tx);
    CHECK(entry.op_context == result && entry.flags == (FI_ATOMIC | FI_READ));
    memcpy(&former, result + 1, sizeof(former));
    return former;
}

static uint64_t swap(struct side* s, const struct words* of, uint64_t expected, uint64_t number) {
    uint64_t former = 77;

    POST(s, fi_compare_atomic(s->ep, &number, 1, NULL, &expected, NULL, &former, NULL, s->peer,
                              word_address(of, word_swap), of->key, FI_UINT64, FI_CSWAP, &former));
    number = expected = 99;
    CHECK(await(s->tx).flags == (FI_ATOMIC | FI_READ));
    return former;
}

/* By all calls of each form. */
static void try_sums(struct side* s, const struct words* of) {
    uint64_t one = 1, former = 0;
    struct fi_ioc operand = {&one, 1}, result = {&former, 1};
    struct fi_rma_ioc there = {word_address(of, word_sum), 1, of->key};
    struct fi_msg_atomic message = {.msg_iov = &operand,
                                    .iov_count = 1,
                                    .addr = s->peer,
                                    .rma_iov = &there,
                                    .rma_iov_count = 1,
                                    .datatype = FI_UINT64,
                                    .op = FI_SUM,
                                    .context = &one};
    struct fi_cq_tagged_entry entry;

    CHECK(fetch_add(s, s->peer, of, word_sum, 37) == 5);
    CHECK(fetch_add(s, s->peer, of, word_sum, -2) == 42);
    POST(s, fi_atomic(s->ep, &one, 1, NULL, s->peer, there.addr, of->key, FI_UINT64, FI_SUM, &one));
    entry = await(s->tx);
    CHECK(entry.op_context == &one && entry.flags == (FI_ATOMIC | FI_WRITE));
    POST(s, fi_atomicv(s->ep, &operand, NULL, 1, s->peer, there.addr, of->key, FI_UINT64, FI_SUM, NULL));
    await(s->tx);
    POST(s, fi_atomicmsg(s->ep, &message, 0));
    CHECK(await(s->tx).op_context == &one);
    POST(s, fi_inject_atomic(s->ep, &one, 1, s->peer, there.addr, of->key, FI_UINT64, FI_SUM));
    POST(s, fi_fetch_atomicv(s->ep, &operand, NULL, 1, &result, NULL, 1, s->peer, there.addr, of->key,
                             FI_UINT64, FI_SUM, &result));
    CHECK(await(s->tx).op_context == &result && former == 44); /* nothing is reported of the inject */
    POST(s, fi_fetch_atomicmsg(s->ep, &message, &result, NULL, 1, 0));
    await(s->tx);
    CHECK(former == 45 && fi_cntr_read(s->reads) == 4 && fi_cntr_read(s->writes) == 4);
    /* wraps round */
    CHECK(fetch_add(s, s->peer, of, word_sum, -47) == 46);
    CHECK(fetch_add(s, s->peer, of, word_sum, 5) == UINT64_MAX);
}

static void try_swaps(struct side* s, const struct words* of) {
    uint64_t new = 9, old = 8, former = 0;
    struct fi_ioc operand = {&new, 1}, expected = {&old, 1}, result = {&former, 1};
    struct fi_rma_ioc there = {word_address(of, word_swap), 1, of->key};
    struct fi_msg_atomic message = {.msg_iov = &operand,
                                    .iov_count = 1,
                                    .addr = s->peer,
                                    .rma_iov = &there,
                                    .rma_iov_count = 1,
                                    .datatype = FI_INT64,
                                    .op = FI_CSWAP};

    CHECK(swap(s, of, 1, 2) == 5); /* it is not 1, and stays */
    CHECK(swap(s, of, 5, 7) == 5);
    CHECK(swap(s, of, 5, 6) == 7);
    CHECK(swap(s, of, 7, 8) == 7);
    POST(s, fi_compare_atomicv(s->ep, &operand, NULL, 1, &expected, NULL, 1, &result, NULL, 1, s->peer,
                               there.addr, of->key, FI_INT64, FI_CSWAP, NULL));
    await(s->tx);
    CHECK(former == 8);
    old = 9;
    new = 10;
    POST(s, fi_compare_atomicmsg(s->ep, &message, &expected, NULL, 1, &result, NULL, 1, 0));
    await(s->tx);
    CHECK(former == 9);
}

/* What no atomic is: the call says so, and nothing happens. */
static void try_what_is_refused(struct side* s, const struct words* of) {
    uint64_t one = 1, former, at = word_address(of, word_last);
    struct fi_ioc operand = {&one, 1};
    struct fi_rma_ioc there = {at, 1, of->key};
    struct fi_msg_atomic message = {.msg_iov = &operand,
                                    .iov_count = 1,
                                    .addr = s->peer,
                                    .rma_iov = &there,
                                    .rma_iov_count = 1,
                                    .datatype = FI_UINT64,
                                    .op = FI_SUM};

    CHECK(fi_atomic(s->ep, &one, 1, NULL, s->peer, at, of->key, FI_UINT32, FI_SUM, NULL) == -FI_EOPNOTSUPP);
    CHECK(fi_atomic(s->ep, &one, 1, NULL, s->peer, at, of->key, FI_DOUBLE, FI_SUM, NULL) == -FI_EOPNOTSUPP);
    CHECK(fi_atomic(s->ep, &one, 1, NULL, s->peer, at, of->key, FI_UINT64, FI_MIN, NULL) == -FI_EOPNOTSUPP);
    CHECK(fi_fetch_atomic(s->ep, NULL, 1, NULL, &former, NULL, s->peer, at, of->key, FI_UINT64,
                          FI_ATOMIC_READ, NULL) == -FI_EOPNOTSUPP);
    CHECK(fi_compare_atomic(s->ep, &one, 1, NULL, &one, NULL, &former, NULL, s->peer, at, of->key, FI_UINT64,
                            FI_CSWAP_NE, NULL) == -FI_EOPNOTSUPP);
    CHECK(fi_atomic(s->ep, &one, 2, NULL, s->peer, at, of->key, FI_UINT64, FI_SUM, NULL) == -FI_EMSGSIZE);
    CHECK(fi_atomic(s->ep, &one, 0, NULL, s->peer, at, of->key, FI_UINT64, FI_SUM, NULL) == -FI_EINVAL);
    CHECK(fi_fetch_atomic(s->ep, &one, 1, NULL, NULL, NULL, s->peer, at, of->key, FI_UINT64, FI_SUM, NULL) ==
          -FI_EINVAL);
    for (unsigned i = 1; i < 8; i++)
        CHECK(fi_atomic(s->ep, &one, 1, NULL, s->peer, at + i, of->key, FI_UINT64, FI_SUM, NULL) ==
              -FI_EINVAL);
    CHECK(fi_atomic(s->ep, &one, 1, NULL, s->peer + 1, at, of->key, FI_UINT64, FI_SUM, NULL) == -FI_EINVAL);
    CHECK(fi_atomicmsg(s->ep, &message, FI_REMOTE_CQ_DATA) == -FI_EBADFLAGS);
    there.count = 2;
    CHECK(fi_atomicmsg(s->ep, &message, 0) == -FI_EMSGSIZE);
    CHECK(fi_cntr_readerr(s->writes) == 0 && fi_cntr_readerr(s->reads) == 0);
}

static struct fi_cq_err_entry failed_add(struct side* s, uint64_t address, uint64_t key) {
    static uint64_t one = 1;
    struct fi_cq_err_entry error;

    POST(s, fi_atomic(s->ep, &one, 1, NULL, s->peer, address, key, FI_UINT64, FI_SUM, &one));
    error = await_error(s->tx, 10);
    CHECK(error.op_context == &one && error.flags == (FI_ATOMIC | FI_WRITE));
    return error;
}

/* What the peer does not allow is an error of the operation. */
static void try_what_fails(struct side* s, const struct words* of) {
    uint64_t at = word_address(of, 0);

    CHECK(failed_add(s, at, 0x1234567).err == FI_ENOKEY);
    CHECK(failed_add(s, at, of->write_only_key).err == FI_EACCES);
    CHECK(failed_add(s, word_address(of, nr_words), of->key).err == FI_EINVAL);
    CHECK(failed_add(s, at - 8, of->key).err == FI_EINVAL);
    CHECK(fi_cntr_readerr(s->writes) == 4);
}

/* What follows an atomic is behind it: a message (FI_ORDER_SAW), and a write of the word (FI_ORDER_WAW). */
#define FLOW 200

static void flow_a(struct side* s, const struct words* of) {
    uint64_t one = 1, seven = 7, at = word_address(of, word_flow), zero = 0;

    for (unsigned i = 0; i < FLOW; i++) {
        POST(s, fi_inject_atomic(s->ep, &one, 1, s->peer, at, of->key, FI_UINT64, FI_SUM));
        POST(s, fi_inject_write(s->ep, &zero, sizeof(zero), s->peer, at, of->key));
        POST(s, fi_inject_atomic(s->ep, &seven, 1, s->peer, at, of->key, FI_UINT64, FI_SUM));
        POST(s, fi_inject(s->ep, &i, sizeof(i), s->peer));
        meet(s);
    }
}

static void flow_b(struct side* s, const volatile uint64_t* word) {
    unsigned number;

    for (unsigned i = 0; i < FLOW; i++) {
        DO(fi_recv(s->ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL));
        await(s->rx);
        CHECK(number == i && *word == 7);
        meet(s);
    }
}

/* Both sides add to a word of side B, through the device. No addition is lost, and none is seen twice. */
#define RACE 500

static void race(struct side* s, fi_addr_t to, const struct words* of) {
    uint64_t last = 0;

    for (unsigned i = 0; i < RACE; i++) {
        uint64_t former = fetch_add(s, to, of, word_race, 1);

        CHECK(former < 2 * RACE && (i == 0 || former > last));
        last = former;
    }
}

static void atomics_a(struct side* s) {
    struct words of;
    struct fi_cq_err_entry error;

    check_what_is_there(s);
    take(s, &of, sizeof(of));
    try_sums(s, &of);
    try_swaps(s, &of);
    try_what_is_refused(s, &of);
    try_what_fails(s, &of);
    flow_a(s, &of);
    race(s, s->peer, &of);
    meet(s);
    meet(s); /* it is closed */
    error = failed_add(s, of.address, of.key);
    CHECK(error.err == FI_ENOKEY || error.err == FI_EKEYREJECTED);
}

static void atomics_b(struct side* s) {
    static uint64_t words[nr_words] __attribute__((aligned(4096)));
    char own[64];
    size_t length = sizeof(own);
    fi_addr_t self;
    struct fid_mr *mr, *write_only;
    struct words of = {0, (uintptr_t)words, 0};

    DO(fi_getname(&s->ep->fid, own, &length));
    CHECK(fi_av_insert(s->av, own, 1, &self, 0, NULL) == 1);
    words[word_sum] = words[word_swap] = 5;
    DO(fi_mr_reg(s->domain, words, sizeof(words), all_access, 0, 0, 0, &mr, NULL));
    DO(fi_mr_reg(s->domain, words, sizeof(words), FI_REMOTE_WRITE, 0, 0, 0, &write_only, NULL));
    of.key = fi_mr_key(mr);
    of.write_only_key = fi_mr_key(write_only);
    give(s, &of, sizeof(of));
    flow_b(s, &words[word_flow]);
    race(s, self, &of);
    meet(s);
    CHECK(words[word_sum] == 4 && words[word_swap] == 10 && words[word_race] == 2 * RACE);
    CHECK(words[word_last] == 0);
    DO(fi_close(&mr->fid));
    DO(fi_close(&write_only->fid));
    meet(s);
}

/* A device without atomics: nothing claims them, and who calls them all the same is told. */
static void no_atomics_a(struct side* s) {
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    uint64_t one = 1;
    size_t count;

    CHECK(!(s->info->caps & FI_ATOMIC));
    hints->caps = FI_MSG | FI_ATOMIC;
    hints->domain_attr->mr_mode = FI_MR_ALLOCATED;
    hints->fabric_attr->prov_name = strdup("kxfer");
    CHECK(fi_getinfo(API, NULL, NULL, 0, hints, &info) == -FI_ENODATA);
    hints->caps = 0;
    DO(fi_getinfo(API, NULL, NULL, 0, hints, &info));
    for (struct fi_info* one_info = info; one_info; one_info = one_info->next)
        CHECK(!(one_info->caps & FI_ATOMIC) && one_info->caps & FI_RMA);
    fi_freeinfo(info);
    fi_freeinfo(hints);
    CHECK(fi_atomicvalid(s->ep, FI_UINT64, FI_SUM, &count) == -FI_EOPNOTSUPP);
    CHECK(fi_atomic(s->ep, &one, 1, NULL, s->peer, 0, 0, FI_UINT64, FI_SUM, NULL) == -FI_EOPNOTSUPP);
}

static void no_atomics_b(struct side* s) { (void)s; }

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

/* What the first side of `power` has under way, and what has become of it. */
struct tally {
    unsigned long begun, ended, failed;
};

static void count_ended(struct fid_cq* cq, struct tally* sends, struct tally* reads, double* last) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    ssize_t ret;

    while ((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN) {
        struct tally* of;

        CHECK(ret == 1 || ret == -FI_EAVAIL);
        if (ret == -FI_EAVAIL) CHECK(fi_cq_readerr(cq, &error, 0) == 1);
        of = (ret == 1 ? entry.flags : error.flags) & FI_READ ? reads : sends;
        of->ended++;
        if (ret == 1)
            *last = now();
        else
            of->failed++;
    }
}

/*
 * The node of the other side loses its power while messages stream there, its memory is read and
 * a message of it is waited for: all of that ends with an error.
 */
static void power_a(struct side* s) {
    struct tally sends = {0}, reads = {0};
    double end = now() + 4 * PATIENCE_S, last = now();
    bool said = false;
    struct key key;
    char got;

    take(s, &key, sizeof(key));
    DO(fi_recv(s->ep, &got, 1, NULL, s->peer, &got));
    while (sends.failed + reads.failed == 0 || sends.ended + reads.ended < sends.begun + reads.begun) {
        bool more = sends.failed + reads.failed == 0;

        CHECK(now() < end);
        if (more && fi_send(s->ep, buffer, 20000, NULL, s->peer, NULL) == 0) sends.begun++;
        if (more &&
            fi_read(s->ep, buffer + LONGEST / 2, 20000, NULL, s->peer, key.address, key.key, NULL) == 0)
            reads.begun++;
        count_ended(s->tx, &sends, &reads, &last);
        if (said || sends.ended < 20) continue;
        said = puts("the stream runs") >= 0 && fflush(stdout) == 0;
    }
    CHECK(await_error(s->rx, 20).op_context == &got);
    printf("%lu sends, %lu failed; %lu reads, %lu failed; all ended %.1f s after the last success\n",
           sends.begun, sends.failed, reads.begun, reads.failed, now() - last);
    CHECK(sends.failed > 0 && reads.failed > 0);
    CHECK(now() - last < 20);
}

static void power_b(struct side* s) {
    struct fid_mr* mr;
    struct key key = {0, (uintptr_t)buffer};

    DO(fi_mr_reg(s->domain, buffer, LONGEST, FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
    key.key = fi_mr_key(mr);
    give(s, &key, sizeof(key));
    for (;;) {
        DO(fi_recv(s->ep, buffer, LONGEST, NULL, FI_ADDR_UNSPEC, NULL));
        await(s->rx);
    }
}

/* ---- the two sides ---- */

static const struct test {
    const char* name;
    void (*a)(struct side* s);
    void (*b)(struct side* s);
    bool b_dies;
    uint64_t caps;
} tests[] = {
    {"messages", messages_a, messages_b, false, 0},
    {"unexpected", unexpected_a, unexpected_b, false, 0},
    {"flood", flood_a, flood_b, false, 0},
    {"gather", gather_a, gather_b, false, 0},
    {"tags", tags_a, tags_b, false, 0},
    {"cancel", cancel_a, cancel_b, false, 0},
    {"several", several_a, several_b, false, 0},
    {"memory", memory_a, memory_b, false, 0},
    {"atomics", atomics_a, atomics_b, false, FI_ATOMIC},
    {"no-atomics", no_atomics_a, no_atomics_b, false, 0},
    {"waiting", waiting_a, waiting_b, false, 0},
    {"death-of-receiver", death_of_receiver_a, death_of_receiver_b, true, 0},
    {"death-of-sender", death_of_sender_a, death_of_sender_b, true, 0},
    {"death-in-a-stream", death_in_a_stream_a, death_in_a_stream_b, true, 0},
    {"death-of-memory", death_of_memory_a, death_of_memory_b, true, 0},
    {"power", power_a, power_b, true, 0}, /* on two nodes only */
};

static void run_side(const void* what, int socket, bool is_second) {
    const struct test* test = what;
    struct side s;

    buffer = malloc(LONGEST + 1);
    CHECK(buffer);
    memset(buffer, 0, LONGEST + 1);
    side_open(&s, socket, test->caps);
    (is_second ? test->b : test->a)(&s);
    if (!test->b_dies) meet(&s);
    side_close(&s);
}

int main(int argc, char** argv) {
    for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++) {
        bool is_second = argc == 4 && strcmp(argv[2], "b") == 0;

        if (strcmp(tests[i].name, argv[1]) != 0) continue;
        if (argc == 2) return run_sides(run_side, &tests[i], tests[i].b_dies);
        if (!is_second && (argc != 4 || strcmp(argv[2], "a") != 0)) break;
        run_side(&tests[i], is_second ? side_connect(argv[3]) : side_accept(argv[3]), is_second);
        return 0;
    }
    fprintf(stderr, "usage: kxfer-fi-test NAME [a|b ADDRESS-OF-A]; names:\n");
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) fprintf(stderr, "%s\n", tests[i].name);
    return 2;
}

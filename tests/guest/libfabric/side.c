// SPDX-License-Identifier: MIT
#include "side.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

_Noreturn void give_up(const char* file, int line, const char* what) {
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    exit(1);
}

double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct fi_info* side_find(enum fi_ep_type type, uint64_t caps) {
    struct fi_info *hints = fi_allocinfo(), *info = NULL;

    CHECK(hints);
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | caps;
    if (type == FI_EP_RDM) hints->caps |= FI_DIRECTED_RECV | FI_SOURCE;
    hints->ep_attr->type = type;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup("kxfer");
    DO(fi_getinfo(API, NULL, NULL, 0, hints, &info));
    fi_freeinfo(hints);
    return info;
}

void side_open_queues(struct side* s) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .size = 1024};
    struct fi_cntr_attr counter = {.wait_obj = FI_WAIT_UNSPEC};

    DO(fi_cq_open(s->domain, &cq, &s->tx, NULL));
    DO(fi_cq_open(s->domain, &cq, &s->rx, NULL));
    DO(fi_cntr_open(s->domain, &counter, &s->sends, NULL));
    DO(fi_cntr_open(s->domain, &counter, &s->recvs, NULL));
    DO(fi_cntr_open(s->domain, &counter, &s->reads, NULL));
    DO(fi_cntr_open(s->domain, &counter, &s->writes, NULL));
    DO(fi_ep_bind(s->ep, &s->tx->fid, FI_TRANSMIT));
    DO(fi_ep_bind(s->ep, &s->rx->fid, FI_RECV));
    DO(fi_ep_bind(s->ep, &s->sends->fid, FI_SEND));
    DO(fi_ep_bind(s->ep, &s->recvs->fid, FI_RECV));
    DO(fi_ep_bind(s->ep, &s->reads->fid, FI_READ));
    DO(fi_ep_bind(s->ep, &s->writes->fid, FI_WRITE));
}

static void know_each_other(struct side* s) {
    char own[64] = {0}, others[64];
    size_t length = sizeof(own);

    DO(fi_getname(&s->ep->fid, own, &length));
    give(s, own, sizeof(own));
    take(s, others, sizeof(others));
    CHECK(fi_av_insert(s->av, others, 1, &s->peer, 0, NULL) == 1);
}

void side_open(struct side* s, int other, uint64_t caps) {
    struct fi_av_attr av = {.type = FI_AV_TABLE};

    memset(s, 0, sizeof(*s));
    s->other = other;
    s->info = side_find(FI_EP_RDM, caps);
    DO(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
    DO(fi_domain(s->fabric, s->info, &s->domain, NULL));
    DO(fi_endpoint(s->domain, s->info, &s->ep, NULL));
    DO(fi_av_open(s->domain, &av, &s->av, NULL));
    DO(fi_ep_bind(s->ep, &s->av->fid, 0));
    side_open_queues(s);
    DO(fi_enable(s->ep));
    know_each_other(s);
}

void side_close_queues(struct side* s) {
    DO(fi_close(&s->tx->fid));
    DO(fi_close(&s->rx->fid));
    DO(fi_close(&s->sends->fid));
    DO(fi_close(&s->recvs->fid));
    DO(fi_close(&s->reads->fid));
    DO(fi_close(&s->writes->fid));
}

void side_close(struct side* s) {
    DO(fi_close(&s->ep->fid));
    side_close_queues(s);
    DO(fi_close(&s->av->fid));
    DO(fi_close(&s->domain->fid));
    DO(fi_close(&s->fabric->fid));
    fi_freeinfo(s->info);
}

int side_accept(const char* address) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, other;
    struct pollfd wanted = {.fd = listener, .events = POLLIN};

    CHECK(listener >= 0 && inet_pton(AF_INET, address, &at.sin_addr) == 1);
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
    CHECK(bind(listener, (struct sockaddr*)&at, sizeof(at)) == 0 && listen(listener, 1) == 0);
    CHECK(poll(&wanted, 1, PATIENCE_S * 1000) == 1);
    other = accept(listener, NULL, NULL);
    CHECK(other >= 0);
    close(listener);
    return other;
}

int side_connect(const char* address) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    double end = now() + PATIENCE_S;

    CHECK(inet_pton(AF_INET, address, &at.sin_addr) == 1);
    for (;;) {
        int other = socket(AF_INET, SOCK_STREAM, 0);

        CHECK(other >= 0);
        if (connect(other, (struct sockaddr*)&at, sizeof(at)) == 0) return other;
        close(other);
        CHECK(now() < end);
        usleep(100000);
    }
}

void progress(struct side* s) {
    uint32_t event;

    if (s->sends) (void)fi_cntr_read(s->sends);
    if (s->eq) (void)fi_eq_read(s->eq, &event, NULL, 0, FI_PEEK);
}

struct fi_cq_tagged_entry await_from(struct fid_cq* cq, fi_addr_t* source) {
    struct fi_cq_tagged_entry entry = {0};
    ssize_t ret = fi_cq_sreadfrom(cq, &entry, 1, source, NULL, PATIENCE_S * 1000);

    if (ret == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};

        fi_cq_readerr(cq, &error, 0);
        fprintf(stderr, "error %d: %s\n", error.err,
                fi_cq_strerror(cq, error.prov_errno, error.err_data, NULL, 0));
    }
    CHECK(ret == 1);
    return entry;
}

struct fi_cq_tagged_entry await(struct fid_cq* cq) {
    fi_addr_t source;

    return await_from(cq, &source);
}

struct fi_cq_err_entry await_error(struct fid_cq* cq, int seconds) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    double end = now() + seconds;
    const char* words;
    ssize_t ret;

    do {
        ret = fi_cq_sread(cq, &entry, 1, NULL, 1000);
    } while (ret != -FI_EAVAIL && now() < end);
    CHECK(ret == -FI_EAVAIL);
    CHECK(fi_cq_readerr(cq, &error, 0) == 1);
    words = fi_cq_strerror(cq, error.prov_errno, error.err_data, NULL, 0);
    CHECK(error.err != 0 && strncmp(words, "kxfer: ", 7) == 0);
    return error;
}

void give(struct side* s, const void* what, size_t length) {
    CHECK(write(s->other, what, length) == (ssize_t)length);
}

void take(struct side* s, void* what, size_t length) {
    struct pollfd wanted = {.fd = s->other, .events = POLLIN};
    double end = now() + PATIENCE_S;

    while (poll(&wanted, 1, 1) == 0) {
        CHECK(now() < end);
        progress(s);
    }
    CHECK(recv(s->other, what, length, MSG_WAITALL) == (ssize_t)length);
}

void meet(struct side* s) {
    char turn = 'x';

    give(s, &turn, 1);
    take(s, &turn, 1);
}

int run_sides(void (*run)(const void* what, int socket, bool is_second), const void* what, bool second_dies) {
    int sockets[2], status[2];
    pid_t sides[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    for (int i = 0; i < 2; i++) {
        sides[i] = fork();
        if (sides[i] == 0) {
            run(what, sockets[i], i == 1);
            exit(0);
        }
    }
    CHECK(waitpid(sides[0], &status[0], 0) == sides[0]);
    /* A side whose other one has failed waits in vain. */
    if (status[0] != 0) kill(sides[1], SIGKILL);
    CHECK(waitpid(sides[1], &status[1], 0) == sides[1]);
    if (second_dies && WIFSIGNALED(status[1])) status[1] = 0;
    return status[0] == 0 && status[1] == 0 ? 0 : 1;
}

void fill(void* at, size_t length, unsigned number) {
    unsigned char* bytes = at;
    size_t i;

    for (i = 0; i < length; i++) bytes[i] = (unsigned char)(i * 7 + i / 251 + number);
}

bool holds(const void* at, size_t length, unsigned number) {
    const unsigned char* bytes = at;
    size_t i;

    for (i = 0; i < length; i++)
        if (bytes[i] != (unsigned char)(i * 7 + i / 251 + number)) return false;
    return true;
}

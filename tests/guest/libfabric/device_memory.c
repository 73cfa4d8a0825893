// SPDX-License-Identifier: MIT
//
// Memory of devices (FI_HMEM), by dma-bufs of the system heap that stand for an accelerator's: they are
// registered by addresses that this process has not mapped, so an access of the CPU would end it. One
// process with two endpoints; a mapping elsewhere shows what has come.
//
// Built with a libfabric before 1.20, which has no FI_MR_DMABUF, it checks that FI_HMEM is not reported.
// Ends with 0 and a line "skip: WHY" where there is nothing to check.
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "side.h"

#define LENGTH (1U << 20)

static struct fi_info* hints_for(uint64_t caps, int mr_mode) {
    struct fi_info* hints = fi_allocinfo();

    CHECK(hints);
    hints->caps = caps;
    hints->ep_attr->type = FI_EP_RDM;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | mr_mode;
    hints->fabric_attr->prov_name = strdup("kxfer");
    return hints;
}

static int get_info(uint64_t caps, int mr_mode, struct fi_info** info) {
    struct fi_info* hints = hints_for(caps, mr_mode);
    int ret = fi_getinfo(API, NULL, NULL, 0, hints, info);

    fi_freeinfo(hints);
    return ret;
}

#ifndef FI_MR_DMABUF

int main(void) {
    struct fi_info* info = NULL;

    CHECK(get_info(FI_RMA | FI_HMEM, FI_MR_HMEM, &info) == -FI_ENODATA);
    puts("skip: this libfabric has no FI_MR_DMABUF; FI_HMEM is not reported");
    return 0;
}

#else

// Addresses at which nothing is mapped: the first byte of a buffer, at one end and the other.
static char* const device_addresses[] = {(char*)0x100000000000, (char*)0x200000000000};

struct end {
    struct fid_domain* domain;
    struct fid_av* av;
    struct fid_cq* cq;
    struct fid_ep* ep;
    struct fid_mr* mr;
    fi_addr_t peer;
    int fd;
    char* shown; // the buffer, for this test
};

// -1: the kernel has no system heap.
static int open_buffer(void) {
    struct dma_heap_allocation_data data = {.len = LENGTH, .fd_flags = O_RDWR | O_CLOEXEC};
    int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);

    if (heap < 0 && errno == ENOENT) return -1;
    CHECK(heap >= 0 && ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) == 0);
    close(heap);
    return (int)data.fd;
}

static int add_memory(struct fid_domain* domain, const struct fi_mr_dmabuf* buffer, uint64_t flags,
                      struct fid_mr** mr) {
    struct fi_mr_attr attr = {
        .dmabuf = buffer,
        .iov_count = 1,
        .access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
        .iface = FI_HMEM_ZE,
    };

    return fi_mr_regattr(domain, &attr, flags, mr);
}

static void open_end(struct end* e, struct fid_fabric* fabric, struct fi_info* info, char* address) {
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD};
    struct fi_mr_dmabuf buffer = {.fd = e->fd, .offset = 4096, .len = LENGTH - 4096, .base_addr = address};

    DO(fi_domain(fabric, info, &e->domain, NULL));
    DO(fi_endpoint(e->domain, info, &e->ep, NULL));
    DO(fi_av_open(e->domain, &av, &e->av, NULL));
    DO(fi_cq_open(e->domain, &cq, &e->cq, NULL));
    DO(fi_ep_bind(e->ep, &e->av->fid, 0));
    DO(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
    DO(fi_enable(e->ep));
    DO(add_memory(e->domain, &buffer, FI_MR_DMABUF, &e->mr));
    e->shown = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
    CHECK(e->shown != MAP_FAILED);
}

static void close_end(struct end* e) {
    DO(fi_close(&e->mr->fid));
    DO(fi_close(&e->ep->fid));
    DO(fi_close(&e->cq->fid));
    DO(fi_close(&e->av->fid));
    DO(fi_close(&e->domain->fid));
    munmap(e->shown, LENGTH);
    close(e->fd);
}

static void know(struct end* e, struct end* other) {
    char name[64];
    size_t length = sizeof(name);

    DO(fi_getname(&other->ep->fid, name, &length));
    CHECK(fi_av_insert(e->av, name, 1, &e->peer, 0, NULL) == 1);
}

static void wait_for_end(struct end* e) {
    struct fi_cq_entry entry;

    CHECK(fi_cq_sread(e->cq, &entry, 1, NULL, PATIENCE_S * 1000) == 1);
}

// Both ways, of few bytes, which would otherwise be copied, and of many.
static void move(struct end* e, struct end* other, size_t length) {
    char *own = device_addresses[0] + 8192, *far = device_addresses[1] + 12288;

    fill(e->shown + 8192, length, 1);
    memset(other->shown, 0, LENGTH);
    DO(fi_write(e->ep, own, length, fi_mr_desc(e->mr), e->peer, (uintptr_t)far, fi_mr_key(other->mr), NULL));
    wait_for_end(e);
    CHECK(holds(other->shown + 12288, length, 1));
    CHECK(other->shown[12287] == 0 && other->shown[12288 + length] == 0);

    fill(other->shown + 12288, length, 2);
    memset(e->shown, 0, LENGTH);
    DO(fi_read(e->ep, own, length, fi_mr_desc(e->mr), e->peer, (uintptr_t)far, fi_mr_key(other->mr), NULL));
    wait_for_end(e);
    CHECK(holds(e->shown + 8192, length, 2));
    CHECK(e->shown[8191] == 0 && e->shown[8192 + length] == 0);
}

static void try_what_is_refused(struct end* e, struct end* other) {
    struct fi_mr_dmabuf buffer = {.fd = e->fd, .len = LENGTH + 4096};
    char* own = device_addresses[0];
    struct fid_mr* mr;

    CHECK(add_memory(e->domain, &buffer, FI_MR_DMABUF, &mr) == -ERANGE);
    buffer.len = LENGTH;
    CHECK(add_memory(e->domain, &buffer, FI_MR_DMABUF | FI_RMA_EVENT, &mr) == -FI_ENOSYS);
    buffer.fd = STDIN_FILENO;
    CHECK(add_memory(e->domain, &buffer, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    buffer.fd = -1;
    CHECK(add_memory(e->domain, &buffer, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    // Before the registered part.
    DO(fi_write(e->ep, own, 64, fi_mr_desc(e->mr), e->peer, (uintptr_t)device_addresses[1] + 8192,
                fi_mr_key(other->mr), NULL));
    CHECK(await_error(e->cq, 10).err == FI_EINVAL);
    // What the CPU would have to copy.
    CHECK(fi_inject_write(e->ep, own, 8, e->peer, 0, fi_mr_key(other->mr)) == -FI_EINVAL);
    CHECK(fi_send(e->ep, own + 8192, 64, fi_mr_desc(e->mr), e->peer, NULL) == -FI_EOPNOTSUPP);
    CHECK(fi_recv(e->ep, own + 8192, 64, fi_mr_desc(e->mr), e->peer, NULL) == -FI_EOPNOTSUPP);
}

static void try_what_is_reported(void) {
    struct fi_info* info = NULL;

    CHECK(get_info(FI_RMA | FI_MSG | FI_HMEM, FI_MR_HMEM, &info) == -FI_ENODATA);
    CHECK(get_info(FI_ATOMIC | FI_HMEM, FI_MR_HMEM, &info) == -FI_ENODATA);
    CHECK(get_info(FI_RMA | FI_HMEM, 0, &info) == -FI_ENODATA);
    DO(get_info(FI_RMA, FI_MR_HMEM, &info));
    CHECK(!(info->caps & FI_HMEM) && !(info->domain_attr->mr_mode & FI_MR_HMEM));
    fi_freeinfo(info);
    DO(get_info(FI_RMA | FI_HMEM, FI_MR_HMEM, &info));
    CHECK(info->caps & FI_HMEM && info->domain_attr->mr_mode & FI_MR_HMEM);
    CHECK(info->tx_attr->inject_size == 0 && !(info->caps & (FI_MSG | FI_TAGGED | FI_ATOMIC)));
    fi_freeinfo(info);
}

int main(void) {
    struct end a = {.fd = open_buffer()}, b = {.fd = open_buffer()};
    struct fi_info* info = NULL;
    struct fid_fabric* fabric;

    if (a.fd < 0 || b.fd < 0) {
        puts("skip: no /dev/dma_heap/system: this kernel makes no dma-bufs");
        return 0;
    }
    try_what_is_reported();
    DO(get_info(FI_RMA | FI_HMEM, FI_MR_HMEM, &info));
    DO(fi_fabric(info->fabric_attr, &fabric, NULL));
    open_end(&a, fabric, info, device_addresses[0]);
    open_end(&b, fabric, info, device_addresses[1]);
    know(&a, &b);
    know(&b, &a);
    move(&a, &b, 8);
    move(&a, &b, 4096);
    move(&a, &b, LENGTH / 2);
    try_what_is_refused(&a, &b);
    close_end(&a);
    close_end(&b);
    DO(fi_close(&fabric->fid));
    fi_freeinfo(info);
    return 0;
}

#endif

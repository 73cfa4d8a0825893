// SPDX-License-Identifier: MIT
//
// Opening /dev/kxfer, querying the module, and listing its objects.

#include <kxfer/kxfer.h>

#include "lib/call.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>
#include <type_traits>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static_assert(std::is_trivially_destructible_v<kxfer_session>);

const char* kxfer_library_version(void) { return KXFER_VERSION; }

// Detects a module of another ABI here, before any other call.
static int learn_limits(kxfer_session* session) {
    kxfer_query query = {};
    const int ret = kxfer_session_query(session, &query);
    if (ret < 0) return ret;
    session->max_jobs_per_submit = query.max_jobs_per_submit;
    return query.abi == KXFER_ABI ? 0 : -EPROTONOSUPPORT;
}

int kxfer_session_open(const char* path, kxfer_session** session) {
    const int saved = errno;
    void* memory = malloc(sizeof(kxfer_session));
    if (!memory) {
        errno = saved;
        return -ENOMEM;
    }
    auto* opened = new (memory) kxfer_session; // its end needs no destructor
    opened->fd = open(path ? path : KXFER_DEVICE_PATH, O_RDWR | O_CLOEXEC);
    int ret = opened->fd < 0 ? -errno : 0;
    errno = saved;
    if (ret == 0) ret = learn_limits(opened);
    if (ret < 0) {
        kxfer_session_close(opened);
        return ret;
    }
    *session = opened;
    return 0;
}

void kxfer_session_close(kxfer_session* session) {
    if (!session) return;
    const int saved = errno;
    // A mapping would keep the file open.
    if (session->sq) munmap(session->sq, session->sq_bytes);
    if (session->ring) munmap(session->ring, session->ring_bytes);
    if (session->fd >= 0) close(session->fd);
    free(session);
    errno = saved;
}

int kxfer_session_fd(const kxfer_session* session) { return session->fd; }

int kxfer_session_set_wait(kxfer_session* session, uint32_t flags) {
    if (flags & ~KXFER_WAIT_F_ALL) return -EOPNOTSUPP;
    if (flags == KXFER_WAIT_F_ALL) return -EINVAL;
    session->wait_flags.store(flags, std::memory_order_relaxed);
    return 0;
}

int kxfer_session_query(kxfer_session* session, kxfer_query* query) {
    *query = {};
    query->size = sizeof(*query);
    return kxfer::call(session, KXFER_QUERY, query);
}

int kxfer_session_nop(kxfer_session* session) {
    kxfer_nop nop = {};
    nop.size = sizeof(nop);
    return kxfer::call(session, KXFER_NOP, &nop);
}

int kxfer_session_info(kxfer_session* session, uint32_t kind, uint64_t* cursor, void* records,
                       size_t record_size, uint32_t nr) {
    kxfer_info info = {};
    info.size = sizeof(info);
    info.kind = kind;
    info.stride = static_cast<uint32_t>(record_size);
    info.cursor = *cursor;
    info.records = reinterpret_cast<uintptr_t>(records);
    info.nr = nr;
    const int ret = kxfer::call(session, KXFER_INFO, &info);
    if (ret < 0) return ret;
    *cursor = info.cursor;
    return static_cast<int>(info.nr);
}

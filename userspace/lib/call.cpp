// SPDX-License-Identifier: MIT
//
// The only file that calls ioctl(2) and mmap(2) on a session. Nothing is retried here: an interrupted call
// has done nothing, and whether to go on is the caller's decision.

#include "lib/call.hpp"

#include <cerrno>

#include <linux/kxfer.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

namespace kxfer {

int call(const kxfer_session* session, unsigned long request, void* argument) {
    const int saved = errno;
    const int result = ioctl(session->fd, request, argument) < 0 ? -errno : 0;
    errno = saved;
    return result;
}

int call_with(const kxfer_session* session, unsigned long request, unsigned long number) {
    const int saved = errno;
    const int result = ioctl(session->fd, request, number);
    const int ret = result < 0 ? -errno : result;
    errno = saved;
    return ret;
}

int map(const kxfer_session* session, uint64_t offset, uint64_t bytes, void** mapped) {
    const int saved = errno;
    void* at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, session->fd, static_cast<off_t>(offset));
    const int ret = at == MAP_FAILED ? -errno : 0;
    errno = saved;
    if (ret == 0) *mapped = at;
    return ret;
}

int call_id(const kxfer_session* session, unsigned long request, unsigned int id) {
    kxfer_id argument = {};
    argument.size = sizeof(argument);
    argument.id = id;
    return call(session, request, &argument);
}

} // namespace kxfer

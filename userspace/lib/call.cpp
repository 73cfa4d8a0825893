// SPDX-License-Identifier: MIT
//
// The only file that calls ioctl(2). Nothing is retried here: an interrupted call
// has done nothing, and whether to go on is the caller's decision.

#include "lib/call.hpp"

#include <cerrno>

#include <linux/kxfer.h>
#include <sys/ioctl.h>

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

int call_id(const kxfer_session* session, unsigned long request, unsigned int id) {
    kxfer_id argument = {};
    argument.size = sizeof(argument);
    argument.id = id;
    return call(session, request, &argument);
}

} // namespace kxfer

// SPDX-License-Identifier: MIT
#include "libfabric/error.hpp"

#include <cerrno>
#include <cstring>

#include <rdma/fi_errno.h>

namespace kxfer::fi {

int error_of(int status, During during) {
    bool memory = during == During::memory;
    switch (-status) {
    case EKEYREVOKED:
        return memory ? FI_EKEYREJECTED : FI_ECONNRESET;
    case ENOENT:
        return memory ? FI_ENOKEY : FI_ECONNREFUSED;
    case ERANGE:
    case EOVERFLOW:
        return FI_EINVAL;
    case EREMOTEIO:
    case ENODEV:
        return FI_ECONNRESET;
    case ECONNABORTED:
        return FI_ECONNREFUSED;
    default:
        return -status;
    }
}

const char* words_of(int prov_errno) {
    switch (prov_errno) {
    case EKEYREVOKED:
        return "kxfer: the peer has closed the endpoint or the memory, or its process has ended "
               "(EKEYREVOKED)";
    case ENOENT:
        return "kxfer: the peer has no such endpoint or key; has its process ended? (ENOENT)";
    case ECONNRESET:
        return "kxfer: the link broke; kxfer link list, dmesg (ECONNRESET)";
    case ECONNREFUSED:
        return "kxfer: nothing listens at the node of the peer; there: kxfer listen add ADDRESS "
               "(ECONNREFUSED)";
    case ECONNABORTED:
        return "kxfer: the peer rejects the connection (ECONNABORTED)";
    case ETIMEDOUT:
        return "kxfer: the peer has not answered in time; FI_KXFER_CONNECT_S for connections (ETIMEDOUT)";
    case ENOTCONN:
        return "kxfer: the connection has ended (ENOTCONN)";
    case EHOSTUNREACH:
        return "kxfer: no RDMA device or route leads to the peer; kxfer ping HOST (EHOSTUNREACH)";
    case EACCES:
        return "kxfer: the peer refuses: another user, or a right is missing; FI_KXFER_ANY_USER (EACCES)";
    case EKEYREJECTED:
        return "kxfer: the listener of the peer wants another key; FI_KXFER_KEY (EKEYREJECTED)";
    case ENOKEY:
        return "kxfer: no such key in the kernel's keyring; kxfer key add NAME (ENOKEY)";
    case ENOMEM:
        return "kxfer: no memory, or RLIMIT_MEMLOCK is reached; ulimit -l (ENOMEM)";
    case EDQUOT:
        return "kxfer: a limit of the module is reached; kxfer explain EDQUOT (EDQUOT)";
    case ENODEV:
        return "kxfer: the RDMA device is gone; kxfer device list (ENODEV)";
    case EREMOTEIO:
        return "kxfer: the RDMA device of the peer refused the access (EREMOTEIO)";
    case EINVAL:
        return "kxfer: no such operation; an atomic needs an address that is a multiple of 8 (EINVAL)";
    case EOPNOTSUPP:
        return "kxfer: the RDMA device has no atomics; kxfer device list (EOPNOTSUPP)";
    case ERANGE:
    case EOVERFLOW:
        return "kxfer: outside the memory that the key is for (ERANGE)";
    case EIO:
        return "kxfer: the peer could not take the message; its receive failed too (EIO)";
    case FI_ETRUNC:
        return "kxfer: the message is longer than the buffer of the receive";
    case FI_ENOMSG:
        return "kxfer: no such message has arrived";
    case FI_ECANCELED:
        return "kxfer: the operation was cancelled";
    default:
        return fi_strerror(prov_errno);
    }
}

} // namespace kxfer::fi

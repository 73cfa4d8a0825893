// SPDX-License-Identifier: MIT
//
// Errnos of kxfer: the contract at the top of uapi/linux/kxfer.h, and the statuses of
// struct kxfer_completion; then those that only the tool returns, for files,
// processes and data. tests/host/unit/test_cli_meaning.cpp reads that header and the
// sources of the tool and looks each of them up here. Texts are the C library's.

#include "cli/explain/meaning.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

namespace kxfer::cli {

namespace {

constexpr char own_dmesg[] = "dmesg | grep kxfer";
constexpr char both_dmesg[] = "dmesg | grep kxfer, on both sides";

constexpr Entry known[] = {
    {.number = EPERM,
     .name = "EPERM",
     .means = "needs a capability that the caller lacks: CAP_NET_ADMIN for listeners, KXFER_BENCH and "
              "KXFER_DEDICATED_OPEN",
     .look = "as root, once: kxfer listen add ADDRESS; then any user may serve"},
    {.number = ENOENT,
     .name = "ENOENT",
     .means = "no such id in this session, or the peer has no such export, or none that this user may see",
     .look = "kxfer ls PEER\nids belong to the open file that made them; /dev/kxfer itself missing: modprobe "
             "kxfer"},
    {.number = EINTR,
     .name = "EINTR",
     .means = "a signal came before anything was done; nothing was accepted",
     .look = "call again"},
    {.number = EIO,
     .name = "EIO",
     .means = "the RDMA device here did not do what it should: a QP, CQ or registration failed",
     .look = own_dmesg},
    {.number = E2BIG,
     .name = "E2BIG",
     .means = "something that is not zero in a part of the structure that this module does not know",
     .look = "a program newer than the module: modinfo kxfer; or memory that was not zeroed before the call"},
    {.number = EBADF,
     .name = "EBADF",
     .means = "no file is open under the number given (eventfd, ring)",
     .look = "was it closed before the call? ls -l /proc/PID/fd"},
    {.number = EAGAIN,
     .name = "EAGAIN",
     .means = "the session's queue of jobs is full: reap, or read the ring, and submit the rest again",
     .look = "max_jobs of KXFER_QUERY; do completions get taken?\n"
             "NOTIFY, SEND: is the process of the exporter stuck, does it read its events, or messages?",
     .completion = "NOTIFY: the exporter has too many events unread; SEND: the mailbox is full; nothing was "
                   "delivered"},
    {.number = ENOMEM,
     .name = "ENOMEM",
     .means =
         "no memory, also of the memory cgroup (of the exporter at the peer, where a target is opened), or "
         "RLIMIT_MEMLOCK is reached",
     .look = "ulimit -l; LimitMEMLOCK= of a service; memory.max of the cgroup"},
    {.number = EACCES,
     .name = "EACCES",
     .means =
         "refused: by the rules of the export, by the peer's listener, for a right that export or region "
         "was not made with, or a listener without a key outside the initial network namespace",
     .look = "kxfer ls PEER shows the rights; there: kxfer serve --writable, --allow\n"
             "when connecting: the peer wants a source port below 1024 (kxfer explain KXFER_REFUSAL_PORT)\n"
             "/dev/kxfer itself: usermod -aG rdma USER\n"
             "the peer's dmesg says which user was refused and why"},
    {.number = EFAULT,
     .name = "EFAULT",
     .means =
         "a bad pointer, memory that is not there, or memory that must not be pinned: a shared mapping of an "
         "ordinary file",
     .look = "private or anonymous memory, or memfd"},
    {.number = EBUSY,
     .name = "EBUSY",
     .means = "in use: jobs are in flight on it, an export is made of it, or completions are not reaped yet",
     .look = "kxfer_job_drain(), then again; close(2) always works"},
    {.number = EEXIST,
     .name = "EEXIST",
     .means = "the name is taken on this node, or the session has a ring already",
     .look = "kxfer export list"},
    {.number = ENODEV,
     .name = "ENODEV",
     .means = "the RDMA device is gone",
     .look = "rdma link; kxfer device list; dmesg",
     .completion = "the device went while the job was under way; what a WRITE did at the peer is unknown"},
    {.number = EINVAL,
     .name = "EINVAL",
     .means = "nonsense: a size too small, a reserved member that is not zero, no bytes, a malformed name or "
              "address",
     .look = "the kernel-doc of that structure in linux/kxfer.h; was it zeroed before it was filled in?"},
    {.number = EMFILE,
     .name = "EMFILE",
     .means = "too many sessions, of the node or of the caller's uid",
     .look = "fuser -v /dev/kxfer; /sys/module/kxfer/parameters/max_sessions_per_uid"},
    {.number = ENOTTY,
     .name = "ENOTTY",
     .means = "no such call: the module is older than the program, or the file is not /dev/kxfer",
     .look = "modinfo kxfer, kxfer --version"},
    {.number = ERANGE,
     .name = "ERANGE",
     .means = "outside the region or the target",
     .look = "offset plus length against the length of both; kxfer ls PEER"},
    {.number = EOVERFLOW,
     .name = "EOVERFLOW",
     .means = "offset plus length, or address plus length, goes beyond 64 bits",
     .look = "an offset that was computed with a sign"},
    {.number = EPROTO, .name = "EPROTO", .means = "the peer breaks the protocol", .look = both_dmesg},
    {.number = EREMOTEIO,
     .name = "EREMOTEIO",
     .means = "the device of the peer did not do what it should, or something else went wrong there",
     .look = "dmesg | grep kxfer, on both sides: it names the completion status (REM_ACCESS_ERR, "
             "REM_INV_REQ_ERR, "
             "REM_OP_ERR)",
     .completion = "the peer's device refused the work request; the link ends, open the target again"},
    {.number = EMSGSIZE,
     .name = "EMSGSIZE",
     .means = "a message longer than the mailbox of the target takes, or by UD than a packet",
     .look = "kxfer ls PEER shows the longest as the length; more goes by a WRITE, and a SEND after it",
     .completion =
         "RECV: the message is longer than its range, and stays in the mailbox for the next; SEND: it "
         "has waited for another link, which carries no message of that length"},
    {.number = EPROTONOSUPPORT,
     .name = "EPROTONOSUPPORT",
     .means = "the peer speaks no version of the protocol that this module speaks, or is no kxfer",
     .look = "modinfo kxfer on both; what listens at that port"},
    {.number = EOPNOTSUPP,
     .name = "EOPNOTSUPP",
     .means =
         "a flag or operation that is unknown here, or that this device, this peer or the session's network "
         "namespace does not have",
     .look = "kxfer doctor: capabilities of the devices\n"
             "a container: siw, and rxe before Linux 7.2, work in the initial network namespace only; a "
             "listener elsewhere ends with its program (kxfer serve)\n"
             "opening a target: the peer's device sees memory through bounce buffers, its dmesg says so",
     .completion = "an atomic, or a SEND that may wait, has waited for another link, which has none"},
    {.number = EADDRINUSE,
     .name = "EADDRINUSE",
     .means = "something listens on that address and port already; connecting: other programs, or TCP's "
              "ended connections (iWARP), have the source ports 665 to 1023",
     .look = "kxfer listen list; rdma resource show cm_id\nconnecting: ss -tan sport lt :1024"},
    {.number = EADDRNOTAVAIL,
     .name = "EADDRNOTAVAIL",
     .means = "no RDMA device of this node has the address to listen on or to connect from, or the device "
              "asked for "
              "does not lead there",
     .look = "ip addr; kxfer device list\nlistening: is that port taken on all addresses (0.0.0.0)?"},
    {.number = ECONNRESET,
     .name = "ECONNRESET",
     .means = "the link broke while the call waited for the peer",
     .look = "dmesg | grep kxfer, on both sides: the completion status or event that ended the link\n"
             "kxfer ping PEER; open the target again",
     .completion =
         "the link broke with the job posted: what a WRITE, NOTIFY, SEND or atomic did at the peer is "
         "unknown"},
    {.number = ETIMEDOUT,
     .name = "ETIMEDOUT",
     .means = "no answer in the time given",
     .look = "ping the address; a firewall that drops UDP port 4791 (RoCE) or TCP port 7625 (iWARP)\n"
             "as a completion: the deadline against what was queued before it",
     .completion =
         "the deadline passed while the job was queued: it was never posted; a RECV: no message came; a "
         "long SEND: it was taken back before the peer READ it"},
    {.number = ECONNREFUSED,
     .name = "ECONNREFUSED",
     .means = "nothing listens at the peer's address, or its module is being removed",
     .look = "there: kxfer listen list, kxfer listen add ADDRESS"},
    {.number = EHOSTUNREACH,
     .name = "EHOSTUNREACH",
     .means = "no RDMA device or route leads to the peer",
     .look = "ip route get ADDRESS: an interface with an RDMA device? kxfer device list"},
    {.number = EDQUOT,
     .name = "EDQUOT",
     .means = "a limit is reached: of the session, of the links of a node (this or the peer's), of the rdma "
              "cgroup, or "
              "the share of the caller's uid",
     .look = "kxfer stat; kxfer link list\nrdma.max of the cgroup (hca_handle, hca_object)\n"
             "CAP_SYS_RESOURCE goes beyond shares"},
    {.number = ECANCELED,
     .name = "ECANCELED",
     .means = "no call gives it",
     .look = "which part of the program called KXFER_CANCEL",
     .completion =
         "cancelled while the job was queued: it was never posted; a RECV: no message came; a long SEND: "
         "it was taken back before the peer READ it"},
    {.number = ENOKEY,
     .name = "ENOKEY",
     .means = "no key of that name that the caller can search in the kernel's keyrings",
     .look = "kxfer key list; kxfer key add NAME FILE, as the same user; in a unit of systemd: "
             "KeyringMode=shared"},
    {.number = EKEYREJECTED,
     .name = "EKEYREJECTED",
     .means = "the peer has no such key, wants one, or does not prove it; or the secret in the keyring is "
              "too short",
     .look = "--key NAME here; kxfer listen list there; the same secret on both nodes, 16 bytes or more"},
    {.number = EKEYREVOKED,
     .name = "EKEYREVOKED",
     .means = "the peer withdrew the export: its process ended, or closed or deleted it; the target is of no "
              "use any "
              "more",
     .look = "kxfer ls PEER: is it published again? Then open it again\nis the serving process still there?",
     .completion = "the export was withdrawn: the job was never posted, or a long one in part"},
};

constexpr Entry known_of_tool[] = {
    {.number = ECHILD,
     .name = "ECHILD",
     .means = "a process of the tool, a client of bench or a server for itself, ended before its time",
     .look = "dmesg | grep -i 'out of memory'; was it killed? Fewer --clients"},
    {.number = ENAMETOOLONG,
     .name = "ENAMETOOLONG",
     .means = "a name of more than 63 bytes, of an export or a device: libkxfer for C++ does not cut it to "
              "another one; or a path that does not fit into a request for a folder",
     .look = "kxfer ls PEER; rdma link"},
    {.number = ENOTDIR,
     .name = "ENOTDIR",
     .means = "a part of the path of a file is no directory",
     .look = "ls -ld of each part of it"},
    {.number = ELOOP,
     .name = "ELOOP",
     .means = "the path leads over a symbolic link, in a folder that a peer serves: nobody gets over those",
     .look = "kxfer ls PEER/NAME/ shows links as other; name the place that they lead to"},
    {.number = EXDEV,
     .name = "EXDEV",
     .means = "the path leads out of the folder that a peer serves",
     .look = "kxfer ls PEER/NAME/"},
    {.number = EISDIR,
     .name = "EISDIR",
     .means = "a directory where a file is needed",
     .look = "into and out of a folder that a peer serves: --recursive\n"
             "into an export of memory, pack it: tar -c DIRECTORY | kxfer put - REMOTE"},
    {.number = EFBIG,
     .name = "EFBIG",
     .means = "what is to be sent is longer than the export, or than files may be here",
     .look = "kxfer ls PEER shows its length; there: kxfer serve NAME=mem:SIZE --writable\n"
             "a part of it: kxfer put --length\nulimit -f, and the file system: df -T ."},
    {.number = ENOSYS,
     .name = "ENOSYS",
     .means = "the kernel has no such system call: perf_event_open(2), which kxfer bench --stages needs",
     .look = "a kernel with CONFIG_PERF_EVENTS"},
    {.number = ENOSPC,
     .name = "ENOSPC",
     .means = "the file system of a file that is written is full; what arrived before is there",
     .look = "df .; df -i ."},
    {.number = EROFS,
     .name = "EROFS",
     .means = "the file system of a file that is written is mounted read-only; or a folder is served for "
              "reading only",
     .look = "findmnt -T FILE\nfor a folder, on the peer: kxfer serve --dir NAME=DIR --writable"},
    {.number = EPIPE,
     .name = "EPIPE",
     .means = "the reader of the pipe that the tool writes to is gone",
     .look = "why it ended: its own output"},
    {.number = EAFNOSUPPORT,
     .name = "EAFNOSUPPORT",
     .means = "user space of this node has no addresses of that family: IPv6 is switched off",
     .look = "sysctl net.ipv6.conf.all.disable_ipv6; cat /proc/cmdline\nkxfer serve --listen with an "
             "address of IPv4"},
    {.number = ENODATA,
     .name = "ENODATA",
     .means = "the export's owner has not said what its memory holds",
     .look = "kxfer ls PEER: generation 0 and no content; put something there first, or read the bare "
             "memory: kxfer get --length SIZE"},
    {.number = EBADMSG,
     .name = "EBADMSG",
     .means = "the data is wrong: it was moved without an error, and comparing it, or its SHA-256, says so",
     .look =
         "get and put: did a program write there meanwhile? kxfer ls PEER, is the generation another?\n"
         "bench, compare: the line tells the kind of the damage and its first byte; keep that result, it is "
         "a defect of engine, driver or device\n"
         "does kxfer compare --self-test find all that it damages? Does --engine verbs fail, too?"},
};

template <size_t N> std::vector<Entry> with_texts(const Entry (&known_ones)[N]) {
    std::vector<Entry> entries(std::begin(known_ones), std::end(known_ones));
    for (Entry& entry : entries) entry.text = strerrordesc_np(entry.number);
    return entries;
}

} // namespace

std::span<const Entry> errnos() {
    static const std::vector<Entry> all = with_texts(known);
    return all;
}

std::span<const Entry> errnos_of_tool() {
    static const std::vector<Entry> all = with_texts(known_of_tool);
    return all;
}

} // namespace kxfer::cli

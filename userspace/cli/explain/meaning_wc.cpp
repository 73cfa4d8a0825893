// SPDX-License-Identifier: MIT
//
// Statuses, opcodes, states and asynchronous events of completions, QPs and devices.
// Numbers and texts are those of libibverbs, the kernel's texts those of
// ib_wc_status_msg() and ib_event_msg() (drivers/infiniband/core/verbs.c). The meaning
// of statuses is from IBA volume 1, 11.6.2, their use in rxe and siw from
// rxe_comp.c, rxe_resp.c, siw_cq.c. tests/host/unit/test_cli_meaning.cpp compares this
// with the headers and the libraries.

#include "cli/explain/meaning.hpp"

namespace kxfer::cli {

namespace {

constexpr char reliable_datagram[] = "of the service Reliable Datagram, which Linux has never had";
constexpr char unexpected[] = "the driver: such a status cannot come of an RC, UC or UD queue pair";

constexpr Entry statuses[] = {
    {.number = 0,
     .name = "SUCCESS",
     .text = "success",
     .means =
         "done. READ: the data is here. WRITE and SEND over InfiniBand and RoCE: the peer's device has "
         "acknowledged; over iWARP: TCP has taken it, the peer may not have it yet. That the peer's program "
         "has seen it is never said"},
    {.number = 1,
     .name = "LOC_LEN_ERR",
     .text = "local length error",
     .means =
         "of a RECV: the message was longer than the memory posted for it. Of a request: longer than port or "
         "device can send (UD: than the path MTU)",
     .look = "the bytes of each posted RECV against the peer's longest SEND\n"
             "UD: does each RECV have 40 bytes more, for the GRH?\n"
             "the longest message: kxfer device show DEV\n"
             "the peer, if this was a RECV: its SEND ended with REM_INV_REQ_ERR"},
    {.number = 2,
     .name = "LOC_QP_OP_ERR",
     .text = "local QP operation error",
     .means = "the device could not process the work request as it was posted: an opcode, inline length or "
              "number of SGEs that this QP does not have, a malformed request, or a fault of the device",
     .look = "opcode, num_sge and inline length against ibv_qp_init_attr as ibv_create_qp() returned it\n"
             "vendor_err of the completion, and dmesg: the driver's own word for it"},
    {.number = 3,
     .name = "LOC_EEC_OP_ERR",
     .text = "local EE context operation error",
     .means = reliable_datagram,
     .look = unexpected},
    {.number = 4,
     .name = "LOC_PROT_ERR",
     .text = "local protection error",
     .means = "memory of this side: an SGE of the work request lies outside of a valid memory region, or the "
              "region does not allow it. Nothing is wrong at the peer",
     .look = "lkey, addr and length of each SGE: all of it inside one registered region?\n"
             "the region's PD: has to be the QP's\n"
             "deregistered, or invalidated, before the completion came?\n"
             "READ, atomics and RECV write here: the region needs IBV_ACCESS_LOCAL_WRITE"},
    {.number = 5,
     .name = "WR_FLUSH_ERR",
     .text = "Work Request Flushed Error",
     .kernel = "WR flushed",
     .means = "not done, or not finished: the QP was in the error state or went there meanwhile. Always a "
              "consequence, never the cause; whether a flushed WRITE or SEND reached the peer is unknown",
     .look = "the first completion of that QP that has another status: that is the cause\n"
             "there is none: what moved the QP to the error state? A disconnect, rdma_disconnect(), "
             "ib_drain_qp(), "
             "an asynchronous event of the QP\n"
             "the other queue of the QP and the peer's side: the cause may have been reported there"},
    {.number = 6,
     .name = "MW_BIND_ERR",
     .text = "memory management operation error",
     .kernel = "memory bind operation error",
     .means =
         "binding a memory window, registering by a work request (REG_MR) or invalidating a key (LOCAL_INV) "
         "failed",
     .look = "the region under a window: IBV_ACCESS_MW_BIND, and no right that the region itself lacks\n"
             "REG_MR: is the MR still valid, that is not invalidated since its last registration?\n"
             "LOCAL_INV: a key that is not valid any more, or is in use by a window"},
    {.number = 7,
     .name = "BAD_RESP_ERR",
     .text = "bad response error",
     .means = "the peer's device answered with an opcode or a length that does not fit the request",
     .look = "QP numbers and PSNs that were exchanged by hand: does a QP of an earlier run still answer?\n"
             "firmware and driver of both devices; a capture of the wire"},
    {.number = 8,
     .name = "LOC_ACCESS_ERR",
     .text = "local access error",
     .means =
         "this side's memory did not allow what a WRITE with immediate of the peer wanted; seen on the RECV "
         "that it took",
     .look = "IBV_ACCESS_REMOTE_WRITE of the region and of the QP here\n"
             "address, length and key that this side told the peer"},
    {.number = 9,
     .name = "REM_INV_REQ_ERR",
     .text = "remote invalid request error",
     .means =
         "the peer's device refused the request as such (NAK 'invalid request'): its QP does not take this "
         "operation, or its RECV is too short. A job of kxfer ends with EREMOTEIO",
     .look = "qp_access_flags of the peer's QP: REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC\n"
             "READs and atomics at once: max_rd_atomic here has to be at most max_dest_rd_atomic there\n"
             "SEND: the length of the RECV there, which ended with LOC_LEN_ERR\n"
             "the path MTU of both QPs has to be the same; the address of an atomic, a multiple of 8"},
    {.number = 10,
     .name = "REM_ACCESS_ERR",
     .text = "remote access error",
     .means =
         "the peer's memory does not allow it (NAK 'remote access error'): rkey, range or rights. A job of "
         "kxfer ends with EREMOTEIO",
     .look =
         "the rkey: of that region, and not from before it was registered anew, invalidated or withdrawn?\n"
         "remote_addr and length: all of it inside the region?\n"
         "rights of the region: IBV_ACCESS_REMOTE_READ, _WRITE, _ATOMIC\n"
         "its PD: has to be that of the QP over which it is reached"},
    {.number = 11,
     .name = "REM_OP_ERR",
     .text = "remote operation error",
     .means = "the peer's device could not finish it for a reason of its own (NAK 'remote operational "
              "error'): its "
              "RECV was malformed, or its QP failed. A job of kxfer ends with EREMOTEIO",
     .look =
         "completions and asynchronous events of the peer's QP: it has a LOC_* status for the same thing\n"
         "dmesg there"},
    {.number = 12,
     .name = "RETRY_EXC_ERR",
     .text = "transport retry counter exceeded",
     .means =
         "no ACK or answer came: the transport timer (4.096 us * 2^timeout, at least) ran out, and again "
         "after each of retry_cnt retries (rxe takes 7 for endless). Or the peer kept on asking for packets "
         "that were lost",
     .look =
         "the peer's QP: one that is gone, in RESET, INIT or in error does not answer; rdma resource show "
         "qp\n"
         "the path: ping; a firewall that drops UDP port 4791 (RoCE), in either direction\n"
         "small messages pass and long ones do not: the MTU; the path MTU plus headers has to fit each "
         "interface and switch between (ip link, kxfer device show DEV)\n"
         "loss under load: PFC or ECN of all switches and ports; ethtool -S, rdma statistic show link DEV/1 "
         "(rxe: completer_retry_err, rcvd_seq_err, retry_exceeded_err)\n"
         "connected by hand: QP number, PSN, GID and its index, P_Key of both ends\n"
         "too impatient: timeout below 14 (67 ms) or retry_cnt below 7 on a busy path"},
    {.number = 13,
     .name = "RNR_RETRY_EXC_ERR",
     .text = "RNR retry counter exceeded",
     .means =
         "the peer had no RECV posted ('receiver not ready'), and still had none after rnr_retry retries (7: "
         "endless), each after the min_rnr_timer of the peer's QP. SEND and WRITE with immediate take a RECV",
     .look = "does the peer post RECVs before this side sends, and as many as may be under way (credits)?\n"
             "its SRQ ran empty: the limit event of the SRQ\n"
             "rnr_retry here (rnr_retry_count of rdma_cm), min_rnr_timer there\n"
             "rdma statistic show link DEV/1 (rxe: rcvd_rnr_err here, send_rnr_err there)"},
    {.number = 14,
     .name = "LOC_RDD_VIOL_ERR",
     .text = "local RDD violation error",
     .means = reliable_datagram,
     .look = unexpected},
    {.number = 15,
     .name = "REM_INV_RD_REQ_ERR",
     .text = "remote invalid RD request",
     .means = reliable_datagram,
     .look = unexpected},
    {.number = 16,
     .name = "REM_ABORT_ERR",
     .text = "aborted error",
     .kernel = "operation aborted",
     .means = "the requester gave up a message that a RECV here had begun to take",
     .look = "the peer: why it stopped"},
    {.number = 17,
     .name = "INV_EECN_ERR",
     .text = "invalid EE context number",
     .means = reliable_datagram,
     .look = unexpected},
    {.number = 18,
     .name = "INV_EEC_STATE_ERR",
     .text = "invalid EE context state",
     .means = reliable_datagram,
     .look = unexpected},
    {.number = 19,
     .name = "FATAL_ERR",
     .text = "fatal error",
     .means = "an error of the transport from which there is no way back; rxe: an answer to another "
              "operation than "
              "the one that waits for it",
     .look = "dmesg, vendor_err, the device's asynchronous events\n"
             "connected by hand: does a QP of an earlier run still answer?"},
    {.number = 20,
     .name = "RESP_TIMEOUT_ERR",
     .text = "response timeout error",
     .means = "the answer to a request did not come in time; RC queue pairs say RETRY_EXC_ERR instead",
     .look = "as of RETRY_EXC_ERR: kxfer explain RETRY_EXC_ERR"},
    {.number = 21,
     .name = "GENERAL_ERR",
     .text = "general error",
     .means = "what fits no other status; siw: the connection broke while a RECV or READ was being filled, "
              "or a key "
              "could not be invalidated",
     .look = "dmesg of both sides, vendor_err\n"
             "iWARP: did the peer close the TCP connection, or end it with a TERMINATE message?"},
    {.number = 22,
     .name = "TM_ERR",
     .text = "TM error",
     .means = "tag matching: an operation on the list of tags of an SRQ failed",
     .look = "the handle and unexpected_cnt of the operation; the list's size (ibv_query_device_ex())"},
    {.number = 23,
     .name = "TM_RNDV_INCOMPLETE",
     .text = "TM software rendezvous",
     .means = "tag matching: a rendezvous was begun that software has to finish; no error as such",
     .look = "the program: it has to READ the message itself"},
};

constexpr Entry completion_opcodes[] = {
    {.number = 0, .name = "SEND", .means = "a SEND, with or without immediate or invalidation"},
    {.number = 1, .name = "RDMA_WRITE", .means = "a WRITE, with or without immediate, at its requester"},
    {.number = 2, .name = "RDMA_READ", .means = "a READ: the data is in the local memory"},
    {.number = 3, .name = "COMP_SWAP", .means = "compare and swap: the old value is in the local memory"},
    {.number = 4, .name = "FETCH_ADD", .means = "fetch and add: the old value is in the local memory"},
    {.number = 5, .name = "BIND_MW", .means = "a memory window was bound"},
    {.number = 6, .name = "LOCAL_INV", .means = "a key was invalidated"},
    {.number = 7, .name = "TSO", .means = "raw Ethernet: a segmented packet was sent"},
    {.number = 9, .name = "ATOMIC_WRITE", .means = "8 bytes were written at once"},
    {.number = 128,
     .name = "RECV",
     .means = "a SEND of the peer arrived; all opcodes of receiving have this bit"},
    {.number = 129,
     .name = "RECV_RDMA_WITH_IMM",
     .means = "a WRITE with immediate of the peer arrived: the RECV has the immediate, its memory nothing"},
    {.number = 130, .name = "TM_ADD", .means = "tag matching: an entry was added to the list"},
    {.number = 131, .name = "TM_DEL", .means = "tag matching: an entry was taken from the list"},
    {.number = 132,
     .name = "TM_SYNC",
     .means = "tag matching: device and software agree on what is unexpected"},
    {.number = 133, .name = "TM_RECV", .means = "tag matching: a message arrived in the memory of its tag"},
    {.number = 134, .name = "TM_NO_TAG", .means = "tag matching: a message without tag arrived"},
    {.number = 135, .name = "DRIVER1", .means = "of the driver"},
    {.number = 136, .name = "DRIVER2", .means = "of the driver"},
    {.number = 137, .name = "DRIVER3", .means = "of the driver"},
};

constexpr Entry request_opcodes[] = {
    {.number = 0, .name = "RDMA_WRITE", .means = "writes into the peer's memory; the peer is told nothing"},
    {.number = 1,
     .name = "RDMA_WRITE_WITH_IMM",
     .means = "writes, then takes a RECV of the peer for 32 bits; iWARP has it by RFC 7306 only"},
    {.number = 2, .name = "SEND", .means = "sends a message into a RECV of the peer"},
    {.number = 3, .name = "SEND_WITH_IMM", .means = "sends a message with 32 bits beside it"},
    {.number = 4,
     .name = "RDMA_READ",
     .means = "reads the peer's memory; iWARP: one SGE, in a region that the peer may write to"},
    {.number = 5,
     .name = "ATOMIC_CMP_AND_SWP",
     .means = "compares 8 bytes of the peer's memory and swaps them"},
    {.number = 6, .name = "ATOMIC_FETCH_AND_ADD", .means = "adds to 8 bytes of the peer's memory"},
    {.number = 7, .name = "LOCAL_INV", .means = "invalidates a key of this side"},
    {.number = 8, .name = "BIND_MW", .means = "binds a memory window"},
    {.number = 9, .name = "SEND_WITH_INV", .means = "sends a message and invalidates a key of the peer"},
    {.number = 10, .name = "TSO", .means = "raw Ethernet: sends a packet that the device segments"},
    {.number = 11, .name = "DRIVER1", .means = "of the driver"},
    {.number = 15, .name = "ATOMIC_WRITE", .means = "writes 8 bytes into the peer's memory at once"},
};

// Opcodes of include/rdma/ib_verbs.h that verbs.h does not have, or has under another name. All
// other opcodes have the same number and name in both.
constexpr Entry kernel_completion_opcodes[] = {
    {.number = 7, .name = "LSO", .means = "IPoIB: a packet that the device segments was sent; IBV_WC_TSO"},
    {.number = 8, .name = "REG_MR", .means = "Linux 6.1 and before: memory was registered by REG_MR"},
    {.number = 8,
     .name = "FLUSH",
     .means = "Linux 6.2 and later: what was written to the peer is visible there"},
    {.number = 9,
     .name = "MASKED_COMP_SWAP",
     .means = "Linux 6.1 and before: compare and swap of some of the bits"},
    {.number = 10, .name = "REG_MR", .means = "Linux 6.2 and later: memory was registered by REG_MR"},
    {.number = 10,
     .name = "MASKED_FETCH_ADD",
     .means = "Linux 6.1 and before: fetch and add in fields of the 8 bytes"},
    {.number = 11,
     .name = "MASKED_COMP_SWAP",
     .means = "Linux 6.2 and later: compare and swap of some of the bits"},
    {.number = 12,
     .name = "MASKED_FETCH_ADD",
     .means = "Linux 6.2 and later: fetch and add in fields of the 8 bytes"},
};

constexpr Entry kernel_request_opcodes[] = {
    {.number = 10, .name = "LSO", .means = "IPoIB: sends a packet that the device segments; IBV_WR_TSO"},
    {.number = 11,
     .name = "RDMA_READ_WITH_INV",
     .means = "iWARP: reads the peer's memory, then invalidates the key of this side that it came by"},
    {.number = 12, .name = "MASKED_ATOMIC_CMP_AND_SWP", .means = "compares and swaps some bits of 8 bytes"},
    {.number = 13, .name = "MASKED_ATOMIC_FETCH_AND_ADD", .means = "adds in fields of 8 bytes"},
    {.number = 14, .name = "FLUSH", .means = "makes what was written to the peer visible or durable there"},
    {.number = 0x20, .name = "REG_MR", .means = "registers memory, as a work request of the send queue"},
    {.number = 0x21,
     .name = "REG_MR_INTEGRITY",
     .means = "registers memory whose blocks carry checks (T10-DIF)"},
};

constexpr char see_qp[] = "the QP that the event names: rdma resource show qp\ndmesg; completions of that QP";
constexpr char see_port[] = "kxfer device show DEV; dmesg; cable and switch";

constexpr Entry events[] = {
    {.number = 0,
     .name = "CQ_ERR",
     .text = "CQ error",
     .means =
         "a CQ has overrun: more completions than entries; on a card its QPs go to error; rxe and siw lose "
         "the completion and go on, siw without the entry of the send queue it was for",
     .look =
         "entries of the CQ against all signalled work requests and RECVs of all its QPs; if a completion "
         "does not come, ibv_get_async_event() tells this"},
    {.number = 1,
     .name = "QP_FATAL",
     .text = "local work queue catastrophic error",
     .kernel = "QP fatal error",
     .means = "a QP failed so that its completions may be missing; it is in the error state",
     .look = see_qp},
    {.number = 2,
     .name = "QP_REQ_ERR",
     .text = "invalid request local work queue error",
     .kernel = "QP request error",
     .means = "the responder of a QP got a request that it must not take (see REM_INV_REQ_ERR, which the "
              "peer gets)",
     .look = see_qp},
    {.number = 3,
     .name = "QP_ACCESS_ERR",
     .text = "local access violation work queue error",
     .kernel = "QP access error",
     .means =
         "the responder of a QP got a request that its memory does not allow (see REM_ACCESS_ERR, which the "
         "peer gets)",
     .look = see_qp},
    {.number = 4,
     .name = "COMM_EST",
     .text = "communication established",
     .means = "the first packet came before the last message of connecting did; rdma_notify() goes on"},
    {.number = 5,
     .name = "SQ_DRAINED",
     .text = "send queue drained",
     .means = "a QP that was told to drain its send queue (SQD) has"},
    {.number = 6,
     .name = "PATH_MIG",
     .text = "path migrated",
     .kernel = "path migration successful",
     .means = "the connection uses its alternate path now",
     .look = "the first path: what happened to it"},
    {.number = 7,
     .name = "PATH_MIG_ERR",
     .text = "path migration request error",
     .kernel = "path migration error",
     .means = "the peer asked for the alternate path and it does not fit",
     .look = "the alternate path of both QPs"},
    {.number = 8,
     .name = "DEVICE_FATAL",
     .text = "local catastrophic error",
     .kernel = "device fatal error",
     .means = "the device failed; all that was made on it is lost",
     .look = "dmesg; firmware; a reset of the device"},
    {.number = 9, .name = "PORT_ACTIVE", .text = "port active", .means = "a port came up"},
    {.number = 10,
     .name = "PORT_ERR",
     .text = "port error",
     .means = "a port went down; connections end when their retries do",
     .look = see_port},
    {.number = 11,
     .name = "LID_CHANGE",
     .text = "LID change",
     .means =
         "InfiniBand: the subnet manager gave the port another LID; paths to it have to be looked up anew",
     .look = "the subnet manager's log"},
    {.number = 12,
     .name = "PKEY_CHANGE",
     .text = "P_Key change",
     .means = "the port's table of P_Keys changed; a QP uses an index of it",
     .look = "kxfer device show DEV; the subnet manager's partitions"},
    {.number = 13,
     .name = "SM_CHANGE",
     .text = "SM change",
     .means = "InfiniBand: another subnet manager took over",
     .look = "sminfo; the subnet managers' logs"},
    {.number = 14,
     .name = "SRQ_ERR",
     .text = "SRQ catastrophic error",
     .kernel = "SRQ error",
     .means = "a shared receive queue failed; its QPs go to error",
     .look = "dmesg; the RECVs posted to it"},
    {.number = 15,
     .name = "SRQ_LIMIT_REACHED",
     .text = "SRQ limit reached",
     .means =
         "a shared receive queue fell below the limit that it was given; the limit is off until set again",
     .look = "post RECVs, set the limit again"},
    {.number = 16,
     .name = "QP_LAST_WQE_REACHED",
     .text = "last WQE reached",
     .means = "a QP in error will take no more RECVs of its SRQ: it may be destroyed now"},
    {.number = 17,
     .name = "CLIENT_REREGISTER",
     .text = "client reregistration",
     .kernel = "client reregister",
     .means = "InfiniBand: the subnet manager asks for all registrations (multicast groups, services) again"},
    {.number = 18,
     .name = "GID_CHANGE",
     .text = "GID table change",
     .kernel = "GID changed",
     .means =
         "the port's table of GIDs changed, on RoCE because an address or interface did; a QP uses an index",
     .look = "kxfer device show DEV; ip addr"},
    {.number = 19,
     .name = "WQ_FATAL",
     .text = "WQ fatal",
     .means = "a work queue of its own (ibv_create_wq()) failed",
     .look = "dmesg"},
    {.number = 20,
     .name = "DEVICE_SPEED_CHANGE",
     .means = "newer than Linux 6.12: the speed of a port changed",
     .look = "kxfer device show DEV: rate; cable and switch"},
};

constexpr Entry states[] = {
    {.number = 0, .name = "RESET", .means = "new or reset: takes no work request, answers nothing"},
    {.number = 1,
     .name = "INIT",
     .means = "port, P_Key and rights are set: RECVs may be posted, nothing is answered"},
    {.number = 2,
     .name = "RTR",
     .means = "ready to receive: knows the peer's QP, answers it; requests cannot be posted yet",
     .look =
         "stuck here: the move to RTS (timeout, retry_cnt, rnr_retry, sq_psn, max_rd_atomic) was not made\n"
         "by rdma_cm: rdma_accept() goes through RTR to RTS, before the peer is answered, and the active "
         "side "
         "when the answer has come: it failed on the way"},
    {.number = 3, .name = "RTS", .means = "ready to send: connected, the state of work"},
    {.number = 4,
     .name = "SQD",
     .means = "the send queue drains: what was begun is finished, nothing new begins"},
    {.number = 5,
     .name = "SQE",
     .means =
         "UC and UD: a request failed; receiving goes on, the send queue is flushed until RTS is set again",
     .look = "the first completion of the send queue that is not a success"},
    {.number = 6,
     .name = "ERR",
     .means = "error: all work requests end with WR_FLUSH_ERR, the peer gets no answer",
     .look = "the first completion with another status than WR_FLUSH_ERR; asynchronous events; a disconnect"},
    {.number = 7, .name = "UNKNOWN", .means = "the driver does not say"},
};

} // namespace

std::span<const Entry> wc_statuses() { return statuses; }
std::span<const Entry> wc_opcodes() { return completion_opcodes; }
std::span<const Entry> wr_opcodes() { return request_opcodes; }
std::span<const Entry> kernel_wc_opcodes() { return kernel_completion_opcodes; }
std::span<const Entry> kernel_wr_opcodes() { return kernel_request_opcodes; }
std::span<const Entry> async_events() { return events; }
std::span<const Entry> qp_states() { return states; }

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Outcomes of connecting: reject reasons of the InfiniBand CM (IBA volume 1,
// 12.6.7.2; include/rdma/ib_cm.h, texts of ibcm_reject_msg()), its SIDR statuses, the statuses
// that rdma_cm has instead on iWARP (cma_iw_handler()), refusals of kxfer peers, rdma_cm events.

#include "cli/explain/meaning.hpp"

#include <cerrno>

#include <kxfer/kxfer.h>

namespace kxfer::cli {

namespace {

constexpr char bad_path[] = "the peer does not take this field of the primary path in the request";
constexpr char bad_alternate[] = "the peer does not take this field of the alternate path in the request";
constexpr char look_path[] = "the path record: what the subnet manager gave, or what this side filled in";
constexpr char look_datagram[] = "qp_type of the program that asks: Linux has RC, UC, UD and XRC";
constexpr char look_redirect[] =
    "another subnet manager or gateway than Linux's; connect to the port that it names";
constexpr char look_stale[] = "the peer keeps an old connection for its timewait; again after some seconds";

constexpr Entry reasons[] = {
    {.number = 1,
     .name = "NO_QP",
     .text = "no QP",
     .means = "the peer has no QP left",
     .look = "there: rdma resource show, max_qp (ibv_devinfo -v)"},
    {.number = 2,
     .name = "NO_EEC",
     .text = "no EEC",
     .means = "no EE context (Reliable Datagram: not on Linux)",
     .look = look_datagram},
    {.number = 3,
     .name = "NO_RESOURCES",
     .text = "no resources",
     .means = "the peer lacks memory or another resource for the connection",
     .look = "dmesg there; rdma resource show"},
    {.number = 4,
     .name = "TIMEOUT",
     .text = "timeout",
     .means = "the peer gave up waiting: its answer was not confirmed, or the program that asked went away "
              "meanwhile",
     .look = "loss on the way back; a program that is slow to call rdma_connect(), rdma_accept() or "
             "rdma_establish()"},
    {.number = 5,
     .name = "UNSUPPORTED",
     .text = "unsupported",
     .means = "the peer cannot do what the request asks for",
     .look = "the request's parameters; the versions of both programs"},
    {.number = 6,
     .name = "INVALID_COMM_ID",
     .text = "invalid comm ID",
     .means = "a message named a connection that the other side does not have",
     .look = look_stale},
    {.number = 7,
     .name = "INVALID_COMM_INSTANCE",
     .text = "invalid comm instance",
     .means = "local and remote id of a message do not belong together",
     .look = look_stale},
    {.number = 8,
     .name = "INVALID_SERVICE_ID",
     .text = "invalid service ID",
     .means = "nothing listens at that port: the 'connection refused' of rdma_cm. kxfer: ECONNREFUSED",
     .look = "the listener there: rdma resource show cm_id, kxfer listen list\n"
             "address, port and port space (RDMA_PS_TCP, RDMA_PS_UDP) of both; a listener bound to another "
             "address"},
    {.number = 9,
     .name = "INVALID_TRANSPORT_TYPE",
     .text = "invalid transport type",
     .means = "the peer does not take this kind of QP (RC, UC, XRC) for that service",
     .look = "qp_type of both sides"},
    {.number = 10,
     .name = "STALE_CONN",
     .text = "stale conn",
     .means = "the peer still has, or keeps in timewait, a connection of the same QP number or id, as of a "
              "node that "
              "crashed or of a QP used again too early. The old one is ended by this: try again",
     .look = look_stale},
    {.number = 11,
     .name = "RDC_NOT_EXIST",
     .text = "RDC not exist",
     .means = "no such reliable datagram channel (not on Linux)",
     .look = look_datagram},
    {.number = 12,
     .name = "INVALID_GID",
     .text = "invalid GID",
     .means = "the peer has no such GID, or cannot reach the one that asks",
     .look = "RoCE: addresses and VLAN of both interfaces, the same GID type; an address that was just taken "
             "away\n"
             "kxfer device show DEV on both"},
    {.number = 13, .name = "INVALID_LID", .text = "invalid LID", .means = bad_path, .look = look_path},
    {.number = 14, .name = "INVALID_SL", .text = "invalid SL", .means = bad_path, .look = look_path},
    {.number = 15,
     .name = "INVALID_TRAFFIC_CLASS",
     .text = "invalid traffic class",
     .means = bad_path,
     .look = look_path},
    {.number = 16,
     .name = "INVALID_HOP_LIMIT",
     .text = "invalid hop limit",
     .means = bad_path,
     .look = look_path},
    {.number = 17,
     .name = "INVALID_PACKET_RATE",
     .text = "invalid packet rate",
     .means = bad_path,
     .look = look_path},
    {.number = 18,
     .name = "INVALID_ALT_GID",
     .text = "invalid alt GID",
     .means = bad_alternate,
     .look = look_path},
    {.number = 19,
     .name = "INVALID_ALT_LID",
     .text = "invalid alt LID",
     .means = bad_alternate,
     .look = look_path},
    {.number = 20,
     .name = "INVALID_ALT_SL",
     .text = "invalid alt SL",
     .means = bad_alternate,
     .look = look_path},
    {.number = 21,
     .name = "INVALID_ALT_TRAFFIC_CLASS",
     .text = "invalid alt traffic class",
     .means = bad_alternate,
     .look = look_path},
    {.number = 22,
     .name = "INVALID_ALT_HOP_LIMIT",
     .text = "invalid alt hop limit",
     .means = bad_alternate,
     .look = look_path},
    {.number = 23,
     .name = "INVALID_ALT_PACKET_RATE",
     .text = "invalid alt packet rate",
     .means = bad_alternate,
     .look = look_path},
    {.number = 24,
     .name = "PORT_CM_REDIRECT",
     .text = "port CM redirect",
     .means = "the peer names another port for messages of connecting; Linux does not follow it",
     .look = look_redirect},
    {.number = 25,
     .name = "PORT_REDIRECT",
     .text = "port redirect",
     .means = "the peer names another port for the connection; Linux does not follow it",
     .look = look_redirect},
    {.number = 26,
     .name = "INVALID_MTU",
     .text = "invalid MTU",
     .means = "the path MTU asked for is larger than the peer takes",
     .look = "MTU of both ports and interfaces: kxfer device show DEV"},
    {.number = 27,
     .name = "INSUFFICIENT_RESP_RESOURCES",
     .text = "insufficient resp resources",
     .means = "the peer serves fewer READs and atomics at once than were asked for",
     .look = "initiator_depth here against max_qp_rd_atom there"},
    {.number = 28,
     .name = "CONSUMER_DEFINED",
     .text = "consumer defined",
     .means =
         "the program, or kernel consumer, at the peer refused (rdma_reject()), or destroyed the id of a "
         "request; the reason, if any, is in the private data. kxfer's is named: kxfer explain --kind reject "
         "KXFER_REFUSAL_PORT and so on",
     .look = "the peer's own log; kxfer: dmesg | grep kxfer on both sides"},
    {.number = 29,
     .name = "INVALID_RNR_RETRY",
     .text = "invalid RNR retry",
     .means = "the peer does not take that RNR retry count",
     .look = "rnr_retry_count of both sides, 0 to 7"},
    {.number = 30,
     .name = "DUPLICATE_LOCAL_COMM_ID",
     .text = "duplicate local comm ID",
     .means = "the peer has a request with the same id already",
     .look = look_stale},
    {.number = 31,
     .name = "INVALID_CLASS_VERSION",
     .text = "invalid class version",
     .means = "the peer's connection manager speaks another version",
     .look = "what runs at the peer: Linux's ib_cm speaks version 2"},
    {.number = 32,
     .name = "INVALID_FLOW_LABEL",
     .text = "invalid flow label",
     .means = bad_path,
     .look = look_path},
    {.number = 33,
     .name = "INVALID_ALT_FLOW_LABEL",
     .text = "invalid alt flow label",
     .means = bad_alternate,
     .look = look_path},
    {.number = 35,
     .name = "VENDOR_OPTION_NOT_SUPPORTED",
     .text = "vendor option is not supported",
     .means = "the request has an option of a vendor that the peer does not know",
     .look =
         "the same driver and firmware on both sides; enhanced connection establishment (ECE) switched off"},
};

// Service ID Resolution, by which rdma_cm finds the UD QP behind a port (RDMA_PS_UDP, RDMA_PS_IPOIB).
constexpr Entry sidr[] = {
    {.number = 0, .name = "SUCCESS", .text = "success", .means = "the QP number and the Q_Key are known"},
    {.number = 1,
     .name = "UNSUPPORTED",
     .text = "unsupported",
     .means = "nothing at the peer listens at that port: the 'connection refused' of UD. rdma_cm: "
              "RDMA_CM_EVENT_UNREACHABLE with this status",
     .look = "the listener there: rdma resource show cm_id; address, port and port space of both"},
    {.number = 2,
     .name = "REJECT",
     .text = "reject",
     .means = "the program at the peer refused (rdma_reject())",
     .look = "the peer's own log"},
    {.number = 3,
     .name = "NO_QP",
     .text = "no QP",
     .means = "the peer has no QP for that service",
     .look = "there: rdma resource show qp; did its program make a QP before rdma_accept()?"},
    {.number = 4,
     .name = "REDIRECT",
     .text = "redirect",
     .means = "the peer names another port for the service; Linux does not follow it",
     .look = look_redirect},
    {.number = 5,
     .name = "UNSUPPORTED_VERSION",
     .text = "unsupported version",
     .means = "the peer's connection manager speaks another version",
     .look = "what runs at the peer: Linux's ib_cm speaks version 2"},
};

constexpr Entry iwarp[] = {
    {.number = ECONNREFUSED,
     .name = "ECONNREFUSED",
     .text = "refused by remote application",
     .means = "RDMA_CM_EVENT_REJECTED with status -111: the program at the peer refused. siw: MPA's markers "
              "or CRC "
              "do not suit it; and rdma_connect() itself fails with it where nothing listens",
     .look = "the listener there: ss -tln, rdma resource show cm_id; the peer's own log"},
    {.number = ECONNRESET,
     .name = "ECONNRESET",
     .text = "reset by remote host",
     .means =
         "RDMA_CM_EVENT_REJECTED with status -104: siw says this of every refusal by the peer's program, and "
         "where the peer closed the connection while MPA was negotiated; kxfer therefore looks at the "
         "private "
         "data",
     .look = "the peer's own log; kxfer: dmesg | grep kxfer on both sides"},
    {.number = ETIMEDOUT,
     .name = "ETIMEDOUT",
     .text = "setup timeout",
     .means = "RDMA_CM_EVENT_UNREACHABLE with status -110: TCP is connected, but MPA's answer did not come",
     .look = "is the program at the peer stuck between the request and rdma_accept()?"},
};

constexpr Entry kxfer_refusals[] = {
    {.number = KXFER_REFUSAL_NONE,
     .name = "NONE",
     .text = "not refused",
     .kernel = "no reason given",
     .means = "the peer did not refuse"},
    {.number = KXFER_REFUSAL_MAGIC,
     .name = "MAGIC",
     .text = "it is no kxfer listener or takes this node for none",
     .kernel = "not a kxfer connection",
     .means = "the private data of the connection is not kxfer's. The caller gets EPROTONOSUPPORT",
     .look = "what listens at that port; what connects to this one (user verbs are on the port above)"},
    {.number = KXFER_REFUSAL_VERSION,
     .name = "VERSION",
     .text = "no protocol version in common",
     .means = "the modules are too far apart. The caller gets EPROTONOSUPPORT",
     .look = "modinfo kxfer, kxfer --version on both; dmesg names the versions"},
    {.number = KXFER_REFUSAL_PORT,
     .name = "PORT",
     .text = "source port not below 1024",
     .kernel = "source port is not below 1024",
     .means =
         "a connection that no kernel made, or whose port was translated on the way. The caller gets EACCES",
     .look = "address translation between the nodes; kxfer listen add --any-port where all users of all "
             "nodes are trusted"},
    {.number = KXFER_REFUSAL_COOKIE,
     .name = "COOKIE",
     .text = "data lane without the cookie of a live link",
     .kernel = "lane of no link",
     .means =
         "the link had broken at the peer when a lane of it was connected, or the request was forged. The "
         "caller gets ECONNRESET",
     .look = "again; dmesg there: why the link ended"},
    {.number = KXFER_REFUSAL_LIMIT,
     .name = "LIMIT",
     .text = "too many links there",
     .kernel = "too many links",
     .means = "the peer has as many links as it allows. The caller gets EDQUOT",
     .look = "there: kxfer link list, kxfer stat"},
    {.number = KXFER_REFUSAL_RESOURCES,
     .name = "RESOURCES",
     .text = "no memory or no room on the device there",
     .kernel = "out of memory or device resources",
     .means = "the peer could not make QP, CQ or memory for the link. The caller gets EDQUOT",
     .look = "there: dmesg, rdma resource show, rdma cgroup"},
    {.number = KXFER_REFUSAL_CLOSING,
     .name = "CLOSING",
     .text = "the node is shutting down",
     .kernel = "node is shutting down",
     .means = "the peer's module is being removed. The caller gets ECONNREFUSED",
     .look = "again, when it is back"},
    {.number = KXFER_REFUSAL_ADDRESS,
     .name = "ADDRESS",
     .text = "address is not that of the path",
     .means =
         "on RoCE a connection request names addresses, and the GIDs that its packets go by; they differ: "
         "the request was forged, or addresses are translated on the way. The caller gets EACCES",
     .look = "there: dmesg, kxfer stat (links_forged); address translation between the nodes"},
    {.number = KXFER_REFUSAL_KEY,
     .name = "KEY",
     .text = "a key is wanted by one end only, or is another one",
     .kernel = "a key is wanted by one end only, or is another one",
     .means =
         "the listener wants a shared secret and none was given, or has none where one was given, or one end "
         "did not prove the secret of the other. The caller gets EKEYREJECTED",
     .look = "there: kxfer listen list (keys); the option --key here\nis the secret the same on both nodes? "
             "sha256sum FILE"},
};

constexpr Entry events[] = {
    {.number = 0,
     .name = "ADDR_RESOLVED",
     .kernel = "address resolved",
     .means = "rdma_resolve_addr() found device and port; next: rdma_resolve_route()"},
    {.number = 1,
     .name = "ADDR_ERROR",
     .kernel = "address error",
     .means = "no RDMA device leads to the address, or no neighbour answers; the status is a negative errno: "
              "-19 (ENODEV) no RDMA device on the way, -110 (ETIMEDOUT) no neighbour, -101 or -113 no route",
     .look = "ip route get ADDRESS: an interface with an RDMA device? (rdma link)\n"
             "ip neigh: does the address answer?\n"
             "the status: kxfer explain --kind verbs STATUS"},
    {.number = 2,
     .name = "ROUTE_RESOLVED",
     .kernel = "route resolved",
     .means = "the path is known; next: rdma_connect()"},
    {.number = 3,
     .name = "ROUTE_ERROR",
     .kernel = "route error",
     .means = "no path; the status is a negative errno: -110 (ETIMEDOUT) the subnet manager did not answer, "
              "-22 (EINVAL) it knows no path",
     .look = "InfiniBand: is there a subnet manager (sminfo), is the port active?\n"
             "RoCE: the interface's MTU and state"},
    {.number = 4,
     .name = "CONNECT_REQUEST",
     .kernel = "connect request",
     .means = "of a listener: a peer wants to connect, on a new id; rdma_accept() or rdma_reject()"},
    {.number = 5,
     .name = "CONNECT_RESPONSE",
     .kernel = "connect response",
     .means = "the peer accepted; comes only to ids without a QP, which have to call rdma_establish() or "
              "rdma_accept() and move the QP themselves"},
    {.number = 6,
     .name = "CONNECT_ERROR",
     .kernel = "connect error",
     .means = "connecting failed at this side; the status is a negative errno, of the move of the QP to RTR "
              "and RTS. kxfer: ECONNRESET",
     .look = "dmesg; the QP's attributes: could it be moved to RTR and RTS?\n"
             "the status: kxfer explain --kind verbs STATUS"},
    {.number = 7,
     .name = "UNREACHABLE",
     .kernel = "unreachable",
     .means =
         "no answer to the request, which was sent 16 times, each waited for 4.1 s and twice the packet life "
         "time of the path: on RoCE that makes 98 s on Linux 6.1, 74 s on 6.12; the status is -110. Of UD it "
         "is "
         "a SIDR status (kxfer explain --kind reject IB_SIDR_UNSUPPORTED). Of a connection that was "
         "established: the neighbour has another MAC address now. kxfer: ETIMEDOUT",
     .look =
         "is the peer up, with a device and ib_core's CM? A port without any listener is REJECTED, not this\n"
         "a firewall that drops UDP port 4791; on InfiniBand P_Key and LID of the path"},
    {.number = 8,
     .name = "REJECTED",
     .kernel = "rejected",
     .means = "the peer, or its connection manager, said no; the status is a reject reason (InfiniBand and "
              "RoCE) or a "
              "negative errno (iWARP)",
     .look = "the status: kxfer explain --kind reject STATUS"},
    {.number = 9, .name = "ESTABLISHED", .kernel = "established", .means = "connected, at this side"},
    {.number = 10,
     .name = "DISCONNECTED",
     .kernel = "disconnected",
     .means =
         "the peer, or this side, ended the connection. On InfiniBand and RoCE the QP of the side that is "
         "told stays "
         "in RTS, and what it has posted is not flushed, until rdma_disconnect(), which answers the peer "
         "too, or its end; that of the side that called rdma_disconnect() is in error, and on iWARP both "
         "are. kxfer: "
         "ECONNRESET",
     .look = "the peer's own log: it ended, or its QP failed"},
    {.number = 11,
     .name = "DEVICE_REMOVAL",
     .kernel = "device removal",
     .means = "the device goes: destroy all that was made on it. kxfer: ENODEV",
     .look = "dmesg; rdma link"},
    {.number = 12, .name = "MULTICAST_JOIN", .kernel = "multicast join", .means = "the group was joined"},
    {.number = 13,
     .name = "MULTICAST_ERROR",
     .kernel = "multicast error",
     .means = "the group was not joined, or is gone; the status is a negative errno",
     .look = "InfiniBand: the subnet manager; RoCE: IGMP of interface and switch\n"
             "the status: kxfer explain --kind verbs STATUS"},
    {.number = 14,
     .name = "ADDR_CHANGE",
     .kernel = "address change",
     .means = "the interface under the id moved to another device, as in a bond; the connection stays at the "
              "old one. "
              "kxfer ends the link: ECONNRESET",
     .look = "ip link, the bond's log"},
    {.number = 15,
     .name = "TIMEWAIT_EXIT",
     .kernel = "timewait exit",
     .means = "late packets of the ended connection are gone: its QP may be used again"},
    {.number = 16,
     .name = "ADDRINFO_RESOLVED",
     .means = "newer than Linux 6.12: rdma_resolve_addrinfo() found the address of an InfiniBand service"},
    {.number = 17,
     .name = "ADDRINFO_ERROR",
     .means = "newer than Linux 6.12: the subnet manager knows no service of that name or id, or did not "
              "answer; the "
              "status is a negative errno",
     .look = "the subnet manager's services (saquery -S)\n"
             "the status: kxfer explain --kind verbs STATUS"},
    {.number = 18,
     .name = "USER",
     .means = "newer than Linux 6.12: an event that the program itself sent to its event channel "
              "(rdma_write_cm_event())"},
    {.number = 19,
     .name = "INTERNAL",
     .means = "newer than Linux 6.12: of librdmacm's own use; programs do not get it"},
};

} // namespace

std::span<const Entry> reject_reasons() { return reasons; }
std::span<const Entry> sidr_statuses() { return sidr; }
std::span<const Entry> iwarp_rejects() { return iwarp; }
std::span<const Entry> refusals() { return kxfer_refusals; }
std::span<const Entry> cm_events() { return events; }

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
#include "libfabric/info.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "libfabric/address.hpp"
#include "libfabric/device_memory.hpp"
#include "libfabric/object.hpp"
#include "libfabric/parameters.hpp"

namespace kxfer::fi {

namespace {

constexpr uint64_t tx_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE;
constexpr uint64_t rx_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ |
                             FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
constexpr uint64_t domain_caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr uint64_t all_caps = tx_caps | rx_caps | domain_caps;
constexpr uint64_t device_caps = has_device_memory ? FI_HMEM : 0; // only for those who ask
constexpr uint64_t primary_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
constexpr uint64_t memory_caps = FI_RMA | FI_ATOMIC;
constexpr uint64_t caps_of_many = FI_DIRECTED_RECV | FI_SOURCE; // with one peer they say nothing
constexpr uint64_t tx_op_flags =
    FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
constexpr uint64_t rx_op_flags = FI_COMPLETION | FI_MULTI_RECV;
// Documentation/uapi.rst, "Order": what a session has in flight to a peer is on one lane.
// Peer::order_flags() keeps what follows an atomic behind it.
constexpr uint64_t order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_RMA_WAW |
                           FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                           FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
constexpr int mr_modes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
constexpr int device_mr_mode = has_device_memory ? FI_MR_HMEM : 0;
constexpr int old_mr_modes = FI_MR_BASIC | FI_MR_SCALABLE;
constexpr uint32_t protocol = 1U << 31 | 0x6b78;    // of a provider, by its high bit
constexpr uint64_t tag_format = 0xaaaaaaaaaaaaaaaa; // all 64 bits, as one field

// fi_getinfo()'s flag of libfabric's utility providers, when they look for one to be put over
// (OFI_CORE_PROV_ONLY of its ofi.h, the same from 1.17 to 2.6). ofi_rxm would make an FI_EP_RDM of our
// FI_EP_MSG, and be before our own in the list.
constexpr uint64_t for_utility_provider = 1ULL << 59;

struct Local {
    Address address; // the number is 0
    std::string device;
    bool atomics; // the device has them
};

// ---- hints ----

bool refuse(const char* what) {
    FI_INFO(&provider, FI_LOG_CORE, "not what the hints ask for: %s\n", what);
    return false;
}

bool ep_fits(const fi_ep_attr* attr) {
    if (!attr) return true;
    if (attr->type != FI_EP_UNSPEC && attr->type != FI_EP_RDM && attr->type != FI_EP_MSG)
        return refuse("type of endpoint");
    if (attr->protocol != FI_PROTO_UNSPEC && attr->protocol != protocol) return refuse("protocol");
    if (attr->max_msg_size > longest) return refuse("max_msg_size");
    if (attr->tx_ctx_cnt > 1 || attr->rx_ctx_cnt > 1) return refuse("several or shared contexts");
    if (attr->auth_key_size > 0) return refuse("auth_key");
    return true;
}

bool tx_fits(const fi_tx_attr* attr) {
    if (!attr) return true;
    if (attr->caps & ~(tx_caps | domain_caps | device_caps)) return refuse("tx_attr: caps");
    if (attr->op_flags & ~tx_op_flags) return refuse("tx_attr: op_flags");
    if (attr->msg_order & ~order) return refuse("tx_attr: msg_order");
    if (attr->comp_order & ~FI_ORDER_DATA) return refuse("tx_attr: comp_order");
    if (attr->inject_size > payload_bytes) return refuse("tx_attr: inject_size");
    if (attr->size > queue_size_max) return refuse("tx_attr: size");
    if (attr->iov_limit > iov_limit || attr->rma_iov_limit > 1) return refuse("tx_attr: iov_limit");
    return true;
}

bool rx_fits(const fi_rx_attr* attr) {
    if (!attr) return true;
    if (attr->caps & ~(rx_caps | domain_caps | device_caps)) return refuse("rx_attr: caps");
    if (attr->op_flags & ~rx_op_flags) return refuse("rx_attr: op_flags");
    if (attr->msg_order & ~order) return refuse("rx_attr: msg_order");
    if (attr->comp_order & ~FI_ORDER_DATA) return refuse("rx_attr: comp_order");
    if (attr->size > queue_size_max) return refuse("rx_attr: size");
    if (attr->iov_limit > iov_limit) return refuse("rx_attr: iov_limit");
    return true;
}

// What is exported is pinned, so programs that export must promise FI_MR_ALLOCATED, except by an API
// that did not have the word.
bool mr_mode_fits(uint32_t version, uint64_t caps, int mode) {
    if (!(caps & memory_caps) || FI_VERSION_LT(version, FI_VERSION(1, 5)) || mode & old_mr_modes) return true;
    return mode & FI_MR_ALLOCATED ? true : refuse("memory that need not be allocated");
}

// The CPU would have to copy messages, and atomics would need memory of the process for their results.
bool device_memory_fits(const fi_info& hints) {
    if (!(hints.caps & FI_HMEM)) return true;
    if (hints.caps & primary_caps & ~FI_RMA) return refuse("FI_HMEM with more than FI_RMA");
    if (hints.tx_attr && hints.tx_attr->inject_size > 0) return refuse("FI_HMEM with inject_size");
    bool registers = hints.domain_attr && hints.domain_attr->mr_mode & FI_MR_HMEM;
    return registers ? true : refuse("FI_HMEM without FI_MR_HMEM");
}

bool domain_fits(const fi_domain_attr* attr) {
    if (!attr) return true;
    if (attr->control_progress == FI_PROGRESS_AUTO || attr->data_progress == FI_PROGRESS_AUTO)
        return refuse("automatic progress");
    if (attr->mr_key_size > 8 || attr->cq_data_size > 8) return refuse("size of keys or data");
    if (attr->caps & ~(domain_caps)) return refuse("domain_attr: caps");
    if (attr->max_ep_tx_ctx > 1 || attr->max_ep_rx_ctx > 1) return refuse("several contexts");
    if (attr->auth_key_size > 0) return refuse("auth_key");
    return true;
}

uint64_t caps_for(const fi_info* hints, bool atomics, fi_ep_type type) {
    uint64_t missing = atomics ? 0 : FI_ATOMIC;
    if (!hints || !hints->caps) return all_caps & ~(missing | (type == FI_EP_MSG ? caps_of_many : 0));
    uint64_t caps = hints->caps;
    if (!(caps & primary_caps)) caps |= caps & FI_HMEM ? FI_RMA : primary_caps & ~missing;
    if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV))) caps |= FI_SEND | FI_RECV;
    if (caps & memory_caps && !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
        caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    return caps | domain_caps;
}

bool fits(uint32_t version, const fi_info* hints) {
    if (!hints) return true;
    if (hints->caps & ~(all_caps | device_caps)) return refuse("caps");
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_SOCKADDR &&
        hints->addr_format != FI_SOCKADDR_IN && hints->addr_format != FI_SOCKADDR_IN6)
        return refuse("addr_format");
    if (hints->fabric_attr && hints->fabric_attr->name && strcmp(hints->fabric_attr->name, fabric_name) != 0)
        return refuse("name of the fabric");
    return ep_fits(hints->ep_attr) && tx_fits(hints->tx_attr) && rx_fits(hints->rx_attr) &&
           domain_fits(hints->domain_attr) && device_memory_fits(*hints) &&
           (!hints->domain_attr ||
            mr_mode_fits(version, caps_for(hints, true, FI_EP_RDM), hints->domain_attr->mr_mode));
}

bool type_fits(const fi_info* hints, fi_ep_type type, uint64_t flags) {
    if (type == FI_EP_MSG && flags & for_utility_provider) return refuse("no other provider over this one");
    if (!hints) return true;
    if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != type) return false;
    uint64_t caps = hints->caps | (hints->rx_attr ? hints->rx_attr->caps : 0);
    return type == FI_EP_RDM || !(caps & caps_of_many) || refuse("caps: of connected endpoints");
}

// ---- own addresses ----

// What a listener on all addresses stands for.
void add_interfaces(const Address& listener, const Local& as, std::vector<Local>& to) {
    ifaddrs* all;
    if (getifaddrs(&all) < 0) return;
    for (ifaddrs* one = all; one; one = one->ifa_next) {
        Address address;
        if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || one->ifa_flags & IFF_LOOPBACK) continue;
        if (!from_sockaddr(one->ifa_addr, sizeof(sockaddr_in6), address)) continue;
        if (address.family != listener.family && listener.family != AF_INET6) continue;
        if (address.scope_id == 0) to.push_back({address, as.device, as.atomics});
    }
    freeifaddrs(all);
}

bool is_known(const std::vector<Local>& locals, const Address& address) {
    return std::any_of(locals.begin(), locals.end(),
                       [&](const Local& l) { return same_node(l.address, address); });
}

// Whether all devices have atomics, or the one of this name, if it is not empty.
bool have_atomics(kxfer_session* session, const char* name) {
    kxfer_info_device record;
    uint64_t cursor = 0;
    bool found = false;
    while (kxfer_session_info(session, KXFER_INFO_DEVICES, &cursor, &record, sizeof(record), 1) == 1) {
        if (*name && strcmp(name, reinterpret_cast<const char*>(record.name)) != 0) continue;
        if (!(record.flags & KXFER_DEVICE_ATOMIC)) return false;
        found = true;
    }
    return found;
}

std::vector<Local> own_addresses() {
    std::vector<Local> all, chosen;
    kxfer_session* session;
    kxfer_info_listener record;
    uint64_t cursor = 0;
    int ret = kxfer_session_open(nullptr, &session);
    if (ret < 0) {
        FI_INFO(&provider, FI_LOG_CORE, "cannot open " KXFER_DEVICE_PATH ": %s\n", strerror(-ret));
        return {};
    }
    while (kxfer_session_info(session, KXFER_INFO_LISTENERS, &cursor, &record, sizeof(record), 1) == 1) {
        uint16_t port = parameters().port ? parameters().port : KXFER_PORT;
        if (!record.active || record.addr.port != port) continue;
        const char* device = reinterpret_cast<const char*>(record.device);
        record.addr.port = 0;
        Local local{record.addr, *device ? device : fabric_name, have_atomics(session, device)};
        if (is_unspecified(record.addr))
            add_interfaces(record.addr, local, all);
        else
            all.push_back(local);
    }
    kxfer_session_close(session);
    for (const Local& local : all) {
        Address address = local.address;
        address.port = 0;
        std::string text = text_of(address);
        if (!parameters().address.empty() && parameters().address != text) continue;
        if (!is_known(chosen, address)) chosen.push_back({address, local.device, local.atomics});
    }
    if (all.empty())
        FI_INFO(&provider, FI_LOG_CORE,
                "this node listens on no address; as root: kxfer listen add ADDRESS\n");
    return chosen;
}

// ---- the answer ----

void fill_ep(fi_ep_attr& attr, fi_ep_type type) {
    attr.type = type;
    attr.protocol = protocol;
    attr.protocol_version = wire_version;
    attr.max_msg_size = longest;
    attr.max_order_raw_size = attr.max_order_waw_size = longest;
    attr.mem_tag_format = tag_format;
    attr.tx_ctx_cnt = attr.rx_ctx_cnt = 1;
}

void fill_domain(fi_domain_attr& attr, const Local& local, const fi_info* hints, uint64_t caps) {
    attr.name = strdup(local.device.c_str());
    attr.threading = FI_THREAD_SAFE;
    attr.control_progress = attr.data_progress = FI_PROGRESS_MANUAL;
    attr.resource_mgmt = FI_RM_ENABLED;
    attr.av_type = FI_AV_UNSPEC;
    attr.mr_mode = caps & memory_caps ? FI_MR_ALLOCATED : 0;
    attr.mr_key_size = attr.cq_data_size = 8;
    attr.cq_cnt = attr.cntr_cnt = 65536;
    attr.ep_cnt = attr.tx_ctx_cnt = attr.rx_ctx_cnt = 16;
    attr.max_ep_tx_ctx = attr.max_ep_rx_ctx = 1;
    attr.mr_iov_limit = 1;
    attr.mr_cnt = 1000;
    attr.caps = domain_caps;
    if (!hints || !hints->domain_attr) return;
    attr.av_type = hints->domain_attr->av_type;
    if (hints->domain_attr->threading != FI_THREAD_UNSPEC) attr.threading = hints->domain_attr->threading;
    if (caps & memory_caps) {
        int mode = hints->domain_attr->mr_mode;
        int known = caps & FI_HMEM ? mr_modes | device_mr_mode : mr_modes;
        attr.mr_mode = mode & old_mr_modes ? mode & old_mr_modes : mode & known;
    }
}

void fill_queues(fi_info& info, const fi_info* hints) {
    info.tx_attr->caps = info.caps & (tx_caps | device_caps);
    info.rx_attr->caps = info.caps & (rx_caps | device_caps);
    info.tx_attr->msg_order = info.rx_attr->msg_order = order;
    info.tx_attr->size = info.rx_attr->size = queue_size;
    info.tx_attr->inject_size = info.caps & FI_HMEM ? 0 : payload_bytes;
    info.tx_attr->iov_limit = info.rx_attr->iov_limit = iov_limit;
    info.tx_attr->rma_iov_limit = 1;
    if (hints && hints->tx_attr) {
        info.tx_attr->op_flags = hints->tx_attr->op_flags;
        if (hints->tx_attr->size) info.tx_attr->size = hints->tx_attr->size;
    }
    if (hints && hints->rx_attr) {
        info.rx_attr->op_flags = hints->rx_attr->op_flags;
        if (hints->rx_attr->size) info.rx_attr->size = hints->rx_attr->size;
    }
}

void set_address(const Address& address, void** to, size_t* length) {
    sockaddr_storage storage;
    *length = to_sockaddr(address, storage);
    *to = malloc(*length);
    if (*to) memcpy(*to, &storage, *length);
}

fi_info* answer(uint32_t version, fi_ep_type type, const Local& local, uint16_t number, const Address* peer,
                const fi_info* hints) {
    fi_info* info = fi_allocinfo();
    if (!info) return nullptr;
    info->caps = caps_for(hints, local.atomics, type);
    info->addr_format = local.address.family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    if (type == FI_EP_MSG && hints) info->handle = hints->handle;
    fill_ep(*info->ep_attr, type);
    fill_domain(*info->domain_attr, local, hints, info->caps);
    if (FI_VERSION_LT(version, FI_VERSION(1, 5)) && !(info->domain_attr->mr_mode & old_mr_modes))
        info->domain_attr->mr_mode = info->caps & memory_caps ? FI_MR_BASIC : 0;
    fill_queues(*info, hints);
    info->fabric_attr->name = strdup(fabric_name);
    info->fabric_attr->prov_version = provider.version;
    info->fabric_attr->api_version = version;
    Address own = local.address;
    own.port = number;
    set_address(own, &info->src_addr, &info->src_addrlen);
    if (peer) set_address(*peer, &info->dest_addr, &info->dest_addrlen);
    return info;
}

// The addresses that the call names: the own one (`from`), and that of a peer (`to`).
struct Ends {
    Address from{}, to{};
    bool has_from = false, has_to = false;
};

int family_of(const fi_info* hints) {
    if (!hints) return AF_UNSPEC;
    if (hints->addr_format == FI_SOCKADDR_IN) return AF_INET;
    return hints->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_UNSPEC;
}

int find_ends(const char* node, const char* service, uint64_t flags, const fi_info* hints, Ends& ends) {
    if (hints && hints->src_addr)
        ends.has_from = from_sockaddr(hints->src_addr, hints->src_addrlen, ends.from);
    if (hints && hints->dest_addr)
        ends.has_to = from_sockaddr(hints->dest_addr, hints->dest_addrlen, ends.to);
    if (!node && !service) return 0;
    if (flags & FI_SOURCE) {
        ends.has_from = true;
        return resolve(node, service, family_of(hints), flags, ends.from);
    }
    if (!node) return 0;
    ends.has_to = true;
    return resolve(node, service, family_of(hints), flags, ends.to);
}

bool wants_atomics(const fi_info* hints) {
    return hints && (hints->caps | (hints->tx_attr ? hints->tx_attr->caps : 0) |
                     (hints->rx_attr ? hints->rx_attr->caps : 0)) &
                        FI_ATOMIC;
}

bool is_wanted(const Local& local, const Ends& ends, const fi_info* hints) {
    int family = family_of(hints);
    if (wants_atomics(hints) && !local.atomics) return refuse("atomics: the device has none");
    if (family != AF_UNSPEC && local.address.family != family) return false;
    if (ends.has_to && ends.to.family != local.address.family) return false;
    if (ends.has_from && !is_unspecified(ends.from) && !same_node(ends.from, local.address)) return false;
    return !hints || !hints->domain_attr || !hints->domain_attr->name ||
           local.device == hints->domain_attr->name;
}

} // namespace

bool set_ends(fi_info& info, const Address& own, const Address& peer) {
    free(info.src_addr);
    free(info.dest_addr);
    set_address(own, &info.src_addr, &info.src_addrlen);
    set_address(peer, &info.dest_addr, &info.dest_addrlen);
    return info.src_addr && info.dest_addr;
}

int effective_mr_mode(int mode) { return mode & FI_MR_BASIC ? FI_MR_VIRT_ADDR | FI_MR_PROV_KEY : mode; }

int get_info(uint32_t version, const char* node, const char* service, uint64_t flags, const fi_info* hints,
             fi_info** info) {
    return guarded([&] {
        Ends ends;
        fi_info *first = nullptr, **last = &first;
        if (!fits(version, hints)) return -FI_ENODATA;
        int ret = find_ends(node, service, flags, hints, ends);
        if (ret != 0) return ret;
        for (const Local& local : own_addresses()) {
            if (!is_wanted(local, ends, hints)) continue;
            for (fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
                if (!type_fits(hints, type, flags)) continue;
                *last = answer(version, type, local, ends.has_from ? ends.from.port : 0,
                               ends.has_to ? &ends.to : nullptr, hints);
                if (*last) last = &(*last)->next;
            }
        }
        *info = first;
        return first ? 0 : -FI_ENODATA;
    });
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/domain.hpp"

#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "libfabric/av.hpp"
#include "libfabric/counter.hpp"
#include "libfabric/cq.hpp"
#include "libfabric/endpoint.hpp"
#include "libfabric/fabric.hpp"
#include "libfabric/info.hpp"
#include "libfabric/member.hpp"
#include "libfabric/mr.hpp"
#include "libfabric/object.hpp"
#include "libfabric/parameters.hpp"

namespace kxfer::fi {

namespace {

constexpr uint32_t ring_entries = 4096;
constexpr uint32_t timeout_ms = 10000;
// The device sends again what is not acknowledged in 4.3 s (4.096 us * 2^20), as Open MPI's openib had it.
// Where more ranks than CPUs poll, those that work for the device may wait long for a CPU.
constexpr uint32_t ack_timeout = 20;
constexpr uint64_t tick_ns = 1000000000;

int no_scalable_ep(fid_domain*, fi_info*, fid_ep**, void*) { return -FI_ENOSYS; }
int no_poll_open(fid_domain*, fi_poll_attr*, fid_poll**) { return -FI_ENOSYS; }
int no_stx_ctx(fid_domain*, fi_tx_attr*, fid_stx**, void*) { return -FI_ENOSYS; }
int no_srx_ctx(fid_domain*, fi_rx_attr*, fid_ep**, void*) { return -FI_ENOSYS; }
int no_collective(fid_domain*, fi_collective_op, fi_collective_attr*, uint64_t) { return -FI_ENOSYS; }

fi_ops_domain make_domain_ops() {
    fi_ops_domain ops{};
    ops.size = sizeof(ops);
    ops.av_open = Av::open;
    ops.cq_open = Cq::open;
    ops.endpoint = Endpoint::open;
    ops.scalable_ep = no_scalable_ep;
    ops.cntr_open = Counter::open;
    ops.poll_open = no_poll_open;
    ops.stx_ctx = no_stx_ctx;
    ops.srx_ctx = no_srx_ctx;
    ops.query_atomic = query_atomic;
    ops.query_collective = no_collective;
    return ops;
}

} // namespace

uint64_t random_number() {
    uint64_t number = 0;
    while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    }
    return number;
}

Domain::~Domain() {
    kxfer_session_close(session);
    if (timer_ >= 0) ::close(timer_);
}

int Domain::start_timer() {
    itimerspec period{};
    period.it_interval.tv_sec = period.it_value.tv_sec = 1;
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_ < 0 || timerfd_settime(timer_, 0, &period, nullptr) < 0) return -errno;
    return 0;
}

int Domain::start(const fi_info& info) {
    int ret = kxfer_session_open(nullptr, &session);
    if (ret == 0) ret = kxfer_ring_open(session, ring_entries, -1);
    if (ret == 0) ret = start_timer();
    if (ret != 0) {
        FI_WARN(&provider, FI_LOG_DOMAIN, "cannot open a session: %s\n", fi_strerror(-ret));
        return ret;
    }
    id = random_number();
    address_format = info.addr_format;
    has_atomics_ = (info.caps & FI_ATOMIC) != 0;
    has_device_memory_ = (info.caps & FI_HMEM) != 0;
    mr_mode_ = effective_mr_mode(info.domain_attr->mr_mode);
    return 0;
}

int Domain::open(fid_fabric* handle, fi_info* info, fid_domain** domain, void* context) {
    static fi_ops ops = make_ops(close);
    static fi_ops_domain domain_ops = make_domain_ops();
    static fi_ops_mr mr_ops = Mr::make_registration_ops();
    Fabric& fabric = object_of<Fabric>(handle);
    return guarded([&] {
        auto made = std::make_unique<Domain>(fabric);
        int ret = made->start(*info);
        if (ret != 0) return ret;
        made->fid.fclass = FI_CLASS_DOMAIN;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->Base::ops = &domain_ops;
        made->mr = &mr_ops;
        fabric.users++;
        *domain = made.release();
        return 0;
    });
}

int Domain::close(struct ::fid* handle) {
    Domain& self = object_of<Domain>(handle);
    if (self.users > 0) return -FI_EBUSY;
    self.fabric_.users--;
    delete &self;
    return 0;
}

void Domain::remove(Member& member) { std::erase(members_, &member); }

int Domain::submit(kxfer_job job, Pending& pending) {
    int refused = 0;
    job.user_data = pending.user_data();
    int ret = kxfer_job_submit(session, &job, 1, &refused);
    if (ret == 1) return 0;
    if (ret == 0) ret = refused;
    return ret == -EINTR || ret == -EDQUOT ? -FI_EAGAIN : ret;
}

void Domain::progress() {
    kxfer_completion ended[64];
    uint32_t nr;
    do {
        nr = kxfer_ring_take(session, ended, 64);
        for (uint32_t i = 0; i < nr; i++) reinterpret_cast<Pending*>(ended[i].user_data)->ended(ended[i]);
    } while (nr == 64);
    for (Member* member : members_) member->go_on();
    if (kxfer_clock_ns() >= next_tick_ns_) tick();
}

void Domain::quiet_timer() {
    uint64_t expirations;
    [[maybe_unused]] ssize_t bytes = ::read(timer_, &expirations, sizeof(expirations));
}

void Domain::tick() {
    next_tick_ns_ = kxfer_clock_ns() + tick_ns;
    for (Member* member : members_) member->look_after();
}

void Domain::doze() {
    kxfer_ring_wait(session, 1, kxfer_clock_ns() + 10000000);
    progress();
}

int Domain::connect_node(const Address& node, uint32_t* peer) {
    for (const Node& known : nodes_) {
        if (!same_node(known.address, node)) continue;
        *peer = known.peer;
        return 0;
    }
    kxfer_peer_open args{};
    args.remote = node;
    args.remote.port = parameters().port;
    args.timeout_ms = timeout_ms;
    args.ack_timeout = ack_timeout;
    if (parameters().key.size() >= sizeof(args.key)) return -FI_ENOKEY; // rather than go without one
    parameters().key.copy(reinterpret_cast<char*>(args.key), sizeof(args.key));
    int ret = kxfer_peer_connect(session, &args);
    if (ret != 0) {
        FI_WARN(&provider, FI_LOG_EP_CTRL, "cannot connect with %s: %s%s%s\n", text_of(args.remote).c_str(),
                fi_strerror(-ret), args.refusal ? ": " : "",
                args.refusal ? kxfer_refusal_text(args.refusal) : "");
        return ret;
    }
    nodes_.push_back({node, args.peer});
    *peer = args.peer;
    return 0;
}

int Domain::add_region(const void* at, size_t length, bool writable, uint32_t* region) {
    return kxfer_region_create(session, const_cast<void*>(at), length, writable ? KXFER_REGION_F_WRITE : 0,
                               region);
}

int Domain::import_region(const Source& source, bool writable, uint32_t* region) {
    return kxfer_region_import(session, source.dmabuf_fd, source.dmabuf_offset, source.length,
                               writable ? KXFER_REGION_F_WRITE : 0, region);
}

void Domain::remove_region(uint32_t region) {
    while (kxfer_region_destroy(session, region) == -EBUSY) doze();
}

static void set_name(uint8_t (&to)[KXFER_NAME_MAX + 1], const std::string& name) {
    memcpy(to, name.c_str(), std::min(name.size(), sizeof(to) - 1));
}

const kxfer_rule* Domain::rule_for(uint32_t rights, kxfer_rule& rule) const {
    if (parameters().any_user) return nullptr;
    rule = {};
    rule.match = KXFER_RULE_UID;
    rule.rights = rights;
    rule.uid = geteuid();
    return &rule;
}

int Domain::add_export(const std::string& name, uint32_t region, uint64_t offset, uint64_t length,
                       uint32_t rights, uint64_t cookie, uint32_t* export_id) {
    kxfer_export_add args{};
    kxfer_rule rule;
    args.region = region;
    args.rights = rights;
    args.offset = offset;
    args.length = length;
    args.cookie = cookie;
    args.rules = reinterpret_cast<uintptr_t>(rule_for(rights, rule));
    args.nr_rules = args.rules ? 1 : 0;
    set_name(args.name, name);
    int ret = kxfer_export_create(session, &args);
    *export_id = args.export_id;
    return ret;
}

int Domain::open_target(const Address& node, const std::string& name, uint32_t rights, uint64_t word,
                        kxfer_target_open* opened) {
    *opened = {};
    int ret = connect_node(node, &opened->peer);
    if (ret != 0) return ret;
    opened->rights = rights;
    opened->word = word;
    opened->timeout_ms = timeout_ms;
    set_name(opened->name, name);
    return kxfer_target_create(session, opened);
}

} // namespace kxfer::fi

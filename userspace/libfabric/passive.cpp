// SPDX-License-Identifier: MIT
#include "libfabric/passive.hpp"

#include "libfabric/connection.hpp"
#include "libfabric/eq.hpp"
#include "libfabric/fabric.hpp"
#include "libfabric/info.hpp"
#include "libfabric/note.hpp"
#include "libfabric/object.hpp"

namespace kxfer::fi {

namespace {

// A request is one message of a sender; what is not taken out in time waits in its place.
constexpr Mailbox::Size size_for_requests = {256, 64};
constexpr int backlog_max = 1024;

int no_option(fid_t, int, int, const void*, size_t) { return -FI_ENOPROTOOPT; }
int no_peer(fid_ep*, void*, size_t*) { return -FI_ENOSYS; }
int no_connect(fid_ep*, const void*, const void*, size_t) { return -FI_ENOSYS; }
int no_accept(fid_ep*, const void*, size_t) { return -FI_ENOSYS; }
int no_shutdown(fid_ep*, uint64_t) { return -FI_ENOSYS; }
int no_join(fid_ep*, const void*, uint64_t, fid_mc**, void*) { return -FI_ENOSYS; }

} // namespace

Passive::Passive(Fabric& fabric, fi_info* info)
    : Base{}, fabric_(fabric), info_(info), domain_(fabric), pool_(domain_),
      mailbox_(domain_, *this, size_for_requests) {
    from_sockaddr(info->src_addr, info->src_addrlen, address_);
}

Passive::~Passive() { fi_freeinfo(info_); }

fi_ops_ep Passive::make_ep_ops() {
    fi_ops_ep ops{};
    ops.size = sizeof(ops);
    ops.getopt = get_option;
    ops.setopt = no_option;
    return ops;
}

fi_ops_cm Passive::make_cm_ops() {
    fi_ops_cm ops{};
    ops.size = sizeof(ops);
    ops.setname = set_name;
    ops.getname = get_name;
    ops.getpeer = no_peer;
    ops.connect = no_connect;
    ops.listen = listen;
    ops.accept = no_accept;
    ops.reject = reject;
    ops.shutdown = no_shutdown;
    ops.join = no_join;
    return ops;
}

int Passive::open(fid_fabric* handle, fi_info* info, fid_pep** passive, void* context) {
    static fi_ops own_ops = make_ops(close, bind, control);
    static fi_ops_ep ep_ops = make_ep_ops();
    static fi_ops_cm cm_ops = make_cm_ops();
    Fabric& fabric = object_of<Fabric>(handle);
    if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_MSG) return -FI_EINVAL;
    return guarded([&] {
        fi_info* copy = fi_dupinfo(info);
        if (!copy) return -FI_ENOMEM;
        auto* made = new Passive(fabric, copy);
        made->fid.fclass = FI_CLASS_PEP;
        made->fid.context = context;
        made->fid.ops = &own_ops;
        made->ops = &ep_ops;
        made->cm = &cm_ops;
        fabric.handles.add(*made);
        fabric.users++;
        *passive = made;
        return 0;
    });
}

int Passive::close(struct ::fid* handle) {
    Passive& self = object_of<Passive>(handle);
    {
        std::lock_guard guard(self.domain_.lock);
        while (self.notes_ > 0) self.domain_.doze();
        self.mailbox_.close();
        while (self.mailbox_.in_flight() > 0) self.domain_.doze();
        self.domain_.remove(self);
    }
    if (self.listens_) self.eq_->unwatch(self.domain_);
    if (self.eq_) {
        self.eq_->forget(&self.fid);
        self.eq_->users--;
    }
    self.fabric_.handles.remove(self);
    self.fabric_.users--;
    delete &self;
    return 0;
}

int Passive::bind(struct ::fid* handle, struct ::fid* other, uint64_t flags) {
    Passive& self = object_of<Passive>(handle);
    if (flags != 0) return -FI_EBADFLAGS;
    if (other->fclass != FI_CLASS_EQ || self.eq_) return -FI_EINVAL;
    self.eq_ = &object_of<Eq>(other);
    self.eq_->users++;
    return 0;
}

int Passive::control(struct ::fid* handle, int command, void* argument) {
    Passive& self = object_of<Passive>(handle);
    if (command != FI_BACKLOG) return -FI_ENOSYS;
    int wanted = *static_cast<int*>(argument);
    if (wanted < 1 || wanted > backlog_max) return -FI_EINVAL;
    std::lock_guard guard(self.domain_.lock);
    self.backlog_ = static_cast<size_t>(wanted);
    return 0;
}

int Passive::get_option(fid_t, int level, int name, void* value, size_t* length) {
    return get_cm_data_size(level, name, value, length);
}

// From now on the number is this endpoint's.
int Passive::make_mailbox() {
    if (mailbox_.is_open()) return 0;
    if (is_unspecified(address_)) return -FI_EADDRNOTAVAIL; // nobody could answer
    int ret = domain_.session ? 0 : domain_.start(*info_);
    return ret == 0 ? mailbox_.open(address_) : ret;
}

int Passive::set_name(fid_t handle, void* address, size_t length) {
    Passive& self = object_of<Passive>(handle);
    Address wanted;
    if (!from_sockaddr(address, length, wanted)) return -FI_EINVAL;
    return guarded([&] {
        std::lock_guard guard(self.domain_.lock);
        if (self.listens_) return -FI_EOPBADSTATE;
        self.mailbox_.close();
        self.address_ = wanted;
        return self.make_mailbox();
    });
}

int Passive::get_name(fid_t handle, void* address, size_t* length) {
    Passive& self = object_of<Passive>(handle);
    std::lock_guard guard(self.domain_.lock);
    return copy_sockaddr(self.address_, address, length);
}

int Passive::give_address(Address& address) {
    std::lock_guard guard(domain_.lock);
    if (listens_) return -FI_EBUSY;
    mailbox_.close();
    address = address_;
    return 0;
}

int Passive::start_listening() {
    std::lock_guard guard(domain_.lock);
    int ret = make_mailbox();
    if (ret == 0) ret = pool_.start(); // to say no
    if (ret != 0) {
        FI_WARN(&provider, FI_LOG_EP_CTRL, "cannot listen: %s\n", fi_strerror(-ret));
        return ret;
    }
    domain_.add(*this);
    go_on();
    return 0;
}

int Passive::listen(fid_pep* handle) {
    Passive& self = object_of<Passive>(handle);
    if (!self.eq_) return -FI_ENOEQ;
    if (self.listens_) return -FI_EOPBADSTATE;
    return guarded([&] {
        int ret = self.start_listening();
        if (ret == 0) ret = self.eq_->watch(self.domain_);
        self.listens_ = ret == 0;
        return ret;
    });
}

void Passive::take(const uint8_t* bytes, size_t length, uint64_t) {
    Header header;
    if (!decode(bytes, length, header) || header.kind != Kind::connect || header.sequence != 0) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "dropped what is no request for a connection\n");
        return;
    }
    fid_t request = fabric_.handles.add({this, header.source, header.data, address_}, backlog_);
    if (!request) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "dropped a request of %s: it has one, or too many wait\n",
                text_of(header.source).c_str());
        return;
    }
    fi_info* info = fi_dupinfo(info_);
    if (!info || !set_ends(*info, address_, header.source)) {
        fabric_.handles.take(request);
        fi_freeinfo(info);
        return;
    }
    info->handle = request;
    eq_->push_connection(FI_CONNREQ, &fid, info, bytes + header_bytes, header.length);
}

// A sender that is gone needs no answer.
int Passive::answer_no(fid_t handle, const void* data, size_t length) {
    auto request = fabric_.handles.find(handle);
    if (!request || request->passive != this || !fabric_.handles.take(handle)) return -FI_EINVAL;
    Header header{};
    header.kind = Kind::reject;
    header.length = length;
    header.data = request->word;
    header.source = address_;
    int ret = Note::send(domain_, pool_, notes_, request->from, header, data);
    if (ret != 0)
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no answer to %s: %s\n", text_of(request->from).c_str(),
                fi_strerror(-ret));
    return 0;
}

int Passive::reject(fid_pep* handle, fid_t request, const void* data, size_t length) {
    Passive& self = object_of<Passive>(handle);
    if (length > cm_data_bytes || (length > 0 && !data)) return -FI_EINVAL;
    return guarded([&] {
        std::lock_guard guard(self.domain_.lock);
        return self.answer_no(request, data, length);
    });
}

} // namespace kxfer::fi

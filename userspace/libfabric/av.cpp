// SPDX-License-Identifier: MIT
#include "libfabric/av.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "libfabric/domain.hpp"
#include "libfabric/eq.hpp"
#include "libfabric/object.hpp"

namespace kxfer::fi {

fi_ops_av Av::make_av_ops() {
    fi_ops_av ops{};
    ops.size = sizeof(ops);
    ops.insert = insert;
    ops.insertsvc = insert_service;
    ops.insertsym = insert_range;
    ops.remove = remove;
    ops.lookup = lookup;
    ops.straddr = text;
    return ops;
}

int Av::open(fid_domain* handle, fi_av_attr* attr, fid_av** av, void* context) {
    static fi_ops ops = make_ops(close, bind);
    static fi_ops_av av_ops = make_av_ops();
    Domain& domain = object_of<Domain>(handle);
    if (attr->name || attr->flags & ~FI_EVENT) return -FI_ENOSYS;
    return guarded([&] {
        auto* made = new Av(domain);
        made->fid.fclass = FI_CLASS_AV;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->Base::ops = &av_ops;
        made->by_event_ = (attr->flags & FI_EVENT) != 0;
        if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_MAP;
        domain.users++;
        *av = made;
        return 0;
    });
}

int Av::close(struct ::fid* handle) {
    Av& self = object_of<Av>(handle);
    if (self.users > 0) return -FI_EBUSY;
    if (self.eq_) self.eq_->users--;
    self.domain_.users--;
    delete &self;
    return 0;
}

int Av::bind(struct ::fid* handle, struct ::fid* other, uint64_t) {
    Av& self = object_of<Av>(handle);
    if (other->fclass != FI_CLASS_EQ || self.eq_) return -FI_EINVAL;
    self.eq_ = &object_of<Eq>(other);
    self.eq_->users++;
    return 0;
}

const Address* Av::find(fi_addr_t number) const {
    return number < places_.size() && places_[number].used ? &places_[number].address : nullptr;
}

fi_addr_t Av::number_of(const Address& address) const {
    auto found = numbers_.find(address);
    return found == numbers_.end() ? FI_ADDR_NOTAVAIL : found->second;
}

// The same address may be in twice; what comes from it has the number of the first.
fi_addr_t Av::add(const Address& address) {
    fi_addr_t number = places_.size();
    if (free_.empty()) {
        places_.push_back({address, true});
    } else {
        number = free_.back();
        free_.pop_back();
        places_[number] = {address, true};
    }
    if (!numbers_.emplace(address, number).second) nr_repeated_++;
    return number;
}

// With FI_EVENT the call has no result, and the event has the number of addresses that are in.
int Av::report(size_t added, void* context) {
    if (!by_event_) return static_cast<int>(added);
    if (!eq_) return -FI_ENOEQ;
    fi_eq_entry entry{&fid, context, added};
    eq_->push(FI_AV_COMPLETE, &entry, sizeof(entry));
    return 0;
}

int Av::insert(fid_av* handle, const void* addresses, size_t count, fi_addr_t* numbers, uint64_t flags,
               void* context) {
    Av& self = object_of<Av>(handle);
    if (self.by_event_ && !self.eq_) return -FI_ENOEQ;
    if (flags & FI_AV_USER_ID) return -FI_EBADFLAGS;
    if (flags & FI_SYNC_ERR && !context) return -FI_EINVAL;
    return guarded([&] {
        std::lock_guard guard(self.domain_.lock);
        const char* at = static_cast<const char*>(addresses);
        size_t stride =
            self.domain_.address_format == FI_SOCKADDR_IN6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        size_t added = 0;
        for (size_t i = 0; i < count; i++, at += stride) {
            Address address;
            bool good = from_sockaddr(at, stride, address) && address.port != 0;
            fi_addr_t number = good ? self.add(address) : FI_ADDR_NOTAVAIL;
            if (numbers) numbers[i] = number;
            if (flags & FI_SYNC_ERR) static_cast<int*>(context)[i] = good ? 0 : FI_EINVAL;
            added += good;
        }
        return self.report(added, context);
    });
}

int Av::insert_service(fid_av* handle, const char* node, const char* service, fi_addr_t* number,
                       uint64_t flags, void* context) {
    Av& self = object_of<Av>(handle);
    sockaddr_storage storage;
    Address address;
    int family = self.domain_.address_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
    int ret = resolve(node, service, family, flags, address);
    if (ret != 0) return ret;
    to_sockaddr(address, storage);
    return insert(handle, &storage, 1, number, flags, context);
}

// Nodes and services that follow each other: the last byte of the address, and the number, grow by one.
int Av::insert_range(fid_av* handle, const char* node, size_t nr_nodes, const char* service,
                     size_t nr_services, fi_addr_t* numbers, uint64_t flags, void* context) {
    Av& self = object_of<Av>(handle);
    Address first;
    int family = self.domain_.address_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
    size_t last = family == AF_INET6 ? 15 : 3;
    int ret = resolve(node, service, family, flags, first);
    if (ret != 0) return ret;
    if (nr_nodes > 256U - first.addr[last] || nr_services > 65536U - first.port) return -FI_EINVAL;
    return guarded([&] {
        std::vector<char> addresses;
        for (size_t i = 0; i < nr_nodes * nr_services; i++) {
            sockaddr_storage storage;
            Address address = first;
            address.addr[last] = static_cast<uint8_t>(address.addr[last] + i / nr_services);
            address.port = static_cast<uint16_t>(address.port + i % nr_services);
            socklen_t length = to_sockaddr(address, storage);
            const char* bytes = reinterpret_cast<char*>(&storage);
            addresses.insert(addresses.end(), bytes, bytes + length);
        }
        return insert(handle, addresses.data(), nr_nodes * nr_services, numbers, flags, context);
    });
}

// What comes from the address has the number of the next one that is the same, if there is one.
void Av::drop(fi_addr_t number) {
    Place& place = places_[number];
    place.used = false;
    free_.push_back(number);
    auto known = numbers_.find(place.address);
    auto is_same = [&](const Place& other) {
        return other.used && SameAddress()(other.address, place.address);
    };
    auto same = nr_repeated_ == 0 ? places_.end() : std::find_if(places_.begin(), places_.end(), is_same);
    if (same == places_.end()) {
        numbers_.erase(known);
        return;
    }
    nr_repeated_--;
    if (known->second == number) known->second = static_cast<fi_addr_t>(same - places_.begin());
}

int Av::remove(fid_av* handle, fi_addr_t* numbers, size_t count, uint64_t flags) {
    Av& self = object_of<Av>(handle);
    if (flags != 0) return -FI_EBADFLAGS;
    std::lock_guard guard(self.domain_.lock);
    for (size_t i = 0; i < count; i++) {
        if (!self.find(numbers[i])) return -FI_EINVAL;
        self.drop(numbers[i]);
    }
    return 0;
}

int Av::lookup(fid_av* handle, fi_addr_t number, void* address, size_t* length) {
    Av& self = object_of<Av>(handle);
    std::lock_guard guard(self.domain_.lock);
    const Address* found = self.find(number);
    if (!found) return -FI_EINVAL;
    copy_sockaddr(*found, address, length);
    return 0;
}

const char* Av::text(fid_av*, const void* address, char* to, size_t* length) {
    Address known{};
    from_sockaddr(address, sockaddr_bytes(address), known);
    std::string words =
        (known.family == AF_INET6 ? "fi_sockaddr_in6://" : "fi_sockaddr_in://") + text_of(known);
    if (*length > 0) {
        strncpy(to, words.c_str(), *length - 1);
        to[*length - 1] = 0;
    }
    *length = words.size() + 1;
    return to;
}

} // namespace kxfer::fi

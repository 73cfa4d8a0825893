// SPDX-License-Identifier: MIT
#include "libfabric/mr.hpp"

#include <memory>
#include <mutex>

#include "libfabric/device_memory.hpp"
#include "libfabric/object.hpp"

namespace kxfer::fi {

fi_ops_mr Mr::make_registration_ops() {
    fi_ops_mr ops{};
    ops.size = sizeof(ops);
    ops.reg = add;
    ops.regv = add_vector;
    ops.regattr = add_by_attr;
    return ops;
}

int Mr::start(const Source& source, uint64_t access, uint64_t wanted) {
    constexpr uint32_t both = KXFER_RIGHT_READ | KXFER_RIGHT_WRITE;
    uint32_t rights = 0;
    if (access & FI_REMOTE_READ) rights |= KXFER_RIGHT_READ;
    if (access & FI_REMOTE_WRITE) rights |= KXFER_RIGHT_WRITE;
    // An atomic changes the word and shows what it was.
    if (domain_.has_atomics() && (rights & both) == both) rights |= KXFER_RIGHT_ATOMIC;
    Registration made{source.at, source.length};
    made.of_device = source.dmabuf_fd >= 0;
    made.writable = (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE)) != 0;
    key = domain_.chooses_keys() ? ++domain_.serial : wanted;
    int ret = made.of_device ? domain_.import_region(source, made.writable, &made.region)
                             : domain_.add_region(source.at, source.length, made.writable, &made.region);
    if (ret != 0) return ret;
    registration_ = std::make_shared<Registration>(made);
    if (rights == 0) return 0;
    ret = domain_.add_export(memory_name(domain_.id, key), made.region, 0, source.length, rights,
                             reinterpret_cast<uintptr_t>(source.at), &export_);
    if (ret != 0) domain_.remove_region(made.region);
    return ret == -EEXIST ? -FI_ENOKEY : ret;
}

int Mr::add_source(Domain& domain, const Source& source, uint64_t access, uint64_t key, fid_mr** mr,
                   void* context) {
    static fi_ops ops = make_ops(close, bind, control);
    return guarded([&] {
        std::lock_guard guard(domain.lock);
        auto made = std::make_unique<Mr>(domain);
        int ret = made->start(source, access, key);
        if (ret != 0) return ret;
        made->fid.fclass = FI_CLASS_MR;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->mem_desc = made.get();
        domain.users++;
        *mr = made.release();
        return 0;
    });
}

int Mr::add(struct ::fid* domain, const void* at, size_t length, uint64_t access, uint64_t, uint64_t key,
            uint64_t flags, fid_mr** mr, void* context) {
    if (flags != 0) return -FI_EBADFLAGS;
    return add_source(object_of<Domain>(domain), {static_cast<const char*>(at), length}, access, key, mr,
                      context);
}

int Mr::add_vector(struct ::fid* handle, const iovec* iov, size_t count, uint64_t access, uint64_t offset,
                   uint64_t key, uint64_t flags, fid_mr** mr, void* context) {
    if (count != 1) return -FI_EINVAL;
    return add(handle, iov->iov_base, iov->iov_len, access, offset, key, flags, mr, context);
}

int Mr::add_by_attr(struct ::fid* handle, const fi_mr_attr* attr, uint64_t flags, fid_mr** mr) {
    Domain& domain = object_of<Domain>(handle);
    if (dmabuf_flag != 0 && flags == dmabuf_flag) {
        if (!domain.has_device_memory()) return -FI_EOPNOTSUPP;
        if (attr->iov_count != 1 || source_of_dmabuf(*attr).dmabuf_fd < 0) return -FI_EINVAL;
        return add_source(domain, source_of_dmabuf(*attr), attr->access, attr->requested_key, mr,
                          attr->context);
    }
    if (attr->iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
    return add_vector(handle, attr->mr_iov, attr->iov_count, attr->access, attr->offset, attr->requested_key,
                      flags, mr, attr->context);
}

int Mr::close(struct ::fid* handle) {
    Mr& self = object_of<Mr>(handle);
    Domain& domain = self.domain_;
    std::lock_guard guard(domain.lock);
    if (self.registration_.use_count() > 1) return -FI_EBUSY;
    if (self.export_ != 0) kxfer_export_destroy(domain.session, self.export_);
    domain.remove_region(self.registration_->region);
    domain.users--;
    delete &self;
    return 0;
}

// A program may bind and enable memory of any endpoint; it is there from the beginning.
int Mr::bind(struct ::fid*, struct ::fid*, uint64_t) { return 0; }

int Mr::control(struct ::fid*, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

} // namespace kxfer::fi

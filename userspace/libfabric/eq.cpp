// SPDX-License-Identifier: MIT
#include "libfabric/eq.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "libfabric/error.hpp"
#include "libfabric/fabric.hpp"
#include "libfabric/object.hpp"

namespace kxfer::fi {

fi_ops_eq Eq::make_eq_ops() {
    fi_ops_eq ops{};
    ops.size = sizeof(ops);
    ops.read = read;
    ops.readerr = read_error;
    ops.write = write;
    ops.sread = wait_read;
    ops.strerror = text;
    return ops;
}

int Eq::open(fid_fabric* handle, fi_eq_attr* attr, fid_eq** eq, void* context) {
    static fi_ops ops = make_ops(close, no_bind, control);
    static fi_ops_eq eq_ops = make_eq_ops();
    Fabric& fabric = object_of<Fabric>(handle);
    return guarded([&] {
        auto made = std::make_unique<Eq>(fabric);
        int ret = made->wait_.open(attr->wait_obj, -1, -1);
        if (ret != 0) return ret;
        made->fid.fclass = FI_CLASS_EQ;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->Base::ops = &eq_ops;
        fabric.users++;
        *eq = made.release();
        return 0;
    });
}

int Eq::close(struct ::fid* handle) {
    Eq& self = object_of<Eq>(handle);
    if (self.users > 0) return -FI_EBUSY;
    self.fabric_.users--;
    delete &self;
    return 0;
}

int Eq::control(struct ::fid* handle, int command, void* argument) {
    return object_of<Eq>(handle).wait_.control(command, argument);
}

void Eq::push(uint32_t event, const void* data, size_t length) {
    std::lock_guard guard(lock_);
    const char* bytes = static_cast<const char*>(data);
    events_.push_back({event, std::vector<char>(bytes, bytes + length)});
    wait_.wake();
}

ssize_t Eq::take(uint32_t* event, void* data, size_t length, uint64_t flags) {
    if (events_.empty()) return -FI_EAGAIN;
    const Event& first = events_.front();
    if (length < first.data.size()) return -FI_ETOOSMALL;
    *event = first.number;
    std::copy(first.data.begin(), first.data.end(), static_cast<char*>(data));
    ssize_t taken = static_cast<ssize_t>(first.data.size());
    if (!(flags & FI_PEEK)) events_.pop_front();
    return taken;
}

ssize_t Eq::read(fid_eq* handle, uint32_t* event, void* data, size_t length, uint64_t flags) {
    Eq& self = object_of<Eq>(handle);
    std::lock_guard guard(self.lock_);
    return self.take(event, data, length, flags);
}

ssize_t Eq::read_error(fid_eq*, fi_eq_err_entry*, uint64_t) { return -FI_EAGAIN; }

ssize_t Eq::write(fid_eq* handle, uint32_t event, const void* data, size_t length, uint64_t) {
    object_of<Eq>(handle).push(event, data, length);
    return static_cast<ssize_t>(length);
}

ssize_t Eq::wait_read(fid_eq* handle, uint32_t* event, void* data, size_t length, int timeout,
                      uint64_t flags) {
    Eq& self = object_of<Eq>(handle);
    Patience patience(timeout);
    if (!self.wait_.is_open()) return -FI_ENOSYS;
    for (;;) {
        {
            std::lock_guard guard(self.lock_);
            ssize_t ret = self.take(event, data, length, flags);
            if (ret != -FI_EAGAIN || patience.is_over()) return ret;
            self.wait_.arm();
        }
        self.wait_.sleep(patience.left_ms());
    }
}

const char* Eq::text(fid_eq*, int prov_errno, const void*, char* to, size_t length) {
    const char* words = words_of(prov_errno);
    if (to && length > 0) {
        strncpy(to, words, length - 1);
        to[length - 1] = 0;
    }
    return words;
}

int Eq::try_wait() {
    std::lock_guard guard(lock_);
    if (!events_.empty()) return -FI_EAGAIN;
    wait_.arm();
    return 0;
}

} // namespace kxfer::fi

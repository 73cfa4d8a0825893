// SPDX-License-Identifier: MIT
#include "libfabric/cq.hpp"

#include <cstring>
#include <memory>
#include <mutex>

#include "libfabric/domain.hpp"
#include "libfabric/error.hpp"
#include "libfabric/object.hpp"

namespace kxfer::fi {

// Each format is the begin of the next one.
static size_t size_of(fi_cq_format format) {
    switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
        return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
        return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_DATA:
        return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(fi_cq_tagged_entry);
    default:
        return 0;
    }
}

fi_ops_cq Cq::make_cq_ops() {
    fi_ops_cq ops{};
    ops.size = sizeof(ops);
    ops.read = read;
    ops.readfrom = read_from;
    ops.readerr = read_error;
    ops.sread = wait_read;
    ops.sreadfrom = wait_read_from;
    ops.signal = signal;
    ops.strerror = text;
    return ops;
}

int Cq::open(fid_domain* handle, fi_cq_attr* attr, fid_cq** cq, void* context) {
    static fi_ops ops = make_ops(close, no_bind, control);
    static fi_ops_cq cq_ops = make_cq_ops();
    Domain& domain = object_of<Domain>(handle);
    if (size_of(attr->format) == 0) return -FI_ENOSYS;
    return guarded([&] {
        auto made = std::make_unique<Cq>(domain);
        int ret = made->wait_.open(attr->wait_obj, domain.session_fd(), domain.timer_fd());
        if (ret != 0) return ret;
        made->fid.fclass = FI_CLASS_CQ;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->Base::ops = &cq_ops;
        made->entry_size_ = size_of(attr->format);
        if (attr->format == FI_CQ_FORMAT_UNSPEC) attr->format = FI_CQ_FORMAT_DATA;
        domain.users++;
        *cq = made.release();
        return 0;
    });
}

int Cq::close(struct ::fid* handle) {
    Cq& self = object_of<Cq>(handle);
    if (self.users > 0) return -FI_EBUSY;
    self.domain_.users--;
    delete &self;
    return 0;
}

int Cq::control(struct ::fid* handle, int command, void* argument) {
    return object_of<Cq>(handle).wait_.control(command, argument);
}

void Cq::push(const fi_cq_err_entry& entry, fi_addr_t source) {
    entries_.push_back({entry, source});
    wait_.wake();
}

ssize_t Cq::take(void* entries, size_t count, fi_addr_t* sources) {
    size_t n = 0;
    if (entries_.empty()) return -FI_EAGAIN;
    for (; n < count && !entries_.empty() && entries_.front().what.err == 0; n++) {
        memcpy(static_cast<char*>(entries) + n * entry_size_, &entries_.front().what, entry_size_);
        if (sources) sources[n] = entries_.front().source;
        entries_.pop_front();
    }
    return n > 0 || count == 0 ? static_cast<ssize_t>(n) : -FI_EAVAIL;
}

ssize_t Cq::read_from(fid_cq* handle, void* entries, size_t count, fi_addr_t* sources) {
    Cq& self = object_of<Cq>(handle);
    std::lock_guard guard(self.domain_.lock);
    if (self.entries_.empty() || count == 0) self.domain_.progress(); // count 0: for the sake of progress
    return self.take(entries, count, sources);
}

ssize_t Cq::read(fid_cq* handle, void* entries, size_t count) {
    return read_from(handle, entries, count, nullptr);
}

// An entry is as long as the caller's libfabric has it; what came later than 1.17 is at its end.
ssize_t Cq::read_error(fid_cq* handle, fi_cq_err_entry* entry, uint64_t) {
    Cq& self = object_of<Cq>(handle);
    std::lock_guard guard(self.domain_.lock);
    if (self.entries_.empty() || self.entries_.front().what.err == 0) return -FI_EAGAIN;
    const fi_cq_err_entry& what = self.entries_.front().what;
    memcpy(static_cast<void*>(entry), &what, offsetof(fi_cq_err_entry, err_data));
    entry->err_data_size = 0;
    self.entries_.pop_front();
    return 1;
}

ssize_t Cq::wait_read_from(fid_cq* handle, void* entries, size_t count, fi_addr_t* sources, const void*,
                           int timeout) {
    Cq& self = object_of<Cq>(handle);
    Patience patience(timeout);
    if (!self.wait_.is_open()) return -FI_ENOSYS;
    for (;;) {
        {
            std::lock_guard guard(self.domain_.lock);
            if (self.entries_.empty()) self.domain_.progress();
            ssize_t ret = self.take(entries, count, sources);
            if (ret != -FI_EAGAIN) return ret;
            if (self.signalled_ || patience.is_over()) {
                self.signalled_ = false;
                return -FI_EAGAIN;
            }
            self.domain_.quiet_timer();
            self.wait_.arm();
        }
        self.wait_.sleep(patience.left_ms());
    }
}

ssize_t Cq::wait_read(fid_cq* handle, void* entries, size_t count, const void* condition, int timeout) {
    return wait_read_from(handle, entries, count, nullptr, condition, timeout);
}

int Cq::signal(fid_cq* handle) {
    Cq& self = object_of<Cq>(handle);
    std::lock_guard guard(self.domain_.lock);
    if (!self.wait_.is_open()) return -FI_ENOSYS;
    self.signalled_ = true;
    self.wait_.wake();
    return 0;
}

const char* Cq::text(fid_cq*, int prov_errno, const void*, char* to, size_t length) {
    const char* words = words_of(prov_errno);
    if (to && length > 0) {
        strncpy(to, words, length - 1);
        to[length - 1] = 0;
    }
    return words;
}

int Cq::try_wait() {
    std::lock_guard guard(domain_.lock);
    domain_.progress();
    if (!entries_.empty()) return -FI_EAGAIN;
    domain_.quiet_timer();
    wait_.arm();
    return 0;
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/eq.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "libfabric/domain.hpp"
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

void Eq::push(Event event) {
    std::lock_guard guard(lock_);
    events_.push_back(std::move(event));
    wait_.wake();
}

void Eq::push(uint32_t event, const void* data, size_t length) {
    const char* bytes = static_cast<const char*>(data);
    push(Event{event, std::vector<char>(bytes, bytes + length)});
}

void Eq::push_connection(uint32_t event, fid_t of, fi_info* info, const void* data, size_t length) {
    fi_eq_cm_entry entry{};
    entry.fid = of;
    entry.info = info;
    Event made{event, std::vector<char>(sizeof(entry) + length), of, info};
    memcpy(made.data.data(), &entry, sizeof(entry));
    if (length > 0) memcpy(made.data.data() + sizeof(entry), data, length);
    push(std::move(made));
}

void Eq::push_failure(fid_t of, int status, const void* data, size_t length) {
    const char* bytes = static_cast<const char*>(data);
    push(Event{0, std::vector<char>(bytes, bytes + length), of, nullptr, status});
}

void Eq::forget(fid_t of) {
    std::lock_guard guard(lock_);
    std::erase_if(events_, [&](const Event& event) {
        if (event.of != of) return false;
        if (event.info) fi_freeinfo(event.info);
        return true;
    });
}

int Eq::watch(Domain& domain) {
    std::lock_guard guard(watch_lock_);
    auto known = std::find_if(watched_.begin(), watched_.end(),
                              [&](const Watched& one) { return one.domain == &domain; });
    if (known != watched_.end()) {
        known->users++;
        return 0;
    }
    if (wait_.is_open()) {
        int ret = wait_.watch(domain.session_fd());
        if (ret == 0) ret = wait_.watch(domain.timer_fd());
        if (ret != 0) return ret;
    }
    watched_.push_back({&domain, 1});
    return 0;
}

void Eq::unwatch(Domain& domain) {
    std::lock_guard guard(watch_lock_);
    auto known = std::find_if(watched_.begin(), watched_.end(),
                              [&](const Watched& one) { return one.domain == &domain; });
    if (known == watched_.end() || --known->users > 0) return;
    if (wait_.is_open()) {
        wait_.forget(domain.session_fd());
        wait_.forget(domain.timer_fd());
    }
    watched_.erase(known);
}

void Eq::progress(bool before_sleep) {
    std::lock_guard guard(watch_lock_);
    for (const Watched& one : watched_) {
        std::lock_guard domain_guard(one.domain->lock);
        one.domain->progress();
        if (before_sleep) one.domain->quiet_timer();
    }
}

ssize_t Eq::take(uint32_t* event, void* data, size_t length, uint64_t flags) {
    if (events_.empty()) return -FI_EAGAIN;
    const Event& first = events_.front();
    if (first.status != 0) return -FI_EAVAIL;
    if (length < first.data.size()) return -FI_ETOOSMALL;
    *event = first.number;
    std::copy(first.data.begin(), first.data.end(), static_cast<char*>(data));
    ssize_t taken = static_cast<ssize_t>(first.data.size());
    if (!(flags & FI_PEEK)) events_.pop_front();
    return taken;
}

ssize_t Eq::read(fid_eq* handle, uint32_t* event, void* data, size_t length, uint64_t flags) {
    Eq& self = object_of<Eq>(handle);
    self.progress(false);
    std::lock_guard guard(self.lock_);
    return self.take(event, data, length, flags);
}

// Bytes that came with the failure are the caller's, if it has room for them; else they stay here until the
// next failure is read.
void Eq::fill(const Event& event, fi_eq_err_entry& entry) {
    void* room = entry.err_data;
    size_t length = FI_VERSION_LT(fabric_.api_version, FI_VERSION(1, 5)) ? 0 : entry.err_data_size;
    error_data_ = event.data;
    entry = {};
    entry.fid = event.of;
    entry.context = event.of->context;
    entry.err = error_of(event.status, During::message);
    entry.prov_errno = -event.status;
    entry.err_data = error_data_.empty() ? nullptr : error_data_.data();
    entry.err_data_size = error_data_.size();
    if (length == 0) return;
    entry.err_data = room;
    entry.err_data_size = std::min(length, error_data_.size());
    memcpy(room, error_data_.data(), entry.err_data_size);
}

ssize_t Eq::read_error(fid_eq* handle, fi_eq_err_entry* entry, uint64_t flags) {
    Eq& self = object_of<Eq>(handle);
    std::lock_guard guard(self.lock_);
    if (self.events_.empty() || self.events_.front().status == 0) return -FI_EAGAIN;
    self.fill(self.events_.front(), *entry);
    if (!(flags & FI_PEEK)) self.events_.pop_front();
    return sizeof(*entry);
}

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
        self.progress(true);
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
    progress(true);
    std::lock_guard guard(lock_);
    if (!events_.empty()) return -FI_EAGAIN;
    wait_.arm();
    return 0;
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/counter.hpp"

#include <memory>
#include <mutex>

#include "libfabric/domain.hpp"
#include "libfabric/object.hpp"

namespace kxfer::fi {

fi_ops_cntr Counter::make_counter_ops() {
    fi_ops_cntr ops{};
    ops.size = sizeof(ops);
    ops.read = read;
    ops.readerr = read_errors;
    ops.add = add;
    ops.set = set;
    ops.wait = wait;
    ops.adderr = add_errors;
    ops.seterr = set_errors;
    return ops;
}

int Counter::open(fid_domain* handle, fi_cntr_attr* attr, fid_cntr** counter, void* context) {
    static fi_ops ops = make_ops(close, no_bind, control);
    static fi_ops_cntr counter_ops = make_counter_ops();
    Domain& domain = object_of<Domain>(handle);
    if (attr->events != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
    return guarded([&] {
        auto made = std::make_unique<Counter>(domain);
        int ret = made->wait_.open(attr->wait_obj, domain.session_fd(), domain.timer_fd());
        if (ret != 0) return ret;
        made->fid.fclass = FI_CLASS_CNTR;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->Base::ops = &counter_ops;
        domain.users++;
        *counter = made.release();
        return 0;
    });
}

int Counter::close(struct ::fid* handle) {
    Counter& self = object_of<Counter>(handle);
    if (self.users > 0) return -FI_EBUSY;
    self.domain_.users--;
    delete &self;
    return 0;
}

int Counter::control(struct ::fid* handle, int command, void* argument) {
    return object_of<Counter>(handle).wait_.control(command, argument);
}

void Counter::count(bool failed) {
    (failed ? errors_ : value_)++;
    wait_.wake();
}

uint64_t Counter::read(fid_cntr* handle) {
    Counter& self = object_of<Counter>(handle);
    std::lock_guard guard(self.domain_.lock);
    self.domain_.progress();
    self.seen_ = self.value_ + self.errors_;
    return self.value_;
}

uint64_t Counter::read_errors(fid_cntr* handle) {
    Counter& self = object_of<Counter>(handle);
    std::lock_guard guard(self.domain_.lock);
    self.domain_.progress();
    return self.errors_;
}

int Counter::change(uint64_t& value, uint64_t to) {
    value = to;
    wait_.wake();
    return 0;
}

int Counter::add(fid_cntr* handle, uint64_t value) {
    Counter& self = object_of<Counter>(handle);
    std::lock_guard guard(self.domain_.lock);
    return self.change(self.value_, self.value_ + value);
}

int Counter::set(fid_cntr* handle, uint64_t value) {
    Counter& self = object_of<Counter>(handle);
    std::lock_guard guard(self.domain_.lock);
    return self.change(self.value_, value);
}

int Counter::add_errors(fid_cntr* handle, uint64_t value) {
    Counter& self = object_of<Counter>(handle);
    std::lock_guard guard(self.domain_.lock);
    return self.change(self.errors_, self.errors_ + value);
}

int Counter::set_errors(fid_cntr* handle, uint64_t value) {
    Counter& self = object_of<Counter>(handle);
    std::lock_guard guard(self.domain_.lock);
    return self.change(self.errors_, value);
}

// -FI_EAVAIL: an operation has failed meanwhile.
int Counter::wait(fid_cntr* handle, uint64_t threshold, int timeout) {
    Counter& self = object_of<Counter>(handle);
    Patience patience(timeout);
    if (!self.wait_.is_open()) return -FI_ENOSYS;
    self.domain_.lock.lock();
    uint64_t errors = self.errors_;
    for (;;) {
        self.domain_.progress();
        int ret = 1;
        if (self.value_ >= threshold)
            ret = 0;
        else if (self.errors_ != errors)
            ret = -FI_EAVAIL;
        else if (patience.is_over())
            ret = -FI_ETIMEDOUT;
        if (ret > 0) { // else another thread that sleeps on it may still have to see what woke this one
            self.domain_.quiet_timer();
            self.wait_.arm();
        }
        self.domain_.lock.unlock();
        if (ret <= 0) return ret;
        self.wait_.sleep(patience.left_ms());
        self.domain_.lock.lock();
    }
}

int Counter::try_wait() {
    std::lock_guard guard(domain_.lock);
    domain_.progress();
    if (value_ + errors_ != seen_) { // the caller looks now, at whichever of the two it cares for
        seen_ = value_ + errors_;
        return -FI_EAGAIN;
    }
    domain_.quiet_timer();
    wait_.arm();
    return 0;
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/fetch.hpp"

#include <algorithm>
#include <cerrno>

#include "libfabric/endpoint.hpp"
#include "libfabric/peer.hpp"

namespace kxfer::fi {

// The sender is gone, or is no more what it was.
static bool is_loss(int ret) {
    return ret == -ENOENT || ret == -EKEYREVOKED || ret == -ECONNRESET || ret == -ECONNREFUSED ||
           ret == -EHOSTUNREACH || ret == -ETIMEDOUT || ret == -ENODEV;
}

Fetch::Step Fetch::open_export() {
    if (target_ != 0) return Step::done;
    Peer& peer = arrival_->peer;
    kxfer_target_open opened;
    int ret = peer.connect();
    if (ret == -FI_EAGAIN) return Step::later;
    if (ret == 0)
        ret = endpoint_.domain.open_target(peer.address, offer_name(peer.domain_id, arrival_->header.place),
                                           KXFER_RIGHT_READ, 0, &opened);
    if (ret == 0 && opened.length < arrival_->header.length) ret = -EPROTO;
    if (ret == 0) {
        target_ = opened.target;
        return Step::done;
    }
    status_ = ret;
    return is_loss(ret) ? Step::lost : Step::never;
}

Fetch::Step Fetch::find_region() {
    const Receive& receive = *arrival_->receive;
    if (region_ != 0) return Step::done;
    void* at = receive.memory.ranges[0].iov_base;
    size_t length = std::min<uint64_t>(receive.memory.length, arrival_->header.length);
    if (receive.registration && receive.registration->holds(at, length, true)) {
        region_ = receive.registration->region;
        offset_ = receive.registration->offset_of(at);
        return Step::done;
    }
    if (endpoint_.domain.add_region(at, length, true, &region_) != 0) return Step::never;
    own_region_ = true;
    return Step::done;
}

Fetch::Step Fetch::prepare() {
    const Receive& receive = *arrival_->receive;
    if (arrival_->word != arrival_->peer.word()) { // it has waited, and its sender's connection has ended
        status_ = -ECONNRESET;
        return Step::lost;
    }
    if (arrival_->header.place == 0 || receive.memory.nr != 1 || receive.memory.length == 0)
        return Step::never;
    Step step = open_export();
    return step == Step::done ? find_region() : step;
}

void Fetch::go_on() {
    Step step = prepare();
    if (step == Step::done) {
        size_t length = std::min<uint64_t>(arrival_->receive->memory.length, arrival_->header.length);
        status_ =
            endpoint_.domain.submit(kxfer_job_make_read(region_, offset_, target_, 0, length, 0), *this);
        handed_in_ = status_ == 0;
        if (handed_in_ || status_ == -FI_EAGAIN) return;
        step = is_loss(status_) ? Step::lost : Step::never;
    }
    if (step == Step::later) return;
    if (step == Step::lost) {
        finish(status_);
        return;
    }
    undo();
    endpoint_.inbox.ask_for_bytes(arrival_);
    endpoint_.inbox.forget(this);
}

void Fetch::ended(const kxfer_completion& completion) { finish(completion.status); }

void Fetch::undo() {
    if (target_ != 0) kxfer_target_destroy(endpoint_.domain.session, target_);
    if (own_region_) kxfer_region_destroy(endpoint_.domain.session, region_);
}

void Fetch::finish(int status) {
    undo();
    endpoint_.inbox.deliver(arrival_, status);
    endpoint_.inbox.forget(this);
}

} // namespace kxfer::fi

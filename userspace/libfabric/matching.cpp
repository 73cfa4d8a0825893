// SPDX-License-Identifier: MIT
#include "libfabric/matching.hpp"

#include <algorithm>

namespace kxfer::fi {

static bool matches(const Receive& receive, const Arrival& arrival) {
    if (receive.source && receive.source != &arrival.peer) return false;
    return !receive.tagged || ((receive.tag ^ arrival.header.tag) & ~receive.ignore) == 0;
}

Matching::~Matching() {
    for (Arrivals& list : unexpected_)
        for (Arrival* arrival : list) delete arrival;
}

std::unique_ptr<Receive> Matching::part_of(Receive& whole, size_t length) const {
    auto part = std::make_unique<Receive>(whole);
    size_t left = whole.memory.length - whole.used;
    part->memory.set(static_cast<char*>(whole.memory.ranges[0].iov_base) + whole.used, left);
    whole.used += std::min(left, length);
    whole.several->users++;
    left = whole.memory.length - whole.used;
    whole.several->retired = left == 0 || left < min_multi_recv;
    return part;
}

std::unique_ptr<Receive> Matching::take_receive(const Arrival& arrival) {
    Receives& list = posted(arrival.is_tagged());
    auto found = std::find_if(list.begin(), list.end(),
                              [&](const auto& receive) { return matches(*receive, arrival); });
    if (found == list.end()) return nullptr;
    if ((*found)->several) {
        auto part = part_of(**found, arrival.header.length);
        if (part->several->retired) list.erase(found);
        return part;
    }
    auto taken = std::move(*found);
    list.erase(found);
    return taken;
}

Arrival* Matching::take_arrival(const Receive& receive, void* claimant) {
    Arrivals& list = unexpected(receive.tagged);
    auto found = std::find_if(list.begin(), list.end(), [&](const Arrival* arrival) {
        return claimant ? arrival->claimant == claimant : !arrival->claimant && matches(receive, *arrival);
    });
    if (found == list.end()) return nullptr;
    Arrival* taken = *found;
    list.erase(found);
    return taken;
}

Arrival* Matching::find_arrival(const Receive& receive) const {
    const Arrivals& list = unexpected_[receive.tagged];
    auto found = std::find_if(list.begin(), list.end(), [&](const Arrival* arrival) {
        return !arrival->claimant && matches(receive, *arrival);
    });
    return found == list.end() ? nullptr : *found;
}

void Matching::add(std::unique_ptr<Receive> receive) {
    Receives& list = posted(receive->tagged);
    list.push_back(std::move(receive));
}

std::unique_ptr<Receive> Matching::cancel(const void* context) {
    for (Receives& list : posted_) {
        auto found = std::find_if(list.begin(), list.end(),
                                  [&](const auto& receive) { return receive->context == context; });
        if (found == list.end()) continue;
        auto taken = std::move(*found);
        list.erase(found);
        return taken;
    }
    return nullptr;
}

bool Matching::waits_for(const Peer& peer) const {
    auto is_for = [&](const auto& receive) { return receive->source == &peer; };
    return std::any_of(std::begin(posted_), std::end(posted_),
                       [&](const Receives& list) { return std::any_of(list.begin(), list.end(), is_for); });
}

std::list<std::unique_ptr<Receive>> Matching::take_receives() {
    Receives taken;
    for (Receives& list : posted_) taken.splice(taken.end(), list);
    return taken;
}

std::list<std::unique_ptr<Receive>> Matching::take_receives_from(const Peer& peer) {
    Receives taken;
    for (Receives& list : posted_) {
        for (auto at = list.begin(); at != list.end();) {
            auto here = at++;
            if ((*here)->source == &peer) taken.splice(taken.end(), list, here);
        }
    }
    return taken;
}

std::list<Arrival*> Matching::take_incomplete_from(const Peer& peer) {
    Arrivals taken;
    for (Arrivals& list : unexpected_) {
        for (auto at = list.begin(); at != list.end();) {
            auto here = at++;
            if (&(*here)->peer == &peer && !(*here)->is_complete()) taken.splice(taken.end(), list, here);
        }
    }
    return taken;
}

} // namespace kxfer::fi

// SPDX-License-Identifier: MIT
#include "libfabric/handles.hpp"

#include "libfabric/passive.hpp"

namespace kxfer::fi {

void Handles::add(Passive& passive) {
    std::lock_guard guard(lock_);
    passives_.emplace(&passive.fid, &passive);
}

void Handles::remove(const Passive& passive) {
    std::lock_guard guard(lock_);
    std::erase_if(passives_, [&](const auto& entry) { return entry.second == &passive; });
    std::erase_if(requests_, [&](const auto& entry) { return entry.second->request.passive == &passive; });
}

Passive* Handles::passive_of(fid_t handle) const {
    std::lock_guard guard(lock_);
    auto found = passives_.find(handle);
    return found == passives_.end() ? nullptr : found->second;
}

fid_t Handles::add(const Request& request, size_t most) {
    std::lock_guard guard(lock_);
    size_t nr = 0;
    for (const auto& [handle, waiting] : requests_) {
        const Request& other = waiting->request;
        if (other.passive != request.passive) continue;
        if (other.word == request.word && SameAddress()(other.from, request.from)) return nullptr;
        nr++;
    }
    if (nr >= most) return nullptr;
    auto made = std::make_unique<Waiting>(Waiting{{}, request});
    made->fid.fclass = FI_CLASS_CONNREQ;
    fid_t handle = &made->fid;
    requests_.emplace(handle, std::move(made));
    return handle;
}

std::optional<Request> Handles::find(fid_t handle) const {
    std::lock_guard guard(lock_);
    auto found = requests_.find(handle);
    if (found == requests_.end()) return std::nullopt;
    return found->second->request;
}

std::optional<Request> Handles::take(fid_t handle) {
    std::lock_guard guard(lock_);
    auto taken = requests_.extract(handle);
    if (taken.empty()) return std::nullopt;
    return taken.mapped()->request;
}

} // namespace kxfer::fi

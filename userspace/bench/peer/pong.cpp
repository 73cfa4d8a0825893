// SPDX-License-Identifier: MIT
#include "bench/peer/pong.hpp"

#include "base/try.hpp"
#include "bench/engines/rules.hpp"

namespace kxfer::bench {

tl::expected<std::unique_ptr<Pong>, Error> Pong::offer(const PartnerOptions& options) {
    constexpr uint32_t rights = KXFER_RIGHT_READ | KXFER_RIGHT_WRITE;
    TRY_SET(auto memory, Memory::create(2 * options.workload.bytes()));
    TRY_SET(auto session, Session::open());
    std::unique_ptr<Pong> pong(new Pong(std::move(memory), std::move(session)));

    TRY_SET(pong->region_, pong->session_.add_region(pong->memory_.bytes(), KXFER_REGION_F_WRITE));
    TRY_SET(pong->exported_, pong->session_.add_export(pong->region_, options.name, pong->memory_.length(),
                                                       rights, granting(options.rules, rights)));
    pong->partner_ = std::make_unique<Partner>(options, pong->session_, pong->memory_);
    return pong;
}

} // namespace kxfer::bench

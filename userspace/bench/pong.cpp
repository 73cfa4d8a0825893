// SPDX-License-Identifier: MIT
#include "bench/pong.hpp"

#include "bench/listening.hpp"

namespace kxfer::bench {

tl::expected<std::unique_ptr<Pong>, Error> Pong::offer(const PartnerOptions& options) {
    constexpr uint32_t rights = KXFER_RIGHT_READ | KXFER_RIGHT_WRITE;
    auto memory = Memory::create(2 * options.workload.bytes());
    if (!memory) return tl::unexpected(memory.error());
    auto session = Session::open();
    if (!session) return tl::unexpected(session.error());
    std::unique_ptr<Pong> pong(new Pong(std::move(*memory), std::move(*session)));

    auto region = pong->session_.add_region(pong->memory_.bytes(), KXFER_REGION_F_WRITE);
    if (!region) return tl::unexpected(region.error());
    pong->region_ = std::move(*region);
    auto exported = pong->session_.add_export(pong->region_, options.name, pong->memory_.length(), rights,
                                              granting(options.rules, rights));
    if (!exported) return tl::unexpected(exported.error());
    pong->exported_ = std::move(*exported);
    pong->partner_ = std::make_unique<Partner>(options, pong->session_, pong->memory_);
    return pong;
}

} // namespace kxfer::bench

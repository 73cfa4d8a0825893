// SPDX-License-Identifier: MIT
#include "verbs/device_memory.hpp"

#include <fmt/format.h>

#include "verbs/connection.hpp"

namespace kxfer::verbs {

namespace {

// Empty: the provider does not report its limit.
std::string limit_text(ibv_context* context) {
    ibv_device_attr_ex attributes{};

    if (ibv_query_device_ex(context, nullptr, &attributes)) return "";
    return fmt::format("max_dm_size of ibv_query_device_ex() is {}", attributes.max_dm_size);
}

} // namespace

tl::expected<DeviceMemory, Error> DeviceMemory::create(ibv_pd* pd, const bench::Memory& memory, int access,
                                                       const std::string& on) {
    DeviceMemory device(memory, on);
    ibv_alloc_dm_attr attributes{};

    attributes.length = memory.length();
    errno = 0;
    device.dm_.reset(ibv_alloc_dm(pd->context, &attributes));
    if (!device.dm_) {
        const int error = last_error();
        return tl::unexpected(Error(fmt::format("the provider of {} allocates no {} bytes of device memory",
                                                ibv_get_device_name(pd->context->device), memory.length()),
                                    "", error, "use --local-memory host, or a smaller --size or --depth",
                                    limit_text(pd->context)));
    }
    device.mr_.reset(ibv_reg_dm_mr(pd, device.dm_.get(), 0, memory.length(),
                                   static_cast<unsigned>(access) | IBV_ACCESS_ZERO_BASED));
    if (!device.mr_) return tl::unexpected(Error("cannot register device memory", on, last_error()));
    return device;
}

tl::expected<void, Error> DeviceMemory::load() const {
    if (int error = ibv_memcpy_to_dm(dm_.get(), 0, memory_->data(), memory_->length()))
        return tl::unexpected(Error("cannot copy to device memory", on_, error));
    return {};
}

tl::expected<void, Error> DeviceMemory::store() const {
    if (int error = ibv_memcpy_from_dm(memory_->data(), dm_.get(), 0, memory_->length()))
        return tl::unexpected(Error("cannot copy from device memory", on_, error));
    return {};
}

} // namespace kxfer::verbs

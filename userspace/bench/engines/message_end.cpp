// SPDX-License-Identifier: MIT
#include "bench/engines/message_end.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/try.hpp"
#include "bench/engines/rules.hpp"
#include "bench/engines/series.hpp"

namespace kxfer::bench {

namespace {

constexpr uint32_t capacity = 4;

Error too_long(uint64_t size, uint64_t most) {
    return Error(fmt::format("a message of {} bytes cannot be sent", size), "", EOPNOTSUPP,
                 fmt::format("use --size {} or less", most),
                 fmt::format("a message has at most {} bytes", most));
}

} // namespace

uint64_t MessageEnd::place_bytes(uint64_t size) {
    return (sizeof(kxfer_message) + size + page_bytes - 1) / page_bytes * page_bytes;
}

tl::expected<std::unique_ptr<MessageEnd>, Error> MessageEnd::offer(KernelPath& path, const std::string& name,
                                                                   uint64_t size,
                                                                   std::span<const kxfer_rule> rules) {
    if (size > KXFER_MESSAGE_LONG_MAX) return tl::unexpected(too_long(size, KXFER_MESSAGE_LONG_MAX));
    TRY_SET(auto memory, Memory::create(2 * place_bytes(size)));
    std::unique_ptr<MessageEnd> end(new MessageEnd(path, std::move(memory), size));

    TRY_SET(end->region_, path.session().add_region(end->memory_.bytes(), KXFER_REGION_F_WRITE));
    const auto most = std::max<uint32_t>(static_cast<uint32_t>(size), KXFER_MESSAGE_MAX);
    TRY_SET(end->mailbox_, path.session().add_mailbox(mailbox_name(name), capacity, most,
                                                      granting(rules, KXFER_RIGHT_SEND)));
    return end;
}

tl::expected<void, Error> MessageEnd::open(const std::string& name) {
    TRY_SET(auto other, path_.open_another(mailbox_name(name), KXFER_RIGHT_SEND));
    if (other.length() < size_) return tl::unexpected(too_long(size_, other.length()));
    other_ = std::move(other);
    return {};
}

Job MessageEnd::recv(uint64_t n) const {
    return Job::recv(region_, place(n), mailbox_, sizeof(kxfer_message) + size_, n);
}

Job MessageEnd::send(const Region& region, uint64_t offset) const {
    return Job::send(region, offset, other_, size_, 0);
}

Job MessageEnd::echo(uint64_t n) const { return send(region_, place(n) + sizeof(kxfer_message)); }

std::span<std::byte> MessageEnd::payload(uint64_t n) const {
    const auto range = memory_.bytes().subspan(place(n), sizeof(kxfer_message) + size_);
    kxfer_message head = {};

    memcpy(&head, range.data(), sizeof(head));
    return range.subspan(sizeof(head), std::min<uint64_t>(head.bytes, size_));
}

} // namespace kxfer::bench

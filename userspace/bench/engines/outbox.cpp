// SPDX-License-Identifier: MIT
#include "bench/engines/outbox.hpp"

#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/try.hpp"

namespace kxfer::bench {

namespace {

constexpr uint64_t opening_at = 2048; // after the status

uint64_t random_series() {
    std::random_device random;
    return (uint64_t{random()} << 32 | random()) | 1;
}

} // namespace

Outbox::Outbox(KernelPath& path, Memory memory)
    : on_(path.peer() + '/' + mailbox_name(path.options().export_name)), stored_(path.options().stored),
      memory_(std::move(memory)) {}

tl::expected<std::unique_ptr<Outbox>, Error> Outbox::open(KernelPath& path) {
    const std::string& name = path.options().export_name;
    TRY_SET(auto memory, Memory::create(page_bytes));
    std::unique_ptr<Outbox> outbox(new Outbox(path, std::move(memory)));

    TRY_SET(outbox->region_, path.session().add_region(outbox->memory_.bytes(), KXFER_REGION_F_WRITE));
    TRY_SET(outbox->mailbox_, path.open_another(mailbox_name(name), KXFER_RIGHT_SEND));
    TRY_SET(outbox->status_, path.open_another(status_name(name), KXFER_RIGHT_READ));
    if (outbox->status_.length() < sizeof(WireSeries))
        return tl::unexpected(Error("the export is too short", outbox->on_, ERANGE));
    return outbox;
}

Job Outbox::open_series(const Workload& workload) {
    const bool writes = workload.operation == Operation::write_imm;
    const auto bytes = writes ? 0U : static_cast<uint32_t>(workload.size);

    series_ = random_series();
    workload_ = workload;
    credits_ = verbs::Credits({mailbox_capacity, workload.depth, bytes});
    const WireOpening opening =
        encode(Opening{series_, workload.operation, workload.depth, bytes, workload.stride()});
    memcpy(memory_.data() + opening_at, &opening, sizeof(opening));
    return send(region_, opening_at, sizeof(opening), 0);
}

// Messages with an immediate are always answered.
const char* Outbox::promise(Operation operation, uint64_t size, bool stored, bool eager) {
    if (operation == Operation::write_imm) return message_answered;
    if (operation == Operation::send && eager && !stored && size <= KXFER_MESSAGE_EAGER_MAX)
        return message_placed;
    return size > KXFER_MESSAGE_MAX ? message_taken : message_answered;
}

Job Outbox::next(const Workload& workload, const Region& region) {
    const uint64_t message = credits_.sent();
    const uint64_t at = workload.slot_offset(message);
    const uint32_t immediate = verbs::immediate_of(message);

    credits_.spend(1);
    if (workload.operation == Operation::write_imm) return Job::send(mailbox_, immediate, at);
    if (workload.operation == Operation::send) return send(region, at, workload.size, at);
    return Job::send(region, at, mailbox_, workload.size, at, immediate);
}

Job Outbox::send(const Region& region, uint64_t at, uint64_t bytes, uint64_t user_data) const {
    return stored_ ? Job::send_stored(region, at, mailbox_, bytes, user_data)
                   : Job::send(region, at, mailbox_, bytes, user_data);
}

Job Outbox::read_status() {
    reading_ = true;
    return Job::read(region_, 0, status_, 0, sizeof(WireSeries), status_mark);
}

SeriesStatus Outbox::status() const {
    WireSeries wire;

    memcpy(&wire, memory_.data(), sizeof(wire));
    return decode(wire);
}

// Until the peer has taken the opening, its status is that of an older series.
tl::expected<void, Error> Outbox::learn() {
    const SeriesStatus now = status();

    reading_ = false;
    if (sent() == 0 && now.series != series_) return {};
    if (now.series != series_)
        return tl::unexpected(Error("another sender has begun to use", on_, EBUSY,
                                    "one measurement at a time; or serve another export for it"));
    if (now.wrong != 0 || !credits_.learn(now.received))
        return tl::unexpected(
            Error(fmt::format("the peer got {} wrong messages of {}", now.wrong, now.received), on_, EBADMSG,
                  "does another program send there? If not, keep this result: it is a defect"));
    return {};
}

} // namespace kxfer::bench

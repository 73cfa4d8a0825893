// SPDX-License-Identifier: MIT
#include "libfabric/mailbox.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "libfabric/domain.hpp"
#include "libfabric/info.hpp"

namespace kxfer::fi {

static constexpr size_t slot_bytes = sizeof(kxfer_message) + message_bytes;
static constexpr uint16_t first_number = 20000, nr_numbers = 40000;

Mailbox::~Mailbox() {
    if (region_ != 0) domain_.remove_region(region_);
    if (memory_) munmap(memory_, memory_bytes());
}

size_t Mailbox::memory_bytes() const { return size_.nr_slots * slot_bytes; }

int Mailbox::make_slots() {
    if (region_ != 0) return 0;
    if (!memory_) {
        void* at = mmap(nullptr, memory_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return -FI_ENOMEM;
        memory_ = static_cast<uint8_t*>(at);
    }
    int ret = domain_.add_region(memory_, memory_bytes(), true, &region_);
    if (ret != 0) return ret;
    slots_.reserve(size_.nr_slots);
    for (size_t i = 0; i < size_.nr_slots; i++) {
        slots_.emplace_back(*this, i * slot_bytes);
        free_.push_back(&slots_.back());
    }
    return 0;
}

// -EEXIST: the number is taken on this node.
int Mailbox::make(uint16_t number) {
    kxfer_mailbox_add args{};
    kxfer_rule rule;
    std::string name = mailbox_name(number);
    name.copy(reinterpret_cast<char*>(args.name), sizeof(args.name) - 1);
    args.rules = reinterpret_cast<uintptr_t>(domain_.rule_for(KXFER_RIGHT_SEND, rule));
    args.nr_rules = args.rules ? 1 : 0;
    args.capacity = size_.capacity;
    args.max_bytes = message_bytes;
    args.cookie = domain_.id;
    int ret = kxfer_mailbox_create(domain_.session, &args);
    if (ret == 0) mailbox_ = args.export_id;
    return ret;
}

// Numbers are of the node. Processes that start together begin at different ones.
int Mailbox::open(Address& address) {
    int ret = make_slots();
    if (ret != 0) return ret;
    if (address.port != 0) {
        ret = make(address.port);
        return ret == -EEXIST ? -FI_EADDRINUSE : ret;
    }
    uint64_t start = random_number();
    for (unsigned i = 0; i < nr_numbers; i++) {
        auto number = static_cast<uint16_t>(first_number + (start + i) % nr_numbers);
        ret = make(number);
        if (ret == 0) address.port = number;
        if (ret != -EEXIST) return ret;
    }
    return -FI_EADDRNOTAVAIL;
}

void Mailbox::close() {
    if (mailbox_ != 0) kxfer_mailbox_destroy(domain_.session, mailbox_);
    mailbox_ = 0;
}

void Mailbox::go_on() {
    while (!free_.empty() && mailbox_ != 0) {
        Slot& slot = *free_.back();
        if (domain_.submit(kxfer_job_make_recv(region_, slot.offset, mailbox_, slot_bytes, 0), slot) != 0)
            break;
        nr_recvs_++;
        free_.pop_back();
    }
}

void Mailbox::came(Slot& slot, const kxfer_completion& completion) {
    nr_recvs_--;
    // What came before the mailbox was withdrawn, and is seen after it, is of no use.
    if (mailbox_ != 0 && completion.status == 0 && completion.bytes >= sizeof(kxfer_message)) {
        kxfer_message message;
        memcpy(&message, memory_ + slot.offset, sizeof(message));
        if (message.bytes > 0 && message.bytes <= message_bytes)
            reader_.take(memory_ + slot.offset + sizeof(message), message.bytes, message.word);
    }
    free_.push_back(&slot);
}

} // namespace kxfer::fi

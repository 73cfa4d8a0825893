// SPDX-License-Identifier: MIT
//
// A mailbox of this process, with RECVs into registered memory: from go_on() on there are always some, so
// that what comes is taken whether or not the program waits for it. Callers hold the domain's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "libfabric/address.hpp"
#include "libfabric/pending.hpp"

namespace kxfer::fi {

class Domain;

class Mailbox {
  public:
    // Whose mailbox it is.
    class Reader {
      public:
        // A message, with the word of its sender's connection.
        virtual void take(const uint8_t* bytes, size_t length, uint64_t word) = 0;

      protected:
        ~Reader() = default;
    };

    // @capacity: messages that the module keeps; @nr_slots: RECVs.
    struct Size {
        uint32_t capacity;
        size_t nr_slots;
    };

    Mailbox(Domain& domain, Reader& reader, Size size) : domain_(domain), reader_(reader), size_(size) {}
    ~Mailbox();

    // Makes the mailbox of the address's number; if that is 0, of one that is free, which the address gets.
    int open(Address& address);
    bool is_open() const { return mailbox_ != 0; }

    // Withdraws the mailbox. Its RECVs end.
    void close();

    // Hands RECVs in, again.
    void go_on();

    unsigned in_flight() const { return nr_recvs_; }

  private:
    // A RECV.
    struct Slot final : Pending {
        Slot(Mailbox& in, size_t at) : mailbox(in), offset(at) {}
        void ended(const kxfer_completion& completion) override { mailbox.came(*this, completion); }
        Mailbox& mailbox;
        size_t offset;
    };

    size_t memory_bytes() const;
    int make_slots();
    int make(uint16_t number);
    void came(Slot& slot, const kxfer_completion& completion);

    Domain& domain_;
    Reader& reader_;
    Size size_;
    uint8_t* memory_ = nullptr;
    uint32_t region_ = 0;
    uint32_t mailbox_ = 0;
    unsigned nr_recvs_ = 0;
    std::vector<Slot> slots_;
    std::vector<Slot*> free_; // slots without a RECV
};

} // namespace kxfer::fi

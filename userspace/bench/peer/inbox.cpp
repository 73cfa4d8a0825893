// SPDX-License-Identifier: MIT
//
// RECVs get messages in the order in which they were submitted. Completions may come in
// another order, so a place is taken only when its turn has come.

#include "bench/peer/inbox.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <pthread.h>

#include "base/try.hpp"
#include "bench/engines/rules.hpp"

namespace kxfer::bench {

namespace {

// The longest message: limited to the memory that messages go into, so a small export needs little.
uint32_t longest(const kxfer_query& query, std::span<const std::byte> memory) {
    if (!(query.features & KXFER_FEATURE_LONG_MESSAGE)) return KXFER_MESSAGE_MAX;
    return static_cast<uint32_t>(
        std::clamp<size_t>(memory.size(), KXFER_MESSAGE_MAX, KXFER_MESSAGE_LONG_MAX));
}

} // namespace

Inbox::Inbox(Session session, std::string name, Memory memory, std::span<std::byte> slots, uint32_t max_bytes)
    : session_(std::move(session)), name_(std::move(name)), memory_(std::move(memory)), series_(slots),
      max_bytes_(max_bytes), completions_(places) {}

uint64_t Inbox::memory_bytes(uint32_t max_bytes) {
    const uint64_t long_bytes = sizeof(kxfer_message) + uint64_t{max_bytes};

    return page_bytes + places * short_bytes + (max_bytes > KXFER_MESSAGE_MAX ? long_places * long_bytes : 0);
}

tl::expected<std::unique_ptr<Inbox>, Error>
Inbox::start(const std::string& export_name, std::span<std::byte> memory, std::span<const kxfer_rule> rules) {
    if (status_name(export_name).size() > KXFER_NAME_MAX)
        return tl::unexpected(Error("cannot offer a mailbox beside", export_name, EINVAL,
                                    "give it a shorter name", "its name would be too long"));
    TRY_SET(auto session, Session::open());
    TRY_SET(const auto query, session.query());
    const uint32_t max_bytes = longest(query, memory);
    TRY_SET(auto own, Memory::create(memory_bytes(max_bytes)));
    std::unique_ptr<Inbox> inbox(
        new Inbox(std::move(session), mailbox_name(export_name), std::move(own), memory, max_bytes));
    TRY(inbox->offer(export_name, rules));
    try {
        inbox->thread_ = std::thread(&Inbox::run, inbox.get());
    } catch (const std::system_error& error) {
        return tl::unexpected(
            Error("cannot start a thread for", inbox->name_, error.code().value(), "see: ulimit -u"));
    }
    return inbox;
}

tl::expected<void, Error> Inbox::offer(const std::string& export_name, std::span<const kxfer_rule> rules) {
    TRY_SET(region_, session_.add_region(memory_.bytes(), KXFER_REGION_F_WRITE));
    TRY_SET(status_export_, session_.add_export(region_, status_name(export_name), sizeof(WireSeries),
                                                KXFER_RIGHT_READ, granting(rules, KXFER_RIGHT_READ)));
    TRY_SET(mailbox_,
            session_.add_mailbox(name_, mailbox_capacity, max_bytes_, granting(rules, KXFER_RIGHT_SEND)));
    mailbox_id_ = mailbox_.id();
    return {};
}

// When the mailbox ends, so do the waiting RECVs, and no new RECV is accepted.
Inbox::~Inbox() {
    mailbox_.reset();
    if (thread_.joinable()) thread_.join();
}

// The place for the next RECV: places of a kind are used in turn.
Inbox::Place Inbox::new_place() const {
    const size_t long_at = page_bytes + places * short_bytes;
    const size_t long_bytes = sizeof(kxfer_message) + size_t{max_bytes_};

    if (wants_long_)
        return {memory_.bytes().subspan(long_at + long_posted_ % long_places * long_bytes, long_bytes), 0,
                true};
    return {memory_.bytes().subspan(page_bytes + posted_ % places * short_bytes, short_bytes)};
}

// Blocks all signals: they are for other threads. A sender notices if this thread ends early.
void Inbox::run() {
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (exchange()) {
    }
}

void Inbox::make_recvs() {
    jobs_.clear();
    while (posted_ - taken_ < places && !(wants_long_ && long_posted_ - long_taken_ == long_places)) {
        Place& place = places_[posted_ % places];
        place = new_place();
        jobs_.push_back(kxfer_job_make_recv(region_.id(),
                                            static_cast<uint64_t>(place.range.data() - memory_.data()),
                                            mailbox_id_, place.range.size(), posted_ % places));
        posted_++;
        long_posted_ += place.is_long;
    }
}

// Submits RECVs for the free places, and waits for a message.
bool Inbox::exchange() {
    kxfer_submit args = {};

    make_recvs();
    if (jobs_.empty()) {
        const auto more = session_.reap(completions_, 1, Deadline::never());
        return more ? handle(static_cast<uint32_t>(more->size())) : endurance_.survives(more.error().number);
    }
    args.jobs = reinterpret_cast<uintptr_t>(jobs_.data());
    args.nr_jobs = static_cast<uint32_t>(jobs_.size());
    args.completions = reinterpret_cast<uintptr_t>(completions_.data());
    args.nr_completions = places;
    args.wait = 1;
    const int accepted = kxfer_job_submit_wait(session_.get(), &args);
    for (int left = static_cast<int>(jobs_.size()) - std::max(accepted, 0); left > 0; left--)
        long_posted_ -= places_[--posted_ % places].is_long;
    if (accepted < 0) return endurance_.survives(-accepted);
    // RECVs accepted before the error may have ended.
    return handle(args.reaped) && (args.error == 0 || endurance_.survives(static_cast<int>(args.error)));
}

// Handles the end of a RECV. False: no RECV will get a message any more. Otherwise the place is free
// for the next RECV. A message that was too long stays for another RECV; one that could not be
// delivered is lost, and its sender gets an error.
bool Inbox::end(const Completion& completion) {
    Place& place = places_[completion.user_data];
    const bool too_long = completion.status == -EMSGSIZE && !place.is_long;

    place.bytes = completion.status == 0 ? completion.bytes : 0;
    place.ended = true;
    wants_long_ = wants_long_ || (too_long && max_bytes_ > KXFER_MESSAGE_MAX);
    if (completion.status == 0) endurance_.worked();
    return completion.status == 0 || too_long || endurance_.survives(-completion.status);
}

// Takes the message of a place, if its RECV got one.
void Inbox::take(Place& place) {
    if (const auto message = Message::at(place.range, place.bytes)) {
        if (const auto opening = decode_opening(message->payload()))
            wants_long_ = opening->bytes > KXFER_MESSAGE_MAX && max_bytes_ > KXFER_MESSAGE_MAX;
        series_.take(*message);
    }
    place.ended = false;
    long_taken_ += place.is_long;
    taken_++;
}

// False: as end().
bool Inbox::handle(uint32_t nr_completions) {
    const uint32_t before = taken_;

    for (uint32_t i = 0; i < nr_completions; i++)
        if (!end(completions_[i])) return false;
    while (taken_ != posted_ && places_[taken_ % places].ended) take(places_[taken_ % places]);
    if (taken_ != before) series_.publish(status());
    return true;
}

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
#include "libfabric/matching.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace kxfer::fi;

namespace {

// Matching compares peers by their addresses only.
char places[2];
Peer& first_peer = reinterpret_cast<Peer&>(places[0]);
Peer& second_peer = reinterpret_cast<Peer&>(places[1]);

std::unique_ptr<Receive> receive_of(void* context, bool tagged, uint64_t tag = 0, uint64_t ignore = 0,
                                    Peer* source = nullptr) {
    auto receive = std::make_unique<Receive>();
    receive->context = context;
    receive->tagged = tagged;
    receive->tag = tag;
    receive->ignore = ignore;
    receive->source = source;
    return receive;
}

std::unique_ptr<Receive> several_of(char* at, size_t length) {
    auto receive = receive_of(at, false);
    receive->memory.set(at, length);
    receive->several = std::make_shared<Several>();
    return receive;
}

Header header_of(uint64_t length, bool tagged = false, uint64_t tag = 0, Kind kind = Kind::data) {
    Header header{};
    header.kind = kind;
    header.flags = tagged ? header_tagged : 0;
    header.length = length;
    header.tag = tag;
    return header;
}

Arrival tagged_of(uint64_t tag, Peer& peer = first_peer) { return Arrival(peer, header_of(1, true, tag)); }

class LibfabricMatching : public testing::Test {
  protected:
    Matching matching;
    int a = 0, b = 0, c = 0; // contexts

    // The context of the receive that takes the message; NULL: none.
    void* taker_of(const Arrival& arrival) {
        auto receive = matching.take_receive(arrival);
        return receive ? receive->context : nullptr;
    }

    Arrival* keep(uint64_t tag, Peer& peer = first_peer) {
        auto* arrival = new Arrival(peer, header_of(1, true, tag));
        matching.add(arrival);
        return arrival;
    }

    // Takes the first message for a receive; its tag, or 0.
    uint64_t take(const Receive& receive, void* claimant = nullptr) {
        std::unique_ptr<Arrival> taken(matching.take_arrival(receive, claimant));
        return taken ? taken->header.tag : 0;
    }
};

} // namespace

// ---- messages that meet receives ----

TEST_F(LibfabricMatching, receives_are_taken_in_their_order) {
    matching.add(receive_of(&a, true, 7));
    matching.add(receive_of(&b, true, 7));
    EXPECT_EQ(taker_of(tagged_of(7)), &a);
    EXPECT_EQ(taker_of(tagged_of(7)), &b);
    EXPECT_EQ(taker_of(tagged_of(7)), nullptr);
}

TEST_F(LibfabricMatching, bits_to_ignore_are_ignored_and_no_others) {
    matching.add(receive_of(&a, true, 0xff00, 0x00ff));
    EXPECT_EQ(taker_of(tagged_of(0xfe00)), nullptr);
    EXPECT_EQ(taker_of(tagged_of(1ULL << 63 | 0xff00)), nullptr);
    EXPECT_EQ(taker_of(tagged_of(0xff5a)), &a);
    matching.add(receive_of(&b, true, 0, UINT64_MAX));
    EXPECT_EQ(taker_of(tagged_of(0x123456789abcdef0)), &b);
}

// Bits that are ignored need not be 0 in the tag of the receive.
TEST_F(LibfabricMatching, ignored_bits_of_the_receive_do_not_matter) {
    matching.add(receive_of(&a, true, 0xff5a, 0x00ff));
    EXPECT_EQ(taker_of(tagged_of(0xff00)), &a);
}

TEST_F(LibfabricMatching, tagged_and_other_messages_do_not_meet) {
    matching.add(receive_of(&a, false));
    matching.add(receive_of(&b, true, 0, UINT64_MAX));
    EXPECT_EQ(taker_of(tagged_of(0)), &b);
    EXPECT_EQ(taker_of(tagged_of(0)), nullptr);
    EXPECT_EQ(taker_of(Arrival(first_peer, header_of(1))), &a);
}

TEST_F(LibfabricMatching, a_directed_receive_takes_from_its_peer_only) {
    matching.add(receive_of(&a, true, 0, UINT64_MAX, &second_peer));
    matching.add(receive_of(&b, true, 0, UINT64_MAX));
    EXPECT_EQ(taker_of(tagged_of(1, first_peer)), &b);
    EXPECT_EQ(taker_of(tagged_of(1, first_peer)), nullptr);
    EXPECT_EQ(taker_of(tagged_of(1, second_peer)), &a);
}

// ---- receives that meet messages ----

TEST_F(LibfabricMatching, messages_are_taken_in_their_order) {
    keep(1);
    keep(2);
    keep(3);
    EXPECT_EQ(take(*receive_of(&a, true, 2)), 2U);
    EXPECT_EQ(take(*receive_of(&a, true, 0, UINT64_MAX)), 1U);
    EXPECT_EQ(take(*receive_of(&a, true, 0, UINT64_MAX)), 3U);
    EXPECT_EQ(take(*receive_of(&a, true, 0, UINT64_MAX)), 0U);
}

TEST_F(LibfabricMatching, a_directed_receive_leaves_messages_of_others) {
    keep(1, first_peer);
    keep(2, second_peer);
    EXPECT_EQ(take(*receive_of(&a, true, 0, UINT64_MAX, &second_peer)), 2U);
    EXPECT_EQ(take(*receive_of(&a, true, 0, UINT64_MAX, &second_peer)), 0U);
}

TEST_F(LibfabricMatching, a_look_takes_nothing) {
    Arrival* kept = keep(5);
    EXPECT_EQ(matching.find_arrival(*receive_of(&a, true, 5)), kept);
    EXPECT_EQ(matching.find_arrival(*receive_of(&a, true, 6)), nullptr);
    EXPECT_EQ(matching.find_arrival(*receive_of(&a, false)), nullptr);
    EXPECT_EQ(take(*receive_of(&a, true, 5)), 5U);
}

TEST_F(LibfabricMatching, what_was_claimed_is_for_its_claimant) {
    auto any = receive_of(&a, true, 0, UINT64_MAX);
    keep(5)->claimant = &c;
    EXPECT_EQ(matching.find_arrival(*any), nullptr);
    EXPECT_EQ(take(*any), 0U);
    EXPECT_EQ(take(*any, &b), 0U);
    EXPECT_EQ(take(*any, &c), 5U);
    EXPECT_EQ(take(*any, &c), 0U);
}

// ---- buffers for several ----

TEST_F(LibfabricMatching, a_buffer_for_several_is_cut_in_parts) {
    char buffer[100];
    matching.min_multi_recv = 30;
    matching.add(several_of(buffer, sizeof(buffer)));
    auto first = matching.take_receive(Arrival(first_peer, header_of(40)));
    auto second = matching.take_receive(Arrival(first_peer, header_of(0)));
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->memory.ranges[0].iov_base, buffer);
    EXPECT_EQ(second->memory.ranges[0].iov_base, buffer + 40);
    EXPECT_EQ(second->memory.length, 60U);
    EXPECT_EQ(first->several, second->several);
    EXPECT_EQ(first->several->users, 2U);
    EXPECT_FALSE(first->several->retired);
}

TEST_F(LibfabricMatching, a_buffer_is_retired_when_less_than_the_least_is_left) {
    char buffer[100];
    matching.min_multi_recv = 30;
    matching.add(several_of(buffer, sizeof(buffer)));
    auto first = matching.take_receive(Arrival(first_peer, header_of(70)));
    EXPECT_FALSE(first->several->retired); // 30 are left
    auto second = matching.take_receive(Arrival(first_peer, header_of(1)));
    EXPECT_TRUE(second->several->retired); // 29
    EXPECT_EQ(taker_of(Arrival(first_peer, header_of(1))), nullptr);
}

TEST_F(LibfabricMatching, a_message_longer_than_what_is_left_gets_what_is_left) {
    char buffer[100];
    matching.min_multi_recv = 0;
    matching.add(several_of(buffer, sizeof(buffer)));
    auto only = matching.take_receive(Arrival(first_peer, header_of(UINT64_MAX)));
    EXPECT_EQ(only->memory.length, 100U);
    EXPECT_TRUE(only->several->retired);
    EXPECT_EQ(taker_of(Arrival(first_peer, header_of(1))), nullptr);
}

// ---- the end of a receive, and of a peer ----

TEST_F(LibfabricMatching, a_receive_is_cancelled_by_its_context) {
    matching.add(receive_of(&a, true, 7));
    matching.add(receive_of(&b, true, 7));
    matching.add(receive_of(&c, false));
    EXPECT_EQ(matching.cancel(&a)->context, &a);
    EXPECT_EQ(matching.cancel(&a), nullptr);
    EXPECT_EQ(matching.cancel(&c)->context, &c);
    EXPECT_EQ(taker_of(tagged_of(7)), &b);
}

TEST_F(LibfabricMatching, receives_of_one_peer_end_with_it) {
    matching.add(receive_of(&a, true, 7, 0, &first_peer));
    matching.add(receive_of(&b, false, 0, 0, &second_peer));
    matching.add(receive_of(&c, true, 7));
    EXPECT_TRUE(matching.waits_for(first_peer));
    auto ended = matching.take_receives_from(first_peer);
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended.front()->context, &a);
    EXPECT_FALSE(matching.waits_for(first_peer));
    EXPECT_TRUE(matching.waits_for(second_peer));
    EXPECT_EQ(taker_of(tagged_of(7)), &c);
}

TEST_F(LibfabricMatching, what_a_peer_has_sent_in_full_outlives_it) {
    Arrival *whole = keep(1), *begun = keep(2), *of_another = keep(3, second_peer);
    auto* offer = new Arrival(first_peer, header_of(1, true, 4, Kind::offer));
    matching.add(offer);
    whole->received = 1;
    auto lost = matching.take_incomplete_from(first_peer);
    EXPECT_EQ(lost, (std::list<Arrival*>{begun, offer}));
    for (Arrival* arrival : lost) delete arrival;
    EXPECT_EQ(take(*receive_of(&a, true, 0, UINT64_MAX)), 1U);
    EXPECT_EQ(matching.find_arrival(*receive_of(&a, true, 0, UINT64_MAX)), of_another);
}

// ---- the bytes of a message ----

namespace {

const uint8_t* bytes_of(const char* text) { return reinterpret_cast<const uint8_t*>(text); }

} // namespace

TEST(LibfabricArrival, bytes_come_once_and_in_their_order) {
    Arrival arrival(first_peer, header_of(10));
    EXPECT_TRUE(arrival.may_get(0, 6));
    EXPECT_FALSE(arrival.may_get(0, 11));
    EXPECT_FALSE(arrival.may_get(4, 6));
    arrival.add(bytes_of("012345"), 6);
    EXPECT_FALSE(arrival.may_get(0, 4));
    EXPECT_FALSE(arrival.may_get(7, 3));
    EXPECT_FALSE(arrival.may_get(6, 5));
    EXPECT_FALSE(arrival.may_get(6, UINT64_MAX));
    EXPECT_FALSE(arrival.may_get(UINT64_MAX, 7));
    EXPECT_TRUE(arrival.may_get(6, 4));
}

// A peer that sends bytes of an offer unasked would end it while a READ writes to its receive.
TEST(LibfabricArrival, bytes_of_an_offer_come_when_they_were_asked_for) {
    Arrival arrival(first_peer, header_of(10, false, 0, Kind::offer));
    EXPECT_FALSE(arrival.may_get(0, 10));
    arrival.wanted = true;
    EXPECT_TRUE(arrival.may_get(0, 10));
}

TEST(LibfabricArrival, what_came_before_its_receive_gets_there) {
    char head[4] = {}, tail[8] = {};
    const iovec iov[] = {{head, sizeof(head)}, {tail, sizeof(tail)}};
    Arrival arrival(first_peer, header_of(10));
    arrival.add(bytes_of("012"), 3);
    arrival.add(bytes_of("345678"), 6);
    arrival.receive = receive_of(nullptr, false);
    ASSERT_TRUE(arrival.receive->memory.set(iov, 2));
    EXPECT_EQ(arrival.hand_over(), 0);
    EXPECT_FALSE(arrival.is_complete());
    arrival.add(bytes_of("9"), 1);
    EXPECT_TRUE(arrival.is_complete());
    EXPECT_EQ(std::string(head, 4) + std::string(tail, 6), "0123456789");
    EXPECT_EQ(tail[6], 0);
}

// Nothing beyond the end of the receive is written.
TEST(LibfabricArrival, a_message_that_is_too_long_is_cut) {
    char at[6] = {};
    Arrival arrival(first_peer, header_of(10));
    arrival.receive = receive_of(nullptr, false);
    arrival.receive->memory.set(at, 4);
    arrival.add(bytes_of("012"), 3);
    arrival.add(bytes_of("3456789"), 7);
    EXPECT_TRUE(arrival.is_complete());
    EXPECT_EQ(std::string(at, 6), std::string("0123\0\0", 6));
}

// Messages of 64 GiB of which four bytes come.
TEST(LibfabricArrival, a_length_that_is_only_told_takes_no_memory) {
    std::vector<std::unique_ptr<Arrival>> arrivals;
    for (int i = 0; i < 10000; i++) {
        arrivals.push_back(std::make_unique<Arrival>(first_peer, header_of(longest)));
        arrivals.back()->add(bytes_of("0123"), 4);
    }
    for (auto& arrival : arrivals) {
        char got[4] = {};
        arrival->receive = receive_of(nullptr, false);
        arrival->receive->memory.set(got, sizeof(got));
        ASSERT_EQ(arrival->hand_over(), 0);
        ASSERT_EQ(memcmp(got, "0123", 4), 0);
    }
}

// ---- memory ----

TEST(LibfabricMemory, a_registration_holds_what_is_within_it) {
    char at[100];
    Registration readable{at + 10, 50};
    EXPECT_TRUE(readable.holds(at + 10, 50, false));
    EXPECT_TRUE(readable.holds(at + 60, 0, false));
    EXPECT_FALSE(readable.holds(at + 9, 1, false));
    EXPECT_FALSE(readable.holds(at + 10, 51, false));
    EXPECT_FALSE(readable.holds(at + 59, 2, false));
    EXPECT_FALSE(readable.holds(at + 59, SIZE_MAX, false));
    EXPECT_FALSE(readable.holds(at + 61, 0, false));
    EXPECT_FALSE(readable.holds(at + 10, 1, true));
    EXPECT_EQ(readable.offset_of(at + 15), 5U);
}

TEST(LibfabricMemory, sums_of_ranges_do_not_wrap) {
    char at[8];
    const iovec iov[] = {{at, 4}, {at, SIZE_MAX - 4}, {at, 1}, {at, 0}, {at, 0}};
    Memory memory;
    EXPECT_TRUE(memory.set(iov, 2));
    EXPECT_EQ(memory.length, SIZE_MAX);
    EXPECT_FALSE(memory.set(iov, 3));
    EXPECT_FALSE(memory.set(iov, iov_limit + 1));
    EXPECT_TRUE(memory.set(iov, 0));
    EXPECT_EQ(memory.length, 0U);
}

TEST(LibfabricMemory, ranges_are_walked_from_any_place) {
    char first[] = "012", none = 'x', last[] = "3456";
    const iovec iov[] = {{first, 3}, {&none, 0}, {last, 4}};
    uint8_t got[8] = {};
    Memory memory;
    ASSERT_TRUE(memory.set(iov, 3));
    memory.copy_from(2, got, 3);
    EXPECT_STREQ(reinterpret_cast<char*>(got), "234");
    memory.copy_to(1, bytes_of("abcdefghij"), 10); // what is beyond the end is left out
    EXPECT_STREQ(first, "0ab");
    EXPECT_STREQ(last, "cdef");
    EXPECT_EQ(none, 'x');
}

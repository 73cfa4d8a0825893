// SPDX-License-Identifier: MIT
//
// libkxfer without the module: opening, addresses, names, moving of objects, and the exported
// symbols.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>

#include <kxfer/kxfer.hpp>

using namespace kxfer;
using namespace std::chrono_literals;

namespace {

std::string format(const char* ip, uint16_t port, uint32_t scope = 0) {
    kxfer_addr address = {};
    address.family = inet_pton(AF_INET, ip, address.addr) == 1 ? AF_INET : AF_INET6;
    if (address.family == AF_INET6) inet_pton(AF_INET6, ip, address.addr);
    address.port = port;
    address.scope_id = scope;
    return to_string(address);
}

// Counts destructions by Owned.
int destroyed_id = 0;
int nr_destroyed = 0;
int destroy_nothing(kxfer_session*, int id) {
    destroyed_id = id;
    nr_destroyed++;
    return -EBUSY;
}
using Thing = detail::Owned<int, destroy_nothing>;

} // namespace

TEST(Session, that_cannot_be_opened_says_on_what_and_why) {
    const auto session = Session::open("/dev/no-such-device");
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().on, "/dev/no-such-device");
    EXPECT_EQ(session.error().number, ENOENT);
}

TEST(Session, of_another_device_is_refused_by_its_calls) {
    kxfer_session* session = nullptr;
    EXPECT_EQ(kxfer_session_open("/dev/null", &session), -ENOTTY);
    EXPECT_EQ(session, nullptr);
}

TEST(Session, calls_leave_errno_alone) {
    kxfer_session* session = nullptr;
    errno = 42;
    EXPECT_EQ(kxfer_session_open("/dev/null", &session), -ENOTTY);
    EXPECT_EQ(errno, 42);
    EXPECT_EQ(kxfer_session_open("/dev/no-such-device", &session), -ENOENT);
    EXPECT_EQ(errno, 42);
}

TEST(Address, is_written_without_touching_errno) {
    errno = 42;
    EXPECT_EQ(format("fe80::1", 1, 999999), "[fe80::1%999999]:1"); // no such interface exists
    EXPECT_EQ(errno, 42);
}

TEST(Session, close_of_nothing_is_fine) { kxfer_session_close(nullptr); }

TEST(Address, is_written_as_people_write_it) {
    EXPECT_EQ(format("10.77.0.1", 7625), "10.77.0.1:7625");
    EXPECT_EQ(format("10.77.0.1", 0), "10.77.0.1");
    EXPECT_EQ(format("fd77::1", 7625), "[fd77::1]:7625");
    EXPECT_EQ(format("fd77::1", 0), "fd77::1");
    EXPECT_EQ(format("fe80::1", 1, if_nametoindex("lo")), "[fe80::1%lo]:1");
    EXPECT_EQ(format("fe80::1", 1, 999999), "[fe80::1%999999]:1");
}

TEST(Address, longest_fits_the_promised_64_bytes) {
    EXPECT_EQ(format("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535, 4294967295U),
              "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
}

TEST(Address, that_does_not_fit_or_is_none_is_refused) {
    kxfer_addr address = {};
    std::array<char, 8> text = {};
    EXPECT_EQ(kxfer_addr_format(&address, text.data(), text.size()), -EAFNOSUPPORT);
    address.family = AF_INET;
    EXPECT_EQ(kxfer_addr_format(&address, text.data(), 7), -ENOSPC);
    EXPECT_EQ(kxfer_addr_format(&address, text.data(), 8), 0);
    EXPECT_STREQ(text.data(), "0.0.0.0");
}

TEST(Address, comes_from_sockets_addresses) {
    sockaddr_in6 in6 = {};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(7625);
    in6.sin6_scope_id = 3;
    in6.sin6_addr.s6_addr[15] = 9;
    kxfer_addr address = {};
    ASSERT_EQ(kxfer_addr_from_sockaddr(reinterpret_cast<sockaddr*>(&in6), &address), 0);
    EXPECT_EQ(address.family, AF_INET6);
    EXPECT_EQ(address.port, 7625);
    EXPECT_EQ(address.scope_id, 3U);
    EXPECT_EQ(address.addr[15], 9);
    sockaddr other = {};
    other.sa_family = AF_UNIX;
    EXPECT_EQ(kxfer_addr_from_sockaddr(&other, &address), -EAFNOSUPPORT);
}

TEST(Owned, destroys_once_however_it_is_moved) {
    nr_destroyed = 0;
    {
        Thing first(nullptr, 7);
        Thing second(std::move(first));
        Thing third;
        third = std::move(second);
        EXPECT_EQ(third.id(), 7);
        EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what is left behind
        EXPECT_FALSE(second); // NOLINT(bugprone-use-after-move)
        EXPECT_EQ(nr_destroyed, 0);
    }
    EXPECT_EQ(nr_destroyed, 1);
    EXPECT_EQ(destroyed_id, 7);
}

TEST(Owned, destroys_what_it_had_when_another_is_moved_in) {
    nr_destroyed = 0;
    Thing thing(nullptr, 1);
    thing = Thing(nullptr, 2);
    EXPECT_EQ(nr_destroyed, 1);
    EXPECT_EQ(destroyed_id, 1);
}

TEST(Owned, reset_tells_what_the_destructor_swallows) {
    Thing thing(nullptr, 1);
    EXPECT_EQ(thing.reset(), -EBUSY);
    EXPECT_EQ(thing.reset(), 0);
}

TEST(Text, of_the_kernel_is_cut_at_its_zero_or_its_end) {
    uint8_t name[4] = {'a', 'b', 0, 'x'};
    EXPECT_EQ(text_of(name), "ab");
    EXPECT_TRUE(set_text(name, "q"));
    EXPECT_EQ(std::memcmp(name, "q\0\0\0", 4), 0);
    EXPECT_TRUE(set_text(name, "all"));
    EXPECT_EQ(text_of(name), "all");
}

TEST(Text, that_would_be_cut_to_another_is_refused) {
    uint8_t name[4] = {'a', 'b', 0, 'x'};
    EXPECT_FALSE(set_text(name, "longer than that"));
    EXPECT_EQ(text_of(name), "");
    EXPECT_FALSE(set_text(name, "four"));
    EXPECT_FALSE(set_text(name, std::string_view("a\0b", 3)));
}

TEST(Job, carries_what_it_was_made_of) {
    const Job job = Job::notify(Target(), 77, 5);
    EXPECT_EQ(job.op, static_cast<uint32_t>(KXFER_OP_NOTIFY));
    EXPECT_EQ(job.cookie, 77U);
    EXPECT_EQ(job.user_data, 5U);
    EXPECT_EQ(job.length, 0U);
    const Job read = Job::read(Region(), 1, Target(), 2, 3, 4);
    EXPECT_EQ(read.op, static_cast<uint32_t>(KXFER_OP_READ));
    EXPECT_EQ(read.region_offset, 1U);
    EXPECT_EQ(read.target_offset, 2U);
    EXPECT_EQ(read.length, 3U);
}

TEST(Job, of_C_and_of_Cpp_are_the_same) {
    const kxfer_job read = kxfer_job_make_read(0, 1, 0, 2, 3, 4);
    const Job same = Job::read(Region(), 1, Target(), 2, 3, 4);
    EXPECT_EQ(std::memcmp(&read, static_cast<const kxfer_job*>(&same), sizeof(read)), 0);
    const kxfer_job write = kxfer_job_make_write(7, 1, 8, 2, 3, 4);
    EXPECT_EQ(write.op, static_cast<uint32_t>(KXFER_OP_WRITE));
    EXPECT_EQ(write.region, 7U);
    EXPECT_EQ(write.target, 8U);
    const kxfer_job swap = kxfer_job_make_compare_swap(0, 8, 0, 16, 3, 4, 5);
    const Job notified = Job::write_notify(Region(), 1, Target(), 2, 3, 4, 5);
    EXPECT_EQ(notified.op, static_cast<uint32_t>(KXFER_OP_WRITE));
    EXPECT_EQ(notified.flags, KXFER_JOB_F_NOTIFY);
    EXPECT_EQ(notified.cookie, 4U);
    EXPECT_EQ(notified.user_data, 5U);
    const Job same_swap = Job::compare_swap(Region(), 8, Target(), 16, 3, 4, 5);
    EXPECT_EQ(std::memcmp(&swap, static_cast<const kxfer_job*>(&same_swap), sizeof(swap)), 0);
    EXPECT_EQ(swap.op, static_cast<uint32_t>(KXFER_OP_COMPARE_SWAP));
    EXPECT_EQ(swap.length, 8U);
    EXPECT_EQ(swap.compare_add, 3U);
    EXPECT_EQ(swap.swap, 4U);
    const kxfer_job add = kxfer_job_make_fetch_add(0, 8, 0, 16, 3, 5);
    const Job same_add = Job::fetch_add(Region(), 8, Target(), 16, 3, 5);
    EXPECT_EQ(std::memcmp(&add, static_cast<const kxfer_job*>(&same_add), sizeof(add)), 0);
    EXPECT_EQ(add.op, static_cast<uint32_t>(KXFER_OP_FETCH_ADD));
    EXPECT_EQ(add.compare_add, 3U);
    EXPECT_EQ(add.swap, 0U);
    EXPECT_EQ(Job::nop(9).user_data, 9U);
    EXPECT_EQ(Job::nop(9).op, static_cast<uint32_t>(KXFER_OP_NOP));
}

TEST(Job, of_messages_is_the_same_in_C_and_Cpp) {
    const kxfer_job send = kxfer_job_make_send(0, 1, 0, 2, 3);
    const Job same_send = Job::send(Region(), 1, Target(), 2, 3);
    EXPECT_EQ(std::memcmp(&send, static_cast<const kxfer_job*>(&same_send), sizeof(send)), 0);
    EXPECT_EQ(send.op, static_cast<uint32_t>(KXFER_OP_SEND));
    EXPECT_EQ(send.flags, 0U);
    EXPECT_EQ(send.cookie, 0U);
    kxfer_job stored = kxfer_job_make_send_stored(0, 1, 0, 2, 3);
    const Job same_stored = Job::send_stored(Region(), 1, Target(), 2, 3);
    EXPECT_EQ(std::memcmp(&stored, static_cast<const kxfer_job*>(&same_stored), sizeof(stored)), 0);
    EXPECT_EQ(stored.flags, KXFER_JOB_F_STORED);
    kxfer_job waiting = kxfer_job_make_send_waiting(0, 1, 0, 2, 3);
    const Job same_waiting = Job::send_waiting(Region(), 1, Target(), 2, 3);
    EXPECT_EQ(std::memcmp(&waiting, static_cast<const kxfer_job*>(&same_waiting), sizeof(waiting)), 0);
    EXPECT_EQ(waiting.flags, KXFER_JOB_F_WAIT);
    waiting.flags = 0;
    EXPECT_EQ(std::memcmp(&waiting, &send, sizeof(send)), 0);
    stored.flags = 0;
    EXPECT_EQ(std::memcmp(&stored, &send, sizeof(send)), 0);
    const kxfer_job send_imm = kxfer_job_make_send_imm(0, 1, 0, 2, 0xffffffff, 3);
    const Job same_imm = Job::send(Region(), 1, Target(), 2, 3, 0xffffffff);
    EXPECT_EQ(std::memcmp(&send_imm, static_cast<const kxfer_job*>(&same_imm), sizeof(send_imm)), 0);
    EXPECT_EQ(send_imm.flags, KXFER_JOB_F_IMM);
    EXPECT_EQ(send_imm.cookie, 0xffffffffU);
    const Job bare = Job::send(Target(), 0, 3);
    EXPECT_EQ(bare.flags, KXFER_JOB_F_IMM);
    EXPECT_EQ(bare.length, 0U);
    const kxfer_job recv = kxfer_job_make_recv(0, 1, 0, 2, 3);
    const Job same_recv = Job::recv(Region(), 1, Mailbox(), 2, 3);
    EXPECT_EQ(std::memcmp(&recv, static_cast<const kxfer_job*>(&same_recv), sizeof(recv)), 0);
    EXPECT_EQ(recv.op, static_cast<uint32_t>(KXFER_OP_RECV));
    EXPECT_EQ(recv.target_offset, 0U);
}

TEST(Message, is_what_a_recv_brought) {
    alignas(8) std::array<std::byte, sizeof(kxfer_message) + 3> range = {};
    kxfer_message head = {};
    head.bytes = 3;
    head.uid = 1000;
    head.immediate = 5;
    std::memcpy(range.data(), &head, sizeof(head));
    range.back() = std::byte{7};
    const auto message = Message::at(range, range.size());
    ASSERT_TRUE(message);
    EXPECT_EQ(message->head().uid, 1000U);
    ASSERT_EQ(message->payload().size(), 3U);
    EXPECT_EQ(message->payload()[2], std::byte{7});
    EXPECT_FALSE(message->immediate()) << "it was sent without one";
    head.flags = KXFER_MESSAGE_F_IMM;
    std::memcpy(range.data(), &head, sizeof(head));
    EXPECT_EQ(Message::at(range, range.size())->immediate(), 5U);
}

TEST(Message, has_its_head_and_no_more_than_the_range) {
    const std::array<std::byte, sizeof(kxfer_message) + 3> range = {};
    EXPECT_FALSE(Message::at(range, 0)); // of a RECV that failed
    EXPECT_FALSE(Message::at(range, sizeof(kxfer_message) - 1));
    EXPECT_FALSE(Message::at(range, range.size() + 1));
    EXPECT_TRUE(Message::at(range, sizeof(kxfer_message))->payload().empty());
}

TEST(Job, has_a_deadline_if_it_is_given_one) {
    EXPECT_EQ(Job::nop(1).deadline_ns, 0U);
    EXPECT_EQ(Job::nop(1).by(Deadline::never()).deadline_ns, 0U);
    EXPECT_GT(Job::nop(1).by(1s).deadline_ns, kxfer_clock_ns());
}

TEST(Completion, is_bytes_or_an_error) {
    Completion done;
    done.user_data = 17;
    done.bytes = 4096;
    done.submitted_ns = 1000;
    done.completed_ns = 3500;
    ASSERT_TRUE(done.result());
    EXPECT_TRUE(done.ok());
    EXPECT_EQ(*done.result(), 4096U);
    EXPECT_EQ(done.took(), 2500ns);
    done.status = -ECONNRESET;
    EXPECT_FALSE(done.ok());
    ASSERT_FALSE(done.result());
    EXPECT_EQ(done.result().error().number, ECONNRESET);
    EXPECT_EQ(done.result().error().on, "user_data 17");
}

TEST(Clock, is_that_of_deadlines) {
    const uint64_t before = kxfer_clock_ns();
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t between =
        static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
    EXPECT_LE(before, between);
    EXPECT_GE(Deadline(1s).ns(), between + 1000000000U);
    const auto at = std::chrono::steady_clock::now();
    EXPECT_GE(Deadline(at).ns(), between);
    EXPECT_LE(Deadline(at).ns(), kxfer_clock_ns());
}

TEST(Deadline, is_never_only_if_that_is_said) {
    EXPECT_EQ(Deadline::never().ns(), 0U);
    EXPECT_FALSE(Deadline::never().passed());
    EXPECT_TRUE(Deadline(0ms).passed());
    EXPECT_TRUE(Deadline(-1s).passed());
    EXPECT_TRUE(Deadline(std::chrono::nanoseconds::min()).passed());
    EXPECT_NE(Deadline(std::chrono::nanoseconds::min()).ns(), 0U);
    EXPECT_TRUE(Deadline(std::chrono::steady_clock::time_point()).passed());
    EXPECT_FALSE(Deadline(1h).passed());
    EXPECT_FALSE(Deadline(std::chrono::nanoseconds::max()).passed());
}

TEST(Deadline, of_more_than_nanoseconds_can_hold_is_far_ahead_or_long_past) {
    for (const Deadline& far :
         {Deadline(Milliseconds::max()), Deadline(std::chrono::hours::max()),
          Deadline(std::chrono::years(293)), Deadline(std::chrono::duration<double>(1e30))})
        EXPECT_GE(far.ns(), Deadline(std::chrono::nanoseconds::max()).ns() - uint64_t{1'000'000'000});
    EXPECT_TRUE(Deadline(Milliseconds::min()).passed());
    EXPECT_TRUE(Deadline(std::chrono::duration<double>(-1e30)).passed());
    EXPECT_NE(Deadline(Milliseconds::min()).ns(), 0U);
}

TEST(Refusals, have_words_each) {
    for (uint32_t refusal = 0; refusal <= KXFER_REFUSAL_CLOSING; refusal++)
        EXPECT_STRNE(kxfer_refusal_text(refusal), kxfer_refusal_text(9999)) << refusal;
}

TEST(Library, tells_its_version) { EXPECT_GE(std::strlen(kxfer_library_version()), 5U); }

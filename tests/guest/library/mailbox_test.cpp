// SPDX-License-Identifier: MIT
//
// Messages by kxfer.hpp and the C functions under it: the messages that a mailbox takes, the
// result of a RECV, and how jobs of both end. The node is its own peer.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <kxfer/kxfer.hpp>

using namespace kxfer;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t capacity = 8;
constexpr uint32_t longest = 500;
constexpr size_t place = sizeof(kxfer_message) + longest;

alignas(4096) std::array<std::byte, 1 << 16> outbox;
alignas(4096) std::array<std::byte, 1 << 16> inbox;

kxfer_addr own_address() {
    const char* text = getenv("KXFER_ADDRESS");
    kxfer_addr address = {};
    address.family = AF_INET;
    inet_pton(AF_INET, text ? text : "10.77.0.1", address.addr);
    return address;
}

class Mailboxes : public testing::Test {
  protected:
    // There: the session with the mailbox. Here: the session that sends.
    void SetUp() override {
        inbox.fill({});
        for (size_t i = 0; i < outbox.size(); i++) outbox[i] = static_cast<std::byte>(i * 167 >> 8);
        there = open();
        listener = get(there->add_listener(own_address(), 0));
        into = get(there->add_region(inbox, KXFER_REGION_F_WRITE));
        mailbox = get(there->add_mailbox("letters", capacity, longest));
        here = open();
        from = get(here->add_region(outbox, 0));
        peer = get(here->connect(own_address()));
        target = get(peer.open_target("letters", KXFER_RIGHT_SEND, 10s));
    }

    template <typename T> static T get(Expected<T> expected) {
        if (!expected) ADD_FAILURE() << expected.error().what << ' ' << expected.error().on;
        return std::move(expected.value());
    }

    static std::unique_ptr<Session> open() { return std::make_unique<Session>(get(Session::open())); }

    // Takes one message and returns the content of its place.
    Message receive() {
        const Completion done = get(there->run(Job::recv(into, 0, mailbox, place, 1), 10s));
        const auto message = Message::at(inbox, done.bytes);
        if (!message) ADD_FAILURE() << "no message in " << done.bytes << " bytes";
        return message.value_or(Message());
    }

    std::unique_ptr<Session> there;
    Listener listener;
    Region into;
    Mailbox mailbox;
    std::unique_ptr<Session> here;
    Region from;
    Peer peer;
    Target target;
};

} // namespace

TEST_F(Mailboxes, tell_their_longest_message_as_their_length) {
    EXPECT_EQ(target.length(), longest);
    EXPECT_EQ(target.rights(), KXFER_RIGHT_SEND);
}

TEST_F(Mailboxes, have_a_cookie_and_senders_have_words) {
    EXPECT_EQ(target.cookie(), 0U);
    const Mailbox numbered = get(there->add_mailbox("numbered", 1, longest, {}, ~0ULL));
    EXPECT_EQ(get(peer.open_target("numbered", 0, 10s)).cookie(), ~0ULL);
    const Target worded = get(peer.open_target("letters", KXFER_RIGHT_SEND, 10s, 0x0123456789abcdef));
    get(here->run(Job::send(from, 100, worded, 300, 7), 10s));
    const Message message = receive();
    EXPECT_EQ(message.head().word, 0x0123456789abcdefU);
    ASSERT_EQ(message.payload().size(), 300U);
    EXPECT_TRUE(std::equal(message.payload().begin(), message.payload().end(), outbox.begin() + 100));
}

TEST_F(Mailboxes, take_a_message_and_say_whose_it_is) {
    const Completion sent = get(here->run(Job::send(from, 100, target, 300, 7), 10s));
    EXPECT_EQ(sent.bytes, 300U);
    EXPECT_EQ(sent.op, static_cast<uint32_t>(KXFER_OP_SEND));
    const Message message = receive();
    EXPECT_EQ(message.head().uid, geteuid());
    EXPECT_EQ(message.head().word, 0U);
    EXPECT_EQ(to_string(message.head().peer).substr(0, 9), to_string(own_address()).substr(0, 9));
    EXPECT_FALSE(message.immediate());
    ASSERT_EQ(message.payload().size(), 300U);
    EXPECT_TRUE(std::equal(message.payload().begin(), message.payload().end(), outbox.begin() + 100));
}

TEST_F(Mailboxes, take_an_immediate_with_bytes_or_alone) {
    get(here->run(Job::send(from, 0, target, 10, 1, 0xffffffff), 10s));
    get(here->run(Job::send(target, 0, 2), 10s));
    const Message first = receive();
    EXPECT_EQ(first.immediate(), 0xffffffffU);
    EXPECT_EQ(first.payload().size(), 10U);
    const Message second = receive();
    EXPECT_EQ(second.immediate(), 0U);
    EXPECT_TRUE(second.payload().empty());
}

TEST_F(Mailboxes, hand_messages_to_recvs_that_wait_in_order) {
    std::vector<Job> recvs, sends;
    for (uint32_t i = 0; i < 32; i++) {
        recvs.push_back(Job::recv(into, i * place, mailbox, place, i));
        sends.push_back(Job::send(target, i, i));
    }
    ASSERT_EQ(get(there->submit(recvs)), 32U);
    ASSERT_EQ(get(here->submit(sends)), 32U);
    std::array<Completion, 32> room;
    const auto done = get(there->reap(room, 32, 20s));
    ASSERT_EQ(done.size(), 32U);
    for (const Completion& one : done) {
        const auto message = Message::at(std::span(inbox).subspan(one.user_data * place), one.bytes);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->immediate(), one.user_data);
    }
    EXPECT_EQ(get(here->reap(room, 32, 20s)).size(), 32U);
}

TEST_F(Mailboxes, that_are_full_refuse_until_one_is_taken) {
    for (uint32_t i = 0; i < capacity; i++) get(here->run(Job::send(target, i, i), 10s));
    const auto refused = here->run(Job::send(target, capacity, 1), 10s);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().number, EAGAIN);
    EXPECT_EQ(receive().immediate(), 0U);
    get(here->run(Job::send(target, 99, 1), 10s));
    for (uint32_t i = 1; i < capacity; i++) EXPECT_EQ(receive().immediate(), i);
    EXPECT_EQ(receive().immediate(), 99U);
}

TEST_F(Mailboxes, refuse_what_is_longer_than_they_take) {
    const auto refused = here->submit(Job::send(from, 0, target, longest + 1, 1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().number, EMSGSIZE);
    const auto nobody = there->add_mailbox("too-long", 1, KXFER_MESSAGE_LONG_MAX + 1);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().number, EDQUOT);
    EXPECT_EQ(nobody.error().on, "too-long");
}

TEST_F(Mailboxes, that_end_end_their_recvs_and_their_targets) {
    ASSERT_TRUE(there->submit(Job::recv(into, 0, mailbox, place, 3)));
    EXPECT_EQ(mailbox.reset(), 0);
    std::array<Completion, 1> room;
    const auto ended = get(there->reap(room, 1, 10s));
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].status, -EKEYREVOKED);
    EXPECT_EQ(ended[0].user_data, 3U);
    const auto sent = here->run(Job::send(target, 1, 1), 10s);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().number, EKEYREVOKED);
}

TEST_F(Mailboxes, let_in_whom_their_rules_name) {
    kxfer_rule nobody = {};
    nobody.match = KXFER_RULE_UID;
    nobody.uid = 4711;
    nobody.rights = KXFER_RIGHT_SEND;
    const Mailbox closed = get(there->add_mailbox("closed", 1, 1, {&nobody, 1}));
    const auto refused = peer.open_target("closed", KXFER_RIGHT_SEND, 10s);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().number, EACCES);
}

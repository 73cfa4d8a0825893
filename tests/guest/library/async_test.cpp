// SPDX-License-Identifier: MIT
//
// Asynchronous jobs by kxfer.hpp and the C functions under it: submitting, reaping, cancelling,
// ending; the lifetime of memory and descriptors meanwhile. The node is its own peer.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <kxfer/kxfer.hpp>

using namespace kxfer;
using namespace std::chrono_literals;

namespace {

constexpr size_t length = 4 << 20;
constexpr size_t piece = 64 << 10;
constexpr size_t nr_pieces = length / piece;

alignas(4096) std::array<std::byte, length> theirs;
alignas(4096) std::array<std::byte, length> ours;

kxfer_addr own_address() {
    const char* text = getenv("KXFER_ADDRESS");
    kxfer_addr address = {};
    address.family = AF_INET;
    inet_pton(AF_INET, text ? text : "10.77.0.1", address.addr);
    return address;
}

std::byte pattern(size_t at) { return static_cast<std::byte>(at * 167 >> 8); }

class Async : public testing::Test {
  protected:
    // There: a session that exports memory. Here: one that transfers.
    void SetUp() override {
        theirs.fill({});
        ours.fill({});
        there = open();
        listener = get(there->add_listener(own_address(), 0));
        lent = get(there->add_region(theirs, KXFER_REGION_F_WRITE));
        box = get(there->add_export(lent, "box", length, KXFER_RIGHT_ALL));
        here = open();
        region = get(here->add_region(ours, KXFER_REGION_F_WRITE));
        peer = get(here->connect(own_address()));
        target = get(peer.open_target("box", KXFER_RIGHT_READ | KXFER_RIGHT_WRITE, 10s));
    }

    template <typename T> static T get(Expected<T> expected) {
        if (!expected) ADD_FAILURE() << expected.error().what << ' ' << expected.error().on;
        return std::move(expected.value());
    }

    static std::unique_ptr<Session> open() { return std::make_unique<Session>(get(Session::open())); }

    std::vector<Job> reads(size_t count) const {
        std::vector<Job> jobs;
        for (size_t i = 0; i < count; i++)
            jobs.push_back(Job::read(region, i % nr_pieces * piece, target, i % nr_pieces * piece, piece, i));
        return jobs;
    }

    static std::vector<Job> nops(size_t count) {
        std::vector<Job> jobs;
        for (size_t i = 0; i < count; i++) jobs.push_back(Job::nop(i));
        return jobs;
    }

    // Reaps until nothing is in flight; each user_data may come once.
    std::vector<Completion> take_all() {
        std::vector<Completion> all;
        std::array<Completion, 64> room;
        std::set<uint64_t> seen;
        for (;;) {
            const auto taken = here->reap(room, 1, 20s);
            if (!taken) ADD_FAILURE() << "errno " << taken.error().number;
            if (!taken || taken->empty()) return all;
            for (const Completion& done : *taken)
                EXPECT_TRUE(seen.insert(done.user_data).second) << done.user_data << " completed twice";
            all.insert(all.end(), taken->begin(), taken->end());
        }
    }

    short poll_session(short events, int timeout_ms) const {
        pollfd polled = {here->fd(), events, 0};
        poll(&polled, 1, timeout_ms);
        return polled.revents;
    }

    std::unique_ptr<Session> there;
    Listener listener;
    Region lent;
    Export box;
    std::unique_ptr<Session> here;
    Region region;
    Peer peer;
    Target target;
};

} // namespace

TEST_F(Async, jobs_in_flight_at_once_move_their_bytes) {
    for (size_t i = 0; i < length; i++) theirs[i] = pattern(i);
    const auto jobs = reads(nr_pieces);
    ASSERT_EQ(get(here->submit(jobs)), nr_pieces);
    const auto done = take_all();
    ASSERT_EQ(done.size(), nr_pieces);
    for (const Completion& completion : done) {
        EXPECT_EQ(get(completion.result()), piece);
        EXPECT_EQ(completion.op, static_cast<uint32_t>(KXFER_OP_READ));
        EXPECT_GT(completion.took(), 0ns);
    }
    EXPECT_EQ(ours, theirs);
}

TEST_F(Async, a_read_behind_a_write_sees_what_it_wrote) {
    std::fill_n(ours.begin(), piece, std::byte{0x5a});
    const std::array jobs = {Job::write(region, 0, target, piece, piece, 1),
                             Job::read(region, piece, target, piece, piece, 2)};
    ASSERT_EQ(get(here->submit(jobs)), 2U);
    EXPECT_EQ(take_all().size(), 2U);
    EXPECT_TRUE(std::equal(ours.begin(), ours.begin() + piece, ours.begin() + piece));
    EXPECT_EQ(theirs[piece], std::byte{0x5a});
}

TEST_F(Async, a_notification_comes_behind_the_writes_before_it) {
    ours.fill(std::byte{7});
    std::vector<Job> jobs;
    for (size_t i = 0; i < nr_pieces; i++)
        jobs.push_back(Job::write(region, i * piece, target, i * piece, piece, i));
    jobs.push_back(Job::notify(target, 4711, nr_pieces));
    ASSERT_EQ(get(here->submit(jobs)), jobs.size());
    std::array<kxfer_event, 4> room = {};
    const auto events = get(there->take_events(room, true, 20s));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].cookie, 4711U);
    EXPECT_EQ(std::count(theirs.begin(), theirs.end(), std::byte{7}), static_cast<ptrdiff_t>(length));
    EXPECT_EQ(take_all().size(), jobs.size());
}

TEST_F(Async, a_write_brings_its_own_notification) {
    ours.fill(std::byte{8});
    const std::array jobs = {Job::write_notify(region, 0, target, 0, length, 4712, 0)};
    ASSERT_EQ(get(here->submit(jobs)), 1U);
    std::array<kxfer_event, 4> room = {};
    const auto events = get(there->take_events(room, true, 20s));
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].cookie, 4712U);
    EXPECT_EQ(std::count(theirs.begin(), theirs.end(), std::byte{8}), static_cast<ptrdiff_t>(length));
    EXPECT_EQ(take_all().size(), 1U);
}

TEST_F(Async, an_array_of_any_length_is_handed_in_whole) {
    const kxfer_query limits = get(here->query());
    const size_t many = 3 * limits.max_jobs_per_submit + 1;
    ASSERT_EQ(get(here->submit(nops(many))), many);
    EXPECT_EQ(take_all().size(), many);
}

TEST_F(Async, handing_in_stops_at_the_first_job_that_is_wrong) {
    auto jobs = nops(600);
    jobs[400] = Job::read(Region(), 0, target, 0, piece, 400);
    int refused = 0;
    EXPECT_EQ(kxfer_job_submit(here->get(), jobs.data(), 600, &refused), 400);
    EXPECT_EQ(refused, -ENOENT);
    EXPECT_EQ(take_all().size(), 400U);
    const auto rest = here->submit(std::span<const Job>(jobs).subspan(400));
    ASSERT_FALSE(rest);
    EXPECT_EQ(rest.error().number, ENOENT);
    const auto one = here->submit(jobs[400]);
    ASSERT_FALSE(one);
    EXPECT_EQ(one.error().number, ENOENT);
}

TEST_F(Async, a_full_queue_takes_the_rest_once_there_is_room) {
    const kxfer_query limits = get(here->query());
    const auto jobs = nops(limits.max_jobs + 10);
    EXPECT_EQ(poll_session(POLLOUT, 0), POLLOUT);
    int refused = 0;
    ASSERT_EQ(kxfer_job_submit(here->get(), jobs.data(), static_cast<uint32_t>(jobs.size()), &refused),
              static_cast<int>(limits.max_jobs));
    EXPECT_EQ(refused, -EAGAIN);
    EXPECT_EQ(poll_session(POLLOUT, 0), 0);
    EXPECT_EQ(take_all().size(), limits.max_jobs);
    EXPECT_EQ(poll_session(POLLOUT, 0), POLLOUT);
    EXPECT_EQ(get(here->submit(std::span<const Job>(jobs).subspan(limits.max_jobs))), 10U);
    EXPECT_EQ(take_all().size(), 10U);
}

TEST_F(Async, nothing_to_hand_in_is_nonsense) {
    const auto submitted = here->submit(std::span<const Job>());
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error().number, EINVAL);
}

TEST_F(Async, taking_waits_for_at_least_so_many) {
    std::array<Completion, nr_pieces> room;
    ASSERT_EQ(get(here->submit(reads(nr_pieces))), nr_pieces);
    EXPECT_EQ(get(here->reap(room, nr_pieces, 20s)).size(), nr_pieces);
}

TEST_F(Async, taking_does_not_wait_when_nothing_is_in_flight) {
    std::array<Completion, 4> room;
    EXPECT_TRUE(get(here->reap(room, 4, Deadline::never())).empty());
    ASSERT_TRUE(here->submit(Job::nop(1)));
    EXPECT_EQ(get(here->reap(room, 4, Deadline::never())).size(), 1U);
}

TEST_F(Async, taking_without_waiting_leaves_at_once) {
    std::array<Completion, 4> room;
    EXPECT_TRUE(get(here->reap(room)).empty());
    ASSERT_TRUE(here->submit(Job::nop(1)));
    EXPECT_EQ(get(here->reap(room)).size(), 1U);
}

TEST_F(Async, more_than_there_is_room_for_cannot_be_waited_for) {
    std::array<Completion, 2> room;
    const auto taken = here->reap(room, 3, 1s);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().number, EINVAL);
}

TEST_F(Async, room_for_more_than_a_session_can_have_is_fine) {
    std::vector<Completion> room(10000);
    ASSERT_EQ(get(here->submit(nops(5))), 5U);
    EXPECT_EQ(get(here->reap(room, 9000, 10s)).size(), 5U);
}

TEST_F(Async, what_there_is_no_room_for_stays) {
    std::array<Completion, 3> room;
    ASSERT_EQ(get(here->submit(nops(5))), 5U);
    EXPECT_EQ(get(here->reap(room)).size(), 3U);
    EXPECT_EQ(get(here->reap(room)).size(), 2U);
}

TEST_F(Async, the_descriptor_is_readable_while_a_completion_is_there) {
    std::array<Completion, 4> room;
    EXPECT_EQ(poll_session(POLLIN, 0), 0);
    ASSERT_TRUE(here->submit(reads(1)[0]));
    EXPECT_EQ(poll_session(POLLIN, 20000), POLLIN);
    EXPECT_EQ(get(here->reap(room)).size(), 1U);
    EXPECT_EQ(poll_session(POLLIN, 0), 0);
}

TEST_F(Async, cancelled_jobs_complete_too_and_are_counted) {
    const size_t many = 4 * nr_pieces;
    ASSERT_EQ(get(here->submit(reads(many))), many);
    const uint32_t cancelled = get(here->cancel_all());
    const auto done = take_all();
    EXPECT_EQ(done.size(), many);
    EXPECT_EQ(std::count_if(done.begin(), done.end(), [](auto& d) { return d.status == -ECANCELED; }),
              static_cast<ptrdiff_t>(cancelled));
    EXPECT_EQ(std::count_if(done.begin(), done.end(), [](auto& d) { return d.ok(); }),
              static_cast<ptrdiff_t>(many - cancelled));
}

TEST_F(Async, of_no_job_nothing_can_be_cancelled) {
    const auto cancelled = here->cancel(12345);
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().number, ENOENT);
    EXPECT_EQ(get(here->cancel_all()), 0U);
}

TEST_F(Async, after_draining_memory_and_ids_are_free) {
    ASSERT_EQ(get(here->submit(reads(8 * nr_pieces))), 8 * nr_pieces);
    ASSERT_TRUE(here->drain(20s));
    std::array<Completion, 4> room;
    EXPECT_TRUE(get(here->reap(room)).empty());
    EXPECT_EQ(target.reset(), 0);
    EXPECT_EQ(region.reset(), 0);
    EXPECT_TRUE(here->drain(Deadline::never()));
}

TEST_F(Async, draining_drops_what_was_not_taken) {
    ASSERT_EQ(get(here->submit(nops(1000))), 1000U);
    ASSERT_TRUE(here->drain(20s));
    EXPECT_EQ(take_all().size(), 0U);
}

TEST_F(Async, draining_empties_a_ring_too) {
    ASSERT_TRUE(here->open_ring(256));
    ASSERT_EQ(get(here->submit(reads(200))), 200U);
    ASSERT_TRUE(here->drain(20s));
    std::array<Completion, 4> room;
    EXPECT_TRUE(here->take(room).empty());
    EXPECT_EQ(target.reset(), 0);
    EXPECT_EQ(region.reset(), 0);
    // full, and not read
    ASSERT_EQ(get(here->submit(nops(256))), 256U);
    ASSERT_TRUE(here->drain(20s));
    EXPECT_TRUE(here->take(room).empty());
    EXPECT_EQ(get(here->submit(nops(256))), 256U);
}

// Puts jobs into slots of the submission ring; returns how many had room.
size_t put(Session& session, const std::vector<Job>& jobs) {
    size_t n = 0;
    for (kxfer_job* slot = nullptr; n < jobs.size() && (slot = session.next_job()); n++) *slot = jobs[n];
    return n;
}

TEST_F(Async, jobs_of_the_submission_ring_move_their_bytes) {
    EXPECT_EQ(here->next_job(), nullptr);
    EXPECT_EQ(here->open_sq(16).error().number, EINVAL);
    ASSERT_TRUE(here->open_ring(256));
    ASSERT_TRUE(here->open_sq(16));
    EXPECT_EQ(here->open_sq(16).error().number, EEXIST);
    for (size_t i = 0; i < length; i++) theirs[i] = pattern(i);
    std::array<Completion, nr_pieces> room;
    for (size_t i = 0; i < nr_pieces; i += 16) {
        const auto jobs = reads(nr_pieces);
        ASSERT_EQ(put(*here, {jobs.begin() + static_cast<ptrdiff_t>(i), jobs.end()}),
                  std::min<size_t>(16, nr_pieces - i));
        ASSERT_EQ(get(here->enter(16, 20s)), 16U);
        ASSERT_EQ(here->take(room).size(), 16U);
    }
    EXPECT_EQ(ours, theirs);
}

TEST_F(Async, entering_stops_at_the_first_job_that_is_wrong_and_drops_the_rest) {
    ASSERT_TRUE(here->open_ring(256));
    ASSERT_TRUE(here->open_sq(8));
    auto jobs = nops(3);
    jobs[1].op = 99;
    int error = 1;
    ASSERT_EQ(put(*here, jobs), 3U);
    EXPECT_EQ(kxfer_sq_enter(here->get(), 1, 0, &error), 1);
    EXPECT_EQ(error, -EOPNOTSUPP);
    // What was dropped does not come again, and all slots are free.
    EXPECT_EQ(put(*here, nops(9)), 8U);
    EXPECT_EQ(kxfer_sq_enter(here->get(), 9, 0, &error), 8);
    EXPECT_EQ(error, 0);
    ASSERT_EQ(put(*here, {jobs[1]}), 1U);
    EXPECT_EQ(here->enter(0, Deadline::never()).error().number, EOPNOTSUPP);
    EXPECT_EQ(get(here->enter(9, Deadline::never())), 0U);
    std::array<Completion, 16> room;
    EXPECT_EQ(here->take(room).size(), 9U);
}

TEST_F(Async, how_a_session_waits_is_not_left_in_what_the_caller_hands_in) {
    ASSERT_TRUE(here->set_wait(KXFER_WAIT_F_SLEEP));
    const Job job = Job::nop(1);
    kxfer_completion done = {};
    kxfer_submit args = {};
    args.jobs = reinterpret_cast<uintptr_t>(&job);
    args.nr_jobs = 1;
    args.completions = reinterpret_cast<uintptr_t>(&done);
    args.nr_completions = args.wait = 1;
    ASSERT_EQ(kxfer_job_submit_wait(here->get(), &args), 1);
    EXPECT_EQ(args.flags, 0U);
    // Both at once make no sense.
    ASSERT_TRUE(here->set_wait(KXFER_WAIT_F_POLL));
    EXPECT_EQ(kxfer_job_submit_wait(here->get(), &args), 1);
}

TEST_F(Async, a_name_that_is_too_long_opens_no_other_export) {
    const std::string name(KXFER_NAME_MAX, 'x');
    const Export longest = get(there->add_export(lent, name, length, KXFER_RIGHT_ALL));
    EXPECT_TRUE(peer.open_target(name, KXFER_RIGHT_READ, 10s));
    const auto other = peer.open_target(name + "y", KXFER_RIGHT_READ, 10s);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().number, ENAMETOOLONG);
    const auto mine = there->add_export(lent, "z" + name, length, KXFER_RIGHT_ALL);
    ASSERT_FALSE(mine);
    EXPECT_EQ(mine.error().number, ENAMETOOLONG);
}

TEST_F(Async, each_completion_is_taken_by_one_thread) {
    constexpr size_t many = 2000;
    std::vector<std::atomic<int>> taken(many);
    std::atomic<size_t> left = many;
    ASSERT_EQ(get(here->submit(nops(many))), many);
    const auto take = [&] {
        std::array<Completion, 7> room;
        while (left > 0) {
            const auto some = here->reap(room, 1, 5s);
            if (!some || some->empty()) return;
            for (const Completion& done : *some) taken[done.user_data]++;
            left -= some->size();
        }
    };
    std::thread other(take);
    take();
    other.join();
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), static_cast<ptrdiff_t>(many));
}

TEST_F(Async, a_session_that_is_closed_ends_its_jobs) {
    ASSERT_EQ(get(here->submit(reads(8 * nr_pieces))), 8 * nr_pieces);
    target.reset(); // EBUSY, or the job is done already
    region.reset();
    peer = Peer();
    here.reset();
    ours.fill(std::byte{1});
    EXPECT_EQ(std::count(ours.begin(), ours.end(), std::byte{1}), static_cast<ptrdiff_t>(length));
}

TEST_F(Async, run_waits_for_its_job) {
    theirs[3] = std::byte{99};
    const auto done = here->run(Job::read(region, 0, target, 0, 16, 5).by(20s), 20s);
    EXPECT_EQ(get(done).bytes, 16U);
    EXPECT_EQ(ours[3], std::byte{99});
}

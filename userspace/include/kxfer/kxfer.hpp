// SPDX-License-Identifier: MIT
//
// libkxfer for C++20: the nouns of <kxfer/kxfer.h> as objects that clean up
// after themselves; every fallible call returns tl::expected.
//
// The session is shared: a Region, Export, Listener, Peer or Target keeps its
// session open. The kernel wants targets destroyed before their peer and exports
// before their region; otherwise any order will do. Objects declared in the order
// of creation are destroyed in the right order. Objects are moved, never copied.
// Calls throw only for lack of memory.
//
// The destructor of a Region or Target does nothing while jobs in flight use it: the
// region or target then stays until the session is closed. Session::drain() ends the
// jobs first. kxfer.h has the rules for jobs and completions. Use:
//
//     std::array<Completion, 32> room;
//     session.submit(jobs);
//     const auto taken = session.reap(room, 1, 5s); // has a name: a loop over *session.reap() dangles
//     if (taken)
//         for (const Completion& done : *taken) use(done.user_data, done.result());
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>
#include <kxfer/kxfer.h>
#include <kxfer/kxfer_bench.h>

namespace kxfer {

using Digest = std::array<uint8_t, KXFER_SHA256_SIZE>;
using Milliseconds = std::chrono::milliseconds;

template <typename T> using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string what, std::string on, int number) {
    return tl::make_unexpected(Error(std::move(what), std::move(on), number));
}

inline std::string to_string(const kxfer_addr& address) {
    std::array<char, 64> text = {};
    return kxfer_addr_format(&address, text.data(), text.size()) == 0 ? text.data() : "-";
}

// When waiting ends: a duration from now, at a point of time, or never. The clock
// is CLOCK_MONOTONIC, which is what std::chrono::steady_clock shows on Linux.
class Deadline {
  public:
    static Deadline never() { return {}; }

    // NOLINTNEXTLINE(google-explicit-constructor): for calls such as reap(room, 1, 5s)
    Deadline(std::chrono::steady_clock::time_point at)
        : ns_(at.time_since_epoch().count() > 0 ? static_cast<uint64_t>(at.time_since_epoch().count()) : 1) {}
    template <typename Rep, typename Period>
    // NOLINTNEXTLINE(google-explicit-constructor)
    Deadline(std::chrono::duration<Rep, Period> from_now)
        : ns_(after(kxfer_clock_ns(), nanoseconds_in(from_now))) {}

    // The deadline as kxfer.h takes it: 0 is never.
    uint64_t ns() const { return ns_; }
    bool passed() const { return ns_ != 0 && kxfer_clock_ns() >= ns_; }

  private:
    Deadline() = default;

    // Limits a time that nanoseconds cannot hold (more than 292 years) to their maximum.
    template <typename Rep, typename Period>
    static int64_t nanoseconds_in(std::chrono::duration<Rep, Period> time) {
        using std::chrono::nanoseconds;
        const std::chrono::duration<long double> seconds(time);

        if (seconds >= nanoseconds::max()) return nanoseconds::max().count();
        if (seconds <= nanoseconds::min()) return nanoseconds::min().count();
        return std::chrono::duration_cast<nanoseconds>(time).count();
    }

    // A time before the clock's zero becomes 1, which has long passed.
    static uint64_t after(uint64_t now, int64_t ns) {
        if (ns >= 0) return now + static_cast<uint64_t>(ns);
        const uint64_t back = -static_cast<uint64_t>(ns);
        return back < now ? now - back : 1;
    }

    uint64_t ns_ = 0;
};

// A fixed array of bytes that holds a zero-terminated text.
template <size_t N> std::string text_of(const uint8_t (&bytes)[N]) {
    const auto* from = reinterpret_cast<const char*>(bytes);
    return {from, strnlen(from, N)};
}

// False: the text does not fit, or has a zero in it, which would cut it short.
template <size_t N> [[nodiscard]] bool set_text(uint8_t (&bytes)[N], std::string_view text) {
    memset(bytes, 0, N);
    if (text.size() >= N || text.find('\0') != text.npos) return false;
    memcpy(bytes, text.data(), text.size());
    return true;
}

namespace detail {

// The name of what INFO lists.
inline const char* name_of(kxfer_info_kind kind) {
    switch (kind) {
    case KXFER_INFO_DEVICES:
        return "devices";
    case KXFER_INFO_LISTENERS:
        return "listeners";
    case KXFER_INFO_EXPORTS:
        return "exports";
    case KXFER_INFO_LINKS:
        return "links";
    case KXFER_INFO_LANES:
        return "lanes";
    case KXFER_INFO_SESSIONS:
        return "sessions";
    case KXFER_INFO_COUNTERS:
        return "counters";
    case KXFER_INFO_LINES:
        return "lines";
    case KXFER_INFO_LATENCIES:
        return "latencies";
    }
    return "objects";
}

using Handle = std::shared_ptr<kxfer_session>;

// Owns one id of a session and destroys it with the given function.
template <typename Id, int (*destroy)(kxfer_session*, Id)> class Owned {
  public:
    Owned() = default;
    Owned(Handle session, Id id) : session_(std::move(session)), id_(id) {}
    Owned(Owned&& other) noexcept : session_(std::move(other.session_)), id_(std::exchange(other.id_, 0)) {}
    Owned& operator=(Owned&& other) noexcept {
        if (this != &other) {
            reset();
            session_ = std::move(other.session_);
            id_ = std::exchange(other.id_, 0);
        }
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { reset(); }

    Id id() const { return id_; }
    explicit operator bool() const { return id_ != 0; }

    // 0, or the negative errno that the destructor would swallow.
    int reset() {
        const int ret = id_ != 0 ? destroy(session_.get(), id_) : 0;
        id_ = 0;
        session_.reset();
        return ret;
    }

  protected:
    kxfer_session* session() const { return session_.get(); }

  private:
    Handle session_;
    Id id_ = 0;
};

} // namespace detail

// Pinned memory, or a part of a dma-buf. The memory stays the caller's and has to outlive the Region.
class Region : public detail::Owned<uint32_t, kxfer_region_destroy> {
  public:
    using Owned::Owned;
};

class Export : public detail::Owned<uint32_t, kxfer_export_destroy> {
  public:
    using Owned::Owned;

    // Declares the first `length` bytes to be content; returns its generation.
    Expected<uint64_t> publish(uint64_t length, const Digest& sha256) {
        uint64_t generation = 0;
        const int ret = kxfer_export_publish(session(), id(), length, sha256.data(), &generation);
        if (ret < 0) return fail("cannot publish the content of export", std::to_string(id()), ret);
        return generation;
    }
};

// Where peers put messages; its session takes them with Job::recv().
class Mailbox : public detail::Owned<uint32_t, kxfer_mailbox_destroy> {
  public:
    using Owned::Owned;
};

// A message that a RECV has stored: its header, followed by the payload.
class Message {
  public:
    // range: memory of the RECV; bytes: of its completion. Empty if bytes are less than a header or
    // more than range.
    static std::optional<Message> at(std::span<const std::byte> range, uint64_t bytes) {
        Message message;
        if (bytes < sizeof(message.head_) || bytes > range.size()) return std::nullopt;
        memcpy(&message.head_, range.data(), sizeof(message.head_));
        message.payload_ = range.subspan(sizeof(message.head_), bytes - sizeof(message.head_));
        return message;
    }

    const kxfer_message& head() const { return head_; }
    std::span<const std::byte> payload() const { return payload_; }
    std::optional<uint32_t> immediate() const {
        return head_.flags & KXFER_MESSAGE_F_IMM ? std::optional(head_.immediate) : std::nullopt;
    }

  private:
    kxfer_message head_ = {};
    std::span<const std::byte> payload_;
};

class Listener : public detail::Owned<uint64_t, kxfer_listener_destroy> {
  public:
    using Owned::Owned;
};

// A QP of this session alone, connected with a responder of user-space verbs, for kxfer_bench_run().
class Dedicated : public detail::Owned<uint32_t, kxfer_dedicated_destroy> {
  public:
    Dedicated() = default;
    Dedicated(detail::Handle session, const kxfer_dedicated_open& opened)
        : Owned(std::move(session), opened.dedicated), link_(opened.link) {}

    uint64_t link() const { return link_; } // as INFO lists it

    // READs the responder's status of its messages.
    Expected<kxfer_dedicated_status> status() {
        kxfer_dedicated_status status = {};
        status.dedicated = id();
        const int ret = kxfer_dedicated_query(session(), &status);
        if (ret < 0) return fail("cannot read the status of connection", std::to_string(id()), ret);
        return status;
    }

  private:
    uint64_t link_ = 0;
};

// An open export of a peer; `opened` is the peer's answer to the opening.
class Target : public detail::Owned<uint32_t, kxfer_target_destroy> {
  public:
    Target() = default;
    Target(detail::Handle session, const kxfer_target_open& opened)
        : Owned(std::move(session), opened.target), opened_(opened) {}

    uint64_t length() const { return opened_.length; }
    uint32_t rights() const { return opened_.granted; }
    const kxfer_content& content() const { return opened_.content; }
    uint64_t cookie() const { return opened_.cookie; } // the owner's; 0: none
    // Whether both are of one export. Known only of peers with `loss`.
    bool same_export(const Target& other) const {
        return opened_.node != 0 && opened_.node == other.opened_.node &&
               opened_.export_id == other.opened_.export_id;
    }
    std::string name() const { return text_of(opened_.name); }

    // Asks the peer; min_generation != 0: waits until the generation is that or more.
    Expected<kxfer_target_info> info(Milliseconds timeout, uint64_t min_generation = 0) {
        kxfer_target_info info = {};
        info.target = id();
        info.timeout_ms = static_cast<uint32_t>(timeout.count());
        info.min_generation = min_generation;
        const int ret = kxfer_target_query(session(), &info);
        if (ret < 0) return fail("cannot ask what the export holds", name(), ret);
        return info;
    }

  private:
    kxfer_target_open opened_ = {};
};

class Peer : public detail::Owned<uint32_t, kxfer_peer_disconnect> {
  public:
    Peer() = default;
    Peer(detail::Handle session, const kxfer_peer_open& opened)
        : Owned(session, opened.peer), handle_(std::move(session)), opened_(opened) {}

    const kxfer_addr& address() const { return opened_.remote; }
    uint64_t link() const { return opened_.link; }

    // rights: KXFER_RIGHT_* that are needed; 0: whatever is granted. word: of a mailbox: shown with
    // each message that is sent to this target.
    Expected<Target> open_target(std::string_view name, uint32_t rights, Milliseconds timeout,
                                 uint64_t word = 0) {
        kxfer_target_open args = {};
        args.peer = id();
        args.rights = rights;
        args.word = word;
        args.timeout_ms = static_cast<uint32_t>(timeout.count());
        const int ret = set_text(args.name, name) ? kxfer_target_create(session(), &args) : -ENAMETOOLONG;
        if (ret < 0) return fail("cannot open the export", std::string(name), ret);
        return Target(handle_, args);
    }

    Expected<std::vector<kxfer_peer_export>> exports(Milliseconds timeout) {
        std::vector<kxfer_peer_export> all;
        std::array<kxfer_peer_export, 64> some = {};
        for (uint64_t cursor = 0;;) {
            const int ret = kxfer_peer_exports(session(), id(), static_cast<uint32_t>(timeout.count()),
                                               &cursor, some.data(), some.size());
            if (ret < 0) return fail("cannot list the exports of", to_string(opened_.remote), ret);
            if (ret == 0) return all;
            all.insert(all.end(), some.begin(), some.begin() + ret);
        }
    }

  private:
    detail::Handle handle_;
    kxfer_peer_open opened_ = {};
};

// A job, ready to submit. The ids are those of a region and a target.
struct Job : kxfer_job {
    // A NOP.
    Job() : kxfer_job{} {}

    static Job nop(uint64_t user_data) {
        Job job;
        job.user_data = user_data;
        return job;
    }
    static Job read(const Region& into, uint64_t region_offset, const Target& from, uint64_t target_offset,
                    uint64_t length, uint64_t user_data) {
        return Job(
            kxfer_job_make_read(into.id(), region_offset, from.id(), target_offset, length, user_data));
    }
    static Job write(const Region& from, uint64_t region_offset, const Target& to, uint64_t target_offset,
                     uint64_t length, uint64_t user_data) {
        return Job(kxfer_job_make_write(from.id(), region_offset, to.id(), target_offset, length, user_data));
    }
    // A write, and then a notify: one job, done when both are.
    static Job write_notify(const Region& from, uint64_t region_offset, const Target& to,
                            uint64_t target_offset, uint64_t length, uint64_t cookie, uint64_t user_data) {
        return Job(kxfer_job_make_write_notify(from.id(), region_offset, to.id(), target_offset, length,
                                               cookie, user_data));
    }
    // Swaps the word at target_offset and stores its old value in the region; see enum kxfer_op.
    static Job compare_swap(const Region& into, uint64_t region_offset, const Target& at,
                            uint64_t target_offset, uint64_t compare, uint64_t swap, uint64_t user_data) {
        return Job(kxfer_job_make_compare_swap(into.id(), region_offset, at.id(), target_offset, compare,
                                               swap, user_data));
    }
    static Job fetch_add(const Region& into, uint64_t region_offset, const Target& at, uint64_t target_offset,
                         uint64_t add, uint64_t user_data) {
        return Job(
            kxfer_job_make_fetch_add(into.id(), region_offset, at.id(), target_offset, add, user_data));
    }
    static Job notify(const Target& to, uint64_t cookie, uint64_t user_data) {
        return Job(kxfer_job_make_notify(to.id(), cookie, user_data));
    }
    // To a mailbox; with an immediate if one is given.
    static Job send(const Region& from, uint64_t region_offset, const Target& to, uint64_t length,
                    uint64_t user_data, std::optional<uint32_t> immediate = std::nullopt) {
        return Job(immediate ? kxfer_job_make_send_imm(from.id(), region_offset, to.id(), length, *immediate,
                                                       user_data)
                             : kxfer_job_make_send(from.id(), region_offset, to.id(), length, user_data));
    }
    // Done when the message is in the mailbox, or received; see kxfer_job_make_send_stored().
    static Job send_stored(const Region& from, uint64_t region_offset, const Target& to, uint64_t length,
                           uint64_t user_data) {
        return Job(kxfer_job_make_send_stored(from.id(), region_offset, to.id(), length, user_data));
    }
    // Not refused by a full mailbox; see kxfer_job_make_send_waiting().
    static Job send_waiting(const Region& from, uint64_t region_offset, const Target& to, uint64_t length,
                            uint64_t user_data) {
        return Job(kxfer_job_make_send_waiting(from.id(), region_offset, to.id(), length, user_data));
    }
    // A message without bytes: the immediate is all of it.
    static Job send(const Target& to, uint32_t immediate, uint64_t user_data) {
        return Job(kxfer_job_make_send_imm(0, 0, to.id(), 0, immediate, user_data));
    }
    // See Message.
    static Job recv(const Region& into, uint64_t region_offset, const Mailbox& from, uint64_t length,
                    uint64_t user_data) {
        return Job(kxfer_job_make_recv(into.id(), region_offset, from.id(), length, user_data));
    }

    // The same, with the payload at payload_offset, apart from its header.
    static Job recv_apart(const Region& into, uint64_t region_offset, uint64_t payload_offset,
                          const Mailbox& from, uint64_t length, uint64_t user_data) {
        return Job(kxfer_job_make_recv_apart(into.id(), region_offset, payload_offset, from.id(), length,
                                             user_data));
    }

    // Sets the deadline: a job still queued then ends with ETIMEDOUT.
    Job& by(Deadline deadline) {
        deadline_ns = deadline.ns();
        return *this;
    }

  private:
    explicit Job(const kxfer_job& job) : kxfer_job(job) {}
};
static_assert(sizeof(Job) == sizeof(kxfer_job));

// How a job ended.
struct Completion : kxfer_completion {
    Completion() : kxfer_completion{} {}

    bool ok() const { return status == 0; }
    // The number of bytes moved, or the job's error.
    Expected<uint64_t> result() const {
        if (status < 0) return fail("the job failed,", "user_data " + std::to_string(user_data), status);
        return bytes;
    }
    std::chrono::nanoseconds took() const { return std::chrono::nanoseconds(completed_ns - submitted_ns); }
};
static_assert(sizeof(Completion) == sizeof(kxfer_completion));

// How long a link waits for its peer; see struct kxfer_peer_open. 0: the module's choice.
struct Patience {
    Milliseconds silence{0};
    uint32_t ack_timeout = 0; // 4.096 us * 2^ack_timeout
    uint32_t retry_count = 0; // of both ends: a listener has no choice
};

// How to reach a peer; see struct kxfer_peer_open.
struct PeerOptions {
    kxfer_addr local = {};
    std::string device;
    uint32_t context = KXFER_CONTEXT_POLLED;
    std::optional<uint32_t> tos; // type of service; none: the device's default
    uint32_t in_flight_kib = 0;  // of bulk jobs; 0: the module's choice
    std::string key;             // the key both ends have to prove; empty: none
    Milliseconds timeout{10000};
    Milliseconds loss{0};        // how long jobs wait for another link if theirs breaks; 0: they end
    std::vector<kxfer_path> via; // more ways to the same node, which stand by; needs `loss`
    Patience patience;
};

class Session {
  public:
    static Expected<Session> open(const char* path = KXFER_DEVICE_PATH) {
        kxfer_session* session = nullptr;
        const int ret = kxfer_session_open(path, &session);
        if (ret < 0) return fail("cannot open", path, ret);
        return Session(detail::Handle(session, kxfer_session_close));
    }

    kxfer_session* get() const { return session_.get(); }
    int fd() const { return kxfer_session_fd(get()); }

    Expected<kxfer_query> query() const {
        kxfer_query query = {};
        const int ret = kxfer_session_query(get(), &query);
        if (ret < 0) return fail("cannot query", "the module", ret);
        return query;
    }

    int nop() const { return kxfer_session_nop(get()); }

    // All records of one kind: list<kxfer_info_link>(KXFER_INFO_LINKS).
    template <typename Record> Expected<std::vector<Record>> list(kxfer_info_kind kind) const {
        static_assert(sizeof(Record) % 8 == 0);
        std::vector<Record> all;
        std::array<Record, 16> some = {};
        for (uint64_t cursor = 0;;) {
            const int ret =
                kxfer_session_info(get(), kind, &cursor, some.data(), sizeof(Record), some.size());
            if (ret < 0) return fail("cannot list", detail::name_of(kind), ret);
            if (ret == 0) return all;
            all.insert(all.end(), some.begin(), some.begin() + ret);
        }
    }

    // flags: KXFER_REGION_F_WRITE if a device may write there.
    Expected<Region> add_region(std::span<std::byte> memory, uint32_t flags) {
        uint32_t region = 0;
        const int ret = kxfer_region_create(get(), memory.data(), memory.size(), flags, &region);
        if (ret < 0) return fail("cannot pin", std::to_string(memory.size()) + " bytes of memory", ret);
        return Region(session_, region);
    }

    // A part of a dma-buf, which may be closed afterwards.
    Expected<Region> import_region(int dmabuf_fd, uint64_t offset, uint64_t length, uint32_t flags) {
        uint32_t region = 0;
        const int ret = kxfer_region_import(get(), dmabuf_fd, offset, length, flags, &region);
        if (ret < 0) return fail("cannot use", std::to_string(length) + " bytes of a dma-buf", ret);
        return Region(session_, region);
    }

    // cookie: any value, for the processes that open the export. events: unread events that the
    // session holds from now on, 0: the module's default.
    Expected<Export> add_export(const Region& region, std::string_view name, uint64_t length, uint32_t rights,
                                std::span<const kxfer_rule> rules = {}, uint64_t cookie = 0,
                                uint32_t events = 0) {
        kxfer_export_add args = {};
        args.cookie = cookie;
        args.nr_events = events;
        args.region = region.id();
        args.rights = rights;
        args.length = length;
        args.rules = reinterpret_cast<uintptr_t>(rules.data());
        args.nr_rules = static_cast<uint32_t>(rules.size());
        if (rules.empty()) args.rules = 0;
        const int ret = set_text(args.name, name) ? kxfer_export_create(get(), &args) : -ENAMETOOLONG;
        if (ret < 0) return fail("cannot export", std::string(name), ret);
        return Export(session_, args.export_id);
    }

    // capacity: messages that it holds; max_bytes: limit of a message's payload; cookie: as for
    // add_export().
    Expected<Mailbox> add_mailbox(std::string_view name, uint32_t capacity, uint32_t max_bytes,
                                  std::span<const kxfer_rule> rules = {}, uint64_t cookie = 0) {
        kxfer_mailbox_add args = {};
        args.cookie = cookie;
        args.rules = rules.empty() ? 0 : reinterpret_cast<uintptr_t>(rules.data());
        args.nr_rules = static_cast<uint32_t>(rules.size());
        args.capacity = capacity;
        args.max_bytes = max_bytes;
        const int ret = set_text(args.name, name) ? kxfer_mailbox_create(get(), &args) : -ENAMETOOLONG;
        if (ret < 0) return fail("cannot make the mailbox", std::string(name), ret);
        return Mailbox(session_, args.export_id);
    }

    // flags: KXFER_LISTEN_F_*; keys: an initiator has to prove one of them, if there are any.
    Expected<Listener> add_listener(const kxfer_addr& address, uint32_t flags,
                                    std::span<const std::string> keys = {}, const Patience& patience = {}) {
        std::vector<kxfer_key_name> names(keys.size());
        for (size_t i = 0; i < keys.size(); i++)
            if (!set_text(names[i].name, keys[i])) return fail("cannot use the key", keys[i], -ENAMETOOLONG);
        kxfer_listen_add args = {};
        args.flags = flags;
        args.addr = address;
        args.keys = names.empty() ? 0 : reinterpret_cast<uintptr_t>(names.data());
        args.nr_keys = static_cast<uint32_t>(names.size());
        args.silence_ms = static_cast<uint32_t>(patience.silence.count());
        args.ack_timeout = patience.ack_timeout;
        const int ret = kxfer_listener_add(get(), &args);
        if (ret < 0) return fail("cannot listen on", to_string(address), ret);
        return Listener(session_, args.listener);
    }

    Expected<Peer> connect(const kxfer_addr& remote, const PeerOptions& options = {}) {
        kxfer_peer_open args = {};
        args.remote = remote;
        args.local = options.local;
        args.context = options.context;
        args.flags = options.tos ? KXFER_PEER_F_TOS : 0;
        args.tos = options.tos.value_or(0);
        args.timeout_ms = static_cast<uint32_t>(options.timeout.count());
        args.loss_ms = static_cast<uint32_t>(options.loss.count());
        args.via = options.via.empty() ? 0 : reinterpret_cast<uintptr_t>(options.via.data());
        args.nr_via = static_cast<uint32_t>(options.via.size());
        args.silence_ms = static_cast<uint32_t>(options.patience.silence.count());
        args.ack_timeout = options.patience.ack_timeout;
        args.retry_count = options.patience.retry_count;
        args.in_flight_kib = options.in_flight_kib;
        const int ret = set_text(args.device, options.device) && set_text(args.key, options.key)
                            ? kxfer_peer_connect(get(), &args)
                            : -ENAMETOOLONG;
        if (ret < 0) {
            Error error("cannot connect with", to_string(remote), ret);
            // 8: nothing listens there, which ECONNREFUSED already means.
            if (args.refusal != KXFER_REFUSAL_NONE && args.refusal != (KXFER_REFUSAL_TRANSPORT | 8))
                error.why = std::string("it refused: ") + kxfer_refusal_text(args.refusal);
            return tl::make_unexpected(std::move(error));
        }
        return Peer(session_, args);
    }

    // args: the input members of struct kxfer_dedicated_open.
    Expected<Dedicated> dedicate(kxfer_dedicated_open args) {
        const int ret = kxfer_dedicated_create(get(), &args);
        if (ret == -EREMOTEIO && args.refusal)
            return fail("the responder refuses", to_string(args.remote), -static_cast<int>(args.refusal));
        if (ret == -EMSGSIZE) {
            Error error("a message is too long", std::to_string(args.bytes) + " bytes", EMSGSIZE);
            error.why =
                "a message of UD is one packet: " + std::to_string(args.mtu) + " bytes at most, the path MTU";
            return tl::make_unexpected(std::move(error));
        }
        if (ret < 0) return fail("cannot connect with a responder", to_string(args.remote), ret);
        return Dedicated(session_, args);
    }

    // Hands in jobs and does not wait. Returns how many were accepted, counted from the first;
    // submitting the rest again returns why it was not. Fails only if none was accepted.
    Expected<uint32_t> submit(std::span<const Job> jobs) {
        const int ret = kxfer_job_submit(get(), jobs.data(), static_cast<uint32_t>(jobs.size()), nullptr);
        if (ret < 0) return fail("cannot submit", std::to_string(jobs.size()) + " jobs", ret);
        return static_cast<uint32_t>(ret);
    }

    Expected<void> submit(const Job& job) {
        const int ret = kxfer_job_submit(get(), &job, 1, nullptr);
        if (ret < 0) return fail("cannot submit a job on target", std::to_string(job.target), ret);
        return {};
    }

    // Submits one job and waits; for a session without other jobs in flight.
    Expected<Completion> run(const Job& job, Deadline deadline) {
        Completion completion;
        const int ret = kxfer_job_run(get(), &job, deadline.ns(), &completion);
        if (ret < 0) return fail("the job failed on target", std::to_string(job.target), ret);
        return completion;
    }

    // How the calls of this session wait: KXFER_WAIT_F_*, see kxfer_session_set_wait().
    Expected<void> set_wait(uint32_t flags) {
        const int ret = kxfer_session_set_wait(get(), flags);
        if (ret < 0) return fail("cannot set how to wait for", "completions", ret);
        return {};
    }

    // Takes completions into `room` and waits until there are `least` of them (0: does not
    // wait) or the deadline has passed. Returns the part of `room` that was filled: nothing
    // if nothing is in flight. Fails with ETIMEDOUT or EINTR if none came.
    Expected<std::span<const Completion>> reap(std::span<Completion> room, uint32_t least,
                                               Deadline deadline) {
        const int ret = kxfer_completion_reap(get(), room.data(), static_cast<uint32_t>(room.size()), least,
                                              deadline.ns());
        if (ret < 0) return fail("cannot take", "completions", ret);
        return std::span<const Completion>(room.first(static_cast<size_t>(ret)));
    }

    // Without waiting.
    Expected<std::span<const Completion>> reap(std::span<Completion> room) {
        return reap(room, 0, Deadline::never());
    }

    // From now on completions are stored in shared memory; see kxfer_ring_open().
    Expected<void> open_ring(uint32_t entries, int eventfd = -1) {
        const int ret = kxfer_ring_open(get(), entries, eventfd);
        if (ret < 0) return fail("cannot open a ring of entries:", std::to_string(entries), ret);
        return {};
    }

    // Takes completions from the ring without a system call. Returns the part of `room` filled.
    std::span<const Completion> take(std::span<Completion> room) {
        return room.first(kxfer_ring_take(get(), room.data(), static_cast<uint32_t>(room.size())));
    }

    // Waits until so many completions are unread in the ring.
    Expected<void> wait(uint32_t completions, Deadline deadline) {
        const int ret = kxfer_ring_wait(get(), completions, deadline.ns());
        if (ret < 0) return fail("cannot wait for", "completions", ret);
        return {};
    }

    // From now on jobs may also be handed in by shared memory; see kxfer_sq_open().
    Expected<void> open_sq(uint32_t entries) {
        const int ret = kxfer_sq_open(get(), entries);
        if (ret < 0) return fail("cannot open a submission ring of entries:", std::to_string(entries), ret);
        return {};
    }

    // The next free slot of the submission ring, or null; one thread at a time.
    kxfer_job* next_job() { return kxfer_sq_next(get()); }

    // Hands in the jobs of these slots and waits until so many completions are unread in the
    // completion ring. Returns how many were accepted, counted from the first; the others are
    // dropped. Fails only if none was accepted.
    Expected<uint32_t> enter(uint32_t completions, Deadline deadline) {
        const int ret = kxfer_sq_enter(get(), completions, deadline.ns(), nullptr);
        if (ret < 0) return fail("cannot submit jobs of", "the submission ring", ret);
        return static_cast<uint32_t>(ret);
    }

    Expected<std::span<const kxfer_event>> take_events(std::span<kxfer_event> room, bool wait,
                                                       Deadline deadline) {
        const int ret = kxfer_event_take(get(), room.data(), static_cast<uint32_t>(room.size()), wait ? 1 : 0,
                                         deadline.ns());
        if (ret < 0) return fail("cannot take", "events", ret);
        return std::span<const kxfer_event>(room.first(static_cast<size_t>(ret)));
    }

    // Ends queued jobs with ECANCELED and returns how many. Posted ones go on.
    Expected<uint32_t> cancel(uint64_t user_data) {
        const int ret = kxfer_job_cancel(get(), user_data);
        if (ret < 0) return fail("cannot cancel jobs of", "user_data " + std::to_string(user_data), ret);
        return static_cast<uint32_t>(ret);
    }

    Expected<uint32_t> cancel_all() {
        const int ret = kxfer_job_cancel_all(get());
        if (ret < 0) return fail("cannot cancel", "all jobs", ret);
        return static_cast<uint32_t>(ret);
    }

    // Ends all jobs and drops their completions: see kxfer_job_drain().
    Expected<void> drain(Deadline deadline) {
        const int ret = kxfer_job_drain(get(), deadline.ns());
        if (ret < 0) return fail("cannot end", "the jobs in flight", ret);
        return {};
    }

  private:
    explicit Session(detail::Handle session) : session_(std::move(session)) {}

    detail::Handle session_;
};

} // namespace kxfer

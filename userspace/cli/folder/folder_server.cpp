// SPDX-License-Identifier: MIT
#include "cli/folder/folder_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <pthread.h>

#include "base/try.hpp"
#include "bench/engines/rules.hpp"
#include "cli/command/peer.hpp"
#include "cli/node/device_file.hpp"

namespace kxfer::cli {

namespace {

constexpr uint32_t places = 32; // waiting RECVs
constexpr uint32_t mailbox_capacity = 64;
constexpr uint64_t place_bytes = sizeof(kxfer_message) + request_bytes;
constexpr size_t most_desks = 32;
constexpr size_t most_desks_of_one = 8;
constexpr size_t most_stored = 1024; // that are told; who puts more in a second sees them all
// A desk is not there yet for its client, or its client is about to connect again.
constexpr uint64_t unused_ns = 15'000'000'000;
constexpr auto look_interval = std::chrono::seconds(5);

} // namespace

tl::expected<std::unique_ptr<FolderServer>, Failure> FolderServer::start(const std::string& name,
                                                                         const std::string& path,
                                                                         bool writable,
                                                                         std::vector<kxfer_rule> rules) {
    if (!is_export_name(desk_name(name, std::string(16, '0'))))
        return failed(Error("cannot serve", path, EINVAL, "give another name: --dir NAME=DIR",
                            "the name of a folder is 1 to 46 of A-Z a-z 0-9 . _ -"),
                      exit_usage);
    auto tree = Tree::open(path);
    if (!tree) return failed(tree.error());
    TRY_SET(auto session, open_session());
    std::unique_ptr<FolderServer> server(
        new FolderServer(std::move(session), {name, std::move(*tree), writable, std::move(rules)}));
    TRY(server->offer());
    try {
        server->thread_ = std::thread(&FolderServer::run, server.get());
    } catch (const std::system_error& error) {
        return failed(Error("cannot start a thread for", name, error.code().value(), "see: ulimit -u"));
    }
    return server;
}

tl::expected<void, Failure> FolderServer::offer() {
    auto memory = Memory::allocate(places * place_bytes);
    if (!memory) return failed(std::move(memory.error()));
    memory_ = std::move(*memory);
    auto region = session_.add_region(memory_.bytes(), KXFER_REGION_F_WRITE);
    if (!region) return failed(pin_error(std::move(region.error()), memory_.bytes().size()));
    region_ = std::move(*region);
    auto mailbox = session_.add_mailbox(folder_.name, mailbox_capacity, request_bytes,
                                        bench::granting(folder_.rules, KXFER_RIGHT_SEND));
    if (!mailbox) {
        Error error = mailbox.error();
        if (error.number == EEXIST)
            error.hint = "see: kxfer export list; or give another name: --dir NAME=DIR";
        return failed(std::move(error));
    }
    mailbox_ = std::move(*mailbox);
    mailbox_id_ = mailbox_.id();
    return {};
}

// When the mailbox ends, so do the waiting RECVs, and no new RECV is accepted.
FolderServer::~FolderServer() {
    mailbox_.reset();
    if (thread_.joinable()) thread_.join();
}

// Blocks all signals: they are for other threads.
void FolderServer::run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (uint32_t place = 0; place < places; place++)
        if (!submit(place)) return;
    while (exchange()) {
    }
}

bool FolderServer::submit(uint32_t place) {
    for (;;) {
        const kxfer_job job =
            kxfer_job_make_recv(region_.id(), place * place_bytes, mailbox_id_, place_bytes, place);
        const int ret = kxfer_job_submit(session_.get(), &job, 1, nullptr);
        if (ret >= 0) return true;
        if (!endurance_.survives(-ret)) return false;
    }
}

// Takes the requests that have come; without one it wakes to look at the desks. False: the mailbox
// has ended. A failed RECV got no message.
bool FolderServer::exchange() {
    std::array<Completion, places> room;
    const auto taken = session_.reap(room, 1, look_interval);
    if (!taken && taken.error().number != ETIMEDOUT && !endurance_.survives(taken.error().number))
        return false;
    if (taken) {
        for (const Completion& done : *taken) {
            const auto place = static_cast<uint32_t>(done.user_data);
            if (done.status != 0 && !endurance_.survives(-done.status)) return false;
            if (done.status == 0) {
                endurance_.worked();
                const auto range = memory_.bytes().subspan(place * place_bytes, place_bytes);
                if (const auto message = Message::at(range, done.bytes)) handle(*message);
            }
            if (!submit(place)) return false;
        }
    }
    look_at_desks();
    return true;
}

// A message that is no request, and a request for a desk of someone else, get no reply: whoever sent
// that has no desk to read it at.
void FolderServer::handle(const Message& message) {
    const auto request = FolderRequest::parse(message.payload());
    if (!request) return;
    if (request->op == FolderOp::open) {
        open_desk(request->desk, message.head());
        return;
    }
    const auto desk = desks_.find(request->desk);
    if (desk == desks_.end() || !desk->second->is_of(message.head())) return;
    if (auto path = desk->second->handle(*request)) {
        const std::lock_guard lock(mutex_);
        if (stored_.size() < most_stored) stored_.push_back({std::move(*path), message.head()});
    }
}

// What earlier commands of the same user have left goes first: the new one may go on with their parts.
void FolderServer::open_desk(const std::string& id, const kxfer_message& sender) {
    if (desks_.contains(id)) return;
    drop_desks(&sender);
    const auto of_sender = std::count_if(desks_.begin(), desks_.end(),
                                         [&](const auto& one) { return one.second->is_of(sender); });
    if (desks_.size() >= most_desks || static_cast<size_t>(of_sender) >= most_desks_of_one) return;
    auto desk = Desk::make(session_, folder_, id, sender);
    if (desk) desks_.emplace(id, std::move(*desk));
}

// The desks that nobody has open: all that were not open for long, or those that this sender has left.
void FolderServer::drop_desks(const kxfer_message* sender) {
    const auto exports = session_.list<kxfer_info_export>(KXFER_INFO_EXPORTS);
    if (!exports) return;
    const uint64_t now = kxfer_clock_ns();
    for (const kxfer_info_export& one : *exports) {
        const auto found = std::find_if(desks_.begin(), desks_.end(), [&](const auto& entry) {
            return desk_name(name(), entry.first) == text_of(one.name);
        });
        if (found == desks_.end()) continue;
        Desk& desk = *found->second;
        const bool open = one.nr_grants != 0;
        const bool unused = desk.is_unused(open, now, unused_ns);
        if (sender ? desk.is_of(*sender) && desk.is_left(open, now) : unused) desks_.erase(found);
    }
}

// Now and then.
void FolderServer::look_at_desks() {
    const uint64_t now = kxfer_clock_ns();
    if (now - looked_ns_ < static_cast<uint64_t>(std::chrono::nanoseconds(look_interval).count())) return;
    looked_ns_ = now;
    if (!desks_.empty()) drop_desks(nullptr);
}

std::vector<FolderServer::Stored> FolderServer::take_stored() {
    const std::lock_guard lock(mutex_);
    return std::exchange(stored_, {});
}

} // namespace kxfer::cli

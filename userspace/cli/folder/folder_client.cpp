// SPDX-License-Identifier: MIT
#include "cli/folder/folder_client.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/line/connect.hpp"
#include "cli/node/device_file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/node/sha256.hpp"

namespace kxfer::cli {

namespace {

// A wait for the server is longer than --timeout by this: the module says of a silent link that it is
// broken 8 to 10 s after it was last heard, and then the copy goes on over another one.
constexpr std::chrono::seconds verdict_margin(2);

std::string random_id() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
}

const char* verb_of(FolderOp op) {
    switch (op) {
    case FolderOp::look_up:
        return "cannot find";
    case FolderOp::list:
        return "cannot list";
    case FolderOp::read:
    case FolderOp::digest:
        return "cannot read";
    case FolderOp::write:
    case FolderOp::keep:
        return "cannot write";
    case FolderOp::make:
        return "cannot make the folder";
    case FolderOp::open:
    case FolderOp::unknown:
        break;
    }
    return "cannot use";
}

} // namespace

FolderClient::FolderClient(Remote remote, CommonOptions common)
    : remote_(std::move(remote)), common_(std::move(common)), desk_(random_id()) {}

tl::unexpected<Failure> FolderClient::explain(const Error& error) const {
    return tl::make_unexpected(target_failure(error, remote_, common_));
}

tl::expected<std::unique_ptr<FolderClient>, Failure>
FolderClient::open(const Remote& folder, uint64_t limit, const CommonOptions& common, Output& out) {
    std::unique_ptr<FolderClient> client(new FolderClient(folder, common));
    FolderClient* const self = client.get();
    auto line = Line::open(
        folder, common,
        [self](Connection& connection, const CommonOptions& now) { return self->open_desk(connection, now); },
        out, Line::Owner::may_come_back);
    if (!line) return tl::make_unexpected(line.error());
    client->line_.emplace(std::move(*line));
    TRY_SET(client->pipeline_, Pipeline::make(client->line_->session(), KXFER_REGION_F_WRITE, limit));
    return client;
}

// Asks for the desk until it is there. What the server has kept of an earlier link is taken over.
tl::expected<Target, Failure> FolderClient::open_desk(Connection& connection, const CommonOptions& common) {
    if (!region_) {
        auto memory = Memory::allocate(request_bytes);
        if (!memory) return failed(memory.error());
        memory_ = std::move(*memory);
        auto region = connection.session.add_region(memory_.bytes(), 0);
        if (!region) return failed(pin_error(std::move(region.error()), request_bytes));
        region_ = std::move(*region);
    }
    mailbox_ = Target();
    auto mailbox = connection.peer.open_target(remote_.name, 0, common.timeout());
    if (!mailbox) return explain(mailbox.error());
    if (!(mailbox->rights() & KXFER_RIGHT_SEND))
        return failed(Error("is no folder:", remote_.text(), ENOTDIR,
                            "leave out what stands after its name, and --recursive"));
    mailbox_ = std::move(*mailbox);
    FolderRequest request;
    request.desk = desk_;
    const Deadline deadline = common.timeout();
    for (auto pause = std::chrono::milliseconds(1);;
         pause = std::min(2 * pause, std::chrono::milliseconds(100))) {
        TRY(send(request, connection, common));
        wait_events(-1, 0, pause);
        auto desk = connection.peer.open_target(desk_name(remote_.name, desk_), 0, common.timeout());
        if (desk) {
            generation_ = desk->content().generation;
            return desk;
        }
        if (interrupted()) return tl::make_unexpected(interrupt_failure("did not wait for", remote_.text()));
        if (desk.error().number != ENOENT) return explain(desk.error());
        if (deadline.passed())
            return failed(Error("no answer from", remote_.text(), ETIMEDOUT,
                                "see what its owner says (the output of kxfer serve there)",
                                "it is no folder, or has too many clients now"));
    }
}

// A full mailbox takes the request when it is its turn.
tl::expected<void, Failure> FolderClient::send(const FolderRequest& request, Connection& connection,
                                               const CommonOptions& common) {
    if (!is_tree_path(request.path))
        return failed(Error("is no path in a folder:", full_path(request.path), EINVAL,
                            "give names with / between them, none of them . or .. or *.kxfer-part"));
    const std::string text = request.text();
    if (text.size() > request_bytes)
        return failed(Error("cannot ask for", full_path(request.path), ENAMETOOLONG));
    memcpy(memory_.bytes().data(), text.data(), text.size());
    const auto done =
        connection.session.run(Job::send_waiting(region_, 0, mailbox_, text.size(), 0), common.timeout());
    if (!done) return explain(done.error());
    return {};
}

// A request that the server refused.
Failure FolderClient::refusal(const FolderReply& reply) const {
    Error error(verb_of(asked_op_), asked_, reply.error);
    error.why = reply.why;
    switch (reply.error) {
    case ENOENT:
        error.hint = fmt::format("see what there is: kxfer ls {}/", remote_.text());
        break;
    case ELOOP:
    case EXDEV:
        error.why = "the path leads over a symbolic link";
        error.hint = "peers do not get over symbolic links in a folder: name the place itself";
        break;
    case ENOSPC:
    case EDQUOT:
        error.hint = "make room on the peer";
        break;
    case EACCES:
    case EPERM:
        error.why = "the user who serves the folder may not";
        break;
    default:
        break;
    }
    return {std::move(error)};
}

tl::expected<void, Failure> FolderClient::post(FolderRequest request) {
    request.desk = desk_;
    request.number = ++number_;
    asked_ = full_path(request.path);
    asked_op_ = request.op;
    CommonOptions longer = common_;
    longer.timeout_seconds += static_cast<double>(verdict_margin.count());
    auto sent = send(request, line_->connection(), longer);
    // The mailbox stays full: a server that takes no requests.
    no_answer_ = !sent && sent.error().error.number == ETIMEDOUT;
    return sent;
}

// Uses short waits, so that a signal is handled soon.
tl::expected<FolderReply, Failure> FolderClient::await() {
    const Deadline deadline = common_.timeout() + verdict_margin;
    for (;;) {
        const auto info = line_->target().info(std::chrono::milliseconds(500), generation_ + 1);
        if (info && info->content.generation > generation_) {
            generation_ = info->content.generation;
            TRY_SET(auto reply, read_reply(info->content));
            if (reply.number != number_) continue;
            line_->moved();
            if (reply.error != 0) return tl::make_unexpected(refusal(reply));
            return reply;
        }
        if (interrupted()) return tl::make_unexpected(interrupt_failure("did not wait for", asked_));
        const bool waiting = info || info.error().number == ETIMEDOUT || info.error().number == EINTR;
        if (!waiting) return explain(info.error());
        if (deadline.passed()) {
            no_answer_ = true;
            return failed(Error("no answer about", asked_, ETIMEDOUT,
                                "see what its owner says (the output of kxfer serve there)"));
        }
    }
}

tl::expected<FolderReply, Failure> FolderClient::read_reply(const kxfer_content& content) {
    std::vector<std::byte> bytes;
    TRY(read_bytes(0, std::min<uint64_t>(content.length, reply_bytes),
                   [&](std::span<const std::byte> piece) -> tl::expected<void, Failure> {
                       bytes.insert(bytes.end(), piece.begin(), piece.end());
                       return {};
                   }));
    Sha256 sha256;
    sha256.update(bytes);
    const auto reply = FolderReply::parse(bytes);
    if (sha256.digest() == digest_of(content) && reply) return *reply;
    return failed(Error("cannot understand the answer about", asked_, EPROTO,
                        "have both nodes the same release? See: kxfer --version",
                        reply ? "" : reply.error()));
}

tl::expected<FolderReply, Failure> FolderClient::ask(FolderRequest request) {
    for (;;) {
        auto posted = post(request);
        auto reply = posted ? await() : tl::make_unexpected(std::move(posted.error()));
        if (reply) return reply;
        TRY(restore(std::move(reply.error())));
    }
}

tl::expected<void, Failure> FolderClient::wait_for_job() {
    if (interrupted())
        return tl::make_unexpected(interrupt_failure("stopped the transfer with", remote_.text()));
    const auto waited = pipeline_->wait(common_.timeout());
    if (!waited) return explain(waited.error());
    return {};
}

tl::expected<void, Failure> FolderClient::read_bytes(uint64_t offset, uint64_t length, const Take& take) {
    for (uint64_t asked = 0, got = 0; got < length;) {
        while (asked < length && !pipeline_->full()) {
            const uint64_t piece = std::min<uint64_t>(length - asked, pipeline_->claim().size());
            const auto submitted = pipeline_->read(line_->target(), offset + asked, piece);
            if (!submitted) return explain(submitted.error());
            asked += piece;
        }
        const auto bytes = pipeline_->retire();
        if (!bytes) return explain(bytes.error());
        if (!*bytes) {
            TRY(wait_for_job());
            continue;
        }
        TRY(take(**bytes));
        got += (*bytes)->size();
        pipeline_->release();
    }
    return {};
}

tl::expected<void, Failure> FolderClient::read_window(uint32_t window, uint64_t length, const Take& take) {
    return read_bytes(window_offset(window), length, take);
}

tl::expected<void, Failure> FolderClient::write_window(uint32_t window, uint64_t length, const Fill& fill) {
    for (uint64_t asked = 0, placed = 0; placed < length;) {
        while (asked < length && !pipeline_->full()) {
            std::span<std::byte> slot = pipeline_->claim();
            slot = slot.first(std::min<uint64_t>(slot.size(), length - asked));
            TRY(fill(slot));
            const auto submitted =
                pipeline_->write(line_->target(), window_offset(window) + asked, slot.size());
            if (!submitted) return explain(submitted.error());
            asked += slot.size();
        }
        const auto bytes = pipeline_->retire();
        if (!bytes) return explain(bytes.error());
        if (!*bytes) {
            TRY(wait_for_job());
            continue;
        }
        placed += (*bytes)->size();
        pipeline_->release();
    }
    return {};
}

tl::expected<void, Failure> FolderClient::restore(Failure broke) {
    // The link is there: nothing would be better over another one.
    if (no_answer_) return tl::make_unexpected(std::move(broke));
    TRY(line_->restore(std::move(broke), *pipeline_));
    pipeline_->clear();
    return {};
}

} // namespace kxfer::cli

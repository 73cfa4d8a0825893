// SPDX-License-Identifier: MIT
#include "cli/folder/desk.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <unistd.h>

#include "base/try.hpp"
#include "cli/node/sha256.hpp"

namespace kxfer::cli {

namespace {

constexpr uint64_t window_most = 4 << 20;
constexpr uint64_t window_least = 64 << 10;
constexpr size_t piece_bytes = 64 << 10;

bool same_bits(const uint8_t* one, const uint8_t* other, uint32_t bits) {
    if (memcmp(one, other, bits / 8) != 0) return false;
    const auto mask = static_cast<uint8_t>(0xff00U >> bits % 8);
    return bits % 8 == 0 || ((one[bits / 8] ^ other[bits / 8]) & mask) == 0;
}

// The rule, for this sender alone; nothing if the sender does not match it. What the kernel decides
// by, a key for example, stays in it.
std::optional<kxfer_rule> narrowed(kxfer_rule rule, const kxfer_message& sender) {
    if (rule.match & KXFER_RULE_ADDR && (rule.addr.family != sender.peer.family ||
                                         !same_bits(rule.addr.addr, sender.peer.addr, rule.prefix_len)))
        return std::nullopt;
    rule.match |= KXFER_RULE_ADDR;
    rule.addr = sender.peer;
    rule.addr.port = 0;
    rule.prefix_len = sender.peer.family == AF_INET ? 32 : 128;
    if (rule.match & KXFER_RULE_NO_UIDS || sender.uid == KXFER_UID_UNKNOWN) return rule;
    if (rule.match & KXFER_RULE_UID && rule.uid != sender.uid) return std::nullopt;
    rule.match |= KXFER_RULE_UID;
    rule.uid = sender.uid;
    return rule;
}

std::vector<kxfer_rule> rules_for(const ServedFolder& folder, const kxfer_message& sender, uint32_t rights) {
    std::vector<kxfer_rule> all = folder.rules, narrow;
    if (all.empty()) all.emplace_back();
    for (kxfer_rule rule : all) {
        rule.rights = rights;
        if (const auto one = narrowed(rule, sender)) narrow.push_back(*one);
    }
    return narrow;
}

FolderReply refused(const Error& error) {
    FolderReply reply;
    reply.error = error.number != 0 ? error.number : EIO;
    reply.why = error.why;
    return reply;
}

FolderReply refused(int number, std::string why = "") {
    FolderReply reply;
    reply.error = number;
    reply.why = std::move(why);
    return reply;
}

Expected<struct stat> status_of(int fd) {
    struct stat status = {};
    if (fstat(fd, &status) < 0) return fail("cannot look up", "", errno);
    return status;
}

} // namespace

Expected<std::unique_ptr<Desk>> Desk::make(Session& session, ServedFolder& folder, const std::string& id,
                                           const kxfer_message& sender) {
    for (uint64_t window = window_most;; window /= 4) {
        std::unique_ptr<Desk> desk(new Desk(folder, sender));
        const auto made = desk->offer(session, id, window);
        if (made) return desk;
        if (made.error().number != ENOMEM || window == window_least) return tl::make_unexpected(made.error());
    }
}

Desk::~Desk() { give_part_back(); }

Expected<void> Desk::offer(Session& session, const std::string& id, uint64_t window) {
    const uint32_t rights = KXFER_RIGHT_READ | (folder_.writable ? KXFER_RIGHT_WRITE : 0U);
    const auto rules = rules_for(folder_, sender_, rights);
    if (rules.empty()) return fail("cannot serve", to_string(sender_.peer), EACCES);
    window_ = window;
    TRY_SET(memory_, Memory::allocate(reply_bytes + nr_windows * window));
    TRY_SET(region_, session.add_region(memory_.bytes(), folder_.writable ? KXFER_REGION_F_WRITE : 0));
    TRY_SET(export_,
            session.add_export(region_, desk_name(folder_.name, id), memory_.bytes().size(), rights, rules));
    return {};
}

bool Desk::is_of(const kxfer_message& sender) const {
    return sender.uid == sender_.uid && sender.peer.family == sender_.peer.family &&
           memcmp(sender.peer.addr, sender_.peer.addr, sizeof(sender.peer.addr)) == 0;
}

std::optional<std::string> Desk::handle(const FolderRequest& request) {
    used_ = true;
    FolderReply reply = perform(request);
    reply.number = request.number;
    const std::string text = reply.text();
    // It fits: see most_entries. What is longer would be cut, and be no JSON.
    const auto room = memory_.bytes().first(std::min<size_t>(text.size(), reply_bytes));
    memcpy(room.data(), text.data(), room.size());
    Sha256 sha256;
    sha256.update(std::as_bytes(std::span(text).first(room.size())));
    // It fails only when the export has ended.
    (void)export_.publish(room.size(), sha256.digest());
    if (request.op == FolderOp::keep && reply.error == 0) return request.path;
    return std::nullopt;
}

FolderReply Desk::perform(const FolderRequest& request) {
    const bool changes =
        request.op == FolderOp::write || request.op == FolderOp::keep || request.op == FolderOp::make;
    if (changes && !folder_.writable) return refused(EROFS);
    switch (request.op) {
    case FolderOp::look_up: {
        const auto entry = folder_.tree.look_up(request.path);
        if (!entry) return refused(entry.error());
        FolderReply reply;
        reply.entry = *entry;
        return reply;
    }
    case FolderOp::list:
        return list(request);
    case FolderOp::read:
        return read(request);
    case FolderOp::digest:
        return digest(request);
    case FolderOp::write:
        return write(request);
    case FolderOp::keep:
        return keep(request);
    case FolderOp::make: {
        const auto made = folder_.tree.make_folder(request.path, request.mode);
        return made ? FolderReply() : refused(made.error());
    }
    case FolderOp::open:
    case FolderOp::unknown:
        break;
    }
    return refused(EOPNOTSUPP, "the server does not know this request");
}

std::span<std::byte> Desk::window(const FolderRequest& request) {
    return memory_.bytes().subspan(reply_bytes + request.window % nr_windows * window_, window_);
}

FolderReply Desk::list(const FolderRequest& request) const {
    auto entries = folder_.tree.list(request.path, request.after, most_entries);
    if (!entries) return refused(entries.error());
    FolderReply reply;
    reply.entries = std::move(*entries);
    return reply;
}

FolderReply Desk::read(const FolderRequest& request) {
    const auto fd = folder_.tree.open_file(request.path);
    if (!fd) return refused(fd.error());
    const auto status = status_of(fd->get());
    if (!status) return refused(status.error());
    const std::span<std::byte> into = window(request).first(std::min(request.length, window_));
    if (lseek(fd->get(), static_cast<off_t>(request.offset), SEEK_SET) < 0) return refused(EINVAL);
    const auto got = read_full(fd->get(), into, request.path);
    if (!got) return refused(got.error());
    Sha256 sha256;
    sha256.update(into.first(*got));
    FolderReply reply;
    reply.length = *got;
    reply.sha256 = hex(sha256.digest());
    reply.entry = TreeEntry::of("", *status);
    return reply;
}

// At most as many bytes as a window has, so that nobody waits for long.
FolderReply Desk::digest(const FolderRequest& request) const {
    if (request.of_part && !folder_.writable) return refused(EROFS);
    const auto fd =
        request.of_part ? folder_.tree.open_part(request.path) : folder_.tree.open_file(request.path);
    if (!fd) return refused(fd.error());
    if (lseek(fd->get(), static_cast<off_t>(request.offset), SEEK_SET) < 0) return refused(EINVAL);
    std::vector<std::byte> piece(piece_bytes);
    const uint64_t most = std::min(request.length, window_);
    FolderReply reply;
    Sha256 sha256;
    while (reply.length < most) {
        const auto want = std::span(piece).first(std::min<uint64_t>(piece.size(), most - reply.length));
        const auto got = read_full(fd->get(), want, request.path);
        if (!got) return refused(got.error());
        sha256.update(want.first(*got));
        reply.length += *got;
        if (*got < want.size()) break;
    }
    reply.sha256 = hex(sha256.digest());
    return reply;
}

Expected<void> Desk::take_part(const std::string& path) {
    if (part_ == path) return {};
    if (folder_.parts.contains(path)) return fail("cannot write", path, EBUSY);
    give_part_back();
    folder_.parts.insert(path);
    part_ = path;
    return {};
}

void Desk::give_part_back() {
    folder_.parts.erase(part_);
    part_.clear();
}

FolderReply Desk::write(const FolderRequest& request) {
    if (const auto taken = take_part(request.path); !taken)
        return refused(EBUSY, "another client is writing it");
    const auto fd = folder_.tree.open_part(request.path);
    if (!fd) return refused(fd.error());
    const auto status = status_of(fd->get());
    if (!status) return refused(status.error());
    if (request.length > window_ || request.offset > static_cast<uint64_t>(status->st_size))
        return refused(EINVAL, "the part ends before that");
    if (ftruncate(fd->get(), static_cast<off_t>(request.offset)) < 0 || lseek(fd->get(), 0, SEEK_END) < 0)
        return refused(errno);
    const std::span<const std::byte> from = window(request).first(request.length);
    std::vector<std::byte> piece;
    Sha256 sha256;
    for (size_t done = 0; done < from.size(); done += piece.size()) {
        const auto part = from.subspan(done, std::min(piece_bytes, from.size() - done));
        piece.assign(part.begin(), part.end());
        sha256.update(piece);
        if (const auto written = write_full(fd->get(), piece, request.path); !written)
            return refused(written.error());
    }
    if (hex(sha256.digest()) == request.sha256) return {};
    // What came is not what was sent: it does not stay.
    if (ftruncate(fd->get(), static_cast<off_t>(request.offset)) < 0) return refused(errno);
    return refused(EBADMSG, "the bytes that arrived are not those that were sent");
}

bool Desk::is_kept(const FolderRequest& request) const {
    const auto entry = folder_.tree.look_up(request.path);
    return entry && entry->type == TreeEntry::Type::file && entry->size == request.size &&
           entry->mtime_ns == request.mtime_ns;
}

FolderReply Desk::keep(const FolderRequest& request) {
    if (const auto taken = take_part(request.path); !taken)
        return refused(EBUSY, "another client is writing it");
    const auto part = folder_.tree.open_part(request.path);
    if (!part) return refused(part.error());
    const auto status = status_of(part->get());
    if (!status) return refused(status.error());
    if (static_cast<uint64_t>(status->st_size) != request.size) {
        // A server that was started again does not know that it has kept the file already.
        if (status->st_size != 0 || !is_kept(request)) return refused(EAGAIN, "the part has another length");
        folder_.tree.drop_part(request.path);
        give_part_back();
        return {};
    }
    const auto kept = folder_.tree.keep(request.path, request.mode, request.mtime_ns, true);
    give_part_back();
    return kept ? FolderReply() : refused(kept.error());
}

} // namespace kxfer::cli

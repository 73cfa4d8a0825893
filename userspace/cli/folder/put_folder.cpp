// SPDX-License-Identifier: MIT
//
// kxfer put to a place in a folder. Each window is written into the desk and sent with its SHA-256;
// the server stores it only if that is the one of the bytes that it stores. A file has its name there
// only when it is whole; what is there of one that stopped is its part, and --resume goes on with it.

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/try.hpp"
#include "cli/folder/copy_report.hpp"
#include "cli/folder/folder_client.hpp"
#include "cli/folder/folder_copy.hpp"
#include "cli/folder/prefix.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"

namespace kxfer::cli {

namespace {

struct Item {
    std::string path; // in the folder of this node
    TreeEntry entry;
};

FolderRequest request_of(FolderOp op, const std::string& path) {
    FolderRequest request;
    request.op = op;
    request.path = path;
    return request;
}

// The bytes of one file, from those on that the server has.
class Stream {
  public:
    Stream(FolderClient& client, std::string path, int fd, std::string name, uint64_t size, Prefix stored)
        : client_(client), path_(std::move(path)), fd_(fd), name_(std::move(name)), size_(size),
          stored_(stored) {}

    const Prefix& stored() const { return stored_; }

    tl::expected<void, Failure> run_over_breaks(Progress& progress, uint64_t before) {
        for (auto done = run(progress, before); !done; done = run(progress, before))
            TRY(client_.restore(std::move(done.error())));
        return {};
    }

  private:
    // A window is stored there while the next one is on its way. One without bytes cuts the part.
    tl::expected<void, Failure> run(Progress& progress, uint64_t before) {
        Prefix filled = stored_;
        asked_.reset();
        do {
            TRY_SET(const auto request, fill_window(filled, progress, before));
            TRY(settle());
            TRY(client_.post(request));
            asked_ = filled;
        } while (filled.bytes < size_);
        return settle();
    }

    // Puts the bytes behind `filled` into a window, and adds them to it.
    tl::expected<FolderRequest, Failure> fill_window(Prefix& filled, Progress& progress, uint64_t before) {
        FolderRequest request = request_of(FolderOp::write, path_);
        request.offset = filled.bytes;
        request.length = std::min(client_.window_bytes(), size_ - filled.bytes);
        request.window = window_++;
        Sha256 here;
        TRY(client_.write_window(request.window, request.length,
                                 [&](std::span<std::byte> slot) -> tl::expected<void, Failure> {
                                     TRY_SET(const auto got, read_at(fd_, slot, filled.bytes, name_));
                                     if (got < slot.size()) return shorter();
                                     filled.sha256.update(slot);
                                     here.update(slot);
                                     filled.bytes += got;
                                     progress.update(before + filled.bytes);
                                     return {};
                                 }));
        request.sha256 = hex(here.digest());
        return request;
    }

    tl::unexpected<Failure> shorter() const {
        return failed(
            Error(name_, "became shorter while it was read", 0, "put it again when nothing changes it"));
    }

    // Waits until the window that was asked for is stored.
    tl::expected<void, Failure> settle() {
        if (!asked_) return {};
        TRY(client_.await());
        stored_ = *std::exchange(asked_, std::nullopt);
        return {};
    }

    FolderClient& client_;
    std::string path_; // in the folder of the server
    int fd_;
    std::string name_;
    uint64_t size_;
    Prefix stored_;               // at the server, as it said
    std::optional<Prefix> asked_; // with the window whose reply has not come yet
    uint32_t window_ = 0;
};

class Put {
  public:
    Put(const FolderCopy& copy, FolderClient& client, Output& out)
        : copy_(copy), client_(client), out_(out) {}

    const CopyReport& report() const { return report_; }

    tl::expected<void, Failure> one(const Tree& tree, const Item& item, const std::string& to) {
        Progress progress(out_, item.path, item.entry.size);
        return file(tree, item, to, progress, 0);
    }

    // The contents of the tree become those of the folder at `to`.
    tl::expected<void, Failure> all(const Tree& tree, const std::string& to) {
        std::vector<Item> items;
        TRY(make_folders(to));
        TRY(walk(tree, "", items));
        uint64_t total = 0, done = 0;
        for (const Item& item : items) total += item.entry.size;
        Progress progress(out_, fmt::format("{} files", items.size()), total);
        for (const Item& item : items) {
            if (interrupted()) return tl::make_unexpected(interrupt_failure("stopped sending", tree.path()));
            if (item.entry.type == TreeEntry::Type::folder) {
                FolderRequest request = request_of(FolderOp::make, join_path(to, item.path));
                // Its server has to put files into it.
                request.mode = item.entry.mode | 0700;
                TRY(client_.ask(request));
                report_.folder();
            } else if (item.entry.type == TreeEntry::Type::file) {
                TRY(file(tree, item, join_path(to, item.path), progress, done));
            } else {
                report_.left_out(tree.full_path(item.path));
            }
            done += item.entry.size;
        }
        return {};
    }

  private:
    // Folders stand before what is in them.
    tl::expected<void, Failure> walk(const Tree& tree, const std::string& path, std::vector<Item>& items) {
        TRY_SET(auto entries, tree.list(path, "", SIZE_MAX));
        for (TreeEntry& entry : entries) {
            const std::string inner = join_path(path, entry.name);
            const bool is_folder = entry.type == TreeEntry::Type::folder;
            items.push_back({inner, std::move(entry)});
            if (is_folder) TRY(walk(tree, inner, items));
        }
        return {};
    }

    // The folder at `path`, and those above it.
    tl::expected<void, Failure> make_folders(const std::string& path) {
        for (size_t end = 0; end != std::string::npos && !path.empty();) {
            end = path.find('/', end + 1);
            FolderRequest request = request_of(FolderOp::make, path.substr(0, end));
            request.mode = 0777;
            TRY(client_.ask(request));
        }
        return {};
    }

    // Whether there is nothing to do, because the file is there and looks the same.
    tl::expected<bool, Failure> is_there(const Item& item, const std::string& to) {
        if (!copy_.resume) return false;
        const auto reply = client_.ask(request_of(FolderOp::look_up, to));
        if (reply) return reply->entry.looks_like(item.entry);
        if (reply.error().error.number == ENOENT) return false;
        return tl::make_unexpected(reply.error());
    }

    tl::expected<void, Failure> file(const Tree& tree, const Item& item, const std::string& to,
                                     Progress& progress, uint64_t before) {
        TRY_SET(const bool there, is_there(item, to));
        if (there) {
            report_.unchanged();
            return {};
        }
        const std::string name = tree.full_path(item.path);
        TRY_SET(const auto fd, tree.open_file(item.path));
        struct stat status = {};
        if (fstat(fd.get(), &status) < 0) return failed(Error("cannot read", name, errno));
        const TreeEntry entry = TreeEntry::of("", status);
        Prefix kept;
        if (copy_.resume) {
            TRY_SET(kept, common_prefix(client_, to, true, fd.get(), entry.size, name));
        }
        const uint64_t resumed = kept.bytes;
        Stream stream(client_, to, fd.get(), name, entry.size, kept);
        if (auto sent = stream.run_over_breaks(progress, before); !sent)
            return stream.stored().bytes != 0
                       ? stopped_copy(std::move(sent.error()), "the server keeps what it has stored")
                       : sent;
        if (fstat(fd.get(), &status) < 0 || !TreeEntry::of("", status).looks_like(entry))
            return failed(
                Error(name, "was changed while it was read", 0, "put it again when nothing changes it"));
        FolderRequest request = request_of(FolderOp::keep, to);
        request.size = entry.size;
        request.mode = entry.mode;
        request.mtime_ns = entry.mtime_ns;
        TRY(client_.ask(request));
        report_.moved(item.path, entry.size, resumed, stream.stored().sha256.digest());
        return {};
    }

    const FolderCopy& copy_;
    FolderClient& client_;
    Output& out_;
    CopyReport report_;
};

// Where a single file goes: into the folder that the place names, or to a name of its own.
tl::expected<std::string, Failure> destination(FolderClient& client, const std::string& path,
                                               const std::string& name) {
    const auto reply = client.ask(request_of(FolderOp::look_up, path));
    if (reply && reply->entry.type == TreeEntry::Type::folder) return join_path(path, name);
    if (reply || reply.error().error.number == ENOENT) return path;
    return tl::make_unexpected(reply.error());
}

tl::expected<void, Failure> put_one(Put& put, FolderClient& client, const FolderCopy& copy) {
    // The file is opened once, wherever its name leads.
    const std::string local = real_path(copy.local);
    auto tree = Tree::open(directory_of(local));
    if (!tree) return failed(tree.error());
    const std::string name = local.substr(local.rfind('/') + 1);
    TRY_SET(const auto entry, tree->look_up(name));
    const std::string given = copy.local.substr(copy.local.rfind('/') + 1);
    TRY_SET(const auto to, destination(client, copy.place.path, given));
    return put.one(*tree, {name, entry}, to);
}

} // namespace

Result put_into_folder(const FolderCopy& copy, Context& context) {
    catch_interrupts();
    struct stat status = {};
    if (copy.local == "-")
        return wrong_usage("standard input has no name in a folder",
                           "put a file, or put it into an export of memory");
    if (stat(copy.local.c_str(), &status) < 0) return failed(Error("cannot open", copy.local, errno));
    const bool is_folder = S_ISDIR(status.st_mode);
    if (is_folder && !copy.recursive)
        return failed(Error("is a folder:", copy.local, EISDIR, "put all of it: --recursive"), exit_usage);
    TRY_SET(const auto client, FolderClient::open(copy.place.remote, copy.limit, copy.common, context.out));
    if (!client->is_writable())
        return failed(Error("cannot put into", copy.place.text(), EROFS,
                            "its owner may: kxfer serve --dir NAME=DIR --writable",
                            "the folder is served for reading only"));
    const uint64_t began = kxfer_clock_ns();
    Put put(copy, *client, context.out);
    if (is_folder) {
        auto tree = Tree::open(copy.local);
        if (!tree) return failed(tree.error());
        TRY(put.all(*tree, copy.place.path));
    } else {
        TRY(put_one(put, *client, copy));
    }
    if (const auto remark = put.report().remark(); !remark.empty()) context.out.note(remark);
    TRY(put.report().write_manifest(copy.manifest));
    context.out.record(
        put.report().record(copy.local, copy.place.text(), client->breaks(), kxfer_clock_ns() - began));
    return exit_ok;
}

} // namespace kxfer::cli

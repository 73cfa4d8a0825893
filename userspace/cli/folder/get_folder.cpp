// SPDX-License-Identifier: MIT
//
// kxfer get of a place in a folder. Each window is compared with the SHA-256 that came with it before
// a byte of it is written. A file becomes its name only when it is whole; what is there of one that
// stopped is its part, and --resume goes on with it.

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
    std::string path; // in the folder of the peer
    TreeEntry entry;
};

// The bytes of one file, from `offset` on.
struct Stream {
    FolderClient& client;
    const std::string& path;
    int fd; // written at its end
    std::string name;
    Progress& progress;
    uint64_t progress_before = 0;
    uint64_t offset = 0;
    Sha256 sha256 = {};
    std::optional<TreeEntry> entry = {};
    uint32_t window = 0;

    tl::expected<void, Failure> post_read(uint64_t from) {
        FolderRequest request;
        request.op = FolderOp::read;
        request.path = path;
        request.offset = from;
        request.length = client.window_bytes();
        request.window = window;
        return client.post(request);
    }

    tl::expected<void, Failure> check_same(const TreeEntry& now) {
        if (!entry) entry = now;
        if (entry->looks_like(now)) return {};
        return failed(Error("the file changed while it was read:", client.full_path(path), EAGAIN,
                            "get it again when nothing changes it"));
    }

    tl::expected<void, Failure> take_window(uint32_t number, const FolderReply& reply) {
        std::vector<std::byte> bytes;
        bytes.reserve(reply.length);
        TRY(client.read_window(number, reply.length,
                               [&](std::span<const std::byte> piece) -> tl::expected<void, Failure> {
                                   bytes.insert(bytes.end(), piece.begin(), piece.end());
                                   progress.update(progress_before + offset + bytes.size());
                                   return {};
                               }));
        Sha256 here;
        here.update(bytes);
        if (hex(here.digest()) != reply.sha256)
            return failed(Error("wrong bytes from", client.full_path(path), EBADMSG, "get it again"));
        if (auto written = write_full(fd, bytes, name); !written) {
            if (written.error().number == ENOSPC)
                written.error().hint = "make room, then --resume; see: df .";
            return failed(written.error());
        }
        sha256.update(bytes);
        offset += bytes.size();
        return {};
    }

    // The next window is filled while this one is read.
    tl::expected<void, Failure> run() {
        TRY(post_read(offset));
        for (;;) {
            TRY_SET(const auto reply, client.await());
            if (reply.length > client.window_bytes())
                return failed(Error("wrong answer from", client.full_path(path), EPROTO));
            TRY(check_same(reply.entry));
            const uint32_t number = window++;
            const uint64_t next = offset + reply.length;
            const bool more = reply.length != 0 && next < reply.entry.size;
            if (more) TRY(post_read(next));
            TRY(take_window(number, reply));
            if (!more) return {};
        }
    }

    tl::expected<void, Failure> run_over_breaks() {
        for (auto done = run(); !done; done = run()) TRY(client.restore(std::move(done.error())));
        return {};
    }
};

class Get {
  public:
    Get(const FolderCopy& copy, FolderClient& client, Output& out)
        : copy_(copy), client_(client), out_(out) {}

    const CopyReport& report() const { return report_; }

    tl::expected<void, Failure> to_stream(const std::string& path, const TreeEntry& entry) {
        Progress progress(out_, entry.name, entry.size);
        Stream stream{client_, path, STDOUT_FILENO, "standard output", progress};
        TRY(stream.run_over_breaks());
        report_.moved(path, stream.offset, 0, stream.sha256.digest());
        return {};
    }

    tl::expected<void, Failure> to_file(const Tree& tree, const std::string& local, const Item& item) {
        Progress progress(out_, item.entry.name, item.entry.size);
        return file(tree, local, item, progress, 0);
    }

    // The contents of the folder at `path` become those of the tree.
    tl::expected<void, Failure> to_tree(const Tree& tree, const std::string& path) {
        std::vector<Item> items;
        TRY(walk(path, items));
        uint64_t total = 0, done = 0;
        for (const Item& item : items) total += item.entry.size;
        Progress progress(out_, fmt::format("{} files", items.size()), total);
        for (const Item& item : items) {
            const std::string local = path.empty() ? item.path : item.path.substr(path.size() + 1);
            if (interrupted())
                return tl::make_unexpected(interrupt_failure("stopped reading", client_.full_path(path)));
            if (item.entry.type == TreeEntry::Type::folder) {
                // Others get their rights as they are; this user has to put files into it.
                TRY(tree.make_folder(local, item.entry.mode | 0700));
                report_.folder();
            } else if (item.entry.type == TreeEntry::Type::file) {
                TRY(file(tree, local, item, progress, done));
            } else {
                report_.left_out(client_.full_path(item.path));
            }
            done += item.entry.size;
        }
        return {};
    }

  private:
    // Folders stand before what is in them.
    tl::expected<void, Failure> walk(const std::string& path, std::vector<Item>& items) {
        FolderRequest request;
        request.op = FolderOp::list;
        request.path = path;
        for (;;) {
            TRY_SET(auto reply, client_.ask(request));
            if (reply.entries.empty()) return {};
            request.after = reply.entries.back().name;
            for (TreeEntry& entry : reply.entries) {
                const std::string inner = join_path(path, entry.name);
                const bool is_folder = entry.type == TreeEntry::Type::folder;
                items.push_back({inner, std::move(entry)});
                if (is_folder) TRY(walk(inner, items));
            }
        }
    }

    // Whether there is nothing to do, because the file is there and looks the same.
    tl::expected<bool, Failure> is_there(const Tree& tree, const std::string& local, const Item& item) {
        const auto present = tree.look_up(local);
        if (!present) {
            if (present.error().number == ENOENT) return false;
            return failed(present.error());
        }
        if (copy_.resume && present->looks_like(item.entry)) return true;
        if (copy_.force && present->type == TreeEntry::Type::file) return false;
        return failed(Error("will not overwrite", tree.full_path(local), EEXIST,
                            "--force does; --resume leaves alone what has the same size and time"));
    }

    tl::expected<void, Failure> file(const Tree& tree, const std::string& local, const Item& item,
                                     Progress& progress, uint64_t before) {
        TRY_SET(const bool there, is_there(tree, local, item));
        if (there) {
            report_.unchanged();
            return {};
        }
        TRY_SET(const auto part, tree.open_part(local));
        if (flock(part.get(), LOCK_EX | LOCK_NB) < 0)
            return failed(Error("cannot write", tree.full_path(local), errno, "wait for it",
                                "another kxfer get is writing it"));
        Prefix kept;
        if (copy_.resume) {
            TRY_SET(kept, common_prefix(client_, item.path, false, part.get(), item.entry.size,
                                        tree.full_path(local)));
        }
        if (ftruncate(part.get(), static_cast<off_t>(kept.bytes)) < 0 || lseek(part.get(), 0, SEEK_END) < 0)
            return failed(Error("cannot write", tree.full_path(local), errno));
        Stream stream{client_,  item.path, part.get(), tree.full_path(local),
                      progress, before,    kept.bytes, kept.sha256};
        if (auto done = stream.run_over_breaks(); !done) {
            if (stream.offset != 0) return stopped_copy(std::move(done.error()), "what has arrived is kept");
            tree.drop_part(local);
            return done;
        }
        TRY(tree.keep(local, stream.entry->mode, stream.entry->mtime_ns, copy_.force));
        report_.moved(local, stream.offset, kept.bytes, stream.sha256.digest());
        return {};
    }

    const FolderCopy& copy_;
    FolderClient& client_;
    Output& out_;
    CopyReport report_;
};

// The folder `local` itself, made if it is not there.
tl::expected<Tree, Failure> open_destination(const std::string& local) {
    if (mkdir(local.c_str(), 0777) < 0 && errno != EEXIST)
        return failed(Error("cannot make the folder", local, errno));
    auto tree = Tree::open(local);
    if (!tree) return failed(tree.error());
    return std::move(*tree);
}

tl::expected<void, Failure> get_one(Get& get, const FolderCopy& copy, const Item& item) {
    if (copy.local == "-") return get.to_stream(item.path, item.entry);
    struct stat status = {};
    const bool in_folder = stat(copy.local.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    const std::string folder = in_folder ? copy.local : directory_of(copy.local);
    const std::string name = in_folder ? item.entry.name : copy.local.substr(copy.local.rfind('/') + 1);
    auto tree = Tree::open(folder);
    if (!tree) return failed(tree.error());
    return get.to_file(*tree, name, item);
}

} // namespace

Result get_from_folder(const FolderCopy& copy, Context& context) {
    catch_interrupts();
    if (copy.local == "-") context.out.keep_stdout_free();
    if (copy.local == "-" && copy.resume)
        return wrong_usage("--resume needs a file to go on with", "name one, without --resume");
    TRY_SET(const auto client, FolderClient::open(copy.place.remote, copy.limit, copy.common, context.out));
    FolderRequest request;
    request.op = FolderOp::look_up;
    request.path = copy.place.path;
    TRY_SET(const auto reply, client->ask(request));
    const bool is_folder = reply.entry.type == TreeEntry::Type::folder;
    if (is_folder && !copy.recursive)
        return failed(Error("is a folder:", copy.place.text(), EISDIR, "get all of it: --recursive"),
                      exit_usage);
    if (reply.entry.type == TreeEntry::Type::other)
        return failed(
            Error("cannot get", copy.place.text(), EINVAL, "", "it is neither a file nor a folder"));
    if (is_folder && copy.local == "-") return wrong_usage("a folder needs a folder", "name one");
    const uint64_t began = kxfer_clock_ns();
    Get get(copy, *client, context.out);
    if (is_folder) {
        TRY_SET(const auto tree, open_destination(copy.local));
        TRY(get.to_tree(tree, copy.place.path));
    } else {
        TRY(get_one(get, copy, {copy.place.path, reply.entry}));
    }
    if (const auto remark = get.report().remark(); !remark.empty()) context.out.note(remark);
    TRY(get.report().write_manifest(copy.manifest));
    context.out.record(
        get.report().record(copy.place.text(), copy.local, client->breaks(), kxfer_clock_ns() - began));
    return exit_ok;
}

} // namespace kxfer::cli

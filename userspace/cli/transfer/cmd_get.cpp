// SPDX-License-Identifier: MIT
//
// kxfer get REMOTE FILE|-: reads an export of a peer into a file.
//
// READ jobs bring the data, several in flight; a thread writes it to FILE.kxfer-part and
// hashes it. At the end its SHA-256 is compared with the one that the exporter published,
// and the exporter is asked whether the export has changed in the meantime. Only then the
// part becomes FILE. A get that stops keeps the part, cut to the bytes that were read back
// and found right; the next get of that FILE starts it anew.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/size.hpp"
#include "cli/node/file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/connect.hpp"
#include "cli/transfer/content.hpp"
#include "cli/transfer/file_thread.hpp"
#include "cli/transfer/pipeline.hpp"

namespace kxfer::cli {

namespace {

struct GetOptions {
    Remote remote;
    std::string file;
    uint64_t offset = 0;
    uint64_t length = 0;
    bool has_length = false;
    bool force = false;
    CommonOptions common;
};

// The destination of the bytes. Only a regular file has a part; standard output and
// devices are written to directly.
struct Sink {
    std::string path; // the final file; empty: a stream
    std::string part;
    std::string name; // for messages
    Descriptor fd;

    bool is_file() const { return !path.empty(); }
};

// FILE, or FILE/NAME if FILE is a folder.
std::string destination(const GetOptions& options) {
    struct stat status = {};
    if (stat(options.file.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
        return options.file + (options.file.ends_with('/') ? "" : "/") + options.remote.name;
    return options.file;
}

constexpr const char* part_suffix = ".kxfer-part";

bool is_at(const std::string& path, int fd) {
    struct stat named = {}, opened = {};
    return lstat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

// A part that a get of this user has left: a regular file of this user, with no other link.
bool is_own_part(int fd) {
    struct stat status = {};
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_nlink == 1;
}

tl::expected<Descriptor, Failure> create_or_take(const std::string& part) {
    constexpr int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    // Try twice, because an existing part may be renamed before it is opened.
    for (int tries = 2;; tries--) {
        Descriptor fd(open(part.c_str(), flags | O_CREAT | O_EXCL, 0600));
        if (fd.get() >= 0) return fd;
        if (errno != EEXIST) return failed(Error("cannot create", part, errno));
        fd = Descriptor(open(part.c_str(), flags));
        if (fd.get() >= 0 && is_own_part(fd.get())) return fd;
        if (fd.get() < 0 && errno == ENOENT && tries > 1) continue;
        return failed(Error("will not overwrite", part, EEXIST, "remove it, or choose another name",
                            "it is no part that a kxfer get of this user has left"));
    }
}

// Two gets to the same file would mix their bytes, so the first holds a lock. When it has
// finished, its part has become FILE: a second get that opened it under the old name must not
// empty it.
tl::expected<Sink, Failure> open_part(std::string path) {
    Sink sink{path, path + part_suffix, path, {}};
    do {
        TRY_SET(sink.fd, create_or_take(sink.part));
        if (flock(sink.fd.get(), LOCK_EX | LOCK_NB) < 0)
            return failed(Error("cannot write", sink.part, errno, "wait for it, or choose another name",
                                "another kxfer get is writing it"));
    } while (!is_at(sink.part, sink.fd.get()));
    if (ftruncate(sink.fd.get(), 0) < 0) return failed(Error("cannot empty", sink.part, errno));
    return sink;
}

Error will_not_overwrite(const std::string& path, const char* why = "") {
    return Error("will not overwrite", path, EEXIST, "--force does, or choose another name", why);
}

tl::expected<Sink, Failure> open_sink(const GetOptions& options) {
    if (options.file == "-") return Sink{"", "", "standard output", Descriptor(STDOUT_FILENO, false)};
    std::string path = destination(options);
    struct stat status = {};
    if (stat(path.c_str(), &status) < 0) {
        const bool dangles = errno == ENOENT && lstat(path.c_str(), &status) == 0;
        if (dangles) return failed(will_not_overwrite(path, "it is a symbolic link that leads nowhere"));
        return open_part(std::move(path));
    }
    if (!S_ISREG(status.st_mode)) {
        Sink sink{"", "", path, Descriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC))};
        if (sink.fd.get() < 0) return failed(Error("cannot open", path, errno));
        return sink;
    }
    if (!options.force) return failed(will_not_overwrite(path));
    return open_part(real_path(path));
}

// The bytes may contain commands to a terminal.
tl::expected<void, Failure> check_terminal(const GetOptions& options) {
    if (options.file != "-" || options.force || isatty(STDOUT_FILENO) == 0) return {};
    return failed(Error("will not write", "to a terminal", 0,
                        "name a file, or pipe it: kxfer get REMOTE - | COMMAND; --force writes it anyway",
                        "what an export holds may change how the terminal works"),
                  exit_usage);
}

// The range of the export to read, and its content record.
struct Range {
    uint64_t length = 0;
    kxfer_content content = {};
    bool whole = false; // exactly the range of the record
};

tl::expected<Range, Failure> choose_range(const GetOptions& options, const kxfer_target_info& info) {
    Range range;
    range.content = info.content;
    if (info.content.generation == 0 && !options.has_length)
        return failed(Error("cannot get", options.remote.text(), ENODATA,
                            "put something there first, or read the bare memory: --length SIZE",
                            "its owner has not said what it holds"));
    const uint64_t end = options.has_length ? info.length : info.content.length;
    if (options.offset > end || (options.has_length && options.length > end - options.offset))
        return failed(Error("cannot get", options.remote.text(), ERANGE,
                            "see: kxfer ls " + options.remote.peer.text(),
                            fmt::format("the range ends behind its {}", human_bytes(end))));
    range.length = options.has_length ? options.length : end - options.offset;
    range.whole = options.offset == 0 && info.content.generation != 0 && range.length == info.content.length;
    return range;
}

// SHA-256 of the first `length` bytes, read back from the file.
std::optional<Digest> digest_of_file(int fd, uint64_t length) {
    std::array<std::byte, 65536> piece = {};
    Sha256 sha256;
    for (uint64_t done = 0; done < length;) {
        const ssize_t n = pread(fd, piece.data(), std::min<uint64_t>(piece.size(), length - done),
                                static_cast<off_t>(done));
        if (n <= 0) return std::nullopt;
        sha256.update(std::span(piece).first(static_cast<size_t>(n)));
        done += static_cast<uint64_t>(n);
    }
    return sha256.digest();
}

struct Get {
    const GetOptions& options;
    const Range& range;
    Sink& sink;
    Target& target;
    Pipeline& pipeline;
    Progress& progress;
    Sha256 sha256 = {}; // of the bytes stored; the writer owns it until it has ended
    uint64_t asked = 0;
    uint64_t stored = 0;

    // Runs on the writer's thread.
    Expected<size_t> write_piece(std::span<const std::byte> piece, const std::stop_token& stop) {
        TRY(write_full(sink.fd.get(), piece, sink.is_file() ? sink.part : sink.name, stop));
        sha256.update(piece);
        return piece.size();
    }

    tl::expected<void, Failure> ask_ahead() {
        while (asked < range.length && !pipeline.full()) {
            const uint64_t piece = std::min<uint64_t>(range.length - asked, pipeline.claim().size());
            const auto submitted = pipeline.read(target, options.offset + asked, piece);
            if (!submitted) return tl::make_unexpected(transfer_failure(submitted.error()));
            asked += piece;
        }
        return {};
    }

    // Hands the next arrived piece to the writer; false: none has arrived.
    tl::expected<bool, Failure> store_next(FileThread& writer) {
        const auto bytes = pipeline.retire();
        if (!bytes) return tl::make_unexpected(transfer_failure(bytes.error()));
        if (!*bytes) return false;
        writer.give(**bytes);
        return true;
    }

    // Frees the slot of the next stored piece; false: none is stored.
    tl::expected<bool, Failure> release_next(FileThread& writer) {
        const auto done = writer.take();
        if (!done) return false;
        if (!done->bytes) return tl::make_unexpected(explain_write(done->bytes.error()));
        stored += *done->bytes;
        pipeline.release();
        progress.update(stored);
        return true;
    }

    Failure transfer_failure(const Error& error) const {
        return target_failure(error, options.remote, options.common);
    }

    static Failure explain_write(Error error) {
        if (error.number == ENOSPC || error.number == EDQUOT)
            error.hint = "make room and get it again; see: df .";
        if (error.number == EPIPE) error.why = "its reader is gone";
        return {std::move(error)};
    }

    // Keeps the part stored so far: cut to whole pieces, on disk, and read back.
    Failure stopped(Failure failure) const {
        if (interrupted()) failure = interrupt_failure("stopped reading", options.remote.text());
        if (failure.status == exit_failed) failure.status = exit_stopped;
        if (!sink.is_file() || (stored == 0 && unlink(sink.part.c_str()) == 0)) {
            failure.details.add("stored", Bytes{stored});
            return failure;
        }
        const bool cut =
            ftruncate(sink.fd.get(), static_cast<off_t>(stored)) == 0 && fsync(sink.fd.get()) == 0;
        const bool right = cut && digest_of_file(sink.fd.get(), stored) == sha256.digest();
        failure.details.add("part", sink.part).add("verified", Bytes{right ? stored : 0});
        if (!failure.error.hint.empty()) failure.error.hint += '\n';
        failure.error.hint += right
                                  ? fmt::format("kept {} with {} ({}) that were read back and are right",
                                                sink.part, human_bytes(stored), stored)
                                  : fmt::format("kept {}, whose contents could not be read back", sink.part);
        return failure;
    }

    tl::expected<void, Failure> transfer(FileThread& writer) {
        while (stored < range.length) {
            TRY(ask_ahead());
            TRY_SET(const auto came, store_next(writer));
            TRY_SET(const auto released, release_next(writer));
            if (interrupted()) return tl::make_unexpected(Failure(Error()));
            if (came || released) continue;
            const auto waited = pipeline.wait(options.common.timeout(), writer.fd());
            if (!waited) return tl::make_unexpected(transfer_failure(waited.error()));
        }
        return {};
    }

    // After a stop, pieces that the writer has still finished count as stored too.
    tl::expected<void, Failure> read_all() {
        auto writer = FileThread::start([this](std::span<std::byte> piece, const std::stop_token& stop) {
            return write_piece(piece, stop);
        });
        if (!writer) return tl::make_unexpected(stopped(writer.error()));
        auto done = transfer(**writer);
        (*writer)->stop();
        if (done) return done;
        for (auto late = (*writer)->take(); late && late->bytes; late = (*writer)->take())
            stored += *late->bytes;
        return tl::make_unexpected(stopped(std::move(done.error())));
    }
};

// Checks the bytes, and that the export has not changed meanwhile.
tl::expected<std::string, Failure> verify(const GetOptions& options, const Range& range, Target& target,
                                          const Digest& sha256) {
    const auto now = target.info(options.common.timeout());
    if (!now) return tl::make_unexpected(target_failure(now.error(), options.remote, options.common));
    if (now->content.generation != range.content.generation)
        return failed(Error("the export changed while it was read:", options.remote.text(), EAGAIN,
                            "get it again",
                            fmt::format("its content was number {} and is number {} now",
                                        range.content.generation, now->content.generation)));
    if (!range.whole) return "no: a part has no published SHA-256";
    if (digest_of(range.content) != sha256)
        return failed(
            Error("wrong bytes from", options.remote.text(), EBADMSG,
                  "is a put to it under way, or did one stop part-way? Get it again, or put it again",
                  fmt::format("SHA-256 published {}, received {}", hex(range.content.sha256), hex(sha256))));
    return "with the published SHA-256";
}

// An existing FILE keeps its owner and mode; a new one gets the mode that umask leaves.
void take_over_mode(const Sink& sink) {
    struct stat status = {};
    if (stat(sink.path.c_str(), &status) < 0) {
        const mode_t mask = umask(0);
        umask(mask);
        fchmod(sink.fd.get(), 0666 & ~mask);
        return;
    }
    // Without permission to chown the file keeps this uid: then drop the set-id bits.
    const bool given = fchown(sink.fd.get(), status.st_uid, status.st_gid) == 0;
    fchmod(sink.fd.get(), status.st_mode & (given ? 07777 : 0777));
}

// Without --force, never overwrites a file that was created in the meantime.
int rename_part(const Sink& sink, bool force) {
    if (force) return rename(sink.part.c_str(), sink.path.c_str());
    const int ret = renameat2(AT_FDCWD, sink.part.c_str(), AT_FDCWD, sink.path.c_str(), RENAME_NOREPLACE);
    if (ret == 0 || errno != EINVAL) return ret;
    // The file system lacks RENAME_NOREPLACE: a hard link does not overwrite a file either.
    if (link(sink.part.c_str(), sink.path.c_str()) < 0) return -1;
    return unlink(sink.part.c_str());
}

// Renames the part to FILE, durably.
tl::expected<void, Failure> keep(const Sink& sink, bool force) {
    if (!sink.is_file()) return {};
    take_over_mode(sink);
    if (fsync(sink.fd.get()) < 0) return failed(Error("cannot write", sink.part, errno));
    if (rename_part(sink, force) < 0) {
        Error error = errno == EEXIST ? will_not_overwrite(sink.path, "it was made while this was read")
                                      : Error("cannot rename " + sink.part + " to", sink.path, errno);
        error.hint += fmt::format("{}kept {}, which is right", error.hint.empty() ? "" : "\n", sink.part);
        return failed(std::move(error), exit_failed, Record().add("part", sink.part));
    }
    sync_directory(sink.path);
    return {};
}

Result finish(const GetOptions& options, const Range& range, Get& get, uint64_t took_ns, Context& context) {
    Transferred result;
    result.file = get.sink.name;
    result.remote = options.remote;
    result.offset = options.offset;
    result.length = get.stored;
    result.sha256 = get.sha256.digest();
    result.generation = range.content.generation;
    result.took_ns = took_ns;
    const auto verified = verify(options, range, get.target, result.sha256);
    if (!verified) {
        Failure failure = verified.error();
        if (get.sink.is_file()) {
            failure.error.hint += fmt::format("\nkept {} as it was received", get.sink.part);
            failure.details.add("part", get.sink.part);
        }
        return tl::make_unexpected(std::move(failure));
    }
    result.verified = *verified;
    TRY(keep(get.sink, options.force));
    context.out.record(record_of(result));
    return exit_ok;
}

Result run_get(const GetOptions& options, Context& context) {
    catch_interrupts();
    TRY(check_terminal(options));
    if (options.file == "-") context.out.keep_stdout_free();
    TRY_SET(auto connection, connect(options.remote.peer, options.common));
    TRY_SET(auto target, open_target(connection, options.remote, KXFER_RIGHT_READ, options.common));
    const auto info = target.info(options.common.timeout());
    if (!info) return tl::make_unexpected(target_failure(info.error(), options.remote, options.common));
    TRY_SET(const auto range, choose_range(options, *info));
    TRY_SET(auto pipeline, Pipeline::make(connection.session, KXFER_REGION_F_WRITE));
    TRY_SET(auto sink, open_sink(options));

    Progress progress(context.out, options.remote.name, range.length);
    Get get{options, range, sink, target, pipeline, progress};
    const uint64_t began = kxfer_clock_ns();
    const auto read = get.read_all();
    progress.finish();
    if (!read) return tl::make_unexpected(read.error());
    return finish(options, range, get, kxfer_clock_ns() - began, context);
}

} // namespace

void setup_get(CLI::App& app, Program& program) {
    const auto options = std::make_shared<GetOptions>();
    CLI::App& command = add_command(app, "get", "read an export of a peer into a file",
                                    "kxfer get 10.77.0.1/inbox results.tar");
    add_remote_option(command, "remote", options->remote, "PEER/NAME of the export")->required();
    command.add_option("file", options->file, "where to; a folder gets NAME in it, - is standard output")
        ->type_name("FILE|-")
        ->required();
    add_size_option(command, "--offset", options->offset, "where in the export to begin (default 0)");
    CLI::Option* length = add_size_option(command, "--length", options->length,
                                          "how much to read (default: what is published)");
    command.add_flag("--force", options->force, "overwrite FILE if it exists; write to a terminal");
    add_common_options(command, options->common);
    command.callback([&program, options, length] {
        options->has_length = length->count() != 0;
        program.run = [options](Context& context) { return run_get(*options, context); };
    });
}

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// kxfer put FILE|- REMOTE: writes a file into an export of a peer.
//
//   1. The file's length is compared with the export's before the first byte.
//   2. A thread reads the file into slots ahead of the WRITE jobs that carry
//      them, several in flight, and hashes what it read.
//   3. When all of it is placed, a NOTIFY announces to the exporter how many bytes
//      of its export are content now.
//   4. The exporting process hashes its own memory and publishes that. put
//      waits for that hash and compares: if they are equal, the other side has the
//      same bytes.
//
// When the link breaks, the put goes on over a new one, if the export is the same there. A put that
// stops part-way announces nothing: the exporter still publishes the old content, although part of
// its memory is overwritten. The next put of that file there goes on with it (--resume), or starts
// it anew.

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/size.hpp"
#include "cli/folder/folder_copy.hpp"
#include "cli/line/connect.hpp"
#include "cli/line/line.hpp"
#include "cli/line/pipeline.hpp"
#include "cli/node/file.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/content.hpp"
#include "cli/transfer/file_thread.hpp"
#include "cli/transfer/put_state.hpp"

namespace kxfer::cli {

namespace {

struct PutOptions {
    std::string file;
    RemotePath place;
    Remote remote; // of the place
    uint64_t offset = 0;
    uint64_t length = 0;
    bool has_length = false;
    bool no_verify = false;
    bool resume = false;
    uint64_t limit = 0;
    bool recursive = false;
    std::string manifest;
    CommonOptions common;

    FolderCopy in_folder() const { return {place, file, recursive, false, resume, manifest, limit, common}; }
};

// The slowest hashing to wait for, in addition to --timeout.
constexpr uint64_t hashed_bytes_per_second = 8 << 20;

constexpr uint64_t save_bytes = 64 << 20;

struct Input {
    std::string name;
    Descriptor fd;
    struct stat before = {};
    bool regular = false;
    std::optional<uint64_t> length; // bytes to send, if known

    // Only of what can be read again from its beginning.
    std::optional<PutState> state;

    // Files such as those of /proc report a size of 0 but have bytes: only reading shows how many.
    bool size_known() const { return regular && before.st_size != 0; }
};

tl::expected<Input, Failure> open_source(const PutOptions& options) {
    Input source;
    source.name = file_name(options.file, "standard input");
    source.fd = options.file == "-" ? Descriptor(STDIN_FILENO, false)
                                    : Descriptor(open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (source.fd.get() < 0 || fstat(source.fd.get(), &source.before) < 0)
        return failed(Error("cannot open", source.name, errno));
    if (S_ISDIR(source.before.st_mode))
        return failed(Error("cannot send", source.name, EISDIR,
                            "pack it: tar -c DIRECTORY | kxfer put - REMOTE; or put it into a folder: "
                            "kxfer put -r DIRECTORY PEER/NAME/"));
    source.regular = S_ISREG(source.before.st_mode) && options.file != "-";
    if (options.has_length) source.length = options.length;
    if (!source.size_known()) return source;
    const auto size = static_cast<uint64_t>(source.before.st_size);
    if (options.has_length && size < options.length)
        return failed(Error("cannot send " + human_bytes(options.length) + " of", source.name, 0,
                            "leave --length out, or give a smaller one", "it has only " + exact_bytes(size)));
    if (!options.has_length) source.length = size;
    source.state.emplace(options.file, source.before, options.remote, options.offset, *source.length);
    return source;
}

Error too_large(const Input& source, const PutOptions& options, uint64_t length, uint64_t room) {
    const std::string where = options.offset == 0 ? "" : fmt::format(" after offset {}", options.offset);
    return Error(
        fmt::format("cannot put {} into", source.name), options.remote.text(), EFBIG,
        "serve a larger one on the peer (kxfer serve NAME=mem:SIZE --writable), or send a part: --length",
        fmt::format("there are {}{} to send and the export has room for {}{}",
                    source.length ? "" : "at least ", exact_bytes(length), exact_bytes(room), where));
}

// The whole of one put.
struct Put {
    const PutOptions& options;
    Input& source;
    Line& line;
    Pipeline& pipeline;
    Progress& progress;
    Sha256 sha256 = {};        // the reader owns it until it has ended
    ExportIdentity where = {}; // when the put began
    uint64_t asked = 0;
    uint64_t sent = 0;
    uint64_t placed = 0;
    bool ended = false; // the file has no more bytes

    uint64_t room() const {
        const uint64_t length = line.target().length();
        return length - std::min(length, options.offset);
    }

    // What is known of the export after a failure. Bytes that were sent may have been placed
    // without a confirmation.
    std::string what_is_left(int number) const {
        if (number == EKEYREVOKED) return "the export no longer exists";
        if (is_unknown_after(number))
            return fmt::format("whether the export still exists is not known; of it {}", overwritten());
        return fmt::format("of the export {}", overwritten());
    }

    static bool is_unknown_after(int number) {
        return number == ECONNRESET || number == EREMOTEIO || number == ETIMEDOUT || number == ENODEV;
    }

    // Notes what is placed. Returns whether --resume can go on there.
    bool remember() const {
        if (!source.state || placed == 0) return false;
        source.state->save(where, placed);
        return source.state->is_saved();
    }

    std::string overwritten() const {
        if (sent == 0) return "nothing was overwritten";
        const std::string from =
            options.offset == 0 ? "the first" : fmt::format("from byte {} on", options.offset);
        return fmt::format("{} {} may be overwritten ({} are for certain), and `kxfer ls` tells what it held "
                           "before: put it again",
                           from, human_bytes(sent), human_bytes(placed));
    }

    Failure stopped(Error error) const {
        if (interrupted()) error = interrupt_failure("stopped sending", source.name).error;
        if (error.on.empty()) error.on = options.remote.text();
        if (!error.hint.empty()) error.hint += '\n';
        error.hint += what_is_left(error.number);
        // Other failures are of a file or an export that has changed.
        if ((interrupted() || is_unknown_after(error.number)) && remember())
            error.hint += "; --resume goes on where it stopped";
        Record details;
        details.add("placed", Bytes{placed}).add("sent", Bytes{sent});
        const int status = interrupted() ? interrupt_status() : exit_stopped;
        return {std::move(error), status, std::move(details)};
    }

    // Runs on the reader's thread.
    Expected<size_t> read_piece(std::span<std::byte> piece, const std::stop_token& stop) {
        const auto got = read_full(source.fd.get(), piece, source.name, stop);
        if (got) sha256.update(piece.first(*got));
        return got;
    }

    // Gives free slots to the reader, but never for more bytes than will be sent.
    void ask_ahead(FileThread& reader) {
        while (!ended && !pipeline.full() && (!source.length || asked < *source.length)) {
            std::span<std::byte> slot = pipeline.claim();
            if (source.length) slot = slot.first(std::min<uint64_t>(slot.size(), *source.length - asked));
            asked += slot.size();
            reader.give(slot);
        }
    }

    // Sends the next slot that the reader has filled; false: there is none.
    tl::expected<bool, Failure> send_next(FileThread& reader) {
        const auto done = reader.take();
        if (!done) return false;
        if (!done->bytes) return tl::make_unexpected(stopped(done->bytes.error()));
        const size_t got = *done->bytes;
        ended = got < done->piece.size() || (source.length && sent + got == *source.length);
        if (got < done->piece.size() && source.length)
            return tl::make_unexpected(stopped(ended_early(sent + got)));
        if (got == 0) return true;
        if (sent + got > room())
            return tl::make_unexpected(stopped(too_large(source, options, sent + got, room())));
        const uint64_t to = options.offset + sent;
        sent += got;
        auto submitted = pipeline.write(line.next_target(), to, got);
        if (!submitted) return tl::make_unexpected(transfer_stopped(submitted.error()));
        return true;
    }

    // The file ended before its size, or before --length if the size is unknown.
    Error ended_early(uint64_t end) const {
        const std::string why = fmt::format("it ended after {}", exact_bytes(end));
        if (!source.size_known())
            return Error("cannot send " + human_bytes(*source.length) + " of", source.name, 0,
                         "leave --length out, or give a smaller one", why);
        return Error(source.name, "became shorter while it was read", 0,
                     "put it again when nothing changes it", why);
    }

    // Frees the oldest slot once its bytes are placed at the peer; false: they are not yet.
    tl::expected<bool, Failure> retire_next() {
        const auto moved = pipeline.retire();
        if (!moved) return tl::make_unexpected(transfer_stopped(moved.error()));
        if (!*moved) return false;
        line.moved();
        pipeline.release();
        const uint64_t before = placed;
        placed += (*moved)->size();
        if (before / save_bytes != placed / save_bytes) remember();
        progress.update(placed);
        return true;
    }

    Failure transfer_stopped(const Error& error) const {
        return stopped(target_failure(error, options.remote, options.common).error);
    }

    tl::expected<void, Failure> transfer(FileThread& reader) {
        while (!ended || placed < sent) {
            ask_ahead(reader);
            TRY_SET(const auto more, send_next(reader));
            TRY_SET(const auto retired, retire_next());
            if (interrupted()) return tl::make_unexpected(stopped(Error()));
            if (more || retired) continue;
            const auto waited = pipeline.wait(options.common.timeout(), reader.fd());
            if (!waited) return tl::make_unexpected(transfer_stopped(waited.error()));
        }
        return {};
    }

    // Jobs go on where they were, over a new link.
    tl::expected<void, Failure> restore(Failure broke) {
        progress.finish();
        TRY(line.restore(std::move(broke), pipeline));
        TRY(check_same());
        // A job that is refused counts as failed: retire() says so.
        (void)pipeline.submit_again(line.target());
        return {};
    }

    // After a break the export may be another one, with the same name.
    tl::expected<void, Failure> check_same() const {
        if (ExportIdentity::of(line.target()) == where) return {};
        return tl::make_unexpected(
            stopped(Error("the export changed while it was written:", options.remote.text(), EAGAIN,
                          "put it again", "it is another one since the link broke, or has other content")));
    }

    tl::expected<void, Failure> send_all() {
        auto reader = FileThread::start([this](std::span<std::byte> piece, const std::stop_token& stop) {
            return read_piece(piece, stop);
        });
        if (!reader) return tl::make_unexpected(reader.error());
        ended = source.length && sent == *source.length;
        for (auto done = transfer(**reader); !done; done = transfer(**reader)) {
            if (interrupted()) return done;
            TRY(restore(std::move(done.error())));
        }
        pipeline.clear();
        return check_unchanged();
    }

    // A file that was changed while it was read may have been read half old, half new.
    tl::expected<void, Failure> check_unchanged() const {
        struct stat after = {};
        if (!source.regular || fstat(source.fd.get(), &after) < 0) return {};
        const char* what = nullptr;
        if (after.st_nlink == 0)
            what = "was removed or replaced while it was read";
        else if (after.st_size > source.before.st_size && !options.has_length)
            what = "grew while it was read";
        else if (after.st_size < source.before.st_size)
            what = "became shorter while it was read";
        else if (after.st_mtim.tv_sec != source.before.st_mtim.tv_sec ||
                 after.st_mtim.tv_nsec != source.before.st_mtim.tv_nsec)
            what = after.st_size == source.before.st_size ? "was changed while it was read" : nullptr;
        if (!what) return {};
        return tl::make_unexpected(
            stopped(Error(source.name, what, 0, "put it again when nothing changes it")));
    }
};

// Adds the bytes to the hash that a put has placed before, and leaves the file behind them. Returns
// their number.
tl::expected<uint64_t, Failure> skip_placed(const PutOptions& options, Input& source, const Target& target,
                                            Sha256& sha256, Output& out) {
    if (!source.state)
        return wrong_usage("--resume needs a file that can be read again", "put it without --resume");
    const auto placed = source.state->placed_at(ExportIdentity::of(target));
    if (!placed || *placed == 0) {
        out.note(fmt::format("beginning anew: {}", placed ? "nothing of it was placed" : placed.error()));
        return 0;
    }
    std::vector<std::byte> piece(1 << 20);
    for (uint64_t done = 0; done < *placed;) {
        const std::span<std::byte> part = std::span(piece).first(std::min(piece.size(), *placed - done));
        TRY_SET(const auto got, read_full(source.fd.get(), part, source.name));
        if (got < part.size())
            return failed(Error(source.name, "became shorter while it was read", 0,
                                "put it again when nothing changes it"));
        sha256.update(part);
        done += got;
    }
    out.note(fmt::format("going on after the first {}, which {} has", human_bytes(*placed),
                         options.remote.text()));
    return *placed;
}

// Length of the export's content after this put. Writing at an offset adds to
// the content or replaces a part of it; it never cuts off the rest.
uint64_t content_end(const PutOptions& options, const kxfer_content& before, uint64_t sent) {
    const uint64_t end = options.offset + sent;
    return options.offset == 0 ? end : std::max<uint64_t>(end, before.length);
}

// Announces the content. EAGAIN: the exporter has too many unread events; tries until the timeout.
tl::expected<void, Failure> announce(Connection& connection, const PutOptions& options, const Target& target,
                                     uint64_t end) {
    const Deadline deadline = options.common.timeout();
    for (;;) {
        const auto done = connection.session.run(Job::notify(target, end, 0), deadline);
        if (done) return {};
        if (done.error().number != EAGAIN || deadline.passed() || interrupted()) {
            Error error = done.error();
            error.what = "the data is placed but cannot be announced to";
            return tl::make_unexpected(target_failure(std::move(error), options.remote, options.common));
        }
        wait_events(-1, 0, std::chrono::milliseconds(20));
    }
}

// How long the exporter may take, and of what that is the sum.
std::string patience_text(std::chrono::milliseconds timeout, std::chrono::seconds hashing) {
    const double seconds = std::chrono::duration<double>(timeout).count();
    if (hashing.count() == 0) return fmt::format("{:g} s", seconds);
    return fmt::format("{:g} s (--timeout {:g}, and {} to hash what it got)",
                       seconds + static_cast<double>(hashing.count()), seconds, hashing.count());
}

// Waits for the exporter's new content record. Uses short waits, so that a signal is
// handled soon.
tl::expected<kxfer_content, Failure> wait_for_content(const PutOptions& options, Target& target,
                                                      uint64_t generation, uint64_t bytes) {
    const std::chrono::seconds hashing(bytes / hashed_bytes_per_second);
    const Deadline deadline = options.common.timeout() + hashing;
    for (;;) {
        const auto info = target.info(std::chrono::milliseconds(500), generation + 1);
        if (info && info->content.generation > generation) return info->content;
        if (interrupted())
            return tl::make_unexpected(interrupt_failure("did not wait for", options.remote.text()));
        // EINTR: for example the process was stopped and continued.
        const bool waiting = info || info.error().number == ETIMEDOUT || info.error().number == EINTR;
        if (waiting && !deadline.passed()) continue;
        Error error = info ? Error("", "", ETIMEDOUT) : info.error();
        error.what = "the data is placed but not confirmed by";
        Failure failure = target_failure(std::move(error), options.remote, options.common);
        if (failure.error.number == ETIMEDOUT) {
            failure.error.why = "its owner published no new content record within " +
                                patience_text(options.common.timeout(), hashing);
            failure.error.hint =
                "see what its owner says (the output of kxfer serve there); an export of a program that "
                "publishes nothing takes --no-verify";
        }
        return tl::make_unexpected(std::move(failure));
    }
}

// Reads back the part that was written, because the record's hash does not cover a part.
tl::expected<Digest, Failure> read_back(const PutOptions& options, Target& target, Pipeline& pipeline,
                                        uint64_t length) {
    Sha256 sha256;
    const auto failure = [&](const Error& error) {
        return tl::make_unexpected(target_failure(error, options.remote, options.common));
    };
    for (uint64_t asked = 0, got = 0; got < length;) {
        while (asked < length && !pipeline.full()) {
            const uint64_t piece = std::min<uint64_t>(length - asked, pipeline.claim().size());
            const auto submitted = pipeline.read(target, options.offset + asked, piece);
            if (!submitted) return failure(submitted.error());
            asked += piece;
        }
        const auto bytes = pipeline.retire();
        if (!bytes) return failure(bytes.error());
        if (!*bytes) {
            const auto waited = pipeline.wait(options.common.timeout());
            if (!waited) return failure(waited.error());
            continue;
        }
        sha256.update(**bytes);
        got += (*bytes)->size();
        pipeline.release();
    }
    return sha256.digest();
}

Error mismatch(const PutOptions& options, const std::string& why) {
    return Error("the copy differs at", options.remote.text(), EBADMSG,
                 "did another put write to the same export at the same time? Put it again", why);
}

tl::expected<void, Failure> verify(const PutOptions& options, Target& target, Pipeline& pipeline,
                                   const kxfer_content& content, uint64_t end, Transferred& result) {
    if (content.length != end)
        return failed(mismatch(options, fmt::format("the receiver has {} of content, {} were expected",
                                                    exact_bytes(content.length), exact_bytes(end))));
    result.generation = content.generation;
    Digest theirs = digest_of(content);
    result.verified = "by the receiver";
    if (options.offset != 0 || end != result.length) {
        result.verified = "read back";
        if (!(target.rights() & KXFER_RIGHT_READ)) {
            result.verified = "length only: this user may not read it back";
            return {};
        }
        TRY_SET(theirs, read_back(options, target, pipeline, result.length));
    }
    if (theirs != result.sha256)
        return failed(
            mismatch(options, fmt::format("SHA-256 there {}, here {}", hex(theirs), hex(result.sha256))));
    return {};
}

// Announces the bytes sent and waits for the exporter to confirm them.
tl::expected<void, Failure> confirm(const PutOptions& options, Line& line, Pipeline& pipeline,
                                    Transferred& result) {
    Target& target = line.target();
    const auto before = target.info(options.common.timeout());
    if (!before) return tl::make_unexpected(target_failure(before.error(), options.remote, options.common));
    const uint64_t end = content_end(options, before->content, result.length);
    TRY(announce(line.connection(), options, target, end));
    result.verified = "no";
    result.generation = before->content.generation;
    if (options.no_verify) return {};
    TRY_SET(const auto content, wait_for_content(options, target, before->content.generation, end));
    return verify(options, target, pipeline, content, end, result);
}

// To announce the same bytes twice does no harm: they are hashed and published twice.
Result finish(const PutOptions& options, Line& line, Pipeline& pipeline, Transferred& result,
              Context& context) {
    const uint64_t began = kxfer_clock_ns();
    for (auto done = confirm(options, line, pipeline, result); !done;
         done = confirm(options, line, pipeline, result)) {
        if (done.error().error.number != ECONNRESET || interrupted())
            return tl::make_unexpected(std::move(done.error()));
        TRY(line.restore(std::move(done.error()), pipeline));
        pipeline.clear();
    }
    result.breaks = line.breaks();
    Record record = record_of(result);
    record.add("verify_time", Nanoseconds{static_cast<double>(kxfer_clock_ns() - began)});
    context.out.transferred(record, hex(result.sha256), result.remote.text());
    return exit_ok;
}

// A target to write to, with the right to read too if the peer grants that.
tl::expected<Target, Failure> open_writable(Connection& connection, const Remote& remote,
                                            const CommonOptions& common) {
    auto target = open_target(connection, remote, 0, common);
    if (target && (target->rights() & KXFER_RIGHT_WRITE)) return target;
    if (!target && target.error().error.number != EACCES) return target;
    return open_target(connection, remote, KXFER_RIGHT_WRITE, common);
}

Result run_put(const PutOptions& options, Context& context) {
    catch_interrupts();
    if (options.place.in_folder || options.recursive) {
        if (!options.common.via.empty())
            return wrong_usage("--via is for exports of memory, not for folders", "leave it out");
        if (options.offset != 0 || options.has_length || options.no_verify)
            return wrong_usage("--offset, --length and --no-verify are for exports of memory",
                               "leave them out");
        return put_into_folder(options.in_folder(), context);
    }
    if (!options.manifest.empty()) return wrong_usage("--manifest is for folders", "leave it out");
    TRY_SET(auto source, open_source(options));
    TRY_SET(auto line, Line::open(
                           options.remote, options.common,
                           [&options](Connection& connection, const CommonOptions& common) {
                               return open_writable(connection, options.remote, common);
                           },
                           context.out));
    TRY_SET(auto pipeline, Pipeline::make(line.session(), KXFER_REGION_F_WRITE, options.limit));
    const Target& target = line.target();

    Sha256 sha256;
    uint64_t kept = 0;
    if (options.resume) {
        TRY_SET(kept, skip_placed(options, source, target, sha256, context.out));
    }

    Progress progress(context.out, source.name, source.length, kept);
    Put put{options, source, line, pipeline, progress, sha256, ExportIdentity::of(target), kept, kept, kept};
    if (source.length.value_or(0) > put.room() || options.offset > target.length())
        return failed(too_large(source, options, source.length.value_or(0), put.room()));
    const uint64_t began = kxfer_clock_ns();
    const auto sent = put.send_all();
    progress.finish();
    if (!sent) return tl::make_unexpected(sent.error());

    Transferred result;
    result.file = source.name;
    result.remote = options.remote;
    result.offset = options.offset;
    result.length = put.placed;
    result.sha256 = put.sha256.digest();
    result.resumed = kept;
    result.took_ns = kxfer_clock_ns() - began;
    const auto done = finish(options, line, pipeline, result, context);
    if (source.state) source.state->forget();
    return done;
}

} // namespace

void setup_put(CLI::App& app, Program& program) {
    const auto options = std::make_shared<PutOptions>();
    CLI::App& command = add_command(app, "put", "write a file into an export of a peer",
                                    "kxfer put results.tar 10.77.0.1/inbox");
    command.add_option("file", options->file, "what to send; - is standard input")
        ->type_name("FILE|-")
        ->required();
    add_remote_path_option(command, "remote", options->place,
                           "PEER/NAME of the export, or PEER/NAME/PATH in a folder that is served there")
        ->required();
    add_size_option(command, "--offset", options->offset, "where in the export to begin (default 0)");
    CLI::Option* length = add_size_option(command, "--length", options->length, "send only so much of FILE");
    add_size_option(command, "--limit", options->limit, "bytes a second at most (default: no limit)");
    command.add_flag("--resume", options->resume,
                     "go on where a put of this file to the same export has stopped");
    command.add_flag("-r,--recursive", options->recursive,
                     "all that is in the folder FILE, into the folder at PATH");
    command
        .add_option("--manifest", options->manifest,
                    "of a folder: the SHA-256 of each file, for sha256sum -c")
        ->type_name("FILE");
    command.add_flag("--no-verify", options->no_verify, "do not wait for the receiver's SHA-256");
    add_via_option(command, options->common);
    add_common_options(command, options->common);
    command.callback([&program, options, length] {
        options->remote = options->place.remote;
        options->has_length = length->count() != 0;
        program.run = [options](Context& context) { return run_put(*options, context); };
    });
}

} // namespace kxfer::cli

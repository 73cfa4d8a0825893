// SPDX-License-Identifier: MIT
//
// kxfer get REMOTE FILE|-: reads an export of a peer into a file.
//
// READ jobs bring the data, several in flight; a thread writes it to FILE.kxfer-part and
// hashes it. At the end its SHA-256 is compared with the one that the exporter published,
// and the exporter is asked whether the export has changed in the meantime. Only then the
// part becomes FILE. When the link breaks, the get goes on over a new one, if the export is the
// same there. A get that stops keeps the part, cut to the bytes that were read back and found
// right; the next get of that FILE goes on with it (--resume), or starts it anew.

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/command/command.hpp"
#include "cli/command/size.hpp"
#include "cli/folder/folder_copy.hpp"
#include "cli/line/connect.hpp"
#include "cli/line/line.hpp"
#include "cli/line/pipeline.hpp"
#include "cli/node/interrupt.hpp"
#include "cli/output/progress.hpp"
#include "cli/transfer/commands.hpp"
#include "cli/transfer/content.hpp"
#include "cli/transfer/file_thread.hpp"
#include "cli/transfer/sink.hpp"

namespace kxfer::cli {

namespace {

struct GetOptions {
    RemotePath place;
    Remote remote; // of the place
    std::string file;
    uint64_t offset = 0;
    uint64_t length = 0;
    bool has_length = false;
    bool force = false;
    bool resume = false;
    uint64_t limit = 0;
    bool recursive = false;
    std::string manifest;
    CommonOptions common;

    FolderCopy in_folder() const { return {place, file, recursive, force, resume, manifest, limit, common}; }
};

// The bytes may contain commands to a terminal.
tl::expected<void, Failure> check_terminal(const GetOptions& options) {
    if (options.file != "-" || options.force || isatty(STDOUT_FILENO) == 0) return {};
    return failed(Error("will not write", "to a terminal", 0,
                        "name a file, or pipe it: kxfer get REMOTE - | COMMAND; --force writes it anyway",
                        "what an export holds may change how the terminal works"),
                  exit_usage);
}

// The range of the export to read, and its content record.
tl::expected<Origin, Failure> choose_range(const GetOptions& options, const kxfer_target_info& info) {
    Origin range{options.remote.text(), info.content, options.offset, 0};
    if (info.content.generation == 0 && !options.has_length)
        return failed(Error("cannot get", options.remote.text(), ENODATA,
                            "put something there first, or read the bare memory: --length SIZE",
                            "its owner has not said what it holds"));
    const uint64_t end = options.has_length ? info.length : info.content.length;
    if (options.offset > end || (options.has_length && options.length > end - options.offset))
        return failed(Error("cannot get", options.remote.text(), ERANGE,
                            "see: kxfer ls " + options.remote.peer.text(),
                            fmt::format("the range ends after its {}", human_bytes(end))));
    range.length = options.has_length ? options.length : end - options.offset;
    return range;
}

// Whether the record's hash is that of the range.
bool is_whole(const Origin& range) {
    return range.offset == 0 && range.is_known() && range.length == range.content.length;
}

Failure export_changed(const GetOptions& options, const std::string& why) {
    return Error("the export changed while it was read:", options.remote.text(), EAGAIN, "get it again", why);
}

// After a break the export may be another one, with the same name.
tl::expected<void, Failure> check_same(const GetOptions& options, Origin& range, Target& target) {
    const auto now = target.info(options.common.timeout());
    if (!now) return tl::make_unexpected(target_failure(now.error(), options.remote, options.common));
    const bool same =
        digest_of(now->content) == digest_of(range.content) && now->content.length == range.content.length;
    if (!range.is_known() && !same)
        return tl::make_unexpected(export_changed(options, "it has content now, and had none"));
    if (range.is_known() && !same)
        return tl::make_unexpected(export_changed(options, "it has other content since the link broke"));
    range.content = now->content;
    return {};
}

constexpr uint64_t checkpoint_bytes = 64 << 20;

struct Get {
    const GetOptions& options;
    Origin range;
    const Origin began_as; // the writer's copy
    Sink& sink;
    Line& line;
    Pipeline& pipeline;
    Progress& progress;
    Sha256 sha256;       // of the bytes stored; the writer owns it until it has ended
    const uint64_t kept; // by an earlier get
    uint64_t written;    // the writer's count
    uint64_t asked;
    uint64_t stored;

    // Runs on the writer's thread.
    Expected<size_t> write_piece(std::span<const std::byte> piece, const std::stop_token& stop) {
        TRY(write_full(sink.fd(), piece, sink.is_file() ? sink.part() : sink.name(), stop));
        sha256.update(piece);
        const uint64_t before = written;
        written += piece.size();
        if (before / checkpoint_bytes != written / checkpoint_bytes)
            TRY(sink.checkpoint(began_as, written, sha256.digest()));
        return piece.size();
    }

    tl::expected<void, Failure> ask_ahead() {
        while (asked < range.length && !pipeline.full()) {
            const uint64_t piece = std::min<uint64_t>(range.length - asked, pipeline.claim().size());
            const uint64_t from = options.offset + asked;
            asked += piece;
            const auto submitted = pipeline.read(line.next_target(), from, piece);
            if (!submitted) return tl::make_unexpected(transfer_failure(submitted.error()));
        }
        return {};
    }

    // Hands the next arrived piece to the writer; false: none has arrived.
    tl::expected<bool, Failure> store_next(FileThread& writer) {
        const auto bytes = pipeline.retire();
        if (!bytes) return tl::make_unexpected(transfer_failure(bytes.error()));
        if (!*bytes) return false;
        line.moved();
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
        if (!sink.is_file() || (stored == 0 && sink.discard())) {
            failure.details.add("stored", Bytes{stored});
            return failure;
        }
        const bool right = sink.settle(range, stored, sha256.digest());
        failure.details.add("part", sink.part()).add("verified", Bytes{right ? stored : 0});
        if (!failure.error.hint.empty()) failure.error.hint += '\n';
        failure.error.hint +=
            right
                ? fmt::format("kept {} with {} ({}) that were read back and are right{}", sink.part(),
                              human_bytes(stored), stored, range.is_known() ? "; --resume goes on there" : "")
                : fmt::format("kept {}, whose contents could not be read back", sink.part());
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

    // Jobs go on where they were, over a new link.
    tl::expected<void, Failure> restore(Failure broke) {
        progress.finish();
        TRY(line.restore(std::move(broke), pipeline));
        TRY(check_same(options, range, line.target()));
        // A job that is refused counts as failed: retire() says so.
        (void)pipeline.submit_again(line.target());
        return {};
    }

    tl::expected<void, Failure> transfer_over_breaks(FileThread& writer) {
        for (;;) {
            auto done = transfer(writer);
            if (done) return done;
            if (interrupted()) return done;
            TRY(restore(std::move(done.error())));
        }
    }

    // After a stop, pieces that the writer has still finished count as stored too.
    tl::expected<void, Failure> read_all() {
        auto writer = FileThread::start([this](std::span<std::byte> piece, const std::stop_token& stop) {
            return write_piece(piece, stop);
        });
        if (!writer) return tl::make_unexpected(stopped(writer.error()));
        auto done = transfer_over_breaks(**writer);
        (*writer)->stop();
        if (done) return done;
        for (auto late = (*writer)->take(); late && late->bytes; late = (*writer)->take())
            stored += *late->bytes;
        return tl::make_unexpected(stopped(std::move(done.error())));
    }
};

// Checks the bytes, and that the export has not changed meanwhile.
tl::expected<std::string, Failure> verify(Get& get, const Digest& sha256) {
    const GetOptions& options = get.options;
    const Origin& range = get.range;
    auto now = get.line.target().info(options.common.timeout());
    if (!now) {
        TRY(get.restore(target_failure(now.error(), options.remote, options.common)));
        now = get.line.target().info(options.common.timeout());
    }
    if (!now) return tl::make_unexpected(target_failure(now.error(), options.remote, options.common));
    if (now->content.generation != range.content.generation)
        return tl::make_unexpected(
            export_changed(options, fmt::format("its content was number {} and is number {} now",
                                                range.content.generation, now->content.generation)));
    if (!is_whole(range)) return "no: a part has no published SHA-256";
    if (digest_of(range.content) != sha256)
        return failed(
            Error("wrong bytes from", options.remote.text(), EBADMSG,
                  "is a put to it under way, or did one stop part-way? Get it again, or put it again",
                  fmt::format("SHA-256 published {}, received {}", hex(range.content.sha256), hex(sha256))));
    return "with the published SHA-256";
}

Result finish(Get& get, uint64_t took_ns, Context& context) {
    Transferred result;
    result.file = get.sink.name();
    result.remote = get.options.remote;
    result.offset = get.options.offset;
    result.length = get.stored;
    result.sha256 = get.sha256.digest();
    result.took_ns = took_ns;
    const auto verified = verify(get, result.sha256);
    if (!verified) {
        Failure failure = verified.error();
        if (get.sink.is_file()) {
            get.sink.forget();
            failure.error.hint += fmt::format("\nkept {} as it was received", get.sink.part());
            failure.details.add("part", get.sink.part());
        }
        return tl::make_unexpected(std::move(failure));
    }
    result.verified = *verified;
    result.generation = get.range.content.generation;
    result.breaks = get.line.breaks();
    result.resumed = get.kept;
    TRY(get.sink.keep(get.options.force));
    context.out.transferred(record_of(result), hex(result.sha256), result.file);
    return exit_ok;
}

tl::expected<Line, Failure> open_line(const GetOptions& options, Output& out) {
    return Line::open(
        options.remote, options.common,
        [&options](Connection& connection, const CommonOptions& common) {
            return open_target(connection, options.remote, KXFER_RIGHT_READ, common);
        },
        out);
}

Result run_get(const GetOptions& options, Context& context) {
    catch_interrupts();
    if (options.file.empty())
        return wrong_usage("kxfer get -r needs a folder to write into",
                           "such as: kxfer get -r REMOTE/PATH here");
    TRY(check_terminal(options));
    if (options.place.in_folder || options.recursive) {
        if (!options.common.via.empty())
            return wrong_usage("--via is for exports of memory, not for folders", "leave it out");
        if (options.offset != 0 || options.has_length)
            return wrong_usage("--offset and --length are for exports of memory", "leave them out");
        return get_from_folder(options.in_folder(), context);
    }
    if (!options.manifest.empty()) return wrong_usage("--manifest is for folders", "leave it out");
    if (options.file == "-") context.out.keep_stdout_free();
    TRY_SET(auto line, open_line(options, context.out));
    const auto info = line.target().info(options.common.timeout());
    if (!info) return tl::make_unexpected(target_failure(info.error(), options.remote, options.common));
    TRY_SET(const auto range, choose_range(options, *info));
    TRY_SET(auto pipeline, Pipeline::make(line.session(), KXFER_REGION_F_WRITE, options.limit));
    TRY_SET(auto sink, Sink::open(options.file, options.remote.name, options.force));
    if (options.resume && !sink.is_file())
        return wrong_usage("--resume needs a file to go on with", "name one, without --resume");
    Sha256 sha256;
    uint64_t kept = 0;
    if (options.resume) {
        TRY_SET(kept, sink.resume(range, sha256, context.out));
    } else {
        TRY(sink.restart(range));
    }

    Progress progress(context.out, options.remote.name, range.length, kept);
    Get get{options, range, range, sink, line, pipeline, progress, sha256, kept, kept, kept, kept};
    const uint64_t began = kxfer_clock_ns();
    const auto read = get.read_all();
    progress.finish();
    if (!read) return tl::make_unexpected(read.error());
    return finish(get, kxfer_clock_ns() - began, context);
}

} // namespace

void setup_get(CLI::App& app, Program& program) {
    const auto options = std::make_shared<GetOptions>();
    CLI::App& command = add_command(app, "get", "read an export of a peer into a file",
                                    "kxfer get 10.77.0.1/inbox results.tar");
    add_remote_path_option(command, "remote", options->place,
                           "PEER/NAME of the export, or PEER/NAME/PATH in a folder that is served there")
        ->required();
    command
        .add_option("file", options->file,
                    "where to; a folder gets NAME in it, - is standard output (default: NAME in this folder)")
        ->type_name("FILE|-");
    add_size_option(command, "--offset", options->offset, "where in the export to begin (default 0)");
    CLI::Option* length = add_size_option(command, "--length", options->length,
                                          "how much to read (default: what is published)");
    command.add_flag("-f,--force", options->force, "overwrite FILE if it exists; write to a terminal");
    add_size_option(command, "--limit", options->limit, "bytes a second at most (default: no limit)");
    command.add_flag("--resume", options->resume,
                     "go on with what a get of the same content has left in FILE.kxfer-part");
    command.add_flag("-r,--recursive", options->recursive,
                     "all that is in the folder at PATH, into the folder FILE");
    command
        .add_option("--manifest", options->manifest,
                    "of a folder: the SHA-256 of each file, for sha256sum -c")
        ->type_name("FILE");
    add_via_option(command, options->common);
    add_common_options(command, options->common);
    command.callback([&program, options, length] {
        options->remote = options->place.remote;
        options->has_length = length->count() != 0;
        // What is in a folder would mix with what is here, so that is to be asked for.
        if (options->file.empty() && !options->recursive) options->file = ".";
        program.run = [options](Context& context) { return run_get(*options, context); };
    });
}

} // namespace kxfer::cli

// SPDX-License-Identifier: GPL-2.0-only
/*
 * libfio-kxfer.so: an I/O engine for fio that READs and WRITEs exports of a peer.
 *
 *     fio --name=job --ioengine=external:/path/libfio-kxfer.so --hostname=10.77.0.1 \
 *         --filename=box --rw=randrw --bs=4k --iodepth=16
 *
 * This file alone is GPL-2.0-only: fio's headers are, and have code that becomes part of the object.
 * It is linked with libkxfer, which is MIT. An object fits one release of fio (FIO_IOOPS_VERSION),
 * and setup() notices a fio of another configuration.
 *
 * A file of fio is an export, an I/O a job, and a job of fio (a process, or a thread) a session with
 * a peer, a region and a target for each file. The parent opens a session of its own in setup(),
 * before the fork, to ask for the lengths of the exports, and closes it there: memory is pinned for
 * the process that calls. The region spans the buffers of all I/Os; fio allocates them between init()
 * and post_init().
 *
 * queue() collects jobs, commit() submits them, getevents() takes completions; a commit() of as many
 * as fio may have under way takes the first of them itself. Of iodepth I/Os each is
 * in one of three places: in @queued, in flight (@in_flight), or in @done, where commit() puts what it
 * has to take to make room, and what was refused. So each I/O that was queued ends by event(), once.
 * getevents() waits only while jobs are in flight, and these end: the module gives up a peer that is
 * silent. cleanup() may find any part missing, because fio calls it after a failed init() too.
 */
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kxfer/kxfer.h>

/* fio's own, of -DKXFER_FIO_SOURCE */
#include <fio.h>
#include <optgroup.h>

#define TIMEOUT_MS 10000

/* fio takes an option at offset 0 for one that has no place. */
struct engine_options {
    void* pad;
    char* hostname;
    char* device;
    char* key;
    unsigned int port;
    unsigned int signal_batch;
    unsigned int local_only;
    unsigned int wait;
    unsigned int ring;
    unsigned int loss_ms;
};

#define OPTION(NAME, TYPE, DEFAULT, HELP)                                                                    \
    .name = #NAME, .lname = #NAME, .type = TYPE, .off1 = offsetof(struct engine_options, NAME),              \
    .def = DEFAULT, .help = HELP, .category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_INVALID

static struct fio_option options[] = {
    {OPTION(hostname, FIO_OPT_STR_STORE, NULL, "Name or address of the peer")},
    {OPTION(port, FIO_OPT_INT, "7625", "Port of the peer's listener")},
    {OPTION(device, FIO_OPT_STR_STORE, NULL, "RDMA device that the link has to use")},
    {OPTION(key, FIO_OPT_STR_STORE, NULL, "Name of the key that the listener wants (kxfer key add)")},
    {OPTION(signal_batch, FIO_OPT_BOOL, "0", "I/Os of one submission may complete together")},
    {OPTION(local_only, FIO_OPT_BOOL, "0", "iWARP: a WRITE is done when TCP has it")},
    {OPTION(wait, FIO_OPT_STR, "auto", "How to wait for completions"),
     .posval = {{.ival = "auto", .oval = 0, .help = "Poll as long as that pays"},
                {.ival = "poll", .oval = KXFER_WAIT_F_POLL, .help = "Poll"},
                {.ival = "sleep", .oval = KXFER_WAIT_F_SLEEP, .help = "Sleep"}}},
    {OPTION(ring, FIO_OPT_BOOL, "0", "Completions in shared memory")},
    {OPTION(loss_ms, FIO_OPT_INT, "0", "I/Os outlive a broken link so long, in milliseconds")},
    {.name = NULL},
};

struct engine {
    struct kxfer_session* session;
    uint32_t peer;
    uint32_t region;
    bool ring;
    char* buffers; /* start of the region */
    unsigned int depth;
    unsigned int most_at_once; /* jobs of one submission */
    unsigned int nr_queued;
    unsigned int in_flight;
    unsigned int nr_done;
    unsigned int nr_given; /* of done: what the last getevents() has returned */
    struct kxfer_job* jobs;
    struct io_u** queued; /* the I/Os of jobs */
    struct kxfer_completion* done;
};

extern struct ioengine_ops ioengine;

/* Prints what failed, and what to try. Return: the positive errno. */
__attribute__((format(printf, 4, 5))) static int fail(struct thread_data* td, int error, const char* hint,
                                                      const char* format, ...) {
    char what[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    log_err("kxfer: cannot %s: %s (%s)\n", what, strerror(-error), strerrorname_np(-error));
    if (hint) log_err("  %s\n", hint);
    td_verror(td, -error, "kxfer");
    return -error;
}

static int open_session(struct thread_data* td, struct engine* e) {
    int ret = kxfer_session_open(NULL, &e->session);
    const char* hint = NULL;

    if (ret == 0) return 0;
    e->session = NULL;
    if (ret == -ENOENT) hint = "load the module: modprobe kxfer";
    if (ret == -EACCES) hint = "be root, or in the group that may open it";
    return fail(td, ret, hint, "open " KXFER_DEVICE_PATH);
}

static int resolve(struct thread_data* td, struct kxfer_addr* remote) {
    const struct engine_options* o = td->eo;
    struct addrinfo* found;
    int ret;

    if (!o->hostname)
        return fail(td, -EINVAL, "give the address of the peer's listener: hostname=", "connect");
    ret = getaddrinfo(o->hostname, NULL, &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &found);
    if (ret != 0) return fail(td, -EHOSTUNREACH, gai_strerror(ret), "find the host %s", o->hostname);
    ret = kxfer_addr_from_sockaddr(found->ai_addr, remote);
    freeaddrinfo(found);
    if (ret < 0) return fail(td, ret, NULL, "use the address of %s", o->hostname);
    remote->port = o->port;
    return 0;
}

/* Why a peer was not reached, or what to try. */
static const char* connect_hint(int error, uint32_t refusal) {
    if (refusal != KXFER_REFUSAL_NONE && !(refusal & KXFER_REFUSAL_TRANSPORT))
        return kxfer_refusal_text(refusal);
    switch (error) {
    case -ECONNREFUSED:
    case -ECONNRESET:
        return "does it listen? there: kxfer serve NAME=mem:SIZE --writable --listen ADDRESS";
    case -ENOKEY:
        return "key= names a key of both nodes: kxfer key add NAME";
    case -EADDRNOTAVAIL:
        return "device= is to be the one that the address leads to: kxfer device list";
    default:
        return "kxfer ping HOST, kxfer doctor";
    }
}

static int connect_peer(struct thread_data* td, struct engine* e) {
    const struct engine_options* o = td->eo;
    struct kxfer_peer_open open = {.timeout_ms = TIMEOUT_MS, .loss_ms = o->loss_ms};
    int ret = resolve(td, &open.remote);

    if (ret != 0) return ret;
    if (o->device && strlen(o->device) >= sizeof(open.device))
        return fail(td, -EINVAL, NULL, "use the device %s", o->device);
    if (o->key && strlen(o->key) >= sizeof(open.key))
        return fail(td, -EINVAL, NULL, "use the key %s", o->key);
    if (o->device) strcpy((char*)open.device, o->device);
    if (o->key) strcpy((char*)open.key, o->key);
    ret = kxfer_peer_connect(e->session, &open);
    if (ret < 0)
        return fail(td, ret, connect_hint(ret, open.refusal), "connect with %s, port %u", o->hostname,
                    o->port);
    e->peer = open.peer;
    return 0;
}

static uint32_t rights_for(struct thread_data* td) {
    uint32_t rights = 0;

    if (td_read(td) || td->o.verify) rights |= KXFER_RIGHT_READ;
    if (td_write(td)) rights |= KXFER_RIGHT_WRITE;
    return rights;
}

static const char* target_hint(int error, uint32_t rights) {
    if (error == -ENOENT || error == -EINVAL)
        return "filename= is to be the name of an export; this lists them: kxfer ls HOST";
    if (error != -EACCES) return NULL;
    if (rights & KXFER_RIGHT_WRITE)
        return "the export gives no WRITE to this user; there: kxfer serve NAME=mem:SIZE --writable";
    return "the export gives no READ to this user; this shows its rights: kxfer ls HOST";
}

/* Return: 0, or a positive errno that was printed. */
static int open_target(struct thread_data* td, struct engine* e, const struct fio_file* f,
                       struct kxfer_target_open* open) {
    const struct engine_options* o = td->eo;
    int ret = -EINVAL;

    *open = (struct kxfer_target_open){.peer = e->peer, .timeout_ms = TIMEOUT_MS, .rights = rights_for(td)};
    if (strlen(f->file_name) < sizeof(open->name)) {
        strcpy((char*)open->name, f->file_name);
        ret = kxfer_target_create(e->session, open);
    }
    if (ret < 0)
        return fail(td, ret, target_hint(ret, open->rights), "open the export %s of %s, port %u",
                    f->file_name, o->hostname, o->port);
    return 0;
}

static int ask_lengths(struct thread_data* td, struct engine* e) {
    struct kxfer_target_open open;
    struct fio_file* f;
    unsigned int i;
    int ret;

    for_each_file(td, f, i) {
        f->filetype = FIO_TYPE_CHAR;
        ret = open_target(td, e, f, &open);
        if (ret != 0) return ret;
        f->real_file_size = open.length;
        fio_file_set_size_known(f);
    }
    return 0;
}

/* Runs in the parent of the jobs. */
static int engine_setup(struct thread_data* td) {
    struct engine e = {0};
    int ret;

    if (td->io_ops != &ioengine) {
        log_err("kxfer: this engine was compiled for another fio than this; see make fio\n");
        return EINVAL;
    }
    if (td_trim(td)) return fail(td, -EOPNOTSUPP, "use reads and writes", "trim an export");
    ret = open_session(td, &e);
    if (ret != 0) return ret;
    ret = connect_peer(td, &e);
    if (ret == 0) ret = ask_lengths(td, &e);
    kxfer_session_close(e.session);
    return ret;
}

/* The ring has a power of two of entries; fewer than the depth would refuse jobs. */
static int open_ring(struct thread_data* td, struct engine* e) {
    uint32_t entries = 1;
    int ret;

    while (entries < e->depth) entries *= 2;
    ret = kxfer_ring_open(e->session, entries, -1);
    if (ret < 0) return fail(td, ret, "use ring=0", "open a completion ring of %u entries", entries);
    e->ring = true;
    return 0;
}

static int prepare_session(struct thread_data* td, struct engine* e) {
    const struct engine_options* o = td->eo;
    struct kxfer_query query = {0};
    int ret = open_session(td, e);

    if (ret != 0) return ret;
    ret = kxfer_session_query(e->session, &query);
    if (ret < 0) return fail(td, ret, NULL, "query the module");
    if (e->depth > query.max_jobs)
        return fail(td, -EINVAL, "use a smaller iodepth, and more jobs: numjobs=",
                    "have %u jobs in flight, a session has at most %u", e->depth, query.max_jobs);
    e->most_at_once = query.max_jobs_per_submit;
    ret = kxfer_session_set_wait(e->session, o->wait);
    if (ret < 0) return fail(td, ret, NULL, "choose how to wait");
    ret = o->ring ? open_ring(td, e) : 0;
    return ret != 0 ? ret : connect_peer(td, e);
}

static int engine_init(struct thread_data* td) {
    struct engine* e = calloc(1, sizeof(*e));

    if (!e) return fail(td, -ENOMEM, NULL, "allocate the engine");
    td->io_ops_data = e;
    e->depth = td->o.iodepth;
    e->jobs = calloc(e->depth, sizeof(*e->jobs));
    e->queued = calloc(e->depth, sizeof(struct io_u*));
    e->done = calloc(e->depth, sizeof(*e->done));
    if (!e->jobs || !e->queued || !e->done)
        return fail(td, -ENOMEM, "use a smaller iodepth", "allocate %u jobs", e->depth);
    return prepare_session(td, e);
}

/* With direct=1 or iomem_align fio moves the buffers within what it has allocated. */
static int engine_post_init(struct thread_data* td) {
    struct engine* e = td->io_ops_data;
    char *from = NULL, *to = NULL;
    struct io_u* io_u;
    unsigned int i;
    int ret;

    io_u_qiter(&td->io_u_all, io_u, i) {
        char* buffer = io_u->buf;

        if (!from || buffer < from) from = buffer;
        if (buffer + td_max_bs(td) > to) to = buffer + td_max_bs(td);
    }
    ret = kxfer_region_create(e->session, from, to - from, KXFER_REGION_F_WRITE, &e->region);
    if (ret < 0)
        return fail(td, ret, ret == -ENOMEM ? "raise ulimit -l, or lower iodepth, bs or numjobs" : NULL,
                    "pin %zu bytes of buffers", (size_t)(to - from));
    e->buffers = from;
    return 0;
}

static int engine_open_file(struct thread_data* td, struct fio_file* f) {
    struct kxfer_target_open open;
    int ret = open_target(td, td->io_ops_data, f, &open);

    if (ret == 0) FILE_SET_ENG_DATA(f, (void*)(uintptr_t)open.target);
    return ret;
}

static uint32_t target_of(const struct fio_file* f) { return (uint32_t)(uintptr_t)FILE_ENG_DATA(f); }

static int engine_close_file(struct thread_data* td, struct fio_file* f) {
    struct engine* e = td->io_ops_data;

    return -kxfer_target_destroy(e->session, target_of(f));
}

static struct kxfer_job make_job(struct thread_data* td, const struct engine* e, struct io_u* io_u) {
    const struct engine_options* o = td->eo;
    uint64_t at = (char*)io_u->xfer_buf - e->buffers;
    uint32_t target = target_of(io_u->file);
    struct kxfer_job job;

    if (io_u->ddir == DDIR_READ) {
        job = kxfer_job_make_read(e->region, at, target, io_u->offset, io_u->xfer_buflen, (uintptr_t)io_u);
    } else {
        job = kxfer_job_make_write(e->region, at, target, io_u->offset, io_u->xfer_buflen, (uintptr_t)io_u);
        if (o->local_only) job.flags |= KXFER_JOB_F_LOCAL_ONLY;
        /* fio leaves the buffer of a WRITE as it is until the WRITE has completed. */
        if (o->loss_ms) job.flags |= KXFER_JOB_F_IDEMPOTENT;
    }
    if (o->signal_batch) job.flags |= KXFER_JOB_F_BATCH;
    return job;
}

/* A WRITE that has completed is at the peer, so a sync has nothing to do, as with other engines. */
static enum fio_q_status engine_queue(struct thread_data* td, struct io_u* io_u) {
    struct engine* e = td->io_ops_data;

    fio_ro_check(td, io_u);
    if (ddir_sync(io_u->ddir)) return e->nr_queued > 0 ? FIO_Q_BUSY : FIO_Q_COMPLETED;
    if (io_u->ddir != DDIR_READ && io_u->ddir != DDIR_WRITE) {
        io_u->error = EOPNOTSUPP;
        return FIO_Q_COMPLETED;
    }
    if (e->nr_queued == e->depth) return FIO_Q_BUSY;
    e->jobs[e->nr_queued] = make_job(td, e, io_u);
    e->queued[e->nr_queued++] = io_u;
    return FIO_Q_QUEUED;
}

/* fio has handled what the last getevents() returned. */
static void drop_given(struct engine* e) {
    e->nr_done -= e->nr_given;
    memmove(e->done, e->done + e->nr_given, e->nr_done * sizeof(*e->done));
    e->nr_given = 0;
}

/* Takes completions, and waits for @want. Return: how many came, or a negative errno. */
static int take_once(struct engine* e, unsigned int want) {
    struct kxfer_completion* to = e->done + e->nr_done;
    unsigned int room = e->depth - e->nr_done, got;
    int ret;

    if (!e->ring) return kxfer_completion_reap(e->session, to, room, want, 0);
    got = kxfer_ring_take(e->session, to, room);
    if (got >= want) return (int)got;
    ret = kxfer_ring_wait(e->session, want - got, 0);
    if (ret < 0 && got == 0) return ret;
    return (int)(got + kxfer_ring_take(e->session, to + got, room - got));
}

/* Takes completions until @done has @min of them or nothing is in flight. Return: 0 or a negative errno. */
static int take(struct engine* e, unsigned int min) {
    unsigned int want;
    int ret;

    while (e->in_flight > 0 && (min == 0 || e->nr_done < min)) {
        want = min > 0 ? min - e->nr_done : 0;
        ret = take_once(e, want < e->in_flight ? want : e->in_flight);
        /* fio's timers; the wait goes on, because the jobs in flight end. */
        if (ret == -EINTR) continue;
        if (ret < 0) return ret;
        e->nr_done += ret;
        e->in_flight -= ret;
        if (min == 0) break;
    }
    return 0;
}

/*
 * Which completions the submission of @nr jobs, the last ones, waits for. With iodepth I/Os under way
 * fio can only wait next. To wait in the same call spares one, and it lets the caller poll the CQ,
 * where between two calls the kernel would handle the completion by a workqueue.
 */
static unsigned int wait_for(const struct thread_data* td, const struct engine* e, unsigned int nr) {
    unsigned int wanted = td->o.iodepth_batch_complete_min;

    if (e->nr_done > 0 || e->in_flight + nr < e->depth) return 0;
    if (wanted == 0) return 1;
    return wanted < e->depth ? wanted : e->depth;
}

/* Return: how many of the jobs from @first on were accepted; *error: why not all of them, or 0. */
static unsigned int submit(struct thread_data* td, struct engine* e, unsigned int first, int* error) {
    unsigned int left = e->nr_queued - first;
    struct kxfer_submit args = {.jobs = (uintptr_t)(e->jobs + first)};
    int ret;

    args.nr_jobs = left < e->most_at_once ? left : e->most_at_once;
    args.wait = args.nr_jobs == left ? wait_for(td, e, left) : 0;
    if (args.wait > 0 && !e->ring) {
        args.completions = (uintptr_t)(e->done + e->nr_done);
        args.nr_completions = e->depth - e->nr_done;
    }
    ret = kxfer_job_submit_wait(e->session, &args);
    *error = ret < 0 ? ret : -(int)args.error;
    if (ret < 0) return 0;
    e->in_flight += ret - args.reaped;
    e->nr_done += args.reaped;
    return ret;
}

/* The jobs from @first on were accepted by a call that began at @now. */
static void note_submitted(struct thread_data* td, struct engine* e, unsigned int first, unsigned int nr,
                           const struct timespec* now) {
    unsigned int i;

    io_u_mark_submit(td, nr);
    if (!fio_fill_issue_time(td)) return;
    for (i = first; i < first + nr; i++) {
        e->queued[i]->issue_time = *now;
        io_u_queued(td, e->queued[i]);
    }
    if (td->o.read_iolog_file) td->last_issue = *now;
}

/* A job that the module did not accept ends as the I/O that failed. */
static void refuse(struct thread_data* td, struct engine* e, unsigned int i, int error) {
    e->done[e->nr_done++] =
        (struct kxfer_completion){.user_data = (uintptr_t)e->queued[i], .status = error, .op = e->jobs[i].op};
    if (fio_fill_issue_time(td)) fio_gettime(&e->queued[i]->issue_time, NULL);
}

/*
 * EAGAIN: the session has no room for more completions. It has when one was taken. The job is refused
 * where nothing would change: none is in flight, and the call has accepted none.
 */
static int engine_commit(struct thread_data* td) {
    struct engine* e = td->io_ops_data;
    struct timespec now;
    unsigned int begun = 0, nr;
    int error, ret;

    drop_given(e);
    while (begun < e->nr_queued) {
        fio_gettime(&now, NULL);
        nr = submit(td, e, begun, &error);
        if (nr > 0) note_submitted(td, e, begun, nr, &now);
        begun += nr;
        if (error == 0 || error == -EINTR) continue;
        if (error != -EAGAIN || (nr == 0 && e->in_flight == 0))
            refuse(td, e, begun++, error);
        else if ((ret = take(e, e->nr_done + 1)) < 0)
            return ret;
    }
    e->nr_queued = 0;
    return 0;
}

/* With @min 0 it does not wait; fio gives no other timeouts. */
static int engine_getevents(struct thread_data* td, unsigned int min, unsigned int max,
                            const struct timespec* timeout) {
    struct engine* e = td->io_ops_data;
    int ret;

    (void)timeout;
    drop_given(e);
    ret = take(e, min);
    if (ret < 0) return ret;
    e->nr_given = e->nr_done < max ? e->nr_done : max;
    return (int)e->nr_given;
}

static struct io_u* engine_event(struct thread_data* td, int event) {
    struct engine* e = td->io_ops_data;
    const struct kxfer_completion* done = &e->done[event];
    struct io_u* io_u = (struct io_u*)(uintptr_t)done->user_data;

    io_u->error = -done->status;
    if (done->status < 0) io_u->resid = io_u->xfer_buflen;
    return io_u;
}

static char* details_of(const struct io_u* io_u) {
    switch (io_u->error) {
    case ECONNRESET:
        return strdup("kxfer: the link broke; kxfer link list, dmesg. loss_ms= lets I/Os go on over another");
    case EKEYREVOKED:
        return strdup("kxfer: the peer has withdrawn the export, or its server has ended");
    case EREMOTEIO:
        return strdup("kxfer: the peer's device refused the access");
    case ENODEV:
        return strdup("kxfer: the RDMA device is gone; kxfer device list");
    case EAGAIN:
    case ENOMEM:
    case EDQUOT:
        return strdup("kxfer: no room for the job; lower iodepth or numjobs");
    default:
        return strdup("kxfer: kxfer explain says what an errno means");
    }
}

/* fio prints it after an error, and frees it. */
#if FIO_IOOPS_VERSION >= 36
static char* engine_errdetails(struct thread_data* td, struct io_u* io_u) {
    (void)td;
    return details_of(io_u);
}
#else
static char* engine_errdetails(struct io_u* io_u) { return details_of(io_u); }
#endif

static void engine_cleanup(struct thread_data* td) {
    struct engine* e = td->io_ops_data;

    if (!e) return;
    kxfer_session_close(e->session);
    free(e->jobs);
    free(e->queued);
    free(e->done);
    free(e);
    td->io_ops_data = NULL;
}

/* fio looks this symbol up. */
struct ioengine_ops ioengine = {
    .name = "kxfer",
    .version = FIO_IOOPS_VERSION,
    .flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_NO_OFFLOAD | FIO_ASYNCIO_SETS_ISSUE_TIME,
    .setup = engine_setup,
    .init = engine_init,
    .post_init = engine_post_init,
    .queue = engine_queue,
    .commit = engine_commit,
    .getevents = engine_getevents,
    .event = engine_event,
    .errdetails = engine_errdetails,
    .cleanup = engine_cleanup,
    .open_file = engine_open_file,
    .close_file = engine_close_file,
    .options = options,
    .option_struct_size = sizeof(struct engine_options),
};

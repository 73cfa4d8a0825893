// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: sequences of calls that are swept by failures; see flows.h.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "big/flows.h"
#include "harness/baseline.h"
#include "harness/fault.h"
#include "peers/raw_peer.h"
#include "rigs/ring.h"
#include "rigs/uring.h"

#define KIB		1024u
#define LENGTH		(256 * KIB)
#define LONG_MESSAGE	5000	/* more than an eager message has */
#define BIG_LENGTH	(32 * 1024 * KIB)
#define OTHER_PORT	(KXFER_PORT + 3)

/* ---- has the world settled? ---- */

static bool same_counters(const struct kx_live *a, const struct kx_live *b)
{
	uint32_t i;

	for (i = 0; i < a->nr && a->nr == b->nr; i++)
		if (a->counters[i].value != b->counters[i].value)
			return false;
	return a->nr == b->nr;
}

/* Whether every link is up. The other end of a link that goes down follows a little later. */
static bool links_live(struct world *world)
{
	struct kxfer_info_link links[16];
	uint64_t cursor = 0;
	int n, i;

	n = kx_info(world->observer, KXFER_INFO_LINKS, links, sizeof(links[0]), 16, &cursor);
	for (i = 0; i < n; i++)
		if (links[i].state != KXFER_LINK_LIVE)
			return false;
	return n >= 0;
}

static bool settled(void *context)
{
	struct world *world = context;
	struct kx_live now;

	return !kx_live_take(world->observer, &now) &&
	       (same_counters(&now, &world->down) ||
		(same_counters(&now, &world->up) && links_live(world)));
}

static bool is_down(struct world *world)
{
	struct kx_live now;

	return !kx_live_take(world->observer, &now) && same_counters(&now, &world->down);
}

/** world_end_link() - break the link, if there is one, by a SEND that fails. Return: 0 or -errno */
int world_end_link(struct world *world)
{
	struct kxfer_peer_export export;
	uint64_t cursor = 0;
	uint32_t peer;
	int fd, ret;

	if (!kx_counter(world->observer, "live_links"))
		return 0;
	fd = kx_open();
	if (fd < 0)
		return fd;
	ret = kx_peer_open(fd, kx_addr(kx_address(), KXFER_PORT), &peer);
	if (!ret) {
		fault_arm("LANE_POST_SEND", 1);
		kx_peer_list(fd, peer, &export, 1, &cursor);
		fault_arm("LANE_POST_SEND", 0);
	}
	close(fd);
	return ret;
}

static int without_link(void *context)
{
	struct world *world = context;
	int ret = world_end_link(world);

	if (ret)
		return ret;
	return kx_wait_until(is_down(world), SWEEP_SETTLE_MS) ? 0 : -EBUSY;
}

/* ---- flows ---- */

static int read_debugfs(const char *name)
{
	char path[64], text[256];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/kernel/debug/kxfer/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read(fd, text, sizeof(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int local_export(int fd, uint32_t region)
{
	struct kxfer_rule rule = { .match = KXFER_RULE_UID, .rights = KXFER_RIGHT_READ };
	uint32_t export_id;

	return kx_export_add_rules(fd, region, 0, LENGTH, KXFER_RIGHT_READ, "fault-local",
				   &rule, 1, &export_id) ?:
	       kx_export_del(fd, export_id);
}

static int local_mailbox(int fd)
{
	uint32_t mailbox;

	return kx_mailbox_add(fd, "fault-local", 4, 100, &mailbox) ?:
	       kx_export_del(fd, mailbox);
}

static bool has_keys(int fd)
{
	struct kxfer_query query = { .size = sizeof(query) };

	return !kx_query(fd, &query) && query.features & KXFER_FEATURE_KEY;
}

static int local_listener(int fd)
{
	uint64_t listener;

	return kx_listen_add(fd, kx_addr(kx_address(), OTHER_PORT), 0, &listener) ?:
	       kx_listen_del(fd, listener);
}

static int local_keys(int fd)
{
	static const char *const keys[] = { "fault-1", "fault-2", NULL };
	uint64_t listener;
	int ret;

	if (!has_keys(fd))
		return 0;
	ret = kx_key_add(keys[0], 1, 32) ?: kx_key_add(keys[1], 2, 32) ?:
	      kx_listen_add_keys(fd, kx_addr(kx_address(), OTHER_PORT), keys, &listener) ?:
	      kx_listen_del(fd, listener);
	kx_key_del(keys[0]);
	kx_key_del(keys[1]);
	return ret;
}

static int local_list(int fd)
{
	struct kxfer_info_session session;
	uint64_t cursor = 0;
	int ret = kx_info(fd, KXFER_INFO_SESSIONS, &session, sizeof(session), 1, &cursor);

	return ret < 0 ? ret : read_debugfs("counters") ?: read_debugfs("jobs");
}

static int local_ring(int fd)
{
	int event = eventfd(0, EFD_CLOEXEC), ret;
	struct kx_ring ring = {};
	struct kx_sq sq = {};

	if (event < 0)
		return -errno;
	ret = kx_ring_open(fd, 64, event, &ring) ?: kx_sq_open(fd, 64, &sq);
	close(event);
	kx_sq_unmap(&sq);
	kx_ring_unmap(&ring);
	return ret;
}

static int run_local(void *context)
{
	struct world *world = context;
	int fd = kx_open(), ret;
	uint32_t region;

	if (fd < 0)
		return fd;
	ret = kx_region_add(fd, world->here, LENGTH, KXFER_REGION_F_WRITE, &region);
	if (!ret)
		ret = local_export(fd, region) ?: local_mailbox(fd) ?: local_listener(fd) ?:
		      local_keys(fd) ?:
		      local_list(fd) ?: local_ring(fd) ?: kx_region_del(fd, region);
	close(fd);
	return ret;
}

static int run_connect(void *context)
{
	struct world *world = context;
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = KX_TIMEOUT_MS,
	};
	int ret;

	world->client = kx_open();
	if (world->client < 0)
		return world->client;
	ret = kx_call(world->client, KXFER_PEER_OPEN, &open);
	world->peer = open.peer;
	return ret ?: kx_peer_close(world->client, world->peer);
}

static void drain_events(int fd)
{
	struct kxfer_event events[16];

	while (kx_event_reap(fd, events, 16, 0) > 0)
		;
}

static void close_sessions(void *context)
{
	struct world *world = context;

	if (world->client >= 0)
		close(world->client);
	if (world->owner >= 0)
		close(world->owner);
	world->client = -1;
	world->owner = -1;
	drain_events(world->server);
}

static int with_link(void *context)
{
	struct world *world = context;

	world->client = kx_open();
	if (world->client < 0)
		return world->client;
	return kx_peer_open(world->client, kx_addr(kx_address(), KXFER_PORT), &world->peer);
}

static int move_both_ways(int fd, uint32_t region, uint32_t target)
{
	return kx_transfer(fd, KXFER_OP_WRITE, region, 100, target, 5000, LENGTH / 2) ?:
	       kx_transfer(fd, KXFER_OP_READ, region, 300, target, 70, LENGTH / 2) ?:
	       kx_notify(fd, target, 7);
}

static int change_words(int fd, uint32_t region, uint32_t target)
{
	if (!kx_has_atomics())
		return 0;
	return kx_atomic(fd, KXFER_OP_FETCH_ADD, region, 0, target, 0, 1, 0) ?:
	       kx_atomic(fd, KXFER_OP_COMPARE_SWAP, region, 8, target, 8, 1, 2);
}

/* A long message that waits for its RECV. Wait for both jobs, if both were accepted. */
static int pass_long(int fd, uint32_t mailbox, uint32_t target, uint32_t region)
{
	struct kxfer_job jobs[2] = {
		{ .op = KXFER_OP_SEND, .region = region, .target = target,
		  .length = LONG_MESSAGE },
		{ .op = KXFER_OP_RECV, .region = region, .target = mailbox,
		  .region_offset = 2 * LONG_MESSAGE, .length = 2 * LONG_MESSAGE },
	};
	struct kxfer_completion done[2] = {};
	int nr = kx_submit(fd, jobs, 2), ret, more = 0;

	if (nr <= 0)
		return nr ?: -EPROTO;
	/* A SEND or RECV without its counterpart would wait for ever. */
	if (nr < 2)
		kx_cancel(fd, 0, KXFER_CANCEL_F_ALL);
	ret = kx_reap(fd, done, nr, 1, KX_TIMEOUT_MS);
	if (ret > 0 && done[0].status)
		kx_cancel(fd, 0, KXFER_CANCEL_F_ALL);
	if (ret > 0 && ret < nr)
		more = kx_reap(fd, done + ret, nr - ret, nr - ret, KX_TIMEOUT_MS);
	if (ret < 0 || more < 0)
		return ret < 0 ? ret : more;
	return nr < 2 ? -ENOMEM : done[0].status ?: done[1].status;
}

/* A message from the session to its own mailbox, over the peer. */
static int pass_message(int fd, uint32_t peer, uint32_t region)
{
	uint32_t mailbox, target;

	return kx_mailbox_add(fd, "fault-mailbox", 4, LONG_MESSAGE, &mailbox) ?:
	       kx_target_open(fd, peer, "fault-mailbox", 0, &target) ?:
	       kx_send(fd, region, 0, 100, target) ?:
	       kx_recv(fd, mailbox, region, 0, 4096) ?:
	       pass_long(fd, mailbox, target, region) ?:
	       kx_target_close(fd, target) ?:
	       kx_export_del(fd, mailbox);
}

static int run_transfer(void *context)
{
	struct world *world = context;
	struct kxfer_peer_export export;
	struct kxfer_content content;
	uint32_t region, target;
	uint64_t cursor = 0;
	int ret;

	ret = kx_region_add(world->client, world->here, LENGTH, KXFER_REGION_F_WRITE, &region);
	if (ret)
		return ret;
	ret = kx_peer_list(world->client, world->peer, &export, 1, &cursor);
	if (ret < 0)
		return ret;
	return kx_target_open(world->client, world->peer, "fault", 0, &target) ?:
	       move_both_ways(world->client, region, target) ?:
	       change_words(world->client, region, target) ?:
	       pass_message(world->client, world->peer, region) ?:
	       kx_target_info(world->client, target, 0, KX_TIMEOUT_MS, &content) ?:
	       kx_target_close(world->client, target);
}

static int measure_with(int fd, uint32_t op, uint32_t memory, uint32_t flags, uint32_t region,
			uint32_t target)
{
	static uint32_t histogram[KXFER_BENCH_NR_BUCKETS];
	bool swaps = op == KXFER_OP_COMPARE_SWAP;
	uint64_t word = 0;
	uint32_t sample;
	struct kxfer_bench cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.op = op,
		.region = region,
		.target = target,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.length = swaps ? sizeof(word) : 64,
		.count = 2,
		.time_limit_ms = KX_TIMEOUT_MS,
		.samples = (uintptr_t)&sample,
		.nr_samples = 1,
		.memory = memory,
		.nr_buckets = KXFER_BENCH_NR_BUCKETS,
		.histogram = (uintptr_t)histogram,
		.words = swaps ? (uintptr_t)&word : 0,
	};

	if (memory == KXFER_BENCH_MEMORY_RW) {
		cmd.samples = 0;
		cmd.nr_samples = 0;
		cmd.interval_ps = 1000000;
		cmd.posted_histogram = (uintptr_t)histogram;
	}
	return kx_call(fd, KXFER_BENCH, &cmd);
}

static int measure(int fd, uint32_t op, uint32_t memory, uint32_t region, uint32_t target)
{
	return measure_with(fd, op, memory, 0, region, target);
}

static int measure_swaps(int fd, uint32_t region, uint32_t target)
{
	int ret = measure(fd, KXFER_OP_COMPARE_SWAP, KXFER_BENCH_MEMORY_DEFAULT, region, target);

	return ret == -EOPNOTSUPP && !kx_has_atomics() ? 0 : ret;
}

static int run_measure(void *context)
{
	struct world *world = context;
	uint32_t region, target;
	int ret;

	ret = kx_region_add(world->client, world->here, LENGTH, KXFER_REGION_F_WRITE, &region);
	if (ret)
		return ret;
	/*
	 * rdma_rw goes first: on a device with real DMA it gets EBUSY for a region that is
	 * already mapped.
	 */
	return kx_target_open(world->client, world->peer, "fault", 0, &target) ?:
	       measure(world->client, KXFER_OP_READ, KXFER_BENCH_MEMORY_RW, region, target) ?:
	       measure(world->client, KXFER_OP_WRITE, KXFER_BENCH_MEMORY_DEFAULT, region,
		       target) ?:
	       measure(world->client, KXFER_OP_WRITE, KXFER_BENCH_MEMORY_MR_EACH, region,
		       target) ?:
	       measure_with(world->client, KXFER_OP_WRITE, KXFER_BENCH_MEMORY_MR_EACH,
			    KXFER_BENCH_F_MR_POOL, region, target) ?:
	       measure(world->client, KXFER_OP_READ, KXFER_BENCH_MEMORY_MR, region, target) ?:
	       measure_swaps(world->client, region, target) ?:
	       kx_target_close(world->client, target);
}

/* siw of 6.1 counts pages that are already pinned, without an exception for root. */
static int unlimit_memory(void)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };

	return setrlimit(RLIMIT_MEMLOCK, &no_limit) ? -errno : 0;
}

static int with_responder(void *context)
{
	struct world *world = context;
	int ret = unlimit_memory() ?: without_link(world);

	return ret ?: responder_open(&world->responder, NULL);
}

static int open_dedicated(struct world *world, uint32_t transport, uint32_t flags,
			  struct kxfer_id *id)
{
	struct kxfer_dedicated_open open = {
		.size = sizeof(open),
		.flags = flags,
		.remote = kx_addr(kx_address(), world->responder.port),
		.timeout_ms = KX_TIMEOUT_MS,
		.length = 4 * 4 * KIB,
		.op = KXFER_OP_SEND,
		.receives = 8,
		.slots = 4,
		.bytes = 64,
		.transport = transport,
	};
	int ret;

	if (flags & KXFER_DEDICATED_F_CQ_POOL)
		open.context = KXFER_CONTEXT_SOFTIRQ;
	/* The previous connection may have been broken; wait until the responder is free again. */
	kx_wait_until(!world->responder.id, KX_TIMEOUT_MS);
	ret = kx_call(world->client, KXFER_DEDICATED_OPEN, &open);
	*id = (struct kxfer_id) { .size = sizeof(*id), .id = open.dedicated };
	return ret;
}

static int send_messages(int fd, uint32_t region, uint32_t dedicated, bool answered)
{
	struct kxfer_bench cmd = {
		.size = sizeof(cmd),
		.op = KXFER_OP_SEND,
		.region = region,
		.dedicated = dedicated,
		.depth = 2,
		.list = 1,
		.signal = 1,
		.length = 64,
		.stride = 4 * KIB,
		.count = 20,
		.time_limit_ms = KX_TIMEOUT_MS,
		.memory = answered ? KXFER_BENCH_MEMORY_MR_EACH : KXFER_BENCH_MEMORY_DEFAULT,
		.invalidate = answered ? KXFER_BENCH_INVALIDATE_REMOTE : 0,
	};
	struct kxfer_dedicated_status status = {
		.size = sizeof(status),
		.dedicated = dedicated,
	};

	return kx_call(fd, KXFER_BENCH, &cmd) ?: kx_call(fd, KXFER_DEDICATED_STATUS, &status);
}

static int on_dedicated(struct world *world, uint32_t region, uint32_t transport,
			uint32_t flags)
{
	struct kxfer_id id;

	return open_dedicated(world, transport, flags, &id) ?:
	       send_messages(world->client, region, id.id, flags & KXFER_DEDICATED_F_ANSWERED) ?:
	       kx_call(world->client, KXFER_DEDICATED_CLOSE, &id);
}

static int open_client(struct world *world, uint32_t *region)
{
	world->client = kx_open();
	if (world->client < 0)
		return world->client;
	return kx_region_add(world->client, world->here, LENGTH, 0, region);
}

static int run_dedicate(void *context)
{
	struct world *world = context;
	uint32_t region;

	return open_client(world, &region) ?:
	       on_dedicated(world, region, KXFER_TRANSPORT_RC, 0) ?:
	       on_dedicated(world, region, KXFER_TRANSPORT_RC, KXFER_DEDICATED_F_ANSWERED) ?:
	       on_dedicated(world, region, KXFER_TRANSPORT_RC, KXFER_DEDICATED_F_CQ_POOL);
}

static int run_datagrams(void *context)
{
	struct world *world = context;
	uint32_t region;

	return open_client(world, &region) ?:
	       on_dedicated(world, region, KXFER_TRANSPORT_UD, 0);
}

static void end_responder(void *context)
{
	struct world *world = context;

	close_sessions(world);
	responder_close(&world->responder);
}

#define NR_URING	4	/* SQEs; more than two, so that they are a batch */

/* Submits a batch and takes all its CQEs. Return: 0, or the last error. */
static int run_batch(struct io_uring *ring, int fd, uint32_t target)
{
	struct kxfer_job job = { .op = KXFER_OP_NOTIFY, .target = target };
	struct io_uring_cqe cqe;
	int i, nr, err, ret = 0;

	for (i = 0; i < NR_URING; i++)
		uring_job(ring, fd, &job);
	nr = io_uring_submit(ring);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++) {
		err = uring_wait(ring, &cqe, NULL, KX_TIMEOUT_MS);
		if (err)
			return err;
		ret = cqe.res ?: ret;
	}
	return ret;
}

static int run_uring(void *context)
{
	struct world *world = context;
	struct io_uring ring;
	uint32_t target;
	int ret;

	ret = kx_target_open(world->client, world->peer, "fault", 0, &target);
	if (ret)
		return ret;
	ret = uring_open(&ring, 0);
	if (ret)
		return ret;
	ret = run_batch(&ring, world->client, target);
	io_uring_queue_exit(&ring);
	return ret;
}

/* An export that is withdrawn during the flow, and its holder. */
static int open_short_lived(struct world *world, uint32_t *target)
{
	uint32_t region;
	int ret;

	world->owner = kx_open();
	if (world->owner < 0)
		return world->owner;
	ret = kx_region_add(world->owner, world->there, LENGTH, KXFER_REGION_F_WRITE, &region);
	if (!ret)
		ret = kx_export_add(world->owner, region, 0, LENGTH, KXFER_RIGHT_ALL,
				    "fault-short", &world->owner_export);
	return ret ?: kx_target_open(world->client, world->peer, "fault-short", 0, target);
}

#define NR_JOBS	8

/* A refused job ends the call; the jobs before it are accepted. */
static int submit_jobs(struct world *world, uint32_t target)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.nr_jobs = NR_JOBS,
		.stride = sizeof(struct kxfer_job),
	};
	struct kxfer_job jobs[NR_JOBS];
	uint32_t region;
	int ret, i;

	ret = kx_region_add(world->client, world->here, LENGTH, KXFER_REGION_F_WRITE, &region);
	if (ret)
		return ret;
	for (i = 0; i < NR_JOBS; i++)
		jobs[i] = (struct kxfer_job) {
			.op = i % 2 ? KXFER_OP_READ : KXFER_OP_WRITE,
			.region = region,
			.target = target,
			.length = LENGTH,
			.user_data = i,
		};
	cmd.jobs = (uintptr_t)jobs;
	ret = kx_call(world->client, KXFER_SUBMIT, &cmd);
	world->nr_jobs = ret ? 0 : cmd.accepted;
	world->job_error = ret ? ret : -(int)cmd.error;
	return ret;
}

/*
 * Every accepted job ends. Return: status of the first failed job, or 0. A call that can store
 * only some of the completions returns their number; the others stay queued.
 */
static int reap_jobs(struct world *world)
{
	struct kxfer_completion done[NR_JOBS];
	uint32_t nr = 0, i;
	int n;

	while (nr < world->nr_jobs) {
		n = kx_reap(world->client, done + nr, NR_JOBS - nr, world->nr_jobs - nr,
			    KX_TIMEOUT_MS);
		if (n <= 0)
			return n ?: -EPROTO;
		nr += n;
	}
	for (i = 0; i < nr; i++)
		if (done[i].status && done[i].status != -EKEYREVOKED)
			return done[i].status;
	return world->job_error;
}

static int run_withdraw(void *context)
{
	struct world *world = context;
	uint32_t target;

	return open_short_lived(world, &target) ?:
	       submit_jobs(world, target) ?:
	       kx_export_del(world->owner, world->owner_export) ?:
	       reap_jobs(world) ?:
	       kx_target_close(world->client, target);
}

static int run_close(void *context)
{
	struct world *world = context;
	uint32_t target;
	int ret;

	ret = open_short_lived(world, &target) ?: submit_jobs(world, target);
	close_sessions(world);
	return ret;
}

/* ---- a mailbox that ends under RECVs and messages ---- */

#define MAIL_ROOM	4096u	/* bytes of a RECV */

static int open_mailbox(struct world *world, uint32_t *region, uint32_t *target)
{
	int ret;

	world->owner = kx_open();
	if (world->owner < 0)
		return world->owner;
	ret = kx_region_add(world->owner, world->there, NR_JOBS * MAIL_ROOM,
			    KXFER_REGION_F_WRITE, region);
	if (!ret)
		ret = kx_mailbox_add(world->owner, "fault-mailbox", 2, 100,
				     &world->owner_export);
	return ret ?: kx_target_open(world->client, world->peer, "fault-mailbox", 0, target);
}

/* Submits the same job NR_JOBS times; each RECV has room of its own. Return: 0 or -errno. */
static int submit_many(int fd, struct kxfer_job job, uint32_t *nr_accepted)
{
	struct kxfer_job jobs[NR_JOBS];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = NR_JOBS,
		.stride = sizeof(struct kxfer_job),
	};
	int ret, i;

	for (i = 0; i < NR_JOBS; i++) {
		jobs[i] = job;
		if (job.op == KXFER_OP_RECV)
			jobs[i].region_offset = i * MAIL_ROOM;
	}
	ret = kx_call(fd, KXFER_SUBMIT, &cmd);
	*nr_accepted = ret ? 0 : cmd.accepted;
	return ret ?: -(int)cmd.error;
}

/* All jobs end, once. Return: an unexpected status, or 0. */
static int reap_many(int fd, uint32_t nr)
{
	struct kxfer_completion done[NR_JOBS];
	int n, ret = 0;

	while (nr) {
		n = kx_reap(fd, done, nr, nr, KX_TIMEOUT_MS);
		if (n <= 0)
			return n ?: -EPROTO;
		nr -= n;
		while (n--)
			if (done[n].status && done[n].status != -EKEYREVOKED &&
			    done[n].status != -EAGAIN)
				ret = done[n].status;
	}
	return ret;
}

/* Accepted jobs are waited for, whatever else fails. */
static int run_mailbox(void *context)
{
	struct kxfer_job recv = { .op = KXFER_OP_RECV, .length = MAIL_ROOM };
	struct kxfer_job send = { .op = KXFER_OP_SEND };
	uint32_t nr_recvs = 0, nr_sends = 0;
	struct world *world = context;
	int ret, del, sent, received;

	ret = open_mailbox(world, &recv.region, &send.target);
	if (ret)
		return ret;
	recv.target = world->owner_export;
	ret = submit_many(world->owner, recv, &nr_recvs) ?:
	      submit_many(world->client, send, &nr_sends);
	del = kx_export_del(world->owner, world->owner_export);
	/* The withdrawal ends the RECVs. If it failed, close() will end them. */
	if (del)
		return del;
	received = reap_many(world->owner, nr_recvs);
	sent = reap_many(world->client, nr_sends);
	return ret ?: received ?: sent ?: kx_target_close(world->client, send.target);
}

/* ---- a withdrawal that overtakes the grant of a target ---- */

#define OVERTAKER_PORT	(KXFER_PORT + 1)

/*
 * The GRANT answer is handled by the waiting call, and a REVOKE by a work. Only the answer to
 * the REVOKE shows which was handled first.
 */
static void await_revoked(struct raw_lane *lane)
{
	struct kxfer_wire_header message[RAW_BYTES / sizeof(struct kxfer_wire_header)];

	while (raw_receive(lane, message, RAW_MS) > 0)
		if (message->type == (KXFER_WIRE_REVOKE | KXFER_WIRE_ANSWER))
			return;
}

/* Handler of a peer that withdraws an export before it grants it. */
static int withdraw_then_grant(struct raw_server *server, const struct kxfer_wire_header *request,
			       const void *payload, void *answer, uint16_t *length)
{
	struct kxfer_wire_exposure_id id = { .exposure = htobe64(1) };

	if (request->type == KXFER_WIRE_GRANT) {
		raw_post_request(&server->lanes[0],
				 raw_header(KXFER_WIRE_REVOKE, 1, sizeof(id), 1), &id, sizeof(id));
		await_revoked(&server->lanes[0]);
	}
	return raw_default_answer(server, request, answer, length);
}

static int run_overtaken(void *context)
{
	struct world *world = context;
	struct raw_server server;
	uint32_t peer, target;
	int ret = unlimit_memory();

	if (ret)
		return ret;
	raw_server_init(&server);
	server.answer = withdraw_then_grant;
	ret = raw_server_start(&server, OVERTAKER_PORT);
	if (ret)
		return ret;
	world->client = kx_open();
	ret = world->client < 0 ? world->client :
	      kx_peer_open(world->client, kx_addr(kx_address(), OVERTAKER_PORT), &peer);
	if (!ret)
		ret = kx_target_open(world->client, peer, "window", 0, &target);
	close_sessions(world);
	raw_server_stop(&server);
	return ret == -EKEYREVOKED ? 0 : ret ?: -EPROTO;
}

/* ---- a grant that comes too late ---- */

static int grant_late(struct raw_server *server, const struct kxfer_wire_header *request,
		      const void *payload, void *answer, uint16_t *length)
{
	(void)payload;
	if (request->type == KXFER_WIRE_GRANT)
		kx_sleep_ms(300);
	return raw_default_answer(server, request, answer, length);
}

static int run_abandoned(void *context)
{
	struct kxfer_target_open open = {
		.size = sizeof(open),
		.timeout_ms = 50,
		.name = "window",
	};
	struct world *world = context;
	struct raw_server server;
	int ret = unlimit_memory();

	if (ret)
		return ret;
	raw_server_init(&server);
	server.answer = grant_late;
	ret = raw_server_start(&server, OVERTAKER_PORT);
	if (ret)
		return ret;
	world->client = kx_open();
	ret = world->client < 0 ? world->client :
	      kx_peer_open(world->client, kx_addr(kx_address(), OVERTAKER_PORT), &open.peer);
	if (!ret)
		ret = kx_call(world->client, KXFER_TARGET_OPEN, &open);
	kx_sleep_ms(500);
	close_sessions(world);
	raw_server_stop(&server);
	return ret == -ETIMEDOUT ? 0 : ret ?: -EPROTO;
}

/* ---- connections that are refused or break ---- */

static int run_refused(void *context)
{
	int ret;

	fault_arm("CM_ACCEPT", 1);
	ret = run_connect(context);
	fault_arm("CM_ACCEPT", 0);
	/* Refuse with a reason, or without one. */
	return ret == -EDQUOT || ret == -ECONNREFUSED ? 0 : ret ?: -EPROTO;
}

static int run_disconnect(void *context)
{
	close_sessions(context);
	return without_link(context);
}

/* ---- the device ---- */

static void forget_charges(struct kx_live *live)
{
	uint32_t i;

	for (i = 0; i < live->nr; i++)
		if (!strcmp((const char *)live->counters[i].name, "live_charges"))
			live->counters[i].value = 0;
}

/** world_renew_device() - remove the RDMA device and create it again. Return: 0 or -errno */
int world_renew_device(struct world *world)
{
	if (baseline_command("rdma link del %s", kx_device()) ||
	    baseline_command("rdma link add %s type %s netdev %s", kx_device(),
			     kx_provider(), world->netdev))
		return -EIO;
	/* Exports from before are charged to no memory cgroup on the new device (charge.c). */
	forget_charges(&world->down);
	forget_charges(&world->up);
	return 0;
}

/* Listen again at once, because the module itself retries only every two seconds. */
static int listen_anew(struct world *world)
{
	kx_listen_del(world->server, world->listener);
	return kx_listen_add(world->server, kx_addr(kx_address(), KXFER_PORT), 0,
			     &world->listener);
}

/* The server's exports are mapped by the first target on them, and stay mapped. */
static int use_exports(struct world *world)
{
	uint32_t target;
	int ret;

	ret = with_link(world) ?:
	      kx_target_open(world->client, world->peer, "fault", 0, &target) ?:
	      kx_target_open(world->client, world->peer, "fault-big", 0, &target);
	close_sessions(world);
	return ret;
}

static int run_return(void *context)
{
	struct world *world = context;
	struct kxfer_query query;
	int ret;

	ret = world_renew_device(world);
	if (!ret)
		ret = kx_query(world->observer, &query);
	if (!ret && !query.nr_devices)
		return -ENODEV;
	return ret ?: listen_anew(world) ?: use_exports(world);
}

/* Create the device again if it was not attached. */
static void attach_again(void *context)
{
	struct world *world = context;
	struct kxfer_query query;

	close_sessions(world);
	if (!kx_query(world->observer, &query) && !query.nr_devices)
		run_return(world);
}

const struct sweep_flow flows[NR_FLOWS] = {
	[LOCAL]	     = { NULL, run_local, NULL, settled },
	[CONNECT]    = { without_link, run_connect, close_sessions, settled },
	[TRANSFER]   = { with_link, run_transfer, close_sessions, settled },
	[MEASURE]    = { with_link, run_measure, close_sessions, settled },
	[DEDICATE]   = { with_responder, run_dedicate, end_responder, settled },
	[DATAGRAMS]  = { with_responder, run_datagrams, end_responder, settled },
	[BY_URING]   = { with_link, run_uring, close_sessions, settled },
	[WITHDRAW]   = { with_link, run_withdraw, close_sessions, settled },
	[CLOSE]	     = { with_link, run_close, close_sessions, settled },
	[MAILBOX]    = { with_link, run_mailbox, close_sessions, settled },
	[ABANDONED]  = { without_link, run_abandoned, close_sessions, settled },
	[OVERTAKEN]  = { without_link, run_overtaken, close_sessions, settled },
	[REFUSED]    = { without_link, run_refused, close_sessions, settled },
	[DISCONNECT] = { with_link, run_disconnect, NULL, settled },
	[RETURN]     = { without_link, run_return, attach_again, settled },
};

/* ---- the world ---- */

static int open_server(struct world *world)
{
	uint32_t region, export_id;
	int ret;

	ret = kx_listen_add(world->server, kx_addr(kx_address(), KXFER_PORT), 0,
			    &world->listener);
	if (!ret)
		ret = kx_region_add(world->server, world->there, LENGTH, KXFER_REGION_F_WRITE,
				    &world->there_region);
	if (!ret)
		ret = kx_export_add(world->server, world->there_region, 0, LENGTH,
				    KXFER_RIGHT_ALL, "fault", &world->export_id);
	if (!ret)
		ret = kx_region_add(world->server, world->big, BIG_LENGTH, 0, &region);
	return ret ?: kx_export_add(world->server, region, 0, BIG_LENGTH, KXFER_RIGHT_READ,
				    "fault-big", &export_id);
}

/*
 * Whether the calls and works of the previous use have ended. This is checked first, because
 * nothing new begins now.
 */
static bool none_in_use(struct world *world)
{
	static const char *const names[] = {
		"live_peers", "live_targets", "live_grants", "live_exposures", "live_jobs",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (kx_counter(world->observer, names[i]))
			return false;
	return kx_counter(world->observer, "live_sessions") == 2;
}

static bool link_unused(struct world *world)
{
	return none_in_use(world) && kx_counter(world->observer, "live_links") == 2 &&
	       links_live(world) && !kx_live_take(world->observer, &world->up);
}

static bool no_link(struct world *world)
{
	return none_in_use(world) && !kx_counter(world->observer, "live_links") &&
	       !kx_counter(world->observer, "live_lanes") &&
	       !kx_counter(world->observer, "live_mrs") &&
	       !kx_live_take(world->observer, &world->down);
}

/**
 * world_open() - set up a server with its listener and exports, and read the counters
 * @world: out; world_close() accepts a half-open one too
 *
 * Return: 0 or -errno.
 */
int world_open(struct world *world)
{
	int ret;

	*world = (struct world) { .observer = -1, .server = -1, .client = -1, .owner = -1 };
	world->here = kx_alloc(LENGTH);
	world->there = kx_alloc(LENGTH);
	world->big = kx_alloc(BIG_LENGTH);
	world->observer = kx_open();
	world->server = kx_open();
	baseline_netdev(kx_device(), world->netdev, sizeof(world->netdev));
	if (!world->here || !world->there || !world->big || world->observer < 0 ||
	    world->server < 0)
		return -ENOMEM;
	ret = open_server(world) ?: use_exports(world);
	if (ret)
		return ret;
	if (!kx_wait_until(link_unused(world), 5000))
		return -EBUSY;
	ret = world_end_link(world);
	return ret ?: kx_wait_until(no_link(world), 5000) ? 0 : -EBUSY;
}

/** world_close() - end everything that world_open() and a flow have made */
void world_close(struct world *world)
{
	end_responder(world);
	if (world->server >= 0)
		close(world->server);
	if (world->observer >= 0)
		close(world->observer);
	kx_free(world->here, LENGTH);
	kx_free(world->there, LENGTH);
	kx_free(world->big, BIG_LENGTH);
	*world = (struct world) { .observer = -1, .server = -1, .client = -1, .owner = -1 };
}

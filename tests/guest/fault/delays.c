// SPDX-License-Identifier: GPL-2.0
/*
 * Endings in the middle: each site of kmod/base/fault.h that can delay is delayed in turn,
 * while a process runs a flow of calls that passes the site. While a task is in the site, each
 * kind of ending happens.
 *
 *	delays [--all] [--site NAME] [--ending N] [--delay MS] [--seconds N] [--seed N]
 *
 * Without arguments they are taken from KXFER_FUZZ_ARGUMENTS, separated by blanks. By default
 * some pairs of site and ending are run, for a number of seconds: pairs of delay-only sites
 * first, in a new order each time.
 *
 * After each pair, every call and the process must have ended within the time limit, counters
 * must be as before, and the kernel must have logged nothing. ib_dealloc_pd() logs a PD that is
 * in use; KASAN and slub_debug log memory that is used after its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "big/flows.h"
#include "harness/baseline.h"
#include "harness/fault.h"
#include "harness/module.h"
#include "harness/words.h"
#include "kselftest_harness.h"
#include "peers/attack.h"
#include "peers/raw_peer.h"
#include "rigs/uring.h"

#define SITES_MAX	256
#define TELL_MS		30000
#define WRONG_MAX	5	/* wrong pairs after which the others are skipped */
#define DELAYED_HITS	3	/* of a pair; later hits, also the ending's, are not delayed */
#define REACH_MS	8000	/* time for a flow to pass the site or to end */
#define BOUND_MS	20000	/* longer than any call waits for a peer (uapi.rst) */
#define OTHER_PORT	(KXFER_PORT + 5)
#define LENGTH		(256u * 1024)
#define URING_MS	2300	/* a RECV waits for longer than a link's keep-alive */
#define NR_LATE_JOBS	256	/* jobs of LENGTH: more than are posted at once */

/* Options; with a site or an ending, only those pairs are run. */
static struct {
	bool all;
	const char *site;
	int ending;
	unsigned int delay_ms;
	unsigned int seconds;
	uint64_t seed;
} wanted = { .ending = -1, .delay_ms = 60, .seconds = 60 };

/* ---- processes of a pair ---- */

/**
 * struct shared - memory shared with the processes of a pair
 * @peer: id of the process that speaks the wire format, or 0
 * @ready: that process is ready
 */
struct shared {
	volatile pid_t peer;
	volatile bool ready;
};

static struct shared *shared;
static char netdev[32];		/* network interface of the device */

/* Flows in addition to those of flows.h. */
enum own_flow { HELD = NR_FLOWS, SERVED, ODDS, OUTLIVED, RENEW, NR_ALL_FLOWS };

static const char *const flow_names[NR_ALL_FLOWS] = {
	[LOCAL] = "local", [CONNECT] = "connect", [TRANSFER] = "transfer",
	[MEASURE] = "measure", [DEDICATE] = "dedicate", [DATAGRAMS] = "datagrams",
	[BY_URING] = "uring", [WITHDRAW] = "withdraw", [CLOSE] = "close",
	[MAILBOX] = "mailbox", [OVERTAKEN] = "overtaken", [REFUSED] = "refused",
	[DISCONNECT] = "disconnect", [RETURN] = "return", [HELD] = "held",
	[SERVED] = "served", [ODDS] = "odds", [OUTLIVED] = "outlived", [RENEW] = "renew",
};

/* A peer in a separate process, so that it can be killed at any moment. */
static pid_t fork_peer(void (*run)(void))
{
	pid_t pid;

	shared->ready = false;
	pid = fork();
	if (pid) {
		shared->peer = pid;
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run();
	_exit(0);
}

static void end_peer(void)
{
	pid_t pid = shared->peer;

	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	shared->peer = 0;
}

static void run_holder(void)
{
	struct kxfer_wire_grant_answer grant;
	struct kxfer_wire_key key;
	struct raw_link link;

	if (raw_link_open(&link, KXFER_PORT) ||
	    raw_grant(&link, "fault-held", 0, 0, &grant) ||
	    raw_keys(&link, be64toh(grant.exposure), &key, 1) != 1)
		return;
	shared->ready = true;
	while (raw_request(&link, &link.control, KXFER_WIRE_PING, NULL, 0, NULL, NULL) == 0)
		raw_serve(&link, 1000);
}

static int unlimit_memory(void)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };

	return setrlimit(RLIMIT_MEMLOCK, &no_limit) ? -errno : 0;
}

/* A withdrawal from a peer that answers, and that is a process. */
static int run_held(struct world *world)
{
	uint32_t region, export_id;
	int fd = kx_open(), ret = unlimit_memory();

	if (fd < 0 || ret)
		return fd < 0 ? fd : ret;
	ret = kx_region_add(fd, world->there, LENGTH, KXFER_REGION_F_WRITE, &region) ?:
	      kx_export_add(fd, region, 0, LENGTH, KXFER_RIGHT_ALL, "fault-held", &export_id);
	if (!ret) {
		fork_peer(run_holder);
		kx_wait_until(shared->ready, 3000);
		ret = kx_export_del(fd, export_id);
	}
	close(fd);
	end_peer();
	return ret;
}

static void run_server(void)
{
	static struct raw_server server;

	raw_server_init(&server);
	if (raw_server_start(&server, OTHER_PORT))
		return;
	shared->ready = true;
	for (;;)
		pause();
}

/* A target and jobs at a peer that is a process. */
static int run_served(struct world *world)
{
	uint32_t region, peer, target;
	int fd = kx_open(), ret = unlimit_memory();

	if (fd < 0 || ret)
		return fd < 0 ? fd : ret;
	fork_peer(run_server);
	kx_wait_until(shared->ready, 3000);
	ret = kx_region_add(fd, world->here, LENGTH, KXFER_REGION_F_WRITE, &region) ?:
	      kx_peer_open(fd, kx_addr(kx_address(), OTHER_PORT), &peer) ?:
	      kx_target_open(fd, peer, "window", 0, &target) ?:
	      kx_transfer(fd, KXFER_OP_WRITE, region, 0, target, 0, 4096) ?:
	      kx_transfer(fd, KXFER_OP_READ, region, 0, target, 0, 4096) ?:
	      kx_notify(fd, target, 7) ?:
	      kx_target_close(fd, target);
	close(fd);
	end_peer();
	return ret;
}

/* A RECV by io_uring without a sender, until the watch has checked it. */
static void wait_by_uring(int fd, uint32_t mailbox, uint32_t region)
{
	struct kxfer_job job = {
		.op = KXFER_OP_RECV, .target = mailbox, .region = region, .length = 4096,
		.deadline_ns = kx_deadline_ns(URING_MS),
	};
	struct io_uring_cqe cqe;
	struct io_uring ring;

	if (uring_open(&ring, 0))
		return;
	uring_job(&ring, fd, &job);
	io_uring_submit(&ring);
	uring_wait(&ring, &cqe, NULL, KX_TIMEOUT_MS);
	io_uring_queue_exit(&ring);
}

/* Jobs whose deadline passes before they are posted or served. */
static void be_late(int fd, uint32_t mailbox, uint32_t region, uint32_t target)
{
	static struct kxfer_job jobs[NR_LATE_JOBS];
	static struct kxfer_completion done[NR_LATE_JOBS];
	int nr, i;

	jobs[0] = (struct kxfer_job) {
		.op = KXFER_OP_RECV, .target = mailbox, .region = region, .length = 4096,
		.deadline_ns = kx_deadline_ns(10),
	};
	for (i = 1; i < NR_LATE_JOBS; i++)
		jobs[i] = (struct kxfer_job) {
			.op = KXFER_OP_READ, .target = target, .region = region,
			.length = LENGTH, .deadline_ns = kx_deadline_ns(10),
		};
	nr = kx_submit(fd, jobs, NR_LATE_JOBS);
	if (nr > 0)
		kx_reap(fd, done, nr, nr, KX_TIMEOUT_MS);
}

/* Sites that the flows of flows.h do not pass. */
static int run_odds(struct world *world)
{
	uint32_t region, peer, target, own, mailbox, export_id;
	static const uint8_t sha256[32];
	int fd = kx_open(), ret;
	uint64_t generation;

	if (fd < 0)
		return fd;
	ret = kx_region_add(fd, world->here, LENGTH, KXFER_REGION_F_WRITE, &region) ?:
	      kx_peer_open(fd, kx_addr(kx_address(), KXFER_PORT), &peer) ?:
	      kx_target_open(fd, peer, "fault-big", 0, &target) ?:
	      kx_export_add(fd, region, 0, LENGTH, KXFER_RIGHT_ALL, "fault-odds", &export_id) ?:
	      kx_mailbox_add(fd, "fault-mailbox", 2, 100, &mailbox) ?:
	      kx_target_open(fd, peer, "fault-odds", 0, &own) ?:
	      kx_export_set(fd, export_id, LENGTH, sha256, &generation);
	if (!ret) {
		be_late(fd, mailbox, region, target);
		wait_by_uring(fd, mailbox, region);
	}
	close(fd);
	return ret;
}

/* Jobs whose link breaks under them, and that go on over another one. */
static int run_outlived(struct world *world)
{
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = KX_TIMEOUT_MS,
	};
	struct kxfer_job jobs[2] = {
		{ .op = KXFER_OP_READ, .length = LENGTH },
		{ .op = KXFER_OP_WRITE, .length = LENGTH, .flags = KXFER_JOB_F_IDEMPOTENT },
	};
	struct kxfer_completion done[2];
	int fd = kx_open(), ret, i;
	uint32_t region, target;

	if (fd < 0)
		return fd;
	ret = kx_region_add(fd, world->here, LENGTH, KXFER_REGION_F_WRITE, &region) ?:
	      kx_call(fd, KXFER_PEER_OPEN, &open) ?:
	      kx_target_open(fd, open.peer, "fault-big", 0, &target);
	for (i = 0; i < 2; i++) {
		jobs[i].region = region;
		jobs[i].target = target;
	}
	if (!ret) {
		fault_arm("LANE_POST_SEND", 1);
		kx_submit(fd, jobs, 2);
		kx_reap(fd, done, 2, 2, KX_TIMEOUT_MS);
		fault_arm("LANE_POST_SEND", 0);
	}
	close(fd);
	return ret;
}

/* For the device's other endings. It changes the counters of the test's own world. */
static int run_renew(struct world *world)
{
	int ret = world_renew_device(world);

	/* A change of addresses makes the module check the place of its listeners. */
	baseline_command("ip addr add 10.99.0.1/32 dev %s; ip addr del 10.99.0.1/32 dev %s",
			 netdev, netdev);
	/* The module makes the listener again after two seconds. */
	kx_sleep_ms(2500);
	return ret;
}

static void run_flow(struct world *world, int flow)
{
	const struct sweep_flow *known;

	switch (flow) {
	case HELD:
		run_held(world);
		break;
	case SERVED:
		run_served(world);
		break;
	case ODDS:
		run_odds(world);
		break;
	case OUTLIVED:
		run_outlived(world);
		break;
	case RENEW:
		run_renew(world);
		break;
	default:
		known = &flows[flow];
		if ((known->before ? known->before(world) : 0) == 0)
			known->run(world);
		if (known->after)
			known->after(world);
	}
}

/* argument of a thread */
struct task {
	struct world *world;
	int flow;
};

static void *run_task(void *argument)
{
	struct task *task = argument;

	run_flow(task->world, task->flow);
	_exit(0);
}

/* Runs the flow in a thread. The process calls execve() when a byte arrives. */
static void run_until_exec(struct task *task, int from)
{
	pthread_t thread;
	char byte;

	if (pthread_create(&thread, NULL, run_task, task))
		_exit(1);
	if (read(from, &byte, 1) == 1)
		execl("/proc/self/exe", "delays", "--nothing", NULL);
	_exit(1);
}

/* Only the test has the server's session open, so that it can close it. */
static pid_t fork_flow(struct world *world, int flow, int exec_from)
{
	struct task task = { .world = world, .flow = flow };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(world->server);
	world->server = -1;
	if (exec_from >= 0)
		run_until_exec(&task, exec_from);
	run_flow(world, flow);
	_exit(0);
}

/* ---- endings ---- */

enum ending {
	LINK_LOST,
	PEER_GONE,
	DEVICE_REMOVED,
	WITHDRAWN,
	SESSION_CLOSED,
	KILLED,
	EXECVE,
	UNLOADED,
	NR_ENDINGS
};

static const char *const ending_names[NR_ENDINGS] = {
	[LINK_LOST] = "link lost", [PEER_GONE] = "peer gone",
	[DEVICE_REMOVED] = "device removed", [WITHDRAWN] = "export withdrawn",
	[SESSION_CLOSED] = "session closed", [KILLED] = "process killed",
	[EXECVE] = "execve", [UNLOADED] = "module unloaded",
};

/**
 * struct sweeping - the state of the test
 * @world: world with a server, opened on demand
 * @open: whether @world is open
 * @base: counters without @world
 * @kmsg: descriptor of the kernel log
 * @sites: names of the sites
 * @nr_sites: number of sites
 * @hits: hits of each site in one run of a flow
 * @nr_pairs: pairs that were run
 * @longest_ms: longest ending, with the rest of the pair's calls
 * @longest: name of the pair with the longest ending
 * @wrong: fault of the last pair
 * @first_wrong: first fault of all, with its pair
 */
struct sweeping {
	struct world world;
	bool open;
	struct kx_live base;
	int kmsg;
	char sites[SITES_MAX][DELAY_NAME_MAX];
	int nr_sites;
	int hits[NR_ALL_FLOWS][SITES_MAX];
	int nr_pairs;
	int ms[SITES_MAX][NR_ENDINGS];
	uint64_t longest_ms;
	char longest[80];
	char wrong[512];
	char first_wrong[640];
};

static bool has_device(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", kx_device());
	return !access(path, F_OK);
}

/* An interrupted command may still be adding the device. */
static bool device_is_back(int fd)
{
	struct kxfer_query query;

	if (!has_device() && baseline_command("rdma link add %s type %s netdev %s", kx_device(),
					      kx_provider(), netdev))
		return false;
	return !kx_query(fd, &query) && query.nr_devices;
}

/* Restores the device after any interruption. Return: whether there is one. */
static bool restore_device(void)
{
	int fd = kx_open();
	bool back;

	if (fd < 0)
		return false;
	back = kx_wait_until(device_is_back(fd), 10000);
	close(fd);
	return back;
}

/* Breaks the link by making the next SEND fail; makes a link if nothing is sent. */
static int lose_link(struct world *world)
{
	struct fault_counts counts;
	int ret = fault_arm("LANE_POST_SEND", 1);

	if (ret)
		return ret;
	if (!kx_wait_until(!fault_counts("LANE_POST_SEND", &counts) && !counts.left, 10))
		ret = world_end_link(world);
	fault_arm("LANE_POST_SEND", 0);
	/* -ECONNRESET: the link was lost already. */
	return ret == -ECONNRESET ? 0 : ret;
}

static int withdraw(struct world *world)
{
	return kx_export_del(world->server, world->export_id) ?:
	       kx_export_add(world->server, world->there_region, 0, LENGTH, KXFER_RIGHT_ALL,
			     "fault", &world->export_id);
}

static void close_server(struct world *world)
{
	close(world->server);
	world->server = -1;
}

static int unload(struct sweeping *sweeping, pid_t pid)
{
	kill(pid, SIGKILL);
	end_peer();
	close_server(&sweeping->world);
	close(sweeping->world.observer);
	sweeping->world.observer = -1;
	return module_remove_soon();
}

/* Return: 0 or -errno. */
static int come(struct sweeping *sweeping, enum ending ending, pid_t pid, int exec_to)
{
	struct world *world = &sweeping->world;

	switch (ending) {
	case LINK_LOST:
		return lose_link(world);
	case PEER_GONE:
		/* The flow's process waits for the peer, and may have just seen its end. */
		if (shared->peer > 0 && kill(shared->peer, SIGKILL) && errno != ESRCH)
			return -errno;
		return 0;
	case DEVICE_REMOVED:
		return world_renew_device(world);
	case WITHDRAWN:
		return withdraw(world);
	case SESSION_CLOSED:
		close_server(world);
		return 0;
	case KILLED:
		return kill(pid, SIGKILL) ? -errno : 0;
	case EXECVE:
		return write(exec_to, "x", 1) == 1 ? 0 : -errno;
	case UNLOADED:
		return unload(sweeping, pid);
	default:
		return -EINVAL;
	}
}

/* ---- a pair ---- */

static void say(struct sweeping *sweeping, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Only the first fault of a pair is recorded. */
static void say(struct sweeping *sweeping, const char *format, ...)
{
	va_list arguments;

	if (*sweeping->wrong)
		return;
	va_start(arguments, format);
	vsnprintf(sweeping->wrong, sizeof(sweeping->wrong), format, arguments);
	va_end(arguments);
}

static void look_at_log(struct sweeping *sweeping)
{
	static const char *const alarms[] = {
		"KASAN", "BUG", "WARNING", "Poison overwritten", "already free", "refcount_t",
		"corruption", "Oops", "general protection", "sleeping function",
	};
	char line[1024], *text;
	ssize_t n;
	size_t i;

	for (;;) {
		n = read(sweeping->kmsg, line, sizeof(line) - 1);
		/* Some lines of the log may have been overwritten unread. */
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return;
		line[n] = '\0';
		text = strchr(line, ';') ?: line;
		text[strcspn(text, "\n")] = '\0';
		for (i = 0; i < sizeof(alarms) / sizeof(*alarms); i++)
			if (strstr(text, alarms[i]))
				say(sweeping, "the kernel says: %s", text);
	}
}

static bool ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == pid;
}

static uint32_t bound_ms(void)
{
	return (BOUND_MS + DELAYED_HITS * wanted.delay_ms) * kx_slowness();
}

/* Return: false if the process never ends. */
static bool await_end(struct sweeping *sweeping, pid_t pid)
{
	if (kx_wait_until(ended(pid), bound_ms()))
		return true;
	say(sweeping, "the process has not ended after %u ms", bound_ms());
	kill(pid, SIGKILL);
	return kx_wait_until(ended(pid), bound_ms());
}

static bool as_base(struct sweeping *sweeping, int fd)
{
	return !kx_live_wait(fd, &sweeping->base, 0);
}

/* Whether the world can end links: that needs a listener. */
static bool reaches_links(struct world *world)
{
	if (world->server >= 0)
		return true;
	world->server = kx_open();
	return world->server >= 0 &&
	       !kx_listen_add(world->server, kx_addr(kx_address(), KXFER_PORT), 0,
			      &world->listener);
}

/* Closes everything. Idle links stay, so they are ended here. */
static void close_world(struct sweeping *sweeping)
{
	const char *left;
	int fd;

	if (!sweeping->open)
		return;
	sweeping->open = false;
	fault_arm("LANE_POST_SEND", 0);
	if (reaches_links(&sweeping->world))
		world_end_link(&sweeping->world);
	world_close(&sweeping->world);
	fd = kx_open();
	if (fd < 0)
		return;
	if (!kx_wait_until(as_base(sweeping, fd), bound_ms())) {
		left = kx_live_wait(fd, &sweeping->base, 0);
		say(sweeping, "of %s something is left behind", left ?: "something");
	}
	close(fd);
}

static int open_world(struct sweeping *sweeping)
{
	int ret;

	if (sweeping->open)
		return 0;
	if (!restore_device())
		return -ENODEV;
	ret = world_open(&sweeping->world);
	sweeping->open = true;
	return ret;
}

static int reload(struct sweeping *sweeping)
{
	int ret, fd;

	world_close(&sweeping->world);
	sweeping->open = false;
	ret = module_insert("");
	if (ret)
		return ret;
	/* Arming the first site starts the counting. */
	fault_arm("SESSION", 0);
	fd = kx_open();
	if (fd < 0)
		return fd;
	ret = kx_live_take(fd, &sweeping->base);
	close(fd);
	return ret;
}

/* The state becomes as before the pair. */
static void restore(struct sweeping *sweeping, int flow, enum ending ending)
{
	struct world *world = &sweeping->world;
	int ret = 0;

	/* A command of a killed process may still be running. */
	if (flow == RENEW)
		kx_sleep_ms(DELAYED_HITS * wanted.delay_ms + 500);
	if (ending == UNLOADED)
		ret = reload(sweeping);
	else if (flow == RENEW || ending == DEVICE_REMOVED || ending == SESSION_CLOSED)
		close_world(sweeping);
	else if (!kx_wait_until(flows[TRANSFER].settled(world), bound_ms()))
		say(sweeping, "counters do not become as they were");
	if (ret)
		say(sweeping, "the module cannot be loaded again: %s", strerror(-ret));
	/* This may be the last pair. */
	if (!restore_device())
		say(sweeping, "the device does not come back");
}

static bool in_delay(const char *site)
{
	struct delay_counts counts;

	return !delay_counts(site, &counts) && counts.now;
}

static void note_time(struct sweeping *sweeping, int site, enum ending ending, uint64_t began)
{
	uint64_t ms = (kx_now_ns() - began) / 1000000;

	sweeping->ms[site][ending] = ms;
	sweeping->nr_pairs++;
	if (ms <= sweeping->longest_ms)
		return;
	sweeping->longest_ms = ms;
	snprintf(sweeping->longest, sizeof(sweeping->longest), "%s in %s",
		 ending_names[ending], sweeping->sites[site]);
}

/* Return: whether the site was reached, and the ending took place. */
static bool run_pair(struct sweeping *sweeping, int site, int flow, enum ending ending)
{
	const char *name = sweeping->sites[site];
	uint64_t began;
	bool reached, no_link, over = false;
	int ret, pipes[2];
	pid_t pid;

	ret = open_world(sweeping) ?: pipe(pipes) ?: delay_arm(name, wanted.delay_ms, DELAYED_HITS);
	if (ret) {
		say(sweeping, "it cannot begin: %s", strerror(-ret));
		return true;
	}
	shared->peer = 0;
	pid = fork_flow(&sweeping->world, flow, ending == EXECVE ? pipes[0] : -1);
	reached = kx_wait_until(in_delay(name) || (over = ended(pid)), REACH_MS) &&
		  in_delay(name);
	/* A work may pass the site when the process has ended. */
	if (over && (ending == KILLED || ending == EXECVE))
		reached = false;
	began = kx_now_ns();
	ret = reached ? come(sweeping, ending, pid, pipes[1]) : 0;
	/* The flow may be having links refused just now, or the link may be lost already. */
	no_link = ret && ending == LINK_LOST;
	if (no_link)
		printf("# %s: there is no link to be lost: %s\n", name, strerror(-ret));
	else if (ret)
		say(sweeping, "the ending fails: %s", strerror(-ret));
	if (!over && !await_end(sweeping, pid))
		say(sweeping, "and cannot be killed");
	if (reached)
		note_time(sweeping, site, ending, began);
	delay_arm(name, 0, 0);
	end_peer();
	restore(sweeping, flow, reached ? ending : NR_ENDINGS);
	look_at_log(sweeping);
	close(pipes[0]);
	close(pipes[1]);
	return reached && !no_link;
}

/* ---- which flow passes a site ---- */

static int count_flow(struct sweeping *sweeping, int flow)
{
	struct delay_counts counts;
	int ret = open_world(sweeping), i;
	pid_t pid;

	if (ret)
		return ret;
	fault_reset();
	/* Arming any site starts the counting. */
	fault_arm("SESSION", 0);
	shared->peer = 0;
	pid = fork_flow(&sweeping->world, flow, -1);
	await_end(sweeping, pid);
	end_peer();
	restore(sweeping, flow, NR_ENDINGS);
	for (i = 0; i < sweeping->nr_sites; i++)
		if (!delay_counts(sweeping->sites[i], &counts))
			sweeping->hits[flow][i] = counts.hits;
	look_at_log(sweeping);
	return 0;
}

static bool can_run(int flow)
{
	if (flow == RETURN || flow == LOCAL)
		return flow == LOCAL;
	return flow != DATAGRAMS || strcmp(kx_provider(), "siw");
}

/*
 * Return: a flow that passes the site, or -1: none. Only two flows have a peer that can be
 * killed.
 */
static int flow_of(const struct sweeping *sweeping, int site, enum ending ending)
{
	static const int order[] = {
		CONNECT, WITHDRAW, TRANSFER, MAILBOX, HELD, SERVED, BY_URING, CLOSE, ODDS,
		MEASURE, DEDICATE, DATAGRAMS, LOCAL, OVERTAKEN, REFUSED, DISCONNECT, OUTLIVED,
		RENEW,
	};
	size_t i;

	/* Any flow may pass it by chance. */
	if (!strcmp(sweeping->sites[site], "LINK_KEEPALIVE"))
		return ending == PEER_GONE ? -1 : ODDS;
	for (i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (!sweeping->hits[order[i]][site])
			continue;
		if (ending == PEER_GONE && order[i] != HELD && order[i] != SERVED)
			continue;
		if (ending == DEVICE_REMOVED && order[i] == RENEW)
			continue;
		return order[i];
	}
	return -1;
}

/* The only table of sites that no flow passes. Return: why not on this provider, or NULL. */
static const char *unreached(const char *site)
{
	bool siw = !strcmp(kx_provider(), "siw");
	const struct {
		const char *site;
		const char *why;
	} table[] = {
		{ "MISC_REGISTER", "by loading alone" },
		{ "DEVICE_CLIENT", "by loading alone" },
		{ "NET_OPS", "by loading alone" },
		{ "LINK_WORKQUEUE", "by loading alone" },
		{ "LINE_WORKQUEUE", "by loading alone" },
		{ "LINK_HANDLERS", "by loading alone" },
		{ "LINK_LIFE", "by loading alone" },
		{ "CQ_WORKQUEUE", "by loading alone" },
		{ "JOB_CACHE", "by loading alone" },
		{ "EXPORT_WORKQUEUE", "by loading alone" },
		{ "MEMORY_PAGE", "by loading alone" },
		{ "MODULE_EXIT", "by unloading alone" },
		{ "LANE_SINKS", siw ? NULL : "only iWARP registers the sinks of READs" },
		{ "LANE_RESET", siw ? "a QP of iWARP is destroyed instead" : NULL },
		{ "LANE_PLACEMENT", siw ? NULL : "only iWARP has placement READs" },
		{ "FETCH_END", siw ? NULL : "only iWARP deregisters where a message has landed" },
		{ "MEMORY_TABLE", "virtual DMA needs no scatter list" },
		{ "MAPPING_DMA", "virtual DMA needs no scatter list" },
		{ "LANE_EXCLUSIVE", "only by a run whose link fails: lifetime/engine.c" },
		{ "CQ_AWAY", "only while another task wants the CPU: data/aside.c" },
		{ "JOB_PUMP_WORK", "only by completions that follow each other for long" },
		{ "CM_QUERY", siw ? "a QP of iWARP has no path" : NULL },
		{ "FENCE_WAIT", "only by a peer that ends a link later: lifetime/line.c" },
		{ "LINE_MOVE", "only by a peer that goes back to its first path: lifetime/path.c" },
		{ "CONTROL_ORPHAN", "only by a caller that gives up just before its grant comes" },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].site, site))
			return table[i].why;
	return siw && !strncmp(site, "UD_", 3) ? "iWARP has no UD" : NULL;
}

static bool is_for_delays_alone(const char *site)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/kxfer/fault/%s", site);
	return access(path, F_OK);
}

/* ---- the tests ---- */

FIXTURE(delays)
{
	struct sweeping *sweeping;
};

FIXTURE_SETUP(delays)
{
	struct sweeping *sweeping = calloc(1, sizeof(*sweeping));

	self->sweeping = sweeping;
	ASSERT_NE(NULL, sweeping);
	if (!fault_available() || !module_available())
		SKIP(return, "needs root, debugfs and the module file");
	if (!baseline_netdev(kx_device(), netdev, sizeof(netdev)))
		SKIP(return, "needs a software RDMA device");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	sweeping->kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, sweeping->kmsg);
	lseek(sweeping->kmsg, 0, SEEK_END);
	sweeping->world = (struct world) { .observer = -1, .server = -1, .client = -1,
					   .owner = -1 };
	ASSERT_EQ(0, module_remove_soon());
	ASSERT_EQ(0, reload(sweeping));
	sweeping->nr_sites = delay_sites(sweeping->sites, SITES_MAX);
	ASSERT_LT(0, sweeping->nr_sites);
	ASSERT_GT(SITES_MAX, sweeping->nr_sites);
}

FIXTURE_TEARDOWN(delays)
{
	if (self->sweeping) {
		close_world(self->sweeping);
		close(self->sweeping->kmsg);
	}
	fault_reset();
	free(self->sweeping);
}

/* Return: whether all checks passed. */
static bool check_wrong(struct __test_metadata *_metadata, struct sweeping *sweeping,
			const char *site, const char *what)
{
	bool well = !*sweeping->wrong;

	EXPECT_TRUE(well) {
		TH_LOG("%s, %s: %s", site, what, sweeping->wrong);
	}
	if (!well && !*sweeping->first_wrong)
		snprintf(sweeping->first_wrong, sizeof(sweeping->first_wrong), "%s, %s: %s", site,
			 what, sweeping->wrong);
	*sweeping->wrong = '\0';
	return well;
}

/* A fault without any delay would otherwise be reported for each pair. */
static void count_flows(struct __test_metadata *_metadata, struct sweeping *sweeping)
{
	int flow;

	for (flow = 0; flow < NR_ALL_FLOWS; flow++) {
		if (!can_run(flow))
			continue;
		ASSERT_EQ(0, count_flow(sweeping, flow));
		ASSERT_TRUE(check_wrong(_metadata, sweeping, flow_names[flow], "no delay"));
	}
}

static int look_for_unreached(struct __test_metadata *_metadata,
			      const struct sweeping *sweeping)
{
	int i, nr = 0;

	for (i = 0; i < sweeping->nr_sites; i++) {
		const char *why = unreached(sweeping->sites[i]);

		if (flow_of(sweeping, i, LINK_LOST) >= 0)
			continue;
		nr++;
		printf("# not reached: %s: %s\n", sweeping->sites[i], why ?: "?");
		EXPECT_NE(NULL, why) {
			TH_LOG("no flow passes %s", sweeping->sites[i]);
		}
	}
	return nr;
}

/* a pair, by the number of its site */
struct pair {
	int site;
	enum ending ending;
};

/* Pairs that every run includes, whatever its time: earlier defects, and those of mutants. */
static bool is_always_run(const char *site, enum ending ending)
{
	static const struct {
		const char *site;
		enum ending ending;
	} table[] = {
		{ "EXPORT_WITHDRAW", LINK_LOST },
		{ "EXPORT_WITHDRAW", PEER_GONE },
		{ "EXPORT_WITHDRAW", DEVICE_REMOVED },
		{ "LANE_ACCEPT", DEVICE_REMOVED },
		{ "LANE_ACCEPT", UNLOADED },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].site, site) && table[i].ending == ending)
			return true;
	return false;
}

/* Moves these pairs to the front. Return: number of pairs. */
static int put_first(const struct sweeping *sweeping, struct pair *pairs, int nr)
{
	int first = 0, i;

	for (i = 0; i < nr; i++) {
		struct pair pair = pairs[i];

		if (!is_always_run(sweeping->sites[pair.site], pair.ending))
			continue;
		pairs[i] = pairs[first];
		pairs[first++] = pair;
	}
	return first;
}

/* Delay-only sites first, each part shuffled. Return: number of pairs. */
static int list_pairs(const struct sweeping *sweeping, struct pair *pairs)
{
	struct dice dice = { wanted.seed };
	int nr = 0, first, part, i, j, site;
	enum ending ending;

	for (part = 0; part < 2; part++) {
		first = nr;
		for (site = 0; site < sweeping->nr_sites; site++) {
			const char *name = sweeping->sites[site];

			if (is_for_delays_alone(name) == part ||
			    (wanted.site && strcmp(wanted.site, name)))
				continue;
			for (ending = 0; ending < NR_ENDINGS; ending++)
				if ((wanted.ending < 0 || wanted.ending == (int)ending) &&
				    flow_of(sweeping, site, ending) >= 0)
					pairs[nr++] = (struct pair) { site, ending };
		}
		for (i = nr - 1; i > first && !wanted.all; i--) {
			struct pair swap = pairs[i];

			j = first + dice_below(&dice, i - first + 1);
			pairs[i] = pairs[j];
			pairs[j] = swap;
		}
	}
	return nr;
}

static void print_times(const struct sweeping *sweeping)
{
	enum ending ending;
	bool any;
	int site;

	printf("# ms of");
	for (ending = 0; ending < NR_ENDINGS; ending++)
		printf(" | %s", ending_names[ending]);
	printf("\n");
	for (site = 0; site < sweeping->nr_sites; site++) {
		for (ending = 0, any = false; ending < NR_ENDINGS; ending++)
			any |= sweeping->ms[site][ending];
		if (!any)
			continue;
		printf("# %s", sweeping->sites[site]);
		for (ending = 0; ending < NR_ENDINGS; ending++) {
			if (sweeping->ms[site][ending])
				printf(" | %d", sweeping->ms[site][ending]);
			else
				printf(" | -");
		}
		printf("\n");
	}
}

TEST_F_TIMEOUT(delays, every_ending_comes_in_every_delay, 7200)
{
	static struct pair pairs[SITES_MAX * NR_ENDINGS];
	struct sweeping *sweeping = self->sweeping;
	int nr, i, nr_always, nr_unreached, nr_missed = 0, nr_wrong = 0;
	uint64_t began = kx_now_ns(), tell_at = kx_deadline_ns(TELL_MS), end;

	count_flows(_metadata, sweeping);
	nr_unreached = look_for_unreached(_metadata, sweeping);
	nr = list_pairs(sweeping, pairs);
	nr_always = put_first(sweeping, pairs, nr);
	end = wanted.all ? UINT64_MAX : kx_deadline_ns(wanted.seconds * 1000);
	for (i = 0; i < nr && nr_wrong < WRONG_MAX && (i < nr_always || kx_now_ns() < end); i++) {
		const struct pair *pair = &pairs[i];
		int flow = flow_of(sweeping, pair->site, pair->ending);

		if (!run_pair(sweeping, pair->site, flow, pair->ending)) {
			printf("# %s, %s: missed by %s\n", sweeping->sites[pair->site],
			       ending_names[pair->ending], flow_names[flow]);
			nr_missed++;
		}
		nr_wrong += !check_wrong(_metadata, sweeping, sweeping->sites[pair->site],
					 ending_names[pair->ending]);
		if (kx_now_ns() < tell_at)
			continue;
		TH_LOG("%d of %d pairs, %d missed", i + 1, nr, nr_missed);
		tell_at = kx_deadline_ns(TELL_MS);
	}
	close_world(sweeping);
	check_wrong(_metadata, sweeping, "the end", "all of it");
	print_times(sweeping);
	TH_LOG("seed %llu: %d of %d pairs of %d sites and %d endings run in %llu s, "
	       "delays of %u ms; %d sites no flow reaches, %d pairs were missed",
	       (unsigned long long)wanted.seed, sweeping->nr_pairs, nr, sweeping->nr_sites,
	       NR_ENDINGS, (unsigned long long)(kx_now_ns() - began) / 1000000000,
	       wanted.delay_ms, nr_unreached, nr_missed);
	TH_LOG("the longest took %llu ms: %s", (unsigned long long)sweeping->longest_ms,
	       sweeping->longest);
	EXPECT_LT(0, sweeping->nr_pairs);
	/* Again at the end, because a summary of the report shows the last lines alone. */
	EXPECT_STREQ("", sweeping->first_wrong);
	/* Timing alone can make a flow miss a site. */
	EXPECT_GE(nr / 10, nr_missed);
}

/* Sites that no flow passes are delayed by the module's parameter. */
TEST_F_TIMEOUT(delays, of_loading_and_unloading, 120)
{
	static const char *const sites[] = {
		"MISC_REGISTER", "DEVICE_CLIENT", "NET_OPS", "LINK_WORKQUEUE", "CQ_WORKQUEUE",
		"JOB_CACHE", "EXPORT_WORKQUEUE", "MEMORY_PAGE", "MODULE_EXIT",
	};
	struct sweeping *sweeping = self->sweeping;
	char parameter[64];
	size_t i;

	EXPECT_EQ(0, module_remove_soon());
	EXPECT_EQ(-EINVAL, module_insert("delay=NO_SUCH_SITE:1"));
	/* The site is in a context that may not sleep. */
	EXPECT_EQ(-EINVAL, module_insert("delay=JOB:1"));
	EXPECT_EQ(-EINVAL, module_insert("delay=SESSION:10001"));
	for (i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		snprintf(parameter, sizeof(parameter), "delay=%s:20", sites[i]);
		ASSERT_EQ(0, module_insert(parameter));
		/* A link is up while the module is removed. */
		ASSERT_EQ(0, open_world(sweeping));
		run_flow(&sweeping->world, TRANSFER);
		world_close(&sweeping->world);
		sweeping->open = false;
		EXPECT_EQ(0, module_remove_soon());
		look_at_log(sweeping);
		check_wrong(_metadata, sweeping, sites[i], ending_names[UNLOADED]);
	}
	ASSERT_EQ(0, reload(sweeping));
}

TEST_F_TIMEOUT(delays, a_site_is_late_as_often_as_it_is_told_to, 60)
{
	struct delay_counts counts;
	uint64_t began;
	int i, fd;

	ASSERT_EQ(-EINVAL, delay_arm("SESSION", 10001, 1));
	ASSERT_EQ(0, fault_reset());
	ASSERT_EQ(0, delay_arm("SESSION", 100, 2));
	for (i = 0; i < 3; i++) {
		began = kx_now_ns();
		fd = kx_open();
		ASSERT_LE(0, fd);
		if (i < 2)
			EXPECT_LE(kx_least_ns(100), kx_now_ns() - began);
		close(fd);
	}
	ASSERT_EQ(0, delay_counts("SESSION", &counts));
	EXPECT_EQ(3, counts.hits);
	EXPECT_EQ(2, counts.delayed);
	EXPECT_EQ(0, counts.now);
	EXPECT_EQ(0u, counts.ms);
	/* The site may be in a context that may not sleep. */
	EXPECT_EQ(-ENOENT, delay_counts("JOB", &counts));
	ASSERT_EQ(0, fault_reset());
}

static void usage(const char *name)
{
	fprintf(stderr, "usage: %s [--all] [--site NAME] [--ending N] [--delay MS] [--seconds N] "
			"[--seed N]\n",
		name);
	exit(2);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "site", required_argument, NULL, 'n' },
		{ "ending", required_argument, NULL, 'e' },
		{ "delay", required_argument, NULL, 'd' },
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ "nothing", no_argument, NULL, 'x' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	wanted.seed = time(NULL) ^ (uint64_t)getpid() << 32;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned long value = optarg ? strtoul(optarg, NULL, 0) : 0;

		if (option == 'a')
			wanted.all = true;
		else if (option == 'n')
			wanted.site = optarg;
		else if (option == 'e')
			wanted.ending = value;
		else if (option == 'd')
			wanted.delay_ms = value;
		else if (option == 's')
			wanted.seconds = value;
		else if (option == 'r')
			wanted.seed = value;
		/* the program that a process becomes by execve() */
		else if (option == 'x')
			exit(0);
		else
			usage(argv[0]);
	}
}

/* The harness has other options. */
#define main run_tests
TEST_HARNESS_MAIN
#undef main

int main(int argc, char **argv)
{
	argc = words_or_environment(argc, &argv);
	read_options(argc, argv);
	optind = 1;
	return run_tests(1, argv);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile peers, as initiators and as responders, for a while or for a number of
 * messages:
 *
 *	wire [--seed N] [--messages N] [--duration SECONDS]
 *
 * Without arguments they are taken from KXFER_FUZZ_ARGUMENTS, separated by blanks.
 *
 * Each round forks an attacker (tests/lib/peers/attack.h) with a seed of its own: an invader
 * against a listener of this node, or an ambusher together with a victim that opens it as a
 * peer. Some are killed, some end by themselves in the middle. Some laggards are always there:
 * initiators that answer late, leave after an answer, post no RECV, are as slow as rdma_cm lets
 * them, and READ a few bytes at a time. An honest pair always makes links, targets and
 * transfers, each step within a time limit.
 *
 * After each round an unrelated session moves and checks bytes, and memory that no attacker may
 * write is unchanged. Sometimes an export is withdrawn under attack. At the end all counters
 * are at their baseline.
 */
#include <ctype.h>
#include <dirent.h>
#include <endian.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/words.h"
#include "kselftest_harness.h"
#include "peers/attack.h"
#include "peers/raw_peer.h"
#include "rigs/rig.h"

#define PAGE		4096UL
#define OPEN_BYTES	(32 * PAGE)
#define MARGIN		(4 * PAGE)	/* canaries on both sides */
#define OTHER_BYTES	(4 * PAGE)
#define RIG_BYTES	(64 * PAGE)
#define READ_FILL	0x3c
#define MAILBOX_MESSAGES 8
#define MAILBOX_BYTES	1800
#define LETTERS		32		/* RECVs that wait during an attack */
#define LETTER		PAGE		/* room for one message */
#define ROUND_MS	20000		/* longest life of an attacker */
#define WITHDRAW_MS	20000		/* KXFER_REVOKE_MS and a teardown, on a slow machine */
#define VICTIM_MS	1500
#define CLOSE_MS	40000		/* of a victim whose peer is dead, on a slow machine */
#define TELL_MS		30000		/* time between two lines of progress */
#define MAX_SLEEPERS	3
#define MAX_LAGGARDS	2
#define MIN_ROUNDS	8	/* waits have no limit here */
#define MANY_MESSAGES	20000
#define HONEST_MS	6000	/* a step of the honest pair, on a slow machine */
#define HONEST_PAUSE_MS	100	/* time between two rounds of the honest pair */
#define HONEST_LINKS	4	/* links of the honest pair, each with another tos */
#define HONEST_BYTES	4096

/* Both limits end the run; 0: no limit. */
static struct {
	uint64_t seed;
	uint64_t messages;
	uint64_t seconds;
} wanted = { .seconds = 15 };

FIXTURE(wire)
{
	struct attack *attack;
	struct baseline baseline;
	struct rig rig;
	struct dice dice;
	int fd;			/* session that reads counters */
	int keeper;		/* session that is attacked */
	uint8_t *open;		/* with margins */
	uint8_t *read;
	uint8_t *secret;	/* memory of two exports: ATTACK_FOREIGN, ATTACK_CLOSED */
	uint32_t open_region;
	uint32_t open_export;
	uint32_t mailbox;
	uint32_t letter_region;
	uint8_t letters[LETTERS * LETTER];	/* sinks of the keeper's RECVs */
	uint64_t nr_long;	/* long messages received */
	uint32_t nr_withdrawals;
	uint64_t withdrawn_ms;	/* longest withdrawal */
	pid_t friend;
	pid_t sleepers[MAX_SLEEPERS];
	uint32_t nr_sleepers;
	pid_t laggards[MAX_LAGGARDS];
	pid_t honest;
	uint32_t nr_workers;	/* most workers of the module at once */
	uint64_t memory_before;	/* available memory in KiB */
	uint64_t memory_least;
};

/* ---- a friend: another peer, whose keys attackers try ---- */

static int friend_opens(struct raw_link *link, struct attack *attack)
{
	struct kxfer_wire_grant_answer grant;
	int ret = raw_link_open(link, attack->port);

	if (!ret)
		ret = raw_grant(link, ATTACK_FOREIGN, ATTACK_FRIEND, 0, &grant);
	if (!ret && raw_keys(link, be64toh(grant.exposure), &attack->foreign, 1) != 1)
		ret = -EIO;
	if (!ret)
		ret = raw_grant(link, ATTACK_READ, ATTACK_FRIEND, 0, &grant);
	if (!ret && raw_keys(link, be64toh(grant.exposure), &attack->read_key, 1) != 1)
		ret = -EIO;
	atomic_fetch_add(&attack->nr_friendly, 6);
	return ret;
}

static bool friend_reads(struct raw_link *link, const struct kxfer_wire_key *key)
{
	memset(raw_scratch(&link->data), 0, RAW_BYTES);
	return raw_rdma(&link->data, IBV_WR_RDMA_READ, be64toh(key->addr),
			be32toh(key->rkey), RAW_BYTES) == IBV_WC_SUCCESS &&
	       raw_scratch(&link->data)[RAW_BYTES - 1] == ATTACK_SECRET;
}

static void friend_run(struct attack *attack)
{
	struct raw_link link;
	int ret = friend_opens(&link, attack);

	if (ret)
		attack_fault(attack, "a friendly peer cannot connect: %d", ret);
	while (!ret) {
		raw_serve(&link, 500);
		atomic_fetch_add(&attack->nr_friendly, 2);
		ret = raw_request(&link, &link.control, KXFER_WIRE_PING, NULL, 0, NULL, NULL);
		if (ret)
			attack_fault(attack, "a friendly peer has lost its link: %d, %s, %s", ret,
				     link.control.why ?: "", link.data.why ?: "");
		else if (!friend_reads(&link, &attack->foreign))
			attack_fault(attack, "a friendly peer has lost its grant");
	}
	pause();
}

/* ---- an honest pair, and its waiting times ---- */

static void note_ms(_Atomic uint64_t *longest, uint64_t ms)
{
	uint64_t before = atomic_load(longest);

	while (ms > before && !atomic_compare_exchange_weak(longest, &before, ms))
		;
}

/* Records a step of the honest pair. */
static void note_step(struct attack *attack, const char *what, int ret, uint64_t *began)
{
	uint64_t now = kx_now_ns(), ms = (now - *began) / 1000000;

	*began = now;
	atomic_fetch_add(&attack->nr_honest, 1);
	note_ms(&attack->honest_ms, ms);
	if (ret)
		attack_fault(attack, "an honest pair: %s: %d after %llu ms", what, ret,
			     (unsigned long long)ms);
	else if (ms > HONEST_MS * kx_slowness())
		attack_fault(attack, "an honest pair: %s took %llu ms", what,
			     (unsigned long long)ms);
}

static int honest_peer(int fd, uint32_t tos, uint32_t *peer)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.flags = KXFER_PEER_F_TOS,
		.tos = tos,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);

	*peer = cmd.peer;
	return ret;
}

/* A round uses a new session; at first, and after an idle time, also a new link. */
static void honest_round(struct attack *attack, uint8_t *memory, const char *name,
			 uint32_t tos)
{
	uint64_t began = kx_now_ns(), closing;
	uint32_t region, peer = 0, target = 0;
	int fd = kx_open();

	note_step(attack, "open()", fd < 0 ? fd : 0, &began);
	note_step(attack, "REGION_ADD", kx_region_add(fd, memory, HONEST_BYTES,
						      KXFER_REGION_F_WRITE, &region), &began);
	note_step(attack, "PEER_OPEN", honest_peer(fd, tos, &peer), &began);
	note_step(attack, "TARGET_OPEN", kx_target_open(fd, peer, name, 0, &target), &began);
	note_step(attack, "READ", kx_transfer(fd, KXFER_OP_READ, region, 0, target, 0,
					      HONEST_BYTES), &began);
	note_step(attack, "TARGET_CLOSE", kx_target_close(fd, target), &began);
	closing = began;
	close(fd);
	note_ms(&attack->close_ms, (kx_now_ns() - closing) / 1000000);
	note_step(attack, "close()", 0, &began);
}

static void honest_run(struct attack *attack, const char *name)
{
	uint8_t *memory = kx_alloc(HONEST_BYTES);
	uint32_t n;

	for (n = 0; memory && !atomic_load(&attack->nr_faults); n++) {
		honest_round(attack, memory, name, 4 * (1 + n % HONEST_LINKS));
		kx_sleep_ms(HONEST_PAUSE_MS);
	}
	pause();
}

/* ---- a victim: opens a peer that turns out to be hostile ---- */

struct victim {
	struct attack *attack;
	struct dice dice;
	int fd;
	uint32_t peer;
	uint32_t target;
	uint32_t mail;		/* target to SEND to */
	uint32_t sink;		/* region in the middle of memory */
	uint32_t source;
	uint8_t *memory;
	uint32_t nr_submitted;
	uint32_t nr_reaped;
};

static int victim_peer(struct victim *victim)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), victim->attack->ambush_port),
		.timeout_ms = 1 + dice_below(&victim->dice, 1000),
	};
	int ret = kx_call(victim->fd, KXFER_PEER_OPEN, &cmd);

	victim->peer = cmd.peer;
	return ret;
}

static void victim_target(struct victim *victim, bool mail)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = victim->peer,
		.rights = dice_below(&victim->dice, KXFER_RIGHT_ANY + 1),
		.timeout_ms = 1 + dice_below(&victim->dice, 500),
	};

	if (mail && dice_chance(&victim->dice, 700))
		cmd.rights = KXFER_RIGHT_SEND;
	strcpy((char *)cmd.name, mail ? ATTACK_MAIL_NAME : "ambush");
	if (!kx_call(victim->fd, KXFER_TARGET_OPEN, &cmd))
		*(mail ? &victim->mail : &victim->target) = cmd.target;
}

static void victim_list(struct victim *victim)
{
	struct kxfer_peer_export exports[20];
	struct kxfer_peer_list cmd = {
		.size = sizeof(cmd),
		.peer = victim->peer,
		.timeout_ms = 1 + dice_below(&victim->dice, 500),
		.exports = (uintptr_t)exports,
		.nr = 20,
	};

	kx_call(victim->fd, KXFER_PEER_LIST, &cmd);
}

static void victim_info(struct victim *victim)
{
	struct kxfer_target_info cmd = {
		.size = sizeof(cmd),
		.target = victim->target,
		.timeout_ms = 1 + dice_below(&victim->dice, 300),
		.min_generation = dice_chance(&victim->dice, 500) ? dice_odd(&victim->dice) : 0,
	};

	kx_call(victim->fd, KXFER_TARGET_INFO, &cmd);
}

static void victim_reap(struct victim *victim, uint32_t ms)
{
	struct kxfer_completion done[64];
	uint32_t left = victim->nr_submitted - victim->nr_reaped;
	int ret;

	if (!left)
		return;
	ret = kx_reap(victim->fd, done, left < 64 ? left : 64, 1, ms);
	if (ret > 0)
		victim->nr_reaped += ret;
}

static struct kxfer_job draw_transfer(struct victim *victim, uint32_t op)
{
	return (struct kxfer_job) {
		.op = op,
		.target = victim->target,
		.region = op == KXFER_OP_WRITE ? victim->source : victim->sink,
		.region_offset = dice_below(&victim->dice, OTHER_BYTES / 2),
		.target_offset = dice_below(&victim->dice, RAW_WINDOW / 2),
		.length = 1 + dice_below(&victim->dice, OTHER_BYTES / 2),
	};
}

static struct kxfer_job draw_atomic(struct victim *victim, uint32_t op)
{
	struct kxfer_job job = draw_transfer(victim, op);

	job.region_offset &= ~7ULL;
	job.target_offset &= ~7ULL;
	job.length = 8;
	job.compare_add = 1;
	return job;
}

/*
 * Sends a short or long message. A long one has a deadline in some cases only; without, it may
 * wait for its FETCHED for ever.
 */
static struct kxfer_job draw_send(struct victim *victim)
{
	struct dice *dice = &victim->dice;
	struct kxfer_job job = {
		.op = KXFER_OP_SEND,
		.target = victim->mail,
		.region = victim->source,
		.region_offset = dice_below(dice, OTHER_BYTES / 2),
		.length = 1 + dice_below(dice, dice_chance(dice, 500) ? KXFER_MESSAGE_MAX :
						OTHER_BYTES / 2),
	};

	if (dice_chance(dice, 500))
		job.deadline_ns = kx_deadline_ns(1 + dice_below(dice, 300));
	return job;
}

static struct kxfer_job draw_job(struct victim *victim)
{
	static const uint32_t ops[] = {
		KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_NOTIFY, KXFER_OP_FETCH_ADD,
		KXFER_OP_COMPARE_SWAP, KXFER_OP_SEND, KXFER_OP_SEND,
	};
	uint32_t op = ops[dice_below(&victim->dice, sizeof(ops) / sizeof(*ops))];

	switch (op) {
	case KXFER_OP_SEND:
		return draw_send(victim);
	case KXFER_OP_NOTIFY:
		return (struct kxfer_job) {
			.op = op,
			.target = victim->target,
			.cookie = dice_roll(&victim->dice),
		};
	case KXFER_OP_READ:
	case KXFER_OP_WRITE:
		return draw_transfer(victim, op);
	default:
		return draw_atomic(victim, op);
	}
}

static void victim_submit(struct victim *victim)
{
	struct kxfer_job job = draw_job(victim);
	int ret;

	if (victim->nr_submitted - victim->nr_reaped < 64) {
		ret = kx_submit(victim->fd, &job, 1);
		victim->nr_submitted += ret > 0 ? ret : 0;
	}
	victim_reap(victim, 20);
}

static void victim_act(struct victim *victim)
{
	switch (dice_below(&victim->dice, 24)) {
	case 0:
	case 1:
		victim_list(victim);
		break;
	case 2:
		kx_target_close(victim->fd, victim->target);
		break;
	case 3:
		kx_target_close(victim->fd, victim->mail);
		break;
	case 4:
		kx_peer_close(victim->fd, victim->peer);
		victim_peer(victim);
		break;
	case 5:
	case 6:
		victim_info(victim);
		break;
	case 7:
	case 8:
		victim_target(victim, false);
		break;
	case 9:
	case 10:
		victim_target(victim, true);
		break;
	case 11:
		kx_cancel(victim->fd, 0, KXFER_CANCEL_F_ALL);
		break;
	default:
		victim_submit(victim);
	}
}

static bool victim_prepare(struct victim *victim)
{
	uint8_t *source = kx_alloc(OTHER_BYTES);

	victim->fd = kx_open();
	victim->memory = kx_alloc(OTHER_BYTES + 2 * MARGIN);
	if (victim->fd < 0 || !victim->memory || !source)
		return false;
	memset(victim->memory, ATTACK_SECRET, OTHER_BYTES + 2 * MARGIN);
	memset(source, READ_FILL, OTHER_BYTES);
	return !kx_region_add(victim->fd, victim->memory + MARGIN, OTHER_BYTES,
			      KXFER_REGION_F_WRITE, &victim->sink) &&
	       !kx_region_add(victim->fd, source, OTHER_BYTES, 0, &victim->source);
}

static bool all_are(const uint8_t *memory, size_t length, uint8_t value)
{
	size_t i;

	for (i = 0; i < length && memory[i] == value; i++)
		;
	return i == length;
}

static void victim_run(struct attack *attack, uint64_t seed)
{
	struct victim victim = { .attack = attack, .dice = { seed }, .fd = -1 };
	uint64_t end = kx_deadline_ns(VICTIM_MS), closing;

	if (!victim_prepare(&victim)) {
		attack_fault(attack, "a victim cannot be prepared");
		return;
	}
	while (kx_now_ns() < end && victim_peer(&victim))
		kx_sleep_ms(20);
	while (kx_now_ns() < end)
		victim_act(&victim);
	/*
	 * A long message may or may not have been READ; by then it is taken back, or its link
	 * is lost.
	 */
	kx_cancel(victim.fd, 0, KXFER_CANCEL_F_ALL);
	while (victim.nr_reaped < victim.nr_submitted &&
	       kx_now_ns() < end + CLOSE_MS * 1000000ull)
		victim_reap(&victim, 1000);
	if (victim.nr_reaped != victim.nr_submitted)
		attack_fault(attack, "of %u jobs %u ended", victim.nr_submitted,
			     victim.nr_reaped);
	closing = kx_now_ns();
	close(victim.fd);
	note_ms(&attack->close_ms, (kx_now_ns() - closing) / 1000000);
	if (!all_are(victim.memory, MARGIN, ATTACK_SECRET) ||
	    !all_are(victim.memory + MARGIN + OTHER_BYTES, MARGIN, ATTACK_SECRET))
		attack_fault(attack, "memory around a victim's region was written");
}

/* ---- what is attacked ---- */

static int publish(int fd, uint8_t *memory, size_t length, uint32_t rights,
		   const char *name, const struct kxfer_rule *rule, uint32_t *id)
{
	uint32_t region;
	int ret = kx_region_add(fd, memory, length, KXFER_REGION_F_WRITE, &region);

	return ret ?: kx_export_add_rules(fd, region, 0, length, rights, name, rule,
					  rule ? 1 : 0, id);
}

/* The export lies in the middle of a region whose ends no peer may write. */
static int publish_open(struct __test_metadata *_metadata,
			FIXTURE_DATA(wire) *self)
{
	return kx_export_add(self->keeper, self->open_region, MARGIN, OPEN_BYTES,
			     KXFER_RIGHT_ALL, ATTACK_OPEN, &self->open_export);
}

static const char *canaries(const uint8_t *open, const uint8_t *read, const uint8_t *secret)
{
	if (!all_are(open, MARGIN, ATTACK_SECRET) ||
	    !all_are(open + MARGIN + OPEN_BYTES, MARGIN, ATTACK_SECRET))
		return "memory around an export was written";
	if (!all_are(read, OTHER_BYTES, READ_FILL))
		return "an export to read was written";
	if (!all_are(secret, 2 * OTHER_BYTES, ATTACK_SECRET))
		return "an export of others was written";
	return NULL;
}

static pid_t fork_attacker(void (*run)(struct attack *, uint64_t, uint32_t),
			   struct attack *attack, uint64_t seed, uint32_t much)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(attack, seed, much);
	_exit(0);
}

static pid_t fork_victim(struct attack *attack, uint64_t seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	victim_run(attack, seed);
	_exit(0);
}

static pid_t fork_friend(struct attack *attack)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	friend_run(attack);
	_exit(0);
}

static pid_t fork_honest(struct attack *attack, const char *name)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	honest_run(attack, name);
	_exit(0);
}

enum end { ENDED, STOPPED, STILL_THERE };

static enum end wait_end(pid_t pid, uint32_t ms)
{
	int status;

	if (!kx_wait_until(waitpid(pid, &status, WNOHANG | WUNTRACED) == pid, ms))
		return STILL_THERE;
	return WIFSTOPPED(status) ? STOPPED : ENDED;
}

static void kill_and_wait(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) == pid)
		;
}

/* ---- resources of the node ---- */

static uint64_t available_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* Kernel threads that are running works of the module (wq_worker_comm()). */
static uint32_t count_workers(void)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	char path[300], comm[64];
	uint32_t nr = 0;
	FILE *file;

	while (dir && (entry = readdir(dir))) {
		if (!isdigit(entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		/* A plus precedes the work that is running, a minus the last work. */
		if (fgets(comm, sizeof(comm), file) && strstr(comm, "kworker/") &&
		    strstr(comm, "+kxfer"))
			nr++;
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void look_at_node(FIXTURE_DATA(wire) *self)
{
	uint32_t workers = count_workers();
	uint64_t kib = available_kib();

	if (workers > self->nr_workers)
		self->nr_workers = workers;
	if (kib < self->memory_least)
		self->memory_least = kib;
}

/* ---- laggards ---- */

/* There are always some laggards; each lives longer than a round. */
static void keep_laggards(FIXTURE_DATA(wire) *self)
{
	struct dice *dice = &self->dice;
	uint32_t i;

	for (i = 0; i < MAX_LAGGARDS; i++) {
		if (self->laggards[i] && wait_end(self->laggards[i], 0) == STILL_THERE)
			continue;
		self->laggards[i] = fork_attacker(laggard_run, self->attack, dice_roll(dice),
						  1000 + dice_below(dice, 10000));
	}
}

static void end_laggards(FIXTURE_DATA(wire) *self)
{
	uint32_t i;

	for (i = 0; i < MAX_LAGGARDS; i++)
		if (self->laggards[i])
			kill_and_wait(self->laggards[i]);
}

FIXTURE_SETUP(wire)
{
	static const struct kxfer_rule friends = {
		.match = KXFER_RULE_UID, .uid = ATTACK_FRIEND, .rights = KXFER_RIGHT_ALL,
	}, nobody = { .rights = 0 };
	struct rig_options options = { .length = RIG_BYTES };
	uint64_t listener;
	uint32_t id;

	ASSERT_EQ(0, geteuid());
	self->dice.state = wanted.seed;
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	/* Attackers open this export too, and the module keeps it mapped. */
	ASSERT_EQ(0, kx_target_open(self->rig.client, self->rig.peer, KXFER_PING_NAME, 0, &id));
	rig_close(&self->rig);
	ASSERT_EQ(0, baseline_take(self->fd, &self->baseline));
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	self->attack = attack_alloc();
	ASSERT_NE(NULL, self->attack);
	self->attack->port = 22000 + getpid() % 1000 * 3;
	self->attack->open_port = self->attack->port + 1;
	self->attack->ambush_port = self->attack->port + 2;
	self->keeper = kx_open();
	self->open = kx_alloc(OPEN_BYTES + 2 * MARGIN);
	self->read = kx_alloc(OTHER_BYTES);
	self->secret = kx_alloc(2 * OTHER_BYTES);
	ASSERT_TRUE(self->keeper >= 0 && self->open && self->read && self->secret);
	memset(self->open, ATTACK_SECRET, OPEN_BYTES + 2 * MARGIN);
	memset(self->open + MARGIN, ATTACK_MARK, OPEN_BYTES);
	memset(self->read, READ_FILL, OTHER_BYTES);
	memset(self->secret, ATTACK_SECRET, 2 * OTHER_BYTES);
	test_cmd_listen_add(self->keeper, kx_addr(kx_address(), self->attack->port), 0,
			    &listener);
	test_cmd_listen_add(self->keeper, kx_addr(kx_address(), self->attack->open_port),
			    KXFER_LISTEN_F_ANY_PORT, &listener);
	test_cmd_region_add(self->keeper, self->open, OPEN_BYTES + 2 * MARGIN,
			    KXFER_REGION_F_WRITE, &self->open_region);
	ASSERT_EQ(0, publish_open(_metadata, self));
	ASSERT_EQ(0, publish(self->keeper, self->read, OTHER_BYTES, KXFER_RIGHT_READ,
			     ATTACK_READ, NULL, &id));
	ASSERT_EQ(0, publish(self->keeper, self->secret, OTHER_BYTES, KXFER_RIGHT_ALL,
			     ATTACK_FOREIGN, &friends, &id));
	ASSERT_EQ(0, publish(self->keeper, self->secret + OTHER_BYTES, OTHER_BYTES,
			     KXFER_RIGHT_ALL, ATTACK_CLOSED, &nobody, &id));
	test_cmd_mailbox_add(self->keeper, ATTACK_MAILBOX, MAILBOX_MESSAGES, MAILBOX_BYTES, &id);
	self->mailbox = id;
	test_cmd_region_add(self->keeper, self->letters, sizeof(self->letters),
			    KXFER_REGION_F_WRITE, &self->letter_region);
	self->memory_before = available_kib();
	self->memory_least = self->memory_before;
	self->honest = fork_honest(self->attack, self->rig.name);
	self->friend = fork_friend(self->attack);
	ASSERT_TRUE(kx_wait_until(self->attack->read_key.rkey || self->attack->nr_faults,
				  RAW_MS));
}

FIXTURE_TEARDOWN(wire)
{
	while (self->nr_sleepers)
		kill_and_wait(self->sleepers[--self->nr_sleepers]);
	end_laggards(self);
	kill_and_wait(self->honest);
	kill_and_wait(self->friend);
	close(self->keeper);
	rig_close(&self->rig);
	EXPECT_EQ(NULL, baseline_wait(self->fd, &self->baseline, 2 * BASELINE_WAIT_MS)) {
		TH_LOG("%s", baseline_wait(self->fd, &self->baseline, 0));
	}
	close(self->fd);
	attack_free(self->attack);
}

/* The QPs of a stopped attacker stay, but its peer hears nothing; a few of them at a time. */
static void let_sleep(FIXTURE_DATA(wire) *self, pid_t pid)
{
	if (self->nr_sleepers == MAX_SLEEPERS) {
		kill_and_wait(self->sleepers[0]);
		self->sleepers[0] = self->sleepers[--self->nr_sleepers];
	}
	self->sleepers[self->nr_sleepers++] = pid;
}

/* ---- rounds ---- */

/* After EXPORT_DEL has returned, no peer reaches the memory. */
static void withdraw(struct __test_metadata *_metadata, FIXTURE_DATA(wire) *self)
{
	static uint8_t before[OPEN_BYTES];
	uint64_t began = kx_now_ns(), ms;

	if (kx_export_del(self->keeper, self->open_export))
		attack_fault(self->attack, "an export cannot be withdrawn");
	memcpy(before, self->open + MARGIN, OPEN_BYTES);
	ms = (kx_now_ns() - began) / 1000000;
	self->nr_withdrawals++;
	if (ms > self->withdrawn_ms)
		self->withdrawn_ms = ms;
	if (ms > WITHDRAW_MS)
		attack_fault(self->attack, "a withdrawal took %llu ms", (unsigned long long)ms);
	kx_sleep_ms(30);
	if (memcmp(before, self->open + MARGIN, OPEN_BYTES))
		attack_fault(self->attack, "memory was written after its withdrawal");
	if (publish_open(_metadata, self))
		attack_fault(self->attack, "an export cannot be published again");
}

static void invade(struct __test_metadata *_metadata, FIXTURE_DATA(wire) *self)
{
	struct dice *dice = &self->dice;
	pid_t pid = fork_attacker(invader_run, self->attack, dice_roll(dice),
				  200 + dice_below(dice, 600));
	enum end end;

	if (dice_chance(dice, 80)) {
		kx_sleep_ms(dice_below(dice, 500));
		withdraw(_metadata, self);
	}
	end = wait_end(pid, dice_chance(dice, 150) ? dice_below(dice, 1000) : ROUND_MS);
	if (end == STOPPED)
		let_sleep(self, pid);
	else if (end == STILL_THERE)
		kill_and_wait(pid);
}

static void ambush(FIXTURE_DATA(wire) *self)
{
	struct dice *dice = &self->dice;
	uint32_t ms = 100 + dice_below(dice, 2 * VICTIM_MS);
	pid_t ambusher = fork_attacker(ambusher_run, self->attack, dice_roll(dice), ms);
	pid_t victim = fork_victim(self->attack, dice_roll(dice));

	if (wait_end(ambusher, dice_chance(dice, 200) ? ms / 2 : ms + 1000) != ENDED)
		kill_and_wait(ambusher);
	if (wait_end(victim, CLOSE_MS) != ENDED) {
		attack_fault(self->attack, "calls to a hostile peer do not end");
		kill(victim, SIGKILL);
	}
}

static void look_at_events(FIXTURE_DATA(wire) *self)
{
	struct kxfer_event events[64];
	int nr, i;

	while ((nr = kx_event_reap(self->keeper, events, 64, 0)) > 0)
		for (i = 0; i < nr; i++)
			if (events[i].uid == ATTACK_FRIEND || events[i].type != KXFER_EVENT_NOTIFY)
				attack_fault(self->attack, "an event of type %u from uid %u",
					     events[i].type, events[i].uid);
}

static void await_letter(FIXTURE_DATA(wire) *self, uint32_t place, uint64_t deadline_ns)
{
	struct kxfer_job job = {
		.op = KXFER_OP_RECV,
		.region = self->letter_region,
		.region_offset = place * LETTER,
		.target = self->mailbox,
		.length = sizeof(struct kxfer_message) + MAILBOX_BYTES,
		.deadline_ns = deadline_ns,
		.user_data = place,
	};

	self->letters[job.region_offset + job.length] = ATTACK_SECRET;
	if (kx_submit(self->keeper, &job, 1) != 1)
		attack_fault(self->attack, "a RECV cannot be submitted");
}

/* Return: whether a RECV has got a message; if not, it ended with @other. */
static bool take_letter(FIXTURE_DATA(wire) *self, int other)
{
	struct kxfer_completion done = { .status = -EPROTO };
	const struct kxfer_message *message;

	if (kx_reap(self->keeper, &done, 1, 1, ROUND_MS) != 1 ||
	    (done.status && done.status != other)) {
		attack_fault(self->attack, "a RECV ended with %d", done.status);
		return false;
	}
	message = (const void *)(self->letters + done.user_data * LETTER);
	if (done.status)
		return false;
	if (message->bytes > MAILBOX_BYTES || message->uid == ATTACK_FRIEND ||
	    done.bytes != sizeof(*message) + message->bytes ||
	    ((const uint8_t *)(message + 1))[MAILBOX_BYTES] != ATTACK_SECRET)
		attack_fault(self->attack, "a message of %u bytes from uid %u",
			     message->bytes, message->uid);
	self->nr_long += message->bytes > KXFER_MESSAGE_MAX;
	return true;
}

/*
 * Takes the messages that came during the attack, then those still in the mailbox. A RECV whose
 * deadline has passed ends if there is no message.
 */
static void look_at_mailbox(FIXTURE_DATA(wire) *self)
{
	bool some = true;
	uint32_t n;

	kx_cancel(self->keeper, 0, KXFER_CANCEL_F_ALL);
	for (n = 0; n < LETTERS; n++)
		take_letter(self, -ECANCELED);
	for (n = 0; n <= MAILBOX_MESSAGES && some; n++) {
		await_letter(self, 0, 1);
		some = take_letter(self, -ETIMEDOUT);
	}
}

static void move_bytes(FIXTURE_DATA(wire) *self, uint32_t op)
{
	uint64_t here = dice_below(&self->dice, RIG_BYTES / 2);
	uint64_t there = dice_below(&self->dice, RIG_BYTES / 2);
	uint64_t length = 1 + dice_below(&self->dice, RIG_BYTES / 2);
	const char *wrong;

	rig_prepare(&self->rig, op);
	wrong = rig_try(&self->rig, op, here, there, length);
	if (wrong)
		attack_fault(self->attack, "a transfer between others: %s", wrong);
}

static void play_round(struct __test_metadata *_metadata, FIXTURE_DATA(wire) *self)
{
	const char *wrong;
	uint32_t n;

	keep_laggards(self);
	look_at_node(self);
	for (n = 0; n < LETTERS; n++)
		await_letter(self, n, 0);
	if (dice_chance(&self->dice, 150))
		ambush(self);
	else
		invade(_metadata, self);
	move_bytes(self, KXFER_OP_READ);
	move_bytes(self, KXFER_OP_WRITE);
	look_at_events(self);
	look_at_mailbox(self);
	wrong = canaries(self->open, self->read, self->secret);
	if (wrong)
		attack_fault(self->attack, "%s", wrong);
}

struct counts {
	uint64_t received;
	uint64_t malformed;
	uint64_t keepalives;
	uint64_t errors;
	uint64_t accepted;
	uint64_t refused;
};

static struct counts take_counts(int fd)
{
	return (struct counts) {
		.received = kx_counter(fd, "messages_received"),
		.malformed = kx_counter(fd, "messages_malformed"),
		.keepalives = kx_counter(fd, "keepalives"),
		.errors = kx_counter(fd, "protocol_errors"),
		.accepted = kx_counter(fd, "links_accepted"),
		.refused = kx_counter(fd, "links_refused"),
	};
}

#define LLU(x)	((unsigned long long)(x))

static void tell(struct __test_metadata *_metadata, const struct attack *attack,
		 const struct counts *a, const struct counts *b, uint32_t rounds,
		 uint32_t nr_withdrawals, uint64_t withdrawn_ms)
{
	TH_LOG("%u rounds: %llu messages sent, %llu answers got, %llu RDMA requests, %u vanished",
	       rounds, LLU(attack->nr_messages), LLU(attack->nr_answers),
	       LLU(attack->nr_rdma), (unsigned int)attack->nr_vanished);
	TH_LOG("%llu connections tried, %llu made; the module accepted %llu links, refused %llu",
	       LLU(attack->nr_connections), LLU(attack->nr_established),
	       LLU(b->accepted - a->accepted), LLU(b->refused - a->refused));
	TH_LOG("%llu messages passed the header check, %llu did not; %llu protocol errors",
	       LLU(b->received - a->received), LLU(b->malformed - a->malformed),
	       LLU(b->errors - a->errors));
	TH_LOG("the longest of %u withdrawals took %llu ms", nr_withdrawals, LLU(withdrawn_ms));
}

static bool enough(const struct attack *attack, uint64_t end, uint32_t rounds)
{
	return attack->nr_faults || (kx_now_ns() >= end && rounds >= MIN_ROUNDS) ||
	       (wanted.messages && attack->nr_messages >= wanted.messages);
}

TEST_F_TIMEOUT(wire, hostile_peers_gain_nothing, 14400)
{
	struct counts before = take_counts(self->fd), after;
	uint64_t end = wanted.seconds ? kx_deadline_ns(wanted.seconds * 1000) : UINT64_MAX;
	uint64_t tell_at = kx_deadline_ns(TELL_MS);
	uint32_t rounds = 0;

	TH_LOG("seed %llu", LLU(wanted.seed));
	while (!enough(self->attack, end, rounds)) {
		play_round(_metadata, self);
		rounds++;
		if (kx_now_ns() < tell_at)
			continue;
		TH_LOG("%u rounds, %llu messages", rounds, LLU(self->attack->nr_messages));
		tell_at = kx_deadline_ns(TELL_MS);
	}
	after = take_counts(self->fd);
	tell(_metadata, self->attack, &before, &after, rounds, self->nr_withdrawals,
	     self->withdrawn_ms);
	TH_LOG("%llu long messages received; of victims %llu offered, %llu FETCHED",
	       LLU(self->nr_long), LLU(self->attack->nr_offered), LLU(self->attack->nr_fetched));
	look_at_node(self);
	TH_LOG("an honest pair beside them: %llu steps, the longest %llu ms; "
	       "the longest close() %llu ms",
	       LLU(self->attack->nr_honest), LLU(self->attack->honest_ms),
	       LLU(self->attack->close_ms));
	TH_LOG("at most %u workers in use and %llu MiB of memory", self->nr_workers,
	       LLU(self->memory_before - self->memory_least) / 1024);
	EXPECT_LT(0, self->attack->nr_honest);
	EXPECT_EQ(0, self->attack->nr_faults) {
		TH_LOG("round %u: %s", rounds, self->attack->fault);
	}
	EXPECT_LT(0, self->attack->nr_messages);
	/* About one message in a thousand has a header that is refused. */
	if (self->attack->nr_messages > MANY_MESSAGES)
		EXPECT_LT(before.malformed, after.malformed);
	/* A keep-alive is two messages at most, of which one may be an attacker's. */
	EXPECT_LE(self->attack->nr_messages / 2, after.received - before.received -
		  2 * (after.keepalives - before.keepalives) - self->attack->nr_friendly);
}

static void usage(const char *name)
{
	fprintf(stderr, "usage: %s [--seed N] [--messages N] [--duration SECONDS]\n", name);
	exit(2);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "messages", required_argument, NULL, 'm' },
		{ "duration", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	wanted.seed = time(NULL) ^ (uint64_t)getpid() << 32;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 0) : 0;

		if (option == 's')
			wanted.seed = value;
		else if (option == 'd')
			wanted.seconds = value;
		else if (option == 'm' && value)
			wanted.messages = value;
		else
			usage(argv[0]);
		/* A number of messages sets no time limit. */
		if (option == 'm')
			wanted.seconds = 0;
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

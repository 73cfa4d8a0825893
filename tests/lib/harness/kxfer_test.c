// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of /dev/kxfer as functions, and helpers of tests; see kxfer_test.h.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness/kxfer_test.h"

/* ---- addresses, time, memory ---- */

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

const char *kx_address(void)
{
	return setting("KXFER_ADDRESS", "10.77.0.1");
}

const char *kx_address6(void)
{
	return setting("KXFER_ADDRESS6", "fd77::1");
}

static bool has_device(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	return !access(path, F_OK);
}

const char *kx_device(void)
{
	return setting("KXFER_DEVICE", has_device("rxe0") ? "rxe0" :
				       has_device("siw0") ? "siw0" : "");
}

bool kx_has_atomics(void)
{
	return strcmp(kx_provider(), "siw") != 0;
}

bool kx_maps_dma(void)
{
	return !access("/sys/kernel/debug/siw-dma", F_OK);
}

const char *kx_provider(void)
{
	return setting("KXFER_PROVIDER", has_device("rxe0") ? "rxe" :
					 has_device("siw0") ? "siw" : "");
}

struct kxfer_addr kx_addr(const char *text, uint16_t port)
{
	struct kxfer_addr addr = { .port = port };

	if (inet_pton(AF_INET, text, addr.addr) == 1) {
		addr.family = AF_INET;
	} else if (inet_pton(AF_INET6, text, addr.addr) == 1) {
		addr.family = AF_INET6;
	} else {
		fprintf(stderr, "kx_addr: %s is no address\n", text);
		abort();
	}
	return addr;
}

uint16_t kx_own_port(void)
{
	return 22000 + getpid() % 10000;
}

uint64_t kx_now_ns(void)
{
	struct timespec now;

	/*
	 * Without a vDSO, as in User-mode Linux, this is a system call, which fail-nth can make
	 * fail once.
	 */
	while (clock_gettime(CLOCK_MONOTONIC, &now))
		;
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

uint64_t kx_deadline_ns(uint32_t after_ms)
{
	return kx_now_ns() + after_ms * 1000000ULL;
}

uint64_t kx_least_ns(uint32_t timeout_ms)
{
	return timeout_ms * 1000000ULL / 2;
}

uint32_t kx_slowness(void)
{
	const char *text = getenv("KXFER_SLOWNESS");

	return text && atoi(text) > 0 ? atoi(text) : 1;
}

void kx_sleep_ms(uint32_t ms)
{
	struct timespec end;
	uint64_t ns = kx_deadline_ns(ms);

	end.tv_sec = ns / 1000000000ULL;
	end.tv_nsec = ns % 1000000000ULL;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static void on_alarm(int signal)
{
}

int kx_alarms(uint32_t every_ms, int sa_flags)
{
	const struct timeval every = { .tv_sec = every_ms / 1000,
				       .tv_usec = every_ms % 1000 * 1000 };
	struct itimerval timer = { .it_interval = every, .it_value = every };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = sa_flags };

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL))
		return -errno;
	return 0;
}

void *kx_alloc(size_t length)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void kx_free(void *memory, size_t length)
{
	if (memory)
		munmap(memory, length);
}

int kx_become_tester(void)
{
	if (setgroups(0, NULL) || setresgid(KX_TESTER, KX_TESTER, KX_TESTER) ||
	    setresuid(KX_TESTER, KX_TESTER, KX_TESTER))
		return -errno;
	return 0;
}

/*
 * The hole is a mapping beyond the end of its file. An unmapped range would be reused by the
 * next mmap(), and User-mode Linux ignores PROT_NONE.
 */
void *kx_before_hole(size_t room)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t pages = (room + page - 1) / page * page;
	int fd = memfd_create("before a hole", MFD_CLOEXEC);
	char *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, pages))
		memory = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory + pages - room;
}

/* ---- calls ---- */

int kx_open(void)
{
	int fd = open(KX_NODE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kx_call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int kx_query(int fd, struct kxfer_query *query)
{
	*query = (struct kxfer_query) { .size = sizeof(*query) };
	return kx_call(fd, KXFER_QUERY, query);
}

int kx_nop(int fd)
{
	struct kxfer_nop cmd = { .size = sizeof(cmd) };

	return kx_call(fd, KXFER_NOP, &cmd);
}

int kx_info(int fd, uint32_t kind, void *records, uint32_t stride, uint32_t nr,
	    uint64_t *cursor)
{
	struct kxfer_info cmd = {
		.size = sizeof(cmd),
		.kind = kind,
		.stride = stride,
		.cursor = *cursor,
		.records = (uintptr_t)records,
		.nr = nr,
	};
	int ret = kx_call(fd, KXFER_INFO, &cmd);

	if (ret)
		return ret;
	*cursor = cmd.cursor;
	return cmd.nr;
}

int kx_region_add(int fd, const void *memory, uint64_t length, uint32_t flags,
		  uint32_t *region)
{
	struct kxfer_region_add cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.addr = (uintptr_t)memory,
		.length = length,
	};
	int ret = kx_call(fd, KXFER_REGION_ADD, &cmd);

	if (!ret)
		*region = cmd.region;
	return ret;
}

static int call_id(int fd, unsigned long call, uint32_t id)
{
	struct kxfer_id cmd = { .size = sizeof(cmd), .id = id };

	return kx_call(fd, call, &cmd);
}

int kx_region_del(int fd, uint32_t region)
{
	return call_id(fd, KXFER_REGION_DEL, region);
}

int kx_export_add_rules(int fd, uint32_t region, uint64_t offset, uint64_t length,
			uint32_t rights, const char *name,
			const struct kxfer_rule *rules, uint32_t nr_rules,
			uint32_t *export_id)
{
	struct kxfer_export_add cmd = {
		.size = sizeof(cmd),
		.region = region,
		.rights = rights,
		.offset = offset,
		.length = length,
		.rules = (uintptr_t)rules,
		.nr_rules = nr_rules,
		.rule_stride = nr_rules ? sizeof(*rules) : 0,
	};
	int ret;

	strncpy((char *)cmd.name, name, KXFER_NAME_MAX);
	ret = kx_call(fd, KXFER_EXPORT_ADD, &cmd);
	if (!ret)
		*export_id = cmd.export_id;
	return ret;
}

int kx_export_add(int fd, uint32_t region, uint64_t offset, uint64_t length,
		  uint32_t rights, const char *name, uint32_t *export_id)
{
	return kx_export_add_rules(fd, region, offset, length, rights, name, NULL, 0,
				   export_id);
}

int kx_export_del(int fd, uint32_t export_id)
{
	return call_id(fd, KXFER_EXPORT_DEL, export_id);
}

int kx_export_set(int fd, uint32_t export_id, uint64_t length,
		  const uint8_t *sha256, uint64_t *generation)
{
	struct kxfer_export_set cmd = {
		.size = sizeof(cmd),
		.export_id = export_id,
		.content.length = length,
	};
	int ret;

	if (sha256)
		memcpy(cmd.content.sha256, sha256, KXFER_SHA256_SIZE);
	ret = kx_call(fd, KXFER_EXPORT_SET, &cmd);
	if (!ret && generation)
		*generation = cmd.content.generation;
	return ret;
}

int kx_mailbox_add_rules(int fd, const char *name, uint32_t capacity, uint32_t max_bytes,
			 const struct kxfer_rule *rules, uint32_t nr_rules,
			 uint32_t *export_id)
{
	struct kxfer_mailbox_add cmd = {
		.size = sizeof(cmd),
		.rules = (uintptr_t)rules,
		.nr_rules = nr_rules,
		.rule_stride = nr_rules ? sizeof(*rules) : 0,
		.capacity = capacity,
		.max_bytes = max_bytes,
		.message_size = sizeof(struct kxfer_message),
	};
	int ret;

	strncpy((char *)cmd.name, name, KXFER_NAME_MAX);
	ret = kx_call(fd, KXFER_MAILBOX_ADD, &cmd);
	if (!ret)
		*export_id = cmd.export_id;
	return ret;
}

int kx_mailbox_add(int fd, const char *name, uint32_t capacity, uint32_t max_bytes,
		   uint32_t *export_id)
{
	return kx_mailbox_add_rules(fd, name, capacity, max_bytes, NULL, 0, export_id);
}

int kx_listen_add(int fd, struct kxfer_addr addr, uint32_t flags, uint64_t *listener)
{
	struct kxfer_listen_add cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.addr = addr,
	};
	int ret = kx_call(fd, KXFER_LISTEN_ADD, &cmd);

	if (!ret)
		*listener = cmd.listener;
	return ret;
}

int kx_listen_del(int fd, uint64_t listener)
{
	struct kxfer_listen_del cmd = { .size = sizeof(cmd), .listener = listener };

	return kx_call(fd, KXFER_LISTEN_DEL, &cmd);
}

#define KEYRING_OF_USER	(-4)	/* KEY_SPEC_USER_KEYRING */
#define KEYCTL_UNLINK	9
#define KEYCTL_SEARCH	10

static void describe_key(char *description, size_t room, const char *name)
{
	snprintf(description, room, KXFER_KEY_PREFIX "%s", name);
}

int kx_key_add(const char *name, uint8_t seed, uint32_t bytes)
{
	char description[128];
	uint8_t secret[256];

	describe_key(description, sizeof(description), name);
	memset(secret, seed, sizeof(secret));
	if (syscall(SYS_add_key, KXFER_KEY_TYPE, description, secret, (size_t)bytes,
		    KEYRING_OF_USER) < 0)
		return -errno;
	return 0;
}

void kx_key_del(const char *name)
{
	char description[128];
	long key;

	describe_key(description, sizeof(description), name);
	key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEYRING_OF_USER, KXFER_KEY_TYPE, description, 0);
	if (key > 0)
		syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEYRING_OF_USER, 0, 0);
}

int kx_listen_add_keys(int fd, struct kxfer_addr addr, const char *const *keys,
		       uint64_t *listener)
{
	struct kxfer_key_name names[KXFER_LISTEN_KEYS_MAX] = {};
	struct kxfer_listen_add cmd = {
		.size = sizeof(cmd),
		.addr = addr,
		.keys = (uintptr_t)names,
	};
	int ret;

	for (; *keys && cmd.nr_keys < KXFER_LISTEN_KEYS_MAX; keys++)
		strncpy((char *)names[cmd.nr_keys++].name, *keys, KXFER_NAME_MAX);
	ret = kx_call(fd, KXFER_LISTEN_ADD, &cmd);
	if (!ret)
		*listener = cmd.listener;
	return ret;
}

int kx_peer_open_key(int fd, struct kxfer_addr remote, const char *key, uint32_t *peer,
		     uint32_t *refusal)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = remote,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int ret;

	strncpy((char *)cmd.key, key, KXFER_NAME_MAX);
	ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);
	if (refusal)
		*refusal = cmd.refusal;
	if (!ret)
		*peer = cmd.peer;
	return ret;
}

int kx_peer_open(int fd, struct kxfer_addr remote, uint32_t *peer)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = remote,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int ret = kx_call(fd, KXFER_PEER_OPEN, &cmd);

	if (!ret)
		*peer = cmd.peer;
	return ret;
}

int kx_peer_close(int fd, uint32_t peer)
{
	return call_id(fd, KXFER_PEER_CLOSE, peer);
}

int kx_peer_list(int fd, uint32_t peer, struct kxfer_peer_export *exports, uint32_t nr,
		 uint64_t *cursor)
{
	struct kxfer_peer_list cmd = {
		.size = sizeof(cmd),
		.peer = peer,
		.timeout_ms = KX_TIMEOUT_MS,
		.cursor = *cursor,
		.exports = (uintptr_t)exports,
		.nr = nr,
	};
	int ret = kx_call(fd, KXFER_PEER_LIST, &cmd);

	if (ret)
		return ret;
	*cursor = cmd.cursor;
	return cmd.nr;
}

int kx_target_open(int fd, uint32_t peer, const char *name, uint32_t rights,
		   uint32_t *target)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = peer,
		.rights = rights,
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int ret;

	strncpy((char *)cmd.name, name, KXFER_NAME_MAX);
	ret = kx_call(fd, KXFER_TARGET_OPEN, &cmd);
	if (!ret)
		*target = cmd.target;
	return ret;
}

int kx_target_close(int fd, uint32_t target)
{
	return call_id(fd, KXFER_TARGET_CLOSE, target);
}

int kx_target_info(int fd, uint32_t target, uint64_t min_generation, uint32_t timeout_ms,
		   struct kxfer_content *content)
{
	struct kxfer_target_info cmd = {
		.size = sizeof(cmd),
		.target = target,
		.timeout_ms = timeout_ms,
		.min_generation = min_generation,
	};
	int ret = kx_call(fd, KXFER_TARGET_INFO, &cmd);

	if (!ret && content)
		*content = cmd.content;
	return ret;
}

int kx_submit(int fd, const struct kxfer_job *jobs, uint32_t nr)
{
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = nr,
		.stride = sizeof(*jobs),
	};
	int ret = kx_call(fd, KXFER_SUBMIT, &cmd);

	return ret ? ret : (int)cmd.accepted;
}

int kx_reap(int fd, struct kxfer_completion *completions, uint32_t nr, uint32_t wait,
	    uint32_t wait_ms)
{
	struct kxfer_reap cmd = {
		.size = sizeof(cmd),
		.completions = (uintptr_t)completions,
		.nr = nr,
		.wait = wait,
		.deadline_ns = wait && wait_ms ? kx_deadline_ns(wait_ms) : 0,
	};
	int ret = kx_call(fd, KXFER_REAP, &cmd);

	return ret ? ret : (int)cmd.reaped;
}

int kx_cancel(int fd, uint64_t user_data, uint32_t flags)
{
	struct kxfer_cancel cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.user_data = user_data,
	};
	int ret = kx_call(fd, KXFER_CANCEL, &cmd);

	return ret ? ret : (int)cmd.cancelled;
}

int kx_event_reap(int fd, struct kxfer_event *events, uint32_t nr, uint32_t wait_ms)
{
	struct kxfer_event_reap cmd = {
		.size = sizeof(cmd),
		.events = (uintptr_t)events,
		.nr = nr,
		.wait = wait_ms ? 1 : 0,
		.deadline_ns = wait_ms ? kx_deadline_ns(wait_ms) : 0,
	};
	int ret = kx_call(fd, KXFER_EVENT_REAP, &cmd);

	return ret ? ret : (int)cmd.nr;
}

/* Submits one job and takes its completion, the only one. */
static int run_job(int fd, const struct kxfer_job *job)
{
	struct kxfer_completion completion = { .status = -EPROTO };
	int ret = kx_submit(fd, job, 1);

	if (ret < 0)
		return ret;
	ret = kx_reap(fd, &completion, 1, 1, KX_TIMEOUT_MS);
	if (ret < 0)
		return ret;
	if (ret != 1 || completion.user_data != job->user_data)
		return -EPROTO;
	return completion.status;
}

int kx_transfer(int fd, uint32_t op, uint32_t region, uint64_t region_offset,
		uint32_t target, uint64_t target_offset, uint64_t length)
{
	struct kxfer_job job = {
		.op = op,
		.region = region,
		.target = target,
		.region_offset = region_offset,
		.target_offset = target_offset,
		.length = length,
		.user_data = kx_now_ns(),
	};

	return run_job(fd, &job);
}

int kx_atomic(int fd, uint32_t op, uint32_t region, uint64_t region_offset, uint32_t target,
	      uint64_t target_offset, uint64_t compare_add, uint64_t swap)
{
	struct kxfer_job job = {
		.op = op,
		.region = region,
		.target = target,
		.region_offset = region_offset,
		.target_offset = target_offset,
		.length = 8,
		.user_data = kx_now_ns(),
		.compare_add = compare_add,
		.swap = swap,
	};

	return run_job(fd, &job);
}

int kx_notify(int fd, uint32_t target, uint64_t cookie)
{
	struct kxfer_job job = {
		.op = KXFER_OP_NOTIFY,
		.target = target,
		.user_data = kx_now_ns(),
		.cookie = cookie,
	};

	return run_job(fd, &job);
}

int kx_send(int fd, uint32_t region, uint64_t offset, uint64_t length, uint32_t target)
{
	struct kxfer_job job = {
		.op = KXFER_OP_SEND,
		.region = length ? region : 0,
		.target = target,
		.region_offset = length ? offset : 0,
		.length = length,
		.user_data = kx_now_ns(),
	};

	return run_job(fd, &job);
}

int kx_recv(int fd, uint32_t mailbox, uint32_t region, uint64_t offset, uint64_t length)
{
	struct kxfer_job job = {
		.op = KXFER_OP_RECV,
		.region = region,
		.target = mailbox,
		.region_offset = offset,
		.length = length,
		.user_data = kx_now_ns(),
	};

	return run_job(fd, &job);
}

/* ---- counters ---- */

static int read_counters(int fd, struct kxfer_info_counter *counters, uint32_t nr)
{
	uint64_t cursor = 0;

	return kx_info(fd, KXFER_INFO_COUNTERS, counters, sizeof(*counters), nr, &cursor);
}

uint64_t kx_counter(int fd, const char *name)
{
	struct kxfer_info_counter counters[128];
	int nr = read_counters(fd, counters, 128), i;

	for (i = 0; i < nr; i++)
		if (!strcmp((const char *)counters[i].name, name))
			return counters[i].value;
	return UINT64_MAX;
}

int kx_live_take(int fd, struct kx_live *live)
{
	struct kxfer_info_counter counters[128];
	int nr = read_counters(fd, counters, 128), i;

	live->nr = 0;
	if (nr < 0)
		return nr;
	for (i = 0; i < nr && live->nr < KX_LIVE_MAX; i++)
		if (!strncmp((const char *)counters[i].name, "live_", 5))
			live->counters[live->nr++] = counters[i];
	return 0;
}

/* Fewer than before is fine: objects of an earlier test may have ended. */
static const char *first_difference(int fd, const struct kx_live *before)
{
	static char text[128];
	struct kx_live now;
	uint32_t i;

	if (kx_live_take(fd, &now) || now.nr != before->nr)
		return "counters cannot be read";
	for (i = 0; i < now.nr; i++) {
		if (now.counters[i].value <= before->counters[i].value)
			continue;
		snprintf(text, sizeof(text), "%s is %llu, was %llu",
			 (const char *)now.counters[i].name,
			 (unsigned long long)now.counters[i].value,
			 (unsigned long long)before->counters[i].value);
		return text;
	}
	return NULL;
}

const char *kx_live_wait(int fd, const struct kx_live *before, uint32_t ms)
{
	const char *difference = NULL;

	kx_wait_until(!(difference = first_difference(fd, before)), ms);
	return difference;
}

/* ---- a server with a client ---- */

static int open_server(struct kx_pair *pair, size_t length, uint32_t rights)
{
	uint32_t flags = rights & ~KXFER_RIGHT_READ ? KXFER_REGION_F_WRITE : 0;
	int ret;

	pair->server = kx_open();
	if (pair->server < 0)
		return pair->server;
	ret = kx_listen_add(pair->server, kx_addr(kx_address(), KXFER_PORT), 0,
			    &pair->listener);
	if (ret || !length)
		return ret;
	pair->server_memory = kx_alloc(length);
	if (!pair->server_memory)
		return -ENOMEM;
	ret = kx_region_add(pair->server, pair->server_memory, length, flags,
			    &pair->server_region);
	if (ret)
		return ret;
	return kx_export_add(pair->server, pair->server_region, 0, length, rights,
			     pair->name, &pair->export_id);
}

static int open_client(struct kx_pair *pair, size_t length)
{
	int ret;

	pair->client = kx_open();
	if (pair->client < 0)
		return pair->client;
	ret = kx_peer_open(pair->client, kx_addr(kx_address(), KXFER_PORT), &pair->peer);
	if (ret || !length)
		return ret;
	pair->client_memory = kx_alloc(length);
	if (!pair->client_memory)
		return -ENOMEM;
	ret = kx_region_add(pair->client, pair->client_memory, length,
			    KXFER_REGION_F_WRITE, &pair->client_region);
	if (ret)
		return ret;
	return kx_target_open(pair->client, pair->peer, pair->name, 0, &pair->target);
}

int kx_pair_open(struct kx_pair *pair, size_t length, uint32_t rights)
{
	int ret;

	*pair = (struct kx_pair) { .server = -1, .client = -1, .length = length };
	snprintf(pair->name, sizeof(pair->name), "pair-%d", (int)getpid());
	ret = open_server(pair, length, rights);
	if (!ret)
		ret = open_client(pair, length);
	return ret;
}

void kx_pair_close(struct kx_pair *pair)
{
	if (pair->client >= 0)
		close(pair->client);
	if (pair->server >= 0)
		close(pair->server);
	kx_free(pair->client_memory, pair->length);
	kx_free(pair->server_memory, pair->length);
	pair->client = -1;
	pair->server = -1;
	pair->client_memory = NULL;
	pair->server_memory = NULL;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Many processes that reach store on another machine by several of its addresses. Each is quiet
 * for a while, then writes its own slot of the memory there, reads it back and compares, again and
 * again.
 *
 *	crowd PROCESSES QUIET-SECONDS SECONDS ADDRESS...
 *
 * All begin at once. KXFER_STORE is what the names of store end with. Printed is one line of JSON:
 * the time until the last process could submit, the pairs of jobs that succeeded, and what failed.
 * Status 0: all processes came through, and no byte was wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "store.h"

#define SKIPPED		4	/* as kselftest */
#define BEGIN_MS	120000	/* in which all have opened their peers */
#define OPEN_MS		60000	/* of one call */

/**
 * struct member - what one process has done; shared with the first one
 * @opened_ns: when it could submit, or 0
 * @error: -errno of what ended it early
 */
struct member {
	uint64_t opened_ns;
	uint64_t ok;
	uint64_t corrupt;
	int error;
};

static struct {
	bool begin;
	struct member members[STORE_SLOTS];
} *crowd;

static void fill(uint64_t *slot, uint64_t stamp)
{
	size_t i;

	for (i = 0; i < STORE_SLOT / 8; i++)
		slot[i] = stamp * 0x9e3779b97f4a7c15ULL + i;
}

static int reach(int fd, const char *address, uint32_t *target)
{
	struct kxfer_peer_open open = {
		.size = sizeof(open),
		.remote = kx_addr(address, KXFER_PORT),
		.timeout_ms = OPEN_MS,
	};
	char name[KXFER_NAME_MAX + 1];

	store_name(name, STORE_NAME);
	return kx_call(fd, KXFER_PEER_OPEN, &open) ?:
	       kx_target_open(fd, open.peer, name, 0, target);
}

/* One half of @memory goes there, the other half is what comes back. */
static int go_there_and_back(int fd, uint32_t region, uint32_t target, uint32_t slot,
			     uint64_t *memory, struct member *member)
{
	uint64_t there = offsetof(struct store, slots) + (uint64_t)slot * STORE_SLOT;
	int ret;

	fill(memory, (uint64_t)slot << 32 | member->ok);
	ret = kx_transfer(fd, KXFER_OP_WRITE, region, 0, target, there, STORE_SLOT) ?:
	      kx_transfer(fd, KXFER_OP_READ, region, STORE_SLOT, target, there, STORE_SLOT);
	if (ret)
		return ret;
	member->ok++;
	member->corrupt += !!memcmp(memory, memory + STORE_SLOT / 8, STORE_SLOT);
	return 0;
}

static int take_part(uint32_t slot, const char *address, uint32_t quiet, uint32_t seconds,
		     struct member *member)
{
	uint64_t *memory = kx_alloc(2 * STORE_SLOT), end_ns;
	uint32_t region, target;
	int fd = kx_open(), ret;

	if (fd < 0 || !memory)
		return fd < 0 ? fd : -ENOMEM;
	ret = kx_region_add(fd, memory, 2 * STORE_SLOT, KXFER_REGION_F_WRITE, &region);
	if (!kx_wait_until(__atomic_load_n(&crowd->begin, __ATOMIC_ACQUIRE), BEGIN_MS))
		return -ETIMEDOUT;
	ret = ret ?: reach(fd, address, &target);
	if (ret)
		return ret;
	member->opened_ns = kx_now_ns();
	kx_sleep_ms(quiet * 1000);
	end_ns = kx_deadline_ns(seconds * 1000);
	while (!ret && kx_now_ns() < end_ns)
		ret = go_there_and_back(fd, region, target, slot, memory, member);
	return ret;
}

static void print_figures(uint32_t nr, int nr_addresses, uint64_t began_ns)
{
	uint64_t ok = 0, corrupt = 0, last_ns = began_ns;
	uint32_t i, failed = 0;

	for (i = 0; i < nr; i++) {
		const struct member *member = &crowd->members[i];

		ok += member->ok;
		corrupt += member->corrupt;
		failed += member->error || !member->ok;
		if (member->opened_ns > last_ns)
			last_ns = member->opened_ns;
		if (member->error)
			printf("process %u: %s\n", i, strerror(-member->error));
	}
	printf("{\"processes\": %u, \"addresses\": %d, \"set_up_ms\": %" PRIu64 ", \"ok\": %" PRIu64
	       ", \"corrupt\": %" PRIu64 ", \"failed\": %u}\n", nr, nr_addresses,
	       (last_ns - began_ns) / 1000000, ok, corrupt, failed);
}

int main(int argc, char **argv)
{
	uint32_t nr, quiet, seconds, i;
	uint64_t began_ns;
	int status, bad = 0;

	if (argc < 5) {
		printf("# SKIP no other machine\n");
		return SKIPPED;
	}
	nr = strtoul(argv[1], NULL, 10);
	quiet = strtoul(argv[2], NULL, 10);
	seconds = strtoul(argv[3], NULL, 10);
	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (crowd == MAP_FAILED || !nr || nr > STORE_SLOTS)
		return 1;
	for (i = 0; i < nr; i++) {
		struct member *member = &crowd->members[i];
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid) {
			member->error = take_part(i, argv[4 + i % (argc - 4)], quiet, seconds,
						  member);
			_exit(member->error || member->corrupt);
		}
	}
	began_ns = kx_now_ns();
	__atomic_store_n(&crowd->begin, true, __ATOMIC_RELEASE);
	while (wait(&status) > 0)
		bad |= status;
	print_figures(nr, argc - 4, began_ns);
	return !!bad;
}

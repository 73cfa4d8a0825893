// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to make memory reachable for a peer and to withdraw it, compared with
 * ibv_reg_mr() and ibv_dereg_mr() of the same pages.
 *
 * usage: register MIB ROUNDS
 *
 * Both scattered 4 KiB pages and huge pages are measured. A round is A B B A. It prints lines
 * "KIND.FIGURE ROUND NANOSECONDS":
 *
 *	add.kxfer	region_add, export_add, first_grant together: REGION_ADD, EXPORT_ADD,
 *			and TARGET_OPEN of a peer on a link that is up
 *	remove.kxfer	target_close, export_del, region_del together
 *	add.verbs	ibv_reg_mr()
 *	remove.verbs	ibv_dereg_mr()
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rigs/rig.h"

#define MIB		(1024u * 1024)
#define MAX_MIB		1024

static struct rig rig;
static struct ibv_pd *pd;
static const char *kind;

static void die(const char *what, int error)
{
	fprintf(stderr, "register: %s: %s\n", what, strerror(-error));
	exit(1);
}

static void check(const char *what, int ret)
{
	if (ret)
		die(what, ret < 0 ? ret : -ret);
}

static void tell(const char *figure, uint32_t round, uint64_t value)
{
	printf("%s.%s %u %llu\n", kind, figure, round, (unsigned long long)value);
}

/* Prints the time of a step. Return: when the step ended. */
static uint64_t step(const char *figure, uint32_t round, uint64_t began, int ret)
{
	uint64_t ended = kx_now_ns();

	check(figure, ret);
	tell(figure, round, ended - began);
	return ended;
}

static int target_open(uint32_t *target, uint64_t length)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = rig.peer,
		.timeout_ms = RIG_WAIT_MS,
	};
	int ret;

	strcpy((char *)cmd.name, "registered");
	ret = kx_call(rig.client, KXFER_TARGET_OPEN, &cmd);
	*target = cmd.target;
	return ret ?: cmd.length == length ? 0 : -EMSGSIZE;
}

static void by_kxfer(const struct buffer *buffer, uint32_t round)
{
	uint32_t region, export_id, target;
	uint64_t began, at;

	began = kx_now_ns();
	at = step("region_add", round, began,
		  kx_region_add(rig.server, buffer->bytes, buffer->length,
				KXFER_REGION_F_WRITE, &region));
	at = step("export_add", round, at,
		  kx_export_add(rig.server, region, 0, buffer->length, KXFER_RIGHT_ALL,
				"registered", &export_id));
	at = step("first_grant", round, at, target_open(&target, buffer->length));
	tell("add.kxfer", round, at - began);
	began = kx_now_ns();
	at = step("target_close", round, began, kx_target_close(rig.client, target));
	at = step("export_del", round, at, kx_export_del(rig.server, export_id));
	at = step("region_del", round, at, kx_region_del(rig.server, region));
	tell("remove.kxfer", round, at - began);
}

static void by_verbs(const struct buffer *buffer, uint32_t round)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	uint64_t began = kx_now_ns();
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer->bytes, buffer->length, access);

	began = step("add.verbs", round, began, mr ? 0 : -errno);
	step("remove.verbs", round, began, -ibv_dereg_mr(mr));
}

static uint32_t nr_segments(const struct buffer *buffer)
{
	struct kxfer_region_add cmd = {
		.size = sizeof(cmd),
		.flags = KXFER_REGION_F_WRITE,
		.addr = (uintptr_t)buffer->bytes,
		.length = buffer->length,
	};

	check("REGION_ADD", kx_call(rig.server, KXFER_REGION_ADD, &cmd));
	check("REGION_DEL", kx_region_del(rig.server, cmd.region));
	return cmd.nr_segments;
}

static void measure(enum buffer_kind memory, const char *name, size_t length,
		    uint32_t rounds)
{
	struct buffer buffer;
	uint32_t i;

	kind = name;
	check("memory", buffer_alloc(&buffer, memory, length));
	tell("segments", 0, nr_segments(&buffer));
	for (i = 0; i < rounds; i++) {
		by_kxfer(&buffer, i);
		by_verbs(&buffer, i);
		by_verbs(&buffer, i);
		by_kxfer(&buffer, i);
	}
	buffer_free(&buffer);
}

static void open_device(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && *devices ? ibv_open_device(*devices) : NULL;

	if (!context)
		die("no RDMA device for user space", -ENODEV);
	pd = ibv_alloc_pd(context);
	check("ibv_alloc_pd", pd ? 0 : -errno);
	ibv_free_device_list(devices);
}

int main(int argc, char **argv)
{
	struct rig_options options = { .length = 4096 };
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int mib = argc == 3 ? atoi(argv[1]) : 0;
	int rounds = argc == 3 ? atoi(argv[2]) : 0;

	if (mib < 1 || mib > MAX_MIB || rounds < 1)
		die("usage: register MIB ROUNDS", -EINVAL);
	setlinebuf(stdout);
	setrlimit(RLIMIT_MEMLOCK, &limit);
	open_device();
	check("server", rig_open(&rig, &options));
	measure(BUFFER_SCATTERED, "scattered", (size_t)mib * MIB, rounds);
	measure(BUFFER_THP, "thp", (size_t)mib * MIB, rounds);
	rig_close(&rig);
	return 0;
}

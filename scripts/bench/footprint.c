// SPDX-License-Identifier: GPL-2.0
/*
 * How much kernel memory a session without a ring needs.
 *
 * usage: footprint N ROUND
 *
 * N sessions of one process are brought up together, step by step. After each step the program
 * reads the kernel's own counts of slabs, vmalloc and per-CPU memory. Pages of the process do
 * not count. It prints lines "FIGURE ROUND BYTES", where BYTES is for one session:
 *
 *	open	the open file
 *	region	a region; all regions are of one page of the process
 *	peer	a peer; all peers share one link
 *	target	a target; includes the exporter's side, on the same node
 *	jobs.1	memory kept after one READ
 *	jobs.16	after 16 READs at once
 *	jobs.32	after 32 READs at once
 *	export	an export of the region
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rigs/rig.h"

#define MAX_SESSIONS	2048
#define PAGE		4096
#define MAX_JOBS	32
#define BARE		16	/* sessions that make each slab and table before counting begins */

static struct rig server;
static struct rig rigs[MAX_SESSIONS + BARE];
static uint8_t page[PAGE] __attribute__((aligned(PAGE)));

static void die(const char *what, int error)
{
	fprintf(stderr, "footprint: %s: %s\n", what, strerror(-error));
	exit(1);
}

/* Reading the file makes the kernel add up what each CPU has counted for itself. */
static void refresh_counts(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_RDONLY | O_CLOEXEC);
	char nothing;

	if (fd < 0 || read(fd, &nothing, 1) < 0)
		die("stat_refresh", -errno);
	close(fd);
}

static long kernel_kib(void)
{
	static const char *const names[] = { "Slab:", "VmallocUsed:", "Percpu:" };
	uint32_t found = 0, i;
	char line[128];
	long sum = 0;
	FILE *file;

	refresh_counts();
	file = fopen("/proc/meminfo", "re");
	while (file && fgets(line, sizeof(line), file)) {
		for (i = 0; i < 3; i++) {
			if (strncmp(line, names[i], strlen(names[i])))
				continue;
			sum += atol(line + strlen(names[i]));
			found++;
		}
	}
	if (!file || found != 3)
		die("/proc/meminfo", -EIO);
	fclose(file);
	return sum;
}

/* ---- steps ---- */

static int do_open(struct rig *rig)
{
	*rig = server;
	rig->client = kx_open();
	return rig->client < 0 ? rig->client : 0;
}

static int do_region(struct rig *rig)
{
	return kx_region_add(rig->client, page, PAGE, KXFER_REGION_F_WRITE, &rig->here_region);
}

static int do_peer(struct rig *rig)
{
	return kx_peer_open(rig->client, kx_addr(kx_address(), KXFER_PORT), &rig->peer);
}

static int do_target(struct rig *rig)
{
	return kx_target_open(rig->client, rig->peer, rig->name, 0, &rig->target);
}

static int do_jobs(struct rig *rig, int nr)
{
	struct kxfer_completion done[MAX_JOBS];
	struct kxfer_job jobs[MAX_JOBS];
	int i, ret;

	for (i = 0; i < nr; i++)
		jobs[i] = rig_job(rig, KXFER_OP_READ, i * 64, i * 64, 64);
	ret = kx_submit(rig->client, jobs, nr);
	if (ret == nr)
		ret = kx_reap(rig->client, done, nr, nr, RIG_WAIT_MS);
	if (ret != nr)
		return ret < 0 ? ret : -EAGAIN;
	for (i = 0; i < nr && !done[i].status; i++)
		;
	return i < nr ? done[i].status : 0;
}

static int do_job(struct rig *rig)
{
	return do_jobs(rig, 1);
}

static int do_16_jobs(struct rig *rig)
{
	return do_jobs(rig, 16);
}

static int do_32_jobs(struct rig *rig)
{
	return do_jobs(rig, 32);
}

static int do_export(struct rig *rig)
{
	char name[KXFER_NAME_MAX + 1];

	snprintf(name, sizeof(name), "footprint-%u", (uint32_t)(rig - rigs));
	return kx_export_add(rig->client, rig->here_region, 0, PAGE, KXFER_RIGHT_ALL, name,
			     &rig->export_id);
}

static const struct step {
	const char *name;
	int (*make)(struct rig *rig);
} steps[] = {
	{ "open", do_open },
	{ "region", do_region },
	{ "peer", do_peer },
	{ "target", do_target },
	{ "jobs.1", do_job },
	{ "jobs.16", do_16_jobs },
	{ "jobs.32", do_32_jobs },
	{ "export", do_export },
};

#define NR_STEPS	(sizeof(steps) / sizeof(steps[0]))

static void make(const struct step *step, struct rig *first, uint32_t nr)
{
	uint32_t i;
	int ret;

	for (i = 0; i < nr; i++) {
		ret = step->make(&first[i]);
		if (ret)
			die(step->name, ret);
	}
}

static void tell(const char *figure, uint32_t round, long kib, uint32_t nr)
{
	printf("%s %u %.0f\n", figure, round, kib * 1024.0 / nr);
}

static void measure(uint32_t nr, uint32_t round)
{
	long before, after;
	uint32_t i;

	for (i = 0; i < NR_STEPS; i++)
		make(&steps[i], rigs + nr, BARE);
	before = kernel_kib();
	for (i = 0; i < NR_STEPS; i++) {
		make(&steps[i], rigs, nr);
		after = kernel_kib();
		tell(steps[i].name, round, after - before, nr);
		before = after;
	}
}

int main(int argc, char **argv)
{
	struct rig_options options = { .length = PAGE };
	struct rlimit memlock = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit files = { 2 * MAX_SESSIONS, 2 * MAX_SESSIONS };
	int nr = argc == 3 ? atoi(argv[1]) : 0;
	int fd, ret;

	if (nr < 1 || nr > MAX_SESSIONS)
		die("usage: footprint N ROUND", -EINVAL);
	setlinebuf(stdout);
	setrlimit(RLIMIT_MEMLOCK, &memlock);
	setrlimit(RLIMIT_NOFILE, &files);
	/* Let the table of open files grow before anything is counted. */
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, MAX_SESSIONS + 2 * BARE);
	if (fd < 0)
		die("F_DUPFD", -errno);
	close(fd);
	memset(rigs, 1, sizeof(rigs));
	ret = rig_open_server(&server, &options);
	if (ret)
		die("server", ret);
	measure(nr, atoi(argv[2]));
	return 0;
}

// SPDX-License-Identifier: MIT
/* Coverage: kcov; see coverage.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcov.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coverage.h"
#include "op.h"

#define NR_WORDS	(256u * 1024)	/* entries of a sequence; later ones are lost */
#define MAP_BITS	16

static uint64_t *traces[NR_THREADS];
static int files[NR_THREADS];
static uint8_t map[1u << MAP_BITS];
static uint32_t nr_edges;

/** coverage_make() - prepare a thread that will call coverage_start(). Return: 0 or -errno */
int coverage_make(uint32_t thread)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	void *memory;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, KCOV_INIT_TRACE, NR_WORDS))
		return -errno;
	memory = mmap(NULL, NR_WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	files[thread] = fd;
	traces[thread] = memory;
	return 0;
}

/** coverage_start() - start tracing the calling thread */
void coverage_start(uint32_t thread)
{
	if (traces[thread] && ioctl(files[thread], KCOV_ENABLE, KCOV_TRACE_PC))
		traces[thread] = NULL;
}

static uint32_t edge(uint64_t from, uint64_t to)
{
	return ((from >> 1 ^ to) * 0x9e3779b97f4a7c15ull) >> (64 - MAP_BITS);
}

static uint32_t collect(uint64_t *trace)
{
	uint64_t n = __atomic_load_n(&trace[0], __ATOMIC_RELAXED), before = 0, i;
	uint32_t new = 0;

	for (i = 1; i <= n && i < NR_WORDS; i++) {
		uint8_t *seen = &map[edge(before, trace[i])];

		new += !*seen;
		*seen = 1;
		before = trace[i];
	}
	__atomic_store_n(&trace[0], 0, __ATOMIC_RELAXED);
	return new;
}

/** coverage_collect() - number of edges since the last call that were never taken before */
uint32_t coverage_collect(void)
{
	uint32_t new = 0, i;

	for (i = 0; i < NR_THREADS; i++)
		if (traces[i])
			new += collect(traces[i]);
	nr_edges += new;
	return new;
}

bool coverage_there(void)
{
	return traces[0];
}

/** coverage_edges() - edges seen so far; two with the same hash count as one */
uint32_t coverage_edges(void)
{
	return nr_edges;
}

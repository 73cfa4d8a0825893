// SPDX-License-Identifier: MIT
/* Ring: see ring.h. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "rigs/ring.h"

int kx_ring_make(int fd, uint32_t entries, int eventfd, struct kx_ring *ring)
{
	struct kxfer_cq_ring cmd = { .size = sizeof(cmd), .entries = entries };
	int ret;

	if (eventfd != KX_NO_EVENTFD) {
		cmd.flags = KXFER_CQ_RING_F_EVENTFD;
		cmd.eventfd = eventfd;
	}
	ret = kx_call(fd, KXFER_CQ_RING, &cmd);
	if (!ret)
		*ring = (struct kx_ring) {
			.entries = entries,
			.offset = cmd.offset,
			.bytes = cmd.bytes,
		};
	return ret;
}

static void *map(int fd, uint64_t offset, uint64_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

int kx_ring_map(int fd, struct kx_ring *ring)
{
	void *shared = map(fd, ring->offset, ring->bytes);

	if (shared == MAP_FAILED)
		return -errno;
	ring->shared = shared;
	ring->slots = (struct kxfer_completion *)(ring->shared + 1);
	return 0;
}

int kx_ring_open(int fd, uint32_t entries, int eventfd, struct kx_ring *ring)
{
	return kx_ring_make(fd, entries, eventfd, ring) ?: kx_ring_map(fd, ring);
}

void kx_ring_unmap(struct kx_ring *ring)
{
	/* munmap() may need memory itself, so fail_nth can make it fail once. */
	if (ring->shared && munmap(ring->shared, ring->bytes))
		munmap(ring->shared, ring->bytes);
	ring->shared = NULL;
}

uint32_t kx_ring_unread(const struct kx_ring *ring)
{
	return __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE) - ring->shared->head;
}

uint32_t kx_ring_take(struct kx_ring *ring, struct kxfer_completion *completions,
		      uint32_t nr)
{
	uint32_t head = ring->shared->head, unread = kx_ring_unread(ring), i;

	if (!unread) {
		/* Orders the last store of head before the load that finds nothing. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		unread = kx_ring_unread(ring);
	}
	if (nr > unread)
		nr = unread;
	for (i = 0; i < nr; i++) {
		struct kxfer_completion *slot = &ring->slots[(head + i) & ring->shared->mask];

		completions[i] = *slot;
		/* A second read of this slot, before it is written again, gets nonsense. */
		memset(slot, 0xa5, sizeof(*slot));
	}
	__atomic_store_n(&ring->shared->head, head + nr, __ATOMIC_RELEASE);
	return nr;
}

int kx_ring_wait(int fd, uint32_t wait, uint32_t wait_ms)
{
	return kx_reap(fd, NULL, 0, wait, wait_ms);
}

int kx_sq_make(int fd, uint32_t entries, struct kx_sq *sq)
{
	struct kxfer_sq_ring cmd = { .size = sizeof(cmd), .entries = entries };
	int ret = kx_call(fd, KXFER_SQ_RING, &cmd);

	if (!ret)
		*sq = (struct kx_sq) {
			.entries = entries,
			.offset = cmd.offset,
			.bytes = cmd.bytes,
		};
	return ret;
}

int kx_sq_map(int fd, struct kx_sq *sq)
{
	void *shared = map(fd, sq->offset, sq->bytes);

	if (shared == MAP_FAILED)
		return -errno;
	sq->shared = shared;
	sq->jobs = (struct kxfer_job *)(sq->shared + 1);
	return 0;
}

int kx_sq_open(int fd, uint32_t entries, struct kx_sq *sq)
{
	return kx_sq_make(fd, entries, sq) ?: kx_sq_map(fd, sq);
}

void kx_sq_unmap(struct kx_sq *sq)
{
	if (sq->shared && munmap(sq->shared, sq->bytes))
		munmap(sq->shared, sq->bytes);
	sq->shared = NULL;
}

uint32_t kx_sq_put(struct kx_sq *sq, const struct kxfer_job *jobs, uint32_t nr)
{
	uint32_t tail = sq->shared->tail, i;
	uint32_t room = sq->entries - (tail - __atomic_load_n(&sq->shared->head, __ATOMIC_ACQUIRE));

	if (nr > room)
		nr = room;
	for (i = 0; i < nr; i++)
		sq->jobs[(tail + i) & sq->shared->mask] = jobs[i];
	__atomic_store_n(&sq->shared->tail, tail + nr, __ATOMIC_RELEASE);
	return nr;
}

int kx_enter(int fd, unsigned long wait)
{
	int ret = ioctl(fd, KXFER_ENTER, wait);

	return ret < 0 ? -errno : ret;
}

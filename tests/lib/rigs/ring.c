// SPDX-License-Identifier: MIT
/* Ring: see ring.h. */
#include <string.h>
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

int kx_ring_map(int fd, struct kx_ring *ring)
{
	void *shared = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    ring->offset);

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

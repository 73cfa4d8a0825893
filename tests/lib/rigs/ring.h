/* SPDX-License-Identifier: MIT */
/* Ring: makes, maps and reads a session's completion ring like a program. */
#ifndef KXFER_TEST_RING_H
#define KXFER_TEST_RING_H

#include "harness/kxfer_test.h"

/**
 * struct kx_ring - a completion ring
 * @shared: mapping of the ring, or NULL
 * @slots: completions, after the header in @shared
 */
struct kx_ring {
	struct kxfer_ring *shared;
	struct kxfer_completion *slots;
	uint32_t entries;
	uint64_t offset;
	uint64_t bytes;
};

#define KX_NO_EVENTFD	(-1)

/* kx_ring_open() makes and maps the ring. Return: 0 or -errno. */
int kx_ring_make(int fd, uint32_t entries, int eventfd, struct kx_ring *ring);
int kx_ring_map(int fd, struct kx_ring *ring);
int kx_ring_open(int fd, uint32_t entries, int eventfd, struct kx_ring *ring);
void kx_ring_unmap(struct kx_ring *ring);

uint32_t kx_ring_unread(const struct kx_ring *ring);
/*
 * Takes up to @nr completions without a system call; one thread at a time. Leaves nonsense in
 * their slots. If it returns 0, the caller may sleep on the eventfd. Return: completions taken.
 */
uint32_t kx_ring_take(struct kx_ring *ring, struct kxfer_completion *completions,
		      uint32_t nr);
/* Waits until @wait completions are unread. Return: 0 or -errno. */
int kx_ring_wait(int fd, uint32_t wait, uint32_t wait_ms);

#define test_cmd_ring_make(...)		ASSERT_EQ(0, kx_ring_make(__VA_ARGS__))
#define test_err_ring_make(err, ...)	EXPECT_EQ(-(err), kx_ring_make(__VA_ARGS__))
#define test_cmd_ring_open(...)		ASSERT_EQ(0, kx_ring_open(__VA_ARGS__))
#define test_cmd_ring_wait(...)		ASSERT_EQ(0, kx_ring_wait(__VA_ARGS__))
#define test_err_ring_wait(err, ...)	EXPECT_EQ(-(err), kx_ring_wait(__VA_ARGS__))

#endif /* KXFER_TEST_RING_H */

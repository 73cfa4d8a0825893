/* SPDX-License-Identifier: MIT */
/* Ring: makes, maps and uses a session's completion and submission rings like a program. */
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

/**
 * struct kx_sq - a submission ring
 * @shared: mapping of the ring, or NULL
 * @jobs: slots of jobs, after the header in @shared
 */
struct kx_sq {
	struct kxfer_sq *shared;
	struct kxfer_job *jobs;
	uint32_t entries;
	uint64_t offset;
	uint64_t bytes;
};

/* kx_sq_open() makes and maps the ring. Return: 0 or -errno. */
int kx_sq_make(int fd, uint32_t entries, struct kx_sq *sq);
int kx_sq_map(int fd, struct kx_sq *sq);
int kx_sq_open(int fd, uint32_t entries, struct kx_sq *sq);
void kx_sq_unmap(struct kx_sq *sq);

/* Writes as many jobs as there is room for, and moves tail. Return: jobs written. */
uint32_t kx_sq_put(struct kx_sq *sq, const struct kxfer_job *jobs, uint32_t nr);
/* KXFER_ENTER. Return: jobs accepted or -errno. */
int kx_enter(int fd, unsigned long wait);

#define test_cmd_ring_make(...)		ASSERT_EQ(0, kx_ring_make(__VA_ARGS__))
#define test_err_ring_make(err, ...)	EXPECT_EQ(-(err), kx_ring_make(__VA_ARGS__))
#define test_cmd_ring_open(...)		ASSERT_EQ(0, kx_ring_open(__VA_ARGS__))
#define test_cmd_ring_wait(...)		ASSERT_EQ(0, kx_ring_wait(__VA_ARGS__))
#define test_err_ring_wait(err, ...)	EXPECT_EQ(-(err), kx_ring_wait(__VA_ARGS__))

#define test_cmd_sq_make(...)		ASSERT_EQ(0, kx_sq_make(__VA_ARGS__))
#define test_err_sq_make(err, ...)	EXPECT_EQ(-(err), kx_sq_make(__VA_ARGS__))
#define test_cmd_sq_open(...)		ASSERT_EQ(0, kx_sq_open(__VA_ARGS__))
#define test_cmd_enter(nr, ...)		ASSERT_EQ((int)(nr), kx_enter(__VA_ARGS__))
#define test_err_enter(err, ...)	EXPECT_EQ(-(err), kx_enter(__VA_ARGS__))

#endif /* KXFER_TEST_RING_H */

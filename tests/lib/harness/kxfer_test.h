/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the C tests: for each call of /dev/kxfer one function, which returns 0 (or a count)
 * or a negative errno, and with kselftest_harness.h a pair of macros, so that a line of a test
 * reads as a sentence:
 *
 *	test_cmd_region_add(fd, memory, length, 0, &region);
 *	test_err_region_add(EFAULT, fd, NULL, length, 0, &region);
 *
 * It also has sessions, a listening server with a client (struct kx_pair), counters by name,
 * and bounded waits. No function waits for ever. pattern.h checks data.
 */
#ifndef KXFER_TEST_H
#define KXFER_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <linux/kxfer.h>
#include <linux/kxfer_bench.h>

#define KX_NODE		"/dev/kxfer"
#define KX_TIMEOUT_MS	10000

/* ---- addresses, time, memory ---- */

/* addresses of the test device, from the environment or the default ones */
const char *kx_address(void);
const char *kx_address6(void);
const char *kx_provider(void);	/* "rxe", "siw" or "" */
const char *kx_device(void);	/* name of the RDMA device, or "" */
bool kx_has_atomics(void);	/* a known property of the provider */
bool kx_maps_dma(void);		/* the device has a DMA device: siw-dma */

struct kxfer_addr kx_addr(const char *text, uint16_t port);
/* A listening port for this process, below 32768: rdma_cm gives higher ports to callers. */
uint16_t kx_own_port(void);

uint64_t kx_now_ns(void);			/* CLOCK_MONOTONIC */
uint64_t kx_deadline_ns(uint32_t after_ms);	/* now + after_ms */
/*
 * The shortest time that a timeout of the module takes by CLOCK_MONOTONIC. The module waits by
 * jiffies, which catch up at once after a busy host has delayed them.
 */
uint64_t kx_least_ns(uint32_t timeout_ms);
/* How many times longer an operation may take on a checking kernel: KXFER_SLOWNESS or 1. */
uint32_t kx_slowness(void);
void kx_sleep_ms(uint32_t ms);
/*
 * Sends SIGALRM repeatedly; 0: stop. A single signal could come before the call that it is
 * meant to interrupt. Return: 0 or -errno.
 */
int kx_alarms(uint32_t every_ms, int sa_flags);

/* Evaluates @cond until it holds, for at most @ms; yields whether it held. */
#define kx_wait_until(cond, ms) ({					\
	uint64_t kx_end__ = kx_deadline_ns(ms);				\
	bool kx_held__;							\
									\
	while (!(kx_held__ = (cond)) && kx_now_ns() < kx_end__)		\
		kx_sleep_ms(2);						\
	kx_held__ || (cond);						\
})

/* Anonymous private memory, page-aligned and touched; NULL without memory. */
void *kx_alloc(size_t length);
void kx_free(void *memory, size_t length);

/* Becomes the user `tester`, without capabilities. Return: 0 or -errno. */
int kx_become_tester(void);
/* @room bytes of memory; the page after them cannot be accessed. */
void *kx_before_hole(size_t room);

#define KX_TESTER	1000	/* uid and gid */

/* ---- calls: return 0 or -errno unless said otherwise ---- */

int kx_open(void);				/* opens a session. Return: fd or -errno */
int kx_call(int fd, unsigned long cmd, void *arg);

int kx_query(int fd, struct kxfer_query *query);
int kx_nop(int fd);
/* Return: records stored or -errno; advances *cursor. */
int kx_info(int fd, uint32_t kind, void *records, uint32_t stride, uint32_t nr,
	    uint64_t *cursor);

int kx_region_add(int fd, const void *memory, uint64_t length, uint32_t flags,
		  uint32_t *region);
int kx_region_del(int fd, uint32_t region);
int kx_export_add(int fd, uint32_t region, uint64_t offset, uint64_t length,
		  uint32_t rights, const char *name, uint32_t *export_id);
int kx_export_add_rules(int fd, uint32_t region, uint64_t offset, uint64_t length,
			uint32_t rights, const char *name,
			const struct kxfer_rule *rules, uint32_t nr_rules,
			uint32_t *export_id);
int kx_export_del(int fd, uint32_t export_id);
int kx_export_set(int fd, uint32_t export_id, uint64_t length,
		  const uint8_t *sha256, uint64_t *generation);

int kx_mailbox_add(int fd, const char *name, uint32_t capacity, uint32_t max_bytes,
		   uint32_t *export_id);
int kx_mailbox_add_rules(int fd, const char *name, uint32_t capacity, uint32_t max_bytes,
			 const struct kxfer_rule *rules, uint32_t nr_rules,
			 uint32_t *export_id);

int kx_listen_add(int fd, struct kxfer_addr addr, uint32_t flags, uint64_t *listener);
int kx_listen_del(int fd, uint64_t listener);
/*
 * Adds a secret of @bytes bytes, generated from @seed, to the keyring of the user. It lasts
 * until it is deleted. Return: 0 or -errno.
 */
int kx_key_add(const char *name, uint8_t seed, uint32_t bytes);
void kx_key_del(const char *name);
/* @keys: ends with NULL. */
int kx_listen_add_keys(int fd, struct kxfer_addr addr, const char *const *keys,
		       uint64_t *listener);
int kx_peer_open_key(int fd, struct kxfer_addr remote, const char *key, uint32_t *peer,
		     uint32_t *refusal);
int kx_peer_open(int fd, struct kxfer_addr remote, uint32_t *peer);
int kx_peer_close(int fd, uint32_t peer);
/* Return: records stored or -errno. */
int kx_peer_list(int fd, uint32_t peer, struct kxfer_peer_export *exports, uint32_t nr,
		 uint64_t *cursor);
int kx_target_open(int fd, uint32_t peer, const char *name, uint32_t rights,
		   uint32_t *target);
int kx_target_close(int fd, uint32_t target);
int kx_target_info(int fd, uint32_t target, uint64_t min_generation, uint32_t timeout_ms,
		   struct kxfer_content *content);

/* Does not wait. Return: jobs accepted or -errno. */
int kx_submit(int fd, const struct kxfer_job *jobs, uint32_t nr);
/* Return: completions stored or -errno; @wait_ms 0 with @wait: no deadline. */
int kx_reap(int fd, struct kxfer_completion *completions, uint32_t nr, uint32_t wait,
	    uint32_t wait_ms);
/* Return: jobs cancelled or -errno. */
int kx_cancel(int fd, uint64_t user_data, uint32_t flags);
/* Return: events stored or -errno; @wait_ms 0: does not wait. */
int kx_event_reap(int fd, struct kxfer_event *events, uint32_t nr, uint32_t wait_ms);

/* Runs one job, waiting KX_TIMEOUT_MS at most. Return: its status, or -errno of the call. */
int kx_transfer(int fd, uint32_t op, uint32_t region, uint64_t region_offset,
		uint32_t target, uint64_t target_offset, uint64_t length);
int kx_notify(int fd, uint32_t target, uint64_t cookie);
int kx_send(int fd, uint32_t region, uint64_t offset, uint64_t length, uint32_t target);
/* Runs a RECV of a mailbox; the message is stored in the region. */
int kx_recv(int fd, uint32_t mailbox, uint32_t region, uint64_t offset, uint64_t length);
/* Runs an atomic; @swap: new value of a COMPARE_SWAP, else 0. */
int kx_atomic(int fd, uint32_t op, uint32_t region, uint64_t region_offset, uint32_t target,
	      uint64_t target_offset, uint64_t compare_add, uint64_t swap);

/* ---- counters ---- */

/* Value of a counter of INFO_COUNTERS; UINT64_MAX if there is none of that name. */
uint64_t kx_counter(int fd, const char *name);

#define KX_LIVE_MAX	32

/* Reads all live_* counters, to detect leftovers. */
struct kx_live {
	uint32_t nr;
	struct kxfer_info_counter counters[KX_LIVE_MAX];
};

int kx_live_take(int fd, struct kx_live *live);
/* Waits until the counters are as in @before. Return: name of the first that differs, or NULL. */
const char *kx_live_wait(int fd, const struct kx_live *before, uint32_t ms);

/* ---- a server with a client ---- */

/**
 * struct kx_pair - a session that listens and exports, and one that reaches it
 * @server: session with listener, region and export
 * @client: session with region, peer and target
 *
 * Both regions have @length bytes. The target has all rights of the export.
 */
struct kx_pair {
	int server;
	int client;
	uint64_t listener;
	uint32_t server_region;
	uint32_t export_id;
	uint32_t client_region;
	uint32_t peer;
	uint32_t target;
	size_t length;
	uint8_t *server_memory;
	uint8_t *client_memory;
	char name[KXFER_NAME_MAX + 1];
};

/* Opens a pair on kx_address():KXFER_PORT; @length 0: sessions, listener and peer only. */
int kx_pair_open(struct kx_pair *pair, size_t length, uint32_t rights);
void kx_pair_close(struct kx_pair *pair);

/* ---- a call that has to succeed, or to fail with an errno ---- */

#define test_cmd_query(...)		ASSERT_EQ(0, kx_query(__VA_ARGS__))
#define test_err_query(err, ...)	EXPECT_EQ(-(err), kx_query(__VA_ARGS__))
#define test_cmd_nop(...)		ASSERT_EQ(0, kx_nop(__VA_ARGS__))
#define test_err_nop(err, ...)		EXPECT_EQ(-(err), kx_nop(__VA_ARGS__))
#define test_cmd_info(nr, ...)		ASSERT_EQ(nr, kx_info(__VA_ARGS__))
#define test_err_info(err, ...)		EXPECT_EQ(-(err), kx_info(__VA_ARGS__))
#define test_cmd_region_add(...)	ASSERT_EQ(0, kx_region_add(__VA_ARGS__))
#define test_err_region_add(err, ...)	EXPECT_EQ(-(err), kx_region_add(__VA_ARGS__))
#define test_cmd_region_del(...)	ASSERT_EQ(0, kx_region_del(__VA_ARGS__))
#define test_err_region_del(err, ...)	EXPECT_EQ(-(err), kx_region_del(__VA_ARGS__))
#define test_cmd_export_add(...)	ASSERT_EQ(0, kx_export_add(__VA_ARGS__))
#define test_err_export_add(err, ...)	EXPECT_EQ(-(err), kx_export_add(__VA_ARGS__))
#define test_cmd_export_add_rules(...)	ASSERT_EQ(0, kx_export_add_rules(__VA_ARGS__))
#define test_err_export_add_rules(err, ...) EXPECT_EQ(-(err), kx_export_add_rules(__VA_ARGS__))
#define test_cmd_export_del(...)	ASSERT_EQ(0, kx_export_del(__VA_ARGS__))
#define test_err_export_del(err, ...)	EXPECT_EQ(-(err), kx_export_del(__VA_ARGS__))
#define test_cmd_export_set(...)	ASSERT_EQ(0, kx_export_set(__VA_ARGS__))
#define test_err_export_set(err, ...)	EXPECT_EQ(-(err), kx_export_set(__VA_ARGS__))
#define test_cmd_mailbox_add(...)	ASSERT_EQ(0, kx_mailbox_add(__VA_ARGS__))
#define test_err_mailbox_add(err, ...)	EXPECT_EQ(-(err), kx_mailbox_add(__VA_ARGS__))
#define test_cmd_listen_add(...)	ASSERT_EQ(0, kx_listen_add(__VA_ARGS__))
#define test_err_listen_add(err, ...)	EXPECT_EQ(-(err), kx_listen_add(__VA_ARGS__))
#define test_cmd_listen_del(...)	ASSERT_EQ(0, kx_listen_del(__VA_ARGS__))
#define test_err_listen_del(err, ...)	EXPECT_EQ(-(err), kx_listen_del(__VA_ARGS__))
#define test_cmd_peer_open(...)		ASSERT_EQ(0, kx_peer_open(__VA_ARGS__))
#define test_err_peer_open(err, ...)	EXPECT_EQ(-(err), kx_peer_open(__VA_ARGS__))
#define test_cmd_peer_close(...)	ASSERT_EQ(0, kx_peer_close(__VA_ARGS__))
#define test_err_peer_close(err, ...)	EXPECT_EQ(-(err), kx_peer_close(__VA_ARGS__))
#define test_cmd_peer_list(nr, ...)	ASSERT_EQ(nr, kx_peer_list(__VA_ARGS__))
#define test_err_peer_list(err, ...)	EXPECT_EQ(-(err), kx_peer_list(__VA_ARGS__))
#define test_cmd_target_open(...)	ASSERT_EQ(0, kx_target_open(__VA_ARGS__))
#define test_err_target_open(err, ...)	EXPECT_EQ(-(err), kx_target_open(__VA_ARGS__))
#define test_cmd_target_close(...)	ASSERT_EQ(0, kx_target_close(__VA_ARGS__))
#define test_err_target_close(err, ...)	EXPECT_EQ(-(err), kx_target_close(__VA_ARGS__))
#define test_cmd_target_info(...)	ASSERT_EQ(0, kx_target_info(__VA_ARGS__))
#define test_err_target_info(err, ...)	EXPECT_EQ(-(err), kx_target_info(__VA_ARGS__))
#define test_cmd_submit(nr, ...)	ASSERT_EQ(nr, kx_submit(__VA_ARGS__))
#define test_err_submit(err, ...)	EXPECT_EQ(-(err), kx_submit(__VA_ARGS__))
#define test_cmd_reap(nr, ...)		ASSERT_EQ(nr, kx_reap(__VA_ARGS__))
#define test_err_reap(err, ...)		EXPECT_EQ(-(err), kx_reap(__VA_ARGS__))
#define test_cmd_cancel(nr, ...)	ASSERT_EQ(nr, kx_cancel(__VA_ARGS__))
#define test_err_cancel(err, ...)	EXPECT_EQ(-(err), kx_cancel(__VA_ARGS__))
#define test_cmd_event_reap(nr, ...)	ASSERT_EQ(nr, kx_event_reap(__VA_ARGS__))
#define test_err_event_reap(err, ...)	EXPECT_EQ(-(err), kx_event_reap(__VA_ARGS__))
/* A job that has to succeed, or to end with a status. */
#define test_cmd_transfer(...)		ASSERT_EQ(0, kx_transfer(__VA_ARGS__))
#define test_err_transfer(err, ...)	EXPECT_EQ(-(err), kx_transfer(__VA_ARGS__))
#define test_cmd_notify(...)		ASSERT_EQ(0, kx_notify(__VA_ARGS__))
#define test_err_notify(err, ...)	EXPECT_EQ(-(err), kx_notify(__VA_ARGS__))
#define test_cmd_atomic(...)		ASSERT_EQ(0, kx_atomic(__VA_ARGS__))
#define test_err_atomic(err, ...)	EXPECT_EQ(-(err), kx_atomic(__VA_ARGS__))
#define test_cmd_send(...)		ASSERT_EQ(0, kx_send(__VA_ARGS__))
#define test_err_send(err, ...)		EXPECT_EQ(-(err), kx_send(__VA_ARGS__))
#define test_cmd_recv(...)		ASSERT_EQ(0, kx_recv(__VA_ARGS__))
#define test_err_recv(err, ...)		EXPECT_EQ(-(err), kx_recv(__VA_ARGS__))

#endif /* KXFER_TEST_H */

// SPDX-License-Identifier: GPL-2.0
/*
 * Memory and a mailbox for programs on another machine (probe, crowd): exports struct store, and
 * counts the messages and events that come. Runs until it is killed; a new one has another id and
 * empty memory.
 *
 * KXFER_HERE is the address to listen on. KXFER_STORE is added to the names of the exports, so that
 * several machines can each have a store.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/kxfer_test.h"
#include "store.h"

#define SKIPPED		4	/* as kselftest */
#define NR_RECVS	64
#define WAIT_MS		60000

/** struct post - what a RECV brings */
struct post {
	struct kxfer_message message;
	struct letter letter;
};

static struct store *store;
static struct post *posts;

static int publish(int fd, uint32_t *mailbox, uint32_t *region)
{
	char name[KXFER_NAME_MAX + 1], inbox[KXFER_NAME_MAX + 1];
	uint32_t stored, export_id;
	uint64_t listener;
	int ret;

	store_name(name, STORE_NAME);
	store_name(inbox, STORE_INBOX);
	ret = kx_region_add(fd, store, sizeof(*store), KXFER_REGION_F_WRITE, &stored) ?:
	      kx_export_add(fd, stored, 0, sizeof(*store), KXFER_RIGHT_ALL, name, &export_id) ?:
	      kx_region_add(fd, posts, NR_RECVS * sizeof(*posts), KXFER_REGION_F_WRITE,
			    region) ?:
	      kx_mailbox_add(fd, inbox, STORE_INBOX_MAX, sizeof(struct letter), mailbox);
	/* A listener that stays may be there already. */
	kx_listen_add(fd, kx_addr(getenv("KXFER_HERE"), KXFER_PORT), 0, &listener);
	return ret;
}

static int receive(int fd, uint32_t mailbox, uint32_t region, uint64_t slot)
{
	struct kxfer_job job = {
		.op = KXFER_OP_RECV,
		.target = mailbox,
		.region = region,
		.region_offset = slot * sizeof(*posts),
		.length = sizeof(*posts),
		.user_data = slot,
	};
	int ret = kx_submit(fd, &job, 1);

	return ret == 1 ? 0 : ret < 0 ? ret : -EAGAIN;
}

/* The highest number before stays, so that each late one is counted. */
static void count(enum store_series series, uint64_t number)
{
	static uint64_t highest[STORE_NR_SERIES];

	if (number >= STORE_NUMBERS)
		return;
	store->counts[series][number]++;
	if (number < highest[series])
		__atomic_fetch_add(&store->reordered, 1, __ATOMIC_RELAXED);
	else
		highest[series] = number;
}

/* Takes events, beside the messages. */
static void *count_events(void *session)
{
	struct kxfer_event events[NR_RECVS];
	int fd = *(int *)session, nr, i;

	do {
		nr = kx_event_reap(fd, events, NR_RECVS, WAIT_MS);
		for (i = 0; i < nr; i++)
			count(STORE_NOTICES, events[i].cookie);
	} while (nr >= 0 || nr == -ETIMEDOUT || nr == -EINTR);
	printf("store: no events: %s\n", strerror(-nr));
	return NULL;
}

static int serve(int fd, uint32_t mailbox, uint32_t region)
{
	struct kxfer_completion done[NR_RECVS];
	uint64_t slot;
	int ret = 0, nr, i;

	for (slot = 0; slot < NR_RECVS && !ret; slot++)
		ret = receive(fd, mailbox, region, slot);
	while (!ret) {
		nr = kx_reap(fd, done, NR_RECVS, 1, WAIT_MS);
		if (nr == -ETIMEDOUT || nr == -EINTR)
			continue;
		if (nr < 0)
			return nr;
		for (i = 0; i < nr && !ret; i++) {
			if (done[i].status)
				return done[i].status;
			count(STORE_LETTERS, posts[done[i].user_data].letter.number);
			ret = receive(fd, mailbox, region, done[i].user_data);
		}
	}
	return ret;
}

int main(void)
{
	uint32_t mailbox, region;
	pthread_t counter;
	int fd, ret;

	if (!getenv("KXFER_HERE")) {
		printf("# SKIP no other machine: KXFER_HERE is not set\n");
		return SKIPPED;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	store = kx_alloc(sizeof(*store));
	posts = kx_alloc(NR_RECVS * sizeof(*posts));
	fd = kx_open();
	if (!store || !posts || fd < 0)
		return 1;
	store->id = kx_now_ns() | 1;
	ret = publish(fd, &mailbox, &region) ?:
	      -pthread_create(&counter, NULL, count_events, &fd);
	if (!ret) {
		printf("store: ready\n");
		ret = serve(fd, mailbox, region);
	}
	printf("store: %s\n", strerror(-ret));
	return 1;
}

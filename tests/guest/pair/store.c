// SPDX-License-Identifier: GPL-2.0
/*
 * Memory and a mailbox for a program on another machine (probe): exports struct store, and counts
 * the messages that come. Runs until it is killed; a new one has another id and empty memory.
 *
 * KXFER_HERE is the address to listen on.
 */
#include <errno.h>
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
	uint32_t stored, export_id;
	uint64_t listener;
	int ret;

	ret = kx_region_add(fd, store, sizeof(*store), KXFER_REGION_F_WRITE, &stored) ?:
	      kx_export_add(fd, stored, 0, sizeof(*store), KXFER_RIGHT_ALL, STORE_NAME,
			    &export_id) ?:
	      kx_region_add(fd, posts, NR_RECVS * sizeof(*posts), KXFER_REGION_F_WRITE,
			    region) ?:
	      kx_mailbox_add(fd, STORE_INBOX, STORE_INBOX_MAX, sizeof(struct letter), mailbox);
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

/* The highest number before stays, so that each late message is counted. */
static void count(const struct letter *letter)
{
	static uint64_t highest;

	if (letter->number >= STORE_LETTERS)
		return;
	store->letters[letter->number]++;
	if (letter->number < highest)
		store->reordered++;
	else
		highest = letter->number;
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
		if (nr < 0)
			return nr;
		for (i = 0; i < nr && !ret; i++) {
			if (done[i].status)
				return done[i].status;
			count(&posts[done[i].user_data].letter);
			ret = receive(fd, mailbox, region, done[i].user_data);
		}
	}
	return ret;
}

int main(void)
{
	uint32_t mailbox, region;
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
	ret = publish(fd, &mailbox, &region);
	if (!ret) {
		printf("store: ready\n");
		ret = serve(fd, mailbox, region);
	}
	printf("store: %s\n", strerror(-ret));
	return 1;
}

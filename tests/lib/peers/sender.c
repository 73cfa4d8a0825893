// SPDX-License-Identifier: GPL-2.0
/*
 * A session with a dedicated connection; see sender.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peers/sender.h"

int sender_begin(struct sender *sender, const struct responder_manners *manners)
{
	int ret;

	responder_close(&sender->responder);
	ret = responder_open(&sender->responder, manners);
	sender->open = (struct kxfer_dedicated_open) {
		.size = sizeof(sender->open),
		.flags = KXFER_DEDICATED_F_WRITE,
		.remote = kx_addr(kx_address(), sender->responder.port),
		.timeout_ms = KX_TIMEOUT_MS,
		.length = SENDER_LENGTH,
		.op = KXFER_OP_SEND,
		.receives = SENDER_RECEIVES,
		.slots = SENDER_SLOTS,
		.bytes = SENDER_BYTES,
		.transport = sender->transport,
	};
	sender->bench = (struct kxfer_bench) {
		.size = sizeof(sender->bench),
		.op = KXFER_OP_SEND,
		.region = sender->region,
		.depth = 1,
		.list = 1,
		.signal = 1,
		.length = SENDER_BYTES,
		.stride = SENDER_STRIDE,
		.count = 20,
		.time_limit_ms = SENDER_LONG_MS,
	};
	return ret;
}

int sender_open(struct sender *sender, uint32_t transport)
{
	uint32_t i;
	int ret;

	*sender = (struct sender) { .fd = kx_open(), .transport = transport };
	if (sender->fd < 0)
		return sender->fd;
	sender->links = kx_counter(sender->fd, "live_links");
	sender->mrs = kx_counter(sender->fd, "live_mrs");
	sender->here = kx_alloc(SENDER_LENGTH);
	if (!sender->here)
		return -ENOMEM;
	for (i = 0; i < SENDER_LENGTH; i++)
		sender->here[i] = i * 7 + i / 256;
	ret = kx_region_add(sender->fd, sender->here, SENDER_LENGTH, KXFER_REGION_F_WRITE,
			    &sender->region);
	return ret ?: sender_begin(sender, NULL);
}

bool sender_links_are_gone(const struct sender *sender, int fd)
{
	return kx_wait_until(kx_counter(fd, "live_links") <= sender->links, 1000);
}

const char *sender_close(struct sender *sender)
{
	const char *left = NULL;
	int fd;

	close(sender->fd);
	responder_close(&sender->responder);
	fd = kx_open();
	if (!sender_links_are_gone(sender, fd))
		left = "its link is left";
	else if (kx_counter(fd, "live_mrs") > sender->mrs)
		left = "MRs are left";
	close(fd);
	return left;
}

int sender_dedicate(struct sender *sender)
{
	int ret = kx_call(sender->fd, KXFER_DEDICATED_OPEN, &sender->open);

	sender->bench.dedicated = sender->open.dedicated;
	return ret;
}

int sender_run(struct sender *sender)
{
	return kx_call(sender->fd, KXFER_BENCH, &sender->bench);
}

int sender_look(struct sender *sender, struct kxfer_dedicated_status *status)
{
	*status = (struct kxfer_dedicated_status) {
		.size = sizeof(*status),
		.dedicated = sender->open.dedicated,
	};
	return kx_call(sender->fd, KXFER_DEDICATED_STATUS, status);
}

int sender_hang_up(struct sender *sender)
{
	struct kxfer_id id = { .size = sizeof(id), .id = sender->open.dedicated };

	return kx_call(sender->fd, KXFER_DEDICATED_CLOSE, &id);
}

bool sender_settled(struct sender *sender, struct kxfer_dedicated_status *status)
{
	return !sender_look(sender, status) && status->received == status->sent;
}

bool sender_landed(const struct sender *sender)
{
	uint32_t slot;

	for (slot = 0; slot < SENDER_SLOTS; slot++)
		if (memcmp(sender->here + slot * SENDER_STRIDE,
			   sender->responder.memory + slot * SENDER_STRIDE, SENDER_BYTES))
			return false;
	return true;
}

bool sender_is_alone(struct sender *sender)
{
	return kx_wait_until(!sender->responder.id, KX_TIMEOUT_MS);
}

/* Work requests that a message takes. */
static uint32_t wrs_of(const struct kxfer_bench *bench)
{
	if (bench->memory != KXFER_BENCH_MEMORY_MR_EACH)
		return 1;
	return bench->invalidate == KXFER_BENCH_INVALIDATE_REMOTE ? 2 : 3;
}

/* @sent: number of messages, including those of earlier runs. */
static const char *try_run(struct sender *sender, uint64_t sent)
{
	struct kxfer_dedicated_status status = {};
	int ret = sender_run(sender);
	static char wrong[200];

	if (!ret && sender->bench.nr_wr == wrs_of(&sender->bench) &&
	    sender->bench.operations == sender->bench.count &&
	    kx_wait_until(sender_settled(sender, &status), KX_TIMEOUT_MS) &&
	    status.sent == sent && !status.wrong && sender->responder.received == sent)
		return NULL;
	snprintf(wrong, sizeof(wrong),
		 "a run %u deep of %llu ended with %d: %llu of %u work requests; of %llu messages %llu sent, %llu received, %llu wrong",
		 sender->bench.depth, (unsigned long long)sender->bench.count, ret,
		 (unsigned long long)sender->bench.operations, sender->bench.nr_wr,
		 (unsigned long long)sent, (unsigned long long)status.sent,
		 (unsigned long long)sender->responder.received,
		 (unsigned long long)status.wrong);
	return wrong;
}

const char *sender_try(struct sender *sender)
{
	static const struct { uint32_t depth, list, signal; } ways[] = {
		{ 1, 1, 1 }, { SENDER_SLOTS, 1, 1 }, { SENDER_SLOTS, 4, 4 }, { 5, 2, 3 },
	};
	const char *wrong = NULL;
	uint64_t sent = 0;
	uint32_t i;

	for (i = 0; !wrong && i < sizeof(ways) / sizeof(*ways); i++) {
		sender->bench.depth = ways[i].depth;
		sender->bench.list = ways[i].list;
		sender->bench.signal = ways[i].signal;
		sender->bench.warm_up = 3;
		sender->bench.count = 10 * SENDER_RECEIVES + i;
		sent += 3 + 10 * SENDER_RECEIVES + i;
		wrong = try_run(sender, sent);
	}
	if (!wrong && !sender_landed(sender))
		wrong = "a slot has not the bytes that were sent";
	return wrong;
}

// SPDX-License-Identifier: MIT
/*
 * Post: a session with a mailbox, and a session that sends to it; see post.h.
 */
#include <stdio.h>
#include <unistd.h>

#include "rigs/post.h"

static int open_server(struct post *post, uint32_t capacity, uint32_t max_bytes)
{
	int ret;

	post->server = kx_open();
	if (post->server < 0)
		return post->server;
	ret = kx_listen_add(post->server, kx_addr(kx_address(), KXFER_PORT), 0,
			    &post->listener);
	/* Another listener exists already. */
	if (ret == -EADDRINUSE)
		ret = 0;
	if (!ret)
		ret = kx_region_add(post->server, post->inbox, POST_BYTES,
				    KXFER_REGION_F_WRITE, &post->inbox_region);
	if (!ret)
		ret = kx_mailbox_add(post->server, post->name, capacity, max_bytes,
				     &post->mailbox);
	return ret;
}

static int open_client(struct post *post)
{
	int ret;

	post->client = kx_open();
	if (post->client < 0)
		return post->client;
	/* Not writable, because sending only reads it. */
	ret = kx_region_add(post->client, post->outbox, POST_BYTES, 0, &post->outbox_region);
	if (!ret)
		ret = kx_peer_open(post->client, kx_addr(kx_address(), KXFER_PORT),
				   &post->peer);
	if (!ret)
		ret = kx_target_open(post->client, post->peer, post->name, KXFER_RIGHT_SEND,
				     &post->target);
	return ret;
}

int post_open(struct post *post, uint32_t capacity, uint32_t max_bytes)
{
	static unsigned int nr;
	int ret;

	*post = (struct post) { .server = -1, .client = -1 };
	snprintf(post->name, sizeof(post->name), "post-%d-%u", (int)getpid(), nr++);
	post->inbox = kx_alloc(POST_BYTES);
	post->outbox = kx_alloc(POST_BYTES);
	if (!post->inbox || !post->outbox)
		return -ENOMEM;
	ret = open_server(post, capacity, max_bytes);
	return ret ? ret : open_client(post);
}

void post_close(struct post *post)
{
	if (post->client >= 0)
		close(post->client);
	if (post->server >= 0)
		close(post->server);
	kx_free(post->inbox, POST_BYTES);
	kx_free(post->outbox, POST_BYTES);
	*post = (struct post) { .server = -1, .client = -1 };
}

/** post_send() - SEND the first bytes of a place; the user_data is the place */
struct kxfer_job post_send(const struct post *post, uint32_t place, uint32_t bytes)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_SEND,
		.region = bytes ? post->outbox_region : 0,
		.target = post->target,
		.region_offset = bytes ? (uint64_t)place * POST_PLACE : 0,
		.length = bytes,
		.user_data = place,
	};
}

/** post_recv() - a RECV into a place */
struct kxfer_job post_recv(const struct post *post, uint32_t place)
{
	return (struct kxfer_job) {
		.op = KXFER_OP_RECV,
		.region = post->inbox_region,
		.target = post->mailbox,
		.region_offset = (uint64_t)place * POST_PLACE,
		.length = POST_PLACE,
		.user_data = place,
	};
}

/** post_message() - the message that a RECV stored in a place; the payload follows it */
const struct kxfer_message *post_message(const struct post *post, uint32_t place)
{
	return (const struct kxfer_message *)(post->inbox + (size_t)place * POST_PLACE);
}

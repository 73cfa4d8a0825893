// SPDX-License-Identifier: MIT
/*
 * A peer that scribbles: exports a memory and changes a byte of each block of it, again and again,
 * until it is ended. What fio has written there and verifies must be found damaged.
 *
 * usage: kxfer-scribble ADDRESS NAME BYTES
 *
 * It prints "listening" when peers can reach it. The change is at a place within the block that
 * moves on with each round, so it hits headers and payload of fio's blocks.
 */
#include <kxfer/kxfer.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK		512
#define ROUND_US	2000

static int complain(const char *what, int error)
{
	fprintf(stderr, "kxfer-scribble: %s: %s\n", what, strerror(-error));
	return 1;
}

static void scribble_for_ever(volatile unsigned char *memory, size_t bytes)
{
	size_t place = 0, at;

	for (;;) {
		for (at = place; at < bytes; at += BLOCK)
			memory[at] ^= 0x5a;
		place = (place + 1) % BLOCK;
		usleep(ROUND_US);
	}
}

static int publish(struct kxfer_session *session, const char *address, const char *name,
		   void *memory, size_t bytes)
{
	struct kxfer_export_add box = { .rights = KXFER_RIGHT_READ | KXFER_RIGHT_WRITE };
	struct sockaddr_in socket_address = { .sin_family = AF_INET };
	struct kxfer_addr listen_address;
	uint64_t listener;
	int ret;

	if (inet_pton(AF_INET, address, &socket_address.sin_addr) != 1)
		return complain(address, -EINVAL);
	kxfer_addr_from_sockaddr((struct sockaddr *)&socket_address, &listen_address);
	ret = kxfer_region_create(session, memory, bytes, KXFER_REGION_F_WRITE, &box.region);
	if (ret < 0)
		return complain("region", ret);
	box.length = bytes;
	snprintf((char *)box.name, sizeof(box.name), "%s", name);
	ret = kxfer_export_create(session, &box);
	if (ret < 0)
		return complain(name, ret);
	ret = kxfer_listener_create(session, &listen_address, 0, &listener);
	return ret < 0 ? complain(address, ret) : 0;
}

int main(int argc, char **argv)
{
	struct kxfer_session *session;
	size_t bytes;
	void *memory;
	int ret;

	if (argc != 4) {
		fprintf(stderr, "usage: kxfer-scribble ADDRESS NAME BYTES\n");
		return 2;
	}
	bytes = strtoul(argv[3], NULL, 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return complain("memory", -ENOMEM);
	ret = kxfer_session_open(NULL, &session);
	if (ret < 0)
		return complain(KXFER_DEVICE_PATH, ret);
	if (publish(session, argv[1], argv[2], memory, bytes))
		return 1;
	printf("listening\n");
	fflush(stdout);
	scribble_for_ever(memory, bytes);
}

// SPDX-License-Identifier: MIT
/*
 * The part of rdma(8) that the tests use, for a guest that has no libraries: it makes
 * and removes soft RDMA devices, and shows the network interface of one.
 *
 * usage: rdma link add NAME type TYPE netdev NETDEV
 *        rdma link del NAME
 *        rdma link show NAME/PORT
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

union message {
	struct nlmsghdr header;
	char bytes[16384];
};

/* Request and result of find_device(). */
struct device {
	const char *name;
	bool found;
	uint32_t index;
};

static void start(union message *request, int command, int flags)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_len = NLMSG_HDRLEN;
	request->header.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	request->header.nlmsg_flags = NLM_F_REQUEST | flags;
}

static void put(union message *request, int type, const void *value, size_t length)
{
	struct nlattr *attribute = (void *)(request->bytes + request->header.nlmsg_len);

	if (request->header.nlmsg_len + NLA_HDRLEN + NLA_ALIGN(length) > sizeof(*request)) {
		fprintf(stderr, "rdma: an argument is too long\n");
		exit(2);
	}
	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + length;
	memcpy((char *)attribute + NLA_HDRLEN, value, length);
	request->header.nlmsg_len += NLA_ALIGN(attribute->nla_len);
}

static void put_string(union message *request, int type, const char *value)
{
	put(request, type, value, strlen(value) + 1);
}

static void put_u32(union message *request, int type, uint32_t value)
{
	put(request, type, &value, sizeof(value));
}

/* Return: the value of an attribute, or NULL */
static const void *get(const struct nlmsghdr *answer, int type)
{
	const char *at = NLMSG_DATA(answer), *end = (const char *)answer + answer->nlmsg_len;

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attribute = (const void *)at;

		if (attribute->nla_len < NLA_HDRLEN)
			break;
		if ((attribute->nla_type & NLA_TYPE_MASK) == type)
			return at + NLA_HDRLEN;
		at += NLA_ALIGN(attribute->nla_len);
	}
	return NULL;
}

/*
 * Sends a request and passes each answer to take(), up to the acknowledgment or the end of the
 * dump. Return: 0 or -errno
 */
static int ask(int fd, const union message *request,
	       void (*take)(const struct nlmsghdr *answer, void *to), void *to)
{
	union message answers;
	struct nlmsghdr *answer;
	ssize_t n;

	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		n = recv(fd, &answers, sizeof(answers), 0);
		if (n < 0)
			return -errno;
		answer = &answers.header;
		for (; NLMSG_OK(answer, n); answer = NLMSG_NEXT(answer, n)) {
			if (answer->nlmsg_type == NLMSG_DONE)
				return 0;
			if (answer->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(answer))->error;
			take(answer, to);
		}
	}
}

static void ignore(const struct nlmsghdr *answer, void *to) {}

static void compare_name(const struct nlmsghdr *answer, void *to)
{
	const char *name = get(answer, RDMA_NLDEV_ATTR_DEV_NAME);
	const uint32_t *index = get(answer, RDMA_NLDEV_ATTR_DEV_INDEX);
	struct device *device = to;

	if (name && index && !strcmp(name, device->name)) {
		device->found = true;
		device->index = *index;
	}
}

static int find_device(int fd, const char *name, uint32_t *index)
{
	struct device device = { .name = name };
	union message request;
	int ret;

	start(&request, RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	ret = ask(fd, &request, compare_name, &device);
	*index = device.index;
	return ret ?: device.found ? 0 : -ENODEV;
}

static int add_link(int fd, const char *name, const char *type, const char *netdev)
{
	union message request;

	start(&request, RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	put_string(&request, RDMA_NLDEV_ATTR_DEV_NAME, name);
	put_string(&request, RDMA_NLDEV_ATTR_LINK_TYPE, type);
	put_string(&request, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return ask(fd, &request, ignore, NULL);
}

static int delete_link(int fd, const char *name)
{
	union message request;
	uint32_t index;
	int ret;

	ret = find_device(fd, name, &index);
	if (ret)
		return ret;
	start(&request, RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
	put_u32(&request, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	return ask(fd, &request, ignore, NULL);
}

/* Prints in the format of rdma(8). */
static void print_netdev(const struct nlmsghdr *answer, void *to)
{
	const char *netdev = get(answer, RDMA_NLDEV_ATTR_NDEV_NAME);

	if (netdev)
		printf("link %s netdev %s\n", (const char *)to, netdev);
}

static int show_link(int fd, char *name_and_port)
{
	char name[64];
	union message request;
	uint32_t index;
	unsigned int port;
	int ret;

	if (sscanf(name_and_port, "%63[^/]/%u", name, &port) != 2)
		return -EINVAL;
	ret = find_device(fd, name, &index);
	if (ret)
		return ret;
	start(&request, RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);
	put_u32(&request, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	put_u32(&request, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	return ask(fd, &request, print_netdev, name_and_port);
}

static int run(int fd, int argc, char **argv)
{
	if (argc == 8 && !strcmp(argv[2], "add") && !strcmp(argv[4], "type") &&
	    !strcmp(argv[6], "netdev"))
		return add_link(fd, argv[3], argv[5], argv[7]);
	if (argc == 4 && !strcmp(argv[2], "del"))
		return delete_link(fd, argv[3]);
	if (argc == 4 && !strcmp(argv[2], "show"))
		return show_link(fd, argv[3]);
	fprintf(stderr, "rdma: this one knows only link add NAME type TYPE netdev NETDEV, "
		"link del NAME, link show NAME/PORT\n");
	exit(2);
}

int main(int argc, char **argv)
{
	int fd, ret;

	if (argc < 3 || strcmp(argv[1], "link"))
		argc = 0;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0) {
		perror("rdma: no netlink socket; is ib_core loaded?");
		return 1;
	}
	ret = run(fd, argc, argv);
	close(fd);
	if (ret)
		fprintf(stderr, "rdma: link %s %s: %s\n", argv[2], argv[3], strerror(-ret));
	return ret ? 1 : 0;
}

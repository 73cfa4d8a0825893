// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to reach a peer over a link that other sessions already use, compared with a
 * private connection by rdma_cm.
 *
 * usage: open ROUNDS COUNT
 *
 * A round is A B B A, where A is COUNT new processes and B is COUNT connections. It prints
 * lines "FIGURE ROUND NANOSECONDS", the medians of a block:
 *
 *	open_session	open(2) of /dev/kxfer in a new process
 *	open_peer	PEER_OPEN in that process, on a link that is up
 *	open_target	TARGET_OPEN in that process, of an export that other sessions hold
 *	exchange	one request and its answer: TARGET_INFO
 *	rdma_cm		rdma_create_id() to ESTABLISHED, with both resolutions and
 *			rdma_create_qp(); not: the event channel, PD, CQ, teardown
 *
 * Both ends of the link and of the connection are on this node. The other end of the connection
 * is a process that sleeps until there is something to do.
 */
#include <rdma/rdma_cma.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rigs/rig.h"

#define LENGTH		4096
#define MAX_COUNT	1000
#define CM_PORT		7700
#define CM_TIMEOUT_MS	2000
#define BACKLOG		16

enum figure { OPEN_SESSION, OPEN_PEER, OPEN_TARGET, EXCHANGE, RDMA_CM, NR_FIGURES };

static const char *const names[NR_FIGURES] = {
	"open_session", "open_peer", "open_target", "exchange", "rdma_cm",
};

/* messages between the processes */
struct shared {
	uint64_t took_ns[NR_FIGURES][MAX_COUNT];
	bool listening;
	uint32_t nr_closed;
};

/* What all connections of one end share. */
struct end {
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct shared *shared;
static struct rig rig;
static pid_t acceptor;

static void die(const char *what, int error)
{
	fprintf(stderr, "open: %s: %s\n", what, strerror(-error));
	if (acceptor > 0)
		kill(acceptor, SIGKILL);
	exit(1);
}

static void check(const char *what, int ret)
{
	if (ret)
		die(what, ret < -1 ? ret : -errno);
}

static pid_t start(void)
{
	pid_t pid = fork();

	check("fork", pid < 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* ---- connections by rdma_cm ---- */

static struct sockaddr_in address(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(CM_PORT) };

	inet_pton(AF_INET, kx_address(), &sin.sin_addr);
	return sin;
}

static void make_qp(struct end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 16,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!end->pd) {
		end->pd = ibv_alloc_pd(id->verbs);
		end->cq = ibv_create_cq(id->verbs, 32, NULL, NULL, 0);
		check("PD and CQ", !end->pd || !end->cq);
	}
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	check("rdma_create_qp", rdma_create_qp(id, end->pd, &attr));
}

static struct rdma_cm_id *wait_event(struct end *end, enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	check("rdma_get_cm_event", rdma_get_cm_event(end->channel, &event));
	*type = event->event;
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void expect(struct end *end, enum rdma_cm_event_type expected)
{
	enum rdma_cm_event_type type;

	wait_event(end, &type);
	if (type == expected)
		return;
	fprintf(stderr, "open: %s instead of %s\n", rdma_event_str(type),
		rdma_event_str(expected));
	die("rdma_cm", -EPROTO);
}

static void answer(struct end *end)
{
	struct rdma_conn_param param = {};
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id = wait_event(end, &type);

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		make_qp(end, id);
		check("rdma_accept", rdma_accept(id, &param));
	} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
		__atomic_add_fetch(&shared->nr_closed, 1, __ATOMIC_SEQ_CST);
	}
}

static void accept_all(void)
{
	struct end end = { .channel = rdma_create_event_channel() };
	struct sockaddr_in sin = address();
	struct rdma_cm_id *listener;

	check("rdma_create_event_channel", !end.channel);
	check("rdma_create_id", rdma_create_id(end.channel, &listener, NULL, RDMA_PS_TCP));
	check("rdma_bind_addr", rdma_bind_addr(listener, (struct sockaddr *)&sin));
	check("rdma_listen", rdma_listen(listener, BACKLOG));
	__atomic_store_n(&shared->listening, true, __ATOMIC_SEQ_CST);
	for (;;)
		answer(&end);
}

static uint32_t nr_closed(void)
{
	return __atomic_load_n(&shared->nr_closed, __ATOMIC_SEQ_CST);
}

static void disconnect(struct end *end, struct rdma_cm_id *id)
{
	uint32_t before = nr_closed();

	check("rdma_disconnect", rdma_disconnect(id));
	expect(end, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	if (!kx_wait_until(nr_closed() != before, KX_TIMEOUT_MS))
		die("the other end stays", -ETIMEDOUT);
}

static uint64_t connect_once(struct end *end)
{
	struct rdma_conn_param param = {};
	struct sockaddr_in sin = address();
	uint64_t began = kx_now_ns();
	struct rdma_cm_id *id;

	check("rdma_create_id", rdma_create_id(end->channel, &id, NULL, RDMA_PS_TCP));
	check("rdma_resolve_addr", rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin,
						     CM_TIMEOUT_MS));
	expect(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	check("rdma_resolve_route", rdma_resolve_route(id, CM_TIMEOUT_MS));
	expect(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(end, id);
	check("rdma_connect", rdma_connect(id, &param));
	expect(end, RDMA_CM_EVENT_ESTABLISHED);
	began = kx_now_ns() - began;
	disconnect(end, id);
	return began;
}

/* ---- a session of a new process ---- */

static uint64_t lap(uint64_t *last)
{
	uint64_t now = kx_now_ns(), took = now - *last;

	*last = now;
	return took;
}

static void open_all(uint32_t number)
{
	struct kxfer_peer_open peer = {
		.size = sizeof(peer),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
	};
	struct kxfer_target_open target = {
		.size = sizeof(target),
		.timeout_ms = KX_TIMEOUT_MS,
	};
	struct kxfer_target_info info = { .size = sizeof(info), .timeout_ms = KX_TIMEOUT_MS };
	uint64_t last = kx_now_ns(), took[NR_FIGURES];
	uint32_t i;
	int fd;

	memcpy(target.name, rig.name, sizeof(target.name));
	last = kx_now_ns();
	fd = kx_open();
	took[OPEN_SESSION] = lap(&last);
	check("open", fd < 0 ? fd : 0);
	last = kx_now_ns();
	check("PEER_OPEN", kx_call(fd, KXFER_PEER_OPEN, &peer));
	took[OPEN_PEER] = lap(&last);
	target.peer = peer.peer;
	last = kx_now_ns();
	check("TARGET_OPEN", kx_call(fd, KXFER_TARGET_OPEN, &target));
	took[OPEN_TARGET] = lap(&last);
	info.target = target.target;
	last = kx_now_ns();
	check("TARGET_INFO", kx_call(fd, KXFER_TARGET_INFO, &info));
	took[EXCHANGE] = lap(&last);
	for (i = OPEN_SESSION; i <= EXCHANGE; i++)
		shared->took_ns[i][number] = took[i];
}

static void open_once(uint32_t number)
{
	pid_t pid = start();
	int status;

	if (!pid) {
		open_all(number);
		/* _exit() skips the exit handlers, which would end what the parent still uses. */
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("a new process", -ECHILD);
}

/* ---- rounds ---- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void tell(enum figure figure, uint32_t round, uint32_t count)
{
	uint64_t *took = shared->took_ns[figure];

	qsort(took, count, sizeof(*took), by_size);
	printf("%s %u %llu\n", names[figure], round, (unsigned long long)took[count / 2]);
}

static void session_block(uint32_t round, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		open_once(i);
	for (i = OPEN_SESSION; i <= EXCHANGE; i++)
		tell(i, round, count);
}

static void connection_block(struct end *end, uint32_t round, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		shared->took_ns[RDMA_CM][i] = connect_once(end);
	tell(RDMA_CM, round, count);
}

static void run(uint32_t rounds, uint32_t count)
{
	struct end end = { .channel = rdma_create_event_channel() };
	uint32_t i;

	check("rdma_create_event_channel", !end.channel);
	connect_once(&end);
	open_once(0);
	for (i = 0; i < rounds; i++) {
		session_block(i, count);
		connection_block(&end, i, count);
		connection_block(&end, i, count);
		session_block(i, count);
	}
}

int main(int argc, char **argv)
{
	struct rig_options options = { .length = LENGTH };
	int rounds = argc == 3 ? atoi(argv[1]) : 0;
	int count = argc == 3 ? atoi(argv[2]) : 0;

	if (rounds < 1 || count < 1 || count > MAX_COUNT)
		die("usage: open ROUNDS COUNT", -EINVAL);
	setlinebuf(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check("mmap", shared == MAP_FAILED);
	/* Touch all pages now, so that none faults while the clock runs. */
	memset(shared, 0, sizeof(*shared));
	check("server", rig_open(&rig, &options));
	acceptor = start();
	if (!acceptor)
		accept_all();
	if (!kx_wait_until(__atomic_load_n(&shared->listening, __ATOMIC_SEQ_CST), KX_TIMEOUT_MS))
		die("nobody listens", -ETIMEDOUT);
	run(rounds, count);
	kill(acceptor, SIGKILL);
	waitpid(acceptor, NULL, 0);
	rig_close(&rig);
	return 0;
}

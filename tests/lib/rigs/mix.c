// SPDX-License-Identifier: GPL-2.0
/* Mix: jobs of all kinds, and measuring runs; see mix.h. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rigs/mix.h"

#define BIG_JOB		65536u	/* rarely used; the shortest buffer of a rig here */
#define MAX_MESSAGE	8192u
#define CAPACITY	64
#define DEPTH		8	/* operations of a run in flight */
#define STRIDE		4096u
#define RUN_MS		30
#define SLOTS		4	/* slots of the responder */
#define RECEIVES	16

static uint32_t below(const struct mix *mix, uint32_t end)
{
	return rand_r(mix->seed) % end;
}

int mix_open(struct mix *mix)
{
	const struct rig *rig = mix->rig;
	char name[KXFER_NAME_MAX + 1];
	int ret;

	snprintf(name, sizeof(name), "mix-%d", (int)getpid());
	ret = kx_mailbox_add(rig->client, name, CAPACITY, MAX_MESSAGE, &mix->mailbox);
	return ret ?: kx_target_open(rig->client, rig->peer, name, 0, &mix->target);
}

/* ---- jobs ---- */

static struct kxfer_job draw_transfer(const struct mix *mix)
{
	uint64_t length = 1 + below(mix, below(mix, 8) ? 4096 : BIG_JOB);
	uint64_t at = below(mix, mix->rig->options.length - length + 1);

	return rig_job(mix->rig, below(mix, 2) ? KXFER_OP_READ : KXFER_OP_WRITE, at, at, length);
}

static struct kxfer_job draw_atomic(const struct mix *mix)
{
	uint64_t at = below(mix, mix->rig->options.length / 8) * 8;
	struct kxfer_job job = rig_job(mix->rig, KXFER_OP_FETCH_ADD, at, at, 8);

	job.compare_add = 1;
	return job;
}

static struct kxfer_job draw_recv(const struct mix *mix)
{
	uint64_t length = sizeof(struct kxfer_message) + MAX_MESSAGE;
	uint64_t at = below(mix, mix->rig->options.length - length + 1);
	struct kxfer_job job = rig_job(mix->rig, KXFER_OP_RECV, at, 0, length);

	job.target = mix->mailbox;
	return job;
}

/* Every other message is long. Its length comes back with the completion. */
static struct kxfer_job draw_send(const struct mix *mix)
{
	uint64_t length = 1 + below(mix, below(mix, 2) ? KXFER_MESSAGE_MAX : MAX_MESSAGE);
	uint64_t at = below(mix, mix->rig->options.length - length + 1);
	struct kxfer_job job = rig_job(mix->rig, KXFER_OP_SEND, at, 0, length);

	job.target = mix->target;
	return job;
}

/** mix_draw() - draw @nr jobs; if all of them are accepted, all of them end */
void mix_draw(const struct mix *mix, struct kxfer_job *jobs, uint32_t nr)
{
	bool atomics = kx_has_atomics();
	uint32_t i;

	for (i = 0; i < nr; i++) {
		uint32_t kind = below(mix, 8);

		if (kind == 0 && atomics) {
			jobs[i] = draw_atomic(mix);
		} else if (kind == 1 && i + 1 < nr) {
			jobs[i++] = draw_recv(mix);
			jobs[i] = draw_send(mix);
		} else {
			jobs[i] = draw_transfer(mix);
		}
	}
}

bool mix_count(const struct mix *mix, const struct kxfer_completion *done, uint32_t nr)
{
	bool good = true;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		good &= !done[i].status;
		if (!mix->done || done[i].status)
			continue;
		mix->done->jobs[done[i].op]++;
		if (done[i].op == KXFER_OP_SEND && done[i].bytes > KXFER_MESSAGE_MAX)
			mix->done->long_messages++;
	}
	return good;
}

/* ---- runs ---- */

static uint32_t histogram[KXFER_BENCH_NR_BUCKETS], posted[KXFER_BENCH_NR_BUCKETS];

static struct kxfer_bench draw_run(const struct mix *mix, enum mix_run kind)
{
	struct kxfer_bench run = {
		.size = sizeof(run),
		.op = below(mix, 2) ? KXFER_OP_READ : KXFER_OP_WRITE,
		.region = mix->rig->here_region,
		.target = mix->rig->target,
		.depth = DEPTH,
		.list = 1 + below(mix, 2),
		.signal = 1,
		.length = 1 + below(mix, STRIDE),
		.stride = STRIDE,
		.count = 200,
		.time_limit_ms = RUN_MS,
	};

	if (kind == MIX_PACED) {
		run.interval_ps = 50000000;
		run.nr_buckets = KXFER_BENCH_NR_BUCKETS;
		run.histogram = (uintptr_t)histogram;
		run.posted_histogram = (uintptr_t)posted;
	} else if (kind == MIX_REGISTERED) {
		run.memory = KXFER_BENCH_MEMORY_MR_EACH;
		run.invalidate = below(mix, 2) ? KXFER_BENCH_INVALIDATE_LOCAL :
				 KXFER_BENCH_INVALIDATE_DEFERRED;
	} else if (kind == MIX_RW) {
		run.memory = KXFER_BENCH_MEMORY_RW;
	}
	return run;
}

/* Sends messages to as many slots as operations are in flight. */
static int send_messages(const struct mix *mix, uint32_t dedicated, uint32_t bytes,
			 bool answered)
{
	struct kxfer_bench run = draw_run(mix, MIX_PLAIN);

	run.op = KXFER_OP_SEND;
	run.target = 0;
	run.dedicated = dedicated;
	run.depth = SLOTS;
	run.length = bytes;
	if (answered) {
		run.memory = KXFER_BENCH_MEMORY_MR_EACH;
		run.invalidate = KXFER_BENCH_INVALIDATE_REMOTE;
	}
	return kx_call(mix->rig->client, KXFER_BENCH, &run) ?: run.operations ? 0 : -ETIME;
}

static int run_dedicated(const struct mix *mix)
{
	bool answered = below(mix, 2), pool = below(mix, 2);
	struct kxfer_dedicated_open open = {
		.size = sizeof(open),
		.flags = (answered ? KXFER_DEDICATED_F_ANSWERED : 0) |
			 (pool ? KXFER_DEDICATED_F_CQ_POOL : 0),
		.remote = kx_addr(kx_address(), mix->done->port),
		.context = pool ? KXFER_CONTEXT_SOFTIRQ : KXFER_CONTEXT_POLLED,
		.timeout_ms = KX_TIMEOUT_MS,
		.length = SLOTS * STRIDE,
		.op = KXFER_OP_SEND,
		.receives = RECEIVES,
		.slots = SLOTS,
		.bytes = 1 + below(mix, STRIDE),
	};
	struct kxfer_id id = { .size = sizeof(id) };
	int ret = kx_call(mix->rig->client, KXFER_DEDICATED_OPEN, &open);

	if (ret)
		return ret;
	ret = send_messages(mix, open.dedicated, open.bytes, answered);
	id.id = open.dedicated;
	return kx_call(mix->rig->client, KXFER_DEDICATED_CLOSE, &id) ?: ret;
}

/** mix_measure() - start a run of a random kind */
int mix_measure(const struct mix *mix)
{
	enum mix_run kind = below(mix, mix->done && mix->done->port ? NR_MIX_RUNS : MIX_DEDICATED);
	struct kxfer_bench run;
	int ret;

	if (kind == MIX_DEDICATED) {
		ret = run_dedicated(mix);
	} else {
		run = draw_run(mix, kind);
		ret = kx_call(mix->rig->client, KXFER_BENCH, &run) ?: run.operations ? 0 : -ETIME;
	}
	if (!ret && mix->done)
		mix->done->runs[kind]++;
	return ret;
}

/* ---- what was done ---- */

const char *mix_tell(const struct mix_done *done)
{
	static char text[256];

	snprintf(text, sizeof(text),
		 "%u READs, %u WRITEs, %u FETCH_ADDs, %u SENDs, %u of them long, %u RECVs; runs: %u plain, %u paced, %u registered, %u by rdma_rw, %u dedicated",
		 done->jobs[KXFER_OP_READ], done->jobs[KXFER_OP_WRITE],
		 done->jobs[KXFER_OP_FETCH_ADD], done->jobs[KXFER_OP_SEND],
		 done->long_messages, done->jobs[KXFER_OP_RECV], done->runs[MIX_PLAIN],
		 done->runs[MIX_PACED], done->runs[MIX_REGISTERED], done->runs[MIX_RW],
		 done->runs[MIX_DEDICATED]);
	return text;
}

const char *mix_lacks(const struct mix_done *done)
{
	static const char *const names[NR_MIX_RUNS] = {
		"a plain run", "a paced run", "a run that registers", "a run by rdma_rw",
		"a run on a dedicated connection",
	};
	enum mix_run kind;

	if (!done->jobs[KXFER_OP_READ] || !done->jobs[KXFER_OP_WRITE])
		return "a transfer";
	if (!done->jobs[KXFER_OP_FETCH_ADD] && kx_has_atomics())
		return "an atomic";
	if (!done->jobs[KXFER_OP_SEND] || !done->jobs[KXFER_OP_RECV] || !done->long_messages)
		return "a message";
	for (kind = 0; kind < (done->port ? NR_MIX_RUNS : MIX_DEDICATED); kind++)
		if (!done->runs[kind])
			return names[kind];
	return NULL;
}

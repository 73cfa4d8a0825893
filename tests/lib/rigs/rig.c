// SPDX-License-Identifier: MIT
/*
 * Rig: two buffers and the objects to move bytes between them; see rig.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rigs/nets.h"
#include "rigs/rig.h"

#define SOURCE_SEED	0x50c
#define SINK_SEED	0x51c

static struct kxfer_addr rig_address(const struct rig *rig)
{
	const char *address = rig->options.nets ? NETS_ADDRESS_0 : kx_address();
	struct kxfer_addr addr = kx_addr(rig->options.address ?: address, KXFER_PORT);

	addr.scope_id = rig->options.scope_id;
	return addr;
}

static int add_region(int fd, const struct buffer *buffer, uint32_t *region,
		      uint32_t *segments)
{
	struct kxfer_region_add cmd = {
		.size = sizeof(cmd),
		.flags = KXFER_REGION_F_WRITE,
		.addr = (uintptr_t)buffer->bytes,
		.length = buffer->length,
	};
	int ret;

	if (buffer_is_dmabuf(buffer)) {
		cmd.flags |= KXFER_REGION_F_DMABUF;
		cmd.addr = 0;
		cmd.dmabuf_fd = buffer->fd;
	}
	ret = kx_call(fd, KXFER_REGION_ADD, &cmd);

	*region = cmd.region;
	*segments = cmd.nr_segments;
	return ret;
}

/* @side: 0 for the server, 1 for the client. Return: file or -errno */
static int open_session(const struct rig *rig, int side)
{
	return rig->options.nets ? nets_open(rig->options.nets, side) : kx_open();
}

static int add_listener(struct rig *rig)
{
	static const char *const keys[] = { NETS_KEY, NULL };
	struct kxfer_listen_add cmd = {
		.size = sizeof(cmd),
		.addr = rig_address(rig),
		.silence_ms = rig->options.listen_silence_ms,
	};
	int ret;

	if (rig->options.nets)
		return kx_listen_add_keys(rig->server, cmd.addr, keys, &rig->listener);
	ret = kx_call(rig->server, KXFER_LISTEN_ADD, &cmd);
	rig->listener = cmd.listener;
	return ret;
}

/** rig_open_server() - the half of rig_open() that listens and exports */
int rig_open_server(struct rig *rig, const struct rig_options *options)
{
	static unsigned int nr_rigs;
	int ret;

	*rig = (struct rig) { .server = -1, .client = -1, .options = *options };
	rig->here.fd = -1;
	rig->there.fd = -1;
	snprintf(rig->name, sizeof(rig->name), "rig-%d-%u", (int)getpid(), nr_rigs++);
	rig->export_length = options->export_length ?:
			     options->length - options->export_offset;
	ret = buffer_alloc(&rig->there, options->there, options->length);
	if (ret)
		return ret;
	rig->server = open_session(rig, 0);
	if (rig->server < 0)
		return rig->server;
	ret = add_listener(rig);
	if (!ret)
		ret = add_region(rig->server, &rig->there, &rig->there_region,
				 &rig->there_segments);
	if (!ret)
		ret = kx_export_add(rig->server, rig->there_region, options->export_offset,
				    rig->export_length, options->rights ?: KXFER_RIGHT_ALL,
				    rig->name, &rig->export_id);
	return ret;
}

static int open_peer(struct rig *rig)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = rig_address(rig),
		.context = rig->options.context,
		.timeout_ms = KX_TIMEOUT_MS,
		.loss_ms = rig->options.loss_ms,
		.silence_ms = rig->options.silence_ms,
		.ack_timeout = rig->options.ack_timeout,
		.retry_count = rig->options.retry_count,
		.in_flight_kib = rig->options.in_flight_kib,
	};
	struct kxfer_path via = {};
	int ret;

	if (rig->options.via) {
		via.remote = kx_addr(rig->options.via, cmd.remote.port);
		cmd.via = (uintptr_t)&via;
		cmd.nr_via = 1;
	}
	if (rig->options.nets)
		strcpy((char *)cmd.key, NETS_KEY);
	if (rig->options.local)
		cmd.local = kx_addr(rig->options.local, 0);
	ret = kx_call(rig->client, KXFER_PEER_OPEN, &cmd);
	rig->peer = cmd.peer;
	rig->link = cmd.link;
	return ret;
}

static int open_target(struct rig *rig)
{
	struct kxfer_target_open cmd = {
		.size = sizeof(cmd),
		.peer = rig->peer,
		.timeout_ms = RIG_WAIT_MS,
	};
	int ret;

	strcpy((char *)cmd.name, rig->name);
	ret = kx_call(rig->client, KXFER_TARGET_OPEN, &cmd);
	rig->target = cmd.target;
	rig->nr_keys = cmd.nr_keys;
	return ret;
}

/** rig_open_client() - open the other half; @rig->name and options say what to open */
int rig_open_client(struct rig *rig)
{
	int ret = buffer_alloc(&rig->here, rig->options.here, rig->options.length);

	if (ret)
		return ret;
	rig->client = open_session(rig, 1);
	if (rig->client < 0)
		return rig->client;
	ret = add_region(rig->client, &rig->here, &rig->here_region, &rig->here_segments);
	if (!ret)
		ret = open_peer(rig);
	if (!ret)
		ret = open_target(rig);
	return ret;
}

/**
 * rig_open() - open both halves
 *
 * Return: 0 or -errno; rig_close() accepts a half-open one too.
 */
int rig_open(struct rig *rig, const struct rig_options *options)
{
	return rig_open_server(rig, options) ?: rig_open_client(rig);
}

/** rig_close() - close both sessions and free the buffers */
void rig_close(struct rig *rig)
{
	if (rig->client >= 0)
		close(rig->client);
	if (rig->server >= 0)
		close(rig->server);
	rig->client = -1;
	rig->server = -1;
	buffer_free(&rig->here);
	buffer_free(&rig->there);
}

/** rig_job() - a job between here and there; the caller sets its user_data */
struct kxfer_job rig_job(const struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
			 uint64_t length)
{
	return (struct kxfer_job) {
		.op = op,
		.region = rig->here_region,
		.target = rig->target,
		.region_offset = here,
		.target_offset = there,
		.length = length,
	};
}

/** rig_move() - run one job. Return: its status, or -errno of the call */
int rig_move(const struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
	     uint64_t length)
{
	struct kxfer_job job = rig_job(rig, op, here, there, length);
	struct kxfer_completion completion = { .status = -EPROTO };
	int ret;

	job.user_data = here ^ there << 1 ^ length << 2;
	ret = kx_submit(rig->client, &job, 1);
	if (ret < 0)
		return ret;
	ret = kx_reap(rig->client, &completion, 1, 1, RIG_WAIT_MS);
	if (ret < 0)
		return ret;
	if (ret != 1 || completion.user_data != job.user_data || completion.op != op)
		return -EPROTO;
	if (completion.bytes != (completion.status ? 0 : length))
		return -EMSGSIZE;
	return completion.status;
}

/* ---- moving, and checking what was touched ---- */

/* One end of a transfer. */
struct end {
	uint8_t *bytes;		/* start of the range that offsets refer to */
	uint64_t length;	/* bytes from @bytes on */
	uint64_t offset;	/* offset of the moved range */
};

static void find_ends(struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
		      struct end *source, struct end *sink)
{
	struct end local = { rig->here.bytes, rig->here.length, here };
	struct end remote = {
		rig->there.bytes + rig->options.export_offset,
		rig->there.length - rig->options.export_offset,
		there,
	};

	*source = op == KXFER_OP_READ ? remote : local;
	*sink = op == KXFER_OP_READ ? local : remote;
}

static struct pattern sink_pattern(uint64_t offset)
{
	return (struct pattern) { .seed = SINK_SEED, .offset = offset };
}

/** rig_posted() - sums over the data lanes of the link to the peer */
struct rig_posted rig_posted(const struct rig *rig)
{
	struct kxfer_info_lane lanes[64];
	struct rig_posted posted = {};
	uint64_t cursor = 0;
	int i, n;

	/* Links of earlier tests may still be there. */
	while ((n = kx_info(rig->client, KXFER_INFO_LANES, lanes, sizeof(lanes[0]), 64,
			    &cursor)) > 0) {
		for (i = 0; i < n; i++) {
			if (lanes[i].link != rig->link || !lanes[i].index)
				continue;
			posted.work_requests += lanes[i].nr_wr;
			posted.completions += lanes[i].nr_completions;
		}
	}
	return posted;
}

/** rig_prepare() - fill the sink of an operation with what rig_try() expects */
void rig_prepare(struct rig *rig, uint32_t op)
{
	struct pattern pattern = sink_pattern(0);
	struct end source, sink;

	find_ends(rig, op, 0, 0, &source, &sink);
	pattern_fill(sink.bytes, sink.length, &pattern);
}

static bool good(struct rig *rig, const char *what, const void *memory, size_t length,
		 const struct pattern *want, const struct pattern *before)
{
	struct pattern_fault fault;
	char text[320];

	if (!pattern_check(memory, length, want, before, &fault))
		return true;
	snprintf(rig->fault, sizeof(rig->fault), "%s is %s", what,
		 pattern_describe(want, &fault, text, sizeof(text)));
	return false;
}

static bool neighbours_good(struct rig *rig, const struct end *sink, uint64_t length)
{
	uint64_t end = sink->offset + length;
	uint64_t below = sink->offset < RIG_MARGIN ? sink->offset : RIG_MARGIN;
	uint64_t above = sink->length - end < RIG_MARGIN ? sink->length - end : RIG_MARGIN;
	struct pattern low = sink_pattern(sink->offset - below);
	struct pattern high = sink_pattern(end);

	return good(rig, "memory before the range", sink->bytes + sink->offset - below,
		    below, &low, NULL) &&
	       good(rig, "memory behind the range", sink->bytes + end, above, &high, NULL);
}

/**
 * rig_try() - move bytes and check them
 * @rig: prepared for @op by rig_prepare()
 * @op: KXFER_OP_READ or _WRITE
 * @here: offset in the buffer here
 * @there: offset in the export
 * @length: bytes
 *
 * Afterwards the sink is as rig_prepare() left it.
 *
 * Return: NULL, or a description of the fault.
 */
const char *rig_try(struct rig *rig, uint32_t op, uint64_t here, uint64_t there,
		    uint64_t length)
{
	struct pattern new = { .seed = SOURCE_SEED };
	struct end source, sink;
	struct pattern old;
	bool ok;
	int ret;

	find_ends(rig, op, here, there, &source, &sink);
	rig->generation = rig->generation % PATTERN_GENERATION_MAX + 1;
	new.generation = rig->generation;
	new.offset = source.offset;
	old = sink_pattern(sink.offset);
	pattern_fill(source.bytes + source.offset, length, &new);
	ret = rig_move(rig, op, here, there, length);
	if (ret) {
		snprintf(rig->fault, sizeof(rig->fault), "the job failed: %s",
			 strerror(-ret));
		return rig->fault;
	}
	ok = good(rig, "the range", sink.bytes + sink.offset, length, &new, &old) &&
	     good(rig, "the source", source.bytes + source.offset, length, &new, NULL) &&
	     neighbours_good(rig, &sink, length);
	pattern_fill(sink.bytes + sink.offset, length, &old);
	return ok ? NULL : rig->fault;
}

/** rig_untouched() - check that the whole sink is as rig_prepare() left it. Return: NULL if so */
const char *rig_untouched(struct rig *rig, uint32_t op)
{
	struct pattern pattern = sink_pattern(0);
	struct end source, sink;

	find_ends(rig, op, 0, 0, &source, &sink);
	return good(rig, "the buffer", sink.bytes, sink.length, &pattern, NULL) ?
	       NULL : rig->fault;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Rules that hold for every call, tried on each: sizes, unknown content, bad pointers, unknown
 * flags, reserved members, results that cannot be written.
 *
 * Each call has a template that passes all these checks and fails with a distinct error, which
 * shows whether a check came first.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/fault.h"
#include "harness/kxfer_test.h"
#include "kselftest_harness.h"

#define ROOM		512	/* longer than any structure */
#define UNKNOWN_FLAG	(1U << 31)
#define NO_ID		777777

union any {
	struct { uint32_t size, flags; };
	struct kxfer_query query;
	struct kxfer_info info;
	struct kxfer_region_add region_add;
	struct kxfer_id id;
	struct kxfer_export_add export_add;
	struct kxfer_export_set export_set;
	struct kxfer_mailbox_add mailbox_add;
	struct kxfer_listen_add listen_add;
	struct kxfer_listen_del listen_del;
	struct kxfer_peer_open peer_open;
	struct kxfer_peer_list peer_list;
	struct kxfer_target_open target_open;
	struct kxfer_target_info target_info;
	struct kxfer_submit submit;
	struct kxfer_reap reap;
	struct kxfer_cancel cancel;
	struct kxfer_event_reap event_reap;
	struct kxfer_cq_ring cq_ring;
	struct kxfer_sq_ring sq_ring;
	struct kxfer_bench bench;
	struct kxfer_dedicated_open dedicated_open;
	struct kxfer_dedicated_status dedicated_status;
	char bytes[ROOM];
};

static char page[4096] __attribute__((aligned(4096)));
static struct kxfer_job nop_job = { .op = KXFER_OP_NOP };

static void plain(union any *any)
{
}

static void fill_info(union any *any)
{
	any->info.kind = KXFER_INFO_COUNTERS;
	any->info.stride = 8;
	any->info.nr = 1;
	any->info.records = (uintptr_t)page;
}

static void fill_region_add(union any *any)
{
	any->region_add.addr = (uintptr_t)page;
	any->region_add.length = 1;
}

static void fill_id(union any *any)
{
	any->id.id = NO_ID;
}

static void fill_export_add(union any *any)
{
	any->export_add.region = NO_ID;
	any->export_add.rights = KXFER_RIGHT_READ;
	any->export_add.length = 1;
	any->export_add.name[0] = 'x';
}

static void fill_export_set(union any *any)
{
	any->export_set.export_id = NO_ID;
}

static void fill_mailbox_add(union any *any)
{
	any->mailbox_add.name[0] = 'x';
	any->mailbox_add.capacity = 1;
	any->mailbox_add.max_bytes = 1;
}

static void fill_listen_add(union any *any)
{
	any->listen_add.addr = kx_addr("10.99.99.99", 0);
}

static void fill_listen_del(union any *any)
{
	any->listen_del.listener = NO_ID;
}

static void fill_peer_open(union any *any)
{
	any->peer_open.remote = kx_addr(kx_address(), 7699);
	any->peer_open.timeout_ms = KX_TIMEOUT_MS;
}

static void fill_peer_list(union any *any)
{
	any->peer_list.peer = NO_ID;
	any->peer_list.timeout_ms = 1;
	any->peer_list.nr = 1;
	any->peer_list.exports = (uintptr_t)page;
}

static void fill_target_open(union any *any)
{
	any->target_open.peer = NO_ID;
	any->target_open.timeout_ms = 1;
	any->target_open.name[0] = 'x';
}

static void fill_target_info(union any *any)
{
	any->target_info.target = NO_ID;
	any->target_info.timeout_ms = 1;
}

static void fill_submit(union any *any)
{
	any->submit.jobs = (uintptr_t)&nop_job;
	any->submit.nr_jobs = 1;
	any->submit.stride = sizeof(nop_job);
}

static void fill_reap(union any *any)
{
	any->reap.completions = (uintptr_t)page;
	any->reap.nr = 1;
}

static void fill_event_reap(union any *any)
{
	any->event_reap.events = (uintptr_t)page;
	any->event_reap.nr = 1;
}

static void fill_cq_ring(union any *any)
{
	any->cq_ring.entries = 1;
}

static void fill_sq_ring(union any *any)
{
	any->sq_ring.entries = 1;
}

static void fill_bench(union any *any)
{
	any->bench.op = KXFER_OP_NOP;
	any->bench.depth = 1;
	any->bench.list = 1;
	any->bench.signal = 1;
	any->bench.count = 1;
	any->bench.time_limit_ms = 1000;
}

static void fill_dedicated_open(union any *any)
{
	any->dedicated_open.remote = kx_addr(kx_address(), 7699);
	any->dedicated_open.timeout_ms = KX_TIMEOUT_MS;
	any->dedicated_open.length = 4096;
	any->dedicated_open.op = KXFER_OP_READ;
}

static void fill_dedicated_status(union any *any)
{
	any->dedicated_status.dedicated = NO_ID;
}

static void fill_cancel(union any *any)
{
	any->cancel.user_data = NO_ID;
}

FIXTURE(call)
{
	int fd;
	union any any;
};

/*
 * @ends: result of the template; @shows: counter that proves that the call was done;
 * @first: size in the first release, if the structure has grown since.
 */
FIXTURE_VARIANT(call)
{
	unsigned long cmd;
	uint32_t size;
	uint32_t first;
	void (*fill)(union any *any);
	int ends;
	bool results;
	const char *shows;
};

#define CALL(name, cmd_, type, fill_, ends_, ...)	\
	FIXTURE_VARIANT_ADD(call, name) {		\
		.cmd = cmd_,				\
		.size = sizeof(struct type),		\
		.fill = fill_,				\
		.ends = ends_,				\
		__VA_ARGS__				\
	}

CALL(query, KXFER_QUERY, kxfer_query, plain, 0, .results = true);
CALL(nop, KXFER_NOP, kxfer_nop, plain, 0);
CALL(info, KXFER_INFO, kxfer_info, fill_info, 0, .results = true);
CALL(region_add, KXFER_REGION_ADD, kxfer_region_add, fill_region_add, 0,
     .first = offsetof(struct kxfer_region_add, dmabuf_fd), .results = true,
     .shows = "live_regions");
CALL(region_del, KXFER_REGION_DEL, kxfer_id, fill_id, -ENOENT);
CALL(export_add, KXFER_EXPORT_ADD, kxfer_export_add, fill_export_add, -ENOENT,
     .first = offsetof(struct kxfer_export_add, cookie), .results = true, .shows = "live_exports");
CALL(export_del, KXFER_EXPORT_DEL, kxfer_id, fill_id, -ENOENT);
CALL(export_set, KXFER_EXPORT_SET, kxfer_export_set, fill_export_set, -ENOENT,
     .results = true);
CALL(mailbox_add, KXFER_MAILBOX_ADD, kxfer_mailbox_add, fill_mailbox_add, 0,
     .first = offsetof(struct kxfer_mailbox_add, cookie), .results = true, .shows = "live_exports");
CALL(listen_add, KXFER_LISTEN_ADD, kxfer_listen_add, fill_listen_add, -EADDRNOTAVAIL,
     .first = offsetof(struct kxfer_listen_add, keys), .results = true,
     .shows = "live_listeners");
CALL(listen_del, KXFER_LISTEN_DEL, kxfer_listen_del, fill_listen_del, -ENOENT);
CALL(peer_open, KXFER_PEER_OPEN, kxfer_peer_open, fill_peer_open, -ECONNREFUSED,
     .first = offsetof(struct kxfer_peer_open, key), .results = true,
     .shows = "live_peers");
CALL(peer_close, KXFER_PEER_CLOSE, kxfer_id, fill_id, -ENOENT);
CALL(peer_list, KXFER_PEER_LIST, kxfer_peer_list, fill_peer_list, -ENOENT,
     .results = true);
CALL(target_open, KXFER_TARGET_OPEN, kxfer_target_open, fill_target_open, -ENOENT,
     .first = offsetof(struct kxfer_target_open, cookie), .results = true, .shows = "live_targets");
CALL(target_close, KXFER_TARGET_CLOSE, kxfer_id, fill_id, -ENOENT);
CALL(target_info, KXFER_TARGET_INFO, kxfer_target_info, fill_target_info, -ENOENT,
     .first = offsetof(struct kxfer_target_info, cookie), .results = true);
CALL(submit, KXFER_SUBMIT, kxfer_submit, fill_submit, 0,
     .results = true, .shows = "jobs_submitted");
CALL(reap, KXFER_REAP, kxfer_reap, fill_reap, 0, .results = true);
CALL(cancel, KXFER_CANCEL, kxfer_cancel, fill_cancel, -ENOENT, .results = true);
CALL(event_reap, KXFER_EVENT_REAP, kxfer_event_reap, fill_event_reap, 0,
     .results = true);
CALL(cq_ring, KXFER_CQ_RING, kxfer_cq_ring, fill_cq_ring, 0,
     .results = true, .shows = "live_rings");
/* A completion ring comes first. */
CALL(sq_ring, KXFER_SQ_RING, kxfer_sq_ring, fill_sq_ring, -EINVAL, .results = true);
CALL(bench, KXFER_BENCH, kxfer_bench, fill_bench, 0, .results = true);
CALL(dedicated_open, KXFER_DEDICATED_OPEN, kxfer_dedicated_open, fill_dedicated_open,
     -ECONNREFUSED, .results = true);
CALL(dedicated_close, KXFER_DEDICATED_CLOSE, kxfer_id, fill_id, -ENOENT);
CALL(dedicated_status, KXFER_DEDICATED_STATUS, kxfer_dedicated_status,
     fill_dedicated_status, -ENOENT, .results = true);

FIXTURE_SETUP(call)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	variant->fill(&self->any);
	self->any.size = variant->size;
}

FIXTURE_TEARDOWN(call)
{
	close(self->fd);
}

TEST_F(call, takes_its_template)
{
	EXPECT_EQ(variant->ends, kx_call(self->fd, variant->cmd, &self->any));
}

TEST_F(call, refuses_a_size_too_small)
{
	self->any.size = (variant->first ?: variant->size) - 1;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, variant->cmd, &self->any));
	self->any.size = 4;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, variant->cmd, &self->any));
	self->any.size = 0;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, variant->cmd, &self->any));
}

TEST_F(call, takes_a_larger_structure_of_zeros)
{
	self->any.size = variant->size + 64;
	EXPECT_EQ(variant->ends, kx_call(self->fd, variant->cmd, &self->any));
	EXPECT_EQ(variant->size + 64, self->any.size);
}

TEST_F(call, refuses_unknown_trailing_data)
{
	self->any.size = variant->size + 64;
	self->any.bytes[variant->size + 63] = 1;
	EXPECT_EQ(-E2BIG, kx_call(self->fd, variant->cmd, &self->any));
	self->any.size = variant->size + 1;
	self->any.bytes[variant->size] = 1;
	EXPECT_EQ(-E2BIG, kx_call(self->fd, variant->cmd, &self->any));
}

TEST_F(call, refuses_a_size_beyond_a_page)
{
	self->any.size = sysconf(_SC_PAGESIZE) + 1;
	EXPECT_EQ(-E2BIG, kx_call(self->fd, variant->cmd, &self->any));
	self->any.size = UINT32_MAX;
	EXPECT_EQ(-E2BIG, kx_call(self->fd, variant->cmd, &self->any));
}

TEST_F(call, refuses_a_bad_pointer)
{
	char *cut = kx_before_hole(variant->size - 1);

	ASSERT_NE(NULL, cut);
	memcpy(cut, &self->any, variant->size - 1);
	EXPECT_EQ(-EFAULT, kx_call(self->fd, variant->cmd, NULL));
	EXPECT_EQ(-EFAULT, kx_call(self->fd, variant->cmd, (void *)-4096L));
	EXPECT_EQ(-EFAULT, kx_call(self->fd, variant->cmd, cut));
	EXPECT_EQ(-EFAULT, kx_call(self->fd, variant->cmd, cut + variant->size - 1));
}

TEST_F(call, refuses_unknown_flags)
{
	self->any.flags = UNKNOWN_FLAG;
	EXPECT_EQ(-EOPNOTSUPP, kx_call(self->fd, variant->cmd, &self->any));
}

TEST_F(call, does_nothing_if_results_cannot_be_written)
{
	uint64_t before = 0;
	void *memory;

	if (!variant->results)
		return;
	memory = kx_alloc(sizeof(self->any));
	ASSERT_NE(NULL, memory);
	memcpy(memory, &self->any, sizeof(self->any));
	ASSERT_EQ(0, mprotect(memory, sizeof(self->any), PROT_READ));
	if (variant->shows)
		before = kx_counter(self->fd, variant->shows);
	EXPECT_EQ(-EFAULT, kx_call(self->fd, variant->cmd, memory));
	if (variant->shows)
		EXPECT_EQ(before, kx_counter(self->fd, variant->shows));
}

/* ---- a structure that grows ---- */

#define GROWTH	8	/* GROWTH of CALL_GROWN (kmod/front/cdev.c) */

/* A call of a module whose structures have GROWTH bytes more than in the header. */
static int call_grown(int fd, unsigned long cmd, void *any)
{
	struct fault_counts counts = { 0 };
	int ret;

	if (fault_reset() || fault_arm("CALL_GROWN", 1))
		return -EOPNOTSUPP;
	ret = kx_call(fd, cmd, any);
	if (fault_counts("CALL_GROWN", &counts) || counts.injected != 1)
		ret = -EOPNOTSUPP;
	fault_reset();
	return ret;
}

TEST_F(call, takes_an_older_caller_of_a_structure_that_has_grown)
{
	char *last;

	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	/* The page after it is a hole, so a write beyond the caller's structure is noticed. */
	last = kx_before_hole(variant->size);
	ASSERT_NE(NULL, last);
	memcpy(last, &self->any, variant->size);
	EXPECT_EQ(variant->ends, call_grown(self->fd, variant->cmd, last));
	EXPECT_EQ(0, memcmp(last, &self->any.size, sizeof(self->any.size)));
}

TEST_F(call, writes_no_byte_behind_an_older_caller)
{
	char canary[GROWTH];

	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	memset(canary, 0xa5, sizeof(canary));
	memcpy(self->any.bytes + variant->size, canary, sizeof(canary));
	EXPECT_EQ(variant->ends, call_grown(self->fd, variant->cmd, &self->any));
	EXPECT_EQ(0, memcmp(self->any.bytes + variant->size, canary, sizeof(canary)));
}

TEST_F(call, takes_a_caller_as_new_as_a_structure_that_has_grown)
{
	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	self->any.size = variant->size + GROWTH;
	self->any.bytes[variant->size + GROWTH - 1] = 1;
	EXPECT_EQ(variant->ends, call_grown(self->fd, variant->cmd, &self->any));
	EXPECT_EQ(1, self->any.bytes[variant->size + GROWTH - 1]);
	self->any.size = variant->size + GROWTH + 1;
	self->any.bytes[variant->size + GROWTH] = 1;
	EXPECT_EQ(-E2BIG, call_grown(self->fd, variant->cmd, &self->any));
}

TEST_F(call, refuses_less_than_the_first_size_of_a_structure_that_has_grown)
{
	if (!fault_available())
		SKIP(return, "needs root and debugfs");
	self->any.size = (variant->first ?: variant->size) - 1;
	EXPECT_EQ(-EINVAL, call_grown(self->fd, variant->cmd, &self->any));
	self->any.size = 0;
	EXPECT_EQ(-EINVAL, call_grown(self->fd, variant->cmd, &self->any));
}

/* A caller of the first release lacks members that were added since. */
TEST_F(call, takes_the_size_of_the_first_release)
{
	char *last;

	if (!variant->first)
		return;
	last = kx_before_hole(variant->first);
	ASSERT_NE(NULL, last);
	self->any.size = variant->first;
	memcpy(last, &self->any, variant->first);
	EXPECT_EQ(variant->ends, kx_call(self->fd, variant->cmd, last));
}

/* ---- reserved members ---- */

FIXTURE(reserved)
{
	int fd;
	union any any;
};

FIXTURE_VARIANT(reserved)
{
	unsigned long cmd;
	uint32_t size;
	void (*fill)(union any *any);
	uint32_t offset;
};

#define RESERVED(name, cmd_, type, fill_)				\
	FIXTURE_VARIANT_ADD(reserved, name) {				\
		.cmd = cmd_,						\
		.size = sizeof(struct type),				\
		.fill = fill_,						\
		.offset = offsetof(struct type, __reserved),		\
	}

RESERVED(info, KXFER_INFO, kxfer_info, fill_info);
RESERVED(region_del, KXFER_REGION_DEL, kxfer_id, fill_id);
RESERVED(export_del, KXFER_EXPORT_DEL, kxfer_id, fill_id);
RESERVED(export_set, KXFER_EXPORT_SET, kxfer_export_set, fill_export_set);
RESERVED(peer_close, KXFER_PEER_CLOSE, kxfer_id, fill_id);
RESERVED(peer_list, KXFER_PEER_LIST, kxfer_peer_list, fill_peer_list);
RESERVED(target_close, KXFER_TARGET_CLOSE, kxfer_id, fill_id);
RESERVED(target_info, KXFER_TARGET_INFO, kxfer_target_info, fill_target_info);
RESERVED(submit, KXFER_SUBMIT, kxfer_submit, fill_submit);
RESERVED(reap, KXFER_REAP, kxfer_reap, fill_reap);
RESERVED(cancel, KXFER_CANCEL, kxfer_cancel, fill_cancel);

FIXTURE_SETUP(reserved)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
	variant->fill(&self->any);
	self->any.size = variant->size;
}

FIXTURE_TEARDOWN(reserved)
{
	close(self->fd);
}

TEST_F(reserved, member_has_to_be_zero)
{
	self->any.bytes[variant->offset + 3] = 1;
	EXPECT_EQ(-EINVAL, kx_call(self->fd, variant->cmd, &self->any));
}

/* ---- no such call ---- */

FIXTURE(session)
{
	int fd;
};

FIXTURE_SETUP(session)
{
	self->fd = kx_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(session)
{
	close(self->fd);
}

TEST_F(session, knows_no_other_number)
{
	struct kxfer_nop cmd = { .size = sizeof(cmd) };
	unsigned int nr;

	for (nr = KXFER_CMD_ENTER + 1; nr <= 0x3f; nr++)
		EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, nr), &cmd));
	/* The numbers in between are the engine's: lifetime/engine.c. */
	for (nr = KXFER_CMD_ENGINE_LAST + 1; nr <= 0xff; nr++)
		EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, nr), &cmd));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, 0x03), &cmd));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, 0x0f), &cmd));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, 0x16), &cmd));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, 0x25), &cmd));
	for (nr = 0x2b; nr <= 0x2f; nr++)
		EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE, nr), &cmd));
}

TEST_F(session, knows_no_other_type)
{
	struct kxfer_nop cmd = { .size = sizeof(cmd) };

	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(KXFER_TYPE + 1, KXFER_CMD_NOP), &cmd));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IO(0, KXFER_CMD_NOP), &cmd));
}

TEST_F(session, takes_no_size_or_direction_in_the_number)
{
	struct kxfer_nop cmd = { .size = sizeof(cmd) };

	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IOW(KXFER_TYPE, KXFER_CMD_NOP, cmd), &cmd));
	EXPECT_EQ(-ENOTTY, kx_call(self->fd, _IOWR(KXFER_TYPE, KXFER_CMD_NOP, cmd), &cmd));
}

TEST_F(session, cannot_be_read_or_written)
{
	char byte = 0;

	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, 0));
}

TEST_F(session, tells_what_the_module_is)
{
	struct kxfer_query query;

	test_cmd_query(self->fd, &query);
	EXPECT_EQ(KXFER_ABI, query.abi);
	EXPECT_EQ(1, query.nr_devices);
	EXPECT_NE(0, query.features & KXFER_FEATURE_NOTIFY);
	EXPECT_NE(0, query.features & KXFER_FEATURE_IPV6);
	EXPECT_NE(0, query.version[0]);
	EXPECT_EQ(0, query.version[sizeof(query.version) - 1]);
	EXPECT_EQ(256, query.max_jobs_per_submit);
	EXPECT_LE(query.max_jobs_per_submit, query.max_jobs);
	EXPECT_LT(0, query.max_regions);
	EXPECT_LT(0, query.max_exports);
	EXPECT_LT(0, query.max_targets);
	EXPECT_LT(0, query.max_peers);
	EXPECT_LT(0, query.max_listeners);
	EXPECT_LT(0, query.max_events);
	EXPECT_LT(0, query.max_rules);
	EXPECT_EQ(0, query.__reserved);
	EXPECT_LE(1ULL << 30, query.max_region_bytes);
}

TEST_F(session, takes_a_nop)
{
	test_cmd_nop(self->fd);
}

TEST_HARNESS_MAIN

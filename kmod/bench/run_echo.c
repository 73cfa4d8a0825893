// SPDX-License-Identifier: GPL-2.0
/*
 * Round trips of a measuring run with a run of the peer (KXFER_BENCH_F_PING, _PONG): as those of
 * `kxfer bench write-ping-pong` by jobs, with the kernel at both ends. One end WRITEs, the other
 * sees the last byte of that in its memory, and WRITEs back.
 *
 * An operation has a number, which is in that byte. PING posts an operation when the one before
 * is done, and looks for the same byte to come in. PONG looks for a byte, and then posts. Each
 * polls its CQ until its own WRITE has completed, as one who waits for a job does, and then looks
 * at the byte alone.
 *
 * Completions come in the CQ's context, and count in @done as those of any run. Bytes are found
 * by the process of the run, and count in @answered. Latencies are noted by one of the two only:
 * those of a PONG with @done, those of a PING, which end with the byte, with @answered. A PING
 * posts, and ends, when both counts say so.
 *
 * No wait is without end. A run that is stopped does not listen: a PING whose byte has not come
 * is counted as answered, but not as done (@lost). A peer can keep a run waiting until the time
 * limit of its call, and no longer. What it writes is only compared.
 *
 * The region is pinned, and the call counts itself as its user. A device that works on copies
 * (bounce buffers) is refused: nothing would tell when to look at the copy.
 *
 * Context: a call; may sleep.
 */
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/timekeeping.h>

#include "bench/run.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"

#define WAKE_NS		1000000	/* without a byte for so long, the run sleeps between looks */
#define NAP_MIN_US	20
#define NAP_MAX_US	50

static bool pings(const struct kxfer_run *run)
{
	return run->cmd->flags & KXFER_BENCH_F_PING;
}

/* Return: address of that byte of the region, or NULL: the kernel has none for its page */
static u8 *byte_at(const struct kxfer_memory *memory, u64 offset)
{
	u64 at = memory->offset + offset;
	struct page *page = memory->pages[at / PAGE_SIZE];

	return PageHighMem(page) ? NULL : page_address(page) + offset_in_page(at);
}

/**
 * kxfer_run_echo_find() - find the bytes of a run with round trips
 * @run: run with its region and link; any run
 *
 * Does not sleep. Return: 0, -EOVERFLOW, -ERANGE, -EACCES, -EOPNOTSUPP.
 */
int kxfer_run_echo_find(struct kxfer_run *run)
{
	const struct kxfer_memory *memory = run->region->memory;
	const struct kxfer_bench *cmd = run->cmd;
	u64 end;

	if (!(cmd->flags & (KXFER_BENCH_F_PING | KXFER_BENCH_F_PONG)))
		return 0;
	if (check_add_overflow(cmd->echo_offset, cmd->length, &end))
		return -EOVERFLOW;
	if (end > memory->length)
		return -ERANGE;
	if (!memory->writable)
		return -EACCES;
	run->echo.out_offset = cmd->region_offset + cmd->length - 1;
	run->echo.in = byte_at(memory, end - 1);
	run->echo.out = byte_at(memory, run->echo.out_offset);
	if (!run->echo.in || !run->echo.out || !run->link->dev->in_place)
		return -EOPNOTSUPP;
	run->echo.number = cmd->echo;
	return 0;
}

/** kxfer_run_echo_begin() - a phase begins, of any run */
void kxfer_run_echo_begin(struct kxfer_run *run)
{
	run->echo.heard_ns = run->last_ns;
}

static bool may_post(const struct kxfer_run *run)
{
	if (run->posted == run->end || run->posted != READ_ONCE(run->done))
		return false;
	return (run->answered == run->posted) == pings(run);
}

/** kxfer_run_echo_listens() - does a run, which may be any, wait for a byte of the peer? */
bool kxfer_run_echo_listens(const struct kxfer_run *run)
{
	if (!run->echo.in || run->posted != READ_ONCE(run->done))
		return false;
	return pings(run) ? run->answered != run->posted :
			    run->answered == run->posted && run->posted != run->end;
}

/* Post the next operation. The owner of the CQ then polls until its WRITE has completed. */
static void post(struct kxfer_run *run)
{
	struct kxfer_cq *cq = &run->lane->cq;
	bool owned = kxfer_cq_own(cq);

	WRITE_ONCE(*run->echo.out, run->echo.number);
	if (run->mapping)
		kxfer_mapping_to_device(run->mapping, run->echo.out_offset, 1);
	if (!pings(run))
		run->echo.number++;
	if (kxfer_run_post(run, 1) && owned)
		kxfer_cq_poll(cq, &(struct kxfer_cq_wait) {
			.done = &run->acked,
			.want = run->posted,
			.until_ns = ktime_get_ns() + KXFER_RUN_LOOK_NS,
			.alone = kxfer_run_is_alone,
			.of = run,
		});
	if (owned)
		kxfer_cq_disown(cq);
}

/* The byte of the next operation has come. */
static void hear(struct kxfer_run *run)
{
	run->echo.heard_ns = ktime_get_ns();
	run->answered++;
	if (!pings(run))
		return;
	run->echo.number++;
	kxfer_run_note_done(run, 1, run->echo.heard_ns);
}

/* Look for a while. Return: whether the byte has come */
static bool look(const struct kxfer_run *run)
{
	u64 until_ns = ktime_get_ns() + KXFER_RUN_LOOK_NS;

	do {
		if (READ_ONCE(*run->echo.in) == (u8)run->echo.number)
			return true;
		cpu_relax();
	} while (single_task_running() && !need_resched() && ktime_get_ns() < until_ns);
	return false;
}

static void listen(struct kxfer_run *run)
{
	/* The peer may pause as long as it likes: nothing is under way. */
	kxfer_lane_rests(run->lane);
	if (look(run))
		hear(run);
	else if (ktime_get_ns() - run->echo.heard_ns > WAKE_NS)
		usleep_range(NAP_MIN_US, NAP_MAX_US);
	else
		schedule();
}

/*
 * A stopped run waits for the byte of its last operation no longer. The next run does that
 * operation again: the peer has not seen it, or its answer is on the way. With another number the
 * peer, which goes by the numbers, would wait for this one for ever.
 */
static void give_up(struct kxfer_run *run)
{
	run->echo.lost = true;
	run->answered++;
}

/**
 * kxfer_run_echo_turn() - post an operation, or look for a byte of the peer
 * @run: run with round trips, on its lane, in a phase that is not over
 *
 * May sleep. Return: false: what was posted has to complete first
 */
bool kxfer_run_echo_turn(struct kxfer_run *run)
{
	if (may_post(run))
		post(run);
	else if (!kxfer_run_echo_listens(run))
		return false;
	else if (run->stopped)
		give_up(run);
	else
		listen(run);
	return true;
}

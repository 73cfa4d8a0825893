// SPDX-License-Identifier: GPL-2.0
/* A worker: draws, submits, reaps and checks jobs; see worker.h. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "worker.h"

#define NR_POLLED	5		/* workers that share a link; the others have one each */
#define RING		128		/* entries of a worker's ring */
#define BATCH		64		/* jobs of a SUBMIT, completions of a REAP */
#define SHORT		(64u << 10)	/* limit of one job in SHORT_ONE_IN */
#define SHORT_ONE_IN	8
#define LONG_ONE_IN	4096		/* LONG is the limit of one job in LONG_ONE_IN */
#define NOPS_OF_FOUR	3
#define TRIES		16		/* tries to find a free place */
#define NAP_MS		1000		/* longest wait for completions */
#define GRACE_MS	3000		/* a link may end so much later than its break */

void worker_fault(struct shared *shared, const char *format, ...)
{
	va_list arguments;

	if (atomic_fetch_add(&shared->nr_faults, 1))
		return;
	va_start(arguments, format);
	vsnprintf(shared->fault, sizeof(shared->fault), format, arguments);
	va_end(arguments);
}

static uint32_t below(struct worker *worker, uint32_t end)
{
	return rand_r(&worker->seed) % end;
}

static uint32_t in_flight(const struct worker *worker)
{
	return DEPTH - worker->nr_free;
}

static bool is_odd(const struct worker *worker)
{
	return worker->id % 2;
}

/* ---- jobs ---- */

static bool too_near(uint32_t a, uint32_t a_length, uint32_t b, uint32_t b_length)
{
	return a < b + b_length + 2 * MARGIN && b < a + a_length + 2 * MARGIN;
}

static bool is_free(const struct worker *worker, const struct slot *place)
{
	const struct slot *slot;

	for (slot = worker->slots; slot < worker->slots + DEPTH; slot++)
		if (slot->length &&
		    (too_near(slot->here, slot->length, place->here, place->length) ||
		     (slot->half == place->half &&
		      too_near(slot->there, slot->length, place->there, place->length))))
			return false;
	return true;
}

/* Anywhere in the room for jobs of its length. */
static uint32_t draw_offset(struct worker *worker, uint32_t length)
{
	uint32_t room = length > SHORT ? ROOM : 0;

	return room + MARGIN + below(worker, ROOM - length - 2 * MARGIN + 1);
}

/* Mostly up to 4 KiB; within each limit every order of magnitude is equally likely. */
static uint32_t draw_length(struct worker *worker)
{
	uint32_t bits = below(worker, SHORT_ONE_IN) ? 13 : 17;
	uint32_t most = below(worker, LONG_ONE_IN) ? 1u << below(worker, bits) : LONG;

	return 1 + below(worker, most);
}

/* Without a free place the job becomes a NOP. */
static struct slot draw_slot(struct worker *worker)
{
	static const uint8_t ops[] = { KXFER_OP_READ, KXFER_OP_WRITE, KXFER_OP_SEND };
	struct slot slot = { .number = worker->next++, .half = worker->half };
	uint32_t length = draw_length(worker), i;

	if (below(worker, 4) < NOPS_OF_FOUR)
		return slot;
	slot.op = ops[below(worker, sizeof(ops))];
	if (slot.op == KXFER_OP_SEND)
		length = mail_length(slot.number);
	slot.length = length;
	for (i = 0; i < TRIES; i++) {
		slot.here = draw_offset(worker, length);
		slot.there = draw_offset(worker, length);
		if (is_free(worker, &slot))
			return slot;
	}
	slot.op = KXFER_OP_NOP;
	slot.length = 0;
	return slot;
}

/* user_data: worker in bits 48 to 63, slot in 32 to 47, number in 0 to 31. */
static struct kxfer_job draw_job(struct worker *worker)
{
	uint32_t at = worker->free[--worker->nr_free];
	struct slot *slot = &worker->slots[at];
	struct kxfer_job job = {};

	*slot = draw_slot(worker);
	job.op = slot->op;
	job.user_data = (uint64_t)worker->id << 48 | (uint64_t)at << 32 | slot->number;
	if (slot->op == KXFER_OP_NOP)
		return job;
	job.region = worker->region;
	job.region_offset = slot->here;
	job.length = slot->length;
	bytes_prepare(worker, slot);
	if (slot->op == KXFER_OP_SEND) {
		job.target = worker->mail_target;
		job.flags = KXFER_JOB_F_IMM;
		job.cookie = slot->number;
		return job;
	}
	job.target = worker->target;
	job.target_offset = bytes_there(worker, slot);
	if (below(worker, 2))
		job.flags = KXFER_JOB_F_BATCH;
	/* One job in eight waits for the other jobs of the session. */
	if (!below(worker, 8))
		job.flags |= below(worker, 2) ? KXFER_JOB_F_ORDERED : KXFER_JOB_F_FENCE;
	return job;
}

static void free_slot(struct worker *worker, uint32_t at)
{
	worker->slots[at].length = 0;
	worker->free[worker->nr_free++] = at;
}

/* Whether a break is in progress, began after the opening of the target, or has just ended. */
static bool may_fail(const struct worker *worker)
{
	const struct shared *shared = worker->shared;
	uint64_t grace_ns = GRACE_MS * 1000000ull * kx_slowness();

	return shared->nr_begun != worker->opened_begun ||
	       shared->nr_begun != shared->nr_over ||
	       (shared->nr_over && worker->opened_ns < shared->over_ns + grace_ns);
}

static bool status_fits(const struct worker *worker, const struct slot *slot, int status)
{
	if (!status || (status == -EAGAIN && slot->op == KXFER_OP_SEND))
		return true;
	return slot->length && (status == -ECONNRESET || status == -ENODEV) &&
	       may_fail(worker);
}

/* Checks that this is the one completion of a job in flight. Return: NULL, or why not. */
static const char *who_completes(const struct worker *worker,
				 const struct kxfer_completion *done)
{
	uint32_t number = done->user_data, at = done->user_data >> 32 & 0xffff;

	if (done->user_data >> 48 != worker->id || at >= DEPTH || number >= worker->next)
		return "no such job was submitted";
	if (worker->states[number] == ENDED)
		return "it has completed before";
	if (worker->states[number] == REFUSED)
		return "it was refused";
	if (worker->slots[at].number != number)
		return "it was submitted with another user_data";
	return NULL;
}

static void end_job(struct worker *worker, const struct kxfer_completion *done)
{
	uint32_t number = done->user_data, at = done->user_data >> 32 & 0xffff;
	const char *wrong = who_completes(worker, done);
	struct slot *slot = &worker->slots[at];

	if (wrong) {
		worker_fault(worker->shared,
			     "worker %u job %u, user_data %016llx: %s; op %u status %d, next %u",
			     worker->id, number, LLU(done->user_data), wrong, done->op,
			     done->status, worker->next);
		return;
	}
	if (done->op != slot->op || !status_fits(worker, slot, done->status) ||
	    done->bytes != (done->status ? 0 : slot->length) ||
	    done->completed_ns < done->submitted_ns || done->completed_ns > kx_now_ns())
		worker_fault(worker->shared,
			     "worker %u job %u: op %u, expected %u; bytes %llu, expected %u or 0; status %d; submitted %llu ns, completed %llu ns; %u breaks, opened after %u",
			     worker->id, number, done->op, slot->op, LLU(done->bytes),
			     slot->length, done->status, LLU(done->submitted_ns),
			     LLU(done->completed_ns), worker->shared->nr_begun,
			     worker->opened_begun);
	else if (slot->op == KXFER_OP_SEND)
		mail_sent(worker, number, done->status);
	else if (!done->status && slot->length)
		bytes_verify(worker, slot);
	if (done->status && done->status != -EAGAIN) {
		worker->broken = true;
		worker->count->failed++;
	}
	worker->states[number] = ENDED;
	free_slot(worker, at);
}

static void end_jobs(struct worker *worker, const struct kxfer_completion *done, uint32_t nr)
{
	uint32_t i;

	if (nr)
		worker->moved_ns = kx_now_ns();
	for (i = 0; i < nr && !worker->shared->nr_faults; i++)
		end_job(worker, &done[i]);
}

/* ---- calls ---- */

/* Jobs that SUBMIT accepted are in flight, the others are undone, from the last one on. */
static void sort_out(struct worker *worker, const struct kxfer_job *jobs, uint32_t nr,
		     uint32_t accepted)
{
	uint32_t i;

	for (i = 0; i < accepted; i++) {
		worker->states[(uint32_t)jobs[i].user_data] = ACCEPTED;
		worker->count->accepted[jobs[i].op]++;
	}
	for (i = nr; i-- > accepted;) {
		worker->states[(uint32_t)jobs[i].user_data] = REFUSED;
		worker->count->refused++;
		free_slot(worker, jobs[i].user_data >> 32 & 0xffff);
	}
}

/* A job is refused only for lack of room in the ring, and then the ring is full. */
static void check_refused(struct worker *worker, uint32_t nr, uint32_t accepted, int error)
{
	if (error ? is_odd(worker) && error == EAGAIN && in_flight(worker) == RING :
		    accepted == nr)
		return;
	worker_fault(worker->shared,
		     "worker %u: SUBMIT took %u of %u jobs, up to number %u: error %d, %u in flight",
		     worker->id, accepted, nr, worker->next - 1, error, in_flight(worker));
}

/* As SUBMIT, by the submission ring; what is not accepted is dropped. Return: 0 or -errno. */
static int enter(struct worker *worker, const struct kxfer_job *jobs, struct kxfer_submit *cmd)
{
	struct kxfer_sq *shared = worker->sq.shared;
	int ret;

	kx_sq_put(&worker->sq, jobs, cmd->nr_jobs);
	shared->deadline_ns = cmd->deadline_ns;
	ret = kx_enter(worker->fd, cmd->wait);
	shared->tail = shared->head;
	cmd->accepted = ret < 0 ? 0 : ret;
	cmd->error = shared->error;
	return ret < 0 ? ret : 0;
}

static void submit(struct worker *worker)
{
	uint32_t most = worker->nr_free < BATCH ? worker->nr_free : BATCH;
	uint32_t nr = 1 + below(worker, most), i;
	struct kxfer_completion done[BATCH];
	struct kxfer_job jobs[BATCH];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = nr,
		.stride = sizeof(*jobs),
	};
	int ret;

	if (worker->nr_free == DEPTH)
		worker->moved_ns = kx_now_ns();
	for (i = 0; i < nr; i++)
		jobs[i] = draw_job(worker);
	/* One call in four also waits, for its own or earlier jobs. */
	if (!below(worker, 4)) {
		cmd.completions = is_odd(worker) ? 0 : (uintptr_t)done;
		cmd.nr_completions = is_odd(worker) ? 0 : 1 + below(worker, BATCH);
		cmd.wait = below(worker, (cmd.nr_completions ?: nr) + 1);
		cmd.deadline_ns = kx_deadline_ns(NAP_MS);
	}
	ret = is_odd(worker) && below(worker, 2) ? enter(worker, jobs, &cmd) :
						   kx_call(worker->fd, KXFER_SUBMIT, &cmd);
	cmd.accepted = ret ? 0 : cmd.accepted;
	sort_out(worker, jobs, nr, cmd.accepted);
	check_refused(worker, nr, cmd.accepted, ret ? -ret : (int)cmd.error);
	end_jobs(worker, done, ret ? 0 : cmd.reaped);
}

/* Takes up to @nr completions, after waiting for @wait at most. Return: completions, or -errno. */
static int take(struct worker *worker, struct kxfer_completion *done, uint32_t nr,
		uint32_t wait)
{
	int ret;

	if (!is_odd(worker))
		return kx_reap(worker->fd, done, nr, wait, NAP_MS);
	ret = wait ? kx_ring_wait(worker->fd, wait, NAP_MS) : 0;
	return ret && ret != -ETIMEDOUT ? ret : (int)kx_ring_take(&worker->ring, done, nr);
}

static void reap(struct worker *worker, bool may_wait)
{
	uint32_t nr = 1 + below(worker, BATCH), most = in_flight(worker);
	uint64_t stuck_ns = STUCK_MS * 1000000ull * kx_slowness();
	struct kxfer_completion done[BATCH];
	int ret;

	most = most < nr ? most : nr;
	ret = take(worker, done, nr, may_wait ? below(worker, most + 1) : 0);
	if (ret < 0 && ret != -ETIMEDOUT)
		worker_fault(worker->shared, "worker %u: REAP says %d", worker->id, ret);
	end_jobs(worker, done, ret < 0 ? 0 : ret);
	if (in_flight(worker) && kx_now_ns() - worker->moved_ns > stuck_ns)
		worker_fault(worker->shared, "worker %u: %u jobs in flight do not complete",
			     worker->id, in_flight(worker));
}

static void drain(struct worker *worker)
{
	while (in_flight(worker) && !worker->shared->nr_faults) {
		reap(worker, true);
		mail_take(worker);
	}
}

/* ---- tides ---- */

static int open_peer(struct worker *worker)
{
	struct kxfer_peer_open cmd = {
		.size = sizeof(cmd),
		.remote = kx_addr(kx_address(), KXFER_PORT),
		.timeout_ms = KX_TIMEOUT_MS,
	};
	int ret;

	if (worker->id >= NR_POLLED)
		cmd.context = worker->id - NR_POLLED + 1;
	ret = kx_call(worker->fd, KXFER_PEER_OPEN, &cmd);
	worker->peer = ret ? 0 : cmd.peer;
	return ret;
}

static void close_peer(struct worker *worker)
{
	int ret = worker->peer ? kx_peer_close(worker->fd, worker->peer) : 0;

	if (ret)
		worker_fault(worker->shared, "worker %u: PEER_CLOSE says %d", worker->id, ret);
	worker->peer = 0;
}

static int try_open(struct worker *worker)
{
	int ret;

	worker->opened_begun = worker->shared->nr_begun;
	worker->opened_ns = kx_now_ns();
	ret = worker->peer ? 0 : open_peer(worker);
	ret = ret ?: kx_target_open(worker->fd, worker->peer, worker->server->name, 0,
				    &worker->target);
	if (ret)
		return ret;
	ret = kx_target_open(worker->fd, worker->peer, worker->mail.name, 0,
			     &worker->mail_target);
	if (ret)
		kx_target_close(worker->fd, worker->target);
	return ret;
}

static void begin_tide(struct worker *worker)
{
	uint64_t end = kx_deadline_ns(BACK_MS * kx_slowness());
	int ret;

	while ((ret = try_open(worker)) && kx_now_ns() < end && !worker->shared->nr_faults) {
		close_peer(worker);
		kx_sleep_ms(20);
	}
	if (ret)
		worker_fault(worker->shared, "worker %u: the target cannot be opened: %d",
			     worker->id, ret);
	worker->half ^= 1;
	worker->broken = false;
	worker->count->tides++;
}

/* Needs no job in flight. A peer with a broken link may be kept: its next target connects. */
static void end_tide(struct worker *worker)
{
	int ret = kx_target_close(worker->fd, worker->target) ?:
		  kx_target_close(worker->fd, worker->mail_target);

	if (ret)
		worker_fault(worker->shared, "worker %u: TARGET_CLOSE says %d", worker->id, ret);
	if (below(worker, 2))
		close_peer(worker);
}

/* ---- workers ---- */

static uint64_t accepted(const struct worker *worker)
{
	const uint64_t *accepted = worker->count->accepted;

	return accepted[KXFER_OP_NOP] + accepted[KXFER_OP_READ] + accepted[KXFER_OP_WRITE] +
	       accepted[KXFER_OP_SEND];
}

static bool is_over(const struct worker *worker)
{
	return worker->shared->stop || worker->shared->nr_faults ||
	       accepted(worker) >= worker->budget || worker->next > NUMBERS - BATCH;
}

/* No completion comes after the last one, and none is missing. */
static void check_all(struct worker *worker)
{
	struct kxfer_completion done[BATCH];
	uint32_t number, ended = 0;
	int ret;

	kx_sleep_ms(50);
	ret = take(worker, done, BATCH, 0);
	if (ret)
		worker_fault(worker->shared,
			     "worker %u: after the last completion REAP says %d, user_data %016llx",
			     worker->id, ret, LLU(done[0].user_data));
	for (number = 0; number < worker->next; number++) {
		if (worker->states[number] == UNUSED || worker->states[number] == ACCEPTED)
			worker_fault(worker->shared, "worker %u job %u never completed",
				     worker->id, number);
		ended += worker->states[number] == ENDED;
	}
	if (accepted(worker) != ended)
		worker_fault(worker->shared, "worker %u: %llu jobs accepted, %u ended",
			     worker->id, LLU(accepted(worker)), ended);
}

static void work(struct worker *worker)
{
	begin_tide(worker);
	while (!is_over(worker)) {
		if (worker->broken) {
			drain(worker);
			end_tide(worker);
			begin_tide(worker);
		}
		if (worker->nr_free && below(worker, 4))
			submit(worker);
		reap(worker, below(worker, 2));
		if (!below(worker, 4))
			mail_take(worker);
	}
	drain(worker);
	if (!worker->shared->nr_faults)
		mail_end(worker);
	if (!worker->shared->nr_faults)
		check_all(worker);
}

static int open_worker(struct worker *worker)
{
	int ret = 0;

	worker->states = mmap(NULL, NUMBERS, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	worker->here = kx_alloc(SPACE);
	if (worker->states == MAP_FAILED || !worker->here)
		return -ENOMEM;
	while (worker->nr_free < DEPTH) {
		worker->free[worker->nr_free] = worker->nr_free;
		worker->nr_free++;
	}
	worker->fd = kx_open();
	if (worker->fd < 0)
		return worker->fd;
	if (is_odd(worker))
		ret = kx_ring_open(worker->fd, RING, KX_NO_EVENTFD, &worker->ring) ?:
		      kx_sq_open(worker->fd, BATCH, &worker->sq);
	ret = ret ?: kx_region_add(worker->fd, worker->here, SPACE, KXFER_REGION_F_WRITE,
				   &worker->region);
	return ret ?: mail_open(worker);
}

void worker_run(uint32_t id, unsigned int seed, uint64_t budget, struct shared *shared,
		const struct rig *server)
{
	static struct worker worker;
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(server->server);
	worker = (struct worker) {
		.id = id,
		.seed = seed,
		.shared = shared,
		.count = &shared->counts[id],
		.server = server,
		.budget = budget,
	};
	ret = open_worker(&worker);
	if (ret)
		worker_fault(shared, "worker %u cannot begin: %d", id, ret);
	else
		work(&worker);
	_exit(0);
}

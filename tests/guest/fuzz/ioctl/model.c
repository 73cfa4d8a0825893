// SPDX-License-Identifier: MIT
/* Model: sessions and their slots; see model.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "model.h"

#define DRAIN_MS	30000	/* a silent peer is given up long before */

struct model *model;

/* for threads that open and close; children do neither */
static pthread_mutex_t files = PTHREAD_MUTEX_INITIALIZER;

/** model_make() - make the only model. Return: 0 or -errno */
int model_make(void)
{
	void *memory = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	model = memory;
	model->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return model->eventfd < 0 ? -errno : 0;
}

/** model_reset() - clear the model before a sequence */
void model_reset(void)
{
	memset(model->sessions, 0, sizeof(model->sessions));
	memset(model->listeners, 0, sizeof(model->listeners));
}

/* Must be called with @files held. A mapping would keep the session open. */
static void unmap_rings(struct model_session *s)
{
	if (s->ring)
		munmap(s->ring, s->ring_bytes);
	if (s->sq)
		munmap(s->sq, s->sq_bytes);
	s->ring = NULL;
	s->sq = NULL;
}

/* Must be called with @files held. Return: the mapping, or NULL, also if there is one: @old. */
static void *map_once(uint32_t session, uint64_t offset, uint64_t bytes, const void *old)
{
	void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, MODEL_FD + session,
			    offset);

	if (shared == MAP_FAILED)
		return NULL;
	if (!old)
		return shared;
	munmap(shared, bytes);
	return NULL;
}

/** model_map_ring() - map the ring of a session, if the session is still the same */
void model_map_ring(uint32_t session, uint64_t offset, uint64_t bytes)
{
	struct model_session *s = &model->sessions[session];
	void *shared;

	pthread_mutex_lock(&files);
	shared = map_once(session, offset, bytes, s->ring);
	if (shared) {
		s->ring_bytes = bytes;
		s->ring = shared;
	}
	pthread_mutex_unlock(&files);
}

/** model_map_sq() - the same for the submission ring */
void model_map_sq(uint32_t session, uint64_t offset, uint64_t bytes)
{
	struct model_session *s = &model->sessions[session];
	void *shared;

	pthread_mutex_lock(&files);
	shared = map_once(session, offset, bytes, s->sq);
	if (shared) {
		s->sq_bytes = bytes;
		s->sq = shared;
	}
	pthread_mutex_unlock(&files);
}

static void put_jobs(struct kxfer_sq *sq, const struct kxfer_job *jobs, uint32_t nr)
{
	struct kxfer_job *slots = (struct kxfer_job *)(sq + 1);
	uint32_t tail = sq->tail, i;

	/* The kernel is not asked for room: it may be reading what is overwritten. */
	for (i = 0; i < nr; i++)
		slots[(tail + i) & sq->mask] = jobs[i];
	__atomic_store_n(&sq->tail, tail + nr, __ATOMIC_RELEASE);
}

/**
 * model_write_sq() - write jobs into the submission ring, or scribble
 * @how: kind of access
 * @jobs: @nr jobs
 */
void model_write_sq(uint32_t session, uint32_t how, const struct kxfer_job *jobs, uint32_t nr)
{
	struct kxfer_sq *sq;

	pthread_mutex_lock(&files);
	sq = model->sessions[session].sq;
	if (sq && how % 32 == 0) {
		sq->tail = how;
	} else if (sq && how % 32 == 1) {
		memset(sq + 1, how >> 5, (sq->mask & 255) * sizeof(*jobs));
		sq->flags = how >> 5 & 7;
	} else if (sq) {
		/* Drop what was refused. */
		if (how % 4 == 2)
			sq->tail = __atomic_load_n(&sq->head, __ATOMIC_ACQUIRE);
		put_jobs(sq, jobs, nr);
		sq->flags = 0;
		sq->deadline_ns = kx_deadline_ns(2);
	}
	pthread_mutex_unlock(&files);
}

/**
 * model_read_ring() - a reader moves head, or scribbles
 * @how: kind of access
 * @head: invalid head to store
 *
 * Does not change tail, which counts the jobs at the end.
 */
void model_read_ring(uint32_t session, uint32_t how, uint32_t head)
{
	struct model_session *s = &model->sessions[session];
	struct kxfer_ring *ring;

	pthread_mutex_lock(&files);
	ring = s->ring;
	if (!ring)
		goto out;
	if (how % 16 == 0)
		__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	else if (how % 16 == 1)
		memset(ring + 1, head, s->ring_bytes - sizeof(*ring));
	else if (how % 16 < 6)
		__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&ring->head, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
out:
	pthread_mutex_unlock(&files);
}

/**
 * model_open() - open a session, replacing the existing one
 *
 * File descriptors are fixed numbers, so that a late call finds a closed one and never another
 * file.
 */
void model_open(uint32_t session)
{
	struct model_session *s = &model->sessions[session];
	int fd = open(KX_NODE, O_RDWR | O_CLOEXEC);
	bool used;

	if (fd < 0)
		return;
	pthread_mutex_lock(&files);
	/* Calls that began on the old session may still be counted for this one. */
	used = s->open || s->inexact;
	unmap_rings(s);
	memset(s, 0, sizeof(*s));
	s->inexact = used;
	dup3(fd, MODEL_FD + session, O_CLOEXEC);
	s->open = true;
	pthread_mutex_unlock(&files);
	close(fd);
}

void model_close(uint32_t session)
{
	struct model_session *s = &model->sessions[session];

	pthread_mutex_lock(&files);
	close(MODEL_FD + session);
	unmap_rings(s);
	s->open = false;
	s->inexact = true;
	pthread_mutex_unlock(&files);
}

/* Takes all completions. Return: 0 when nothing is left, or -errno. */
static int reap_all(uint32_t session)
{
	struct kxfer_completion done[64];
	int ret;

	do {
		ret = kx_reap(MODEL_FD + session, done, 64, 1, DRAIN_MS);
		if (ret > 0)
			model->sessions[session].reaped += ret;
	} while (ret > 0 || ret == -EINTR);
	return ret;
}

/* Jobs are counted by tail, whatever head says. */
static int read_all(uint32_t session)
{
	struct model_session *s = &model->sessions[session];
	uint32_t tail;
	int ret;

	do {
		tail = __atomic_load_n(&s->ring->tail, __ATOMIC_ACQUIRE);
		__atomic_store_n(&s->ring->head, tail, __ATOMIC_RELEASE);
		ret = kx_reap(MODEL_FD + session, NULL, 0, 1, DRAIN_MS);
	} while (ret == -EINTR || (!ret && s->ring->tail != tail));
	s->reaped += tail;
	return ret;
}

static const char *drain(uint32_t session)
{
	static char text[128];
	struct model_session *s = &model->sessions[session];
	int ret = s->ring ? read_all(session) : reap_all(session);

	/* A ring whose creation was not seen. */
	if (ret == -EINVAL && s->inexact)
		ret = kx_reap(MODEL_FD + session, NULL, 0, 0, 0);
	if (!ret && (s->inexact || s->accepted == s->reaped))
		return NULL;
	snprintf(text, sizeof(text), "session %u: %llu jobs accepted, %llu completed, then %s",
		 session, (unsigned long long)s->accepted, (unsigned long long)s->reaped,
		 ret ? strerror(-ret) : "no more");
	return text;
}

/**
 * model_drain() - end all sessions
 *
 * Return: NULL, or what is wrong: jobs that did not complete, or twice.
 */
const char *model_drain(void)
{
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; i < NR_SESSIONS; i++)
		if (model->sessions[i].open) {
			if (!wrong)
				wrong = drain(i);
			model_close(i);
		}
	return wrong;
}

/** model_find() - record the first fault; callable in any thread and any child */
void model_find(const char *format, ...)
{
	va_list arguments;

	if (atomic_exchange(&model->broken, true))
		return;
	va_start(arguments, format);
	vsnprintf(model->finding, sizeof(model->finding), format, arguments);
	va_end(arguments);
}

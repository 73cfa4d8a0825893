// SPDX-License-Identifier: MIT
/* Model: sessions and their slots; see model.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kxfer_test.h"
#include "model.h"

#define DRAIN_MS	30000	/* a silent peer is given up long before */

struct model *model;

/* Of the threads that open and close; children do neither. */
static pthread_mutex_t files = PTHREAD_MUTEX_INITIALIZER;

/** model_make() - the one model. Return: 0 or -errno */
int model_make(void)
{
	void *memory = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	model = memory;
	return 0;
}

/** model_reset() - before a sequence */
void model_reset(void)
{
	memset(model->sessions, 0, sizeof(model->sessions));
	memset(model->listeners, 0, sizeof(model->listeners));
}

/**
 * model_open() - open a session, in place of the one that is there
 *
 * Numbers of files are fixed, so that a call that comes too late meets a closed
 * one and never a stranger's.
 */
void model_open(uint32_t session)
{
	struct model_session *s = &model->sessions[session];
	int fd = open(KX_NODE, O_RDWR | O_CLOEXEC);
	bool used;

	if (fd < 0)
		return;
	pthread_mutex_lock(&files);
	/* Calls that began on another file may yet be counted for this one. */
	used = s->open || s->inexact;
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
	s->open = false;
	s->inexact = true;
	pthread_mutex_unlock(&files);
}

static const char *drain(uint32_t session)
{
	static char text[128];
	struct model_session *s = &model->sessions[session];
	struct kxfer_completion done[64];
	int ret;

	do {
		ret = kx_reap(MODEL_FD + session, done, 64, 1, DRAIN_MS);
		if (ret > 0)
			s->reaped += ret;
	} while (ret > 0 || ret == -EINTR);
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

/** model_find() - remember the first thing that is wrong; any thread, any child */
void model_find(const char *format, ...)
{
	va_list arguments;

	if (atomic_exchange(&model->broken, true))
		return;
	va_start(arguments, format);
	vsnprintf(model->finding, sizeof(model->finding), format, arguments);
	va_end(arguments);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* The engine: a module that carries out the calls of linux/kxfer_bench.h. See engine.c. */
#ifndef KXFER_ENGINE_H
#define KXFER_ENGINE_H

#include <linux/types.h>

struct kxfer_call;
struct kxfer_session;
struct module;

/**
 * struct kxfer_engine - what a module has for the calls of linux/kxfer_bench.h
 * @owner: the module; in use as long as there is a session that has made such a call
 * @version: KXFER_VERSION that the module was built with; must be that of kxfer.ko
 * @calls: array of calls; the index is the number minus KXFER_CMD_ENGINE
 * @nr_calls: entries of @calls
 * @end_session: ends what is in @engine_objects of a session without calls under way; may
 *	sleep
 */
struct kxfer_engine {
	struct module *owner;
	const char *version;
	const struct kxfer_call *calls;
	unsigned int nr_calls;
	void (*end_session)(struct kxfer_session *session);
};

int kxfer_engine_register(const struct kxfer_engine *engine);
void kxfer_engine_unregister(const struct kxfer_engine *engine);

const struct kxfer_call *kxfer_engine_call(struct kxfer_session *session, unsigned int nr);
void kxfer_engine_end_session(struct kxfer_session *session);

#endif /* KXFER_ENGINE_H */

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
 * @owner: the module; in use as long as a session is that has made such a call
 * @version: KXFER_VERSION that it was built with: both are of one release
 * @calls: by number, less KXFER_CMD_ENGINE
 * @nr_calls: of them
 * @end_session: no call of the session is under way: end what is in its @engine_objects;
 *	may sleep
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

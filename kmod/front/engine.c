// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: another module, kxfer_bench.ko, carries out the calls of linux/kxfer_bench.h. A
 * node that only transfers does not load it.
 *
 * A session has the engine, with a reference to its module, from the first such call to the
 * end of the session. A dedicated link has a reference too (link_ops.h), because links end
 * later than sessions. So has the context that notifies a run that its lane is drained (struct
 * kxfer_lane_user). Thus no call and no connection of the engine is left when its module is
 * unloaded. A context may still return from the completion that was the last of a run on a
 * shared lane: the module's exit waits for that (bench/module.c).
 *
 * Context: may sleep.
 */
#include "base/log.h"

#include <linux/capability.h>
#include <linux/err.h>
#include <linux/kmod.h>
#include <linux/kxfer.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/string.h>

#include "front/call.h"
#include "front/engine.h"
#include "node/session.h"

static DEFINE_MUTEX(engine_mutex);
static const struct kxfer_engine *the_engine;

/**
 * kxfer_engine_register() - carry out the calls of linux/kxfer_bench.h from now on
 * @engine: the engine; does not change until it is unregistered
 *
 * Return: 0; -EEXIST: there is an engine; -EINVAL: @engine is of another release.
 */
int kxfer_engine_register(const struct kxfer_engine *engine)
{
	int ret = 0;

	if (strcmp(engine->version, KXFER_VERSION)) {
		kxfer_err("%s is of release %s, this module of " KXFER_VERSION,
			  module_name(engine->owner), engine->version);
		return -EINVAL;
	}
	mutex_lock(&engine_mutex);
	if (the_engine)
		ret = -EEXIST;
	else
		the_engine = engine;
	mutex_unlock(&engine_mutex);
	return ret;
}

/** kxfer_engine_unregister() - no session has the engine: its module is being unloaded */
void kxfer_engine_unregister(const struct kxfer_engine *engine)
{
	mutex_lock(&engine_mutex);
	WARN_ON(the_engine != engine);
	the_engine = NULL;
	mutex_unlock(&engine_mutex);
}

/* Return: the engine, with a reference to its module; or NULL */
static const struct kxfer_engine *get_engine(void)
{
	const struct kxfer_engine *engine;

	mutex_lock(&engine_mutex);
	engine = the_engine;
	if (engine && !try_module_get(engine->owner))
		engine = NULL;
	mutex_unlock(&engine_mutex);
	return engine;
}

/* Loads the module only with CAP_NET_ADMIN. Return: as get_engine(), or ERR_PTR */
static const struct kxfer_engine *find_engine(void)
{
	const struct kxfer_engine *engine = get_engine();

	if (engine)
		return engine;
	if (!capable(CAP_NET_ADMIN))
		return ERR_PTR(-EPERM);
	request_module("kxfer_bench");
	return get_engine() ?: ERR_PTR(-EOPNOTSUPP);
}

/* Return: the engine of the session, set by the session's first such call; or ERR_PTR */
static const struct kxfer_engine *engine_of(struct kxfer_session *session)
{
	/* Pairs with the cmpxchg() below, of another thread. */
	const struct kxfer_engine *engine = smp_load_acquire(&session->engine);
	const struct kxfer_engine *other;

	if (engine)
		return engine;
	engine = find_engine();
	if (IS_ERR(engine))
		return engine;
	other = cmpxchg(&session->engine, NULL, engine);
	/* Another thread's call came first. */
	if (other)
		module_put(engine->owner);
	return other ?: engine;
}

/**
 * kxfer_engine_call() - find a call of the engine
 * @session: session of the caller
 * @nr: _IOC_NR, from KXFER_CMD_ENGINE to KXFER_CMD_ENGINE_LAST
 *
 * Loads the engine's module, if the caller has CAP_NET_ADMIN. Return: the call, valid as long
 * as the session; or ERR_PTR(-EPERM): the module is not loaded, and the caller may not load it;
 * -EOPNOTSUPP: there is no such module; -ENOTTY: no such call.
 */
const struct kxfer_call *kxfer_engine_call(struct kxfer_session *session, unsigned int nr)
{
	const struct kxfer_engine *engine = engine_of(session);

	if (IS_ERR(engine))
		return ERR_CAST(engine);
	nr -= KXFER_CMD_ENGINE;
	if (nr >= engine->nr_calls)
		return ERR_PTR(-ENOTTY);
	return &engine->calls[array_index_nospec(nr, engine->nr_calls)];
}

/** kxfer_engine_end_session() - end what the engine has in a session; no call is under way */
void kxfer_engine_end_session(struct kxfer_session *session)
{
	const struct kxfer_engine *engine = session->engine;

	if (engine) {
		engine->end_session(session);
		module_put(engine->owner);
	}
	xa_destroy(&session->engine_objects);
}

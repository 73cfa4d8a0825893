// SPDX-License-Identifier: GPL-2.0
/*
 * The exports of this node, by name and by id, and their exposures on links. Each network
 * namespace has names of its own; only the built-in export is in all of them.
 *
 * One mutex protects all tables; each GRANT of a peer and each EXPORT_ADD takes it. So the
 * time under it must not grow with the number of exports of others. Names and exposures are
 * hashed. A walk over all exports (LIST, INFO) drops the mutex after every WALK_STEPS of
 * them. Users choose names, so the seed of the hash is random and not known to them.
 *
 * Context: all may sleep.
 */
#include "base/log.h"

#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/netns/hash.h>

#include "base/fault.h"
#include "link/link.h"
#include "share/export.h"
#include "share/export_table.h"
#include "share/exposure.h"

#define TABLE_BITS	12
#define WALK_STEPS	64

static DEFINE_MUTEX(exports_mutex);
static DEFINE_XARRAY_FLAGS(exports, XA_FLAGS_ACCOUNT);
static DEFINE_HASHTABLE(names, TABLE_BITS);
static DEFINE_HASHTABLE(exposures, TABLE_BITS);
static DEFINE_HASHTABLE(exposure_ids, TABLE_BITS);
static atomic64_t last_export_id;
static u64 last_exposure_id;

/** kxfer_exports_lock() - until unlocked nothing is published, exposed or withdrawn */
void kxfer_exports_lock(void)
{
	mutex_lock(&exports_mutex);
}

/** kxfer_exports_unlock() - end of kxfer_exports_lock() */
void kxfer_exports_unlock(void)
{
	mutex_unlock(&exports_mutex);
}

/*
 * Of the tables, and of this node. Not by get_random_once(), which leaves a work behind: that is
 * not waited for when the module fails to load after its first export.
 */
static u32 seed;
static u64 node;

/** kxfer_export_table_init() - begin to know this node; before all others here */
void kxfer_export_table_init(void)
{
	get_random_bytes(&seed, sizeof(seed));
	get_random_bytes(&node, sizeof(node));
}

static u32 name_hash(const struct net *net, const void *name)
{
	return jhash(name, KXFER_NAME_MAX + 1, seed ^ (net ? net_hash_mix(net) : 0));
}

/** kxfer_export_node() - a random number of this node, the same as long as its module is loaded */
u64 kxfer_export_node(void)
{
	return node;
}

static struct kxfer_export *find_in(const struct net *net, const u8 *name)
{
	struct kxfer_export *export;

	hash_for_each_possible(names, export, name_node, name_hash(net, name))
		if (export->net == net && !memcmp(export->name, name, sizeof(export->name)))
			return export;
	return NULL;
}

/**
 * kxfer_export_table_find() - find the export of a name
 * @net: network namespace that is looked in
 * @name: name in KXFER_NAME_MAX + 1 bytes, filled up with zeros
 *
 * Called with kxfer_exports_lock(). Return: the export or NULL.
 */
struct kxfer_export *kxfer_export_table_find(const struct net *net, const u8 *name)
{
	return find_in(net, name) ?: find_in(NULL, name);
}

/* Called with the mutex held. The entry of the export's id is reserved: needs no memory. */
static int add_locked(struct kxfer_export *export)
{
	if (find_in(export->net, (const u8 *)export->name))
		return -EEXIST;
	xa_store(&exports, export->node_id, export, GFP_NOWAIT);
	hash_add(names, &export->name_node, name_hash(export->net, export->name));
	return 0;
}

/**
 * kxfer_export_table_add() - make an export open to peers, and set its @node_id
 * @export: export with its name
 *
 * Ids are never reused, and end at ULONG_MAX. Memory is allocated, and charged to the caller,
 * without the mutex: it may have to be reclaimed first.
 *
 * Return: 0, -EEXIST, -ENOMEM or -ENOSPC.
 */
int kxfer_export_table_add(struct kxfer_export *export)
{
	u64 id = atomic64_inc_return(&last_export_id);
	int ret;

	if (id > ULONG_MAX)
		return -ENOSPC;
	ret = kxfer_try(EXPORT_TABLE, xa_reserve(&exports, id, GFP_KERNEL_ACCOUNT));
	if (ret)
		return ret;
	export->node_id = id;
	mutex_lock(&exports_mutex);
	ret = add_locked(export);
	mutex_unlock(&exports_mutex);
	if (ret)
		xa_release(&exports, id);
	return ret;
}

/** kxfer_export_table_del() - take an export off the table; called once after adding it */
void kxfer_export_table_del(struct kxfer_export *export)
{
	mutex_lock(&exports_mutex);
	xa_erase(&exports, export->node_id);
	hash_del(&export->name_node);
	mutex_unlock(&exports_mutex);
}

/**
 * kxfer_export_walk_on() - the next export
 * @walk: position of the walk
 *
 * Called with kxfer_exports_lock(), which may be dropped meanwhile: exports and exposures
 * seen before must not be touched any more.
 *
 * Return: the export, or NULL after the last one.
 */
struct kxfer_export *kxfer_export_walk_on(struct kxfer_export_walk *walk)
{
	unsigned long at = walk->after;
	struct kxfer_export *export;

	if (at != walk->after)
		return NULL;
	if (++walk->steps % WALK_STEPS == 0) {
		mutex_unlock(&exports_mutex);
		cond_resched();
		mutex_lock(&exports_mutex);
	}
	export = xa_find_after(&exports, &at, ULONG_MAX, XA_PRESENT);
	if (export)
		walk->after = export->node_id;
	return export;
}

static u32 exposure_hash(const struct kxfer_link *link, const struct kxfer_export *export,
			 u32 rights)
{
	return jhash_3words(link->id, export->node_id, rights, seed);
}

/**
 * kxfer_exposure_table_add() - put an exposure on all lists, and set its @id
 * @exposure: exposure with link, export and rights
 *
 * Called with kxfer_exports_lock().
 */
void kxfer_exposure_table_add(struct kxfer_exposure *exposure)
{
	exposure->id = ++last_exposure_id;
	list_add_tail(&exposure->export_node, &exposure->export->exposures);
	list_add_tail(&exposure->link_node, &exposure->link->exposures);
	hash_add(exposures, &exposure->hash_node,
		 exposure_hash(exposure->link, exposure->export, exposure->rights));
	hash_add(exposure_ids, &exposure->id_node, exposure->id);
}

/**
 * kxfer_exposure_table_del() - take an exposure off all lists
 * @exposure: exposure, perhaps off the lists already
 *
 * Called with kxfer_exports_lock(). Return: false if the exposure was off.
 */
bool kxfer_exposure_table_del(struct kxfer_exposure *exposure)
{
	if (list_empty(&exposure->link_node))
		return false;
	list_del_init(&exposure->link_node);
	list_del_init(&exposure->export_node);
	hash_del(&exposure->hash_node);
	hash_del(&exposure->id_node);
	return true;
}

/**
 * kxfer_exposure_table_find() - the exposure of an export on a link
 * @link: passive link
 * @export: export, published or withdrawn meanwhile
 * @rights: exact rights of the exposure
 *
 * Called with kxfer_exports_lock(). Return: the exposure or NULL.
 */
struct kxfer_exposure *kxfer_exposure_table_find(const struct kxfer_link *link,
						 const struct kxfer_export *export, u32 rights)
{
	struct kxfer_exposure *exposure;

	hash_for_each_possible(exposures, exposure, hash_node,
			       exposure_hash(link, export, rights))
		if (exposure->link == link && exposure->export == export &&
		    exposure->rights == rights)
			return exposure;
	return NULL;
}

/**
 * kxfer_exposure_table_by_id() - the exposure on a link that has an id
 * @link: passive link
 * @id: id of an exposure, untrusted
 *
 * Called with kxfer_exports_lock(). Return: the exposure or NULL.
 */
struct kxfer_exposure *kxfer_exposure_table_by_id(const struct kxfer_link *link, u64 id)
{
	struct kxfer_exposure *exposure;

	hash_for_each_possible(exposure_ids, exposure, id_node, id)
		if (exposure->link == link && exposure->id == id)
			return exposure;
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Which exports there are on this node, by name and by id, and which of them are exposed
 * on which link.
 *
 * All of it is under one mutex, which every peer's GRANT takes, and every EXPORT_ADD. So
 * nothing under it takes longer the more exports of others there are: names and exposures are
 * hashed, and who has to look at all exports, as LIST and INFO do, lets others have the
 * mutex after WALK_STEPS of them. Names are chosen by users, who do not know the seed.
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

#include "base/fault.h"
#include "link/link.h"
#include "share/export.h"
#include "share/export_table.h"

#define TABLE_BITS	12
#define WALK_STEPS	64

static DEFINE_MUTEX(exports_mutex);
static DEFINE_XARRAY_FLAGS(exports, XA_FLAGS_ACCOUNT);
static DEFINE_HASHTABLE(names, TABLE_BITS);
static DEFINE_HASHTABLE(exposures, TABLE_BITS);
static DEFINE_HASHTABLE(exposure_ids, TABLE_BITS);
static atomic64_t last_export_id;
static u64 last_exposure_id;

/** kxfer_exports_lock() - nothing is published, exposed or withdrawn meanwhile */
void kxfer_exports_lock(void)
{
	mutex_lock(&exports_mutex);
}

/** kxfer_exports_unlock() - end of kxfer_exports_lock() */
void kxfer_exports_unlock(void)
{
	mutex_unlock(&exports_mutex);
}

static u32 seed(void)
{
	static u32 value;

	get_random_once(&value, sizeof(value));
	return value;
}

static u32 name_hash(const void *name)
{
	return jhash(name, KXFER_NAME_MAX + 1, seed());
}

/**
 * kxfer_export_table_find() - the export of a name
 * @name: of KXFER_NAME_MAX + 1 bytes, zeroes behind it
 *
 * Called with kxfer_exports_lock(). Return: it, or NULL.
 */
struct kxfer_export *kxfer_export_table_find(const u8 *name)
{
	struct kxfer_export *export;

	hash_for_each_possible(names, export, name_node, name_hash(name))
		if (!memcmp(export->name, name, sizeof(export->name)))
			return export;
	return NULL;
}

/* Called with the mutex held; the place of its id is reserved, so that no memory is needed. */
static int add_locked(struct kxfer_export *export)
{
	if (kxfer_export_table_find((const u8 *)export->name))
		return -EEXIST;
	xa_store(&exports, export->node_id, export, GFP_NOWAIT);
	hash_add(names, &export->name_node, name_hash(export->name));
	return 0;
}

/**
 * kxfer_export_table_add() - an export can be opened from now on; it gets its @node_id
 * @export: with its name
 *
 * An id is never used again; where a pointer has 32 bits there are no more than that. Memory
 * is allocated, and charged to the caller, without the mutex: it may have to be reclaimed first.
 *
 * Return: 0, -EEXIST, -ENOMEM or -ENOSPC.
 */
int kxfer_export_table_add(struct kxfer_export *export)
{
	u64 id = atomic64_inc_return(&last_export_id);
	int ret;

	if (id > ULONG_MAX)
		return -ENOSPC;
	ret = kxfer_fault_error(EXPORT_TABLE) ?: xa_reserve(&exports, id, GFP_KERNEL_ACCOUNT);
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

/** kxfer_export_table_del() - an export cannot be opened any more; it was added, once */
void kxfer_export_table_del(struct kxfer_export *export)
{
	mutex_lock(&exports_mutex);
	xa_erase(&exports, export->node_id);
	hash_del(&export->name_node);
	mutex_unlock(&exports_mutex);
}

/**
 * kxfer_export_walk_on() - the next export
 * @walk: where the last one was
 *
 * Called with kxfer_exports_lock(), which may be let go meanwhile: an export or exposure
 * seen before is not to be touched any more.
 *
 * Return: it, or NULL behind the last.
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
	return jhash_3words(link->id, export->node_id, rights, seed());
}

/**
 * kxfer_exposure_table_add() - an export is exposed; the exposure gets its @id
 * @exposure: with link, export and rights
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
 * @exposure: in them, or no more
 *
 * Called with kxfer_exports_lock(). Return: false if it was off.
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
 * @link: passive
 * @export: published, or withdrawn meanwhile
 * @rights: exactly these
 *
 * Called with kxfer_exports_lock(). Return: it, or NULL.
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
 * kxfer_exposure_table_by_id() - an exposure on a link
 * @link: passive
 * @id: untrusted
 *
 * Called with kxfer_exports_lock(). Return: it, or NULL.
 */
struct kxfer_exposure *kxfer_exposure_table_by_id(const struct kxfer_link *link, u64 id)
{
	struct kxfer_exposure *exposure;

	hash_for_each_possible(exposure_ids, exposure, id_node, id)
		if (exposure->link == link && exposure->id == id)
			return exposure;
	return NULL;
}

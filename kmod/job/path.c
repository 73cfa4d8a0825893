// SPDX-License-Identifier: GPL-2.0
/*
 * Paths: the ways to a peer, each a pair of addresses and perhaps a device.
 *
 * A peer has one link at a time. Whoever needs another after it broke tries the path behind the
 * one that was tried last, and so on in turn (kxfer_peer_link()); the peer's line goes back to the
 * first path when that works again (reconnect.c). To use several paths at the same time a session
 * opens the peer once for each, every time with another path as the first.
 *
 * Links are found by their key. So sessions that go to a node over the same path share a link, in
 * whatever order they have the paths.
 *
 * Context: for a user; may sleep.
 */
#include <linux/kxfer.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "base/fault.h"
#include "job/path.h"
#include "link/key.h"
#include "link/lane.h"

static int check(const struct kxfer_path *path)
{
	const struct kxfer_addr *local = &path->local;

	if (local->port ||
	    strnlen((const char *)path->device, sizeof(path->device)) == sizeof(path->device) ||
	    kxfer_addr_check(&path->remote))
		return -EINVAL;
	if (!local->family)
		return memchr_inv(local, 0, sizeof(*local)) ? -EINVAL : 0;
	return kxfer_addr_check(local) || local->family != path->remote.family ? -EINVAL : 0;
}

/* Links are found by comparing whole keys: no stray bytes in them. Return: 0 or -EINVAL */
static int set_key(struct kxfer_link_key *key, const struct kxfer_path *path,
		   const struct kxfer_peer_open *cmd)
{
	int ret = check(path);

	if (ret)
		return ret;
	key->remote = path->remote;
	if (!key->remote.port)
		key->remote.port = KXFER_PORT;
	key->local = path->local;
	strscpy_pad((char *)key->device, (const char *)path->device, sizeof(key->device));
	key->context = cmd->context;
	key->tos_set = cmd->flags & KXFER_PEER_F_TOS;
	key->tos = cmd->tos;
	key->in_flight_kib = cmd->in_flight_kib ?: KXFER_IN_FLIGHT_KIB;
	return kxfer_patience_init(&key->patience, cmd->silence_ms, cmd->ack_timeout,
				   cmd->retry_count);
}

static int set_first(struct kxfer_paths *paths, const struct kxfer_peer_open *cmd)
{
	struct kxfer_path path = { .remote = cmd->remote, .local = cmd->local };

	memcpy(path.device, cmd->device, sizeof(path.device));
	return set_key(&paths->keys[0], &path, cmd);
}

static int set_others(struct kxfer_paths *paths, const struct kxfer_peer_open *cmd)
{
	const struct kxfer_path __user *via = u64_to_user_ptr(cmd->via);
	struct kxfer_path path;
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < cmd->nr_via; i++) {
		if (copy_from_user(&path, via + i, sizeof(path)))
			return -EFAULT;
		ret = set_key(&paths->keys[1 + i], &path, cmd);
	}
	return ret;
}

/* Take the key that the caller gave, if any. Only peers with the same key share a link. */
static int set_secret(struct kxfer_paths *paths, const struct kxfer_peer_open *cmd)
{
	struct kxfer_key *key;
	u32 i;

	if (!memchr_inv(cmd->key, 0, sizeof(cmd->key)))
		return 0;
	key = kxfer_key_create(cmd->key);
	if (IS_ERR(key))
		return PTR_ERR(key);
	for (i = 0; i < paths->nr; i++) {
		paths->keys[i].secret = key;
		memcpy(paths->keys[i].secret_id, key->id, sizeof(key->id));
	}
	return 0;
}

/**
 * kxfer_paths_create() - the paths that a caller gives
 * @cmd: copy of the user's; what concerns no path is checked
 * @net: network namespace, which the caller holds as long as the paths
 *
 * Return: the paths, with the first as that of the link; or ERR_PTR: -EINVAL, -EFAULT, -ENOMEM, or
 * an error of kxfer_key_create().
 */
struct kxfer_paths *kxfer_paths_create(const struct kxfer_peer_open *cmd, struct net *net)
{
	struct kxfer_paths *paths;
	u32 i;
	int ret;

	if (cmd->nr_via > KXFER_MAX_VIA || !cmd->nr_via != !cmd->via ||
	    (cmd->nr_via && !cmd->loss_ms))
		return ERR_PTR(-EINVAL);
	paths = kxfer_try_alloc(PATHS, kzalloc(struct_size(paths, keys, 1 + cmd->nr_via),
					       GFP_KERNEL_ACCOUNT));
	if (!paths)
		return ERR_PTR(-ENOMEM);
	paths->nr = 1 + cmd->nr_via;
	for (i = 0; i < paths->nr; i++)
		paths->keys[i].net = net;
	ret = set_first(paths, cmd) ?: set_others(paths, cmd) ?: set_secret(paths, cmd);
	if (!ret)
		return paths;
	kxfer_paths_free(paths);
	return ERR_PTR(ret);
}

/** kxfer_paths_free() - free the paths; NULL is none */
void kxfer_paths_free(struct kxfer_paths *paths)
{
	if (!paths)
		return;
	kxfer_key_put(paths->keys[0].secret);
	kfree(paths);
}

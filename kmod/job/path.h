/* SPDX-License-Identifier: GPL-2.0 */
/* The ways to a peer. See path.c. */
#ifndef KXFER_PATH_H
#define KXFER_PATH_H

#include <linux/types.h>

#include "link/link.h"

struct kxfer_peer_open;
struct net;

/**
 * struct kxfer_paths - the ways to a peer, the first of which is preferred
 * @nr: length of @keys, at least 1
 * @at: path of the peer's link; protected by the lock of the peer
 * @keys: keys of links, one for each path; all with the same secret, of which the paths hold one
 *	reference
 */
struct kxfer_paths {
	u32 nr;
	u32 at;
	struct kxfer_link_key keys[];
};

struct kxfer_paths *kxfer_paths_create(const struct kxfer_peer_open *cmd, struct net *net);
void kxfer_paths_free(struct kxfer_paths *paths);

/* KXFER_WIRE_FEATURE_* of a link whose jobs may outlive it. */
static inline u32 kxfer_paths_features(const struct kxfer_paths *paths)
{
	return KXFER_WIRE_FEATURE_RESUME | (paths->nr > 1 ? KXFER_WIRE_FEATURE_VIA : 0);
}

#endif /* KXFER_PATH_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* Listing objects for user space. See info.c. */
#ifndef KXFER_INFO_H
#define KXFER_INFO_H

#include <linux/types.h>
#include <linux/xarray.h>

struct kxfer_session;

/**
 * struct kxfer_viewer - a caller of INFO without CAP_NET_ADMIN
 * @session: of the call
 * @links: for a list of links or lanes an entry for the id of each link, a value: not 0 if a
 *	session of the caller's uid has a peer on it; of an accepted link how many grants its
 *	peer holds on exports of that uid. Ids are never used again: no entry is of another
 *	link
 */
struct kxfer_viewer {
	const struct kxfer_session *session;
	struct xarray links;
};

int kxfer_info_list(struct kxfer_session *session, void *arg);
u32 kxfer_info_record_size(u32 kind);
u32 kxfer_info_fill(const struct kxfer_viewer *viewer, u32 kind, u64 *cursor,
		    void *records, u32 nr);

#endif /* KXFER_INFO_H */

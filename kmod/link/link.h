/* SPDX-License-Identifier: GPL-2.0 */
/* The connection between this node and a peer: link.c; the table of links: link_table.c. */
#ifndef KXFER_LINK_H
#define KXFER_LINK_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/kxfer.h>
#include <linux/list.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "base/addr.h"
#include "base/patience.h"
#include "base/wire.h"
#include "link/iwarp.h"
#include "link/key.h"
#include "node/device.h"

struct kxfer_device;
struct kxfer_lane;
struct kxfer_link_ops;
struct kxfer_user;
struct kxfer_viewer;
struct net;

#define KXFER_REQUEST_MS	15000	/* any request unanswered: link is dead */
#define KXFER_IDLE_MS		30000	/* after this an unused link is closed */

/**
 * struct kxfer_link_key - sessions with equal keys share a link
 * @net: network namespace; held by the session or the link
 * @remote: the peer's listener
 * @local: own address asked for, family 0: any
 * @device: device asked for, or empty
 * @context: enum kxfer_context
 * @tos_set: KXFER_PEER_F_TOS, or 0: packets have the device's type of service
 * @tos: IP type of service
 * @patience: how long the link waits for its peer
 * @in_flight_kib: most KiB that bulk jobs have posted at a time
 * @secret_id: kxfer_key.id of @secret; 0: none
 * @secret: key that both ends have to prove, or NULL; a reference held by the peer object or
 *	the link. Must be the last member: the comparison ends after @secret_id
 */
struct kxfer_link_key {
	struct net *net;
	struct kxfer_addr remote;
	struct kxfer_addr local;
	u8 device[KXFER_DEVICE_NAME_MAX];
	u32 context;
	u32 tos_set;
	u32 tos;
	struct kxfer_patience patience;
	u32 in_flight_kib;
	u8 secret_id[KXFER_KEY_ID_BYTES];
	struct kxfer_key *secret;
};

/**
 * struct kxfer_link - a connection with a peer node, in one direction
 * @ref: references; one is held by the link's life, from creation to teardown
 * @rcu: frees the memory of the link
 * @id: node-wide id
 * @node: in the list of links, from creation to teardown
 * @initiator: this node made the link and opens targets; else this node serves grants
 * @ops: hooks of the user of the link
 * @net: network namespace of the link; a reference
 * @key: initiator: key that the link was made for
 * @context: private pointer for @ops; NULL if the link is shared
 * @user: initiator: user that is charged for the link while it is in the list; a reference
 * @memcg: memory cgroup charged for the link: of the call that made it, or of the creator
 *	of the listener; a reference
 * @local: own address
 * @remote: peer's address; see struct kxfer_info_link
 * @dev: device, once the address is resolved
 * @on_device: in kxfer_device.links
 * @pd: protection domain of this link alone
 * @nr_objects: MRs in @pd, and lanes that are not closed; @pd stays until this is 0
 * @cookie: secret that data lanes show, unless the link has a key
 * @keys: passive: keys of the listener, NULL: it has none; a reference
 * @handshake: state of the proof of a key
 * @epoch: id of the link at its initiator
 * @gid_type: GID type of the path, ~0: none
 * @sgid: own GID of the path, once the QP is connected; zeros: none
 * @dgid: GID of the peer, once the QP is connected; zeros: none
 * @tos: IP type of service, as far as it is known
 * @patience: how long the link waits for its peer; passive: as its listener, but for @retry_count,
 *	which is the initiator's
 * @features: KXFER_WIRE_FEATURE_* of both ends; set before there is a data lane
 * @device_name: name of the device, kept after the device has gone
 * @lock: over state, error, lanes, users; irq-safe; a leaf but for the locks of queue_work()
 * @state: enum kxfer_link_state; see the table in link.c
 * @error: reason why the link ended, -errno
 * @lanes: control QP and data lanes, by kxfer_lane.node
 * @control: the control QP
 * @data: data lanes, [0] is lane 1
 * @nr_data: highest index of a data lane; initiator: @max_data once the link is LIVE
 * @max_data: number of data lanes, agreed on when the control QP was connected
 * @users: peers and targets of this node's sessions
 * @wait: woken by every change of state and by the end of jobs and targets
 * @connect_task: initiator: thread that connects the link; a reference, put by the teardown
 * @connect_done: initiator: that thread has ended
 * @keepalive_work: check of the peer, kxfer_patience_keepalive_ms() after the last one
 * @content_work: passive: sends new content of exports to the peer
 * @teardown_work: teardown of the link; queued once
 * @refusal: enum kxfer_refusal
 * @created_ns: time of creation
 * @unused_ns: time since when @users is 0; passive: since when @nr_grants is 0
 * @ended: lanes are stopped, and what used them has ended; see teardown_work()
 * @fenced: initiator: the peer has stopped the lanes, too; see fence.c
 * @keeps_grant: the peer has a grant that could not be given back
 * @rtt_ns: round-trip time of the last PING
 * @nr_calls: calls of the engine that use the link
 * @placement: passive: what the peer's placement READs READ (iwarp.c)
 * @placement_addr: initiator: address of the peer's bytes for placement READs
 * @placement_key: initiator: rkey of these bytes, 0: none
 * @targets_lock: over @targets, @closed_targets, @orphans, @opening, @revoked; bh-safe
 * @targets: initiator: open targets, by kxfer_target.link_node
 * @closed_targets: initiator: closed targets whose grants have to be given back
 * @orphans: initiator: grants of the peer that no target took; struct orphan (release.c)
 * @release_work: initiator: gives back grants of @closed_targets and @orphans; see release.c
 * @opening: initiator: targets that wait for the answer to GRANT, oldest first
 * @last_opening: initiator: number of the last target added to @opening
 * @revoked: initiator: ids of exposures revoked while @opening is not empty; the value is
 *	@last_opening at that time
 * @nr_revoked: entries of @revoked
 * @exposures: passive: exposures, by kxfer_exposure.link_node, under the exports mutex
 * @grants: passive: struct kxfer_grant by id
 * @nr_grants: passive: entries of @grants
 * @register_mutex: passive: serializes registrations of memory
 */
struct kxfer_link {
	struct kref ref;
	struct rcu_head rcu;
	u64 id;
	struct list_head node;
	bool initiator;
	const struct kxfer_link_ops *ops;
	struct net *net;
	struct kxfer_link_key key;
	void *context;
	struct kxfer_user *user;
	struct mem_cgroup *memcg;
	struct kxfer_addr local;
	struct kxfer_addr remote;
	struct kxfer_device *dev;
	struct kxfer_device_user on_device;
	struct ib_pd *pd;
	atomic_t nr_objects;
	u8 cookie[KXFER_WIRE_COOKIE_SIZE];
	struct kxfer_keys *keys;
	struct kxfer_handshake handshake;
	u64 epoch;
	u32 gid_type;
	union ib_gid sgid;
	union ib_gid dgid;
	u32 tos;
	struct kxfer_patience patience;
	u32 features;
	u8 device_name[KXFER_DEVICE_NAME_MAX];

	spinlock_t lock;
	enum kxfer_link_state state;
	int error;
	struct list_head lanes;
	struct kxfer_lane *control;
	struct kxfer_lane *data[KXFER_WIRE_LANES_MAX];
	u32 nr_data;
	u32 max_data;
	u32 users;
	wait_queue_head_t wait;
	struct task_struct *connect_task;
	struct completion connect_done;
	struct delayed_work keepalive_work;
	struct work_struct content_work;
	struct work_struct teardown_work;
	u32 refusal;

	u64 created_ns;
	u64 unused_ns;
	bool ended;
	bool fenced;
	bool keeps_grant;
	u64 rtt_ns;
	atomic_t nr_calls;

	struct kxfer_placement placement;
	u64 placement_addr;
	u32 placement_key;

	spinlock_t targets_lock;
	struct list_head targets;
	struct list_head closed_targets;
	struct list_head orphans;
	struct work_struct release_work;
	struct list_head opening;
	unsigned long last_opening;
	struct xarray revoked;
	u32 nr_revoked;

	struct list_head exposures;
	struct xarray grants;
	atomic_t nr_grants;
	struct mutex register_mutex;
};

extern struct workqueue_struct *kxfer_wq;
extern struct workqueue_struct *kxfer_handler_wq;

int kxfer_link_init(const struct kxfer_link_ops *initiator,
		    const struct kxfer_link_ops *passive);
void kxfer_link_exit(void);

/* link_table.c */
struct kxfer_link *kxfer_link_get(const struct kxfer_link_key *key,
				  struct kxfer_user *user, unsigned int timeout_ms,
				  u32 *refusal);
struct kxfer_link *kxfer_link_dedicate(const struct kxfer_link_key *key,
				       struct kxfer_user *user,
				       const struct kxfer_link_ops *ops,
				       void *context);
struct kxfer_link *kxfer_link_create_passive(struct net *net, const struct kxfer_addr *peer);
struct kxfer_link *kxfer_link_find_cookie(const struct net *net,
					  const struct kxfer_wire_hello *hello,
					  const struct kxfer_addr *peer);
struct kxfer_link *kxfer_link_find_former(const struct kxfer_link *link,
					  const struct kxfer_wire_resume *resume);
void kxfer_link_rename_device(const struct kxfer_device *dev, const char *name);
u32 kxfer_link_ids(u64 *cursor, u64 *ids, u32 nr);
u32 kxfer_link_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr);
u32 kxfer_lane_info(const struct kxfer_viewer *viewer, u64 *cursor, void *records, u32 nr);
void kxfer_lane_visit(const struct kxfer_viewer *viewer,
		      bool (*visit)(const struct kxfer_lane *lane, void *context), void *context);
void kxfer_link_fail_net(const struct net *net, int error);
void kxfer_link_fail_all(int error);
void kxfer_link_unpublish(struct kxfer_link *link);

/* link.c */
struct kxfer_link *kxfer_link_alloc(bool initiator, struct net *net,
				    const struct kxfer_link_ops *ops, void *context);
void *kxfer_link_kvzalloc(const struct kxfer_link *link, size_t bytes);
void kxfer_link_start(struct kxfer_link *link);
int kxfer_link_wait_live(struct kxfer_link *link, unsigned int timeout_ms);
void kxfer_link_wait_none(void);
void kxfer_link_ref(struct kxfer_link *link);
void kxfer_link_put(struct kxfer_link *link);
void kxfer_link_count(struct kxfer_link *link, int nr);
void kxfer_link_use(struct kxfer_link *link);
bool kxfer_link_try_use(struct kxfer_link *link);
void kxfer_link_unuse(struct kxfer_link *link);
void kxfer_link_fail(struct kxfer_link *link, int error);
void kxfer_link_queue_content(struct kxfer_link *link);
bool kxfer_link_queue_release(struct kxfer_link *link);
u64 kxfer_link_heard_ns(const struct kxfer_link *link);
bool kxfer_link_is_live(struct kxfer_link *link);
bool kxfer_link_is_dead(struct kxfer_link *link);
int kxfer_link_attach_device(struct kxfer_link *link, struct ib_device *ibdev);
int kxfer_link_add_lane(struct kxfer_link *link, struct kxfer_lane *lane);
int kxfer_link_set_live(struct kxfer_link *link);
bool kxfer_link_has_key(const struct kxfer_link *link);
void kxfer_link_end_soon(struct kxfer_link *link);
void kxfer_link_protocol_error(struct kxfer_link *link, const char *what);
int kxfer_link_job_error(struct kxfer_link *link);
u64 kxfer_link_longest(const struct kxfer_link *link);
int kxfer_link_numa_node(const struct kxfer_link *link);

#endif /* KXFER_LINK_H */

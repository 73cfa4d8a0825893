// SPDX-License-Identifier: GPL-2.0
/*
 * Connection management: the steps of rdma_cm for one lane, both sides.
 *
 * The initiator's steps run in connect_thread of the link, with the kernel's own
 * credentials. So the control connection can be bound to a reserved source port
 * (below 1024), regardless of the rights of the user that opened the peer. A listener
 * takes control connections from such ports only, because any user of the peer's
 * machine can open a QP and an rdma_cm id. The connection carries a random cookie,
 * which every data lane has to show.
 *
 * The event handler runs in the one ordered workqueue of rdma_cm, which all ULPs
 * share: it records the event, queues work and returns.
 *
 * The context of each id is its lane, from the first possible event on. The lane
 * outlives the id, because the link's teardown destroys the id first.
 */
#include "base/log.h"

#include <linux/cpumask.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>

#include "base/decode.h"
#include "base/fault.h"
#include "base/stats.h"
#include "link/cm.h"
#include "link/hello.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "link/link_trace.h"
#include "node/device.h"

#define RESOLVE_MS		3000	/* for the address, and for the route */
#define CONNECT_MS		10000
#define RESERVED_PORT_MIN	665	/* as sunrpc's min_resvport */
#define RESERVED_PORT_MAX	1023
#define RD_ATOM_MAX		128	/* conn_param holds it in a u8 */

static unsigned int max_lanes = 4;
module_param(max_lanes, uint, 0644);
MODULE_PARM_DESC(max_lanes, "data lanes of a link, asked for and granted (4; at most 8)");

static const char *const refusal_texts[] = {
	[KXFER_REFUSAL_NONE]		= "no reason given",
	[KXFER_REFUSAL_MAGIC]		= "not a kxfer connection",
	[KXFER_REFUSAL_VERSION]		= "no protocol version in common",
	[KXFER_REFUSAL_PORT]		= "source port is not below 1024",
	[KXFER_REFUSAL_COOKIE]		= "lane of no link",
	[KXFER_REFUSAL_LIMIT]		= "too many links",
	[KXFER_REFUSAL_RESOURCES]	= "out of memory or device resources",
	[KXFER_REFUSAL_CLOSING]		= "node is shutting down",
	[KXFER_REFUSAL_ADDRESS]		= "address is not that of the path",
	[KXFER_REFUSAL_KEY]		= "a key is wanted by one end only, or is another one",
};

/** kxfer_cm_refusal_text() - a refusal in words */
const char *kxfer_cm_refusal_text(u32 refusal)
{
	return refusal < ARRAY_SIZE(refusal_texts) ? refusal_texts[refusal] :
	       "unknown reason";
}

static u32 lanes_allowed(void)
{
	return clamp_t(u32, READ_ONCE(max_lanes), 1, KXFER_WIRE_LANES_MAX);
}

/* One lane for bulk, and for small jobs one per online CPU. */
static u32 lanes_wanted(void)
{
	return min(lanes_allowed(), 1 + num_online_cpus());
}

/*
 * The rejection did not come from a kxfer. ESTALE: the peer took the request for that of a
 * connection that it still had with this node from before a restart. The peer has ended that
 * connection now, so another QP will do.
 */
static int transport_rejected(struct kxfer_lane *lane, int status)
{
	/* On iWARP @status is an errno, which says no more. */
	if (status <= 0)
		return -ECONNREFUSED;
	lane->refusal = KXFER_REFUSAL_TRANSPORT | status;
	WRITE_ONCE(lane->link->refusal, lane->refusal);
	kxfer_notice("link %llu: the peer's transport refuses: %s", lane->link->id,
		     rdma_reject_msg(lane->cm_id, status));
	return status == IB_CM_REJ_STALE_CONN ? -ESTALE : -ECONNREFUSED;
}

/* Decides by the private data: the reject status of siw is not that of the RDMA core. */
static int rejected(struct kxfer_lane *lane, const struct rdma_cm_event *event)
{
	const void *data = event->param.conn.private_data;
	u8 length = event->param.conn.private_data_len;
	const struct kxfer_wire_refusal *refusal = kxfer_wire_refusal(data, length);

	if (lane->link->ops->rejected)
		return lane->link->ops->rejected(lane->link, data, length);
	if (!refusal)
		return transport_rejected(lane, event->status);
	lane->refusal = be16_to_cpu(refusal->reason);
	WRITE_ONCE(lane->link->refusal, lane->refusal);
	kxfer_notice("link %llu: the peer refuses: %s (it speaks protocol %u to %u)",
		     lane->link->id, kxfer_cm_refusal_text(lane->refusal),
		     be16_to_cpu(refusal->version_min),
		     be16_to_cpu(refusal->version_max));
	return kxfer_wire_refusal_errno(lane->refusal);
}

/* Return: features that a link has; the peer says @theirs. A message that waits is a long one. */
static u32 agreed(const struct kxfer_device *dev, __be32 theirs)
{
	u32 both = be32_to_cpu(theirs) & kxfer_device_features(dev);

	return both & KXFER_WIRE_FEATURE_LONG ? both : both & ~KXFER_WIRE_FEATURE_WAIT;
}

/* Keep the welcome for the proof of the key. Both ends want a key, or neither does. */
static int note_welcome(struct kxfer_link *link, const struct kxfer_wire_welcome *welcome,
			u8 length)
{
	bool keyed = be32_to_cpu(welcome->features) & KXFER_WIRE_FEATURE_KEY;

	if (!link->key.secret)
		return keyed ? -EPROTO : 0;
	if (!keyed || length < sizeof(link->handshake.welcome)) {
		WRITE_ONCE(link->refusal, KXFER_REFUSAL_KEY);
		kxfer_stat_inc(KXFER_STAT_KEYS_REFUSED);
		return -EKEYREJECTED;
	}
	memcpy(&link->handshake.welcome, welcome, sizeof(link->handshake.welcome));
	return 0;
}

/* The welcome of the control connection grants the number of data lanes. */
static int welcomed(struct kxfer_lane *lane, const struct rdma_cm_event *event)
{
	const struct kxfer_wire_welcome *welcome = event->param.conn.private_data;
	u8 length = event->param.conn.private_data_len;
	int ret;

	if (lane->link->ops->welcomed)
		return lane->link->ops->welcomed(lane->link, welcome, length);
	ret = kxfer_wire_check_welcome(welcome, length, lane->link->max_data);
	if (!ret && kxfer_lane_is_control(lane))
		ret = note_welcome(lane->link, welcome, length);
	if (!ret && kxfer_lane_is_control(lane)) {
		lane->link->max_data = be16_to_cpu(welcome->nr_lanes);
		lane->link->features = agreed(lane->link->dev, welcome->features);
	}
	return ret;
}

static void step_done(struct kxfer_lane *lane, int error)
{
	lane->cm_error = error;
	complete(&lane->cm_done);
	wake_up_all(&lane->link->wait);
}

static void connection_lost(struct kxfer_lane *lane, int error)
{
	if (kxfer_link_is_live(lane->link))
		kxfer_stat_inc(KXFER_STAT_LINKS_LOST);
	kxfer_link_fail(lane->link, error);
	step_done(lane, error);
}

/*
 * The peer has closed the connection. An initiator does so some time after it has given all
 * grants back, and a node that shuts down closes all its links. This is the normal end of an
 * unused link; only a link in use counts as lost.
 */
static void disconnected(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;

	if (link->initiator ? READ_ONCE(link->users) : atomic_read(&link->nr_grants)) {
		connection_lost(lane, -ECONNRESET);
		return;
	}
	kxfer_link_fail(link, -ECONNRESET);
	step_done(lane, -ECONNRESET);
}

static void established(struct kxfer_lane *lane, const struct rdma_cm_event *event)
{
	int error = kxfer_fault_error(CM_ESTABLISHED);

	if (error)
		connection_lost(lane, error);
	else
		step_done(lane, lane->link->initiator ? welcomed(lane, event) : 0);
}

static int lane_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kxfer_lane *lane = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		step_done(lane, kxfer_fault_error(CM_ADDR_RESOLVED));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		step_done(lane, kxfer_fault_error(CM_ROUTE_RESOLVED));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(lane, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		step_done(lane, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (lane->link->initiator)
			step_done(lane, rejected(lane, event));
		else
			connection_lost(lane, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		connection_lost(lane, -ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		connection_lost(lane, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		disconnected(lane);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		connection_lost(lane, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		connection_lost(lane, -ENODEV);
		break;
	default:
		break;
	}
	return 0;
}

static bool step_over(struct kxfer_lane *lane)
{
	return completion_done(&lane->cm_done) ||
	       READ_ONCE(lane->link->state) >= KXFER_LINK_CLOSING;
}

/* Wait for the event that ends a step. @started: what the request of the step returned. */
static int wait_step(struct kxfer_lane *lane, int started, unsigned int timeout_ms)
{
	if (started)
		return started;
	if (!wait_event_timeout(lane->link->wait, step_over(lane),
				msecs_to_jiffies(timeout_ms)))
		return -ETIMEDOUT;
	if (!try_wait_for_completion(&lane->cm_done))
		return READ_ONCE(lane->link->error) ?: -ECONNRESET;
	return lane->cm_error;
}

static void set_port(struct sockaddr_storage *ss, u16 port)
{
	/* sin_port and sin6_port are at the same offset. */
	((struct sockaddr_in *)ss)->sin_port = htons(port);
}

static bool is_unspecified(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ?
	       !((const struct sockaddr_in *)ss)->sin_addr.s_addr :
	       ipv6_addr_any(&((const struct sockaddr_in6 *)ss)->sin6_addr);
}

/*
 * For a port in use rdma_cm returns EADDRNOTAVAIL if the address is unspecified. For any
 * other address EADDRNOTAVAIL means that this node does not have it.
 */
static bool port_taken(const struct sockaddr_storage *local, int error)
{
	return error == -EADDRINUSE || (error == -EADDRNOTAVAIL && is_unspecified(local));
}

static int bind_reserved_port(struct rdma_cm_id *id, struct sockaddr_storage *local)
{
	u32 range = RESERVED_PORT_MAX - RESERVED_PORT_MIN + 1;
	u32 port = get_random_u32() % range, tries;
	int ret = -EADDRINUSE;

	/* First look for an unused port, then for one that can be shared with other links. */
	for (tries = 0; port_taken(local, ret) && tries < 2 * range; tries++) {
		if (tries == range)
			rdma_set_reuseaddr(id, 1);
		set_port(local, RESERVED_PORT_MIN + (port + tries) % range);
		ret = kxfer_try(CM_BIND, rdma_bind_addr(id, (struct sockaddr *)local));
	}
	rdma_set_reuseaddr(id, 1);
	return port_taken(local, ret) ? -EADDRINUSE : ret;
}

/**
 * kxfer_cm_bind_scope() - bind an id to the network device of a scoped address
 * @id: id that is not bound yet
 * @from: own address, which gets the scope
 * @scope_id: scope of the peer's address; 0: the address has no scope
 *
 * Does what rdma_cm does for an id that was not bound before.
 */
void kxfer_cm_bind_scope(struct rdma_cm_id *id, struct kxfer_addr *from, u32 scope_id)
{
	if (!scope_id)
		return;
	from->scope_id = scope_id;
	id->route.addr.dev_addr.bound_dev_if = scope_id;
}

/* Whether the link takes its own address and its device from this lane. */
static bool is_first(const struct kxfer_lane *lane)
{
	return kxfer_lane_is_control(lane) || lane->link->ops->single;
}

/*
 * The first lane is bound to the address asked for, or to any; a control lane also to a
 * reserved port. Other data lanes are bound to the address of the control lane.
 */
static int bind_source(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;
	struct kxfer_addr from = is_first(lane) ? link->key.local : link->local;
	struct sockaddr_storage local;

	if (!from.family)
		from.family = link->remote.family;
	from.port = 0;
	kxfer_cm_bind_scope(lane->cm_id, &from, link->remote.scope_id);
	kxfer_addr_to_sockaddr(&from, &local);
	if (kxfer_lane_is_control(lane))
		return bind_reserved_port(lane->cm_id, &local);
	return kxfer_try(CM_BIND, rdma_bind_addr(lane->cm_id, (struct sockaddr *)&local));
}

static int resolve_address(struct kxfer_lane *lane)
{
	struct sockaddr_storage remote;
	int ret;

	ret = bind_source(lane);
	if (ret)
		return ret;
	kxfer_addr_to_sockaddr(&lane->link->remote, &remote);
	ret = kxfer_try(CM_RESOLVE_ADDR,
			rdma_resolve_addr(lane->cm_id, NULL, (struct sockaddr *)&remote,
					  RESOLVE_MS));
	ret = wait_step(lane, ret, RESOLVE_MS + 1000);
	/* No route, no device on the route, no neighbour: all the same to the user. */
	if (ret == -ENODEV || ret == -ENETUNREACH || ret == -ETIMEDOUT)
		return -EHOSTUNREACH;
	return ret;
}

static void note_path(struct kxfer_link *link, struct rdma_cm_id *id)
{
	const struct ib_gid_attr *gid_attr = id->route.addr.dev_addr.sgid_attr;

	kxfer_addr_from_sockaddr(&link->local, &id->route.addr.src_addr);
	if (gid_attr && !link->dev->iwarp)
		link->gid_type = gid_attr->gid_type;
}

/* Called once there is a route: rdma_cm has then set the device's default if none was given. */
static void note_tos(struct kxfer_link *link, struct rdma_cm_id *id)
{
	link->tos = link->dev->iwarp ? link->key.tos : id->route.path_rec->traffic_class;
}

static void note_grh(struct kxfer_lane *lane, const struct ib_global_route *grh)
{
	struct kxfer_link *link = lane->link;
	const struct ib_gid_attr *own;

	link->tos = grh->traffic_class;
	link->dgid = grh->dgid;
	own = rdma_get_gid_attr(lane->cm_id->device, lane->cm_id->port_num, grh->sgid_index);
	if (IS_ERR(own))
		return;
	link->sgid = own->gid;
	link->gid_type = own->gid_type;
	rdma_put_gid_attr(own);
}

/*
 * Packets use the MTU and the GIDs that the QP was connected with, even if those of the port
 * change later. An iWARP QP has no path, and siw reports the MTU of the interface, so it is
 * not asked. If the query fails, the MTU stays unknown, and the rest as the route said.
 */
static void note_qp(struct kxfer_lane *lane)
{
	struct ib_qp_attr attr = {};
	struct ib_qp_init_attr init;

	if (lane->link->dev->iwarp || kxfer_fault(CM_QUERY) ||
	    ib_query_qp(lane->qp, &attr, IB_QP_PATH_MTU | IB_QP_AV, &init))
		return;
	WRITE_ONCE(lane->path_mtu, max(ib_mtu_enum_to_int(attr.path_mtu), 0));
	if (is_first(lane) && rdma_ah_get_ah_flags(&attr.ah_attr) & IB_AH_GRH)
		note_grh(lane, rdma_ah_read_grh(&attr.ah_attr));
}

static int resolve_device(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;
	int ret;

	if (!is_first(lane))
		return lane->cm_id->device == link->dev->ibdev ? 0 : -EHOSTUNREACH;
	ret = kxfer_link_attach_device(link, lane->cm_id->device);
	if (ret)
		return ret;
	note_path(link, lane->cm_id);
	return kxfer_link_ask(link->ops->check_device, link);
}

static int resolve_route(struct kxfer_lane *lane)
{
	int ret = kxfer_try(CM_RESOLVE_ROUTE, rdma_resolve_route(lane->cm_id, RESOLVE_MS));

	ret = wait_step(lane, ret, RESOLVE_MS + 1000);
	if (!ret && is_first(lane))
		note_tos(lane->link, lane->cm_id);
	return ret;
}

static u8 rd_atom(int device_max)
{
	return min(device_max, RD_ATOM_MAX);
}

/* On a link with a key the cookie of the control connection is the nonce. */
static void introduce_with_key(const struct kxfer_lane *lane, struct kxfer_wire_hello *hello)
{
	struct kxfer_handshake *handshake = &lane->link->handshake;

	hello->features |= cpu_to_be32(KXFER_WIRE_FEATURE_KEY);
	if (!kxfer_lane_is_control(lane)) {
		memcpy(hello->cookie, handshake->lane_proofs[lane->index - 1],
		       sizeof(hello->cookie));
		return;
	}
	handshake->hello = *hello;
	kxfer_handshake_set_addrs(handshake, &lane->link->local, &lane->link->remote);
}

/* Return: bytes of the introduction */
static u8 introduce(const struct kxfer_lane *lane, void *introduction)
{
	struct kxfer_link *link = lane->link;
	struct kxfer_wire_hello *hello = introduction;

	static_assert(sizeof(*hello) <= KXFER_INTRODUCTION_MAX);
	if (link->ops->introduce)
		return link->ops->introduce(link, introduction);
	*hello = (struct kxfer_wire_hello) {
		.magic = cpu_to_be32(KXFER_WIRE_MAGIC),
		.version_min = cpu_to_be16(KXFER_WIRE_VERSION_MIN),
		.version_max = cpu_to_be16(KXFER_WIRE_VERSION_MAX),
		.kind = kxfer_lane_is_control(lane) ? KXFER_WIRE_CONTROL : KXFER_WIRE_DATA,
		.lane = lane->index,
		.nr_lanes = cpu_to_be16(link->max_data),
		.features = cpu_to_be32(kxfer_device_features(link->dev)),
		.epoch = cpu_to_be64(link->epoch),
	};
	memcpy(hello->cookie, link->cookie, sizeof(hello->cookie));
	if (link->key.secret)
		introduce_with_key(lane, hello);
	return sizeof(*hello);
}

/*
 * TCP, below iWARP, takes the local port only when it connects. It refuses a port that another
 * socket has (EADDRINUSE), and for a minute that of an ended connection to the same port of the
 * peer (EADDRNOTAVAIL). Both become EADDRINUSE: another port will do.
 *
 * With a bound address rdma_cm takes each network as one of that device; TCP does not.
 */
static int tcp_error(int error)
{
	switch (error) {
	case -EADDRNOTAVAIL:
		return -EADDRINUSE;
	case -ENETUNREACH:
		return -EHOSTUNREACH;
	default:
		return error;
	}
}

static int connect_qp(struct kxfer_lane *lane)
{
	struct kxfer_link *link = lane->link;
	const struct ib_device_attr *attrs = &link->dev->ibdev->attrs;
	u8 introduction[KXFER_INTRODUCTION_MAX] __aligned(8);
	struct rdma_conn_param param = {
		.private_data = introduction,
		.private_data_len = introduce(lane, introduction),
		.responder_resources = rd_atom(attrs->max_qp_rd_atom),
		.initiator_depth = rd_atom(attrs->max_qp_init_rd_atom),
		.retry_count = link->patience.retry_count,
		/* No SEND ever lacks a RECV (wire.h), so there is nothing to retry. */
		.rnr_retry_count = 0,
	};
	int ret;

	ret = kxfer_try(CM_CONNECT, rdma_connect(lane->cm_id, &param));
	ret = wait_step(lane, ret, CONNECT_MS);
	return link->dev->iwarp ? tcp_error(ret) : ret;
}

static int create_id(struct kxfer_lane *lane)
{
	struct rdma_cm_id *id;

	id = kxfer_try_ptr(CM_ID,
			   rdma_create_id(lane->link->net, lane_event, lane, RDMA_PS_TCP,
					  IB_QPT_RC));
	if (IS_ERR(id))
		return PTR_ERR(id);
	lane->cm_id = id;
	if (lane->link->key.tos_set)
		rdma_set_service_type(id, lane->link->key.tos);
	return kxfer_try(CM_ACK_TIMEOUT,
			 rdma_set_ack_timeout(id, lane->link->patience.ack_timeout));
}

static enum kxfer_context lane_context(const struct kxfer_lane *lane)
{
	return kxfer_lane_is_control(lane) ? KXFER_CONTEXT_WORKQUEUE :
	       lane->link->key.context;
}

/* On failure the lane keeps what was made; the link's teardown destroys it. */
static int connect_lane(struct kxfer_link *link, u32 index)
{
	struct kxfer_lane *lane = kxfer_lane_create(link, index, kxfer_link_numa_node(link));
	int ret;

	if (!lane)
		return -ENOMEM;
	ret = kxfer_link_add_lane(link, lane);
	if (ret) {
		kxfer_lane_free(lane);
		return ret;
	}
	ret = create_id(lane);
	if (!ret)
		ret = resolve_address(lane);
	if (!ret)
		ret = resolve_device(lane);
	if (!ret)
		ret = resolve_route(lane);
	if (!ret)
		ret = kxfer_lane_open(lane, lane_context(lane));
	kxfer_delay(LANE_OPENED);
	if (!ret)
		ret = connect_qp(lane);
	if (!ret)
		note_qp(lane);
	return ret;
}

static int connect_data_lane(struct kxfer_link *link, u32 index)
{
	return connect_lane(link, index) ?:
	       kxfer_lane_ask(link->ops->connected, link->data[index - 1]);
}

static int connect_control(struct kxfer_link *link)
{
	link->max_data = lanes_wanted();
	return connect_lane(link, 0) ?: kxfer_hello_say(link, CONNECT_MS);
}

/**
 * kxfer_cm_connect() - bring up a link, from nothing to LIVE
 * @link: link of an initiator, CONNECTING
 *
 * Runs in the link's connect_thread. Sleeps, on siw perhaps until a signal. Return: 0, or
 * -errno, after which the caller fails the link.
 */
int kxfer_cm_connect(struct kxfer_link *link)
{
	int ret = link->ops->single ? 0 : connect_control(link);
	u32 index;

	for (index = 1; !ret && index <= link->max_data; index++)
		ret = connect_data_lane(link, index);
	return ret ?: kxfer_link_set_live(link);
}

static void refuse(struct rdma_cm_id *id, u32 refusal)
{
	struct kxfer_wire_refusal data = {
		.magic = cpu_to_be32(KXFER_WIRE_MAGIC),
		.reason = cpu_to_be16(refusal),
		.version_min = cpu_to_be16(KXFER_WIRE_VERSION_MIN),
		.version_max = cpu_to_be16(KXFER_WIRE_VERSION_MAX),
	};

	kxfer_stat_inc(KXFER_STAT_LINKS_REFUSED);
	trace_kxfer_refused(&id->route.addr.dst_addr, refusal);
	kxfer_notice("connection from %pISpc refused: %s", &id->route.addr.dst_addr,
		     kxfer_cm_refusal_text(refusal));
	/* If rdma_reject() fails, rdma_destroy_id() rejects without a reason. */
	if (!kxfer_fault(CM_REJECT))
		rdma_reject(id, &data, sizeof(data), IB_CM_REJ_CONSUMER_DEFINED);
}

/* Return: bytes of @welcome. On the control lane of a link with a key it has a nonce. */
static u8 welcome_with_key(struct kxfer_lane *lane, struct kxfer_wire_keyed_welcome *welcome)
{
	struct kxfer_handshake *handshake = &lane->link->handshake;

	if (!lane->link->keys || !kxfer_lane_is_control(lane))
		return sizeof(welcome->welcome);
	welcome->welcome.features |= cpu_to_be32(KXFER_WIRE_FEATURE_KEY);
	get_random_bytes(welcome->nonce, sizeof(welcome->nonce));
	handshake->hello = lane->hello;
	handshake->welcome = *welcome;
	kxfer_handshake_set_addrs(handshake, &lane->link->remote, &lane->link->local);
	return sizeof(*welcome);
}

static int accept_qp(struct kxfer_lane *lane)
{
	const struct ib_device_attr *attrs = &lane->link->dev->ibdev->attrs;
	struct kxfer_wire_keyed_welcome welcome = { .welcome = {
		.magic = cpu_to_be32(KXFER_WIRE_MAGIC),
		.version = cpu_to_be16(kxfer_wire_version(&lane->hello, KXFER_WIRE_VERSION_MAX)),
		.nr_lanes = cpu_to_be16(lane->link->max_data),
		.features = cpu_to_be32(lane->link->features),
	} };
	struct rdma_conn_param param = {
		.private_data = &welcome,
		.private_data_len = welcome_with_key(lane, &welcome),
		.responder_resources = min(lane->conn_param.responder_resources,
					   rd_atom(attrs->max_qp_rd_atom)),
		.initiator_depth = min(lane->conn_param.initiator_depth,
				       rd_atom(attrs->max_qp_init_rd_atom)),
		.rnr_retry_count = 0,
	};
	int ret;

	/* Otherwise the peer chooses the timeout, up to hours. */
	ret = kxfer_try(CM_ACK_TIMEOUT,
			rdma_set_ack_timeout(lane->cm_id, lane->link->patience.ack_timeout));
	if (ret)
		return ret;
	/* rdma_accept() requires that no event of this id is handled meanwhile. */
	rdma_lock_handler(lane->cm_id);
	ret = kxfer_try(CM_ACCEPT, rdma_accept(lane->cm_id, &param));
	rdma_unlock_handler(lane->cm_id);
	return ret;
}

/*
 * Most of what comes on a data lane with eager messages is such messages, which are not answered:
 * a softirq hands them to their mailboxes without waking a worker.
 */
static enum kxfer_context passive_context(const struct kxfer_lane *lane)
{
	return !kxfer_lane_is_control(lane) && lane->link->features & KXFER_WIRE_FEATURE_EAGER ?
	       KXFER_CONTEXT_SOFTIRQ : KXFER_CONTEXT_WORKQUEUE;
}

/** kxfer_cm_accept_work() - second half of accepting a connection; may sleep */
void kxfer_cm_accept_work(struct work_struct *work)
{
	struct kxfer_lane *lane = container_of(work, struct kxfer_lane, accept_work);
	struct kxfer_link *link = lane->link;
	int ret = 0;

	kxfer_delay(LANE_ACCEPT);
	if (kxfer_lane_is_control(lane)) {
		ret = kxfer_link_attach_device(link, lane->cm_id->device);
		if (!ret) {
			note_path(link, lane->cm_id);
			note_tos(link, lane->cm_id);
			link->features = agreed(link->dev, lane->hello.features);
		}
	} else if (lane->cm_id->device != link->dev->ibdev) {
		ret = -EHOSTUNREACH;
	}
	if (!ret)
		ret = kxfer_lane_ask(link->ops->prepare, lane);
	if (!ret)
		ret = kxfer_lane_open(lane, passive_context(lane));
	if (!ret)
		ret = accept_qp(lane);
	if (!ret) {
		note_qp(lane);
		return;
	}
	refuse(lane->cm_id, KXFER_REFUSAL_RESOURCES);
	kxfer_link_fail(link, ret);
}

static bool is_gid_of(const union ib_gid *gid, struct sockaddr_storage *addr)
{
	union ib_gid of_addr;

	return !rdma_ip2gid((struct sockaddr *)addr, &of_addr) &&
	       !memcmp(gid, &of_addr, sizeof(of_addr));
}

/*
 * On RoCE rdma_cm takes both addresses from private data, which the sender may forge.
 * Packets, and the answer to the request, use the GIDs of the request's path, which on RoCE
 * are addresses. The addresses of iWARP are those of its TCP connection. On InfiniBand GIDs
 * say nothing about addresses, so those of rdma_cm have to be believed.
 */
static bool is_of_path(struct rdma_cm_id *id)
{
	struct rdma_route *route = &id->route;

	if (!rdma_protocol_roce(id->device, id->port_num))
		return true;
	return is_gid_of(&route->path_rec->dgid, &route->addr.dst_addr) &&
	       is_gid_of(&route->path_rec->sgid, &route->addr.src_addr);
}

static u32 find_link(struct net *net, const struct kxfer_wire_hello *hello,
		     const struct kxfer_addr *peer, struct kxfer_keys *keys,
		     const struct kxfer_patience *patience,
		     struct kxfer_link **link)
{
	if (hello->kind == KXFER_WIRE_DATA) {
		*link = kxfer_link_find_cookie(net, hello, peer);
		return *link ? KXFER_REFUSAL_NONE : KXFER_REFUSAL_COOKIE;
	}
	*link = kxfer_link_create_passive(net, peer);
	if (IS_ERR(*link))
		return PTR_ERR(*link) == -EDQUOT ? KXFER_REFUSAL_LIMIT :
		       KXFER_REFUSAL_RESOURCES;
	(*link)->epoch = be64_to_cpu(hello->epoch);
	memcpy((*link)->cookie, hello->cookie, sizeof(hello->cookie));
	(*link)->keys = kxfer_keys_get(keys);
	(*link)->patience = *patience;
	(*link)->max_data = clamp_t(u32, be16_to_cpu(hello->nr_lanes), 1, lanes_allowed());
	kxfer_link_ref(*link);
	return KXFER_REFUSAL_NONE;
}

static u32 add_passive_lane(struct kxfer_link *link, struct rdma_cm_id *id,
			    const struct rdma_cm_event *event)
{
	const struct kxfer_wire_hello *hello = event->param.conn.private_data;
	struct kxfer_lane *lane = kxfer_lane_create(link, hello->lane,
						    ibdev_to_node(id->device));

	if (!lane)
		return KXFER_REFUSAL_RESOURCES;
	lane->conn_param = event->param.conn;
	lane->conn_param.private_data = NULL;
	lane->hello = *hello;
	if (kxfer_lane_is_control(lane))
		link->patience.retry_count = event->param.conn.retry_count;
	lane->cm_id = id;
	/* From kxfer_link_add_lane() on the link owns the lane, and accept_work runs. */
	id->context = lane;
	id->event_handler = lane_event;
	if (kxfer_link_add_lane(link, lane)) {
		kxfer_lane_free(lane);
		return KXFER_REFUSAL_COOKIE;
	}
	return KXFER_REFUSAL_NONE;
}

/* For a data lane the key is checked when its link is looked up (link_table.c). */
static u32 check_key_wanted(const struct kxfer_wire_hello *hello, const struct kxfer_keys *keys)
{
	bool shown = be32_to_cpu(hello->features) & KXFER_WIRE_FEATURE_KEY;

	if (hello->kind == KXFER_WIRE_DATA || shown == !!keys)
		return KXFER_REFUSAL_NONE;
	kxfer_stat_inc(KXFER_STAT_KEYS_REFUSED);
	return KXFER_REFUSAL_KEY;
}

/**
 * kxfer_cm_request() - handle a connection request to a listener
 * @id: id of the new connection, of the listener's network namespace
 * @event: RDMA_CM_EVENT_CONNECT_REQUEST
 * @any_port: the listener takes any source port
 * @keys: keys of which one has to be proved; NULL: the listener has none
 * @patience: how long the listener's links wait for their peers
 *
 * Runs in the event handler; does not block. Return: 0: the id belongs to a lane;
 * else the request was refused and rdma_cm has to destroy the id.
 */
int kxfer_cm_request(struct rdma_cm_id *id, const struct rdma_cm_event *event,
		     bool any_port, struct kxfer_keys *keys,
		     const struct kxfer_patience *patience)
{
	const struct kxfer_wire_hello *hello = event->param.conn.private_data;
	struct kxfer_link *link;
	struct kxfer_addr peer;
	u32 refusal;

	kxfer_addr_from_sockaddr(&peer, &id->route.addr.dst_addr);
	refusal = kxfer_wire_check_hello(hello, event->param.conn.private_data_len,
					 KXFER_WIRE_LANES_MAX);
	if (!refusal && !is_of_path(id)) {
		refusal = KXFER_REFUSAL_ADDRESS;
		kxfer_stat_inc(KXFER_STAT_LINKS_FORGED);
	}
	if (!refusal && hello->kind == KXFER_WIRE_CONTROL && !any_port &&
	    peer.port >= 1024)
		refusal = KXFER_REFUSAL_PORT;
	if (!refusal)
		refusal = check_key_wanted(hello, keys);
	if (!refusal)
		refusal = find_link(id->route.addr.dev_addr.net, hello, &peer, keys, patience,
				    &link);
	if (refusal)
		goto refused;
	refusal = add_passive_lane(link, id, event);
	if (refusal && hello->kind == KXFER_WIRE_CONTROL)
		kxfer_link_fail(link, -ENOMEM);
	kxfer_link_put(link);
	if (!refusal)
		return 0;
refused:
	refuse(id, refusal);
	return -ECONNREFUSED;
}

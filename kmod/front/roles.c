// SPDX-License-Identifier: GPL-2.0
/*
 * Roles: what shared links are for. The initiator of a link posts jobs, the passive side
 * serves exports; struct kxfer_link_ops says when each hook is called. A dedicated link, of
 * one session, has the hooks of dedicated.c.
 */
#include "front/control.h"
#include "front/roles.h"
#include "job/chain.h"
#include "job/job.h"
#include "job/job_lane.h"
#include "job/offer.h"
#include "job/release.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/link_ops.h"
#include "share/exposure.h"
#include "share/fetch.h"
#include "share/grant.h"

/* ---- the initiator ---- */

static void init_initiator(struct kxfer_link *link)
{
	INIT_WORK(&link->release_work, kxfer_release_work);
}

static void end_initiator(struct kxfer_link *link)
{
	struct kxfer_lane *lane;

	/* The work may have waited for a placement READ or a slot. */
	cancel_work_sync(&link->release_work);
	list_for_each_entry(lane, &link->lanes, node)
		kxfer_job_fail_lane(lane);
	kxfer_release_link_closed(link);
}

const struct kxfer_link_ops kxfer_role_initiator = {
	.init		= init_initiator,
	.ended		= end_initiator,
	.init_lane	= kxfer_job_lane_init,
	.free_lane	= kxfer_job_lane_free,
	.size		= kxfer_job_lane_size,
	.open_lane	= kxfer_job_lane_open,
	.connected	= kxfer_job_lane_connected,
	.handler	= kxfer_control_handler,
	.abandoned	= kxfer_release_abandoned,
	.slot_free	= kxfer_job_lane_slot_free,
	.settle		= kxfer_chain_settle,
	.idle		= kxfer_job_lane_idle,
	.stuck		= kxfer_job_lane_stuck,
	.closing	= kxfer_job_lane_closing,
	.stopped	= kxfer_job_lane_stopped,
	.closed		= kxfer_offer_close,
};

/* ---- the passive side ---- */

static void init_passive(struct kxfer_link *link)
{
	INIT_WORK(&link->content_work, kxfer_exposure_content_work);
}

static void stop_passive(struct kxfer_link *link)
{
	cancel_work_sync(&link->content_work);
}

static void end_passive(struct kxfer_link *link)
{
	kxfer_exposure_link_closed(link);
	kxfer_grant_link_closed(link);
}

static void size_passive(const struct kxfer_lane *lane, struct kxfer_lane_size *size)
{
	size->slots = KXFER_WIRE_DATA_SLOTS;
	size->sends = KXFER_LANE_LONG_WRS;
	if (lane->link->features & KXFER_WIRE_FEATURE_EAGER)
		size->recvs = KXFER_WIRE_EAGER;
}

/* An answer to a request of the passive side brings nothing that has to be given back. */
static void nothing_abandoned(struct kxfer_request *request)
{
}

static void use_slot(struct kxfer_lane *lane)
{
	if (kxfer_lane_is_control(lane))
		kxfer_link_queue_content(lane->link);
	else
		kxfer_fetch_tell(lane);
}

const struct kxfer_link_ops kxfer_role_passive = {
	.init		= init_passive,
	.stop		= stop_passive,
	.ended		= end_passive,
	.free_lane	= kxfer_fetch_free,
	.size		= size_passive,
	.prepare	= kxfer_fetch_make,
	.handler	= kxfer_control_handler,
	.eager		= kxfer_grant_eager,
	.abandoned	= nothing_abandoned,
	.slot_free	= use_slot,
	.stuck		= kxfer_fetch_stuck,
	.closed		= kxfer_fetch_close,
};

// SPDX-License-Identifier: GPL-2.0
/*
 * RECVs of a channel: posted, and given room for eager messages.
 *
 * A RECV queue is used in the order of posting, so all RECVs have room for an eager message before
 * a peer may send one. That memory is allocated when the peer asks for credits the first time
 * (kxfer_channel_grow()): RECVs for eager messages are added, and those that are posted already
 * get a page when they are posted again.
 *
 * All is under the lane's lock. Context: nothing sleeps.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "link/channel.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/memory.h"

/*
 * Give a RECV a page, which has room for an eager message. Does not sleep. Return: false without
 * memory: then it stays as it is.
 */
static bool enlarge(struct kxfer_recv *recv)
{
	struct mem_cgroup *old = set_active_memcg(recv->channel->lane->link->memcg);
	struct ib_device *ibdev = kxfer_channel_ibdev(recv->channel);
	struct page *page;
	u64 dma;

	page = kxfer_try_alloc(CHANNEL_PAGE, alloc_page(GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT));
	set_active_memcg(old);
	if (!page)
		return false;
	dma = ib_dma_map_single(ibdev, page_address(page), KXFER_MESSAGE_EAGER_MAX,
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(ibdev, dma)) {
		__free_page(page);
		return false;
	}
	recv->page = page;
	recv->message = page_address(page);
	recv->dma = dma;
	recv->room = KXFER_MESSAGE_EAGER_MAX;
	return true;
}

/*
 * Called with the lane's lock held. A RECV that cannot be posted ends the link, because
 * the peer counts on each RECV.
 */
static int post_recv(struct kxfer_recv *recv)
{
	struct kxfer_channel *channel = recv->channel;
	struct ib_sge sge = {
		.addr = recv->dma,
		.length = recv->room,
		.lkey = channel->lane->link->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &recv->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret;

	if (!channel->lane->open)
		return -ECONNRESET;
	ib_dma_sync_single_for_device(kxfer_channel_ibdev(channel), recv->dma, recv->room,
				      DMA_BIDIRECTIONAL);
	ret = kxfer_try(CHANNEL_POST_RECV, ib_post_recv(channel->lane->qp, &wr, NULL));
	if (ret)
		kxfer_link_fail(channel->lane->link, -ECONNRESET);
	return ret;
}

/** kxfer_recv_post_again() - post a RECV that was completed; with the lane's lock held */
void kxfer_recv_post_again(struct kxfer_recv *recv)
{
	struct kxfer_channel *channel = recv->channel;

	if (channel->growing && !recv->page && channel->lane->open && enlarge(recv))
		channel->nr_small--;
	post_recv(recv);
}

/**
 * kxfer_channel_post_recvs() - post the RECVs for requests and answers; before connecting
 * @channel: channel of an open lane
 *
 * Return: 0, -ECONNRESET, or the error of ib_post_recv().
 */
int kxfer_channel_post_recvs(struct kxfer_channel *channel)
{
	int ret = 0;

	spin_lock_bh(&channel->lane->lock);
	while (!ret && channel->nr_posted < kxfer_channel_recvs(channel->nr_slots))
		ret = post_recv(&channel->recvs[channel->nr_posted++]);
	channel->nr_small = channel->nr_posted;
	spin_unlock_bh(&channel->lane->lock);
	return ret;
}

/**
 * kxfer_channel_grow() - give a channel room for eager messages, as far as there is memory
 * @channel: channel of a lane with RECVs for such messages
 *
 * Does not sleep. Return: whether all RECVs have that room, and all are posted. Else call again,
 * after so many messages as there are small RECVs.
 */
bool kxfer_channel_grow(struct kxfer_channel *channel)
{
	struct kxfer_recv *recv;
	bool grown;

	spin_lock_bh(&channel->lane->lock);
	channel->growing = true;
	while (channel->lane->open && channel->nr_posted < channel->nr_recvs) {
		recv = &channel->recvs[channel->nr_posted];
		if (!enlarge(recv))
			break;
		channel->nr_posted++;
		post_recv(recv);
	}
	grown = !channel->nr_small && channel->nr_posted == channel->nr_recvs;
	spin_unlock_bh(&channel->lane->lock);
	return grown;
}

/** kxfer_recv_unmap_all() - end the DMA mappings of a channel whose QP takes no message any more */
void kxfer_recv_unmap_all(struct kxfer_channel *channel)
{
	u32 i;

	for (i = 0; i < channel->nr_recvs; i++)
		if (channel->recvs[i].page)
			ib_dma_unmap_single(kxfer_channel_ibdev(channel), channel->recvs[i].dma,
					    KXFER_MESSAGE_EAGER_MAX, DMA_BIDIRECTIONAL);
}

/** kxfer_recv_free_all() - free the RECVs of a channel, which no device knows */
void kxfer_recv_free_all(struct kxfer_channel *channel)
{
	u32 i;

	for (i = 0; channel->recvs && i < channel->nr_recvs; i++)
		if (channel->recvs[i].page)
			__free_page(channel->recvs[i].page);
	kfree(channel->recvs);
}

/* SPDX-License-Identifier: GPL-2.0 */
/* READ sinks, placement READs and nudges of iWARP. See iwarp.c. */
#ifndef KXFER_IWARP_H
#define KXFER_IWARP_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

struct kxfer_lane;
struct kxfer_link;
struct kxfer_wr_desc;

#define KXFER_IWARP_SINKS	16	/* READ sinks of a lane */
#define KXFER_PLACEMENT_BYTES	8	/* length of a placement READ */
#define KXFER_PLACEMENT_WRS	1	/* of a data lane, for kxfer_iwarp_wait_placed() */
#define KXFER_NUDGE_WRS		1	/* of any lane, for kxfer_iwarp_nudge() */

/**
 * struct kxfer_sink - a registration for one READ
 * @mr: fast-registration MR of the link's PD
 * @node: in kxfer_iwarp.sinks while free
 * @reg: its REG_MR work request
 * @inv: its LOCAL_INV
 */
struct kxfer_sink {
	struct ib_mr *mr;
	struct list_head node;
	struct ib_reg_wr reg;
	struct ib_send_wr inv;
};

/**
 * struct kxfer_placement - an end of placement READs
 * @mr: MR of @memory, or NULL
 * @memory: KXFER_PLACEMENT_BYTES
 * @dma: DMA address of @memory
 */
struct kxfer_placement {
	struct ib_mr *mr;
	void *memory;
	u64 dma;
};

/**
 * struct kxfer_iwarp - what a lane has for iWARP
 * @sinks: free READ sinks; under the lane's lock
 * @sink_array: all READ sinks, or NULL
 * @sink: sink of placement READs
 * @mutex: serializes kxfer_iwarp_wait_placed(); may be held while the READ is under way, and
 *	taken with no other lock held
 * @placement_cqe: CQE of that READ, which may outlast the caller when the link goes down
 * @placing: that READ is under way; written under the lane's lock and by its completion
 * @nudge_cqe: CQE of kxfer_iwarp_nudge()
 * @nudging: the WRITE of kxfer_iwarp_nudge() is under way; as @placing
 */
struct kxfer_iwarp {
	struct list_head sinks;
	struct kxfer_sink *sink_array;
	struct kxfer_placement sink;
	struct mutex mutex;
	struct ib_cqe placement_cqe;
	bool placing;
	struct ib_cqe nudge_cqe;
	bool nudging;
};

void kxfer_iwarp_init_lane(struct kxfer_lane *lane);
void kxfer_iwarp_free_lane(struct kxfer_lane *lane);
int kxfer_iwarp_make_sinks(struct kxfer_lane *lane);
void kxfer_iwarp_destroy_sinks(struct kxfer_lane *lane);
int kxfer_iwarp_map_sink(struct kxfer_sink *sink, struct scatterlist *sg,
			 const struct kxfer_wr_desc *desc);
int kxfer_iwarp_make_source(struct kxfer_link *link);
void kxfer_iwarp_free_source(struct kxfer_link *link);
u32 kxfer_iwarp_placement(const struct kxfer_lane *lane, struct kxfer_wr_desc *desc);
void kxfer_iwarp_wait_placed(struct kxfer_lane *lane);
void kxfer_iwarp_nudge(struct kxfer_lane *lane);

#endif /* KXFER_IWARP_H */

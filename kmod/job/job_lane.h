/* SPDX-License-Identifier: GPL-2.0 */
/* The part of a lane that serves jobs. See job_lane.c. */
#ifndef KXFER_JOB_LANE_H
#define KXFER_JOB_LANE_H

#include <linux/types.h>

struct kxfer_cq;
struct kxfer_lane;
struct kxfer_lane_size;

void kxfer_job_lane_init(struct kxfer_lane *lane);
void kxfer_job_lane_size(const struct kxfer_lane *lane, struct kxfer_lane_size *size);
int kxfer_job_lane_open(struct kxfer_lane *lane);
int kxfer_job_lane_connected(struct kxfer_lane *lane);
bool kxfer_job_lane_idle(struct kxfer_cq *cq);
bool kxfer_job_lane_stuck(struct kxfer_lane *lane);
void kxfer_job_lane_slot_free(struct kxfer_lane *lane);
void kxfer_job_lane_closing(struct kxfer_lane *lane);
void kxfer_job_lane_stopped(struct kxfer_lane *lane);
void kxfer_job_lane_free(struct kxfer_lane *lane);

#endif /* KXFER_JOB_LANE_H */

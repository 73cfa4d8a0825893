/* SPDX-License-Identifier: GPL-2.0 */
/* Ordered lists of jobs. */
#ifndef KXFER_JOB_LIST_H
#define KXFER_JOB_LIST_H

struct kxfer_active_job;

/**
 * struct kxfer_job_list - jobs in order: added at the end, taken from the front
 * @first: the first job, or NULL
 * @last: the last job; undefined if the list is empty
 */
struct kxfer_job_list {
	struct kxfer_active_job *first;
	struct kxfer_active_job *last;
};

#endif /* KXFER_JOB_LIST_H */

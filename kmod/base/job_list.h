/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs in their order. */
#ifndef KXFER_JOB_LIST_H
#define KXFER_JOB_LIST_H

struct kxfer_active_job;

/**
 * struct kxfer_job_list - jobs in their order, which are added behind and taken all at once
 * @first: or NULL
 * @last: undefined if it is empty
 */
struct kxfer_job_list {
	struct kxfer_active_job *first;
	struct kxfer_active_job *last;
};

#endif /* KXFER_JOB_LIST_H */

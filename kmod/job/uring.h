/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs that come by io_uring. See uring.c. */
#ifndef KXFER_URING_H
#define KXFER_URING_H

#include <linux/kconfig.h>
#include <linux/types.h>

struct io_uring_cmd;
struct kxfer_active_job;
struct kxfer_completion;
struct work_struct;

#if IS_ENABLED(CONFIG_IO_URING)
#define KXFER_URING_FEATURE	(KXFER_FEATURE_URING | KXFER_FEATURE_URING_CALL)
#define KXFER_URING_CMD_IOPOLL	kxfer_uring_cmd_iopoll

struct io_comp_batch;

int kxfer_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
int kxfer_uring_cmd_iopoll(struct io_uring_cmd *cmd, struct io_comp_batch *batch,
			   unsigned int poll_flags);
void kxfer_uring_complete(struct io_uring_cmd *cmd,
			  const struct kxfer_completion *completion);
bool kxfer_uring_abandoned(struct io_uring_cmd *cmd);
struct kxfer_active_job *kxfer_uring_recv(struct io_uring_cmd *cmd);
void kxfer_uring_set_recv(struct io_uring_cmd *cmd, struct kxfer_active_job *job);
void kxfer_uring_watch(struct work_struct *work);
#else
#define KXFER_URING_FEATURE	0
#define KXFER_URING_CMD_IOPOLL	NULL

static inline void kxfer_uring_complete(struct io_uring_cmd *cmd,
					const struct kxfer_completion *completion)
{
}

static inline bool kxfer_uring_abandoned(struct io_uring_cmd *cmd)
{
	return false;
}

static inline struct kxfer_active_job *kxfer_uring_recv(struct io_uring_cmd *cmd)
{
	return NULL;
}

static inline void kxfer_uring_set_recv(struct io_uring_cmd *cmd,
					struct kxfer_active_job *job)
{
}

static inline void kxfer_uring_watch(struct work_struct *work)
{
}
#endif

#endif /* KXFER_URING_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* /sys/kernel/debug/kxfer, for human readers. See debugfs.c. */
#ifndef KXFER_DEBUGFS_H
#define KXFER_DEBUGFS_H

void kxfer_debugfs_init(void);
void kxfer_debugfs_exit(void);

#endif /* KXFER_DEBUGFS_H */

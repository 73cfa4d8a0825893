// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/kxfer: what the module holds, for people's eyes; no ABI.
 */
#include "log.h"

#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "debugfs.h"
#include "stats.h"

static struct dentry *root;

static int counters_show(struct seq_file *seq, void *unused)
{
	int i;

	for (i = 0; i < KXFER_STAT_MAX; i++)
		seq_printf(seq, "%-20s %20llu\n", kxfer_stat_name(i), kxfer_stat_read(i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/** kxfer_debugfs_init() - make the files; nobody depends on their being there */
void kxfer_debugfs_init(void)
{
	root = debugfs_create_dir("kxfer", NULL);
	debugfs_create_file("counters", 0400, root, NULL, &counters_fops);
}

/** kxfer_debugfs_exit() - remove them; waits for readers */
void kxfer_debugfs_exit(void)
{
	debugfs_remove(root);
}

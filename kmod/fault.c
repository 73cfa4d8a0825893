// SPDX-License-Identifier: GPL-2.0
/*
 * Failures on purpose: arming the sites of fault.h.
 *
 * Each site has a file /sys/kernel/debug/kxfer/fault/NAME. A number N written to it
 * makes the Nth hit from now fail, once; 0 disarms it. Read, it says how often the
 * site was hit, how many of those failed, and after how many more hits the next one
 * fails (0: none). Hits are counted from the first write on. Anything written to
 * fault/reset disarms all sites, sets their counts to 0 and ends the counting.
 *
 * What runs before there is a debugfs is armed by a parameter of the module:
 *
 *	insmod kxfer.ko fault=LINK_WORKQUEUE:1,DEVICE:2
 *
 * For tests: whoever may write here may break every transfer of the node, and no
 * more than that.
 */
#include "log.h"

#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "fault.h"

DEFINE_STATIC_KEY_FALSE(kxfer_fault_key);

/**
 * struct site - the state of a site
 * @hits: since counting began
 * @injected: hits that failed
 * @left: hits until the one that is to fail, that one included; 0: not armed
 */
struct site {
	atomic_t hits;
	atomic_t injected;
	atomic_t left;
};

static struct site sites[KXFER_FAULT_MAX];

#define SITE_TEXT(id, errno, what) \
	[KXFER_FAULT_##id] = { #id, errno },

static const struct {
	const char *name;
	int error;
} texts[] = { KXFER_FAULT_SITES(SITE_TEXT) };

/**
 * kxfer_fault_hit() - a site is passed while the key is on
 * @id: of the site
 *
 * Any context. Return: 0, or -errno: fail.
 */
int kxfer_fault_hit(enum kxfer_fault_site id)
{
	struct site *site = &sites[id];

	atomic_inc(&site->hits);
	if (atomic_dec_if_positive(&site->left))
		return 0;
	atomic_inc(&site->injected);
	return -texts[id].error;
}

static void arm(u32 id, u32 nth)
{
	atomic_set(&sites[id].left, min_t(u32, nth, INT_MAX));
	static_branch_enable(&kxfer_fault_key);
}

static void reset(void)
{
	u32 i;

	static_branch_disable(&kxfer_fault_key);
	for (i = 0; i < KXFER_FAULT_MAX; i++) {
		atomic_set(&sites[i].left, 0);
		atomic_set(&sites[i].hits, 0);
		atomic_set(&sites[i].injected, 0);
	}
}

static int show_site(struct seq_file *seq, void *unused)
{
	const struct site *site = seq->private;

	seq_printf(seq, "%d %d %d\n", atomic_read(&site->hits),
		   atomic_read(&site->injected), atomic_read(&site->left));
	return 0;
}

static int open_site(struct inode *inode, struct file *file)
{
	return single_open(file, show_site, inode->i_private);
}

static ssize_t write_site(struct file *file, const char __user *user, size_t length,
			  loff_t *offset)
{
	struct seq_file *seq = file->private_data;
	u32 nth;
	int ret;

	ret = kstrtou32_from_user(user, length, 0, &nth);
	if (ret)
		return ret;
	arm((struct site *)seq->private - sites, nth);
	return length;
}

static const struct file_operations site_fops = {
	.owner = THIS_MODULE,
	.open = open_site,
	.read = seq_read,
	.write = write_site,
	.llseek = seq_lseek,
	.release = single_release,
};

static ssize_t write_reset(struct file *file, const char __user *user, size_t length,
			   loff_t *offset)
{
	reset();
	return length;
}

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = write_reset,
	.llseek = noop_llseek,
};

/** kxfer_fault_debugfs() - make the files; they go with their parent */
void kxfer_fault_debugfs(struct dentry *parent)
{
	struct dentry *dir = debugfs_create_dir("fault", parent);
	u32 i;

	for (i = 0; i < KXFER_FAULT_MAX; i++)
		debugfs_create_file(texts[i].name, 0600, dir, &sites[i], &site_fops);
	debugfs_create_file("reset", 0200, dir, NULL, &reset_fops);
}

static int arm_by_name(const char *name, const char *nth_text)
{
	u32 nth, i;

	if (!nth_text || kstrtou32(nth_text, 0, &nth))
		return -EINVAL;
	for (i = 0; i < KXFER_FAULT_MAX; i++) {
		if (!strcmp(texts[i].name, name)) {
			arm(i, nth);
			return 0;
		}
	}
	return -EINVAL;
}

static int set_fault(const char *value, const struct kernel_param *unused)
{
	char copy[128], *rest = copy, *entry;
	int ret = 0;

	if (strscpy(copy, value, sizeof(copy)) < 0)
		return -EINVAL;
	while (!ret && (entry = strsep(&rest, ","))) {
		char *name = strsep(&entry, ":");

		ret = arm_by_name(name, entry);
	}
	return ret;
}

static const struct kernel_param_ops fault_ops = { .set = set_fault };

module_param_cb(fault, &fault_ops, NULL, 0);
MODULE_PARM_DESC(fault, "for tests: sites that are to fail, NAME:NTH,... (fault.h)");

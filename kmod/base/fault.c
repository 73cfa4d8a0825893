// SPDX-License-Identifier: GPL-2.0
/*
 * Failures and delays on purpose: arming the sites of fault.h.
 *
 * Each site has a file /sys/kernel/debug/kxfer/fault/NAME. A number N written to it
 * makes the Nth hit from now fail, once; 0 disarms the site. Reading prints how often the
 * site was hit, how many of the hits failed, and after how many more hits the next one
 * fails (0: none). Hits are counted from the first write on. Anything written to
 * fault/reset disarms all sites, sets their counts to 0 and ends the counting.
 *
 * Each site that can delay has a file /sys/kernel/debug/kxfer/delay/NAME. "MS COUNT"
 * written to it makes each of the next COUNT hits (without COUNT: every hit) take MS
 * milliseconds, at most DELAY_MAX_MS. MS 0 ends that, but not a delay under way. Reading
 * prints how often the site was hit, how many hits were delayed, how many are being
 * delayed now, and by how many milliseconds the next hit is delayed (0: none).
 *
 * Sites that are passed before debugfs is there, or after, are armed by parameters of the
 * module:
 *
 *	insmod kxfer.ko fault=LINK_WORKQUEUE:1,DEVICE:2 delay=MODULE_EXIT:100
 *
 * For tests. Write access here suffices to break every transfer of the node, but for
 * nothing more.
 */
#include "base/log.h"

#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "base/fault.h"

#define DELAY_MAX_MS	10000

DEFINE_STATIC_KEY_FALSE(kxfer_fault_key);

/**
 * struct site - the state of a site
 * @hits: hits since counting began
 * @injected: hits that failed
 * @left: hits until the failing one, inclusive; 0: not armed
 * @delay_ms: delay of the next hit
 * @delays_left: hits that will still be delayed
 * @delayed: hits that were delayed
 * @nr_in_delay: tasks that are being delayed
 */
struct site {
	atomic_t hits;
	atomic_t injected;
	atomic_t left;
	u32 delay_ms;
	atomic_t delays_left;
	atomic_t delayed;
	atomic_t nr_in_delay;
};

static struct site sites[KXFER_DELAY_MAX];

#define FAULT_TEXT(id, errno, what) \
	[KXFER_FAULT_##id] = { #id, errno },
#define DELAY_TEXT(id, what) \
	[KXFER_DELAY_##id] = { #id },
#define ATOMIC(id) \
	[KXFER_FAULT_##id] = true,

static const struct {
	const char *name;
	int error;
} texts[] = {
	KXFER_FAULT_SITES(FAULT_TEXT)
	KXFER_DELAY_SITES(DELAY_TEXT)
};

static const bool is_atomic[KXFER_DELAY_MAX] = { KXFER_FAULT_ATOMIC_SITES(ATOMIC) };

/*
 * Checked whatever is armed: so each test that counts hits finds a site that may sleep
 * according to the table, but is passed in atomic context.
 */
static bool may_sleep(enum kxfer_fault_site id)
{
	return !is_atomic[id] &&
	       !WARN_ONCE(preempt_count() || irqs_disabled(),
			  "kxfer: the site %s is passed where nothing may sleep",
			  texts[id].name);
}

static void delay(struct site *site)
{
	u32 ms = READ_ONCE(site->delay_ms);

	if (!ms || atomic_dec_if_positive(&site->delays_left) < 0)
		return;
	atomic_inc(&site->delayed);
	atomic_inc(&site->nr_in_delay);
	msleep(ms);
	atomic_dec(&site->nr_in_delay);
}

/**
 * kxfer_fault_hit() - a site is passed while the key is on
 * @id: id of the site
 *
 * Sleeps if the site must delay. Return: 0, or the -errno with which the site must fail.
 */
int kxfer_fault_hit(enum kxfer_fault_site id)
{
	struct site *site = &sites[id];

	atomic_inc(&site->hits);
	if (may_sleep(id))
		delay(site);
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

static void arm_delay(u32 id, u32 ms, u32 count)
{
	WRITE_ONCE(sites[id].delay_ms, 0);
	atomic_set(&sites[id].delays_left, count && count < INT_MAX ? count : INT_MAX);
	WRITE_ONCE(sites[id].delay_ms, ms);
	static_branch_enable(&kxfer_fault_key);
}

static void reset(void)
{
	u32 i;

	static_branch_disable(&kxfer_fault_key);
	for (i = 0; i < KXFER_DELAY_MAX; i++) {
		WRITE_ONCE(sites[i].delay_ms, 0);
		atomic_set(&sites[i].delayed, 0);
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

static int show_delay(struct seq_file *seq, void *unused)
{
	const struct site *site = seq->private;

	seq_printf(seq, "%d %d %d %u\n", atomic_read(&site->hits),
		   atomic_read(&site->delayed), atomic_read(&site->nr_in_delay),
		   atomic_read(&site->delays_left) ? READ_ONCE(site->delay_ms) : 0);
	return 0;
}

static int open_delay(struct inode *inode, struct file *file)
{
	return single_open(file, show_delay, inode->i_private);
}

static ssize_t write_delay(struct file *file, const char __user *user, size_t length,
			   loff_t *offset)
{
	struct seq_file *seq = file->private_data;
	u32 ms, count = 0;
	char text[32];

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, length))
		return -EFAULT;
	text[length] = '\0';
	if (sscanf(text, "%u %u", &ms, &count) < 1 || ms > DELAY_MAX_MS)
		return -EINVAL;
	arm_delay((struct site *)seq->private - sites, ms, count);
	return length;
}

static const struct file_operations delay_fops = {
	.owner = THIS_MODULE,
	.open = open_delay,
	.read = seq_read,
	.write = write_delay,
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

/** kxfer_fault_debugfs() - make the files; they are removed with @parent */
void kxfer_fault_debugfs(struct dentry *parent)
{
	struct dentry *faults = debugfs_create_dir("fault", parent);
	struct dentry *delays = debugfs_create_dir("delay", parent);
	u32 i;

	for (i = 0; i < KXFER_FAULT_MAX; i++)
		debugfs_create_file(texts[i].name, 0600, faults, &sites[i], &site_fops);
	debugfs_create_file("reset", 0200, faults, NULL, &reset_fops);
	for (i = 0; i < KXFER_DELAY_MAX; i++)
		if (!is_atomic[i])
			debugfs_create_file(texts[i].name, 0600, delays, &sites[i],
					    &delay_fops);
}

static int arm_fault_by_name(const char *name, u32 nth)
{
	u32 i;

	for (i = 0; i < KXFER_FAULT_MAX; i++) {
		if (!strcmp(texts[i].name, name)) {
			arm(i, nth);
			return 0;
		}
	}
	return -EINVAL;
}

static int arm_delay_by_name(const char *name, u32 ms)
{
	u32 i;

	for (i = 0; i < KXFER_DELAY_MAX; i++) {
		if (!is_atomic[i] && !strcmp(texts[i].name, name) && ms <= DELAY_MAX_MS) {
			arm_delay(i, ms, 0);
			return 0;
		}
	}
	return -EINVAL;
}

/* NAME:NUMBER,... */
static int arm_all(const char *value, int (*arm_one)(const char *name, u32 number))
{
	char copy[128], *rest = copy, *entry;
	int ret = 0;

	if (strscpy(copy, value, sizeof(copy)) < 0)
		return -EINVAL;
	while (!ret && (entry = strsep(&rest, ","))) {
		char *name = strsep(&entry, ":");
		u32 number;

		if (!entry || kstrtou32(entry, 0, &number))
			ret = -EINVAL;
		else
			ret = arm_one(name, number);
	}
	return ret;
}

static int set_fault(const char *value, const struct kernel_param *unused)
{
	return arm_all(value, arm_fault_by_name);
}

static int set_delay(const char *value, const struct kernel_param *unused)
{
	return arm_all(value, arm_delay_by_name);
}

static const struct kernel_param_ops fault_ops = { .set = set_fault };
static const struct kernel_param_ops delay_ops = { .set = set_delay };

module_param_cb(fault, &fault_ops, NULL, 0);
MODULE_PARM_DESC(fault, "for tests: sites that are to fail, NAME:NTH,... (fault.h)");

module_param_cb(delay, &delay_ops, NULL, 0);
MODULE_PARM_DESC(delay, "for tests: sites that are to be late, NAME:MS,... (fault.h)");

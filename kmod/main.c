// SPDX-License-Identifier: GPL-2.0
/*
 * The module's beginning and end; the order is the table of contents.
 *
 * Devices come after what their hooks call (device_ops). The character device
 * comes last, since calls come as soon as it is there. The end is the reverse:
 * no call, no listener, no link, then what they were made of.
 */
#include "base/log.h"

#include <linux/module.h>

#include "base/fault.h"
#include "front/cdev.h"
#include "front/debugfs.h"
#include "front/roles.h"
#include "job/job.h"
#include "job/reconnect.h"
#include "link/cq.h"
#include "link/link.h"
#include "link/listener.h"
#include "link/net.h"
#include "node/device.h"
#include "share/export_table.h"
#include "share/exposure.h"
#include "share/ping.h"

static const struct kxfer_device_ops device_ops = {
	.added = kxfer_listener_device_added,
	.gids_changed = kxfer_listener_check,
	.renamed = kxfer_link_rename_device,
	.removed = kxfer_listener_device_removed,
};

static int __init kxfer_init(void)
{
	int ret;

	kxfer_export_table_init();
	ret = kxfer_job_init();
	if (ret)
		return ret;
	ret = kxfer_reconnect_init();
	if (ret)
		goto err_job;
	ret = kxfer_cq_init();
	if (ret)
		goto err_line;
	ret = kxfer_link_init(&kxfer_role_initiator, &kxfer_role_passive);
	if (ret)
		goto err_cq;
	ret = kxfer_net_init();
	if (ret)
		goto err_link;
	ret = kxfer_exposure_init();
	if (ret)
		goto err_net;
	ret = kxfer_ping_publish();
	if (ret)
		goto err_exposure;
	ret = kxfer_listener_init();
	if (ret)
		goto err_ping;
	ret = kxfer_device_init(&device_ops);
	if (ret)
		goto err_listener;
	kxfer_debugfs_init();
	ret = kxfer_cdev_init();
	if (ret)
		goto err_device;
	return 0;

err_device:
	kxfer_debugfs_exit();
	kxfer_device_exit();
err_listener:
	kxfer_listener_exit();
err_ping:
	kxfer_ping_withdraw();
err_exposure:
	kxfer_exposure_exit();
err_net:
	kxfer_net_exit();
err_link:
	kxfer_link_exit();
err_cq:
	kxfer_cq_exit();
err_line:
	kxfer_reconnect_exit();
err_job:
	kxfer_job_exit();
	return ret;
}

static void __exit kxfer_exit(void)
{
	kxfer_cdev_exit();
	kxfer_debugfs_exit();
	kxfer_listener_end_all();
	kxfer_link_fail_all(-ESHUTDOWN);
	kxfer_delay(MODULE_EXIT);
	kxfer_device_exit();
	kxfer_listener_exit();
	kxfer_ping_withdraw();
	kxfer_exposure_exit();
	kxfer_net_exit();
	kxfer_link_exit();
	kxfer_cq_exit();
	kxfer_reconnect_exit();
	kxfer_job_exit();
}

module_init(kxfer_init);
module_exit(kxfer_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("RDMA transfers by kernel verbs, through /dev/kxfer");
MODULE_VERSION(KXFER_VERSION);

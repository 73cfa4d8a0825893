/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages of the module, all prefixed "kxfer: ".
 *
 * Messages that a user or a peer can cause go through kxfer_notice(), which is
 * rate-limited at each call site. Errors of callers are not logged: the caller gets
 * an errno. Include this file first: it defines pr_fmt.
 */
#ifndef KXFER_LOG_H
#define KXFER_LOG_H

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/ratelimit.h>

#define kxfer_notice(fmt, ...)	pr_notice_ratelimited(fmt "\n", ##__VA_ARGS__)
#define kxfer_info(fmt, ...)	pr_info(fmt "\n", ##__VA_ARGS__)
#define kxfer_err(fmt, ...)	pr_err_ratelimited(fmt "\n", ##__VA_ARGS__)

#endif /* KXFER_LOG_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* /dev/kxfer. See cdev.c. */
#ifndef KXFER_CDEV_H
#define KXFER_CDEV_H

int kxfer_cdev_init(void);
void kxfer_cdev_exit(void);

#endif /* KXFER_CDEV_H */

/* SPDX-License-Identifier: GPL-2.0 */
/* The built-in export. See ping.c. */
#ifndef KXFER_PING_H
#define KXFER_PING_H

int kxfer_ping_publish(void);
void kxfer_ping_withdraw(void);

#endif /* KXFER_PING_H */

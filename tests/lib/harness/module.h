/* SPDX-License-Identifier: MIT */
/*
 * Module: removing and loading kxfer.ko. Its file is $KXFER_MODULE, or the one of the virtual
 * machine.
 */
#ifndef KXFER_TEST_MODULE_H
#define KXFER_TEST_MODULE_H

#include <stdbool.h>

bool module_available(void);	/* needs root and the module's file */
/* Return: 0 or -errno, -EWOULDBLOCK while it is in use. */
int module_remove(void);
int module_remove_engine(void);	/* removes kxfer_bench.ko only */
int module_remove_soon(void);	/* retries for half a minute */
int module_insert(const char *parameters);

#endif /* KXFER_TEST_MODULE_H */

/* SPDX-License-Identifier: MIT */
/*
 * Module: kxfer.ko taken away and put back. The file is KXFER_MODULE, or where the
 * virtual machine has it.
 */
#ifndef KXFER_TEST_MODULE_H
#define KXFER_TEST_MODULE_H

#include <stdbool.h>

bool module_available(void);	/* root, and the file is there */
/* Return: 0 or -errno, -EWOULDBLOCK while it is in use. */
int module_remove(void);
int module_remove_engine(void);	/* kxfer_bench.ko alone */
int module_remove_soon(void);	/* tries for half a minute */
int module_insert(const char *parameters);

#endif /* KXFER_TEST_MODULE_H */

// SPDX-License-Identifier: GPL-2.0
/* kxfer_kunit.ko: the suites run while it is loaded (tests/unit/kernel.sh). */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit suites of kxfer's pure parts");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0
/* kxfer_kunit.ko: the suites run when it is loaded (tests/guest/kunit/suites.sh). */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit suites of kxfer's pure parts");
MODULE_LICENSE("GPL");

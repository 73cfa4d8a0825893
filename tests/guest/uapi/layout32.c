// SPDX-License-Identifier: GPL-2.0
/* layout.c for 32-bit callers. */
#include "layout.c"

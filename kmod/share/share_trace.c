// SPDX-License-Identifier: GPL-2.0
/* Definitions of the tracepoints; see share_trace.h. */
#define CREATE_TRACE_POINTS
#include "share/share_trace.h"

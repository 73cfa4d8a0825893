// SPDX-License-Identifier: GPL-2.0
/* Definitions of the tracepoints; see link_trace.h. */
#define CREATE_TRACE_POINTS
#include "link/link_trace.h"

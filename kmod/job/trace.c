// SPDX-License-Identifier: GPL-2.0
/* Definitions of the tracepoints; see trace.h. */
#define CREATE_TRACE_POINTS
#include "job/trace.h"

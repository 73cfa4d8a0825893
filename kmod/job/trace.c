// SPDX-License-Identifier: GPL-2.0
/* What tracepoints are made of; see trace.h. */
#define CREATE_TRACE_POINTS
#include "job/trace.h"

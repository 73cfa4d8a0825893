/* SPDX-License-Identifier: MIT */
#include "../for_user.h"

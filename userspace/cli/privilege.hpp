// SPDX-License-Identifier: MIT
//
// What this process may, as /proc tells it.
#pragma once

namespace kxfer::cli {

// One of linux/capability.h, in the user namespace of the process.
bool has_capability(int number);
// CAP_NET_ADMIN of the machine, with which INFO tells of everybody's objects.
bool sees_all();

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// Privileges of this process, from /proc.
#pragma once

namespace kxfer::cli {

// number: of linux/capability.h; in the user namespace of the process.
bool has_capability(int number);
// CAP_NET_ADMIN in the initial user namespace, with which INFO lists the objects of all users.
bool sees_all();

} // namespace kxfer::cli

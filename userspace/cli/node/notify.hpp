// SPDX-License-Identifier: MIT
//
// What a service tells its service manager, by the datagrams of sd_notify(3) to the socket that
// $NOTIFY_SOCKET names. Without that variable nothing is sent, so commands need not ask who
// started them.
#pragma once

#include <string>

namespace kxfer::cli {

// Whether a service manager waits for notifications of this process.
bool is_service();

// Whether it went out. status: one line, for `systemctl status`.
bool notify_ready(const std::string& status);
bool notify_reloading();
bool notify_stopping();

} // namespace kxfer::cli

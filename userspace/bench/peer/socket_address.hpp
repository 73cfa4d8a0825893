// SPDX-License-Identifier: MIT
//
// Conversion of the module's form of an address to that of sockets and rdma_cm.
#pragma once

#include <linux/kxfer.h>
#include <sys/socket.h>

namespace kxfer::bench {

sockaddr_storage socket_address(const kxfer_addr& from);

// A responder of user-space verbs has the port after a listener's.
kxfer_addr responder_address(kxfer_addr listener);
// Its TCP port for explicit connections is the one after that.
kxfer_addr exchange_address(kxfer_addr responder);

} // namespace kxfer::bench

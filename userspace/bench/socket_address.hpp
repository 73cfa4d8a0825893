// SPDX-License-Identifier: MIT
//
// The module's form of an address as sockets and rdma_cm know it.
#pragma once

#include <linux/kxfer.h>
#include <sys/socket.h>

namespace kxfer::bench {

sockaddr_storage socket_address(const kxfer_addr& from);

// User-space verbs are answered on the port behind a listener's.
kxfer_addr responder_address(kxfer_addr listener);
// Those of explicit connections over TCP on the port behind that.
kxfer_addr exchange_address(kxfer_addr responder);

} // namespace kxfer::bench

// SPDX-License-Identifier: MIT
//
// Attributes of netlink messages, nested ones too, of any type and length. The header's length
// is correct, because libnl cuts received data by it.

#include <cstdint>
#include <cstring>
#include <vector>

#include <linux/netlink.h>

#include "netlink/rdma.hpp"

using namespace kxfer::netlink;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size > 4096) return 0;
    // Allocate up to the last word only, so that a sanitizer sees each byte read beyond it.
    std::vector<uint32_t> memory((sizeof(nlmsghdr) + size + 3) / 4);
    auto* message = reinterpret_cast<nlmsghdr*>(memory.data());
    message->nlmsg_len = static_cast<uint32_t>(sizeof(nlmsghdr) + size);
    if (size) memcpy(message + 1, data, size);

    if (const auto device = parse_device(message); device && device->name.size() > size) __builtin_trap();
    if (const auto port = parse_port(message); port && port->netdev.size() > size) __builtin_trap();
    if (parse_resources(message).size() > size / 4) __builtin_trap();
    parse_driver(message);
    if (size) {
        port_state_name(data[0]);
        physical_state_name(data[0]);
        node_type_name(data[0]);
    }
    return 0;
}

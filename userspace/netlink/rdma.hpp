// SPDX-License-Identifier: MIT
//
// RDMA devices, their ports and how many objects exist on them, as the RDMA
// core reports over netlink (NETLINK_RDMA, RDMA_NL_NLDEV). Needs no rights and
// neither verbs nor kxfer.ko. It does need ib_core, which the kernel loads
// when a process that may load modules first uses the socket.
//
// Values are as the kernel gives them: host byte order, states as in enum
// ib_port_state. Values that a kernel or device does not report are empty.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include <kxfer/error.hpp>

struct nl_msg;
struct nl_sock;
struct nlmsghdr;

namespace kxfer::netlink {

struct Port {
    uint32_t index = 0;
    uint8_t state = 0;
    uint8_t physical_state = 0;
    std::string netdev;
    uint32_t netdev_index = 0;
    std::optional<uint32_t> lid;
    std::optional<uint32_t> sm_lid;
    std::optional<uint8_t> lmc;
    std::optional<uint64_t> subnet_prefix;
    std::optional<uint64_t> capabilities;
};

struct Device {
    uint32_t index = 0;
    std::string name;
    std::string protocol; // ib, roce, iw, opa, usnic
    std::string driver;   // rxe, siw, mlx5; empty: neither the core nor sysfs has it
    std::string firmware;
    uint64_t node_guid = 0;
    uint64_t system_image_guid = 0;
    uint64_t capabilities = 0;
    uint8_t node_type = 0;
    uint32_t nr_ports = 0;
    std::vector<Port> ports;
};

// Objects of one kind on a device: `qp`, `cq`, `mr` and so on.
struct Resource {
    std::string kind;
    uint64_t count = 0;
};

// A counter that a device keeps for a port, with the device's name and unit.
struct Counter {
    std::string name;
    uint64_t value = 0;
};

// In the words of `rdma link`: DOWN, ACTIVE and so on.
std::string port_state_name(uint8_t state);
std::string physical_state_name(uint8_t state);
std::string node_type_name(uint8_t type);
// 0011:2233:4455:6677
std::string guid_text(uint64_t guid);

// Each parses one message; empty if it lacks the device's or port's name.
std::optional<Device> parse_device(const nlmsghdr* message);
std::optional<Port> parse_port(const nlmsghdr* message);
std::vector<Resource> parse_resources(const nlmsghdr* message);
std::string parse_driver(const nlmsghdr* message);
std::vector<Counter> parse_counters(const nlmsghdr* message);

// One socket; every call asks the kernel anew.
class Rdma {
  public:
    static tl::expected<Rdma, Error> open();

    // All devices with their ports, ordered by index.
    tl::expected<std::vector<Device>, Error> devices();
    tl::expected<std::vector<Resource>, Error> resources(uint32_t device_index);
    // As `rdma statistic` shows them. EINVAL if the driver keeps no counters.
    tl::expected<std::vector<Counter>, Error> counters(uint32_t device_index, uint32_t port);

  private:
    using Fill = std::function<int(nl_msg*)>; // adds attributes to a request; 0 or negative

    struct FreeSocket {
        void operator()(nl_sock* socket) const;
    };
    using Messages = std::vector<std::vector<char>>;

    explicit Rdma(nl_sock* socket) : socket_(socket) {}
    tl::expected<Messages, Error> ask(int command, int flags, const Fill& fill, const std::string& what);
    std::string driver_of(const Device& device);

    std::unique_ptr<nl_sock, FreeSocket> socket_;
};

} // namespace kxfer::netlink

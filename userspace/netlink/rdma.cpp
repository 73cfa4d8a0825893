// SPDX-License-Identifier: MIT
//
// The socket copies each answer to a message of its own; parsing works on
// messages alone, so it can be tested without a device. Attributes that are
// unknown to these headers are skipped.

#include "netlink/rdma.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

#include "base/try.hpp"

namespace kxfer::netlink {

namespace {

constexpr int answer_timeout_seconds = 5;

using Attributes = std::array<nlattr*, RDMA_NLDEV_ATTR_MAX>;

bool parse(const nlmsghdr* message, Attributes& attributes) {
    attributes.fill(nullptr);
    return nlmsg_parse(const_cast<nlmsghdr*>(message), 0, attributes.data(), RDMA_NLDEV_ATTR_MAX - 1,
                       nullptr) == 0;
}

std::string text(const nlattr* attribute) {
    if (!attribute || nla_len(attribute) == 0) return {};
    const char* from = static_cast<const char*>(nla_data(attribute));
    return {from, strnlen(from, nla_len(attribute))};
}

template <typename Number> std::optional<Number> number(const nlattr* attribute) {
    Number value;

    if (!attribute || nla_len(attribute) < static_cast<int>(sizeof(value))) return std::nullopt;
    memcpy(&value, nla_data(attribute), sizeof(value));
    return value;
}

template <size_t Count> std::string name_of(const std::array<const char*, Count>& names, uint8_t value) {
    return value < Count && names[value] ? names[value] : fmt::format("{}", value);
}

int keep_message(nl_msg* message, void* argument) {
    auto* messages = static_cast<std::vector<std::vector<char>>*>(argument);
    const nlmsghdr* header = nlmsg_hdr(message);
    const char* from = reinterpret_cast<const char*>(header);

    messages->emplace_back(from, from + header->nlmsg_len);
    return NL_OK;
}

int keep_error(sockaddr_nl*, nlmsgerr* error, void* argument) {
    *static_cast<int*>(argument) = -error->error;
    return NL_STOP;
}

const nlmsghdr* header_of(const std::vector<char>& message) {
    return reinterpret_cast<const nlmsghdr*>(message.data());
}

struct FreeMessage {
    void operator()(nl_msg* message) const { nlmsg_free(message); }
};
struct FreeCallbacks {
    void operator()(nl_cb* callbacks) const { nl_cb_put(callbacks); }
};

// The attribute that names a device in a request.
auto of_device(uint32_t index) {
    return [index](nl_msg* request) { return nla_put_u32(request, RDMA_NLDEV_ATTR_DEV_INDEX, index); };
}

Error netlink_error(const std::string& what, int error) {
    return Error(what, "RDMA netlink", error, "is ib_core loaded? try: modprobe ib_core");
}

} // namespace

std::string port_state_name(uint8_t state) {
    return name_of(std::array{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}, state);
}

std::string physical_state_name(uint8_t state) {
    return name_of(std::array{"NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP", "LINK_ERROR_RECOVER",
                              "PHY_TEST"},
                   state);
}

std::string node_type_name(uint8_t type) {
    return name_of(
        std::array{"unknown", "ca", "switch", "router", "rnic", "usnic", "usnic_udp", "unspecified"}, type);
}

std::string guid_text(uint64_t guid) {
    return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff,
                       guid & 0xffff);
}

std::optional<Device> parse_device(const nlmsghdr* message) {
    Attributes attributes;
    Device device;

    if (!parse(message, attributes) || !attributes[RDMA_NLDEV_ATTR_DEV_NAME] ||
        !attributes[RDMA_NLDEV_ATTR_DEV_INDEX])
        return std::nullopt;
    device.index = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_DEV_INDEX]).value_or(0);
    device.name = text(attributes[RDMA_NLDEV_ATTR_DEV_NAME]);
    device.protocol = text(attributes[RDMA_NLDEV_ATTR_DEV_PROTOCOL]);
    device.firmware = text(attributes[RDMA_NLDEV_ATTR_FW_VERSION]);
    device.node_guid = number<uint64_t>(attributes[RDMA_NLDEV_ATTR_NODE_GUID]).value_or(0);
    device.system_image_guid = number<uint64_t>(attributes[RDMA_NLDEV_ATTR_SYS_IMAGE_GUID]).value_or(0);
    device.capabilities = number<uint64_t>(attributes[RDMA_NLDEV_ATTR_CAP_FLAGS]).value_or(0);
    device.node_type = number<uint8_t>(attributes[RDMA_NLDEV_ATTR_DEV_NODE_TYPE]).value_or(0);
    device.nr_ports = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_PORT_INDEX]).value_or(0);
    return device;
}

std::optional<Port> parse_port(const nlmsghdr* message) {
    Attributes attributes;
    Port port;

    if (!parse(message, attributes) || !attributes[RDMA_NLDEV_ATTR_PORT_INDEX]) return std::nullopt;
    port.index = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_PORT_INDEX]).value_or(0);
    port.state = number<uint8_t>(attributes[RDMA_NLDEV_ATTR_PORT_STATE]).value_or(0);
    port.physical_state = number<uint8_t>(attributes[RDMA_NLDEV_ATTR_PORT_PHYS_STATE]).value_or(0);
    port.netdev = text(attributes[RDMA_NLDEV_ATTR_NDEV_NAME]);
    port.netdev_index = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_NDEV_INDEX]).value_or(0);
    port.lid = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_LID]);
    port.sm_lid = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_SM_LID]);
    port.lmc = number<uint8_t>(attributes[RDMA_NLDEV_ATTR_LMC]);
    port.subnet_prefix = number<uint64_t>(attributes[RDMA_NLDEV_ATTR_SUBNET_PREFIX]);
    port.capabilities = number<uint64_t>(attributes[RDMA_NLDEV_ATTR_CAP_FLAGS]);
    return port;
}

std::vector<Resource> parse_resources(const nlmsghdr* message) {
    Attributes attributes;
    std::vector<Resource> resources;
    nlattr* entry;
    int left;

    if (!parse(message, attributes) || !attributes[RDMA_NLDEV_ATTR_RES_SUMMARY]) return resources;
    nla_for_each_nested(entry, attributes[RDMA_NLDEV_ATTR_RES_SUMMARY], left) {
        Attributes members{};

        if (nla_parse_nested(members.data(), RDMA_NLDEV_ATTR_MAX - 1, entry, nullptr)) continue;
        resources.push_back({text(members[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME]),
                             number<uint64_t>(members[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR]).value_or(0)});
    }
    return resources;
}

std::string parse_driver(const nlmsghdr* message) {
    // enum rdma_driver_id
    static constexpr std::array names{"",       "mlx5", "mlx4",  "cxgb3",  "cxgb4", "mthca", "bnxt_re",
                                      "ocrdma", "nes",  "irdma", "pvrdma", "qedr",  "hns",   "usnic",
                                      "rxe",    "hfi1", "qib",   "efa",    "siw",   "erdma"};
    Attributes attributes;

    if (!parse(message, attributes)) return {};
    const auto id = number<uint32_t>(attributes[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID]).value_or(0);
    return id < names.size() ? names[id] : std::string();
}

std::vector<Counter> parse_counters(const nlmsghdr* message) {
    Attributes attributes;
    std::vector<Counter> counters;
    nlattr* entry;
    int left;

    if (!parse(message, attributes) || !attributes[RDMA_NLDEV_ATTR_STAT_HWCOUNTERS]) return counters;
    nla_for_each_nested(entry, attributes[RDMA_NLDEV_ATTR_STAT_HWCOUNTERS], left) {
        Attributes members{};

        if (nla_parse_nested(members.data(), RDMA_NLDEV_ATTR_MAX - 1, entry, nullptr)) continue;
        const auto value = number<uint64_t>(members[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE]);
        auto name = text(members[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME]);
        if (value && !name.empty()) counters.push_back({std::move(name), *value});
    }
    return counters;
}

void Rdma::FreeSocket::operator()(nl_sock* socket) const { nl_socket_free(socket); }

tl::expected<Rdma, Error> Rdma::open() {
    Rdma rdma(nl_socket_alloc());
    const timeval timeout{.tv_sec = answer_timeout_seconds, .tv_usec = 0};

    if (!rdma.socket_) return tl::unexpected(netlink_error("cannot open a socket", ENOMEM));
    errno = 0;
    if (nl_connect(rdma.socket_.get(), NETLINK_RDMA) < 0)
        return tl::unexpected(netlink_error("cannot open a socket", errno ? errno : EPROTONOSUPPORT));
    setsockopt(nl_socket_get_fd(rdma.socket_.get()), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    // A dump may have more than the page that libnl reads by default.
    nl_socket_enable_msg_peek(rdma.socket_.get());
    return rdma;
}

// A dump ends with an end-of-dump message. A single answer is followed by an
// acknowledgement, which libnl asks for and waits for.
tl::expected<Rdma::Messages, Error> Rdma::ask(int command, int flags, const Fill& fill,
                                              const std::string& what) {
    const int type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
    std::unique_ptr<nl_msg, FreeMessage> request(nlmsg_alloc_simple(type, NLM_F_REQUEST | flags));
    std::unique_ptr<nl_cb, FreeCallbacks> callbacks(nl_cb_alloc(NL_CB_DEFAULT));
    Messages messages;
    bool done = false;
    int error = 0;

    if (!request || !callbacks) return tl::unexpected(netlink_error(what, ENOMEM));
    if (fill && fill(request.get()) < 0) return tl::unexpected(netlink_error(what, ENOMEM));

    const auto stop = [](nl_msg*, void* argument) {
        *static_cast<bool*>(argument) = true;
        return static_cast<int>(NL_STOP);
    };
    nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, keep_message, &messages);
    nl_cb_set(callbacks.get(), NL_CB_FINISH, NL_CB_CUSTOM, stop, &done);
    nl_cb_set(callbacks.get(), NL_CB_ACK, NL_CB_CUSTOM, stop, &done);
    nl_cb_err(callbacks.get(), NL_CB_CUSTOM, keep_error, &error);

    if (nl_send_auto(socket_.get(), request.get()) < 0) return tl::unexpected(netlink_error(what, errno));
    while (!done && !error) {
        errno = 0;
        if (nl_recvmsgs(socket_.get(), callbacks.get()) < 0 && !error) error = errno ? errno : EPROTO;
    }
    if (error) return tl::unexpected(netlink_error(what, error == EAGAIN ? ETIMEDOUT : error));
    return messages;
}

// The core knows the driver from the device's uverbs node. Without ib_uverbs
// only sysfs has it, and only for hardware.
std::string Rdma::driver_of(const Device& device) {
    const auto ask_for_uverbs = [&](nl_msg* request) {
        const int ret = nla_put_u32(request, RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
        return ret < 0 ? ret : nla_put_string(request, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
    };
    auto answers = ask(RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_ACK, ask_for_uverbs, "cannot ask for the driver");
    if (answers && !answers->empty())
        if (auto driver = parse_driver(header_of(answers->front())); !driver.empty()) return driver;

    std::error_code error;
    const auto link =
        std::filesystem::read_symlink("/sys/class/infiniband/" + device.name + "/device/driver", error);
    return error ? std::string() : link.filename().string();
}

tl::expected<std::vector<Device>, Error> Rdma::devices() {
    std::vector<Device> devices;

    TRY_SET(auto answers, ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {}, "cannot list devices"));
    for (const auto& answer : answers)
        if (auto device = parse_device(header_of(answer))) devices.push_back(std::move(*device));
    for (auto& device : devices) {
        device.driver = driver_of(device);
        auto ports = ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, of_device(device.index),
                         "cannot list ports of " + device.name);
        if (!ports) continue; // the device has gone in the meantime
        for (const auto& answer : *ports)
            if (auto port = parse_port(header_of(answer))) device.ports.push_back(std::move(*port));
    }
    std::ranges::sort(devices, {}, &Device::index);
    return devices;
}

tl::expected<std::vector<Resource>, Error> Rdma::resources(uint32_t device_index) {
    TRY_SET(auto answers,
            ask(RDMA_NLDEV_CMD_RES_GET, NLM_F_ACK, of_device(device_index), "cannot count resources"));
    return answers.empty() ? std::vector<Resource>{} : parse_resources(header_of(answers.front()));
}

tl::expected<std::vector<Counter>, Error> Rdma::counters(uint32_t device_index, uint32_t port) {
    const auto of_port = [&](nl_msg* request) {
        const int ret = of_device(device_index)(request);
        return ret < 0 ? ret : nla_put_u32(request, RDMA_NLDEV_ATTR_PORT_INDEX, port);
    };
    TRY_SET(auto answers, ask(RDMA_NLDEV_CMD_STAT_GET, NLM_F_ACK, of_port, "cannot read counters"));
    return answers.empty() ? std::vector<Counter>{} : parse_counters(header_of(answers.front()));
}

} // namespace kxfer::netlink

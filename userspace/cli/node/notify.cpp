// SPDX-License-Identifier: MIT
#include "cli/node/notify.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cli/node/file.hpp"

namespace kxfer::cli {

namespace {

// A path, or a name in the abstract namespace, which is written with @ for its zero byte.
std::string_view socket_name() {
    const char* name = std::getenv("NOTIFY_SOCKET");
    if (!name || (name[0] != '/' && name[0] != '@') || name[1] == 0) return {};
    return name;
}

// A manager that does not read must not hold the process up.
bool notify(const std::string& state) {
    const std::string_view name = socket_name();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (name.empty() || name.size() >= sizeof(address.sun_path)) return false;
    memcpy(address.sun_path, name.data(), name.size());
    if (address.sun_path[0] == '@') address.sun_path[0] = 0;
    const Descriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) return false;
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    return sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&address), size) >= 0;
}

std::string one_line(std::string text) {
    for (char& c : text)
        if (c == '\n') c = ' ';
    return text;
}

} // namespace

bool is_service() { return !socket_name().empty(); }

bool notify_ready(const std::string& status) { return notify("READY=1\nSTATUS=" + one_line(status)); }

// The time is for Type=notify-reload, which has to tell this reload from an earlier one.
bool notify_reloading() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reading the files again",
                              now.tv_sec * 1000000LL + now.tv_nsec / 1000));
}

bool notify_stopping() { return notify("STOPPING=1\nSTATUS=ending"); }

} // namespace kxfer::cli

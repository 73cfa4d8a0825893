// SPDX-License-Identifier: MIT
//
// What a service tells its manager, received by a socket as the manager has it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/node/file.hpp"
#include "cli/node/notify.hpp"

using namespace kxfer::cli;

namespace {

// The socket of a service manager, and $NOTIFY_SOCKET.
class Manager {
  public:
    explicit Manager(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path, name.data(), name.size());
        if (name.front() == '@') address.sun_path[0] = 0;
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        bound_ = bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
        setenv("NOTIFY_SOCKET", name.c_str(), 1);
    }
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;
    ~Manager() { unsetenv("NOTIFY_SOCKET"); }

    bool bound() const { return bound_; }
    // The next datagram; empty if there is none within a second.
    std::string received() const {
        pollfd waiting = {fd_.get(), POLLIN, 0};
        std::array<char, 4096> room = {};
        if (poll(&waiting, 1, 1000) <= 0) return {};
        const ssize_t size = recv(fd_.get(), room.data(), room.size(), 0);
        return {room.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
    }

  private:
    Descriptor fd_;
    bool bound_ = false;
};

std::string abstract_name() { return "@kxfer-test-" + std::to_string(getpid()); }

} // namespace

TEST(Notify, without_a_manager_nothing_is_sent) {
    unsetenv("NOTIFY_SOCKET");
    EXPECT_FALSE(is_service());
    EXPECT_FALSE(notify_ready("serving"));
}

TEST(Notify, a_name_that_is_no_socket_is_left_alone) {
    for (const char* name : {"", "/", "relative", "vsock:2:1", "@"}) {
        setenv("NOTIFY_SOCKET", name, 1);
        EXPECT_FALSE(is_service()) << name;
        EXPECT_FALSE(notify_ready("serving")) << name;
    }
    setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
    EXPECT_FALSE(notify_ready("serving"));
    setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
    EXPECT_TRUE(is_service());
    EXPECT_FALSE(notify_ready("serving"));
    unsetenv("NOTIFY_SOCKET");
}

TEST(Notify, the_manager_hears_of_the_states_in_their_order) {
    const Manager manager(abstract_name());
    ASSERT_TRUE(manager.bound());
    EXPECT_TRUE(is_service());
    EXPECT_TRUE(notify_ready("serving 1 export on 10.77.0.1:7625"));
    EXPECT_TRUE(notify_reloading());
    EXPECT_TRUE(notify_stopping());
    EXPECT_EQ(manager.received(), "READY=1\nSTATUS=serving 1 export on 10.77.0.1:7625");
    const std::string reloading = manager.received();
    EXPECT_EQ(reloading.rfind("RELOADING=1\nMONOTONIC_USEC=", 0), 0U) << reloading;
    EXPECT_EQ(manager.received(), "STOPPING=1\nSTATUS=ending");
}

TEST(Notify, a_path_is_a_socket_too) {
    std::string folder = "/tmp/kxfer-notify-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/notify";
    {
        const Manager manager(path);
        ASSERT_TRUE(manager.bound());
        EXPECT_TRUE(notify_stopping());
        EXPECT_EQ(manager.received(), "STOPPING=1\nSTATUS=ending");
    }
    unlink(path.c_str());
    rmdir(folder.c_str());
}

// Another line would be taken for another message.
TEST(Notify, a_status_is_one_line) {
    const Manager manager(abstract_name());
    EXPECT_TRUE(notify_ready("a\nMAINPID=1"));
    EXPECT_EQ(manager.received(), "READY=1\nSTATUS=a MAINPID=1");
}

// SPDX-License-Identifier: MIT
//
// The terminal of `top`: it is given back however the program ends, keys are read one by one, and a
// new size ends a wait.
#include "cli/observe/screen.hpp"

#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

using kxfer::cli::Screen;
using std::chrono::seconds;

namespace {

// A process with a screen on a terminal of its own, of 80 columns. It has drawn a picture when
// begin() returns.
struct Child {
    int terminal = -1;
    pid_t pid = -1;
    std::string text; // what it has written

    // run: in the process; its result is the exit status.
    template <typename Run> void begin(Run run) {
        winsize size = {24, 80, 0, 0};
        pid = forkpty(&terminal, nullptr, nullptr, &size);
        if (pid == 0) {
            const rlimit no_core = {0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            auto screen = Screen::open();
            if (!screen) _exit(99);
            const std::string picture = screen->picture({"first line", "second line"});
            if (write(STDOUT_FILENO, picture.data(), picture.size()) < 0) _exit(98);
            _exit(run(screen));
        }
        while (text.find("second line") == std::string::npos && take()) {
        }
    }

    bool take() {
        char bytes[512];
        const ssize_t nr = read(terminal, bytes, sizeof(bytes));
        if (nr > 0) text.append(bytes, static_cast<size_t>(nr));
        return nr > 0; // EIO: the terminal is closed
    }

    // The status of waitpid(); closes the terminal.
    int end() {
        int status = 0;
        while (take()) {
        }
        waitpid(pid, &status, 0);
        close(terminal);
        return status;
    }

    bool is_raw() const {
        termios settings = {};
        return tcgetattr(terminal, &settings) == 0 && (settings.c_lflag & (ICANON | ECHO)) == 0;
    }

    bool left_the_page() const { return text.ends_with("\033[?25h\033[?1049l"); }
};

} // namespace

TEST(Screen, gives_the_terminal_back_at_its_end) {
    Child child;
    child.begin([](auto& screen) {
        screen->key(seconds(20));
        screen.reset();
        return 0;
    });
    EXPECT_TRUE(child.is_raw());
    ASSERT_EQ(write(child.terminal, "x", 1), 1);
    while (child.take()) {
    }
    EXPECT_FALSE(child.is_raw());
    EXPECT_EQ(child.end(), 0);
    EXPECT_TRUE(child.left_the_page()) << child.text;
}

TEST(Screen, gives_the_terminal_back_when_a_signal_ends_the_program) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV}) {
        Child child;
        child.begin([](auto& screen) {
            for (;;) screen->key(seconds(20));
            return 0;
        });
        kill(child.pid, signal);
        while (child.take()) {
        }
        EXPECT_FALSE(child.is_raw()) << signal;
        const int status = child.end();
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal << ' ' << status;
        EXPECT_TRUE(child.left_the_page()) << signal << child.text;
    }
}

TEST(Screen, gives_the_terminal_to_the_shell_while_it_is_stopped) {
    Child child;
    child.begin([](auto& screen) {
        std::optional<char> key;
        while (!key) key = screen->key(seconds(20)); // a signal ends a wait
        return *key == 'q' ? 0 : 1;
    });
    int status = 0;
    kill(child.pid, SIGTSTP);
    ASSERT_EQ(waitpid(child.pid, &status, WUNTRACED), child.pid);
    EXPECT_TRUE(WIFSTOPPED(status));
    EXPECT_FALSE(child.is_raw());
    kill(child.pid, SIGCONT);
    for (int tries = 0; tries < 2000 && !child.is_raw(); tries++) usleep(10000);
    EXPECT_TRUE(child.is_raw());
    ASSERT_EQ(write(child.terminal, "q", 1), 1);
    EXPECT_EQ(child.end(), 0);
    // Back from the shell's page, and to it again.
    EXPECT_TRUE(child.text.ends_with("\033[?25h\033[?1049l\033[?1049h\033[?25l")) << child.text;
}

TEST(Screen, reads_keys_without_a_line_end) {
    Child child;
    child.begin([](auto& screen) { return screen->key(seconds(20)).value_or(97); });
    ASSERT_EQ(write(child.terminal, "q", 1), 1);
    const int status = child.end();
    EXPECT_EQ(WEXITSTATUS(status), 'q');
}

TEST(Screen, ends_a_wait_when_the_terminal_has_another_size) {
    Child child;
    child.begin([](auto& screen) { return screen->key(seconds(20)) ? 1 : screen->width() == 40 ? 0 : 2; });
    const winsize size = {10, 40, 0, 0};
    ASSERT_EQ(ioctl(child.terminal, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(child.end(), 0);
}

TEST(Screen, leaves_out_lines_that_do_not_fit) {
    Child child;
    child.begin([](auto& screen) {
        const std::string picture = screen->picture(std::vector<std::string>(30, "line"));
        size_t nr = 0;
        for (size_t at = 0; (at = picture.find("line", at)) != std::string::npos; at++) nr++;
        return nr == 24 && !picture.ends_with('\n') ? 0 : 1;
    });
    EXPECT_EQ(child.end(), 0);
}

TEST(Screen, is_none_without_a_terminal) {
    const int before = dup(STDOUT_FILENO);
    int pipes[2] = {};
    ASSERT_EQ(pipe(pipes), 0);
    dup2(pipes[1], STDOUT_FILENO);
    const auto screen = Screen::open();
    dup2(before, STDOUT_FILENO);
    for (const int fd : {before, pipes[0], pipes[1]}) close(fd);
    EXPECT_EQ(screen, nullptr);
}

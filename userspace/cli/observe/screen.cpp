// SPDX-License-Identifier: MIT
#include "cli/observe/screen.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace kxfer::cli {

namespace {

constexpr std::string_view enter_text = "\033[?1049h\033[?25l"; // another page, no cursor
constexpr std::string_view leave_text = "\033[?25h\033[?1049l";
constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};

// The settings before; handlers read them, so they are set before the handlers.
termios saved = {};

// enter() and leave() call only what a handler may call.
void put(std::string_view text) {
    // A terminal that is gone needs nothing.
    [[maybe_unused]] const ssize_t ret = write(STDOUT_FILENO, text.data(), text.size());
}

void enter() {
    termios raw = saved;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO); // Ctrl-C and Ctrl-Z stay signals
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put(enter_text);
}

void leave() {
    put(leave_text);
    tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

// Its action is the default one again by now (SA_RESETHAND).
void end(int signal) {
    leave();
    raise(signal);
}

void stop(int) {
    const int before = errno;
    leave();
    raise(SIGSTOP);
    enter(); // continued
    errno = before;
}

// Only ends a wait.
void resized(int) {}

void set_handler(int signal, void (*handler)(int), unsigned flags) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = static_cast<int>(flags);
    sigaction(signal, &action, nullptr);
}

winsize size_now() {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = {24, 80, 0, 0};
    return size;
}

} // namespace

std::unique_ptr<Screen> Screen::open() {
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &saved) != 0) return nullptr;
    for (const int signal : ending_signals) set_handler(signal, end, SA_RESETHAND | SA_NODEFER);
    set_handler(SIGTSTP, stop, 0);
    set_handler(SIGWINCH, resized, 0);
    enter();
    return std::unique_ptr<Screen>(new Screen());
}

Screen::~Screen() {
    for (const int signal : ending_signals) set_handler(signal, SIG_DFL, 0);
    set_handler(SIGTSTP, SIG_DFL, 0);
    set_handler(SIGWINCH, SIG_DFL, 0);
    leave();
}

size_t Screen::width() const { return size_now().ws_col; }

std::string Screen::picture(const std::vector<std::string>& lines) const {
    const size_t nr = std::min<size_t>(lines.size(), size_now().ws_row);
    std::string text = "\033[H";
    for (size_t i = 0; i < nr; i++) text += lines[i] + "\033[K" + (i + 1 < nr ? "\r\n" : "");
    return text + "\033[J";
}

std::optional<char> Screen::key(std::chrono::nanoseconds timeout) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timespec limit = {seconds.count(), (timeout - seconds).count()};
    pollfd input = {has_input_ ? STDIN_FILENO : -1, POLLIN, 0};
    if (ppoll(&input, 1, &limit, nullptr) <= 0) return std::nullopt;
    char key = 0;
    const ssize_t nr = read(STDIN_FILENO, &key, 1);
    if (nr == 1) return key;
    // The end of the input must not end each wait.
    if (nr == 0 || errno != EINTR) has_input_ = false;
    return std::nullopt;
}

} // namespace kxfer::cli

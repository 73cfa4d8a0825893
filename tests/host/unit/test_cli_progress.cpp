// SPDX-License-Identifier: MIT
// The output during a transfer on a real terminal: stderr is a pty.
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"

using namespace kxfer;
using namespace kxfer::cli;

namespace {

// Makes a terminal stderr during its own lifetime.
class Terminal {
  public:
    Terminal() : stderr_(dup(STDERR_FILENO)) {
        int terminal = -1;
        if (openpty(&screen_, &terminal, nullptr, nullptr, nullptr) != 0) return;
        dup2(terminal, STDERR_FILENO);
        close(terminal);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal() {
        dup2(stderr_, STDERR_FILENO);
        close(stderr_);
        if (screen_ >= 0) close(screen_);
    }

    bool works() const { return screen_ >= 0; }

    // Output since the last call.
    std::string shown() const {
        std::string text;
        pollfd ready{screen_, POLLIN, 0};
        char bytes[256];
        while (poll(&ready, 1, 0) > 0) {
            const ssize_t n = read(screen_, bytes, sizeof(bytes));
            if (n <= 0) break;
            text.append(bytes, static_cast<size_t>(n));
        }
        return text;
    }

  private:
    int stderr_;
    int screen_ = -1;
};

using Clock = std::chrono::steady_clock;

// How long a bar stays unchanged.
constexpr std::chrono::milliseconds bar_interval{100};

void wait_for_a_new_bar() { std::this_thread::sleep_for(bar_interval + std::chrono::milliseconds(10)); }

} // namespace

TEST(Progress, draws_a_bar_on_a_terminal_and_takes_it_away) {
    const Terminal terminal;
    if (!terminal.works()) GTEST_SKIP() << "no pseudo-terminal to be had";
    const auto out = make_text_output({});
    Progress progress(*out, "put", 2048);
    wait_for_a_new_bar();
    progress.update(1024);
    const std::string bar = terminal.shown();
    EXPECT_NE(bar.find("\rput [============            ] 50 %, 1 KiB, "), std::string::npos) << bar;
    progress.finish();
    EXPECT_EQ(terminal.shown(), "\r\033[K");
}

// On a busy machine a moment may last longer than a bar; then the test tries again.
TEST(Progress, draws_no_bar_soon_after_another) {
    const Terminal terminal;
    if (!terminal.works()) GTEST_SKIP() << "no pseudo-terminal to be had";
    const auto out = make_text_output({});
    bool soon = false;
    for (int i = 0; i < 50 && !soon; i++) {
        const auto begun = Clock::now();
        Progress progress(*out, "put", 2048);
        progress.update(1);
        const std::string first = terminal.shown();
        const bool at_once = Clock::now() - begun < bar_interval;
        wait_for_a_new_bar();
        const auto before = Clock::now();
        progress.update(1024);
        EXPECT_NE(terminal.shown(), "");
        progress.update(1025);
        const std::string more = terminal.shown();
        soon = at_once && Clock::now() - before < bar_interval;
        if (soon) {
            EXPECT_EQ(first, "") << "drawn too soon";
            EXPECT_EQ(more, "") << "drawn too often";
        }
        progress.finish();
        EXPECT_EQ(terminal.shown(), "\r\033[K");
    }
    EXPECT_TRUE(soon);
}

TEST(Progress, of_a_pipe_tells_bytes_without_a_bar) {
    const Terminal terminal;
    if (!terminal.works()) GTEST_SKIP() << "no pseudo-terminal to be had";
    const auto out = make_text_output({});
    Progress progress(*out, "put", std::nullopt);
    wait_for_a_new_bar();
    progress.update(4096);
    const std::string line = terminal.shown();
    EXPECT_NE(line.find("put 4 KiB, "), std::string::npos) << line;
    EXPECT_EQ(line.find('['), line.find("[K")) << line;
}

TEST(Progress, is_not_shown_when_quiet) {
    const Terminal terminal;
    if (!terminal.works()) GTEST_SKIP() << "no pseudo-terminal to be had";
    OutputOptions options;
    options.quiet = true;
    const auto out = make_text_output(options);
    {
        Progress progress(*out, "put", 2048);
        wait_for_a_new_bar();
        progress.update(1024);
    }
    EXPECT_EQ(terminal.shown(), "");
}

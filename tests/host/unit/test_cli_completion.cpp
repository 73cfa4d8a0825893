// SPDX-License-Identifier: MIT
//
// Completion: what may stand next, by the real tree of commands and things that a test makes up.
#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "cli/command/command.hpp"
#include "cli/config/commands.hpp"
#include "cli/doctor/commands.hpp"
#include "cli/explain/commands.hpp"
#include "cli/main/completion.hpp"
#include "cli/main/usage.hpp"
#include "cli/measure/commands.hpp"
#include "cli/observe/commands.hpp"
#include "cli/transfer/commands.hpp"

using namespace kxfer::cli;

namespace {

using Words = std::vector<std::string>;

struct Things : Lookup {
    std::vector<Candidate> devices() const override { return {{"rxe0", "RoCE"}, {"siw0", "iWARP"}}; }
    std::vector<Candidate> peers() const override {
        return {{"10.77.0.1", ""}, {"10.77.0.1", ""}, {"[fd77::1]:7700", ""}};
    }
    std::vector<Candidate> links() const override { return {{"17", "10.77.0.1:7625"}}; }
    std::vector<Candidate> keys() const override { return {{"cluster", ""}, {"other", ""}}; }
    std::vector<Candidate> exports(const std::string& peer, const std::string& key) const override {
        return {{"inbox", "16 MiB"}, {"of-" + peer + (key.empty() ? "" : "-with-" + key), ""}};
    }
};

Completion completion_of(const Words& words) {
    CLI::App app("", "kxfer");
    Program program;
    bool json = false;
    app.add_flag("--json", json, "results as JSON");
    app.fallthrough();
    for (const auto setup :
         {setup_doctor, setup_device, setup_key,  setup_listen, setup_config, setup_serve,  setup_export,
          setup_ls,     setup_put,    setup_get,  setup_ping,   setup_nop,    setup_bench,  setup_compare,
          setup_sweep,  setup_tune,   setup_link, setup_stat,   setup_top,    setup_events, setup_explain})
        setup(app, program);
    finish_help(app);
    return complete(app, words, Things());
}

Words words_of(const Words& line) {
    Words words;
    for (const Candidate& one : completion_of(line).candidates) words.push_back(one.word);
    return words;
}

bool has(const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

} // namespace

TEST(Completion, begins_with_commands) {
    EXPECT_EQ(words_of({}), Words());
    EXPECT_EQ(words_of({"li"}), (Words{"link", "listen"}));
    EXPECT_EQ(words_of({"--json", "do"}), (Words{"doctor"}));
    EXPECT_EQ(words_of({"listen", ""}), (Words{"add", "del", "list"}));
    EXPECT_EQ(words_of({"config", "a"}), (Words{"apply"}));
    EXPECT_EQ(words_of({"nosuch"}), Words());
}

TEST(Completion, has_the_options_of_a_command_and_of_the_tool) {
    EXPECT_EQ(words_of({"get", "--fo"}), (Words{"--force"}));
    const Words all = words_of({"listen", "add", "-"});
    EXPECT_TRUE(has(all, "--key"));
    EXPECT_TRUE(has(all, "--json"));
    EXPECT_FALSE(has(all, "--force"));
    EXPECT_EQ(words_of({"listen", "add", "--", "--k"}), Words());
}

TEST(Completion, has_the_values_of_a_list) {
    EXPECT_EQ(words_of({"bench", "--connect", ""}), (Words{"rdma-cm", "tcp"}));
    EXPECT_EQ(words_of({"bench", "--connect=t"}), (Words{"--connect=tcp"}));
    EXPECT_EQ(words_of({"bench", "read", "--engine", "k"}), (Words{"kverbs"}));
    // A flag has no value: what follows is an argument.
    EXPECT_EQ(words_of({"bench", "--ring=x"}), Words());
}

TEST(Completion, has_what_is_on_this_node) {
    EXPECT_EQ(words_of({"device", "show", ""}), (Words{"rxe0", "siw0"}));
    EXPECT_EQ(words_of({"ls", "10.77.0.1", "--device", "s"}), (Words{"siw0"}));
    EXPECT_EQ(words_of({"stat", ""}), (Words{"17", "rxe0", "siw0"}));
    EXPECT_EQ(words_of({"link", "show", ""}), (Words{"17"}));
    EXPECT_EQ(words_of({"key", "del", "c"}), (Words{"cluster"}));
    EXPECT_EQ(words_of({"listen", "add", "10.77.0.1", "--key", ""}), (Words{"cluster", "other"}));
    EXPECT_EQ(words_of({"ping", ""}), (Words{"10.77.0.1", "[fd77::1]:7700"}));
}

TEST(Completion, has_the_exports_of_a_peer) {
    EXPECT_EQ(words_of({"get", "10"}), (Words{"10.77.0.1/"}));
    EXPECT_EQ(words_of({"get", "10.77.0.1/"}), (Words{"10.77.0.1/inbox", "10.77.0.1/of-10.77.0.1"}));
    EXPECT_EQ(words_of({"put", "file", "[fd77::1]/in"}), (Words{"[fd77::1]/inbox"}));
    EXPECT_EQ(words_of({"get", "--key", "cluster", "10.77.0.1/o"}),
              (Words{"10.77.0.1/of-10.77.0.1-with-cluster"}));
    EXPECT_EQ(words_of({"get", "--key=cluster", "--force", "10.77.0.1/o"}),
              (Words{"10.77.0.1/of-10.77.0.1-with-cluster"}));
}

TEST(Completion, says_where_a_file_may_stand) {
    EXPECT_TRUE(completion_of({"get", "10.77.0.1/x", ""}).files);
    EXPECT_TRUE(completion_of({"put", ""}).files);
    EXPECT_TRUE(completion_of({"serve", "a=mem:1M", ""}).files);
    EXPECT_TRUE(completion_of({"serve", "--dir", ""}).files);
    EXPECT_FALSE(completion_of({"get", ""}).files);
    EXPECT_FALSE(completion_of({"nop", "--count", ""}).files);
    EXPECT_FALSE(completion_of({"put", "file", "10.77.0.1/x", ""}).files);
}

TEST(Completion, is_a_line_for_each_word) {
    EXPECT_EQ(completion_text({{{"a", ""}, {"b", "what b is"}}, true}), "a\nb\twhat b is\n:files\n");
    EXPECT_EQ(completion_text({}), "");
}

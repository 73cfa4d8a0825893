// SPDX-License-Identifier: MIT
//
// Files of the node's configuration: what a line is, what is said of one that is wrong, and what of
// it is applied already.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/config/applied.hpp"
#include "cli/config/config_line.hpp"

using namespace kxfer::cli;

namespace {

using Words = std::vector<std::string>;

// A folder with files, which is removed with it.
class Folder {
  public:
    Folder() {
        std::string name = "/tmp/kxfer-config-XXXXXX";
        path_ = mkdtemp(name.data()) ? name : "";
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }

    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name) << text;
        return path_ / name;
    }
    std::string path() const { return path_; }
    std::string read(const std::string& name) const {
        std::ifstream in(path_ / name);
        return {std::istreambuf_iterator<char>(in), {}};
    }

  private:
    std::filesystem::path path_;
};

std::vector<Setting> settings_in(const std::string& file) {
    const Config config = read_config(file);
    EXPECT_TRUE(config.failures.empty());
    return settings_of(config.lines);
}

// The names of the settings, as text.
std::string names_of(const std::vector<Setting>& settings) {
    std::string text;
    for (const Setting& one : settings) text += (text.empty() ? "" : " ") + one.words[1];
    return text;
}

std::string why_not(const ConfigLine& line) {
    const auto program = program_of(line, "add");
    return program ? "" : program.error().error.text();
}

} // namespace

TEST(ConfigLine, has_words_as_a_shell_has) {
    EXPECT_EQ(split_line("").value(), Words());
    EXPECT_EQ(split_line("  # all of it").value(), Words());
    EXPECT_EQ(split_line("listen  10.77.0.1\t--key a # why").value(),
              (Words{"listen", "10.77.0.1", "--key", "a"}));
    EXPECT_EQ(split_line("key a '/etc/a key'").value(), (Words{"key", "a", "/etc/a key"}));
    EXPECT_EQ(split_line("key a /x\" y\"z").value(), (Words{"key", "a", "/x yz"}));
    EXPECT_EQ(split_line("key a#b \"\"").value(), (Words{"key", "a#b", ""}));
    EXPECT_EQ(split_line("key 'a\"b'\r").value(), (Words{"key", "a\"b"}));
    EXPECT_FALSE(split_line("key 'a"));
}

TEST(Config, is_read_from_the_files_of_a_folder_in_order) {
    const Folder folder;
    folder.file("b.conf", "listen 10.77.0.2\n");
    folder.file("a.conf", "\n# keys\nkey cluster /etc/cluster.key\nlisten 10.77.0.1");
    folder.file("a.serve", "SERVE=x\n");
    const Config config = read_config(folder.path());
    EXPECT_TRUE(config.failures.empty());
    ASSERT_EQ(config.lines.size(), 3U);
    EXPECT_EQ(config.lines[0].place, folder.path() + "/a.conf:3");
    EXPECT_TRUE(config.lines[0].is_key());
    EXPECT_EQ(config.lines[1].place, folder.path() + "/a.conf:4");
    EXPECT_EQ(config.lines[2].words, (Words{"listen", "10.77.0.2"}));
}

TEST(Config, tells_all_that_cannot_be_read) {
    const Folder folder;
    const std::string file = folder.file("a.conf", "key 'a\nlisten 10.77.0.1\nlisten \"\n");
    const Config config = read_config(file);
    EXPECT_EQ(config.lines.size(), 1U);
    ASSERT_EQ(config.failures.size(), 2U);
    EXPECT_EQ(config.failures[0].error.text(), file + ":1: a ' that is not closed");
    EXPECT_EQ(config.failures[1].error.text(), file + ":3: a \" that is not closed");
}

TEST(Config, that_is_not_there_says_what_to_make) {
    const Folder folder;
    const std::string file = folder.path() + "/nothing";
    const Config config = read_config(file);
    ASSERT_EQ(config.failures.size(), 1U);
    const auto& error = config.failures[0].error;
    EXPECT_EQ(error.text(), "cannot read " + file + ": No such file or directory (ENOENT)");
    EXPECT_NE(error.hint.find("a folder with files *.conf"), std::string::npos) << error.hint;
    EXPECT_NE(error.hint.find("listen ADDR"), std::string::npos) << error.hint;
}

TEST(ConfigLine, is_what_the_tool_takes) {
    const Folder folder;
    const std::string secret = folder.file("secret", "0123456789abcdef");
    EXPECT_EQ(why_not({"a:1", {"key", "cluster", secret}}), "");
    EXPECT_EQ(why_not({"a:1", {"listen", "10.77.0.1:7700", "--key", "a", "--key", "b", "--silence", "5"}}),
              "");
    EXPECT_TRUE(program_of({"a:1", {"listen", "10.77.0.1"}}, "del"));
    EXPECT_TRUE(program_of({"a:1", {"key", "cluster"}}, "del"));
}

TEST(ConfigLine, says_where_and_what_is_wrong) {
    EXPECT_EQ(why_not({"a.conf:7", {"serve", "x"}}), "a.conf:7: 'serve' is neither key nor listen");
    EXPECT_EQ(why_not({"a.conf:7", {"listen", "--key", "a", "10.77.0.1"}}),
              "a.conf:7: ADDR comes first, then options");
    EXPECT_EQ(why_not({"a.conf:7", {"key", "cluster", "secret"}}),
              "a.conf:7: 'secret' is no whole path of the key's file");
    EXPECT_EQ(why_not({"a.conf:7", {"key", "cluster", "/nowhere/secret"}}),
              "a.conf:7: cannot read /nowhere/secret: No such file or directory");
    for (const Words& words :
         {Words{"listen"}, Words{"listen", "10.77.0.1:99999"}, Words{"key", "a b", "/dev/null"},
          Words{"listen", "10.77.0.1", "--silence", "99"}, Words{"listen", "10.77.0.1", "--help"},
          Words{"listen", "10.77.0.1", "--json"}, Words{"key", "a", "/dev/null", "more"}}) {
        const std::string why = why_not({"a.conf:7", words});
        EXPECT_EQ(why.rfind("a.conf:7: ", 0), 0U) << why;
        EXPECT_GT(why.size(), std::string("a.conf:7: ").size()) << words.back();
    }
}

TEST(ConfigLine, is_quoted_so_that_its_words_stay) {
    for (const Words& words : {Words{"key", "a", "/etc/a key"}, Words{"listen", "'", "\"", "a'b\"c#", ""}})
        EXPECT_EQ(split_line(quoted(words)).value(), words) << quoted(words);
}

TEST(Setting, has_the_keys_that_its_line_names) {
    EXPECT_EQ(keys_of({"listen", "10.77.0.1", "--key", "a", "--silence", "5", "--key=b"}), (Words{"a", "b"}));
    EXPECT_EQ(keys_of({"listen", "10.77.0.1", "--no-key", "--any-port"}), Words());
}

TEST(Setting, is_the_same_until_its_line_or_a_secret_changes) {
    const Folder folder;
    const std::string one = folder.file("one", "0123456789abcdef");
    const std::string two = folder.file("two", "fedcba9876543210");
    const std::string text = "key a " + one + "\nkey b " + two +
                             "\nlisten 10.77.0.1 --key a\nlisten 10.77.0.2 --key b\n"
                             "listen 10.77.0.3 --key other\nlisten 10.77.0.4\n";
    const std::string file = folder.file("node.conf", text);
    const auto before = settings_in(file);
    EXPECT_EQ(names_of(outdated(before, settings_in(file))), "");
    // The order of lines, comments and addresses of the last time make no other setting.
    auto resolved = before;
    resolved[2].address = "10.77.0.1:7625";
    folder.file("node.conf", "listen 10.77.0.4 # last\n" + text);
    EXPECT_EQ(names_of(outdated(resolved, settings_in(file))), "");
    // Another secret is in effect only when the listener has it too, and goes before its key.
    folder.file("two", "another secret..");
    EXPECT_EQ(names_of(outdated(before, settings_in(file))), "10.77.0.2 b");
    folder.file("two", "fedcba9876543210");
    folder.file("node.conf", text.substr(0, text.rfind("listen")) + "listen 10.77.0.4 --silence 5\n");
    EXPECT_EQ(names_of(outdated(before, settings_in(file))), "10.77.0.4");
    EXPECT_EQ(names_of(outdated(before, {})), "10.77.0.4 10.77.0.3 10.77.0.2 10.77.0.1 b a");
}

TEST(Applied, is_what_the_next_process_finds) {
    const Folder folder;
    const std::string place = folder.path() + "/run";
    const std::string file = folder.file("node.conf", "listen n1 --silence 5\nkey 'a' '/with blank'\n");
    const auto settings = settings_in(file);
    {
        auto applied = Applied::open(place);
        ASSERT_TRUE(applied);
        EXPECT_TRUE(applied->settings().empty());
        Setting listener = settings[0];
        listener.address = "10.77.0.1:7625";
        EXPECT_TRUE(applied->add(listener));
        EXPECT_TRUE(applied->add(settings[1]));
    }
    EXPECT_EQ(std::filesystem::status(place + "/applied").permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    auto applied = Applied::open(place);
    ASSERT_TRUE(applied);
    ASSERT_TRUE(applied->find(settings[0]));
    EXPECT_EQ(applied->find(settings[0])->name(), "10.77.0.1:7625");
    ASSERT_TRUE(applied->find(settings[1]));
    EXPECT_EQ(applied->find(settings[1])->name(), "a");
    // Once more makes no second one.
    EXPECT_TRUE(applied->add(settings[1]));
    EXPECT_EQ(applied->settings().size(), 2U);
    EXPECT_TRUE(applied->remove(settings[0]));
    EXPECT_FALSE(applied->find(settings[0]));
    EXPECT_EQ(folder.read("run/applied"), "'key' 'a' '/with blank' '-' '-'\n");
    EXPECT_TRUE(applied->remove(settings[1]));
    EXPECT_FALSE(std::filesystem::exists(place + "/applied"));
}

TEST(Applied, is_of_one_process_at_a_time) {
    const Folder folder;
    auto first = Applied::open(folder.path());
    ASSERT_TRUE(first);
    const Setting setting{{"key", "a", "/x"}, "-"};
    std::thread second([&] {
        const auto applied = Applied::open(folder.path());
        EXPECT_TRUE(applied && applied->find(setting));
    });
    EXPECT_TRUE(first->add(setting));
    { const Applied ended = std::move(*first); }
    second.join();
}

TEST(Applied, is_not_waited_for_without_end) {
    const Folder folder;
    auto first = Applied::open(folder.path());
    ASSERT_TRUE(first);
    const auto second = Applied::open(folder.path(), std::chrono::milliseconds(200));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().error.text(),
              "cannot lock " + folder.path() + ": another kxfer config has had it for 1 s (EBUSY)");
    EXPECT_NE(second.error().error.hint, "");
}

TEST(Applied, says_where_it_cannot_be) {
    const Folder folder;
    folder.file("file", "");
    const auto applied = Applied::open(folder.path() + "/file/run");
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().error.text(),
              "cannot make " + folder.path() + "/file/run: Not a directory (ENOTDIR)");
}

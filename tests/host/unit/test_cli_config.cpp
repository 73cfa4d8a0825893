// SPDX-License-Identifier: MIT
//
// Files of the node's configuration: what a line is, and what is said of one that is wrong.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

  private:
    std::filesystem::path path_;
};

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
    EXPECT_EQ(read_config(folder.path() + "/nothing.conf").failures.size(), 1U);
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

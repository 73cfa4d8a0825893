// SPDX-License-Identifier: MIT
//
// Folders: what client and server say to each other, paths, and the files of a Tree.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command/peer.hpp"
#include "cli/folder/copy_report.hpp"
#include "cli/folder/folder_message.hpp"
#include "cli/folder/tree.hpp"
#include "cli/transfer/source.hpp"

namespace kxfer::cli {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Folder, a_request_comes_as_it_was_sent) {
    FolderRequest request;
    request.desk = "0123456789abcdef";
    request.number = 0xffffffffffffffff;
    request.op = FolderOp::write;
    request.path = "a/b \xc3\xa4\"\\";
    request.offset = uint64_t{1} << 63;
    request.length = 5;
    request.size = 6;
    request.window = 1;
    request.mode = 0640;
    request.mtime_ns = -1;
    request.of_part = true;
    request.sha256 = "12";
    const auto parsed = FolderRequest::parse(bytes_of(request.text()));
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ(request.text(), parsed->text());
    EXPECT_EQ(request.mtime_ns, parsed->mtime_ns);
    EXPECT_EQ(request.number, parsed->number);
}

TEST(Folder, a_reply_comes_as_it_was_sent) {
    FolderReply reply;
    reply.number = 7;
    reply.error = 2;
    reply.why = "no \xff such file";
    reply.entry.mtime_ns = 1234567890123456789;
    for (const char* name : {"one", "two"}) {
        TreeEntry entry;
        entry.name = name;
        entry.type = TreeEntry::Type::file;
        entry.size = 5;
        reply.entries.push_back(entry);
    }
    const auto parsed = FolderReply::parse(bytes_of(reply.text()));
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ(2, parsed->error);
    EXPECT_EQ(1234567890123456789, parsed->entry.mtime_ns);
    ASSERT_EQ(2U, parsed->entries.size());
    EXPECT_TRUE(parsed->entries[1].looks_like(reply.entries[1]));
}

TEST(Folder, a_full_reply_has_room) {
    FolderReply reply;
    TreeEntry entry;
    entry.name = std::string(244, '\x01'); // six characters each, in JSON
    entry.size = entry.size - 1;
    entry.mtime_ns = INT64_MIN;
    reply.entries.assign(most_entries, entry);
    EXPECT_GE(reply_bytes, reply.text().size());
}

TEST(Folder, nonsense_of_a_peer_is_refused) {
    const std::string head = R"({"desk":"0123456789abcdef","op":"read","number":)";
    EXPECT_TRUE(FolderRequest::parse(bytes_of(head + "1}")));
    for (const char* rest : {"-1}", "1e3}", "1.5}", "\"1\"}", "18446744073709551616}", "[]}", "1", "1}}"})
        EXPECT_FALSE(FolderRequest::parse(bytes_of(head + rest))) << rest;
    for (const std::string& text :
         {std::string(), std::string("{}"), std::string("[]"), std::string("1"), std::string(4096, '['),
          std::string(R"({"desk":"0123456789abcdeF","op":"read","number":1})"),
          std::string(R"({"desk":"0123456789abcdef","op":"read","number":1,"path":"../x"})"),
          std::string(R"({"desk":"0123456789abcdef","op":"read","number":1,"path":"/x"})"),
          std::string(R"({"desk":"0123456789abcdef","op":"read","number":1,"path":5})"),
          std::string(R"({"desk":"0123456789abcdef","op":"read","number":1,"window":4294967296})")})
        EXPECT_FALSE(FolderRequest::parse(bytes_of(text))) << text;
    const auto unknown =
        FolderRequest::parse(bytes_of(R"({"desk":"0123456789abcdef","op":"dance","number":1})"));
    ASSERT_TRUE(unknown);
    EXPECT_EQ(FolderOp::unknown, unknown->op);
}

// A server must not lead a client out of its folder.
TEST(Folder, names_of_a_hostile_server_are_refused) {
    for (const char* name : {"..", ".", "", "a/b", "/etc/passwd", "../x", "x.kxfer-part"}) {
        FolderReply reply;
        TreeEntry entry;
        entry.name = name;
        reply.entries.push_back(entry);
        EXPECT_FALSE(FolderReply::parse(bytes_of(reply.text()))) << name;
    }
}

TEST(Folder, paths_are_names_with_slashes) {
    for (const std::string& good : {std::string(), std::string("a"), std::string("a/b"), std::string("..."),
                                    std::string("a b/\xc3\xa4"), std::string(244, 'x')})
        EXPECT_TRUE(is_tree_path(good)) << good;
    for (const std::string& bad :
         {std::string("/"), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".."),
          std::string("a/.."), std::string("./a"), std::string("a\0b", 3), std::string("\xff"),
          std::string("a.kxfer-part"), std::string(245, 'x'), std::string(5000, 'x')})
        EXPECT_FALSE(is_tree_path(bad)) << bad;
}

TEST(Folder, a_remote_may_have_a_path) {
    EXPECT_FALSE(parse_remote_path("host/name")->in_folder);
    EXPECT_TRUE(parse_remote_path("host/name/")->in_folder);
    EXPECT_EQ("a/b", parse_remote_path("host/name/a/b/")->path);
    EXPECT_EQ("host:7625/name/a", parse_remote_path("host/name/a")->text());
    EXPECT_FALSE(parse_remote_path("host/name//a"));
    EXPECT_FALSE(parse_remote_path("host/na me/a"));
    EXPECT_FALSE(parse_remote_path("host"));
}

TEST(Folder, a_folder_is_named_by_its_path) {
    EXPECT_EQ("docs", parse_folder("/srv/docs/")->name);
    EXPECT_EQ("/srv/docs/", parse_folder("x=/srv/docs/")->file);
    EXPECT_EQ("x", parse_folder("x=/srv/docs/")->name);
    EXPECT_FALSE(parse_folder("/"));
    EXPECT_FALSE(parse_folder("."));
    EXPECT_FALSE(parse_folder("x="));
}

TEST(Folder, a_manifest_escapes_what_sha256sum_escapes) {
    const std::string zeros(64, '0');
    EXPECT_EQ(zeros + "  a b\n", manifest_line(Digest{}, "a b"));
    EXPECT_EQ("\\" + zeros + "  a\\\\b\\nc\n", manifest_line(Digest{}, "a\\b\nc"));
}

class TreeTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "kxfer-tree-XXXXXX").string();
        ASSERT_NE(nullptr, mkdtemp(pattern.data()));
        path_ = pattern;
        std::filesystem::create_directories(path_ + "/tree/sub");
        write("tree/file", "content");
        write("secret", "secret");
        auto tree = Tree::open(path_ + "/tree");
        ASSERT_TRUE(tree);
        tree_.emplace(std::move(*tree));
    }
    void TearDown() override { std::filesystem::remove_all(path_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path_ + '/' + name) << text;
    }
    std::string read(const std::string& name) const {
        std::ifstream file(path_ + '/' + name);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    std::string path_;
    std::optional<Tree> tree_;
};

TEST_F(TreeTest, what_is_in_it_is_found) {
    ASSERT_TRUE(tree_->look_up("file"));
    EXPECT_EQ(7U, tree_->look_up("file")->size);
    EXPECT_EQ(TreeEntry::Type::folder, tree_->look_up("")->type);
    EXPECT_EQ(ENOENT, tree_->look_up("nothing").error().number);
    EXPECT_EQ(EISDIR, tree_->open_file("sub").error().number);
    const auto entries = tree_->list("", "", 10);
    ASSERT_TRUE(entries);
    ASSERT_EQ(2U, entries->size());
    EXPECT_EQ("sub", tree_->list("", "file", 10)->front().name);
    EXPECT_EQ(1U, tree_->list("", "", 1)->size());
}

TEST_F(TreeTest, no_link_leads_out_of_it) {
    std::filesystem::create_symlink("../secret", path_ + "/tree/link");
    std::filesystem::create_symlink("..", path_ + "/tree/out");
    std::filesystem::create_symlink("file", path_ + "/tree/inner");
    for (const char* path : {"link", "out/secret", "inner"}) {
        EXPECT_EQ(ELOOP, tree_->open_file(path).error().number) << path;
    }
    EXPECT_FALSE(tree_->open_part("out/x"));
    EXPECT_FALSE(tree_->make_folder("out/x", 0777));
    EXPECT_FALSE(tree_->make_folder("link", 0777));
    EXPECT_FALSE(tree_->list("out", "", 10));
    EXPECT_EQ(EINVAL, tree_->open_file("../secret").error().number);
}

// A part is one file with one name: a link to another would let its bytes go there.
TEST_F(TreeTest, a_part_is_no_link) {
    std::filesystem::create_symlink("../secret", path_ + "/tree/a.kxfer-part");
    EXPECT_EQ(ELOOP, tree_->open_part("a").error().number);
    std::filesystem::create_hard_link(path_ + "/secret", path_ + "/tree/b.kxfer-part");
    EXPECT_EQ(EEXIST, tree_->open_part("b").error().number);
    EXPECT_EQ("secret", read("secret"));
}

TEST_F(TreeTest, a_fifo_is_refused_and_not_waited_for) {
    ASSERT_EQ(0, mkfifo((path_ + "/tree/fifo").c_str(), 0600));
    EXPECT_EQ(EINVAL, tree_->open_file("fifo").error().number);
    EXPECT_EQ(TreeEntry::Type::other, tree_->look_up("fifo")->type);
}

TEST_F(TreeTest, a_part_becomes_the_file) {
    {
        const auto part = tree_->open_part("sub/new");
        ASSERT_TRUE(part);
        ASSERT_EQ(3, ::write(part->get(), "new", 3));
    }
    EXPECT_TRUE(tree_->list("sub", "", 10)->empty());
    constexpr int64_t before_1970 = -1'250'000'000;
    ASSERT_TRUE(tree_->keep("sub/new", 04755, before_1970, false));
    EXPECT_EQ("new", read("tree/sub/new"));
    EXPECT_EQ(0755U, tree_->look_up("sub/new")->mode);
    EXPECT_EQ(before_1970, tree_->look_up("sub/new")->mtime_ns);
    struct stat status = {};
    ASSERT_EQ(0, stat((path_ + "/tree/sub/new").c_str(), &status));
    EXPECT_EQ(0U, status.st_mode & 07000U);
}

TEST_F(TreeTest, keep_replaces_only_if_told) {
    ASSERT_TRUE(tree_->open_part("file"));
    EXPECT_EQ(EEXIST, tree_->keep("file", 0644, 0, false).error().number);
    EXPECT_EQ("content", read("tree/file"));
    EXPECT_TRUE(tree_->keep("file", 0644, 0, true));
    EXPECT_EQ("", read("tree/file"));
    EXPECT_FALSE(tree_->keep("sub", 0644, 0, true));
}

} // namespace
} // namespace kxfer::cli

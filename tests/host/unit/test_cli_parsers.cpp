// SPDX-License-Identifier: MIT
//
// SIZE, PEER, REMOTE, SOURCE and --allow: accepted words, and that everything else is refused
// with a message about the allowed forms.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "cli/command/number.hpp"
#include "cli/command/peer.hpp"
#include "cli/command/size.hpp"
#include "cli/measure/cpus.hpp"
#include "cli/transfer/allow.hpp"
#include "cli/transfer/source.hpp"

using namespace kxfer::cli;

TEST(Size, understands_plain_numbers_and_powers_of_1024) {
    const std::vector<std::pair<const char*, uint64_t>> sizes = {
        {"0x1000", 4096},
        {"0XfF", 255},
        {"0xffffffffffffffff", UINT64_MAX},
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"4K", 4096},
        {"4KiB", 4096},
        {"16M", 16ULL << 20},
        {"16MiB", 16ULL << 20},
        {"4k", 4096},
        {"1KB", 1024},
        {"1Kib", 1024},
        {"64B", 64},
        {"2gb", 2ULL << 30},
        {"1.5M", 3ULL << 19},
        {"1.5G", 3ULL << 29},
        {"0.5k", 512},
        {"2.000000T", 2ULL << 40},
        {"3G", 3ULL << 30},
        {"2TiB", 2ULL << 40},
        {"18446744073709551615", UINT64_MAX},
    };
    for (const auto& [text, bytes] : sizes) {
        const auto parsed = parse_size(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(*parsed, bytes) << text;
    }
}

TEST(Size, refuses_everything_else_and_says_what_a_size_is) {
    for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1iB", "1XiB", "1.", "1.M", ".5M", "1.5.5M",
                             "1.0000001M", "1.5Mi", "1BB", "00x10", "1KK", "4K "}) {
        const auto parsed = parse_size(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_NE(parsed.error().find("such as 4096, 4K or 16MiB"), std::string::npos) << text;
    }
}

TEST(Size, in_hexadecimal_has_no_unit) {
    for (const char* text : {"0x", "0xg", "0x10K", "0x1.5", "0x-1", "0x 1", "-0x10"}) {
        const auto parsed = parse_size(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_NE(parsed.error().find("is not a size"), std::string::npos) << text;
    }
}

TEST(Size, refuses_parts_of_bytes) {
    for (const char* text : {"1.5", "0.3K", "1.0001M"}) {
        const auto parsed = parse_size(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_NE(parsed.error().find("no whole number of bytes"), std::string::npos) << text;
    }
}

TEST(Size, refuses_what_does_not_fit_64_bits) {
    for (const char* text :
         {"18446744073709551616", "16777216T", "18014398509481984K", "16777216.5T", "0x10000000000000000"}) {
        const auto parsed = parse_size(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_NE(parsed.error().find("too large"), std::string::npos) << text;
    }
    EXPECT_EQ(*parse_size("16777215T"), 16777215ULL << 40);
}

TEST(Number, is_in_its_range_and_nothing_else) {
    const auto seconds = from_to(0.001, 60.0);
    for (std::string text : {"0.001", "60", "1.5", "1e1"}) EXPECT_EQ(seconds(text), "") << text;
    for (std::string text : {"nan", "-nan", "NaN", "inf", "0", "61", "1h", "", "1 2", "-1"})
        EXPECT_EQ(seconds(text), "'" + text + "' is not a number from 0.001 to 60");
    const auto count = from_to(1, 4096);
    for (std::string text : {"1", "4096", "0x10"}) EXPECT_EQ(count(text), "") << text;
    for (std::string text : {"0", "4097", "1k", "1.5", "-1", "99999999999999999999"})
        EXPECT_EQ(count(text), "'" + text + "' is not a whole number from 1 to 4096");
    const auto unsigned_count = from_to(uint64_t{1}, uint64_t{1000000000000});
    for (std::string text : {"-1", "0", "x", "18446744073709551616"})
        EXPECT_EQ(unsigned_count(text), "'" + text + "' is not a whole number from 1 to 1000000000000");
    EXPECT_EQ(seconds.get_description(), "(0.001-60)");
    EXPECT_EQ(count.get_description(), "(1-4096)");
    EXPECT_EQ(unsigned_count.get_description(), "(1 or more)");
}

TEST(Peer, understands_hosts_addresses_and_ports) {
    const std::vector<std::tuple<const char*, const char*, uint16_t>> peers = {
        {"node1", "node1", 7625},         {"node1:80", "node1", 80},
        {"10.77.0.1", "10.77.0.1", 7625}, {"10.77.0.1:65535", "10.77.0.1", 65535},
        {"[fd77::1]", "fd77::1", 7625},   {"[fe80::1%eth0]:7700", "fe80::1%eth0", 7700},
        {"fd77::1", "fd77::1", 7625},
    };
    for (const auto& [text, host, port] : peers) {
        const auto peer = parse_peer(text);
        ASSERT_TRUE(peer) << text;
        EXPECT_EQ(peer->host, host);
        EXPECT_EQ(peer->port, port);
    }
}

TEST(Peer, refuses_what_is_no_peer) {
    for (const char* text : {"", ":80", "host:", "host:0", "host:65536", "host:12a", "[fd77::1", "[]",
                             "[fd77::1]80", "a b", "a@b"}) {
        EXPECT_FALSE(parse_peer(text)) << text;
    }
}

TEST(Peers, are_separated_by_commas) {
    const auto peers = parse_peers("10.0.0.1,[fd77::1]:7500,host");
    ASSERT_TRUE(peers);
    ASSERT_EQ(peers->size(), 3U);
    EXPECT_EQ(peers->at(1).host, "fd77::1");
    EXPECT_EQ(peers->at(1).port, 7500);
    EXPECT_EQ(peers->at(2).host, "host");
    EXPECT_EQ(parse_peers("10.0.0.1")->size(), 1U);
}

TEST(Peers, are_not_empty_nor_too_many) {
    for (const char* text : {"", ",", "10.0.0.1,", ",10.0.0.1", "10.0.0.1:0,10.0.0.2", "a,a,a,a,a,a,a,a"})
        EXPECT_FALSE(parse_peers(text)) << text;
    EXPECT_TRUE(parse_peers("a,a,a,a,a,a,a"));
}

TEST(Peer, is_written_so_that_it_can_be_read_back) {
    for (const char* text : {"node1:7625", "10.0.0.1:1", "[fe80::1%eth0]:7700"}) {
        EXPECT_EQ(parse_peer(text)->text(), text);
    }
}

TEST(Remote, splits_peer_and_name) {
    const auto remote = parse_remote("[fd77::1]:7700/in.box_1-a");
    ASSERT_TRUE(remote);
    EXPECT_EQ(remote->peer.host, "fd77::1");
    EXPECT_EQ(remote->peer.port, 7700);
    EXPECT_EQ(remote->name, "in.box_1-a");
    EXPECT_EQ(remote->text(), "[fd77::1]:7700/in.box_1-a");
    EXPECT_TRUE(parse_remote("node/@ping"));
}

TEST(Remote, refuses_bad_names) {
    for (const char* text :
         {"node", "node/", "/inbox", "node/a/b", "node/a b", "node/@other", "node/\xc3\xa4"}) {
        EXPECT_FALSE(parse_remote(text)) << text;
    }
    EXPECT_TRUE(parse_remote("node/" + std::string(63, 'n')));
    EXPECT_FALSE(parse_remote("node/" + std::string(64, 'n')));
}

TEST(Resolve, takes_numeric_addresses_with_the_port) {
    const auto addresses = resolve({"10.77.0.1", 7700});
    ASSERT_TRUE(addresses);
    const kxfer_addr& address = addresses->front();
    EXPECT_EQ(address.family, AF_INET);
    EXPECT_EQ(address.port, 7700);
    EXPECT_EQ(std::memcmp(address.addr, "\x0a\x4d\x00\x01\0\0\0\0\0\0\0\0\0\0\0\0", 16), 0);
}

TEST(Source, understands_files_names_and_memory) {
    const std::vector<std::tuple<const char*, const char*, const char*, uint64_t>> sources = {
        {"report.pdf", "report.pdf", "report.pdf", 0},
        {"/var/data/report.pdf", "report.pdf", "/var/data/report.pdf", 0},
        {"r=/var/data/report.pdf", "r", "/var/data/report.pdf", 0},
        {"./a=b", "", "./a=b", 0},
        {"n=a=b", "n", "a=b", 0},
        {"inbox=mem:16M", "inbox", "", 16ULL << 20},
        {"gpu=heap:1M", "gpu", "", 1ULL << 20},
    };
    for (const auto& [text, name, file, bytes] : sources) {
        const auto source = parse_source(text);
        if (std::string(name).empty()) { // './a=b' is a file, which cannot be the name of an export
            ASSERT_FALSE(source) << text;
            EXPECT_NE(source.error().find("give NAME=./a=b"), std::string::npos);
            continue;
        }
        ASSERT_TRUE(source) << text;
        EXPECT_EQ(source->name, name);
        EXPECT_EQ(source->file, file);
        EXPECT_EQ(source->bytes, bytes);
    }
}

TEST(Source, refuses_what_names_nothing) {
    for (const char* text : {"", "a=", "mem:4K", "a=mem:", "a=mem:0", "a=mem:x", "with space", "/"}) {
        EXPECT_FALSE(parse_source(text)) << text;
    }
}

TEST(Source, that_has_no_name_says_what_to_type) {
    for (const auto& [text, words] :
         {std::pair("my file.bin", "give NAME='my file.bin'"), std::pair("it's", "give NAME='it'\\''s'"),
          std::pair("dir/a+b", "give NAME=dir/a+b"),
          std::pair("a b=mem:1M", "'a b' is not a name of an export"),
          std::pair("@ping=mem:1M", "'@ping' is not a name"), std::pair("=mem:1M", "'' is not a name"),
          std::pair("/srv/a b=c", "give NAME='/srv/a b=c'")}) {
        const auto source = parse_source(text);
        ASSERT_FALSE(source) << text;
        EXPECT_NE(source.error().find(words), std::string::npos) << source.error();
    }
}

TEST(Allow, understands_networks_users_and_groups) {
    const auto network = parse_allow("10.77.3.9/16");
    ASSERT_TRUE(network);
    EXPECT_EQ(network->match, KXFER_RULE_ADDR);
    EXPECT_EQ(network->prefix_len, 16U);
    EXPECT_EQ(network->addr.family, AF_INET);
    EXPECT_EQ(std::memcmp(network->addr.addr, "\x0a\x4d\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16), 0) << "not masked";
    EXPECT_EQ(parse_allow("10.0.0.1")->prefix_len, 32U);
    EXPECT_EQ(parse_allow("fd77::1")->prefix_len, 128U);
    EXPECT_EQ(parse_allow("::/0")->addr.family, AF_INET6);
    EXPECT_EQ(parse_allow("uid=1000")->match, KXFER_RULE_UID);
    EXPECT_EQ(parse_allow("uid=1000")->uid, 1000U);
    EXPECT_EQ(parse_allow("gid=7")->match, KXFER_RULE_GID);
    EXPECT_EQ(parse_allow("gid=7")->gid, 7U);
}

TEST(Allow, masks_within_a_byte) {
    EXPECT_EQ(parse_allow("10.255.0.0/9")->addr.addr[1], 0x80);
    EXPECT_EQ(parse_allow("10.255.255.255/31")->addr.addr[3], 0xfe);
}

TEST(Allow, refuses_everything_else) {
    for (const char* text : {"", "any", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1",
                             "uid=", "uid=x", "uid=-1", "uid=4294967296", "gid=1x"}) {
        EXPECT_FALSE(parse_allow(text)) << text;
    }
}

TEST(Cpus, understands_numbers_and_ranges_in_their_order) {
    EXPECT_EQ(parse_cpus("0"), std::vector<unsigned>({0}));
    EXPECT_EQ(parse_cpus("3,0-2"), std::vector<unsigned>({3, 0, 1, 2}));
    EXPECT_EQ(parse_cpus("1,1"), std::vector<unsigned>({1, 1}));
    EXPECT_EQ(cpus_text(*parse_cpus("4-5,7")), "4,5,7");
}

TEST(Cpus, refuses_everything_else) {
    for (const char* text : {"", ",", "0,", "-1", "0-", "2-1", "0x1", "1 2", "1024", "4294967296"})
        EXPECT_FALSE(parse_cpus(text)) << text;
}

// SPDX-License-Identifier: MIT
//
// The knowledge of kxfer explain, compared with the headers of rdma-core, the texts of its
// libraries, the contract in uapi/linux/kxfer.h and the errnos in the tool's sources, which are
// read here. Also how words are parsed, and the bits of GIDs and P_Keys.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <kxfer/kxfer.h>

#include "cli/explain/meaning.hpp"

using namespace kxfer::cli;

namespace {

std::string file(const std::string& path) {
    std::ifstream stream(path);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

std::string without_comments(std::string text) {
    for (size_t begin; (begin = text.find("/*")) != std::string::npos;) {
        const size_t end = text.find("*/", begin + 2);
        text.erase(begin, end == std::string::npos ? end : end + 2 - begin);
    }
    return text;
}

// Names and numbers of an enumeration in a header, numbered like a compiler does. `named` has the
// numbers of names that stand for one: A = B.
std::map<std::string, int> enumeration(const std::string& header, const std::string& name,
                                       const std::map<std::string, int>& named = {}) {
    const std::regex body("enum " + name + R"(\s*\{([^}]*)\})"),
        one(R"((\w+)\s*(?:=\s*(?:(0x[0-9a-f]+|\d+)\s*(?:<<\s*(\d+))?|(\w+)))?)");
    const std::string text = without_comments(file(header));
    std::map<std::string, int> numbers;
    std::smatch found;
    int next = 0;
    if (!std::regex_search(text, found, body)) return numbers;
    const std::string list = found[1];
    for (std::sregex_iterator at(list.begin(), list.end(), one), end; at != end; ++at) {
        if ((*at)[2].matched)
            next = std::stoi((*at)[2], nullptr, 0) << ((*at)[3].matched ? std::stoi((*at)[3]) : 0);
        if ((*at)[4].matched) next = named.at((*at)[4]);
        numbers[(*at)[1]] = next++;
    }
    return numbers;
}

// newer: what this header may not have yet; headers of kernels do (below).
void expect_same(const std::string& header, const std::string& name, const std::string& prefix,
                 std::span<const Entry> entries, size_t at_least, const std::set<std::string>& newer = {}) {
    std::map<std::string, int> known;
    const auto numbers = enumeration(header, name);
    for (const Entry& entry : entries)
        if (!newer.contains(entry.name) || numbers.contains(prefix + entry.name))
            known[prefix + entry.name] = entry.number;
    EXPECT_GE(numbers.size(), at_least) << name << " in " << header;
    EXPECT_EQ(known, numbers) << name;
}

const char verbs_header[] = KXFER_VERBS_INCLUDE "/infiniband/verbs.h";
const char cm_header[] = KXFER_VERBS_INCLUDE "/rdma/rdma_cma.h";

// The names E... in a part of the uapi header.
std::set<std::string> errnos_between(const std::string& from, const std::string& to, const std::regex& line) {
    const std::string text = file(KXFER_UAPI_HEADER);
    const size_t begin = text.find(from), end = text.find(to, begin);
    const std::string part = text.substr(begin, end - begin);
    std::set<std::string> names;
    for (std::sregex_iterator at(part.begin(), part.end(), line), last; at != last; ++at) {
        const std::string list = (*at)[1];
        const std::regex name("E[A-Z0-9]+");
        for (std::sregex_iterator one(list.begin(), list.end(), name); one != last; ++one)
            names.insert(one->str());
    }
    return names;
}

// 0: unknown to the C library.
int number_of_errno(const std::string& name) {
    for (int number = 1; number < 4096; number++)
        if (strerrorname_np(number) && name == strerrorname_np(number)) return number;
    return 0;
}

// The names of errnos in the sources of the tool.
std::set<std::string> errnos_in_sources() {
    std::set<std::string> names;
    for (const char* part : {"/bench", "/cli", "/engine", "/verbs"})
        for (const auto& entry :
             std::filesystem::recursive_directory_iterator(KXFER_USERSPACE + std::string(part))) {
            const std::string text = file(entry.path());
            const std::regex name(R"(\bE[A-Z0-9]+\b)");
            for (std::sregex_iterator at(text.begin(), text.end(), name), last; at != last; ++at)
                names.insert(at->str());
        }
    const std::set<std::string> all = names;
    for (const std::string& name : all)
        if (number_of_errno(name) == 0) names.erase(name);
    return names;
}

// Folders like include/ of the kernels whose headers are here: installed, or in the cache of scripts/setup.
std::vector<std::string> kernel_includes() {
    namespace fs = std::filesystem;
    const auto variable = [](const char* name) -> std::string {
        const char* value = std::getenv(name);
        return value ? value : "";
    };
    std::string cache = variable("KXFER_CACHE");
    if (cache.empty())
        cache =
            (variable("XDG_CACHE_HOME").empty() ? variable("HOME") + "/.cache" : variable("XDG_CACHE_HOME")) +
            "/kxfer";
    std::vector<fs::path> places = {"/usr/src"};
    std::error_code none;
    for (const auto& kernel : fs::directory_iterator(cache + "/kernels", none))
        if (!fs::is_symlink(kernel)) places.push_back(kernel.path() / "usr/src");
    std::set<std::string> found;
    for (const fs::path& place : places)
        for (const auto& headers : fs::directory_iterator(place, none))
            if (fs::exists(headers.path() / "include/rdma/ib_verbs.h"))
                found.insert((headers.path() / "include").string());
    return {found.begin(), found.end()};
}

// Does each name of a kernel's enumeration have a meaning of its kind with its number?
void expect_known(const std::map<std::string, int>& numbers, size_t at_least, const std::string& kind,
                  const std::string& where) {
    EXPECT_GE(numbers.size(), at_least) << kind << " in " << where;
    for (const auto& [name, number] : numbers) {
        bool known = name.find("_RESERVED") != std::string::npos;
        for (const Meaning& meaning : meanings_of(name, kind)) known = known || meaning.number == number;
        EXPECT_TRUE(known) << name << " " << number << " of " << where;
    }
}

// The only meaning of a word.
Meaning only(const std::string& word, const std::string& kind = "") {
    const auto all = meanings_of(word, kind);
    EXPECT_EQ(all.size(), 1U) << word;
    return all.empty() ? Meaning() : all.front();
}

std::string fact(const Meaning& meaning, const std::string& key) {
    for (const auto& [name, value] : meaning.facts)
        if (name == key) return value;
    return "none";
}

} // namespace

TEST(Meanings, of_completions_are_those_of_verbs_h) {
    expect_same(verbs_header, "ibv_wc_status", "IBV_WC_", wc_statuses(), 22);
    expect_same(verbs_header, "ibv_wc_opcode", "IBV_WC_", wc_opcodes(), 15);
    expect_same(verbs_header, "ibv_wr_opcode", "IBV_WR_", wr_opcodes(), 11);
}

// No header of user space has IB_WR_* and IB_WC_*; it has those that the kernel shares with it.
TEST(Meanings, of_opcodes_of_the_kernel_are_told_apart_from_those_of_verbs_h) {
    const auto shared = enumeration(KXFER_VERBS_INCLUDE "/rdma/ib_user_verbs.h", "ib_uverbs_wr_opcode");
    EXPECT_GE(shared.size(), 13U);
    for (const Entry& entry : kernel_wr_opcodes()) {
        const std::string name = std::string(entry.name) == "LSO" ? "TSO" : entry.name;
        const auto found = shared.find("IB_UVERBS_WR_" + name);
        if (found != shared.end()) {
            EXPECT_EQ(found->second, entry.number) << entry.name;
        }
    }
    EXPECT_EQ(only("IB_WR_RDMA_READ_WITH_INV").number, 11);
    EXPECT_EQ(only("IB_WR_REG_MR").number, 0x20);
    EXPECT_EQ(only("0x20", "opcode").name, "IB_WR_REG_MR");
    std::set<std::string> eleven;
    for (const Meaning& meaning : meanings_of("11", "opcode")) eleven.insert(meaning.name);
    EXPECT_EQ(eleven, (std::set<std::string>{"IBV_WR_DRIVER1", "IB_WR_RDMA_READ_WITH_INV",
                                             "IB_WC_MASKED_COMP_SWAP"}));
    std::set<int> numbers;
    for (const Meaning& meaning : meanings_of("IB_WC_REG_MR", "")) numbers.insert(*meaning.number);
    EXPECT_EQ(numbers, (std::set<int>{8, 10})); // before Linux 6.2, and since
}

TEST(Meanings, of_events_and_states_are_those_of_the_headers) {
    expect_same(verbs_header, "ibv_event_type", "IBV_EVENT_", async_events(), 19, {"DEVICE_SPEED_CHANGE"});
    expect_same(verbs_header, "ibv_qp_state", "IBV_QPS_", qp_states(), 8);
    expect_same(cm_header, "rdma_cm_event_type", "RDMA_CM_EVENT_", cm_events(), 16,
                {"ADDRINFO_RESOLVED", "ADDRINFO_ERROR", "USER", "INTERNAL"});
}

TEST(Meanings, texts_are_those_of_the_libraries) {
    for (const Entry& entry : wc_statuses())
        EXPECT_STREQ(entry.text, ibv_wc_status_str(static_cast<ibv_wc_status>(entry.number))) << entry.name;
    for (const Entry& entry : async_events())
        if (*entry.text) {
            EXPECT_STREQ(entry.text, ibv_event_type_str(static_cast<ibv_event_type>(entry.number)))
                << entry.name;
        }
    for (const Entry& entry : cm_events())
        if (entry.number <= RDMA_CM_EVENT_TIMEWAIT_EXIT) {
            EXPECT_EQ(std::string("RDMA_CM_EVENT_") + entry.name,
                      rdma_event_str(static_cast<rdma_cm_event_type>(entry.number)));
        }
}

TEST(Meanings, of_refusals_are_those_of_the_contract) {
    expect_same(KXFER_UAPI_HEADER, "kxfer_refusal", "KXFER_REFUSAL_", refusals(), 9);
    for (const Entry& entry : refusals())
        EXPECT_STREQ(entry.text, kxfer_refusal_text(static_cast<uint32_t>(entry.number))) << entry.name;
}

TEST(Meanings, every_errno_of_a_call_in_the_contract_is_known) {
    const auto names = errnos_between("A call fails with -1", "How a job ended",
                                      std::regex(R"(\n \*  - ((?:E[A-Z0-9]+(?:, )?)+):)"));
    EXPECT_GE(names.size(), 29U);
    for (const std::string& name : names) {
        const Meaning meaning = only(name, "errno");
        EXPECT_NE(meaning.means, "") << name;
        EXPECT_NE(meaning.means, "no call gives it") << name;
    }
}

TEST(Meanings, every_status_of_a_job_in_the_contract_is_known_as_such) {
    const auto names = errnos_between("struct kxfer_completion - how", "@op:", std::regex(R"(-(E[A-Z]+))"));
    EXPECT_EQ(names.size(), 9U);
    for (const Entry& entry : errnos())
        EXPECT_EQ(*entry.completion != '\0', names.contains(entry.name)) << entry.name;
}

TEST(Meanings, every_errno_that_the_tool_gives_is_known) {
    auto names = errnos_in_sources();
    EXPECT_TRUE(names.contains("EBADMSG"));
    // Errnos of system calls that the tool translates, so they are never printed.
    for (const char* name : {"EINPROGRESS", "ENETUNREACH", "ENFILE", "ENXIO"})
        EXPECT_EQ(names.erase(name), 1U);
    for (const std::string& name : names) EXPECT_EQ(only(name, "errno").name, name);
}

TEST(Meanings, errnos_are_the_C_librarys) {
    std::vector<Entry> all(errnos().begin(), errnos().end());
    all.insert(all.end(), errnos_of_tool().begin(), errnos_of_tool().end());
    for (const Entry& entry : all) {
        EXPECT_STREQ(entry.name, strerrorname_np(entry.number));
        EXPECT_EQ(only(strerrordesc_np(entry.number), "errno").name, entry.name);
    }
    for (const Entry& entry : errnos_of_verbs()) {
        EXPECT_STREQ(entry.name, strerrorname_np(entry.number));
        EXPECT_EQ(only(strerrordesc_np(entry.number), "verbs").name, entry.name);
    }
}

// Each kernel here: those that scripts/setup fetches, and the machine's own.
TEST(Meanings, of_the_kernels_enumerations_are_complete) {
    const auto includes = kernel_includes();
    if (includes.empty()) GTEST_SKIP() << "no headers of a kernel; scripts/setup check fetches some";
    for (const std::string& include : includes) {
        const std::string verbs = include + "/rdma/ib_verbs.h", user = include + "/uapi/rdma/ib_user_verbs.h";
        auto shared = enumeration(user, "ib_uverbs_wr_opcode");
        shared.merge(enumeration(user, "ib_uverbs_wc_opcode"));
        expect_known(enumeration(verbs, "ib_wc_status"), 22, "wc", verbs);
        expect_known(enumeration(verbs, "ib_event_type"), 20, "async", verbs);
        expect_known(enumeration(verbs, "ib_qp_state"), 7, "state", verbs);
        expect_known(enumeration(verbs, "ib_wr_opcode", shared), 26, "opcode", verbs);
        expect_known(enumeration(verbs, "ib_wc_opcode", shared), 13, "opcode", verbs);
        expect_known(enumeration(include + "/rdma/rdma_cm.h", "rdma_cm_event_type"), 16, "event", include);
        expect_known(enumeration(include + "/rdma/ib_cm.h", "ib_cm_rej_reason"), 34, "reject", include);
        expect_known(enumeration(include + "/rdma/ib_cm.h", "ib_cm_sidr_status"), 6, "reject", include);
    }
}

// What is not a failure needs no next step.
TEST(Meanings, every_failure_has_a_next_step) {
    const std::set<std::string> no_failures = {
        "SUCCESS",         "COMM_EST",         "SQ_DRAINED",        "PORT_ACTIVE", "QP_LAST_WQE_REACHED",
        "ADDR_RESOLVED",   "ROUTE_RESOLVED",   "ESTABLISHED",       "NONE",        "CLIENT_REREGISTER",
        "CONNECT_REQUEST", "CONNECT_RESPONSE", "ADDRINFO_RESOLVED", "USER",        "INTERNAL",
        "MULTICAST_JOIN",  "TIMEWAIT_EXIT"};
    for (const Numbering& numbering : numberings()) {
        const std::string kind = numbering.kind;
        if (kind == "opcode" || kind == "state") continue;
        for (const Entry& entry : numbering.entries)
            EXPECT_NE(*entry.look != '\0', no_failures.contains(entry.name))
                << numbering.title << " " << entry.name;
    }
}

// No header of user space has IB_CM_REJ_*; 34 is not assigned.
TEST(Meanings, of_rejects_are_1_to_35_without_34) {
    int number = 1;
    for (const Entry& entry : reject_reasons()) {
        EXPECT_EQ(entry.number, number) << entry.name;
        number += number == 33 ? 2 : 1;
    }
    EXPECT_EQ(number, 36);
    EXPECT_EQ(only("IB_CM_REJ_INVALID_SERVICE_ID", "reject").number, 8);
    EXPECT_EQ(only("IB_CM_REJ_STALE_CONN", "reject").number, 10);
    EXPECT_EQ(only("IB_CM_REJ_CONSUMER_DEFINED", "reject").number, 28);
}

TEST(Meanings, every_entry_says_something) {
    for (const Numbering& numbering : numberings())
        for (const Entry& entry : numbering.entries)
            EXPECT_TRUE(*entry.means && !std::strchr(entry.means, '\n')) << numbering.title << entry.name;
}

TEST(Word, all_forms_of_a_status_are_understood) {
    for (const char* word : {"IBV_WC_RETRY_EXC_ERR", "IB_WC_RETRY_EXC_ERR", "RETRY_EXC_ERR", "retry_exc_err",
                             "transport retry counter exceeded"}) {
        const Meaning meaning = only(word);
        EXPECT_EQ(meaning.kind, "wc") << word;
        EXPECT_EQ(meaning.number, 12) << word;
        EXPECT_FALSE(meaning.look.empty()) << word;
    }
    for (const char* word : {"12", "0xc", "0x0c", "0x0000000c"})
        EXPECT_EQ(only(word, "wc").name, "IBV_WC_RETRY_EXC_ERR") << word;
    EXPECT_EQ(only("WR flushed").name, "IBV_WC_WR_FLUSH_ERR"); // as the kernel prints it
}

TEST(Word, a_bare_number_has_every_reading_once) {
    std::vector<std::string> titles;
    for (const Meaning& meaning : meanings_of("5", "")) titles.push_back(meaning.title);
    const std::vector<std::string> expected = {"completion status",
                                               "reject reason of the IB CM",
                                               "SIDR status of the IB CM, for UD",
                                               "refusal of a kxfer peer",
                                               "errno of kxfer",
                                               "errno of verbs and rdma_cm",
                                               "rdma_cm event",
                                               "asynchronous event",
                                               "QP state",
                                               "opcode of a completion",
                                               "opcode of a work request"};
    EXPECT_EQ(titles, expected);
}

TEST(Word, a_negative_number_is_an_errno) {
    const auto all = meanings_of("-111", "");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].title, "reject status on iWARP");
    EXPECT_EQ(all[1].name, "ECONNREFUSED");
    EXPECT_TRUE(meanings_of("-12", "wc").empty());
}

TEST(Word, what_is_not_known_has_no_meaning) {
    for (const char* word : {"",
                             "-",
                             "0x",
                             "0xg",
                             "foo",
                             "99999",
                             "4294967308",
                             "123456789012345678901234",
                             "IBV_WC_",
                             "E",
                             "1.2.3.4",
                             "0:0",
                             ":::",
                             "12 ",
                             "-0x",
                             "IBV_EVENT_RETRY_EXC_ERR",
                             "0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:256",
                             "0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:",
                             "0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0",
                             "\xff\xfe"})
        EXPECT_TRUE(meanings_of(word, "").empty()) << word;
}

TEST(Gid, maps_an_IPv4_address_in_every_form) {
    for (const char* word : {"::ffff:10.77.0.1", "::ffff:0a4d:1", "0000:0000:0000:0000:0000:ffff:0a4d:0001",
                             "00:00:00:00:00:00:00:00:00:00:255:255:10:77:00:01"}) {
        const Meaning meaning = only(word);
        EXPECT_EQ(meaning.name, "IPv4-mapped") << word;
        EXPECT_EQ(fact(meaning, "address"), "10.77.0.1") << word;
    }
}

TEST(Gid, link_local_has_the_MAC_that_it_is_made_of) {
    const Meaning made = only("fe80::0a00:27ff:fe4e:66a1");
    EXPECT_EQ(made.name, "link-local");
    EXPECT_EQ(fact(made, "mac"), "08:00:27:4e:66:a1");
    const Meaning guid = only("fe80:0000:0000:0000:0002:c903:0012:3456");
    EXPECT_EQ(guid.name, "link-local");
    EXPECT_EQ(fact(guid, "mac"), "none");
    EXPECT_EQ(fact(guid, "guid"), "0002:c903:0012:3456");
    EXPECT_EQ(fact(guid, "subnet_prefix"), "fe80:0000:0000:0000");
}

TEST(Gid, other_kinds_are_told_by_their_first_bits) {
    EXPECT_EQ(only("::").name, "empty");
    EXPECT_EQ(only("fd77::1").name, "unique local");
    EXPECT_EQ(fact(only("fd77::1"), "address"), "fd77::1");
    EXPECT_EQ(only("2001:db8::1").name, "global");
    EXPECT_EQ(only("fec0::2:c903:12:3456").name, "site-local");
    EXPECT_EQ(only("ff12:401b:ffff::ffff:ffff").name, "multicast");
    EXPECT_EQ(fact(only("ff12:401b:ffff::ffff:ffff"), "pkey"), "0xffff");
    EXPECT_EQ(fact(only("ff12:401b:ffff::ffff:ffff"), "scope"), "0x2");
    EXPECT_EQ(only("0207:0102:0304::").name, "iWARP");
    EXPECT_EQ(fact(only("0207:0102:0304::"), "mac"), "02:07:01:02:03:04");
}

TEST(PKey, has_a_member_bit_and_a_partition) {
    EXPECT_EQ(only("0xffff").name, "full member");
    EXPECT_EQ(fact(only("0xffff"), "partition"), "0x7fff, the default partition");
    EXPECT_EQ(only("0x7fff").name, "limited member");
    EXPECT_EQ(fact(only("0x8001"), "partition"), "0x0001");
    EXPECT_EQ(fact(only("0x8001"), "member"), "full");
    for (const char* none : {"0x0000", "0x8000"}) EXPECT_EQ(only(none, "pkey").name, "invalid");
    EXPECT_EQ(only("32769", "pkey").title, "P_Key 0x8001");
    EXPECT_EQ(only("ffff").title, "P_Key 0xffff");
    EXPECT_EQ(only("7FFF", "pkey").title, "P_Key 0x7fff");
    EXPECT_TRUE(meanings_of("fff", "pkey").empty());
    EXPECT_TRUE(meanings_of("ffff", "wc").empty());
    EXPECT_TRUE(meanings_of("0x10000", "pkey").empty());
    EXPECT_TRUE(meanings_of("-1", "pkey").empty());
}

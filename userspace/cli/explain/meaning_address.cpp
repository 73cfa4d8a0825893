// SPDX-License-Identifier: MIT
//
// GIDs and P_Keys: the meaning of their bits. A GID alone does not show its
// transport, so a link-local one has two readings; see IBA volume 1,
// 4.1.1, and ib_core's gid table (drivers/infiniband/core/roce_gid_mgmt.c).

#include "cli/explain/meaning.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <sstream>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace kxfer::cli {

namespace {

using Gid = std::array<uint8_t, 16>;

// 16 decimal bytes, as perftest prints a GID: 00:00:...:255:255:10:77:00:01.
std::optional<Gid> from_decimal_bytes(const std::string& word) {
    Gid gid{};
    size_t nr = 0;
    std::istringstream stream(word);
    for (std::string part; std::getline(stream, part, ':'); nr++) {
        const bool is_number =
            !part.empty() && part.size() <= 3 &&
            std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
        if (nr == gid.size() || !is_number || std::stoi(part) > 255) return std::nullopt;
        gid.at(nr) = static_cast<uint8_t>(std::stoi(part));
    }
    return nr == gid.size() && !word.ends_with(':') ? std::optional(gid) : std::nullopt;
}

std::optional<Gid> parse_gid(const std::string& word) {
    Gid gid{};
    if (inet_pton(AF_INET6, word.c_str(), gid.data()) == 1) return gid;
    return from_decimal_bytes(word);
}

std::string ipv6_text(const Gid& gid) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    return inet_ntop(AF_INET6, gid.data(), text.data(), text.size());
}

std::string ipv4_text(const Gid& gid) {
    return fmt::format("{}.{}.{}.{}", gid[12], gid[13], gid[14], gid[15]);
}

std::string mac_text(const uint8_t* mac) {
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4],
                       mac[5]);
}

std::string guid_text(const Gid& gid, size_t at) {
    std::string text;
    for (size_t i = at; i < at + 8; i += 2)
        text += fmt::format("{}{:02x}{:02x}", i == at ? "" : ":", gid.at(i), gid.at(i + 1));
    return text;
}

// The MAC in a modified EUI-64 (RFC 4291, appendix A), which ff:fe marks.
std::optional<std::string> mac_of_eui64(const Gid& gid) {
    if (gid[11] != 0xff || gid[12] != 0xfe) return std::nullopt;
    const std::array<uint8_t, 6> mac = {
        static_cast<uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
    return mac_text(mac.data());
}

bool is_zero(const Gid& gid, size_t from, size_t to) {
    return std::all_of(gid.begin() + from, gid.begin() + to, [](uint8_t byte) { return byte == 0; });
}

bool maps_ipv4(const Gid& gid) { return is_zero(gid, 0, 10) && gid[10] == 0xff && gid[11] == 0xff; }

void explain_zero(Meaning& meaning) {
    meaning.name = "empty";
    meaning.means = "no GID: an entry of the table that is not in use, or a field that was never set";
    meaning.look = {"is a GID index used that has no entry: kxfer device show DEV",
                    "an interface that is down or has no address gives RoCE no GID: ip addr"};
}

void explain_ipv4(Meaning& meaning, const Gid& gid) {
    meaning.name = "IPv4-mapped";
    meaning.facts.emplace_back("address", ipv4_text(gid));
    meaning.means =
        "RoCE: made of an IPv4 address of the device's interface. As a GID of type RoCE v2 packets go "
        "as UDP over IPv4 (port 4791) and are routed; the same GID may be in the table once more "
        "as RoCE v1, which stays in its Ethernet segment";
    meaning.look = {"both ends need the same type: kxfer device show DEV lists index, type and GID",
                    "no longer in the table: the address was taken from the interface (ip addr)"};
}

void explain_link_local(Meaning& meaning, const Gid& gid) {
    const auto mac = mac_of_eui64(gid);
    meaning.name = "link-local";
    if (mac) {
        meaning.facts.emplace_back("mac", *mac);
        meaning.means =
            "RoCE: the default GID, made of the interface's MAC as EUI-64; does not leave the Ethernet "
            "segment, and as RoCE v2 needs no IP address. InfiniBand: the default subnet prefix with "
            "a port GUID";
    } else {
        meaning.means =
            "InfiniBand: the default subnet prefix (fe80::/64), what a fabric has whose subnet manager "
            "sets no other, with the port's GUID. RoCE: a link-local IPv6 address that was not "
            "made of the MAC";
    }
    meaning.facts.emplace_back("subnet_prefix", guid_text(gid, 0));
    meaning.facts.emplace_back("guid", guid_text(gid, 8));
    meaning.look = {"which port has it: kxfer device show DEV, ibv_devinfo -v",
                    "RoCE between subnets: use the GID of a routed address instead"};
}

// RFC 4391: ff1<scope>:<signature>:<P_Key>::<group>.
void explain_multicast(Meaning& meaning, const Gid& gid) {
    const unsigned signature = gid[2] << 8U | gid[3];
    meaning.name = "multicast";
    meaning.facts.emplace_back("scope", fmt::format("0x{:x}", gid[1] & 0xfU));
    if (signature == 0x401b || signature == 0x601b) {
        meaning.facts.emplace_back("pkey", fmt::format("0x{:02x}{:02x}", gid[4], gid[5]));
        meaning.means =
            fmt::format("a multicast group of IPoIB, of {}", signature == 0x401b ? "IPv4" : "IPv6");
    } else {
        meaning.means = "a multicast group: a destination of UD only, never a port's own GID";
    }
    meaning.look = {"InfiniBand: has the port joined (saquery -g), is the P_Key in its table?"};
}

void explain_iwarp(Meaning& meaning, const Gid& gid) {
    meaning.name = "iWARP";
    meaning.facts.emplace_back("mac", mac_text(gid.data()));
    meaning.means =
        "iWARP: the MAC of the device and zeros; it addresses nothing, connections are made by IP";
}

void explain_global(Meaning& meaning, const Gid& gid) {
    const bool site_local = gid[0] == 0xfe && (gid[1] & 0xc0) == 0xc0;
    const bool unique_local = (gid[0] & 0xfe) == 0xfc;
    meaning.name = site_local ? "site-local" : unique_local ? "unique local" : "global";
    if (!site_local) meaning.facts.emplace_back("address", ipv6_text(gid));
    if (const auto mac = mac_of_eui64(gid)) meaning.facts.emplace_back("mac", *mac);
    meaning.facts.emplace_back("subnet_prefix", guid_text(gid, 0));
    meaning.facts.emplace_back("guid", guid_text(gid, 8));
    meaning.means = site_local
                        ? "InfiniBand: a subnet prefix of the site, and a port's GUID"
                        : "RoCE: made of an IPv6 address of the device's interface. InfiniBand: the subnet "
                          "prefix that the subnet manager gave, and a port's GUID";
    meaning.look = {"which port has it: kxfer device show DEV, ibv_devinfo -v",
                    "InfiniBand: ports of one subnet have the same prefix; another one is behind a router"};
}

} // namespace

std::optional<Meaning> gid_meaning(const std::string& word) {
    const auto gid = parse_gid(word);
    if (!gid) return std::nullopt;
    Meaning meaning;
    meaning.kind = "gid";
    meaning.title = "GID " + ipv6_text(*gid);
    if (is_zero(*gid, 0, 16))
        explain_zero(meaning);
    else if (maps_ipv4(*gid))
        explain_ipv4(meaning, *gid);
    else if (gid->at(0) == 0xff)
        explain_multicast(meaning, *gid);
    else if (gid->at(0) == 0xfe && (gid->at(1) & 0xc0) == 0x80)
        explain_link_local(meaning, *gid);
    else if (is_zero(*gid, 6, 16) && (gid->at(0) & 1) == 0)
        explain_iwarp(meaning, *gid);
    else
        explain_global(meaning, *gid);
    return meaning;
}

// IBA volume 1, 10.9.3: the high bit is membership, the low 15 are the partition.
Meaning pkey_meaning(unsigned pkey) {
    const unsigned partition = pkey & 0x7fff;
    const bool full = (pkey & 0x8000) != 0;
    Meaning meaning;
    meaning.kind = "pkey";
    meaning.title = fmt::format("P_Key 0x{:04x}", pkey);
    if (partition == 0) {
        meaning.name = "invalid";
        meaning.means = "no P_Key: partition 0 is not valid; an entry of the table that is not in use";
        meaning.look = {"is a P_Key index used that has no entry: kxfer device show DEV"};
        return meaning;
    }
    meaning.name = full ? "full member" : "limited member";
    meaning.facts.emplace_back(
        "partition",
        fmt::format("0x{:04x}{}", partition, partition == 0x7fff ? ", the default partition" : ""));
    meaning.facts.emplace_back("member", full ? "full" : "limited");
    meaning.means =
        full ? "may talk with every member of the partition"
             : "may talk with full members of the partition only: packets between two limited members "
               "are dropped";
    meaning.look = {
        "both ends: the same partition, and at least one of them a full member",
        "InfiniBand: the subnet manager fills the table (partitions.conf of OpenSM); RoCE: the table "
        "holds 0xffff and separates no nodes; VLANs do"};
    return meaning;
}

} // namespace kxfer::cli

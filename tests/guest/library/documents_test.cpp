// SPDX-License-Identifier: MIT
//
// The function fetch() of Documentation/quickstart.rst, as it stands there. The node is its own peer.
#include <algorithm>
#include <array>
#include <cstdlib>

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <kxfer/kxfer.hpp>

namespace {

#include "quickstart_fetch.hpp"

constexpr size_t length = 1 << 20;

alignas(4096) std::array<std::byte, length> theirs;
alignas(4096) std::array<std::byte, length> ours;

} // namespace

TEST(Documents, the_quickstarts_fetch_brings_all_bytes) {
    kxfer_addr address = {};
    const char* text = getenv("KXFER_ADDRESS");
    address.family = AF_INET;
    inet_pton(AF_INET, text ? text : "10.77.0.1", address.addr);
    auto session = kxfer::Session::open();
    ASSERT_TRUE(session);
    auto listener = session->add_listener(address, 0);
    ASSERT_TRUE(listener) << listener.error().text();
    auto region = session->add_region(theirs, 0);
    ASSERT_TRUE(region) << region.error().text();
    for (size_t i = 0; i < length; i++) theirs[i] = static_cast<std::byte>(i * 167 >> 8);

    const auto missing = fetch(address, ours);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().number, ENOENT);

    auto data = session->add_export(*region, "data", length, KXFER_RIGHT_READ);
    ASSERT_TRUE(data) << data.error().text();
    const auto bytes = fetch(address, ours);
    ASSERT_TRUE(bytes) << bytes.error().text();
    EXPECT_EQ(*bytes, length);
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin()));
}

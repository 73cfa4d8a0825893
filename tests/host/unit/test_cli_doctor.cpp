// SPDX-License-Identifier: MIT
//
// What `kxfer doctor` says of the messages of a device.
#include "cli/doctor/checks.hpp"

#include <gtest/gtest.h>

using namespace kxfer::cli;

namespace {

std::string messages_of(uint64_t features, const char* protocol = "roce", uint32_t sge = 32) {
    Patient patient;
    DeviceFacts device;
    kxfer_info_device module = {};

    patient.query.emplace().features = features;
    device.core.protocol = protocol;
    module.max_send_sge = sge;
    module.max_fast_reg_pages = 512;
    module.max_msg_bytes = 1 << 30;
    device.module = module;
    return messages_remark(patient, device);
}

constexpr uint64_t longer = KXFER_FEATURE_MAILBOX | KXFER_FEATURE_LONG_MESSAGE;

} // namespace

TEST(Doctor, says_what_messages_cost_by_their_size) {
    const std::string most = "1048576 bytes at most, with an immediate or without, to mailboxes; ";
    const std::string answered = "to 992 with an answer, beyond READ by the peer, if its module can";

    EXPECT_EQ(messages_of(longer | KXFER_FEATURE_EAGER),
              most + "to 4096 without an answer, if the peer's module can; else " + answered);
    // A module, a transport and a device by which every message is answered.
    EXPECT_EQ(messages_of(longer), most + answered);
    EXPECT_EQ(messages_of(longer | KXFER_FEATURE_EAGER, "iw"), most + answered);
    EXPECT_EQ(messages_of(longer | KXFER_FEATURE_EAGER, "roce", 1), most + answered);
    EXPECT_EQ(messages_of(KXFER_FEATURE_MAILBOX),
              "992 bytes at most, with an immediate or without, to mailboxes");
}

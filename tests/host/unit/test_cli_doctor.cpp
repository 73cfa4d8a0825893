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
    const std::string most = "up to 1 MiB, into a mailbox", answered = "; the peer READs longer ones";

    EXPECT_EQ(messages_of(longer | KXFER_FEATURE_EAGER), most + "; up to 4 KiB without an answer" + answered);
    // A module, a transport and a device by which every message is answered.
    EXPECT_EQ(messages_of(longer), most + answered);
    EXPECT_EQ(messages_of(longer | KXFER_FEATURE_EAGER, "iw"), most + answered);
    EXPECT_EQ(messages_of(longer | KXFER_FEATURE_EAGER, "roce", 1), most + answered);
    EXPECT_EQ(messages_of(KXFER_FEATURE_MAILBOX), "up to 992 bytes, into a mailbox");
}

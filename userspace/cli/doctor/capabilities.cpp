// SPDX-License-Identifier: MIT
//
// The matrix of what works on which device. Facts come from kxfer.ko if it is
// attached, otherwise from user-space verbs; facts that neither has are shown as unknown.

#include <algorithm>

#include <fmt/format.h>

#include "cli/doctor/checks.hpp"
#include "cli/output/record.hpp"
#include "engine/workload.hpp"

namespace kxfer::cli {

namespace {

struct Facts {
    bool attached = false;
    bool usable = false;
    bool iwarp = false;
    bool atomics = false;
    bool notify = false;
    bool atomic_jobs = false; // the module has them
    bool mailboxes = false;
    bool long_messages = false;
    bool eager_messages = false;
    uint32_t read_sge = 0;
    uint32_t send_sge = 0;
    uint32_t fast_reg_pages = 0;
    uint64_t max_message = 0;
};

Facts facts_of(const Patient& patient, const DeviceFacts& device) {
    Facts facts;
    facts.iwarp = device.iwarp();
    if (device.module) {
        const auto& module = *device.module;
        facts.attached = true;
        facts.usable = (module.flags & KXFER_DEVICE_USABLE) != 0;
        facts.atomics = (module.flags & KXFER_DEVICE_ATOMIC) != 0;
        facts.read_sge = facts.iwarp ? 1 : module.max_sge_rd;
        facts.send_sge = module.max_send_sge;
        facts.fast_reg_pages = module.max_fast_reg_pages;
        facts.max_message = module.max_msg_bytes;
    } else if (device.verbs) {
        facts.atomics = device.verbs->atomics != "none";
        facts.read_sge = device.verbs->max_sge_read;
        facts.send_sge = device.verbs->max_sge;
    }
    facts.notify = patient.query && (patient.query->features & KXFER_FEATURE_NOTIFY);
    facts.atomic_jobs = patient.query && (patient.query->features & KXFER_FEATURE_ATOMIC);
    facts.mailboxes = patient.query && (patient.query->features & KXFER_FEATURE_MAILBOX);
    facts.long_messages = patient.query && (patient.query->features & KXFER_FEATURE_LONG_MESSAGE);
    facts.eager_messages = patient.query && (patient.query->features & KXFER_FEATURE_EAGER) && !facts.iwarp &&
                           facts.send_sge > 1;
    return facts;
}

// Why no job works; empty if jobs work.
std::string why_no_jobs(const Patient& patient, const Facts& facts) {
    if (!patient.module_loaded()) return "kxfer.ko is not loaded";
    if (!patient.node.module_answers) return "this user cannot ask kxfer.ko";
    if (!facts.attached) return "kxfer.ko is not attached";
    if (!facts.usable) return "the device cannot register memory fast";
    return "";
}

std::string read_remark(const Facts& facts) {
    if (facts.iwarp) return "iWARP: one SGE, and its sink is registered for each job";
    return fmt::format("{} SGE a work request; longer jobs are split", facts.read_sge);
}

std::string write_remark(const Facts& facts) {
    if (facts.iwarp)
        return fmt::format("iWARP: {} SGE; a small READ after it proves that the data was placed",
                           facts.send_sge);
    return fmt::format("{} SGE a work request; longer jobs are split", facts.send_sge);
}

std::string atomics_remark(const Facts& facts) {
    if (!facts.atomics) return facts.iwarp ? "iWARP has none" : "the device has none";
    return facts.atomic_jobs ? "8 bytes, if the peer's device has them too" : "this module has no such job";
}

// As the module computes it (kmod/node/device.c); the module also requires a device that READs.
uint64_t longest_message(const Facts& facts) {
    if (!facts.long_messages || facts.fast_reg_pages <= 2) return KXFER_MESSAGE_MAX;
    const uint64_t registered = (uint64_t{facts.fast_reg_pages} - 2) * bench::page_bytes;

    return std::max<uint64_t>(KXFER_MESSAGE_MAX,
                              std::min({uint64_t{KXFER_MESSAGE_LONG_MAX}, facts.max_message, registered}));
}

} // namespace

std::string messages_remark(const Patient& patient, const DeviceFacts& device) {
    const Facts facts = facts_of(patient, device);
    if (!facts.mailboxes) return "this module has no such job";
    const uint64_t most = longest_message(facts);
    std::string text = fmt::format("up to {}, into a mailbox", human_bytes(most));

    if (facts.eager_messages)
        text += fmt::format("; up to {} without an answer",
                            human_bytes(std::min<uint64_t>(most, KXFER_MESSAGE_EAGER_MAX)));
    return text + (most > KXFER_MESSAGE_MAX ? "; the peer READs longer ones" : "");
}

std::vector<Capability> capabilities(const Patient& patient) {
    std::vector<Capability> all;
    for (const auto& device : patient.node.devices) {
        const Facts facts = facts_of(patient, device);
        const std::string none = why_no_jobs(patient, facts);
        const bool jobs = none.empty();
        const auto add = [&](const char* name, bool available, const std::string& remark) {
            all.push_back({device.core.name, name, available, remark});
        };
        add("READ", jobs, jobs ? read_remark(facts) : none);
        add("WRITE", jobs, jobs ? write_remark(facts) : none);
        add("NOTIFY", jobs && facts.notify,
            !jobs          ? none
            : facts.notify ? "64 bits, after the data of WRITEs"
                           : "this module has no such job");
        add("exports", jobs,
            jobs ? fmt::format("{} pages a registration, several make an export", facts.fast_reg_pages)
                 : none);
        add("COMPARE_SWAP, FETCH_ADD", jobs && facts.atomics && facts.atomic_jobs,
            jobs || !facts.atomics ? atomics_remark(facts) : none);
        add("SEND, RECV", jobs && facts.mailboxes, jobs ? messages_remark(patient, device) : none);
        add("WRITE with immediate", false, "no job; an empty SEND with one after a WRITE does as much");
        add("user-space verbs", device.verbs.has_value(),
            device.verbs ? "`compare` measures them" : device.verbs_failure);
    }
    return all;
}

} // namespace kxfer::cli

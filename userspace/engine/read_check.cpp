// SPDX-License-Identifier: MIT
#include "engine/read_check.hpp"

#include "base/try.hpp"
#include "engine/verification.hpp"

namespace kxfer::bench {

bool ReadCheck::can_tell() const {
    if (workload_.work != Work::transfer || !engine_.remote_writable()) return false;
    if (!workload_.is_mix()) return workload_.operation == Operation::read;
    return workload_.depth == 1 || engine_.completes_in_order();
}

tl::expected<void, Error> ReadCheck::begin(const Evidence& evidence) {
    if (!can_tell()) return {};
    const auto& operations = evidence.slot_operations;
    before_.assign(operations.begin(), operations.begin() + engine_.slots(workload_, mode_));
    for (unsigned i = 0; i < before_.size(); i++)
        if (is_read(i)) wipe_slot(memory_, workload_, i);
    return engine_.load();
}

tl::expected<void, Error> ReadCheck::end(const Evidence& evidence) {
    if (before_.empty()) return {};
    TRY(engine_.store());
    for (unsigned i = 0; i < before_.size(); i++) {
        if (!is_read(i)) continue;
        if (evidence.slot_operations[i] == before_[i])
            fill_slot(memory_, workload_, i, evidence.sequence);
        else if (const auto finding = check_slot(memory_, workload_, i, evidence.sequence))
            return tl::unexpected(
                wrong_data(engine_, workload_, {i, *finding}, "by READs that were measured"));
    }
    return engine_.load();
}

} // namespace kxfer::bench

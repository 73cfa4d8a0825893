// SPDX-License-Identifier: MIT
//
// Links and lanes as records, for `link` and `stat`.
#pragma once

#include <kxfer/kxfer.hpp>

#include "cli/failure.hpp"

namespace kxfer::cli {

// A line of a list.
Record link_row(const kxfer_info_link& link);

// All there is to say of one link, lanes included; ENOENT if there is none.
tl::expected<Record, Failure> link_record(const Session& session, uint64_t id);

} // namespace kxfer::cli

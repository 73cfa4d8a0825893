// SPDX-License-Identifier: MIT
//
// How long it takes to make a link to a peer: PEER_OPEN, which resolves address and route, connects
// the lanes and says hello.
#pragma once

#include <optional>

#include "bench/engines/kernel_path.hpp"

namespace kxfer::bench {

// Nanoseconds. Sessions share links, so links in other completion contexts than that of the path are
// tried until one is new; empty: none was. What is new closes 30 s later.
tl::expected<std::optional<double>, Error> time_connect(const PathOptions& path);

} // namespace kxfer::bench

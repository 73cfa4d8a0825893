// SPDX-License-Identifier: MIT
//
// The standard streams, which may be closed, full or a pipe without a reader. None of that
// ends the program; fmt::print() would, with an exception.

#pragma once

#include <string>

namespace kxfer::cli {

// Opens closed standard streams, so that files opened later do not become one. Call it first.
void occupy_standard_streams();

// Writes to standard error. A failure is ignored: it could not be reported.
void complain(const std::string& text);

} // namespace kxfer::cli

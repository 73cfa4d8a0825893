// SPDX-License-Identifier: MIT
//
// The standard streams, which may be closed, full or a pipe that nobody reads. None of that
// ends the program: fmt::print() would, by an exception.

#pragma once

#include <string>

namespace kxfer::cli {

// Files that are opened later do not become a standard stream. Before anything is opened.
void occupy_standard_streams();

// Writes to standard error. If that cannot be done nobody is left to be told.
void complain(const std::string& text);

} // namespace kxfer::cli

// SPDX-License-Identifier: MIT
//
// The setup functions of this folder's commands, for main.cpp's table.
#pragma once

namespace CLI {
class App;
}

namespace kxfer::cli {

struct Program;

void setup_stat(CLI::App& app, Program& program);
void setup_top(CLI::App& app, Program& program);
void setup_events(CLI::App& app, Program& program);

} // namespace kxfer::cli

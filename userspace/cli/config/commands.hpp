// SPDX-License-Identifier: MIT
//
// The setup function of this folder's command, for main.cpp's table.
#pragma once

namespace CLI {
class App;
}

namespace kxfer::cli {

struct Program;

void setup_config(CLI::App& app, Program& program);

} // namespace kxfer::cli

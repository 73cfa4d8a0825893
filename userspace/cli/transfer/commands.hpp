// SPDX-License-Identifier: MIT
//
// The setup functions of this folder's commands, for main.cpp's table.
#pragma once

namespace CLI {
class App;
}

namespace kxfer::cli {

struct Program;

void setup_key(CLI::App& app, Program& program);
void setup_listen(CLI::App& app, Program& program);
void setup_serve(CLI::App& app, Program& program);
void setup_export(CLI::App& app, Program& program);
void setup_ls(CLI::App& app, Program& program);
void setup_put(CLI::App& app, Program& program);
void setup_get(CLI::App& app, Program& program);
void setup_ping(CLI::App& app, Program& program);
void setup_nop(CLI::App& app, Program& program);
void setup_link(CLI::App& app, Program& program);

} // namespace kxfer::cli

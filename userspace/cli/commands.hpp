// SPDX-License-Identifier: MIT
//
// The setup function of every command, as main.cpp's table lists them.
#pragma once

namespace CLI {
class App;
}

namespace kxfer::cli {

struct Program;

void setup_bench(CLI::App& app, Program& program);
void setup_compare(CLI::App& app, Program& program);
void setup_sweep(CLI::App& app, Program& program);
void setup_doctor(CLI::App& app, Program& program);
void setup_device(CLI::App& app, Program& program);
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
void setup_stat(CLI::App& app, Program& program);
void setup_explain(CLI::App& app, Program& program);

} // namespace kxfer::cli

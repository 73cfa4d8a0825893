// SPDX-License-Identifier: MIT
//
// kxfer doctor: is this node fit for kxfer, and how to fix it if not. Always
// prints the full report. Status: 0 all well (hints do not count), 1 something to
// fix, 3 no module.

#include <algorithm>

#include "cli/command/command.hpp"
#include "cli/doctor/checks.hpp"
#include "cli/doctor/commands.hpp"

namespace kxfer::cli {

namespace {

struct DoctorOptions {};

const char* health_name(Health health) {
    switch (health) {
    case Health::ok:
        return "ok";
    case Health::hint:
        return "hint";
    case Health::mend:
        return "FIX";
    }
    return "?";
}

Table check_table(const std::vector<Check>& checks) {
    Table rows;
    for (const Check& check : checks) {
        Record row;
        row.add("health", health_name(check.health), Show::text_only, "")
            .add("check", check.name)
            .add("finding", check.finding)
            .add("state", check.health == Health::mend ? "mend" : health_name(check.health), Show::json_only)
            .add("mend", check.mend, Show::json_only);
        rows.push_back(std::move(row));
    }
    return rows;
}

Table mend_table(const std::vector<Check>& checks, Health health) {
    Table rows;
    for (const Check& check : checks)
        if (check.health == health && !check.mend.empty())
            rows.push_back(Record().add("check", check.name).add("what to do", check.mend));
    return rows;
}

Table capability_table(const std::vector<Capability>& all) {
    Table rows;
    for (const Capability& one : all)
        rows.push_back(Record()
                           .add("device", one.device)
                           .add("capability", one.name)
                           .add("available", Value(one.available))
                           .add("remark", one.remark));
    return rows;
}

Result run_doctor(const DoctorOptions&, Context& context) {
    const Patient patient = examine();
    std::vector<Check> checks = module_checks(patient);
    for (auto more : {device_checks(patient), system_checks(patient)})
        checks.insert(checks.end(), more.begin(), more.end());
    const auto is_sick = [](const Check& check) { return check.health == Health::mend; };
    const auto to_mend = std::count_if(checks.begin(), checks.end(), is_sick);
    const int status = !patient.module_loaded() ? exit_no_device : to_mend ? exit_failed : exit_ok;

    Record report;
    report.add("checks", Value(check_table(checks)))
        .add("capabilities", Value(capability_table(capabilities(patient))), Show::everywhere,
             "\ncapabilities");
    if (to_mend) report.add("to_mend", Value(mend_table(checks, Health::mend)), Show::text_only, "\nto fix");
    if (const Table hints = mend_table(checks, Health::hint); !hints.empty())
        report.add("hints", Value(hints), Show::text_only, "\ncould be better");
    report.add("nr_to_mend", uint64_t(to_mend), Show::json_only).add("exit_status", status, Show::json_only);
    context.out.record(report);
    if (!to_mend) context.out.note("\nnothing to fix");
    return status;
}

} // namespace

void setup_doctor(CLI::App& app, Program& program) {
    CLI::App& command =
        add_command(app, "doctor", "is this node fit for kxfer, and how to fix it if not", "kxfer doctor");
    on_run(command, program, std::make_shared<DoctorOptions>(), run_doctor);
}

} // namespace kxfer::cli

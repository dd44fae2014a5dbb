// `erar doctor`: says what this machine lacks.
#pragma once

#include <CLI/CLI.hpp>

namespace erar::cli {

// The command's exit status is stored when it has run: 0, or 1 when something needed is missing.
void add_doctor_command(CLI::App& app, int& exit_status);

}  // namespace erar::cli

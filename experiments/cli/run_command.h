// `erar run`: runs a program once per rank, inside a fabric.
#pragma once

#include <CLI/CLI.hpp>

namespace erar::cli {

// The command's exit status is stored when it has run: that of the first rank to fail, 1 when the
// ranks could not be started, 2 for arguments that cannot be.
void add_run_command(CLI::App& app, int& exit_status);

}  // namespace erar::cli

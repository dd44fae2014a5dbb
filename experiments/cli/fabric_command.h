// `erar fabric`: makes, removes and lists emulated networks.
#pragma once

#include <CLI/CLI.hpp>

namespace erar::cli {

// The command's exit status is stored when it has run: 0, 1 (failed), 2 (arguments that cannot be).
void add_fabric_command(CLI::App& app, int& exit_status);

}  // namespace erar::cli

// `erar numerics`: errors of the sums against other ways to sum, without a kernel or root.
#pragma once

namespace CLI {
class App;
}

namespace erar::numerics {

// Sets exit_status when the command runs: 1 where a check fails, 2 for bad arguments.
void add_numerics_command(CLI::App& app, int& exit_status);

}  // namespace erar::numerics

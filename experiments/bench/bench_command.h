// `erar bench allreduce`.
#pragma once

namespace CLI {
class App;
}

namespace erar::bench {

// Adds the subcommand; when it is chosen, exit_status becomes 0 (all results right), 1 (wrong
// results, a failed backend, no root), 2 (bad arguments) or 128 + the signal that ended it. The
// variable outlives the parse.
void add_bench_command(CLI::App& app, int& exit_status);

}  // namespace erar::bench

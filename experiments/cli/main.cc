// The command `erar`: subcommands, and the one place where CLI11's exceptions end.
#include "experiments/bench/bench_command.h"
#include "experiments/cli/argument_error.h"
#include "experiments/cli/doctor_command.h"
#include "experiments/cli/fabric_command.h"
#include "experiments/cli/run_command.h"
#include "experiments/numerics/numerics_command.h"
#include "experiments/version.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

namespace {

int run(int argc, char** argv) {
  int exit_status = 0;
  CLI::App app{"Gradient aggregation in the kernel, measured against TCP", "erar"};
  app.set_version_flag("--version", "erar " ERAR_VERSION " (" ERAR_COMMIT ")");
  app.require_subcommand(1);
  erar::cli::add_doctor_command(app, exit_status);
  erar::cli::add_fabric_command(app, exit_status);
  erar::bench::add_bench_command(app, exit_status);
  erar::cli::add_run_command(app, exit_status);
  erar::numerics::add_numerics_command(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return erar::cli::explain(app, error);
  }
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // out of memory, and bugs of ours
    std::fprintf(stderr, "erar: internal error: %s\n", error.what());
    return 1;
  }
}

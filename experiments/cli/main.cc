// The command `erar`: subcommands, and the one place where CLI11's exceptions end.
#include "experiments/bench/bench_command.h"
#include "experiments/cli/doctor_command.h"
#include "experiments/cli/fabric_command.h"
#include "experiments/cli/run_command.h"
#include "experiments/numerics/numerics_command.h"
#include "experiments/version.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

namespace {

constexpr int kBadArguments = 2;

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& letter : text) {
    if (letter == '\n') letter = ' ';
  }
  return text;
}

// What the parser says of an option whose value is missing is "--ranks: 1 required  missing".
std::string text_of(const CLI::ParseError& error) {
  const std::string text = one_line(error.what());
  const bool mismatch = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
  const std::size_t colon = text.find(": 1 required ");
  if (!mismatch || colon == std::string::npos || !text.ends_with(" missing")) return text;
  return text.substr(0, colon) + ": a value is missing";
}

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
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "erar: %s\n", text_of(error).c_str());
    return kBadArguments;
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

// `erar doctor`: prints one line per check.
#include "experiments/cli/doctor_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "experiments/cli/doctor_checks.h"

namespace erar::cli {
namespace {

const char* word_of(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kInfo:
      return "info";
    case Health::kWarn:
      return "warn";
    case Health::kMissing:
      return "MISSING";
  }
  return "?";
}

// Number of needed things that are missing.
unsigned print_checks(const std::vector<Check>& checks) {
  unsigned missing = 0;
  for (const Check& check : checks) {
    fmt::print("{:<8} {:<18} {}\n", word_of(check.health), check.subject, check.detail);
    if (check.health == Health::kMissing) ++missing;
  }
  std::fflush(stdout);
  return missing;
}

int doctor() {
  unsigned missing = print_checks(system_checks()) + print_checks(kernel_checks());
  if (missing == 0) {
    fmt::print("all that eRAR needs is here\n");
    return 0;
  }
  fmt::print("{} of the things that eRAR needs {} missing\n", missing, missing == 1 ? "is" : "are");
  return 1;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("doctor", "Check what this machine lacks");
  command->footer("Works without root too, but then cannot try namespaces and XDP.");
  command->callback([&exit_status] { exit_status = doctor(); });
}

}  // namespace erar::cli

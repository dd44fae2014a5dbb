// The command line, and the order of things: check, prepare files, compare, report.
#include "experiments/numerics/numerics_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "experiments/bench/interrupt.h"
#include "experiments/cli/reporting.h"
#include "experiments/numerics/comparison.h"
#include "experiments/numerics/options.h"
#include "experiments/numerics/report.h"

namespace erar::numerics {
namespace {

using bench::InterruptGuard;
using cli::complain;
using cli::print_out;

struct OptionRow {
  const char* name;
  std::string NumericsArguments::*text;
  const char* help;
};

constexpr OptionRow kOptions[] = {
    {"--ranks", &NumericsArguments::ranks, "Comma-separated list of numbers, 2 to 64"},
    {"--count", &NumericsArguments::count, "Elements of each rank's buffer"},
    {"--seed", &NumericsArguments::seed, "Of the input values and of the order of frames"},
    {"--json", &NumericsArguments::json, "Also write context and rows to this file"},
    {"--csv", &NumericsArguments::csv, "Also write the rows to this file"},
};

// Rows of everything, printed as they come; fewer where a signal came.
Result<std::vector<Row>> run_all(const NumericsOptions& options) {
  std::vector<Row> rows;
  for (const Gradients input : kAllGradients) {
    for (const unsigned ranks : options.ranks) {
      if (InterruptGuard::signal() != 0) return rows;
      const auto compared = compare(input, ranks, options.count, options.seed);
      if (!compared) return compared.error();
      for (const Row& row : *compared) {
        if (!print_out(table_row(row))) return errno_error("write", "the table");
        rows.push_back(row);
      }
    }
  }
  return rows;
}

int run_numerics(const NumericsArguments& arguments) {
  const Result<NumericsOptions> options = parse_numerics_options(arguments);
  if (!options) return complain(options.error(), 2);
  const InterruptGuard interrupts;
  Result<cli::ReportFiles> files = cli::open_reports(options->json_path, options->csv_path);
  if (!files) return complain(files.error(), 1);
  if (!print_out(table_header(*options))) return complain(errno_error("write", "the table"), 1);
  const Result<std::vector<Row>> rows = run_all(*options);
  if (!rows) return complain(rows.error(), 1);
  if (const int signal = InterruptGuard::signal(); signal != 0)
    return complain(refusal("interrupted, no report written"), 128 + signal);
  const std::vector<std::string> failed = failed_checks(*rows);
  if (!print_out(table_footer(failed, losses(*rows))))
    return complain(errno_error("write", "the table"), 1);
  const int written =
      cli::write_reports(*files, json_report(*options, *rows), csv_report(*options, *rows));
  return written != 0 || failed.empty() ? written : 1;
}

}  // namespace

void add_numerics_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "numerics", "Errors of float32 sums: eRAR's lanes, a float32 ring, scaled integers");
  const auto arguments = std::make_shared<NumericsArguments>();
  for (const OptionRow& row : kOptions) {
    CLI::Option* option = command->add_option(row.name, (*arguments).*row.text, row.help);
    option->type_name("");
    option->check([](const std::string& text) {
      return std::string(text.empty() ? "must not be empty" : "");
    });
    if (!((*arguments).*row.text).empty()) option->capture_default_str();
  }
  command->footer(
      "Needs neither root nor a kernel feature. Exit status 1 when an error of eRAR's is beyond\n"
      "its bound or ranks' bits differ; the last lines say where, and where a float32 ring is "
      "better.");
  command->callback([arguments, &exit_status] { exit_status = run_numerics(*arguments); });
}

}  // namespace erar::numerics

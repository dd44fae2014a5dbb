// How commands report: lines on their two streams, and the files of those that measure.
#pragma once

#include "core/result.h"
#include "experiments/bench/report.h"

#include <optional>
#include <string>

namespace erar::cli {

// One line on standard error, "erar: ..."; returns the status.
int complain(const Error& error, int exit_status);

// On standard output, at once. False when that cannot be written: unlike fmt::print it does not
// throw when the reader of a pipe is gone, and a measurement does not end by that.
bool print_out(const std::string& text);

// The files of --json and --csv, where asked for.
struct ReportFiles {
  std::optional<bench::ReportFile> json;
  std::optional<bench::ReportFile> csv;
};

// What --json and --csv may not be: one file, however the two paths are written. Empty: not asked
// for.
Result<void> check_report_paths(const std::string& json, const std::string& csv);

Result<ReportFiles> open_reports(const std::string& json, const std::string& csv);

// Each where it was asked for, and a complaint about each that fails; the exit status, 0 or 1.
int write_reports(ReportFiles& files, const std::string& json, const std::string& csv);

}  // namespace erar::cli

// Writes lines and report files for all commands.
#include "experiments/cli/reporting.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace erar::cli {
namespace {

std::filesystem::path whole_path(const std::string& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  const auto canonical = std::filesystem::weakly_canonical(absolute, failed);
  return failed ? absolute : canonical;
}

Result<void> open_report(const std::string& path, std::optional<bench::ReportFile>& file) {
  if (path.empty()) return {};
  Result<bench::ReportFile> opened = bench::ReportFile::open(path);
  if (!opened) return opened.error();
  file.emplace(*std::move(opened));
  return {};
}

int write_report(std::optional<bench::ReportFile>& file, const std::string& content) {
  if (!file) return 0;
  const Result<void> written = file->commit(content);
  return written ? 0 : complain(written.error(), 1);
}

}  // namespace

int complain(const Error& error, int exit_status) {
  fmt::print(stderr, "erar: {}\n", error.message());
  return exit_status;
}

bool print_out(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0;
}

Result<void> check_report_paths(const std::string& json, const std::string& csv) {
  if (json.empty() || csv.empty() || whole_path(json) != whole_path(csv)) return {};
  return refusal(fmt::format("--json {} --csv {}: both options name the same file", json, csv));
}

Result<ReportFiles> open_reports(const std::string& json, const std::string& csv) {
  ReportFiles files;
  if (auto opened = open_report(json, files.json); !opened) return opened.error();
  if (auto opened = open_report(csv, files.csv); !opened) return opened.error();
  return files;
}

int write_reports(ReportFiles& files, const std::string& json, const std::string& csv) {
  const int json_status = write_report(files.json, json);
  const int csv_status = write_report(files.csv, csv);
  return json_status != 0 ? json_status : csv_status;
}

}  // namespace erar::cli

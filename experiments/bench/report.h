// The same rows for programs: JSON and CSV, and files that appear whole or not at all.
#pragma once

#include "core/result.h"
#include "core/unique_fd.h"
#include "experiments/bench/row.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace erar::bench {

// {"context": {...}, "rows": [{...}, ...]}. Numbers that a row does not have are null.
std::string json_report(const Conditions& conditions, const std::vector<Row>& rows);
// The rows with the same names and values, a header line first. Numbers that a row does not have
// are empty.
std::string csv_report(const Conditions& conditions, const std::vector<Row>& rows);

// Lines of CSV (RFC 4180) of rows that have the same names, and their line of names. A null is an
// empty cell.
std::string csv_names(const nlohmann::ordered_json& row);
std::string csv_line(const nlohmann::ordered_json& row);

// A file that is prepared before a long measurement, so that an unwritable place is known early,
// and put in place when its content is there. Without commit() nothing of it is left.
class ReportFile {
 public:
  // Errors name the path and the reason: ENOENT, EACCES, EISDIR, EROFS, ...
  static Result<ReportFile> open(const std::string& path);
  ReportFile(ReportFile&& other) noexcept;
  ReportFile& operator=(ReportFile&&) = delete;
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile();

  Result<void> commit(const std::string& content);

 private:
  ReportFile() = default;

  UniqueFd fd_;
  std::string path_;       // where it will be
  std::string temporary_;  // beside it; empty when it is written directly (a pipe, a device)
};

}  // namespace erar::bench

// Formats the rows; JSON and CSV come from one list of fields, so that they cannot differ.
#include "experiments/numerics/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/bench/report.h"
#include "experiments/version.h"

namespace erar::numerics {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kColumns = "{:>11} {:>6} {:>16} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}\n";

std::string number(double value) { return value == 0 ? "0" : fmt::format("{:.2e}", value); }

Json row_fields(const NumericsOptions& options, const Row& row) {
  Json fields;
  fields["input"] = name_of(row.input);
  fields["ranks"] = row.ranks;
  fields["count"] = options.count;
  fields["seed"] = options.seed;
  fields["method"] = name_of(row.method);
  fields["largest_error"] = row.errors.largest;
  fields["largest_error_to_block"] = row.errors.largest_to_block;
  fields["rms_error"] = row.errors.rms;
  fields["largest_relative_error"] = row.errors.largest_relative;
  fields["no_digit"] = row.errors.no_digit;
  fields["share_of_bound"] = row.share_of_bound ? Json(*row.share_of_bound) : Json();
  fields["largest_sum"] = row.largest_sum;
  fields["ranks_agree"] = row.ranks_agree;
  return fields;
}

}  // namespace

std::string table_header(const NumericsOptions& options) {
  std::string text = fmt::format("# erar numerics, version {} ({})\n", ERAR_VERSION, ERAR_COMMIT);
  text += fmt::format("# errors of float32 sums of {} elements against long double; seed {}\n",
                      options.count, options.seed);
  text +=
      "# erar, erar-compressed: the real code over a ring in memory; float32-ring, scaled-int32: "
      "models\n"
      "# largest: |error|; to block: over the largest input of the element's 1024; relative: over "
      "the sum itself\n"
      "# no digit: elements whose error is no smaller than their sum; of bound: largest share of "
      "the proven bound\n#\n";
  std::string names = fmt::format(kColumns, "input", "ranks", "method", "largest", "to block",
                                  "rms", "relative", "no digit", "of bound");
  names.front() = '#';
  return text + names;
}

std::string table_row(const Row& row) {
  const Errors& errors = row.errors;
  return fmt::format(kColumns, name_of(row.input), row.ranks, name_of(row.method),
                     number(errors.largest), number(errors.largest_to_block), number(errors.rms),
                     number(errors.largest_relative), errors.no_digit,
                     row.share_of_bound ? fmt::format("{:.2f}", *row.share_of_bound) : "-");
}

std::string table_footer(const std::vector<std::string>& failed,
                         const std::vector<std::string>& lost) {
  std::string text = "#\n";
  for (const std::string& line : lost) text += fmt::format("# LOSES: {}\n", line);
  for (const std::string& line : failed) text += fmt::format("# FAILED: {}\n", line);
  if (failed.empty()) return text + "# all checks hold\n";
  return text + fmt::format("# {} checks FAILED\n", failed.size());
}

std::string json_report(const NumericsOptions& options, const std::vector<Row>& rows) {
  Json report;
  report["context"] = {{"version", ERAR_VERSION},
                       {"commit", ERAR_COMMIT},
                       {"count", options.count},
                       {"seed", options.seed},
                       {"ranks", options.ranks}};
  report["rows"] = Json::array();
  for (const Row& row : rows) report["rows"].push_back(row_fields(options, row));
  return report.dump(2) + "\n";
}

std::string csv_report(const NumericsOptions& options, const std::vector<Row>& rows) {
  std::string text = bench::csv_names(row_fields(options, Row{}));
  for (const Row& row : rows) text += bench::csv_line(row_fields(options, row));
  return text;
}

}  // namespace erar::numerics

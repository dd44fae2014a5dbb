// The comparison for people, as a table, and for programs, as JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "experiments/numerics/comparison.h"
#include "experiments/numerics/options.h"

namespace erar::numerics {

// Each returns whole lines, the last newline included.
std::string table_header(const NumericsOptions& options);
std::string table_row(const Row& row);
// What failed_checks() and losses() found, and the verdict in the last line.
std::string table_footer(const std::vector<std::string>& failed,
                         const std::vector<std::string>& lost);

// {"context": {...}, "rows": [{...}, ...]}; and the rows with the same names and values as CSV.
// Numbers that a row does not have are null, or empty.
std::string json_report(const NumericsOptions& options, const std::vector<Row>& rows);
std::string csv_report(const NumericsOptions& options, const std::vector<Row>& rows);

}  // namespace erar::numerics

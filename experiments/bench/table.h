// The table that people read: nccl-tests' columns, '#' before everything that is not a row.
#pragma once

#include "experiments/bench/row.h"

#include <string>
#include <vector>

namespace erar::bench {

// Each returns whole lines, the last newline included.
std::string table_header(const Conditions& conditions);
std::string table_row(const Conditions& conditions, const Row& row);
// Ratios, notes and, last, the verdict: "# 0 wrong" or "# N WRONG", "M rows FAILED".
std::string table_footer(const Conditions& conditions, const std::vector<Row>& rows);

}  // namespace erar::bench

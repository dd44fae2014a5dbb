// The comparison: every method on every input and number of ranks, and what must hold of eRAR's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/numerics/errors.h"
#include "experiments/numerics/gradients.h"
#include "experiments/numerics/methods.h"
#include "experiments/numerics/options.h"

namespace erar::numerics {

struct Row {
  Gradients input = Gradients::kNormal;
  unsigned ranks = 0;
  Method method = Method::kErar;
  Errors errors;
  double largest_sum = 0;
  std::optional<double> share_of_bound;  // of eRAR's methods
  bool ranks_agree = true;
};

// All methods on one input; error: an allreduce failed.
Result<std::vector<Row>> compare(Gradients input, unsigned ranks, std::size_t count,
                                 std::uint64_t seed);

// What does not hold, one line for each case: ranks' bits differ, or an error is beyond its bound.
// Empty where all is well.
std::vector<std::string> failed_checks(const std::vector<Row>& rows);

// Where eRAR's largest error (not compressed) is above the float32 ring's, one line for each case.
std::vector<std::string> losses(const std::vector<Row>& rows);

}  // namespace erar::numerics

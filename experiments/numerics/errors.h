// How far a sum is from the truth, and how far eRAR's may be.
#pragma once

#include <cstddef>
#include <vector>

#include "experiments/numerics/methods.h"

namespace erar::numerics {

// What the errors are measured against: sums in long double, and what the bound is made of.
class Truth {
 public:
  explicit Truth(const Inputs& inputs);

  [[nodiscard]] std::size_t count() const { return sums_.size(); }
  [[nodiscard]] long double sum(std::size_t element) const { return sums_[element]; }
  [[nodiscard]] double largest_sum() const;
  // The largest magnitude of all ranks in the element's block of 1024.
  [[nodiscard]] double block_largest(std::size_t element) const;
  // The bounds that docs/numerics.md derives, of float32 and of its compressed sums.
  [[nodiscard]] long double bound(std::size_t element, bool compressed) const;

 private:
  unsigned ranks_;
  std::vector<long double> sums_;
  std::vector<double> block_largest_;
  std::vector<double> block_step_;          // 0 for a block of zeros
  std::vector<double> block_compact_step_;  // likewise
  std::vector<unsigned> clamped_;           // ranks whose 16-bit lane of the element is clamped
};

struct Errors {
  double largest = 0;           // absolute
  double largest_to_block = 0;  // relative to the largest magnitude in the element's block
  double rms = 0;
  double largest_relative = 0;  // relative to the element's own sum, where that is not zero
  std::size_t no_digit = 0;     // elements with an error that is no smaller than their sum
};

Errors errors_of(const Truth& truth, const std::vector<float>& sum);

// The largest error as a share of what it may be at that element: above 1, the bound is broken.
double share_of_bound(const Truth& truth, const std::vector<float>& sum, bool compressed);

}  // namespace erar::numerics

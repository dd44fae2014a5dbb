// Random inputs of every type, exact results, and how far a right result may be from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/data_type.h"

namespace erar::tests {

using Random = std::mt19937_64;
using Bytes = std::vector<std::byte>;

// Kinds of float magnitudes; integers are uniform over their range whatever the kind.
enum class Inputs {
  kGradients,  // normal, of one scale
  kMixed,      // any finite exponent, element by element
  kBlockwise,  // a scale of its own for each 100 elements and rank
  kDenormal,   // denormals and zeros
  kHuge,       // close to the largest value
  kOneRank,    // all ranks but one hold zeros
  kSparse,     // mostly zeros, one outlier
};
inline constexpr unsigned kInputKinds = 7;

// One rank's buffer.
Bytes draw(DataType type, Inputs kind, std::size_t count, unsigned rank, Random& random);

// "" when every element of `result` is right; else what is wrong with the first that is not.
// inputs[r] is rank r's buffer. Integers and float minima and maxima are compared exactly. Float
// sums and averages must be within the bound that docs/numerics.md states.
std::string what_is_wrong(const Reduction& reduction, const std::vector<Bytes>& inputs,
                          const Bytes& result);

}  // namespace erar::tests

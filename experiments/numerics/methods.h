// The ways to sum that are compared: eRAR's own code over a ring in memory, and models of others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace erar::numerics {

enum class Method : std::uint8_t { kErar, kErarCompressed, kFloatRing, kScaledInt };
inline constexpr std::array kMethods = {Method::kErar, Method::kErarCompressed, Method::kFloatRing,
                                        Method::kScaledInt};

constexpr std::string_view name_of(Method method) {
  constexpr std::array<std::string_view, kMethods.size()> kNames = {"erar", "erar-compressed",
                                                                    "float32-ring", "scaled-int32"};
  return kNames[static_cast<std::size_t>(method)];
}

using Inputs = std::vector<std::vector<float>>;  // each rank's buffer, all of one size

struct Sum {
  std::vector<float> values;  // rank 0's
  bool ranks_agree = true;    // every other rank has the same bits
};

// RingAllreduce on every rank, one thread each; frames arrive in an order that the seed chooses.
// compressed: the first call on its buffer, so without anything carried over.
Result<Sum> erar_sum(const Inputs& inputs, bool compressed, std::uint64_t seed);

// float32 additions as the TCP ring makes them (emu/baseline/ring_plan.h): the buffer is cut into a
// chunk for each rank, and chunk c is begun by rank c and added to by c + 1, c + 2, ...
std::vector<float> float_ring_sum(const Inputs& inputs);
// Elements of each chunk but the last ones, which may be shorter or empty.
std::size_t float_ring_chunk(std::size_t count, std::size_t ranks);

// As the published prototype: values times 1e8 as int32 (truncated, as C converts; what does not
// fit becomes INT32_MIN, as on x86), added with wrap-around, over 1e8.
std::vector<float> scaled_int_sum(const Inputs& inputs);

Result<Sum> sum_by(Method method, const Inputs& inputs, std::uint64_t seed);

}  // namespace erar::numerics

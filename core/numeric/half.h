// The two 16-bit float types to float32 and back.
//
// To float is exact. To half rounds to nearest even, to a denormal too; what rounds beyond the
// largest number becomes infinity. A NaN stays a NaN of the same sign and of the payload bits that
// fit, made quiet. The bits depend neither on the instruction set nor on the caller's MXCSR.
#pragma once

#include "core/data_type.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace erar::numeric {

// IEEE 754 binary16 (1, 5 and 10 bits), and the upper half of a binary32 (1, 8 and 7 bits).
enum class HalfKind : std::uint8_t { kFloat16, kBfloat16 };

constexpr bool is_half(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16;
}

// Of one of the two types.
constexpr HalfKind half_kind_of(DataType type) {
  return type == DataType::kFloat16 ? HalfKind::kFloat16 : HalfKind::kBfloat16;
}

// Input and output do not overlap.
void half_to_float(HalfKind kind, const std::uint16_t* values, std::size_t count, float* out);
void float_to_half(HalfKind kind, const float* values, std::size_t count, std::uint16_t* out);

// Calls compute(first, floats) for values that are float32 in between, in blocks that stay in the
// first-level cache, floats being those from element `first` on; what it makes of them is rounded
// into out. values and out are the same memory or do not overlap.
template <class Compute>
void compute_as_floats(HalfKind kind, const std::uint16_t* values, std::size_t count,
                       std::uint16_t* out, Compute compute) {
  constexpr std::size_t kBlock = 512;
  std::array<float, kBlock> block;
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::span<float> floats{block.data(), std::min(kBlock, count - first)};
    half_to_float(kind, values + first, floats.size(), floats.data());
    compute(first, floats);
    float_to_half(kind, floats.data(), floats.size(), out + first);
  }
}

}  // namespace erar::numeric

// The two 16-bit float types to float32 and back.
//
// To float is exact. To half rounds to nearest even, to a denormal too; what rounds beyond the
// largest number becomes infinity. A NaN stays a NaN of the same sign and of the payload bits that
// fit, made quiet. The bits depend neither on the instruction set nor on the caller's MXCSR.
#pragma once

#include <cstddef>
#include <cstdint>

namespace erar::numeric {

// IEEE 754 binary16 (1, 5 and 10 bits), and the upper half of a binary32 (1, 8 and 7 bits).
enum class HalfKind : std::uint8_t { kFloat16, kBfloat16 };

// Input and output do not overlap.
void half_to_float(HalfKind kind, const std::uint16_t* values, std::size_t count, float* out);
void float_to_half(HalfKind kind, const float* values, std::size_t count, std::uint16_t* out);

}  // namespace erar::numeric

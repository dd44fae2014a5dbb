// Small passes over arrays of a float type, before and after quantisation: scaling, and values that
// are not finite.
//
// Arithmetic is IEEE's in the element type, rounded to nearest even with denormals kept. The bits
// depend neither on the instruction set nor on the caller's MXCSR; of a NaN among the operands only
// that the result is one.
#pragma once

#include "core/data_type.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace erar::numeric {

// out[i] = values[i] * factor; values and out are the same memory or do not overlap. With floats
// the product is a double, and that is rounded.
void scale(std::span<const float> values, double factor, float* out);
void scale(std::span<const double> values, double factor, double* out);

// values[i] /= by
void divide(std::span<float> values, float by);
void divide(std::span<double> values, double by);

// The same of any float type. float16 and bfloat16 are computed with as floats and then rounded.
void scale_floats(DataType type, const void* values, std::size_t count, double factor, void* out);
void divide_floats(DataType type, void* values, std::size_t count, unsigned by);

// A value that is not finite, and where.
struct Offender {
  enum class Kind : std::uint8_t { kNaN, kInfinity, kMinusInfinity };
  std::size_t index;
  Kind kind;
};

// The first one of an array; type is a float type, here and below.
std::optional<Offender> first_not_finite(DataType type, const void* values, std::size_t count);

// out[i] = values[i], +0 where that is not finite; values and out are the same memory or do not
// overlap.
void zero_not_finite(std::span<const float> values, float* out);
void zero_not_finite(std::span<const double> values, double* out);

// marks[i] = 1 where values[i] is not finite, else 0.
void mark_not_finite(DataType type, const void* values, std::size_t count, std::uint8_t* marks);

// values[i] = the canonical quiet NaN where marks[i] != 0.
void set_nan(DataType type, const std::uint8_t* marks, std::size_t count, void* values);

}  // namespace erar::numeric

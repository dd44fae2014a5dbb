// The IEEE bit patterns that passes over any float type need, by the word that holds an element.
#pragma once

#include "core/data_type.h"

#include <cstdint>
#include <limits>

namespace erar::numeric {

// Without its sign, a pattern is a NaN above `infinity`, and finite below it.
template <class BitsOfElement>
struct FloatFormat {
  using Bits = BitsOfElement;
  static constexpr unsigned kSignShift = std::numeric_limits<Bits>::digits - 1;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << kSignShift);
  Bits infinity;
  Bits quiet_nan;  // the canonical one
};

// operation(format) with the type's format; type is a float type.
template <class Operation>
auto with_float_format(DataType type, Operation operation) {
  switch (type) {
    case DataType::kFloat16:
      return operation(FloatFormat<std::uint16_t>{0x7c00, 0x7e00});
    case DataType::kBfloat16:
      return operation(FloatFormat<std::uint16_t>{0x7f80, 0x7fc0});
    case DataType::kFloat64:
      return operation(FloatFormat<std::uint64_t>{0x7ff0000000000000, 0x7ff8000000000000});
    default:
      return operation(FloatFormat<std::uint32_t>{0x7f800000, 0x7fc00000});
  }
}

}  // namespace erar::numeric

// Every element type beside its name in DataType, for typed tests.
#pragma once

#include "core/data_type.h"
#include "core/numeric/half_element.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace erar {

using numeric::Bfloat16;
using numeric::Float16;

template <class T, DataType kGiven>
struct Typed {
  using Type = T;
  static constexpr DataType kType = kGiven;
};

using FloatTypes =
    ::testing::Types<Typed<Float16, DataType::kFloat16>, Typed<float, DataType::kFloat32>,
                     Typed<double, DataType::kFloat64>, Typed<Bfloat16, DataType::kBfloat16>>;
using AllTypes =
    ::testing::Types<Typed<std::int8_t, DataType::kInt8>, Typed<std::uint8_t, DataType::kUint8>,
                     Typed<std::int32_t, DataType::kInt32>, Typed<std::uint32_t, DataType::kUint32>,
                     Typed<std::int64_t, DataType::kInt64>, Typed<std::uint64_t, DataType::kUint64>,
                     Typed<Float16, DataType::kFloat16>, Typed<float, DataType::kFloat32>,
                     Typed<double, DataType::kFloat64>, Typed<Bfloat16, DataType::kBfloat16>>;

}  // namespace erar

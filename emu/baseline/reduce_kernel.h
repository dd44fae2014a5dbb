// Element-wise arithmetic over whole buffers, vectorised for the CPU it runs on.
#pragma once

#include <cstddef>

#include "core/data_type.h"

namespace erar {

// result[i] = own[i] op arrived[i] for `count` elements. result may be the same buffer as own or as
// arrived; otherwise they do not overlap. Integer sums wrap around; floats are IEEE's, float16 and
// bfloat16 computed as float and rounded to nearest even. Pointers are aligned to the element.
using CombineKernel = void (*)(void* result, const void* own, const void* arrived,
                               std::size_t count);

// Averages are sums until they are divided.
CombineKernel combine_kernel(DataType type, ReduceOp op);

// values[i] /= divisor. Floats are rounded, integers truncated towards zero. divisor: 1 to 64.
void divide(DataType type, void* values, std::size_t count, unsigned divisor);

// result[i] = values[i] * factor, rounded to the type (as a double; 16-bit floats then by way of
// float32); integers want a whole factor and wrap. result may be values.
void scale(DataType type, void* result, const void* values, std::size_t count, double factor);

// How the ring reduces: at each hop, and once where the last addend has come.
struct Reducer {
  CombineKernel combine = nullptr;
  DataType type = DataType::kFloat32;
  unsigned divisor = 1;
};

}  // namespace erar

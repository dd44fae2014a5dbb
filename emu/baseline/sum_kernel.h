// Element-wise sums over whole buffers, vectorised for the CPU they run on.
#pragma once

#include <cstddef>

#include "core/backend.h"

namespace erar {

// sum[i] = own[i] + arrived[i] for `count` elements. sum may be the same buffer as own or as
// arrived; otherwise they do not overlap. int32 wraps around. Pointers are aligned to the element.
using SumKernel = void (*)(void* sum, const void* own, const void* arrived, std::size_t count);

// The widest kernel that this CPU runs.
SumKernel sum_kernel(DataType type);

}  // namespace erar

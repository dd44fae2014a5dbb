// Allreduce of one rank alone: what the ring does to a value when there is nobody to add to it.
#pragma once

#include <cstddef>

#include "core/data_type.h"
#include "core/result.h"

namespace erar {

// As Backend::allreduce() of a group of one; values are not quantised.
Result<void> solo_allreduce(const void* input, void* output, std::size_t count,
                            const Reduction& reduction);

}  // namespace erar

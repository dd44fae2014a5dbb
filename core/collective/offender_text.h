// The error of a NaN or an infinity in a float reduction, the same wherever it was found.
#pragma once

#include <cstddef>
#include <string>

#include "core/data_type.h"
#include "core/numeric/float_elements.h"
#include "core/result.h"

namespace erar {

// "allreduce sum of float32: rank 2 has NaN at element 1300000"; of a sum with a pre-scale factor
// it says that the product is meant.
inline Error refuse_offender(const Reduction& reduction, unsigned rank,
                             const numeric::Offender& offender) {
  const char* kind = offender.kind == numeric::Offender::Kind::kNaN        ? "NaN"
                     : offender.kind == numeric::Offender::Kind::kInfinity ? "infinity"
                                                                           : "-infinity";
  return refusal("allreduce " + std::string(name_of(reduction.op)) + " of " +
                 std::string(name_of(reduction.type)) + ": rank " + std::to_string(rank) + " has " +
                 kind + " at element " + std::to_string(offender.index) +
                 (reduction.pre_scale == 1 ? "" : " after the pre-scale factor"));
}

}  // namespace erar

// One rank alone: refusals as on a ring, the pre-scale factor, and NaN where it is to be spread.
#include "core/collective/solo_allreduce.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/collective/codec.h"
#include "core/collective/offender_text.h"
#include "core/numeric/float_elements.h"
#include "core/numeric/integer_average.h"

namespace erar {
namespace {

constexpr std::size_t kBlock = 1024;

void scale_in_place(DataType type, void* values, std::size_t count, double factor) {
  if (is_float(type)) {
    numeric::scale_floats(type, values, count, factor, values);
  } else {
    numeric::scale_integers(type, values, count, static_cast<std::int64_t>(factor), values);
  }
}

void spread_nan(DataType type, void* values, std::size_t count) {
  std::array<std::uint8_t, kBlock> marks;
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t part = std::min(kBlock, count - done);
    std::byte* at = static_cast<std::byte*>(values) + done * size_of(type);
    numeric::mark_not_finite(type, at, part, marks.data());
    numeric::set_nan(type, marks.data(), part, at);
  }
}

}  // namespace

Result<void> solo_allreduce(const void* input, void* output, std::size_t count,
                            const Reduction& reduction) {
  if (auto possible = check_reduction(reduction); !possible) return possible;
  const DataType type = reduction.type;
  if (is_float(type) && reduction.not_finite == NotFinite::kRefuse)
    if (const auto offender = numeric::first_not_finite(type, input, count))
      return refuse_offender(reduction, 0, *offender);
  if (input != output && count != 0) std::memcpy(output, input, count * size_of(type));
  if (reduction.pre_scale != 1) scale_in_place(type, output, count, reduction.pre_scale);
  const bool sums = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kAverage;
  if (is_float(type) && sums && reduction.not_finite == NotFinite::kPropagate)
    spread_nan(type, output, count);
  return {};
}

}  // namespace erar

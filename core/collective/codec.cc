// Which codec a reduction needs, and what it is refused for.
#include "core/collective/codec.h"

#include <cmath>
#include <string>

#include "core/collective/float_codec.h"
#include "core/collective/integer_codec.h"

namespace erar {
namespace {

Error refused(const Reduction& reduction, const std::string& why) {
  return refusal("allreduce " + std::string(name_of(reduction.op)) + " of " +
                 std::string(name_of(reduction.type)) + ": " + why);
}

bool is_whole(double factor) {
  return std::isfinite(factor) && factor == std::trunc(factor) && std::fabs(factor) < 0x1p63;
}

}  // namespace

std::size_t Codec::record_bytes(std::size_t) const { return 0; }

void Codec::announce(const CodecPart&, std::byte*) {}

bool Codec::all_finite(std::size_t, const std::byte*) const { return true; }

void Codec::mark_not_finite(const CodecPart&, std::span<std::uint8_t>) const {}

void Codec::note_offender(DataType type, const CodecPart& part) {
  if (offender_) return;
  offender_ = numeric::first_not_finite(type, part.input, part.count);
  if (offender_) offender_->index += part.first;
}

Result<void> check_reduction(const Reduction& reduction) {
  // Numbers that a cast has made of something else, such as another library's types.
  if (static_cast<std::size_t>(reduction.type) >= kDataTypes.size())
    return refusal("allreduce: there is no type of number " +
                   std::to_string(static_cast<unsigned>(reduction.type)));
  if (static_cast<std::size_t>(reduction.op) >= kReduceOps.size())
    return refusal("allreduce: there is no operation of number " +
                   std::to_string(static_cast<unsigned>(reduction.op)));
  const bool extreme = reduction.op == ReduceOp::kMin || reduction.op == ReduceOp::kMax;
  const bool floats = is_float(reduction.type);
  if (reduction.pre_scale != 1 && reduction.op != ReduceOp::kSum)
    return refused(reduction, "a pre-scale factor is for sums only");
  if (!floats && !is_whole(reduction.pre_scale))
    return refused(reduction, "the pre-scale factor of integers must be a whole number");
  if (!std::isfinite(reduction.pre_scale))
    return refused(reduction, "the pre-scale factor must be finite");
  if (reduction.compressed && (!floats || extreme || reduction.type == DataType::kFloat64))
    return refused(reduction,
                   "compression is for sums and averages of float32, float16 and bfloat16");
  return {};
}

std::unique_ptr<Codec> make_codec(const Reduction& reduction, unsigned ranks, Feedback* feedback) {
  if (!is_float(reduction.type)) return make_integer_codec(reduction, ranks);
  const bool extreme = reduction.op == ReduceOp::kMin || reduction.op == ReduceOp::kMax;
  return extreme ? make_extreme_codec(reduction) : make_sum_codec(reduction, ranks, feedback);
}

}  // namespace erar

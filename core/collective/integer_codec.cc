// Integers on the wire: two's complement in lanes of their own width, or averages without overflow.
#include "core/collective/integer_codec.h"

#include <cstring>

#include "core/numeric/integer_average.h"
#include "core/protocol/lanes.h"

namespace erar {
namespace {

std::uint64_t lane_high_of(std::size_t lane_bytes) {
  switch (lane_bytes) {
    case 1:
      return ERAR_HIGH_OF_LANES8;
    case 4:
      return ERAR_HIGH_OF_LANES32;
    default:
      return ERAR_HIGH_OF_LANES64;
  }
}

bool is_signed(DataType type) {
  return type == DataType::kInt8 || type == DataType::kInt32 || type == DataType::kInt64;
}

erar_combine combine_of(const Reduction& reduction) {
  const std::size_t bytes = size_of(reduction.type);
  erar_combine combine{};
  combine.lane_high = lane_high_of(bytes);
  combine.lane_shift = static_cast<std::uint16_t>(8 * bytes - 1);
  if (reduction.op == ReduceOp::kSum) {
    combine.loop = bytes == 8 ? ERAR_ADD_WORDS : bytes == 4 ? ERAR_ADD_LANES32 : ERAR_ADD_LANES;
    return combine;
  }
  combine.loop = ERAR_MAX_LANES;
  if (is_signed(reduction.type)) combine.flip = combine.lane_high;
  if (reduction.op == ReduceOp::kMin) combine.flip = ~combine.flip;
  return combine;
}

// Sums (wrapping), minima and maxima: the elements are the lanes.
class PlainCodec final : public Codec {
 public:
  explicit PlainCodec(const Reduction& reduction)
      : Codec({size_of(reduction.type),
               size_of(reduction.type),
               combine_of(reduction),
               false,
               {},
               reduction.pre_scale == 1}),
        type_(reduction.type),
        factor_(static_cast<std::int64_t>(reduction.pre_scale)) {}

  void encode(const CodecPart& part, const std::byte*, const std::byte*) override {
    if (factor_ != 1)
      numeric::scale_integers(type_, part.input, part.count, factor_, part.lanes);
    else if (part.lanes != part.input)
      std::memcpy(part.lanes, part.input, part.count * size_of(type_));
  }

  bool decode(const CodecPart& part, const std::byte*, std::byte* output, bool) override {
    if (output != part.lanes) std::memcpy(output, part.lanes, part.count * size_of(type_));
    return true;
  }

 private:
  DataType type_;
  std::int64_t factor_;
};

class AverageCodec final : public Codec {
 public:
  AverageCodec(DataType type, unsigned ranks)
      : Codec({size_of(type), numeric::average_lane_bytes(type), {}, false, {}, false}),
        type_(type),
        ranks_(ranks) {}

  void encode(const CodecPart& part, const std::byte*, const std::byte*) override {
    numeric::to_average_lanes(type_, ranks_, part.input, part.count, part.lanes);
  }

  bool decode(const CodecPart& part, const std::byte*, std::byte* output, bool) override {
    numeric::from_average_lanes(type_, ranks_, part.lanes, part.count, output);
    return true;
  }

 private:
  DataType type_;
  unsigned ranks_;
};

}  // namespace

std::unique_ptr<Codec> make_integer_codec(const Reduction& reduction, unsigned ranks) {
  if (reduction.op == ReduceOp::kAverage)
    return std::make_unique<AverageCodec>(reduction.type, ranks);
  return std::make_unique<PlainCodec>(reduction);
}

}  // namespace erar

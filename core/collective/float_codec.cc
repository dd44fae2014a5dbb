// Floats on the wire: exponent blocks are staged, quantised and taken back one after the other.
#include "core/collective/float_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <type_traits>

#include "core/numeric/block_double.h"
#include "core/numeric/compact_lanes.h"
#include "core/numeric/half.h"
#include "core/numeric/ordered_lanes.h"
#include "core/protocol/lanes.h"

namespace erar {

using numeric::Exponent;
using numeric::kExponentBlock;

namespace {

// How one Real type goes into lanes of one width.
struct FloatLanes {
  using Real = float;
  using Lane = std::uint32_t;
  static constexpr Exponent kNotFinite = numeric::kNotFinite;
  static void quantise(std::span<const Real> values, std::span<const Exponent> exponents,
                       unsigned ranks, Lane* lanes) {
    numeric::quantise(values, exponents, ranks, lanes);
  }
  static void dequantise(const Lane* lanes, std::span<const Exponent> exponents, unsigned ranks,
                         std::span<Real> values) {
    numeric::dequantise(lanes, exponents, ranks, values);
  }
};

struct CompactLanes {
  using Real = float;
  using Lane = std::uint16_t;
  static constexpr Exponent kNotFinite = numeric::kNotFinite;
  static void quantise(std::span<const Real> values, std::span<const Exponent> exponents,
                       unsigned ranks, Lane* lanes) {
    numeric::quantise_compact(values, exponents, ranks, lanes);
  }
  static void dequantise(const Lane* lanes, std::span<const Exponent> exponents, unsigned ranks,
                         std::span<Real> values) {
    numeric::dequantise_compact(lanes, exponents, ranks, ranks, values);
  }
};

struct DoubleLanes {
  using Real = double;
  using Lane = std::uint64_t;
  static constexpr Exponent kNotFinite = numeric::kNotFiniteDouble;
  static void quantise(std::span<const Real> values, std::span<const Exponent> exponents,
                       unsigned ranks, Lane* lanes) {
    numeric::quantise(values, exponents, ranks, lanes);
  }
  static void dequantise(const Lane* lanes, std::span<const Exponent> exponents, unsigned ranks,
                         std::span<Real> values) {
    numeric::dequantise(lanes, exponents, ranks, values);
  }
};

// The elements of one exponent block and where they lie.
struct Block {
  std::size_t index = 0;  // within the part
  std::size_t first = 0;  // element of the buffer
  std::size_t count = 0;
  const std::byte* input = nullptr;
  std::byte* lanes = nullptr;
};

template <class Lanes>
class BlockCodec final : public Codec {
  using Real = typename Lanes::Real;
  using Lane = typename Lanes::Lane;

 public:
  BlockCodec(const Reduction& reduction, unsigned ranks, float* residual)
      : Codec({size_of(reduction.type), sizeof(Lane), {ERAR_ADD_WORDS, 0, 0, 0, 0}, true, false}),
        reduction_(reduction),
        ranks_(ranks),
        residual_(residual),
        as_it_is_(size_of(reduction.type) == sizeof(Real) && reduction.pre_scale == 1 &&
                  residual == nullptr) {}

  bool announce(const CodecPart& part, std::span<Exponent> exponents) override {
    bool finite = true;
    for_each_block(part, [&](const Block& block) {
      auto values = stage(block);
      const auto exponent = exponents.subspan(block.index, 1);
      numeric::block_exponents(values, exponent);
      if (exponent[0] == Lanes::kNotFinite) {
        finite = false;
        remember_not_finite(block);
        values = stage(block);
        numeric::block_exponents(values, exponent);
      }
      if (part.lanes != part.input) quantise(values, exponent, block);
    });
    return finite;
  }

  void encode(const CodecPart& part, std::span<const Exponent> own,
              std::span<const Exponent> agreed) override {
    const bool quantised = part.lanes != part.input;
    for_each_block(part, [&](const Block& block) {
      const auto exponent = agreed.subspan(block.index, 1);
      if (!quantised || own[block.index] != exponent[0]) quantise(stage(block), exponent, block);
      if (residual_ != nullptr) keep_residual(block, exponent);
    });
  }

  bool decode(const CodecPart& part, std::span<const Exponent> agreed, std::byte* output,
              bool large) override {
    if constexpr (std::is_same_v<Lanes, FloatLanes>) {
      if (reduction_.type == DataType::kFloat32 && reduction_.op == ReduceOp::kSum) {
        const auto destination =
            large ? numeric::Destination::kMemory : numeric::Destination::kCache;
        numeric::dequantise(reinterpret_cast<const Lane*>(part.lanes), agreed, ranks_,
                            {reinterpret_cast<float*>(output), part.count}, destination);
        return true;
      }
    }
    for_each_block(part, [&](const Block& block) {
      const std::span<Real> values{scratch_.data(), block.count};
      Lanes::dequantise(reinterpret_cast<const Lane*>(block.lanes), agreed.subspan(block.index, 1),
                        ranks_, values);
      if (reduction_.op == ReduceOp::kAverage) numeric::divide(values, static_cast<Real>(ranks_));
      unstage(values, output + (block.first - part.first) * format().element_bytes);
    });
    return true;
  }

  void mark_not_finite(const CodecPart& part, std::span<std::uint8_t> marks) const override {
    std::fill(marks.begin(), marks.end(), std::uint8_t{0});
    for_each_block(part, [&](const Block& block) {
      const auto found = not_finite_.find(block.first);
      if (found == not_finite_.end()) return;
      std::copy(found->second.begin(), found->second.end(),
                marks.begin() + static_cast<std::ptrdiff_t>(block.first - part.first));
    });
  }

 private:
  template <class Visit>
  void for_each_block(const CodecPart& part, Visit visit) const {
    for (std::size_t done = 0; done < part.count; done += kExponentBlock) {
      Block block;
      block.index = done / kExponentBlock;
      block.first = part.first + done;
      block.count = std::min(kExponentBlock, part.count - done);
      block.input = part.input == nullptr ? nullptr : part.input + done * format().element_bytes;
      block.lanes = part.lanes + done * sizeof(Lane);
      visit(block);
    }
  }

  // The block's values as they are to be quantised: converted, scaled, with what the last call
  // left, and zero where they are not finite (once that is known).
  std::span<const Real> stage(const Block& block) {
    const bool known_bad = !not_finite_.empty() && not_finite_.contains(block.first);
    if (as_it_is_ && !known_bad) return {reinterpret_cast<const Real*>(block.input), block.count};
    const std::span<Real> values{scratch_.data(), block.count};
    convert(block.input, values);
    if (reduction_.pre_scale != 1) numeric::scale(values, reduction_.pre_scale, values.data());
    if (residual_ != nullptr) {
      const float* rest = residual_ + block.first;
      for (std::size_t i = 0; i < block.count; i++) values[i] += static_cast<Real>(rest[i]);
    }
    if (known_bad) numeric::zero_not_finite(values, values.data());
    return values;
  }

  void convert(const std::byte* input, std::span<Real> values) const {
    if constexpr (std::is_same_v<Real, float>) {
      if (numeric::is_half(reduction_.type)) {
        numeric::half_to_float(numeric::half_kind_of(reduction_.type),
                               reinterpret_cast<const std::uint16_t*>(input), values.size(),
                               values.data());
        return;
      }
    }
    std::memcpy(values.data(), input, values.size_bytes());
  }

  void unstage(std::span<const Real> values, std::byte* output) const {
    if constexpr (std::is_same_v<Real, float>) {
      if (numeric::is_half(reduction_.type)) {
        numeric::float_to_half(numeric::half_kind_of(reduction_.type), values.data(), values.size(),
                               reinterpret_cast<std::uint16_t*>(output));
        return;
      }
    }
    std::memcpy(output, values.data(), values.size_bytes());
  }

  void quantise(std::span<const Real> values, std::span<const Exponent> exponent,
                const Block& block) {
    Lanes::quantise(values, exponent, ranks_, reinterpret_cast<Lane*>(block.lanes));
  }

  // A product with the pre-scale factor, or the sum with the residual, may be infinite where the
  // element is not: the elements are marked as they go into the lanes.
  void remember_not_finite(const Block& block) {
    std::vector<std::uint8_t> marks(block.count);
    const auto values = stage(block);
    constexpr DataType kType =
        std::is_same_v<Real, float> ? DataType::kFloat32 : DataType::kFloat64;
    numeric::mark_not_finite(kType, values.data(), block.count, marks.data());
    CodecPart part;
    part.first = block.first;
    part.count = block.count;
    part.input = reinterpret_cast<const std::byte*>(values.data());
    note_offender(kType, part);
    if (residual_ != nullptr)
      for (std::size_t i = 0; i < block.count; i++)
        if (marks[i] != 0) residual_[block.first + i] = 0;
    not_finite_.emplace(block.first, std::move(marks));
  }

  // Error feedback: what the lanes do not say of the values goes with the next call.
  void keep_residual(const Block& block, std::span<const Exponent> exponent) {
    if constexpr (std::is_same_v<Lanes, CompactLanes>) {
      std::array<float, kExponentBlock> sent;
      numeric::dequantise_compact(reinterpret_cast<const Lane*>(block.lanes), exponent, 1, ranks_,
                                  {sent.data(), block.count});
      const auto values = stage(block);
      float* rest = residual_ + block.first;
      for (std::size_t i = 0; i < block.count; i++) rest[i] = values[i] - sent[i];
    }
  }

  Reduction reduction_;
  unsigned ranks_;
  float* residual_;
  bool as_it_is_;  // elements are quantised where they lie
  std::array<Real, kExponentBlock> scratch_{};
  // By first element: the marks of blocks that hold something that is not finite.
  std::map<std::size_t, std::vector<std::uint8_t>> not_finite_;
};

// Minima and maxima are exact: the lanes are ordered as the values are.
class ExtremeCodec final : public Codec {
 public:
  explicit ExtremeCodec(const Reduction& reduction)
      : Codec({size_of(reduction.type),
               size_of(reduction.type),
               {ERAR_MAX_LANES, 0, static_cast<std::uint16_t>(8 * size_of(reduction.type) - 1),
                lane_high_of(size_of(reduction.type)), 0},
               false,
               false}),
        type_(reduction.type),
        extreme_(reduction.op == ReduceOp::kMin ? numeric::Extreme::kMin : numeric::Extreme::kMax),
        infinities_are_values_(reduction.not_finite == NotFinite::kPropagate) {}

  void encode(const CodecPart& part, std::span<const Exponent>,
              std::span<const Exponent>) override {
    const bool in_place = part.lanes == part.input;
    if (in_place && !infinities_are_values_) note_offender(type_, part);
    if (numeric::to_ordered(type_, extreme_, infinities_are_values_, part.input, part.count,
                            part.lanes) &&
        !in_place)
      note_offender(type_, part);
  }

  bool decode(const CodecPart& part, std::span<const Exponent>, std::byte* output, bool) override {
    return !numeric::from_ordered(type_, extreme_, part.lanes, part.count, output);
  }

 private:
  static std::uint64_t lane_high_of(std::size_t bytes) {
    return bytes == 2   ? ERAR_HIGH_OF_LANES16
           : bytes == 4 ? ERAR_HIGH_OF_LANES32
                        : ERAR_HIGH_OF_LANES64;
  }

  DataType type_;
  numeric::Extreme extreme_;
  bool infinities_are_values_;
};

}  // namespace

std::unique_ptr<Codec> make_sum_codec(const Reduction& reduction, unsigned ranks, float* residual) {
  if (reduction.type == DataType::kFloat64)
    return std::make_unique<BlockCodec<DoubleLanes>>(reduction, ranks, nullptr);
  if (reduction.compressed)
    return std::make_unique<BlockCodec<CompactLanes>>(reduction, ranks, residual);
  return std::make_unique<BlockCodec<FloatLanes>>(reduction, ranks, nullptr);
}

std::unique_ptr<Codec> make_extreme_codec(const Reduction& reduction) {
  return std::make_unique<ExtremeCodec>(reduction);
}

}  // namespace erar

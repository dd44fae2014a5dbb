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

constexpr erar_combine kMaxExponents{ERAR_MAX_LANES, 0, 15, ERAR_HIGH_OF_LANES16, 0};
constexpr erar_combine kAddMagnitudes{ERAR_ADD_WORDS, 0, 0, 0, 0};

// How one Real type goes into lanes of one width, block by block: what the ranks tell each other of
// a block (Record), and the Scale that follows from it.
struct FloatLanes {
  using Real = float;
  using Lane = std::uint32_t;
  using Record = numeric::MagnitudeSum;
  using Scale = numeric::BlockScale;
  static constexpr erar_combine kCombine = kAddMagnitudes;

  static bool find(std::span<const Real> values, Record& record) {
    return numeric::block_maxima(values, {&record, 1});
  }
  static Scale scale_of(const Record& record, unsigned ranks) {
    return numeric::scale_of(record, ranks);
  }
  // Where ranks hold values of like magnitude, their sum is this.
  static Record guess(const Record& own, unsigned ranks) {
    Record sum = own;
    for (std::uint64_t& word : sum.words) word *= ranks;
    return sum;
  }
  static void quantise(std::span<const Real> values, Scale scale, unsigned ranks, Lane* lanes) {
    numeric::quantise(values, {&scale, 1}, ranks, lanes);
  }
  static void dequantise(const Lane* lanes, Scale scale, unsigned ranks, std::span<Real> values) {
    numeric::dequantise(lanes, {&scale, 1}, ranks, values);
  }
};

template <class RealType, class LaneType, Exponent kNotFinite>
struct ExponentLanes {
  using Real = RealType;
  using Lane = LaneType;
  using Record = Exponent;
  using Scale = Exponent;
  static constexpr erar_combine kCombine = kMaxExponents;

  static bool find(std::span<const Real> values, Record& record) {
    numeric::block_exponents(values, {&record, 1});
    return record != kNotFinite;
  }
  static Scale scale_of(Record record, unsigned) { return record; }
  static Record guess(Record own, unsigned) { return own; }
};

struct CompactLanes : ExponentLanes<float, std::uint16_t, numeric::kNotFinite> {
  static void quantise(std::span<const Real> values, Scale scale, unsigned ranks, Lane* lanes) {
    numeric::quantise_compact(values, {&scale, 1}, ranks, lanes);
  }
  static void dequantise(const Lane* lanes, Scale scale, unsigned ranks, std::span<Real> values) {
    numeric::dequantise_compact(lanes, {&scale, 1}, ranks, ranks, values);
  }
};

struct DoubleLanes : ExponentLanes<double, std::uint64_t, numeric::kNotFiniteDouble> {
  static void quantise(std::span<const Real> values, Scale scale, unsigned ranks, Lane* lanes) {
    numeric::quantise(values, std::span<const Exponent>(&scale, 1), ranks, lanes);
  }
  static void dequantise(const Lane* lanes, Scale scale, unsigned ranks, std::span<Real> values) {
    numeric::dequantise(lanes, std::span<const Exponent>(&scale, 1), ranks, values);
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
  using Record = typename Lanes::Record;
  using Scale = typename Lanes::Scale;

 public:
  BlockCodec(const Reduction& reduction, unsigned ranks, Feedback* feedback)
      : Codec({size_of(reduction.type),
               sizeof(Lane),
               {ERAR_ADD_WORDS, 0, 0, 0, 0},
               true,
               Lanes::kCombine,
               false}),
        reduction_(reduction),
        ranks_(ranks),
        feedback_(feedback),
        as_it_is_(size_of(reduction.type) == sizeof(Real) && reduction.pre_scale == 1 &&
                  feedback == nullptr) {}

  [[nodiscard]] std::size_t record_bytes(std::size_t count) const override {
    return (numeric::exponent_count(count) + 1) * sizeof(Record);
  }

  void announce(const CodecPart& part, std::byte* records) override {
    Record all_finite{};
    for_each_block(part, [&](const Block& block) {
      auto values = stage(block);
      Record record{};
      if (!Lanes::find(values, record)) {
        set_flag(all_finite);
        remember_not_finite(block);
        values = stage(block);
        Lanes::find(values, record);
      }
      put_record(records, block.index, record);
      if (part.lanes != part.input)
        quantise(values, Lanes::scale_of(Lanes::guess(record, ranks_), ranks_), block);
    });
    put_record(records, numeric::exponent_count(part.count), all_finite);
  }

  [[nodiscard]] bool all_finite(std::size_t count, const std::byte* agreed) const override {
    return record_at(agreed, numeric::exponent_count(count)) == Record{};
  }

  void encode(const CodecPart& part, const std::byte* own, const std::byte* agreed) override {
    const bool quantised = part.lanes != part.input;
    for_each_block(part, [&](const Block& block) {
      const Scale scale = Lanes::scale_of(record_at(agreed, block.index), ranks_);
      const Record guessed = Lanes::guess(record_at(own, block.index), ranks_);
      if (!quantised || Lanes::scale_of(guessed, ranks_) != scale)
        quantise(stage(block), scale, block);
      if (feedback_ != nullptr) keep_rest(block, scale);
    });
  }

  bool decode(const CodecPart& part, const std::byte* agreed, std::byte* output,
              bool large) override {
    const bool plain = reduction_.type == DataType::kFloat32 && reduction_.op == ReduceOp::kSum;
    for_each_block(part, [&](const Block& block) {
      const Scale scale = Lanes::scale_of(record_at(agreed, block.index), ranks_);
      const auto* lanes = reinterpret_cast<const Lane*>(block.lanes);
      std::byte* to = output + (block.first - part.first) * format().element_bytes;
      if constexpr (std::is_same_v<Lanes, FloatLanes>) {
        if (plain) {
          const auto destination =
              large ? numeric::Destination::kMemory : numeric::Destination::kCache;
          numeric::dequantise(lanes, {&scale, 1}, ranks_,
                              {reinterpret_cast<float*>(to), block.count}, destination);
          return;
        }
      }
      const std::span<Real> values{scratch_.data(), block.count};
      Lanes::dequantise(lanes, scale, ranks_, values);
      if (reduction_.op == ReduceOp::kAverage) numeric::divide(values, static_cast<Real>(ranks_));
      unstage(values, to);
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
    if (feedback_ != nullptr && !feedback_->before.empty()) {
      const float* rest = feedback_->before.data() + block.first;
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

  void quantise(std::span<const Real> values, Scale scale, const Block& block) {
    Lanes::quantise(values, scale, ranks_, reinterpret_cast<Lane*>(block.lanes));
  }

  // Records lie where the ring's arena has room for them: at no particular alignment.
  static Record record_at(const std::byte* records, std::size_t index) {
    Record record{};
    std::memcpy(&record, records + index * sizeof(Record), sizeof(Record));
    return record;
  }
  static void put_record(std::byte* records, std::size_t index, const Record& record) {
    std::memcpy(records + index * sizeof(Record), &record, sizeof(Record));
  }
  static void set_flag(numeric::MagnitudeSum& record) { record.words[0] = 1; }
  static void set_flag(Exponent& record) { record = 1; }

  // A product with the pre-scale factor, or the sum with what the last call left, may be infinite
  // where the element is not: the elements are marked as they go into the lanes.
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
    not_finite_.emplace(block.first, std::move(marks));
  }

  // Error feedback: what the lanes do not say of the values goes with the next call.
  void keep_rest(const Block& block, [[maybe_unused]] Scale scale) {
    if constexpr (std::is_same_v<Lanes, CompactLanes>) {
      std::array<float, kExponentBlock> sent;
      numeric::dequantise_compact(reinterpret_cast<const Lane*>(block.lanes), {&scale, 1}, 1,
                                  ranks_, {sent.data(), block.count});
      const auto values = stage(block);
      std::vector<float>& after = feedback_->after;
      after.resize(block.first + block.count);
      float* rest = after.data() + block.first;
      for (std::size_t i = 0; i < block.count; i++) rest[i] = values[i] - sent[i];
    }
  }

  Reduction reduction_;
  unsigned ranks_;
  Feedback* feedback_;
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
               {},
               false}),
        type_(reduction.type),
        extreme_(reduction.op == ReduceOp::kMin ? numeric::Extreme::kMin : numeric::Extreme::kMax),
        infinities_are_values_(reduction.not_finite == NotFinite::kPropagate) {}

  void encode(const CodecPart& part, const std::byte*, const std::byte*) override {
    const bool in_place = part.lanes == part.input;
    if (in_place && !infinities_are_values_) note_offender(type_, part);
    if (numeric::to_ordered(type_, extreme_, infinities_are_values_, part.input, part.count,
                            part.lanes) &&
        !in_place)
      note_offender(type_, part);
  }

  bool decode(const CodecPart& part, const std::byte*, std::byte* output, bool) override {
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

std::unique_ptr<Codec> make_sum_codec(const Reduction& reduction, unsigned ranks,
                                      Feedback* feedback) {
  if (reduction.type == DataType::kFloat64)
    return std::make_unique<BlockCodec<DoubleLanes>>(reduction, ranks, nullptr);
  if (reduction.compressed)
    return std::make_unique<BlockCodec<CompactLanes>>(reduction, ranks, feedback);
  return std::make_unique<BlockCodec<FloatLanes>>(reduction, ranks, nullptr);
}

std::unique_ptr<Codec> make_extreme_codec(const Reduction& reduction) {
  return std::make_unique<ExtremeCodec>(reduction);
}

}  // namespace erar

// Recomputes every rank's values block by block in the first-level cache and compares.
#include "experiments/bench/oracle.h"

#include "core/numeric/block_float.h"
#include "core/numeric/half.h"
#include "core/numeric/half_element.h"
#include "core/numeric/per_instruction_set.h"
#include "workloads/generator/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace erar::bench {
namespace {

using numeric::Bfloat16;
using numeric::Float16;

// One exponent block, so that the largest magnitudes are at hand for the bound.
constexpr std::size_t kBlock = numeric::kExponentBlock;
static_assert(kBlock == workloads::kScaleBlock);

template <class T>
void fill_block(const Operation& operation, unsigned rank, std::size_t first, std::span<T> values) {
  workloads::fill(stream_of(operation, rank), operation.reduction.type, first,
                  std::as_writable_bytes(values));
}

// Integers. `combine(total, value)` is called for every rank but the first, `finish(total)` says
// what the result is to be.
template <class T, class Total, class Combine, class Finish>
std::uint64_t wrong_exact(const Operation& operation, std::size_t first, std::span<const T> result,
                          Combine combine, Finish finish) {
  std::array<Total, kBlock> totals;
  alignas(8) std::array<T, kBlock> values;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    fill_block(operation, rank, first, std::span<T>(values.data(), result.size()));
    for (std::size_t i = 0; i < result.size(); ++i) {
      totals[i] = rank == 0 ? static_cast<Total>(values[i]) : combine(totals[i], values[i]);
    }
  }
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) wrong += result[i] != finish(totals[i]) ? 1 : 0;
  return wrong;
}

// The factor is applied to the sum: modulo a power of two that is the same.
template <class T>
std::uint64_t wrong_integer_sums(const Operation& operation, std::size_t first,
                                 std::span<const T> result) {
  using Bits = std::make_unsigned_t<T>;
  const auto whole = static_cast<__int128>(std::fmod(operation.reduction.pre_scale, 0x1p64));
  const auto factor = static_cast<Bits>(whole);
  return wrong_exact<T, Bits>(
      operation, first, result,
      [](Bits sum, T value) { return static_cast<Bits>(sum + static_cast<Bits>(value)); },
      [factor](Bits sum) { return static_cast<T>(static_cast<Bits>(sum * factor)); });
}

template <class T>
std::uint64_t wrong_integer_averages(const Operation& operation, std::size_t first,
                                     std::span<const T> result) {
  using Sum = std::conditional_t<sizeof(T) == 8, __int128, std::int64_t>;
  return wrong_exact<T, Sum>(
      operation, first, result,
      [](Sum sum, T value) { return static_cast<Sum>(sum + static_cast<Sum>(value)); },
      [&](Sum sum) { return static_cast<T>(sum / static_cast<Sum>(operation.ranks)); });
}

template <class T>
std::uint64_t wrong_integers(const Operation& operation, std::size_t first,
                             std::span<const T> result) {
  const auto itself = [](T best) { return best; };
  switch (operation.reduction.op) {
    case ReduceOp::kSum:
      return wrong_integer_sums(operation, first, result);
    case ReduceOp::kAverage:
      return wrong_integer_averages(operation, first, result);
    case ReduceOp::kMin:
      return wrong_exact<T, T>(
          operation, first, result, [](T best, T value) { return std::min(best, value); }, itself);
    case ReduceOp::kMax:
      return wrong_exact<T, T>(
          operation, first, result, [](T best, T value) { return std::max(best, value); }, itself);
  }
  return result.size();
}

// Floats. 16-bit ones are judged as the floats that they are.
template <class Element>
using Value = std::conditional_t<std::is_same_v<Element, double>, double, float>;

// A double of at most 26 significant bits; what is left of x is one of 27.
[[gnu::always_inline]] inline double upper_half(double x) {
  constexpr std::uint64_t kLower = (std::uint64_t{1} << 27U) - 1;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~kLower);
}

// Sums of one block over the ranks, in arithmetic that is exact enough to be the truth: float64 in
// pairs of doubles, which vectorise where long doubles do not. The largest magnitude of the values
// added last is kept as bits: they order as the magnitudes do, and integer maxima vectorise where
// those of floats do not (NaN).
template <class V>
struct FloatBlock {
  static constexpr bool kPairs = std::is_same_v<V, double>;
  using Bits = std::conditional_t<kPairs, std::uint64_t, std::uint32_t>;
  static constexpr Bits kMagnitude = static_cast<Bits>(-1) >> 1U;

  std::array<double, kBlock> sum{};
  std::array<double, kPairs ? kBlock : 0> rest{};  // what the roundings of sum have lost
  std::array<double, kBlock> magnitudes{};
  Bits largest_bits = 0;
};

template <class V>
struct AddValues {
  [[gnu::always_inline]] static void run(const V* values, std::size_t count, double factor,
                                         FloatBlock<V>* block) {
    using Bits = typename FloatBlock<V>::Bits;
    const double factor_upper = upper_half(factor);
    const double factor_lower = factor - factor_upper;
    Bits largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      largest = std::max(largest, std::bit_cast<Bits>(values[i]) & FloatBlock<V>::kMagnitude);
      const auto value = static_cast<double>(values[i]);
      const double product = value * factor;
      const double before = block->sum[i];
      const double sum = before + product;
      if constexpr (FloatBlock<V>::kPairs) {
        const double upper = upper_half(value);
        const double lower = value - upper;
        const double of_product =
            lower * factor_lower -
            ((product - upper * factor_upper - lower * factor_upper) - upper * factor_lower);
        const double added = sum - before;
        const double of_sum = (before - (sum - added)) + (product - added);
        block->rest[i] += of_product + of_sum;
      }
      block->sum[i] = sum;
      block->magnitudes[i] += std::fabs(product);
    }
    block->largest_bits = largest;
  }
};

template <class V>
struct CountWrong {
  // power: what the sums are still to be multiplied by.
  [[gnu::always_inline]] static std::uint64_t run(const V* result, std::size_t count,
                                                  unsigned divisor, double power,
                                                  const FloatBlock<V>* block, FloatBound bound) {
    const auto by = static_cast<double>(divisor);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double sum = block->sum[i] * power;
      const auto value = static_cast<double>(result[i]);
      double error = std::fabs(value - sum / by);
      if constexpr (FloatBlock<V>::kPairs) {
        // Products with a divisor of up to 6 bits are exact, and so is the first difference if the
        // result is anywhere near the sum.
        const double upper = upper_half(value);
        const double lower = value - upper;
        error = std::fabs(upper * by - sum + lower * by - block->rest[i] * power) / by;
      }
      const double allowed = bound.of(sum / by, block->magnitudes[i] * power);
      // Written so that a NaN is wrong.
      wrong += !(error <= allowed) ? 1 : 0;
    }
    return wrong;
  }
};

// 16-bit floats are widened, others are copied.
template <class Element>
void widen(DataType type, std::span<const Element> elements, Value<Element>* values) {
  if constexpr (sizeof(Element) == 2) {
    numeric::half_to_float(numeric::half_kind_of(type),
                           reinterpret_cast<const std::uint16_t*>(elements.data()), elements.size(),
                           values);
  } else {
    std::copy(elements.begin(), elements.end(), values);
  }
}

template <class Element>
void fill_values(const Operation& operation, unsigned rank, std::size_t first,
                 std::span<Value<Element>> values) {
  if constexpr (std::is_same_v<Element, Value<Element>>) {
    fill_block(operation, rank, first, values);
  } else {
    alignas(8) std::array<Element, kBlock> elements;
    const std::span<Element> filled{elements.data(), values.size()};
    fill_block(operation, rank, first, filled);
    widen<Element>(operation.reduction.type, filled, values.data());
  }
}

template <class Element>
std::uint64_t wrong_float_sums(const Operation& operation, std::size_t first,
                               std::span<const Value<Element>> result) {
  using V = Value<Element>;
  const Reduction& reduction = operation.reduction;
  // Powers of two last: a product is in two halves, which the largest factors would overflow.
  int exponent = 0;
  const double factor = std::frexp(reduction.pre_scale, &exponent) * 2;
  const double power = std::ldexp(1.0, exponent - 1);
  FloatBlock<V> block;
  std::array<V, kBlock> values;
  BlockMaxima maxima;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    fill_values<Element>(operation, rank, first, {values.data(), result.size()});
    numeric::run_widest<AddValues<V>>(values.data(), result.size(), factor, &block);
    const double largest =
        product_of(reduction, static_cast<double>(std::bit_cast<V>(block.largest_bits)));
    maxima.largest = std::max(maxima.largest, largest);
    maxima.sum += largest;
  }
  maxima.largest_ever = product_of(
      reduction,
      workloads::magnitude_limit(stream_of(operation, 0), reduction.type, first / kBlock));
  const FloatBound bound(reduction, operation.ranks, operation.summation, maxima);
  const unsigned divisor = reduction.op == ReduceOp::kAverage ? operation.ranks : 1;
  return numeric::run_widest<CountWrong<V>>(result.data(), result.size(), divisor, power,
                                            static_cast<const FloatBlock<V>*>(&block), bound);
}

// Compared as values: -0 and +0 are equal, and a NaN equals nothing.
template <class Element>
std::uint64_t wrong_extremes(const Operation& operation, std::size_t first,
                             std::span<const Value<Element>> result) {
  std::array<Value<Element>, kBlock> best;
  std::array<Value<Element>, kBlock> values;
  const bool least = operation.reduction.op == ReduceOp::kMin;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    const std::span<Value<Element>> filled{values.data(), result.size()};
    fill_values<Element>(operation, rank, first, filled);
    if (rank == 0) best = values;
    for (std::size_t i = 0; i < result.size(); ++i) {
      best[i] = least ? std::min(best[i], values[i]) : std::max(best[i], values[i]);
    }
  }
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) wrong += !(result[i] == best[i]) ? 1 : 0;
  return wrong;
}

template <class Element>
std::uint64_t wrong_floats(const Operation& operation, std::size_t first,
                           std::span<const Element> result) {
  std::array<Value<Element>, kBlock> values;
  widen(operation.reduction.type, result, values.data());
  const std::span<const Value<Element>> judged{values.data(), result.size()};
  const ReduceOp op = operation.reduction.op;
  return op == ReduceOp::kMin || op == ReduceOp::kMax
             ? wrong_extremes<Element>(operation, first, judged)
             : wrong_float_sums<Element>(operation, first, judged);
}

template <class T>
std::uint64_t by_blocks(const Operation& operation, std::span<const std::byte> bytes) {
  const std::span<const T> result{reinterpret_cast<const T*>(bytes.data()),
                                  bytes.size() / sizeof(T)};
  std::uint64_t wrong = 0;
  for (std::size_t first = 0; first < result.size(); first += kBlock) {
    const auto block = result.subspan(first, std::min(kBlock, result.size() - first));
    if constexpr (std::is_integral_v<T>) {
      wrong += wrong_integers<T>(operation, first, block);
    } else {
      wrong += wrong_floats<T>(operation, first, block);
    }
  }
  return wrong;
}

}  // namespace

workloads::Stream stream_of(const Operation& operation, unsigned rank) {
  workloads::Stream stream{operation.seed, rank, operation.magnitudes};
  stream.scale_seed = operation.scale_seed;
  if (operation.reduction.op == ReduceOp::kAverage) {
    stream.headroom_bits = static_cast<unsigned>(std::bit_width(operation.ranks - 1));
  }
  return stream;
}

std::uint64_t count_wrong(const Operation& operation, std::span<const std::byte> result) {
  switch (operation.reduction.type) {
    case DataType::kInt8:
      return by_blocks<std::int8_t>(operation, result);
    case DataType::kUint8:
      return by_blocks<std::uint8_t>(operation, result);
    case DataType::kInt32:
      return by_blocks<std::int32_t>(operation, result);
    case DataType::kUint32:
      return by_blocks<std::uint32_t>(operation, result);
    case DataType::kInt64:
      return by_blocks<std::int64_t>(operation, result);
    case DataType::kUint64:
      return by_blocks<std::uint64_t>(operation, result);
    case DataType::kFloat16:
      return by_blocks<Float16>(operation, result);
    case DataType::kFloat32:
      return by_blocks<float>(operation, result);
    case DataType::kFloat64:
      return by_blocks<double>(operation, result);
    case DataType::kBfloat16:
      return by_blocks<Bfloat16>(operation, result);
  }
  return result.size();
}

std::uint64_t hash_bytes(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15U;
  // Four independent chains: one would wait 4 cycles for each product.
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  std::array<std::uint64_t, 4> words;
  std::size_t at = 0;
  for (; at + sizeof(words) <= bytes.size(); at += sizeof(words)) {
    std::memcpy(words.data(), bytes.data() + at, sizeof(words));
    for (std::size_t i = 0; i < 4; ++i) {
      lanes[i] = std::rotl((lanes[i] ^ words[i]) * kPrime, 29);
    }
  }
  std::uint64_t hash = bytes.size();
  for (; at < bytes.size(); ++at) {
    hash = std::rotl((hash ^ static_cast<std::uint64_t>(bytes[at])) * kPrime, 29);
  }
  for (const std::uint64_t lane : lanes) hash = std::rotl((hash ^ lane) * kPrime, 29);
  return hash ^ (hash >> 32U);
}

}  // namespace erar::bench

// Recomputes every rank's values block by block in the first-level cache and compares.
#include "experiments/bench/oracle.h"

#include "core/numeric/block_float.h"
#include "workloads/generator/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace erar::bench {
namespace {

// One exponent block, so that the largest magnitude is at hand for the bound.
constexpr std::size_t kBlock = numeric::kExponentBlock;

std::uint64_t wrong_int32(const Operation& operation, std::size_t first,
                          std::span<const std::int32_t> result) {
  std::array<std::uint32_t, kBlock> sum{};
  std::array<std::int32_t, kBlock> values;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    workloads::fill_int32({operation.seed, rank, operation.magnitudes}, first,
                          {values.data(), result.size()});
    for (std::size_t i = 0; i < result.size(); ++i) {
      sum[i] += static_cast<std::uint32_t>(values[i]);
    }
  }
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    wrong += static_cast<std::uint32_t>(result[i]) != sum[i] ? 1 : 0;
  }
  return wrong;
}

// The magnitude's bits: they order as the magnitudes do, and integer maxima vectorise where those
// of floats do not (NaN).
std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

// fp64 sums of one block over the ranks.
struct FloatBlock {
  std::array<double, kBlock> sum{};
  std::array<double, kBlock> magnitudes{};
  std::uint32_t largest_bits = 0;
};

[[gnu::always_inline]] inline void add_loop(const float* values, std::size_t count,
                                            FloatBlock& block) {
  std::uint32_t largest = block.largest_bits;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, magnitude_bits(values[i]));
    block.sum[i] += static_cast<double>(values[i]);
    block.magnitudes[i] += static_cast<double>(std::fabs(values[i]));
  }
  block.largest_bits = largest;
}

[[gnu::always_inline]] inline std::uint64_t wrong_loop(const float* result, std::size_t count,
                                                       const FloatBlock& block,
                                                       const FloatSumBound& bound) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double error = std::fabs(static_cast<double>(result[i]) - block.sum[i]);
    // Written so that a NaN is wrong.
    wrong += !(error <= bound.of(block.sum[i], block.magnitudes[i])) ? 1 : 0;
  }
  return wrong;
}

// The same loops for any CPU and for those with AVX2, which take half the time.
struct FloatLoops {
  void (*add)(const float*, std::size_t, FloatBlock&);
  std::uint64_t (*wrong)(const float*, std::size_t, const FloatBlock&, const FloatSumBound&);
};

void add_any(const float* values, std::size_t count, FloatBlock& block) {
  add_loop(values, count, block);
}

std::uint64_t wrong_any(const float* result, std::size_t count, const FloatBlock& block,
                        const FloatSumBound& bound) {
  return wrong_loop(result, count, block, bound);
}

[[gnu::target("avx2")]] void add_avx2(const float* values, std::size_t count, FloatBlock& block) {
  add_loop(values, count, block);
}

[[gnu::target("avx2")]] std::uint64_t wrong_avx2(const float* result, std::size_t count,
                                                 const FloatBlock& block,
                                                 const FloatSumBound& bound) {
  return wrong_loop(result, count, block, bound);
}

std::uint64_t wrong_float32(const Operation& operation, std::size_t first,
                            std::span<const float> result) {
  static const FloatLoops kLoops = __builtin_cpu_supports("avx2") ? FloatLoops{add_avx2, wrong_avx2}
                                                                  : FloatLoops{add_any, wrong_any};
  FloatBlock block;
  std::array<float, kBlock> values;
  for (unsigned rank = 0; rank < operation.ranks; ++rank) {
    workloads::fill_float32({operation.seed, rank, operation.magnitudes}, first,
                            {values.data(), result.size()});
    kLoops.add(values.data(), result.size(), block);
  }
  const FloatSumBound bound(operation.ranks, std::bit_cast<float>(block.largest_bits));
  return kLoops.wrong(result.data(), result.size(), block, bound);
}

template <class T, class Check>
std::uint64_t by_blocks(std::span<const std::byte> bytes, Check check) {
  const std::span<const T> result{reinterpret_cast<const T*>(bytes.data()),
                                  bytes.size() / sizeof(T)};
  std::uint64_t wrong = 0;
  for (std::size_t first = 0; first < result.size(); first += kBlock) {
    wrong += check(first, result.subspan(first, std::min(kBlock, result.size() - first)));
  }
  return wrong;
}

}  // namespace

std::uint64_t count_wrong(const Operation& operation, std::span<const std::byte> result) {
  switch (operation.type) {
    case DataType::kInt32:
      return by_blocks<std::int32_t>(result, [&](std::size_t first, auto block) {
        return wrong_int32(operation, first, block);
      });
    case DataType::kFloat32:
      return by_blocks<float>(result, [&](std::size_t first, auto block) {
        return wrong_float32(operation, first, block);
      });
    default:
      break;
  }
  return result.size();
}

FloatSumBound::FloatSumBound(unsigned ranks, float largest) {
  if (largest == 0) return;  // all addends are zero, and both ways say so exactly
  const int exponent = std::max(1, static_cast<int>(magnitude_bits(largest) >> 23U));
  const int guard_bits = static_cast<int>(std::bit_width(ranks - 1));
  const double quantised = 0.5 * ranks * std::ldexp(1.0, exponent + guard_bits - 157);
  // 2^-150: half the distance of two denormal floats, what rounding costs where the result is one.
  absolute_ = quantised * (1 + kUnitRoundoff) + 0x1p-150;
  const double roundings = (ranks - 1) * kUnitRoundoff;
  gamma_ = roundings / (1 - roundings);
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

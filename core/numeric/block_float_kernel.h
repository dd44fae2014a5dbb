// The loops over one exponent block, written once; each block_float_<set>.cc instantiates them
// with its own vector type and is compiled with that instruction set's flags.
//
// Everything here is a template over that type or plain data, and nothing of the standard library
// is inlined into the loops: an inline function shared by all units could be taken by the linker
// from the AVX-512 one and fault on an older CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace erar::numeric {

// One instruction set's loops. Pointers may be unaligned; input and output are the same memory or
// do not overlap. The caller sets MXCSR (see block_float.cc).
struct BlockFloatKernel {
  // The largest IEEE bit pattern without its sign: ordered as the magnitudes are, with infinity and
  // then NaN above all numbers.
  std::uint32_t (*max_magnitude)(const float* values, std::size_t count);
  // lanes[i] = round(values[i] * scale) + bias, a negative even one borrowing from the next
  void (*quantise)(const float* values, std::size_t count, float scale, std::uint32_t bias,
                   std::uint32_t* lanes);
  // values[i] = float(int32(lanes[i] - bias)) * scale
  void (*dequantise)(const std::uint32_t* lanes, std::size_t count, std::uint32_t bias, float scale,
                     float* values);
  // The same for lanes != values, with non-temporal stores; the caller fences them.
  void (*dequantise_past_cache)(const std::uint32_t* lanes, std::size_t count, std::uint32_t bias,
                                float scale, float* values);
};

extern const BlockFloatKernel kBlockFloatAvx512;
extern const BlockFloatKernel kBlockFloatAvx2;
extern const BlockFloatKernel kBlockFloatSse2;

// `operation` on each vector of `count` 32-bit words; the last, partial one through a padded copy.
template <class Vector, class Operation>
inline void transform_words(const void* input, std::size_t count, void* output,
                            Operation operation) {
  constexpr std::size_t kStep = Vector::kWidth * sizeof(std::uint32_t);
  const char* in = static_cast<const char*>(input);
  char* out = static_cast<char*>(output);
  std::size_t left = count * sizeof(std::uint32_t);
  // Four loads before the first store: in place, a store to an address not yet known to differ from
  // the next load's would hold that load up.
  for (; left >= 4 * kStep; left -= 4 * kStep, in += 4 * kStep, out += 4 * kStep) {
    const auto first = Vector::load(in);
    const auto second = Vector::load(in + kStep);
    const auto third = Vector::load(in + 2 * kStep);
    const auto fourth = Vector::load(in + 3 * kStep);
    Vector::store(out, operation(first));
    Vector::store(out + kStep, operation(second));
    Vector::store(out + 2 * kStep, operation(third));
    Vector::store(out + 3 * kStep, operation(fourth));
  }
  for (; left >= kStep; left -= kStep, in += kStep, out += kStep) {
    Vector::store(out, operation(Vector::load(in)));
  }
  if (left > 0) {
    char rest[kStep] = {};
    std::memcpy(rest, in, left);
    Vector::store(rest, operation(Vector::load(rest)));
    std::memcpy(out, rest, left);
  }
}

// The same past the cache; output is not input. Non-temporal stores want aligned vectors: the first
// vector is stored as it lies, and the aligned ones after it may do a part of it again.
template <class Vector, class Operation>
inline void stream_words(const void* input, std::size_t count, void* output, Operation operation) {
  constexpr std::size_t kStep = Vector::kWidth * sizeof(std::uint32_t);
  const char* in = static_cast<const char*>(input);
  char* out = static_cast<char*>(output);
  std::size_t left = count * sizeof(std::uint32_t);
  const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(out)) % kStep;
  if (left >= kStep && head % sizeof(std::uint32_t) == 0) {
    if (head != 0) Vector::store(out, operation(Vector::load(in)));
    left -= head;
    in += head;
    out += head;
    for (; left >= kStep; left -= kStep, in += kStep, out += kStep) {
      Vector::stream(out, operation(Vector::load(in)));
    }
  }
  transform_words<Vector>(in, left / sizeof(std::uint32_t), out, operation);
}

template <class Vector>
std::uint32_t max_magnitude_of(const float* values, std::size_t count) {
  const auto mask = Vector::splat(0x7fffffffU);
  const auto magnitude = [=](const float* from) {
    return Vector::bit_and(Vector::load(from), mask);
  };
  // Four chains, since a maximum waits for the one before it.
  auto first = Vector::splat(0U);
  auto second = first;
  auto third = first;
  auto fourth = first;
  std::size_t i = 0;
  for (; i + 4 * Vector::kWidth <= count; i += 4 * Vector::kWidth) {
    first = Vector::max(first, magnitude(values + i));
    second = Vector::max(second, magnitude(values + i + Vector::kWidth));
    third = Vector::max(third, magnitude(values + i + 2 * Vector::kWidth));
    fourth = Vector::max(fourth, magnitude(values + i + 3 * Vector::kWidth));
  }
  std::uint32_t lanes[Vector::kWidth];
  Vector::store(lanes, Vector::max(Vector::max(first, second), Vector::max(third, fourth)));
  std::uint32_t largest = 0;
  for (const std::uint32_t lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof bits);
    bits &= 0x7fffffffU;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

template <class Vector>
void quantise_block(const float* values, std::size_t count, float scale, std::uint32_t bias,
                    std::uint32_t* lanes) {
  const auto scales = Vector::splat(scale);
  const auto biases = Vector::splat(bias);
  const auto minus_biases = Vector::splat(0U - bias);
  transform_words<Vector>(values, count, lanes, [=](auto bits) {
    const auto rounded = Vector::round(Vector::multiply(Vector::as_floats(bits), scales));
    return Vector::add_borrow(Vector::add(rounded, biases), minus_biases, rounded);
  });
}

template <class Vector>
inline auto lanes_to_values(float scale, std::uint32_t bias) {
  return [scales = Vector::splat(scale), minus_biases = Vector::splat(0U - bias)](auto lane) {
    return Vector::as_ints(
        Vector::multiply(Vector::convert(Vector::add(lane, minus_biases)), scales));
  };
}

template <class Vector>
void dequantise_block(const std::uint32_t* lanes, std::size_t count, std::uint32_t bias,
                      float scale, float* values) {
  transform_words<Vector>(lanes, count, values, lanes_to_values<Vector>(scale, bias));
}

template <class Vector>
void dequantise_block_past_cache(const std::uint32_t* lanes, std::size_t count, std::uint32_t bias,
                                 float scale, float* values) {
  stream_words<Vector>(lanes, count, values, lanes_to_values<Vector>(scale, bias));
}

template <class Vector>
constexpr BlockFloatKernel block_float_kernel() {
  return {max_magnitude_of<Vector>, quantise_block<Vector>, dequantise_block<Vector>,
          dequantise_block_past_cache<Vector>};
}

}  // namespace erar::numeric

// Plain loops in each instruction set, and one by hand for 16-bit floats, many times as fast as
// what the compiler makes of their conversions.
#include "emu/baseline/reduce_kernel.h"

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/numeric/float_elements.h"
#include "core/numeric/half_element.h"
#include "core/numeric/integer_average.h"
#include "core/numeric/per_instruction_set.h"

namespace erar {
namespace {

using numeric::Bfloat16;
using numeric::Float16;

// Each operation also of eight floats at once, with what the intrinsics have: of NaN and of zeros
// that differ in sign they too take the second operand.

// Integers are added as unsigned: the same bits, and wrapping is defined.
struct Add {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Bits = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    } else {
      return a + b;
    }
  }
  [[gnu::always_inline, gnu::target("avx")]] static __m256 of_eight(__m256 a, __m256 b) {
    return _mm256_add_ps(a, b);
  }
};

struct Lesser {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a < b ? a : b;
  }
  [[gnu::always_inline, gnu::target("avx")]] static __m256 of_eight(__m256 a, __m256 b) {
    return _mm256_min_ps(a, b);
  }
};

struct Greater {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a > b ? a : b;
  }
  [[gnu::always_inline, gnu::target("avx")]] static __m256 of_eight(__m256 a, __m256 b) {
    return _mm256_max_ps(a, b);
  }
};

// `ivdep` instead of __restrict, as result may be one of the operands: iteration i touches element
// i only, so vectors are safe either way.
template <class T, class Op>
struct Combine {
  [[gnu::always_inline]] static void run(T* result, const T* own, const T* arrived,
                                         std::size_t count) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) result[i] = Op::of(own[i], arrived[i]);
  }
};

template <class T, class Op>
void combine(void* result, const void* own, const void* arrived, std::size_t count) {
  numeric::run_widest<Combine<T, Op>>(static_cast<T*>(result), static_cast<const T*>(own),
                                      static_cast<const T*>(arrived), count);
}

// The bits are assigned, not the whole element, which would keep GCC from vectorising.
template <class Half, class Op>
struct CombineHalves {
  [[gnu::always_inline]] static void run(Half* result, const Half* own, const Half* arrived,
                                         std::size_t count) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const float combined = Op::of(static_cast<float>(own[i]), static_cast<float>(arrived[i]));
      result[i].bits = Half(combined).bits;
    }
  }
};

[[gnu::always_inline, gnu::target("avx2,f16c")]] inline __m256 load_eight(const Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

[[gnu::always_inline, gnu::target("avx2,f16c")]] inline void store_eight(__m256 values,
                                                                         Float16* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

[[gnu::always_inline, gnu::target("avx2,f16c")]] inline __m256 load_eight(const Bfloat16* from) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

// As Bfloat16 rounds one.
[[gnu::always_inline, gnu::target("avx2,f16c")]] inline void store_eight(__m256 values,
                                                                         Bfloat16* to) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256 nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
  const __m256i all =
      _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan)), 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}

template <class Half, class Op>
[[gnu::noinline, gnu::target("avx2,f16c")]] void combine_by_eight(Half* result, const Half* own,
                                                                  const Half* arrived,
                                                                  std::size_t count) {
  constexpr std::size_t kWidth = 8;
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    store_eight(Op::of_eight(load_eight(own + i), load_eight(arrived + i)), result + i);
  }
  CombineHalves<Half, Op>::run(result + i, own + i, arrived + i, count - i);
}

template <class Half, class Op>
void combine_halves(void* result, const void* own, const void* arrived, std::size_t count) {
  auto* out = static_cast<Half*>(result);
  const auto* a = static_cast<const Half*>(own);
  const auto* b = static_cast<const Half*>(arrived);
  if (numeric::active_instruction_set() == numeric::InstructionSet::kSse2) {
    return numeric::run_sse2<CombineHalves<Half, Op>>(out, a, b, count);
  }
  combine_by_eight<Half, Op>(out, a, b, count);
}

template <class Op>
CombineKernel kernel_of(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return combine<std::int8_t, Op>;
    case DataType::kUint8:
      return combine<std::uint8_t, Op>;
    case DataType::kInt32:
      return combine<std::int32_t, Op>;
    case DataType::kUint32:
      return combine<std::uint32_t, Op>;
    case DataType::kInt64:
      return combine<std::int64_t, Op>;
    case DataType::kUint64:
      return combine<std::uint64_t, Op>;
    case DataType::kFloat16:
      return combine_halves<Float16, Op>;
    case DataType::kFloat64:
      return combine<double, Op>;
    case DataType::kBfloat16:
      return combine_halves<Bfloat16, Op>;
    case DataType::kFloat32:
      break;
  }
  return combine<float, Op>;
}

// Integers of up to 32 bits are divided as floats that hold them, which vectors can do: a quotient
// by at most 64 that is not whole is at least 1/64 from the next whole number, far more than its
// rounding. core/numeric averages exact sums; these are sums that may have wrapped.
template <class T>
struct Divide {
  using Small = std::conditional_t<sizeof(T) == 1, float, double>;
  using Quotient = std::conditional_t<sizeof(T) <= 4, Small, T>;

  [[gnu::always_inline]] static void run(T* values, std::size_t count, unsigned divisor) {
    const auto by = static_cast<Quotient>(divisor);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<T>(static_cast<Quotient>(values[i]) / by);
    }
  }
};

template <class T>
void divide_integers(void* values, std::size_t count, unsigned divisor) {
  numeric::run_widest<Divide<T>>(static_cast<T*>(values), count, divisor);
}

// Of a whole number, also of one beyond 64 bits.
std::uint64_t modulo_2_64(double whole) {
  const double rest = std::fmod(std::fabs(whole), 0x1p64);
  const auto bits = static_cast<std::uint64_t>(rest);
  return whole < 0 ? std::uint64_t{0} - bits : bits;
}

}  // namespace

CombineKernel combine_kernel(DataType type, ReduceOp op) {
  if (op == ReduceOp::kMin) return kernel_of<Lesser>(type);
  if (op == ReduceOp::kMax) return kernel_of<Greater>(type);
  return kernel_of<Add>(type);
}

void divide(DataType type, void* values, std::size_t count, unsigned divisor) {
  switch (type) {
    case DataType::kInt8:
      return divide_integers<std::int8_t>(values, count, divisor);
    case DataType::kUint8:
      return divide_integers<std::uint8_t>(values, count, divisor);
    case DataType::kInt32:
      return divide_integers<std::int32_t>(values, count, divisor);
    case DataType::kUint32:
      return divide_integers<std::uint32_t>(values, count, divisor);
    case DataType::kInt64:
      return divide_integers<std::int64_t>(values, count, divisor);
    case DataType::kUint64:
      return divide_integers<std::uint64_t>(values, count, divisor);
    case DataType::kFloat32:
    case DataType::kFloat64:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return numeric::divide_floats(type, values, count, divisor);
  }
}

void scale(DataType type, void* result, const void* values, std::size_t count, double factor) {
  if (is_float(type)) return numeric::scale_floats(type, values, count, factor, result);
  numeric::scale_integers(type, values, count, static_cast<std::int64_t>(modulo_2_64(factor)),
                          result);
}

}  // namespace erar
